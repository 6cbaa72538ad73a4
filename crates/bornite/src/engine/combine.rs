//! One step on a block of rows: messages in, message out, whatever each row's kinds are.

use super::Kernels;
use super::PackedWeight;
use super::lanes::{Real, planes, tile_len};
use super::message::{Message, rescale_tile};
use super::plan::NodeWeight;
use super::workspace::Workspace;
use crate::algebra::Kind;

/// The weights of one contraction, by what the rows need.
pub(crate) struct Contraction<'a, F> {
    pub(crate) weight: &'a NodeWeight<F>,
    pub(crate) direction: Direction,
    /// The rows that are wanted; all by default. The others become identities.
    pub(crate) wanted: Option<&'a [bool]>,
}

/// Which of a node's three contractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// To the output, from the left and right inputs.
    Up,
    /// To the environment of an input, from the node's own environment and the other input.
    Down(usize),
}

impl<'a, F: Real> Contraction<'a, F> {
    fn pure(&self) -> &'a PackedWeight<F> {
        match self.direction {
            Direction::Up => self.weight.pure(),
            Direction::Down(side) => self.weight.down(side),
        }
    }

    fn mixed(&self) -> &'a PackedWeight<F> {
        match self.direction {
            Direction::Up => self.weight.mixed(),
            Direction::Down(side) => self.weight.down(side),
        }
    }
}

/// Rows by the kinds of their two messages.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    rows: [Vec<u32>; 9],
    /// Those that are not wanted.
    skipped: Vec<u32>,
}

impl Groups {
    fn sort<F: Real>(mut self, [a, b]: [&Message<F>; 2], wanted: Option<&[bool]>) -> Self {
        self.rows.iter_mut().for_each(Vec::clear);
        self.skipped.clear();
        let group = |a: Kind, b: Kind| a as usize * 3 + b as usize;
        if let Some(wanted) = wanted {
            for (row, &wanted) in wanted.iter().enumerate() {
                let group = if wanted {
                    &mut self.rows[group(a.kind(row), b.kind(row))]
                } else {
                    &mut self.skipped
                };
                group.push(row as u32);
            }
            return self;
        }
        if let (Some(a_kind), Some(b_kind)) = (a.uniform(), b.uniform()) {
            self.rows[group(a_kind, b_kind)].extend(0..a.len() as u32);
            return self;
        }
        for row in 0..a.len() {
            self.rows[group(a.kind(row), b.kind(row))].push(row as u32);
        }
        self
    }

    /// The kinds of all rows, where they are the same.
    fn only(&self) -> Option<(Kind, Kind)> {
        if !self.skipped.is_empty() {
            return None;
        }
        let mut each = self.each();
        let (a, b, _) = each.next()?;
        each.next().is_none().then_some((a, b))
    }

    fn each(&self) -> impl Iterator<Item = (Kind, Kind, &[u32])> {
        self.rows
            .iter()
            .enumerate()
            .filter(|(_, rows)| !rows.is_empty())
            .map(|(n, rows)| (Kind::ALL[n / 3], Kind::ALL[n % 3], rows.as_slice()))
    }
}

/// One message of two: rows of the same two kinds go through `make` a tile at a time.
///
/// Two identities make a matrix unless `identity_stays`. `make` gets the kinds, the two tiles, two pieces of scratch memory and the tile to fill.
fn join<F: Real, const C: bool>(
    kernels: &Kernels<F, C>,
    ([a, b], wanted): ([&Message<F>; 2], Option<&[bool]>),
    width: usize,
    identity_stays: bool,
    ws: &mut Workspace<F>,
    mut make: impl FnMut((Kind, Kind), [&[F]; 2], [&mut [F]; 2], &mut [F]),
) -> Message<F> {
    let groups = std::mem::take(&mut ws.groups).sort([a, b], wanted);
    let kind_of = |(a, b): (Kind, Kind)| match a.times(b) {
        Kind::Identity if !identity_stays => Kind::Mixed,
        kind => kind,
    };
    let mut out = match groups.only() {
        Some(kinds) => ws.take_uniform(width, a.len(), kind_of(kinds)),
        None => ws.take(width, a.len()),
    };
    out.set_identities(&groups.skipped);
    let [s0, s1, s2, s3] = &mut ws.scratch;
    for (kind_a, kind_b, rows) in groups.each() {
        let kind = kind_of((kind_a, kind_b));
        if kind == Kind::Identity {
            out.set_identities(rows);
            continue;
        }
        for rows in rows.chunks(F::LANES) {
            let tiles = [a.tile(C, kind_a, rows, s0), b.tile(C, kind_b, rows, s1)];
            let tile = out.push_tile(C, kind, rows);
            make((kind_a, kind_b), tiles, [&mut *s2, &mut *s3], tile);
            rescale_tile(kernels, kind, tile, rows, &mut ws.log2);
        }
    }
    ws.groups = groups;
    out
}

/// The message Σ W (a ⊗ b) of a contraction.
pub(crate) fn contract<F: Real, const C: bool>(
    kernels: &Kernels<F, C>,
    by: &Contraction<'_, F>,
    a: &Message<F>,
    b: &Message<F>,
    ws: &mut Workspace<F>,
) -> Message<F> {
    let [k, k1, k2] = by.pure().shape();
    let len = |n| tile_len::<F>(C, n);
    let scratch = Kernels::<F, C>::mixed_scratch([k, k1, k2]).max(k * k1).max(k * k2);
    ws.grow_scratch(len(scratch.max(k1 * k1).max(k2 * k2)));
    let stays = by.direction == Direction::Up;
    let inputs = ([a, b], by.wanted);
    join(kernels, inputs, k, stays, ws, |kinds, tiles, scratch, tile| match (by.direction, kinds) {
        (Direction::Down(side), (Kind::Identity, Kind::Identity)) => {
            broadcast::<F>(by.weight.down_gram(side), tile);
        }
        _ => contract_tile(kernels, by.pure(), || by.mixed(), kinds, tiles, scratch, tile),
    })
}

/// The message of a tile of rows that take the same two kinds from the inputs of a contraction with W: which product of the
/// kernels each entry of the message table is.
///
/// W is packed for vectors in `pure`, and for all messages in what `mixed` gives. Identities have no tile.
pub(crate) fn contract_tile<'a, F: Real, const C: bool>(
    kernels: &Kernels<F, C>,
    pure: &PackedWeight<F>,
    mixed: impl Fn() -> &'a PackedWeight<F>,
    kinds: (Kind, Kind),
    [a, b]: [&[F]; 2],
    [block, scratch]: [&mut [F]; 2],
    out: &mut [F],
) {
    let [k, k1, k2] = pure.shape();
    // A vector leaves a matrix B of this many columns, and the result is B M Bᴴ.
    let (len, m) = match kinds {
        (Kind::Pure, Kind::Pure) => return kernels.kron_sum(pure, a, b, out),
        (Kind::Mixed, Kind::Identity) => return kernels.mixed_identity(mixed(), a, scratch, out),
        (Kind::Identity, Kind::Mixed) => return kernels.identity_mixed(mixed(), b, scratch, out),
        (Kind::Mixed, Kind::Mixed) => return kernels.mixed_mixed(mixed(), [a, b], scratch, out),
        (Kind::Identity, Kind::Identity) => unreachable!("what identities make is known"),
        (Kind::Pure, other) => (k2, (other == Kind::Mixed).then_some(b)),
        (other, Kind::Pure) => (k1, (other == Kind::Mixed).then_some(a)),
    };
    let block = &mut block[..tile_len::<F>(C, k * len)];
    if kinds.0 == Kind::Pure {
        kernels.kron_left(mixed(), a, block);
    } else {
        kernels.kron_right(mixed(), b, block);
    }
    match m {
        None => kernels.outer_self([k, len], block, out),
        Some(m) => kernels.sandwich([k, len], [block, m], scratch, out),
    }
}

/// The same numbers in every lane.
fn broadcast<F: Real>(numbers: &[F], tile: &mut [F]) {
    for (lanes, &x) in tile.chunks_exact_mut(F::LANES).zip(numbers) {
        lanes.fill(x);
    }
}

/// The message of an elementwise product, of all rows or of those that are wanted.
pub(crate) fn hadamard<F: Real, const C: bool>(
    kernels: &Kernels<F, C>,
    [a, b]: [&Message<F>; 2],
    wanted: Option<&[bool]>,
    ws: &mut Workspace<F>,
) -> Message<F> {
    let k = a.width;
    ws.grow_scratch(tile_len::<F>(C, k * k));
    let inputs = ([a, b], wanted);
    join(kernels, inputs, k, true, ws, |kinds, [ta, tb], _, tile| match kinds {
        (Kind::Pure, Kind::Pure) | (Kind::Mixed, Kind::Mixed) => kernels.hadamard(ta, tb, tile),
        (Kind::Pure, Kind::Mixed) => kernels.hadamard_pure_mixed(ta, tb, tile),
        (Kind::Mixed, Kind::Pure) => kernels.hadamard_pure_mixed(tb, ta, tile),
        (Kind::Pure, Kind::Identity) => kernels.hadamard_pure_identity(ta, tile),
        (Kind::Identity, Kind::Pure) => kernels.hadamard_pure_identity(tb, tile),
        (Kind::Mixed, Kind::Identity) => kernels.hadamard_mixed_identity(k, ta, tile),
        (Kind::Identity, Kind::Mixed) => kernels.hadamard_mixed_identity(k, tb, tile),
        (Kind::Identity, Kind::Identity) => unreachable!("it stays"),
    })
}

/// The Hermitian matrix `value(i, j)`, i ≤ j or not, of one row in one lane of a tile.
pub(crate) fn set_lane<F: Real>(
    complex: bool,
    tile: &mut [F],
    lane: usize,
    values: impl Iterator<Item = crate::linalg::Complex64>,
) {
    let step = planes(complex) * F::LANES;
    for (numbers, z) in tile.chunks_exact_mut(step).zip(values) {
        numbers[lane] = F::from_f64(z.re);
        if complex {
            numbers[F::LANES + lane] = F::from_f64(z.im);
        }
    }
}
