//! Input layers on a block of rows: the messages that they send, and the distributions of their
//! variables given an environment.

use std::sync::Arc;

use super::Kernels;
use super::combine::set_lane;
use super::lanes::{MAX_LANES, Real, get, planes, tile_len};
use super::message::{Message, rescale_tile};
use super::plan::Leaf;
use super::workspace::Workspace;
use super::{Buffer, PackedWeight, Uses, dense};
use crate::algebra::Kind;
use crate::basis::{Basis, Part};
use crate::linalg::{Complex64, Matrix};
use crate::schedule::Places;

impl<F: Real> Leaf<F> {
    /// The number of outputs.
    pub(crate) fn width(&self) -> usize {
        self.weight.as_ref().map_or_else(|| self.basis.width(), Matrix::rows)
    }

    /// The message of rows in these places, given their values, or the parts of the domain that
    /// rows without a value are restricted to.
    pub(crate) fn message<'a, const C: bool>(
        &self,
        kernels: &Kernels<F, C>,
        places: &Arc<Places>,
        values: &[f64],
        part: impl Fn(u32) -> Option<&'a Part>,
        ws: &mut Workspace<F>,
    ) -> Message<F> {
        let mut out = ws.take(C, self.width(), places);
        self.read_columns::<C>(places.counts[0] * F::LANES);
        // Consecutive rows often share a part.
        let mut last = None;
        for tile in places.tiles() {
            let to = out.tile_mut(C, &tile);
            let is_moderate = if tile.is_pure() {
                self.set_values(kernels, tile.rows, values, to, &mut ws.scratch[0]);
                self.columns.is_some() && !self.needs_rescale
            } else {
                self.set_parts::<C>(tile.rows, &part, to, &mut last);
                false
            };
            if !is_moderate {
                rescale_tile(kernels, tile.kind(), to, tile.rows, &mut ws.log2);
            }
        }
        out
    }

    /// Writes the matrices of rows that are restricted to a part of the domain.
    fn set_parts<'a, const C: bool>(
        &self,
        rows: &[u32],
        part: impl Fn(u32) -> Option<&'a Part>,
        tile: &mut [F],
        last: &mut Option<(&'a Part, Matrix<Complex64>)>,
    ) {
        tile.fill(F::ZERO);
        for (lane, &row) in rows.iter().enumerate() {
            let Some(part) = part(row) else { continue };
            let gram = match last.take() {
                Some((same, gram)) if same == part => gram,
                Some(_) | None => self.gram_over(part),
            };
            set_lane(C, tile, lane, gram.data().iter().copied());
            *last = Some((part, gram));
        }
    }

    /// Reads all columns once, in order, if many of them are about to be used.
    ///
    /// The columns of all variables exceed the caches, and reading them in random order is slow.
    /// Reading them in order lets the hardware prefetch them.
    fn read_columns<const C: bool>(&self, wanted: usize) {
        const LINE: usize = 64;
        let Some(columns) = &self.columns else { return };
        if 2 * wanted * self.width() * planes(C) >= columns.len() {
            for line in columns.chunks(LINE / size_of::<F>()) {
                std::hint::black_box(line[0]);
            }
        }
    }

    /// Writes the vectors of at most one row per lane, given their values.
    fn set_values<const C: bool>(
        &self,
        kernels: &Kernels<F, C>,
        rows: &[u32],
        values: &[f64],
        tile: &mut [F],
        scratch: &mut Buffer<F>,
    ) {
        let mut lanes = [0.0; MAX_LANES];
        lanes.iter_mut().zip(rows).for_each(|(x, &row)| *x = values[row as usize]);
        let values = &lanes[..rows.len()];
        if let Some(columns) = &self.columns {
            return gather_columns(kernels, columns, values, tile);
        }
        let Some(w) = &self.packed else {
            return evaluate_functions(C, &self.basis, values, tile);
        };
        let len = tile_len::<F>(C, self.basis.width());
        scratch.grow(len);
        let inputs = &mut scratch[..len];
        evaluate_functions(C, &self.basis, values, inputs);
        kernels.sum(w, inputs, tile);
    }

    /// ∫ ℓ ℓᴴ over a part of the domain.
    pub(super) fn gram_over(&self, part: &Part) -> Matrix<Complex64> {
        self.basis.weighted_gram_over(self.weight.as_ref(), part)
    }

    /// The environment of one row as a matrix E: the density of the variable at x is Σ E[k,l] fₖ(x)
    /// fₗ(x)*.
    ///
    /// The functions f are those of the basis, so with a weight W this is Wᵀ E W*.
    pub(crate) fn row_environment<const C: bool>(
        &self,
        environment: &Message<F>,
        row: usize,
    ) -> Matrix<Complex64> {
        let width = self.width();
        let (tile, lane) = environment.place(C, row);
        let number = |n: usize| get(C, tile, n, lane);
        let e = match environment.kind(row) {
            Kind::Identity => Matrix::identity(width),
            Kind::Pure => Matrix::from_fn(width, width, |i, j| number(i) * number(j).conj()),
            Kind::Mixed => Matrix::from_fn(width, width, |i, j| number(i * width + j)),
        };
        match &self.weight {
            Some(w) => w.transpose().times(&e).times(&w.map(|z| z.conj())),
            None => e,
        }
    }

    /// The environment of one row for a domain with atoms: its diagonal for the first `atoms`
    /// functions, and its block for the other functions. Products of a function of an atom and
    /// another function are zero everywhere.
    pub(crate) fn row_blocks<const C: bool>(
        &self,
        environment: &Message<F>,
        row: usize,
        atoms: usize,
    ) -> (Vec<f64>, Matrix<Complex64>) {
        let functions = self.basis.width();
        let (tile, lane) = environment.place(C, row);
        let number = |n: usize| get(C, tile, n, lane);
        if environment.kind(row) == Kind::Pure {
            let e: Vec<Complex64> = (0..self.width()).map(number).collect();
            let v = self.weight.as_ref().map_or(e.clone(), |w| w.transpose().times_vector(&e));
            let rest = &v[atoms..];
            return (
                v[..atoms].iter().map(Complex64::norm_sqr).collect(),
                Matrix::from_fn(rest.len(), rest.len(), |i, j| rest[i] * rest[j].conj()),
            );
        }
        let e = match environment.kind(row) {
            Kind::Mixed => {
                let width = self.width();
                Matrix::from_fn(width, width, |i, j| number(i * width + j))
            }
            Kind::Identity | Kind::Pure => Matrix::identity(self.width()),
        };
        let Some(w) = &self.weight else {
            let rest = functions - atoms;
            let block = Matrix::from_fn(rest, rest, |i, j| e[(atoms + i, atoms + j)]);
            return ((0..atoms).map(|n| e[(n, n)].re).collect(), block);
        };
        // Wᵀ E. Row i of it, times column j of W*, is entry (i, j).
        let half = w.transpose().times(&e);
        let entry = |i: usize, j: usize| -> Complex64 {
            half.row(i).iter().enumerate().map(|(k, z)| z * w[(k, j)].conj()).sum()
        };
        let rest = functions - atoms;
        (
            (0..atoms).map(|n| entry(n, n).re).collect(),
            Matrix::from_fn(rest, rest, |i, j| entry(atoms + i, atoms + j)),
        )
    }

    /// Calls `each` with every row and its unnormalized probabilities p(x) ∝ Σ E[k,l] ℓₖ(x) ℓₗ(x)*
    /// of all values x of a finite domain.
    pub(crate) fn probabilities<const C: bool>(
        &self,
        kernels: &Kernels<F, C>,
        environment: &Message<F>,
        rows: &[u32],
        ws: &mut Workspace<F>,
        mut each: impl FnMut(u32, &[f64]),
    ) {
        let Some(columns) = &self.columns else { unreachable!("a finite domain has columns") };
        let width = self.width();
        let count = columns.len() / (width * planes(C));
        let of_kind = |kind: Kind| -> Vec<u32> {
            rows.iter().copied().filter(|&r| environment.kind(r as usize) == kind).collect()
        };
        let mut p = vec![0.0; count];
        let norm = |x: &[F]| x.iter().map(|x| x.to_f64() * x.to_f64()).sum::<f64>();
        for row in of_kind(Kind::Identity) {
            for (p, column) in p.iter_mut().zip(columns.chunks_exact(width * planes(C))) {
                *p = norm(column);
            }
            each(row, &p);
        }
        ws.grow_scratch(tile_len::<F>(C, (width * width).max(count)));
        let [s0, s1, s2, ..] = &mut ws.scratch;
        for rows in of_kind(Kind::Pure).chunks(F::LANES) {
            let amplitudes = &mut s1[..tile_len::<F>(C, count)];
            kernels.sum(
                self.amplitude_weight::<C>(),
                environment.tile(C, Kind::Pure, rows, s0),
                amplitudes,
            );
            for (lane, &row) in rows.iter().enumerate() {
                for (x, p) in p.iter_mut().enumerate() {
                    *p = get(C, amplitudes, x, lane).norm_sqr();
                }
                each(row, &p);
            }
        }
        let mixed = of_kind(Kind::Mixed);
        if mixed.is_empty() {
            return;
        }
        let real = Kernels::<F, false>::new(kernels.simd());
        let forms = self.quadratic_forms::<C>();
        let numbers = forms.shape()[1];
        for rows in mixed.chunks(F::LANES) {
            let triangle = &mut s1[..tile_len::<F>(false, numbers)];
            upper_triangle::<F, C>(width, environment.tile(C, Kind::Mixed, rows, s0), triangle);
            let values = &mut s2[..tile_len::<F>(false, count)];
            real.sum(&forms, triangle, values);
            for (lane, &row) in rows.iter().enumerate() {
                for (p, lanes) in p.iter_mut().zip(values.chunks_exact(F::LANES)) {
                    *p = lanes[lane].to_f64().max(0.0);
                }
                each(row, &p);
            }
        }
    }

    /// The outputs at every value, as the rows of a weight.
    fn amplitude_weight<const C: bool>(&self) -> &PackedWeight<F> {
        self.amplitudes.get_or_init(|| {
            let w = self.column_matrix::<C>();
            if C {
                PackedWeight::plain(dense(&w), Uses::PURE)
            } else {
                PackedWeight::plain(dense(&w.map(|z| z.re)), Uses::PURE)
            }
        })
    }

    /// For every value, the real coefficients of Σ E[k,l] ℓₖ ℓₗ* with respect to the upper triangle
    /// of E, as a weight.
    ///
    /// This is computed again for every block of rows: stored for all leaves, it would take more
    /// memory than the circuit.
    fn quadratic_forms<const C: bool>(&self) -> PackedWeight<F> {
        let w = self.column_matrix::<C>();
        let (count, width) = (w.rows(), w.cols());
        let numbers = triangle_numbers(width, C);
        let mut forms = vec![0.0; count * numbers];
        for (x, form) in forms.chunks_exact_mut(numbers).enumerate() {
            add_form(form, C, 1.0, w.row(x));
        }
        PackedWeight::plain(dense(&Matrix::new(count, numbers, forms)), Uses::PURE)
    }

    /// The outputs at every value, one row per value.
    pub(super) fn column_matrix<const C: bool>(&self) -> Matrix<Complex64> {
        let Some(columns) = &self.columns else { unreachable!("a finite domain has columns") };
        let width = self.width();
        let number = |n: usize| {
            let part = |p: usize| columns[n * planes(C) + p].to_f64();
            Complex64::new(part(0), if C { part(1) } else { 0.0 })
        };
        let count = columns.len() / (width * planes(C));
        Matrix::from_fn(count, width, |x, k| number(x * width + k))
    }
}

/// Writes the columns of finite values, which fill tiles in order. Lanes after the last value repeat
/// the first value of their tile; lanes do not affect each other. A missing value (NaN) counts as 0.
pub(crate) fn gather_columns<F: Real, const C: bool>(
    kernels: &Kernels<F, C>,
    columns: &[F],
    values: &[f64],
    tiles: &mut [F],
) {
    let len = tiles.len() / values.len().div_ceil(F::LANES).max(1);
    for (values, tile) in values.chunks(F::LANES).zip(tiles.chunks_exact_mut(len.max(1))) {
        let mut at = [values[0] as usize; MAX_LANES];
        at.iter_mut().zip(values).for_each(|(at, &x)| *at = x as usize);
        kernels.gather(columns, &at[..F::LANES], tile);
    }
}

/// Writes the basis functions at values, which fill tiles in order. Lanes after the last value are
/// zero; those of missing values (NaN) are unchanged.
pub(crate) fn evaluate_functions<F: Real>(
    complex: bool,
    basis: &Basis,
    values: &[f64],
    tiles: &mut [F],
) {
    let len = tile_len::<F>(complex, basis.width());
    let mut f = vec![Complex64::ZERO; basis.width()];
    for (values, tile) in values.chunks(F::LANES).zip(tiles.chunks_exact_mut(len)) {
        if values.len() < F::LANES {
            tile.fill(F::ZERO);
        }
        for (lane, &x) in values.iter().enumerate().filter(|(_, x)| !x.is_nan()) {
            basis.evaluate(x, &mut f);
            set_lane(complex, tile, lane, f.iter().copied());
        }
    }
}

/// Adds the real coefficients of w Σ E[k,l] ℓₖ ℓₗ* with respect to the upper triangle of E.
pub(super) fn add_form(form: &mut [f64], complex: bool, w: f64, l: &[Complex64]) {
    let mut form = form.iter_mut();
    let mut add = |x: f64| {
        if let Some(sum) = form.next() {
            *sum += w * x;
        }
    };
    for (i, a) in l.iter().enumerate() {
        add(a.norm_sqr());
        for b in &l[i + 1..] {
            let q = a * b.conj() * 2.0;
            add(q.re);
            if complex {
                add(-q.im);
            }
        }
    }
}

/// The number of reals in the upper triangle of a Hermitian matrix.
pub(super) fn triangle_numbers(width: usize, complex: bool) -> usize {
    if complex { width * width } else { width * (width + 1) / 2 }
}

/// Writes the upper triangle of a Hermitian matrix as a real tile. Each row starts with its real
/// diagonal entry.
pub(super) fn upper_triangle<F: Real, const C: bool>(width: usize, e: &[F], out: &mut [F]) {
    let mut targets = out.chunks_exact_mut(F::LANES);
    let step = planes(C) * F::LANES;
    for i in 0..width {
        for j in i..width {
            let number = &e[(i * width + j) * step..(i * width + j + 1) * step];
            let parts = if i == j { 1 } else { planes(C) };
            for part in number.chunks_exact(F::LANES).take(parts) {
                if let Some(target) = targets.next() {
                    target.copy_from_slice(part);
                }
            }
        }
    }
}
