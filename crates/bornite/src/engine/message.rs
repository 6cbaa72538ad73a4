//! The messages of a block of rows. Each row's message is Identity, Pure or Mixed, and rows of one
//! kind lie together in tiles.

use std::sync::Arc;

use super::Buffer;
use super::Kernels;
use super::lanes::{MAX_LANES, Real, get, tile_len};
use crate::algebra::Kind;
use crate::schedule::{Places, Tile};

/// The messages of one step for all rows of a block.
#[derive(Debug)]
pub(crate) struct Message<F> {
    pub(crate) width: usize,
    places: Arc<Places>,
    /// Tiles of vectors, and tiles of matrices.
    values: [Buffer<F>; 2],
}

impl<F: Real> Default for Message<F> {
    fn default() -> Self {
        let values = [Buffer::zeros(0), Buffer::zeros(0)];
        Self { width: 0, places: Arc::default(), values }
    }
}

impl<F: Real> Message<F> {
    /// Reuses the memory for rows in these places. The numbers are unspecified.
    pub(super) fn reset(&mut self, complex: bool, width: usize, places: &Arc<Places>) {
        (self.width, self.places) = (width, places.clone());
        for (n, kind) in [Kind::Pure, Kind::Mixed].into_iter().enumerate() {
            self.values[n].grow(places.counts[n] * tile_len::<F>(complex, kind.numbers(width)));
        }
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn places(&self) -> &Arc<Places> {
        &self.places
    }

    pub(crate) fn kind(&self, row: usize) -> Kind {
        self.places.kind(row as u32)
    }

    /// The number of reals that the message has allocated.
    pub(super) fn room(&self) -> usize {
        self.values.iter().map(|values| values.len()).sum()
    }

    /// The numbers of one of the tiles.
    pub(crate) fn tile_mut(&mut self, complex: bool, tile: &Tile<'_>) -> &mut [F] {
        let len = tile_len::<F>(complex, tile.kind().numbers(self.width));
        let values = &mut self.values[usize::from(!tile.is_pure())];
        &mut values[tile.index * len..(tile.index + 1) * len]
    }

    /// The numbers, and where they lie.
    pub(crate) fn sent(&self) -> Sent<'_, F> {
        Sent { width: self.width, places: &self.places, values: &self.values }
    }

    /// The messages of rows of one kind as one tile. If the rows already lie in one tile in this
    /// order, it is returned; otherwise, they are copied to `scratch`, and lanes without a row are
    /// zero.
    pub(crate) fn tile<'a>(
        &'a self,
        complex: bool,
        kind: Kind,
        rows: &[u32],
        scratch: &'a mut [F],
    ) -> &'a [F] {
        let convert = |_: &mut [F], _, _| unreachable!("the rows have this kind");
        self.sent().gather(complex, kind, rows, scratch, convert)
    }

    /// The tile and the lane of a row.
    pub(crate) fn place(&self, complex: bool, row: usize) -> (&[F], usize) {
        let (tile, lane) = self.places.place(row as u32);
        (self.sent().tile(complex, self.kind(row), tile), lane)
    }
}

/// The messages that a step sends: their numbers, and where they lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent<'a, F: Real> {
    pub(crate) width: usize,
    pub(crate) places: &'a Places,
    /// Tiles of vectors, and tiles of matrices.
    pub(crate) values: &'a [Buffer<F>; 2],
}

impl<'a, F: Real> Sent<'a, F> {
    /// A tile of one kind; empty for identities.
    pub(crate) fn tile(&self, complex: bool, kind: Kind, tile: usize) -> &'a [F] {
        let values = match kind {
            Kind::Identity => return &[],
            Kind::Pure => &self.values[0],
            Kind::Mixed => &self.values[1],
        };
        let len = tile_len::<F>(complex, kind.numbers(self.width));
        &values[tile * len..(tile + 1) * len]
    }

    /// The tile that already holds exactly these rows, all of this kind and in this order, if there
    /// is one.
    fn in_place(&self, complex: bool, kind: Kind, rows: &[u32]) -> Option<&'a [F]> {
        let tile = if kind == Kind::Identity { 0 } else { self.places.tile_of(kind, rows)? };
        Some(self.tile(complex, kind, tile))
    }

    /// The messages of rows as one tile of this kind. If they already lie in one tile in this
    /// order, it is returned; otherwise, they are copied to `scratch`, and lanes without a row are
    /// zero. `convert` gets the tile, the lane and the row of messages of another kind, to write
    /// them.
    pub(crate) fn gather(
        &self,
        complex: bool,
        kind: Kind,
        rows: &[u32],
        scratch: &'a mut [F],
        convert: impl Fn(&mut [F], usize, u32),
    ) -> &'a [F] {
        if let Some(tile) = self.in_place(complex, kind, rows) {
            return tile;
        }
        let len = tile_len::<F>(complex, kind.numbers(self.width));
        let values: &[F] = &self.values[usize::from(kind == Kind::Mixed)];
        let out = &mut scratch[..len];
        if rows.len() < F::LANES {
            out.fill(F::ZERO);
        }
        // The lanes of rows of this kind, and the positions of their first numbers in `values`.
        let (mut lanes, mut count) = ([(0, 0); MAX_LANES], 0);
        for (lane, &row) in rows.iter().enumerate() {
            if self.places.kind(row) == kind {
                let (tile, from) = self.places.place(row);
                lanes[count] = (lane, tile * len + from);
                count += 1;
            }
        }
        for (n, to) in out.chunks_exact_mut(F::LANES).enumerate() {
            for &(lane, start) in &lanes[..count] {
                to[lane] = values[start + n * F::LANES];
            }
        }
        if count < rows.len() {
            for (lane, &row) in rows.iter().enumerate() {
                if self.places.kind(row) != kind {
                    convert(out, lane, row);
                }
            }
        }
        out
    }
}

/// The trace of the message in one lane of a tile; 1 for an identity, as at the output of an
/// orthonormal circuit.
pub(crate) fn trace<F: Real>(
    complex: bool,
    kind: Kind,
    width: usize,
    (tile, lane): (&[F], usize),
) -> f64 {
    let number = |n: usize| get(complex, tile, n, lane);
    match kind {
        Kind::Identity => 1.0,
        Kind::Pure => (0..width).map(|k| number(k).norm_sqr()).sum(),
        Kind::Mixed => (0..width).map(|k| number(k * width + k).re).sum::<f64>().max(0.0),
    }
}

/// Adds the exponents that were taken out of a tile to those of its rows. The exponent of a vector
/// counts twice, because p is quadratic in it.
pub(crate) fn add_exponents(kind: Kind, rows: &[u32], exponents: &[i64], log2: &mut [i64]) {
    let times = if kind == Kind::Pure { 2 } else { 1 };
    for (&row, exponent) in rows.iter().zip(exponents) {
        log2[row as usize] += times * exponent;
    }
}

/// Rescales a new tile if its numbers are extreme, and adds the exponents to those of its rows.
pub(crate) fn rescale_tile<F: Real, const C: bool>(
    kernels: &Kernels<F, C>,
    kind: Kind,
    tile: &mut [F],
    rows: &[u32],
    log2: &mut [i64],
) {
    let mut exponents = [0_i64; MAX_LANES];
    if kernels.rescale_extreme(tile, &mut exponents[..F::LANES]) {
        add_exponents(kind, rows, &exponents, log2);
    }
}
