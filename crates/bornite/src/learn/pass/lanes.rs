//! Reading messages of some rows into a tile, and distributing environments to rows.

use super::Pass;
use super::block::Tiles;
use crate::algebra::Kind;
use crate::engine::lanes::{MAX_LANES, get, tile_len};
use crate::engine::{Kernels, Real, Sent, set_lane};
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::schedule::{Places, Schedule};

/// The messages that a step sends.
pub(super) struct Input<'a, F: Real, T> {
    sent: Sent<'a, F>,
    /// The message without evidence, unless it is an identity.
    unknown: Option<&'a Matrix<T>>,
}

impl<'a, F: Real, T: Scalar> Input<'a, F, T> {
    pub(super) fn new<const C: bool>(
        pass: &Pass<'a, F, T, C>,
        step: usize,
        schedule: &'a Schedule,
        tiles: &'a [Tiles<F>],
    ) -> Self {
        let (width, places) = (pass.program.width(step), &**schedule.at(step));
        let sent = Sent { width, places, values: &tiles[step].values };
        Self { sent, unknown: pass.partition.node(step).map(|node| &node.matrix) }
    }

    /// The messages of rows as one tile of this kind: see [`Sent::gather`]. Vectors and identities
    /// are converted to matrices.
    pub(super) fn gather<const C: bool>(
        &self,
        kind: Kind,
        rows: &[u32],
        scratch: &'a mut [F],
    ) -> &'a [F] {
        self.sent.gather(C, kind, rows, scratch, |tile, lane, row| {
            match self.sent.places.kind(row) {
                Kind::Pure => {
                    let v = self.vector::<C>(row);
                    let outer = v.iter().flat_map(|&x| v.iter().map(move |y| x * y.conj()));
                    set_lane(C, tile, lane, outer);
                }
                Kind::Identity | Kind::Mixed => self.set_unknown::<C>(tile, lane),
            }
        })
    }

    fn set_unknown<const C: bool>(&self, out: &mut [F], lane: usize) {
        if let Some(m) = self.unknown {
            set_lane(C, out, lane, m.data().iter().map(|x| x.to_complex()));
        } else {
            let width = self.sent.width;
            let entry = |n: usize| Complex64::from(f64::from(n.is_multiple_of(width + 1)));
            set_lane(C, out, lane, (0..width * width).map(entry));
        }
    }

    fn vector<const C: bool>(&self, row: u32) -> Vec<Complex64> {
        let (tile, lane) = self.sent.places.place(row);
        let tile = self.sent.tile(C, Kind::Pure, tile);
        (0..self.sent.width).map(|k| get(C, tile, k, lane)).collect()
    }
}

/// A step that receives environments.
pub(super) struct Receiver<'a, F: Real> {
    width: usize,
    places: &'a Places,
    tiles: &'a mut Tiles<F>,
    /// The sum over rows without evidence, if it is needed.
    unknown: Option<&'a mut Option<Matrix<Complex64>>>,
}

impl<'a, F: Real> Receiver<'a, F> {
    pub(super) fn new<T: Scalar, const C: bool>(
        pass: &Pass<'_, F, T, C>,
        step: usize,
        schedule: &'a Schedule,
        tiles: &'a mut [Tiles<F>],
        unknown: &'a mut [Option<Matrix<Complex64>>],
    ) -> Self {
        let is_needed = !pass.partition.is_orthonormal();
        Self {
            width: pass.program.width(step),
            places: schedule.at(step),
            tiles: &mut tiles[step],
            unknown: is_needed.then_some(&mut unknown[step]),
        }
    }

    /// Gives each row of a tile its gradient or environment. If a row's vector was converted to a
    /// matrix, its environment is converted to the gradient by the vector.
    pub(super) fn give<const C: bool>(
        &mut self,
        kernels: Kernels<F, C>,
        kind: Kind,
        rows: &[u32],
        e: &mut [F],
    ) {
        match kind {
            Kind::Identity => {}
            Kind::Pure => self.give_lanes::<C>(kernels, Kind::Pure, rows, e),
            Kind::Mixed => {
                for (lane, &row) in rows.iter().enumerate() {
                    match self.places.kind(row) {
                        Kind::Mixed => {}
                        Kind::Identity => self.sum_unknown::<C>(e, lane),
                        Kind::Pure => self.give_vector_of::<C>(row, e, lane),
                    }
                }
                self.give_lanes::<C>(kernels, Kind::Mixed, rows, e);
            }
        }
    }

    /// Gives the rows of one kind the numbers in their lanes, times their factors.
    fn give_lanes<const C: bool>(
        &mut self,
        kernels: Kernels<F, C>,
        kind: Kind,
        rows: &[u32],
        e: &mut [F],
    ) {
        let (len, n) = (e.len(), usize::from(kind == Kind::Mixed));
        if rows.len() == F::LANES
            && let Some(tile) = self.places.tile_of(kind, rows)
        {
            kernels.scale(e, self.tiles.tile_factors(n, tile));
            self.tiles.environments[n][tile * len..(tile + 1) * len].copy_from_slice(e);
            return;
        }
        let to: &mut [F] = &mut self.tiles.environments[n];
        let factors = &self.tiles.factors[n];
        // The lanes of rows of this kind, and the positions of their first numbers in `to`.
        let mut lanes = [(0, 0); MAX_LANES];
        let (mut own, mut count) = ([F::ONE; MAX_LANES], 0);
        for (lane, &row) in rows.iter().enumerate() {
            if self.places.kind(row) == kind {
                let (tile, place) = self.places.place(row);
                own[lane] = factors[tile * F::LANES + place];
                lanes[count] = (lane, tile * len + place);
                count += 1;
            }
        }
        kernels.scale(e, &own[..F::LANES]);
        for (n, from) in e.chunks_exact(F::LANES).enumerate() {
            for &(lane, start) in &lanes[..count] {
                to[start + n * F::LANES] = from[lane];
            }
        }
    }

    fn sum_unknown<const C: bool>(&mut self, e: &[F], lane: usize) {
        if let Some(sum) = &mut self.unknown {
            let k = self.width;
            let sum = sum.get_or_insert_with(|| Matrix::zeros(k, k));
            for (n, sum) in sum.data_mut().iter_mut().enumerate() {
                *sum += get(C, e, n, lane) * 0.5;
            }
        }
    }

    /// Sets the gradient by a row's vector v to E* v.
    fn give_vector_of<const C: bool>(&mut self, row: u32, e: &[F], lane: usize) {
        let (tile, place) = self.places.place(row);
        let (k, len) = (self.width, tile_len::<F>(C, self.width));
        let v = &self.tiles.values[0][tile * len..(tile + 1) * len];
        let factor = self.tiles.factors[0][tile * F::LANES + place].to_f64();
        let entry = |i: usize| -> Complex64 {
            let terms = (0..k).map(|j| get(C, e, i * k + j, lane).conj() * get(C, v, j, place));
            terms.sum::<Complex64>() * factor
        };
        let to = &mut self.tiles.environments[0][tile * len..(tile + 1) * len];
        set_lane(C, to, place, (0..k).map(entry));
    }
}
