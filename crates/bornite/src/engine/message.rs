//! Messages of a block of rows: each row's is Identity, Pure or Mixed, and rows of one kind lie together in tiles.

use super::Buffer;
use super::Kernels;
use super::lanes::{MAX_LANES, Real, planes, tile_len};
use crate::algebra::Kind;

/// The messages of one step for all rows of a block.
#[derive(Debug)]
pub(crate) struct Message<F> {
    pub(crate) width: usize,
    len: usize,
    /// The kind of all rows, where it is known to be one and they lie in order.
    uniform: Option<Kind>,
    /// Otherwise the kind of each row and its place among the rows of that kind. Places fill tiles in order; a tile may
    /// have lanes without a row.
    rows: Vec<(Option<Kind>, u32)>,
    pure: Tiles<F>,
    mixed: Tiles<F>,
}

#[derive(Debug)]
struct Tiles<F> {
    data: Buffer<F>,
    count: usize,
}

impl<F: Real> Default for Tiles<F> {
    fn default() -> Self {
        Self { data: Buffer::zeros(0), count: 0 }
    }
}

impl<F: Real> Default for Message<F> {
    fn default() -> Self {
        let (pure, mixed) = (Tiles::default(), Tiles::default());
        Self { width: 0, len: 0, uniform: None, rows: Vec::new(), pure, mixed }
    }
}

impl<F: Real> Message<F> {
    /// Begins a message of `len` rows, none of which is set; with a `uniform` kind they will be pushed in order.
    pub(super) fn reset(&mut self, width: usize, len: usize, uniform: Option<Kind>) {
        (self.width, self.len, self.uniform) = (width, len, uniform);
        self.rows.clear();
        if uniform.is_none() {
            self.rows.resize(len, (None, 0));
        }
        self.pure.count = 0;
        self.mixed.count = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The kind of all rows, where that is known without looking at each.
    pub(crate) fn uniform(&self) -> Option<Kind> {
        self.uniform
    }

    pub(crate) fn kind(&self, row: usize) -> Kind {
        match self.uniform.or_else(|| self.rows[row].0) {
            Some(kind) => kind,
            None => unreachable!("every row of a finished message is set"),
        }
    }

    /// The place of a row among those of its kind.
    fn at(&self, row: usize) -> usize {
        if self.uniform.is_some() { row } else { self.rows[row].1 as usize }
    }

    pub(crate) fn set_identities(&mut self, rows: &[u32]) {
        if self.uniform.is_none() {
            for &row in rows {
                self.rows[row as usize] = (Some(Kind::Identity), 0);
            }
        }
    }

    /// Reals that the message has room for.
    pub(super) fn room(&self) -> usize {
        self.pure.data.len() + self.mixed.data.len()
    }

    /// Adds a tile of one kind for these rows, at most as many as there are lanes, and gives its memory, which may
    /// hold anything.
    pub(crate) fn push_tile(&mut self, complex: bool, kind: Kind, rows: &[u32]) -> &mut [F] {
        let len = tile_len::<F>(complex, kind.numbers(self.width));
        let tiles = match kind {
            Kind::Pure => &mut self.pure,
            Kind::Mixed => &mut self.mixed,
            Kind::Identity => unreachable!("an identity is not stored"),
        };
        let first = (tiles.count * F::LANES) as u32;
        if self.uniform.is_none() {
            for (lane, &row) in rows.iter().enumerate() {
                self.rows[row as usize] = (Some(kind), first + lane as u32);
            }
        }
        let start = tiles.count * len;
        tiles.count += 1;
        if tiles.data.len() < start + len {
            tiles.data.grow(2 * (start + len));
        }
        &mut tiles.data[start..start + len]
    }

    /// The rows of one kind, as one tile: where they lie in one already, in order, that is it; else they are copied
    /// into `scratch`, and lanes without a row are zero. The rows are given in increasing order.
    pub(crate) fn tile<'a>(
        &'a self,
        complex: bool,
        kind: Kind,
        rows: &[u32],
        scratch: &'a mut [F],
    ) -> &'a [F] {
        let numbers = kind.numbers(self.width);
        let len = tile_len::<F>(complex, numbers);
        let data = match kind {
            Kind::Pure => &self.pure.data,
            Kind::Mixed => &self.mixed.data,
            Kind::Identity => return &[],
        };
        let place = |row: u32| self.at(row as usize);
        let first = place(rows[0]);
        let tile = first / F::LANES;
        let in_order = first.is_multiple_of(F::LANES)
            && match self.uniform {
                Some(_) => place(rows[rows.len() - 1]) + 1 == first + rows.len(),
                None => rows.iter().enumerate().all(|(lane, &row)| place(row) == first + lane),
            };
        if in_order {
            return &data[tile * len..(tile + 1) * len];
        }
        let scratch = &mut scratch[..len];
        let stripes = numbers * planes(complex);
        if rows.len() < F::LANES {
            scratch.fill(F::ZERO);
        }
        for (lane, &row) in rows.iter().enumerate() {
            let (tile, from) = (place(row) / F::LANES, place(row) % F::LANES);
            let source = &data[tile * len..(tile + 1) * len];
            for n in 0..stripes {
                scratch[n * F::LANES + lane] = source[n * F::LANES + from];
            }
        }
        scratch
    }

    /// The tile and lane in which a row lies.
    pub(crate) fn place(&self, complex: bool, row: usize) -> (&[F], usize) {
        let (kind, place) = (self.kind(row), self.at(row));
        let len = tile_len::<F>(complex, kind.numbers(self.width));
        let data = match kind {
            Kind::Pure => &self.pure.data,
            Kind::Mixed => &self.mixed.data,
            Kind::Identity => return (&[], 0),
        };
        let tile = place / F::LANES;
        (&data[tile * len..(tile + 1) * len], place % F::LANES)
    }
}

/// Brings a fresh tile into range and adds the exponents to those of its rows: twice for a vector, since p is quadratic in it.
pub(crate) fn rescale_tile<F: Real, const C: bool>(
    kernels: &Kernels<F, C>,
    kind: Kind,
    tile: &mut [F],
    rows: &[u32],
    log2: &mut [i64],
) {
    let mut exponents = [0_i64; MAX_LANES];
    if kernels.rescale_extreme(tile, &mut exponents[..F::LANES]) {
        let times = if kind == Kind::Pure { 2 } else { 1 };
        for (&row, e) in rows.iter().zip(exponents) {
            log2[row as usize] += times * e;
        }
    }
}
