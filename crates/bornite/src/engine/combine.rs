//! One step on a block of rows: combines messages of any kinds into one.

use std::sync::Arc;

use super::Kernels;
use super::PackedWeight;
use super::lanes::{Real, planes, tile_len};
use super::message::{Message, rescale_tile};
use super::plan::NodeWeight;
use super::workspace::Workspace;
use crate::algebra::Kind;
use crate::schedule::Places;

/// A weight, and which of its contractions to use.
pub(crate) struct Contraction<'a, F> {
    pub(crate) weight: &'a NodeWeight<F>,
    pub(crate) direction: Direction,
}

/// Which of the three contractions of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The message of the step, from those of its inputs.
    Up,
    /// The environment of an input, from the step's environment and the message of the other input.
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

/// Combines two messages into one, with its rows in these places. `make` gets the kinds, two input
/// tiles, two pieces of scratch memory and the tile to fill. If there is no second message, a
/// message of width 1 with the value 1 takes its place.
fn join<F: Real, const C: bool>(
    kernels: &Kernels<F, C>,
    places: &Arc<Places>,
    (a, b): (&Message<F>, Option<&Message<F>>),
    width: usize,
    ws: &mut Workspace<F>,
    mut make: impl FnMut((Kind, Kind), [&[F]; 2], [&mut [F]; 2], &mut [F]),
) -> Message<F> {
    let mut out = ws.take(C, width, places);
    let [s0, s1, s2, s3] = &mut ws.scratch;
    if b.is_none() {
        s1[..tile_len::<F>(C, 1)].fill(F::ZERO);
        s1[..F::LANES].fill(F::ONE);
    }
    for tile in places.tiles() {
        let [kind_a, kind_b] = tile.kinds;
        let first = a.tile(C, kind_a, tile.rows, s0);
        let (kind_b, second) = match b {
            Some(b) => (kind_b, b.tile(C, kind_b, tile.rows, s1)),
            None => (Kind::Pure, &s1[..tile_len::<F>(C, 1)]),
        };
        let to = out.tile_mut(C, &tile);
        make((kind_a, kind_b), [first, second], [&mut *s2, &mut *s3], to);
        rescale_tile(kernels, tile.kind(), to, tile.rows, &mut ws.log2);
    }
    out
}

/// The message W (a ⊗ b) of a contraction; W a if there is no b.
pub(crate) fn contract<F: Real, const C: bool>(
    kernels: &Kernels<F, C>,
    by: &Contraction<'_, F>,
    places: &Arc<Places>,
    (a, b): (&Message<F>, Option<&Message<F>>),
    ws: &mut Workspace<F>,
) -> Message<F> {
    let [k, k1, k2] = by.pure().shape();
    let len = |n| tile_len::<F>(C, n);
    let scratch = Kernels::<F, C>::mixed_scratch([k, k1, k2]).max(k * k1).max(k * k2);
    ws.grow_scratch(len(scratch.max(k1 * k1).max(k2 * k2)));
    join(kernels, places, (a, b), k, ws, |kinds, tiles, scratch, tile| {
        match (by.direction, kinds) {
            (Direction::Down(side), (Kind::Identity, Kind::Identity)) => {
                broadcast::<F>(by.weight.down_gram(side), tile);
            }
            (Direction::Up | Direction::Down(_), _) => {
                contract_tile(kernels, by.pure(), || by.mixed(), kinds, tiles, scratch, tile);
            }
        }
    })
}

/// The message of a tile of rows that take the same two kinds of messages. This maps each entry of
/// the message table to a product of the kernels.
///
/// `pure` is W packed for vectors; `mixed` returns W packed for all messages. Identities have empty
/// tiles.
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
    // A vector leaves a matrix B with this many columns. The result is B M Bᴴ.
    let (len, m) = match kinds {
        (Kind::Pure, Kind::Pure) => return kernels.kron_sum(pure, a, b, out),
        (Kind::Mixed, Kind::Identity) => return kernels.mixed_identity(mixed(), a, scratch, out),
        (Kind::Identity, Kind::Mixed) => return kernels.identity_mixed(mixed(), b, scratch, out),
        (Kind::Mixed, Kind::Mixed) => return kernels.mixed_mixed(mixed(), [a, b], scratch, out),
        (Kind::Identity, Kind::Identity) => unreachable!("the result is known in advance"),
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

/// Writes the same numbers into every lane.
fn broadcast<F: Real>(numbers: &[F], tile: &mut [F]) {
    for (lanes, &x) in tile.chunks_exact_mut(F::LANES).zip(numbers) {
        lanes.fill(x);
    }
}

/// The message of an elementwise product.
pub(crate) fn hadamard<F: Real, const C: bool>(
    kernels: &Kernels<F, C>,
    places: &Arc<Places>,
    [a, b]: [&Message<F>; 2],
    ws: &mut Workspace<F>,
) -> Message<F> {
    let k = a.width;
    ws.grow_scratch(tile_len::<F>(C, k * k));
    join(kernels, places, (a, Some(b)), k, ws, |kinds, tiles, _, tile| {
        hadamard_tile(kernels, k, kinds, tiles, tile);
    })
}

/// The message of an elementwise product of width k, for a tile of rows that take the same two kinds
/// of messages.
pub(crate) fn hadamard_tile<F: Real, const C: bool>(
    kernels: &Kernels<F, C>,
    k: usize,
    kinds: (Kind, Kind),
    [a, b]: [&[F]; 2],
    out: &mut [F],
) {
    match kinds {
        (Kind::Pure, Kind::Pure) | (Kind::Mixed, Kind::Mixed) => kernels.hadamard(a, b, out),
        (Kind::Pure, Kind::Mixed) => kernels.hadamard_pure_mixed(a, b, out),
        (Kind::Mixed, Kind::Pure) => kernels.hadamard_pure_mixed(b, a, out),
        (Kind::Pure, Kind::Identity) => kernels.hadamard_pure_identity(a, out),
        (Kind::Identity, Kind::Pure) => kernels.hadamard_pure_identity(b, out),
        (Kind::Mixed, Kind::Identity) => kernels.hadamard_mixed_identity(k, a, out),
        (Kind::Identity, Kind::Mixed) => kernels.hadamard_mixed_identity(k, b, out),
        (Kind::Identity, Kind::Identity) => unreachable!("the product is an identity too"),
    }
}

/// Writes the numbers of one row into a lane of a tile.
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
