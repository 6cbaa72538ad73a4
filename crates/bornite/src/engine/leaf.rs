//! Input layers on a block of rows: the messages that they send, and what an environment says of their variable.

use super::combine::set_lane;
use super::kernels::Kernels;
use super::lanes::{Real, get, planes, tile_len};
use super::message::{Kind, Message, Workspace, rescale};
use super::plan::Leaf;
use super::rows::Rows;
use crate::basis::Part;
use crate::linalg::{Complex64, Matrix};

impl<F: Real> Leaf<F> {
    /// The number of outputs.
    pub(crate) fn width(&self) -> usize {
        self.weight.as_ref().map_or(self.basis.width(), Matrix::rows)
    }

    /// The message of the rows `first`, `first + 1`, … of a batch.
    pub(crate) fn message<const C: bool>(
        &self,
        kernels: &Kernels<F, C>,
        rows: &Rows<'_>,
        (first, count): (usize, usize),
        ws: &mut Workspace<F>,
    ) -> Message<F> {
        let variable = self.variable.index();
        let mut out = ws.take(self.width(), count);
        let mut known = Vec::with_capacity(count);
        let mut parts = Vec::new();
        for row in 0..count {
            if !rows.value(first + row, variable).is_nan() {
                known.push(row as u32);
            } else if rows.part(first + row, variable).is_some() {
                parts.push(row as u32);
            } else {
                out.set_identity(row);
            }
        }
        for chunk in known.chunks(F::LANES) {
            let mut values = [0.0; 32];
            for (x, &row) in values.iter_mut().zip(chunk) {
                *x = rows.value(first + row as usize, variable);
            }
            self.push_values(kernels, &values[..chunk.len()], chunk, &mut out, ws);
        }
        for chunk in parts.chunks(F::LANES) {
            let tile = out.push_tile(C, Kind::Mixed, chunk);
            tile.fill(F::ZERO);
            for (lane, &row) in chunk.iter().enumerate() {
                let part = rows.part(first + row as usize, variable);
                let gram = part.map(|part| self.gram_over(part));
                set_lane(C, tile, lane, gram.iter().flat_map(|g| g.data().iter().copied()));
            }
            rescale(kernels, Kind::Mixed, tile, chunk, &mut ws.log2);
        }
        out
    }

    /// Adds the pure messages of at most as many values as there are lanes.
    pub(crate) fn push_values<const C: bool>(
        &self,
        kernels: &Kernels<F, C>,
        values: &[f64],
        rows: &[u32],
        out: &mut Message<F>,
        ws: &mut Workspace<F>,
    ) {
        let functions = self.basis.width();
        let width = self.width();
        let [scratch, ..] = &mut ws.scratch;
        if let Some(columns) = &self.columns {
            let tile = out.push_tile(C, Kind::Pure, rows);
            if rows.len() < F::LANES {
                tile.fill(F::ZERO);
            }
            let len = width * planes(C);
            for (lane, &x) in values.iter().enumerate() {
                let column = &columns[x as usize * len..(x as usize + 1) * len];
                for (lanes, &number) in tile.chunks_exact_mut(F::LANES).zip(column) {
                    lanes[lane] = number;
                }
            }
            rescale(kernels, Kind::Pure, tile, rows, &mut ws.log2);
            return;
        }
        let len = tile_len::<F>(C, functions);
        scratch.grow(len);
        let inputs = &mut scratch[..len];
        inputs.fill(F::ZERO);
        let mut f = vec![Complex64::ZERO; functions];
        for (lane, &x) in values.iter().enumerate() {
            self.basis.evaluate(x, &mut f);
            set_lane(C, inputs, lane, f.iter().copied());
        }
        let tile = out.push_tile(C, Kind::Pure, rows);
        match &self.packed {
            Some(w) => kernels.sum(w, inputs, tile),
            None => tile.copy_from_slice(inputs),
        }
        rescale(kernels, Kind::Pure, tile, rows, &mut ws.log2);
    }

    /// ∫ ℓ ℓᴴ over a part of the domain.
    fn gram_over(&self, part: &Part) -> Matrix<Complex64> {
        let Some(w) = &self.weight else { return self.basis.gram_over(part) };
        if let Some(diagonal) = self.basis.gram_diagonal_over(part) {
            let scaled = Matrix::from_fn(w.rows(), w.cols(), |i, j| w[(i, j)] * diagonal[j]);
            return scaled.times_adjoint(w).hermitian_part();
        }
        let gram: Matrix<Complex64> = self.basis.gram_over(part);
        w.times(&gram).times_adjoint(w).hermitian_part()
    }

    /// The environment of one row as a matrix E: the density of the variable at x is Σ E[k,l] ℓₖ(x) ℓₗ(x)*.
    ///
    /// With a weight it is that of the functions below it, Wᵀ E W*.
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

    /// p(x) ∝ Σ E[k,l] ℓₖ(x) ℓₗ(x)* for every value of a finite domain, for the rows of one kind, in lanes:
    /// `[value][LANES]`.
    pub(crate) fn probabilities<const C: bool>(&self, kind: Kind, tile: &[F], out: &mut [F]) {
        let Some(columns) = &self.columns else { unreachable!("a finite domain has columns") };
        let width = self.width();
        let len = width * planes(C);
        for (p, column) in out.chunks_exact_mut(F::LANES).zip(columns.chunks_exact(len)) {
            match kind {
                Kind::Identity => {
                    let norm: f64 = column.iter().map(|x| x.to_f64() * x.to_f64()).sum();
                    p.fill(F::from_f64(norm));
                }
                Kind::Pure => pure_form::<F, C>(column, tile, p),
                Kind::Mixed => mixed_form::<F, C>(column, tile, p),
            }
        }
    }
}

/// |Σ a[k] w[k]|² per lane.
fn pure_form<F: Real, const C: bool>(w: &[F], a: &[F], p: &mut [F]) {
    let step = planes(C);
    let mut re = [0.0_f64; 32];
    let mut im = [0.0_f64; 32];
    for (k, w) in w.chunks_exact(step).enumerate() {
        let a = &a[k * step * F::LANES..(k + 1) * step * F::LANES];
        for lane in 0..F::LANES {
            let (wr, ar) = (w[0].to_f64(), a[lane].to_f64());
            if C {
                let (wi, ai) = (w[1].to_f64(), a[F::LANES + lane].to_f64());
                re[lane] += wr * ar - wi * ai;
                im[lane] += wr * ai + wi * ar;
            } else {
                re[lane] += wr * ar;
            }
        }
    }
    for lane in 0..F::LANES {
        p[lane] = F::from_f64(re[lane] * re[lane] + im[lane] * im[lane]);
    }
}

/// Σ E[k,l] w[k] w[l]* per lane, E Hermitian: the diagonal and twice the real part of the rest.
fn mixed_form<F: Real, const C: bool>(w: &[F], e: &[F], p: &mut [F]) {
    let step = planes(C);
    let k = w.len() / step;
    let part = |n: usize| (w[n * step].to_f64(), if C { w[n * step + 1].to_f64() } else { 0.0 });
    let mut sum = [0.0_f64; 32];
    for i in 0..k {
        let (ar, ai) = part(i);
        for j in i..k {
            let (br, bi) = part(j);
            let twice = if i == j { 1.0 } else { 2.0 };
            // w[i] conj(w[j])
            let (qr, qi) = (twice * (ar * br + ai * bi), twice * (ai * br - ar * bi));
            let at = (i * k + j) * step * F::LANES;
            for lane in 0..F::LANES {
                sum[lane] += qr * e[at + lane].to_f64();
                if C {
                    sum[lane] -= qi * e[at + F::LANES + lane].to_f64();
                }
            }
        }
    }
    for lane in 0..F::LANES {
        p[lane] = F::from_f64(sum[lane].max(0.0));
    }
}
