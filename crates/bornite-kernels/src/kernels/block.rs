//! The two inner loops: weights times a tile, and tiles times tiles.
//!
//! Each keeps a block of accumulators in registers. The instruction set determines how the outputs
//! are divided into blocks, but not the order of operations for an output.

use crate::lanes::{Real, planes};
use crate::vector::Vectors;
use crate::weight::{PANEL, Panels};

/// A complex number in each lane. Real circuits do not use the second half.
pub(crate) type Num<V> = (V, V);

/// Loads number `n` of a tile, starting with lane `at`.
#[inline(always)]
pub(crate) fn load<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    tile: &[F],
    n: usize,
    at: usize,
) -> Num<T::V> {
    let x = &tile[n * planes(C) * F::LANES..][..planes(C) * F::LANES];
    let re = t.load(&x[at..]);
    (re, if C { t.load(&x[F::LANES + at..]) } else { re })
}

/// Stores number `n` of a tile, starting with lane `at`.
#[inline(always)]
pub(crate) fn store<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    tile: &mut [F],
    n: usize,
    at: usize,
    z: Num<T::V>,
) {
    let x = &mut tile[n * planes(C) * F::LANES..][..planes(C) * F::LANES];
    t.store(&mut x[at..], z.0);
    if C {
        t.store(&mut x[F::LANES + at..], z.1);
    }
}

/// x y + acc.
#[inline(always)]
pub(crate) fn mul_add<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    x: Num<T::V>,
    y: Num<T::V>,
    acc: Num<T::V>,
) -> Num<T::V> {
    let re = t.fma(x.0, y.0, acc.0);
    if !C {
        return (re, re);
    }
    (t.fnma(x.1, y.1, re), t.fma(x.1, y.0, t.fma(x.0, y.1, acc.1)))
}

/// x conj(y) + acc.
#[inline(always)]
pub(crate) fn mul_conj_add<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    x: Num<T::V>,
    y: Num<T::V>,
    acc: Num<T::V>,
) -> Num<T::V> {
    let re = t.fma(x.0, y.0, acc.0);
    if !C {
        return (re, re);
    }
    (t.fma(x.1, y.1, re), t.fnma(x.0, y.1, t.fma(x.1, y.0, acc.1)))
}

/// The conjugate.
#[inline(always)]
pub(crate) fn conj<T: Vectors<F>, F: Real, const C: bool>(t: T, z: Num<T::V>) -> Num<T::V> {
    (z.0, if C { t.neg(z.1) } else { z.1 })
}

/// Zero.
#[inline(always)]
pub(crate) fn zero<T: Vectors<F>, F: Real>(t: T) -> Num<T::V> {
    (t.splat(F::ZERO), t.splat(F::ZERO))
}

/// acc[m] += w[m] x, where w[m] is the same in all lanes; it is conjugated if `CONJ`.
#[inline(always)]
pub(crate) fn broadcast_mul_add<
    T: Vectors<F>,
    F: Real,
    const C: bool,
    const CONJ: bool,
    const M: usize,
>(
    t: T,
    weight: impl Fn(usize) -> (F, F),
    x: Num<T::V>,
    acc: &mut [Num<T::V>; M],
) {
    for (m, acc) in acc.iter_mut().enumerate() {
        let (re, im) = weight(m);
        let re = t.splat(re);
        acc.0 = t.fma(re, x.0, acc.0);
        if C {
            acc.1 = t.fma(re, x.1, acc.1);
            let im = t.splat(im);
            if CONJ {
                acc.0 = t.fma(im, x.1, acc.0);
                acc.1 = t.fnma(im, x.0, acc.1);
            } else {
                acc.0 = t.fnma(im, x.1, acc.0);
                acc.1 = t.fma(im, x.0, acc.1);
            }
        }
    }
}

/// A part of a batch of packed matrices: of matrix `batch`, the rows before `rows` and the columns
/// from `first_col` on.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a, F> {
    pub(crate) panels: &'a Panels<F>,
    pub(crate) batch: usize,
    pub(crate) rows: usize,
    pub(crate) first_col: usize,
}

impl<'a, F: Real> Part<'a, F> {
    /// All of matrix `batch`.
    #[inline(always)]
    pub(crate) fn all(panels: &'a Panels<F>, batch: usize) -> Self {
        Self { panels, batch, rows: panels.rows, first_col: 0 }
    }
}

/// A matrix times the vector tile `x`: calls `emit(m, Σₙ w[m,n] x[n])` for the rows m of the part,
/// in order, starting with lane `at`; w is conjugated if `CONJ`.
#[inline(always)]
pub(crate) fn matrix_times<T: Vectors<F>, F: Real, const C: bool, const CONJ: bool>(
    t: T,
    part: Part<'_, F>,
    x: &[F],
    at: usize,
    mut emit: impl FnMut(usize, Num<T::V>),
) {
    let Part { panels, batch, rows, first_col } = part;
    let w = panels.matrix(batch);
    let cols = x.len() / (planes(C) * F::LANES);
    for first in (0..rows).step_by(PANEL) {
        let height = PANEL.min(panels.rows - first);
        let panel = &w[planes(C) * (first * panels.cols + height * first_col)..];
        let panel = &panel[..planes(C) * height * cols];
        let wanted = rows - first;
        match height {
            1 => panel_rows::<T, F, C, CONJ, 1, 0, 1>(t, panel, x, at, [first, rows], &mut emit),
            2 => panel_rows::<T, F, C, CONJ, 2, 0, 2>(t, panel, x, at, [first, rows], &mut emit),
            3 => {
                panel_rows::<T, F, C, CONJ, 3, 0, 2>(t, panel, x, at, [first, rows], &mut emit);
                if wanted > 2 {
                    panel_rows::<T, F, C, CONJ, 3, 2, 1>(t, panel, x, at, [first, rows], &mut emit);
                }
            }
            _ if t.four_rows() && wanted > 2 => {
                panel_rows::<T, F, C, CONJ, 4, 0, 4>(t, panel, x, at, [first, rows], &mut emit);
            }
            _ => {
                panel_rows::<T, F, C, CONJ, 4, 0, 2>(t, panel, x, at, [first, rows], &mut emit);
                if wanted > 2 {
                    panel_rows::<T, F, C, CONJ, 4, 2, 2>(t, panel, x, at, [first, rows], &mut emit);
                }
            }
        }
    }
}

/// Multiplies `M` rows, starting with row `OFF`, of a panel of `R` rows by a vector tile. The panel
/// starts at row `first`, and rows from `end` on are not emitted.
#[inline(always)]
fn panel_rows<
    T: Vectors<F>,
    F: Real,
    const C: bool,
    const CONJ: bool,
    const R: usize,
    const OFF: usize,
    const M: usize,
>(
    t: T,
    panel: &[F],
    x: &[F],
    at: usize,
    [first, end]: [usize; 2],
    emit: &mut impl FnMut(usize, Num<T::V>),
) {
    let mut acc = [zero::<T, F>(t); M];
    for (w, x) in panel.chunks_exact(planes(C) * R).zip(x.chunks_exact(planes(C) * F::LANES)) {
        broadcast_mul_add::<T, F, C, CONJ, M>(
            t,
            #[inline(always)]
            |m| (w[OFF + m], if C { w[R + OFF + m] } else { F::ZERO }),
            load::<T, F, C>(t, x, 0, at),
            &mut acc,
        );
    }
    for (m, z) in acc.into_iter().enumerate() {
        if first + OFF + m < end {
            emit(first + OFF + m, z);
        }
    }
}

/// Inner products of the rows of two matrix tiles: calls `emit(i, j, at, Σₙ x[i,n] conj(y[j,n]))`
/// for i < `rows` and j < `cols`, or only for j ≤ i if `HALF`. Each row has `len` numbers.
#[inline(always)]
pub(crate) fn inner_products<T: Vectors<F>, F: Real, const C: bool, const HALF: bool>(
    t: T,
    [rows, cols, len]: [usize; 3],
    x: &[F],
    y: &[F],
    mut emit: impl FnMut(usize, usize, usize, Num<T::V>),
) {
    let size = len * planes(C) * F::LANES;
    for j in (0..cols).step_by(2) {
        let next = (j + 1).min(cols - 1);
        let ys = [&y[j * size..][..size], &y[next * size..][..size]];
        for i in (if HALF { j } else { 0 }..rows).step_by(2) {
            let next = (i + 1).min(rows - 1);
            let xs = [&x[i * size..][..size], &x[next * size..][..size]];
            for at in (0..F::LANES).step_by(t.width()) {
                let block = inner_block::<T, F, C>(t, xs, ys, at);
                for (n, z) in block.into_iter().enumerate() {
                    let (i, j) = (i + n / 2, j + n % 2);
                    if i < rows && j < cols && (!HALF || j <= i) {
                        emit(i, j, at, z);
                    }
                }
            }
        }
    }
}

/// The four inner products of two rows with two rows.
#[inline(always)]
fn inner_block<T: Vectors<F>, F: Real, const C: bool>(
    t: T,
    [x0, x1]: [&[F]; 2],
    [y0, y1]: [&[F]; 2],
    at: usize,
) -> [Num<T::V>; 4] {
    let step = planes(C) * F::LANES;
    let mut acc = [zero::<T, F>(t); 4];
    let xs = x0.chunks_exact(step).zip(x1.chunks_exact(step));
    let ys = y0.chunks_exact(step).zip(y1.chunks_exact(step));
    for ((x0, x1), (y0, y1)) in xs.zip(ys) {
        let x = [load::<T, F, C>(t, x0, 0, at), load::<T, F, C>(t, x1, 0, at)];
        let y = [load::<T, F, C>(t, y0, 0, at), load::<T, F, C>(t, y1, 0, at)];
        for (n, acc) in acc.iter_mut().enumerate() {
            *acc = mul_conj_add::<T, F, C>(t, x[n / 2], y[n % 2], *acc);
        }
    }
    acc
}
