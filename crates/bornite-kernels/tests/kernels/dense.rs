//! Simple matrices of complex numbers: the reference that the kernels are compared with.

use std::ops::{Index, IndexMut};

use bornite_kernels::{Complex64, Dense};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Matrix {
    rows: usize,
    cols: usize,
    data: Vec<Complex64>,
}

impl Matrix {
    pub(crate) fn new(rows: usize, cols: usize, data: Vec<Complex64>) -> Self {
        assert_eq!(data.len(), rows * cols);
        Self { rows, cols, data }
    }

    pub(crate) fn from_fn(
        rows: usize,
        cols: usize,
        mut entry: impl FnMut(usize, usize) -> Complex64,
    ) -> Self {
        let data = (0..rows * cols).map(|n| entry(n / cols, n % cols)).collect();
        Self::new(rows, cols, data)
    }

    /// From real parts, each followed by its imaginary part if there are any.
    pub(crate) fn from_parts([rows, cols]: [usize; 2], is_complex: bool, parts: &[f64]) -> Self {
        let number = |p: &[f64]| Complex64::new(p[0], p.get(1).copied().unwrap_or(0.0));
        let planes = if is_complex { 2 } else { 1 };
        Self::new(rows, cols, parts.chunks_exact(planes).map(number).collect())
    }

    /// The numbers in the form that is packed.
    pub(crate) fn with_parts<R>(&self, is_complex: bool, f: impl FnOnce(Dense<'_>) -> R) -> R {
        let parts: Vec<f64> = self
            .data
            .iter()
            .flat_map(|z| [Some(z.re), is_complex.then_some(z.im)])
            .flatten()
            .collect();
        f(Dense::new([self.rows, self.cols], is_complex, &parts))
    }

    pub(crate) fn zeros(rows: usize, cols: usize) -> Self {
        Self::new(rows, cols, vec![Complex64::ZERO; rows * cols])
    }

    pub(crate) fn identity(n: usize) -> Self {
        Self::from_fn(n, n, |i, j| Complex64::from(f64::from(u8::from(i == j))))
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    pub(crate) fn data(&self) -> &[Complex64] {
        &self.data
    }

    pub(crate) fn data_mut(&mut self) -> &mut [Complex64] {
        &mut self.data
    }

    pub(crate) fn conj(&self) -> Self {
        Self::from_fn(self.rows, self.cols, |i, j| self[(i, j)].conj())
    }

    pub(crate) fn transpose(&self) -> Self {
        Self::from_fn(self.cols, self.rows, |i, j| self[(j, i)])
    }

    pub(crate) fn adjoint(&self) -> Self {
        self.conj().transpose()
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        let dot = |i, j| (0..self.cols).map(|n| self[(i, n)] * other[(n, j)]).sum();
        Self::from_fn(self.rows, other.cols, dot)
    }

    pub(crate) fn times_adjoint(&self, other: &Self) -> Self {
        self.times(&other.adjoint())
    }

    pub(crate) fn times_vector(&self, v: &[Complex64]) -> Vec<Complex64> {
        (0..self.rows).map(|i| (0..self.cols).map(|j| self[(i, j)] * v[j]).sum()).collect()
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = Complex64;

    fn index(&self, (i, j): (usize, usize)) -> &Complex64 {
        &self.data[i * self.cols + j]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut Complex64 {
        &mut self.data[i * self.cols + j]
    }
}
