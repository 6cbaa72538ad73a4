use std::ops::{Index, IndexMut};

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::{Scalar, largest};

/// A dense matrix in row-major order.
///
/// ```
/// use bornite::linalg::Matrix;
///
/// let m = Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0]]);
/// assert_eq!(m.times(&Matrix::identity(2)), m);
/// assert_eq!(m[(1, 0)], 3.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<T> {
    rows: usize,
    cols: usize,
    data: Vec<T>,
}

impl<T: Copy> Matrix<T> {
    /// A matrix with these entries, row by row.
    ///
    /// # Panics
    /// If `data` does not contain `rows * cols` entries.
    pub fn new(rows: usize, cols: usize, data: Vec<T>) -> Self {
        assert_eq!(Some(data.len()), rows.checked_mul(cols), "a {rows}x{cols} matrix");
        Self { rows, cols, data }
    }

    /// A matrix with entry `f(i, j)` in row i and column j.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> T) -> Self {
        let data = (0..rows * cols).map(|n| f(n / cols.max(1), n % cols.max(1))).collect();
        Self { rows, cols, data }
    }

    /// A matrix with these rows.
    pub fn from_rows<const N: usize>(rows: &[[T; N]]) -> Self {
        Self { rows: rows.len(), cols: N, data: rows.concat() }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The entries, row by row.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// The entries, row by row, mutable.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Row `i`, mutable.
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// The same entries, as a matrix of another shape.
    ///
    /// # Panics
    /// If the number of entries differs.
    #[must_use]
    pub fn reshaped(self, rows: usize, cols: usize) -> Self {
        Self::new(rows, cols, self.data)
    }

    /// Applies `f` to every entry.
    pub fn map<U>(&self, f: impl FnMut(T) -> U) -> Matrix<U> {
        Matrix {
            rows: self.rows,
            cols: self.cols,
            data: self.data.iter().copied().map(f).collect(),
        }
    }

    /// The transpose, without conjugation.
    #[must_use]
    pub fn transpose(&self) -> Self {
        Self::from_fn(self.cols, self.rows, |i, j| self.data[j * self.cols + i])
    }
}

impl<T: Scalar> Matrix<T> {
    /// A matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, data: vec![T::ZERO; rows * cols] }
    }

    /// The identity matrix.
    pub fn identity(n: usize) -> Self {
        Self::from_fn(n, n, |i, j| if i == j { T::ONE } else { T::ZERO })
    }

    /// The conjugate transpose Aᴴ.
    #[must_use]
    pub fn adjoint(&self) -> Self {
        Self::from_fn(self.cols, self.rows, |i, j| self.data[j * self.cols + i].conjugate())
    }

    /// The product A B.
    ///
    /// # Panics
    /// If the inner dimensions differ.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        assert_eq!(self.cols, other.rows, "inner dimensions of a product");
        let mut out = Self::zeros(self.rows, other.cols);
        if !out.data.is_empty() {
            matmul(out.as_mut(), Accum::Replace, self.as_ref(), other.as_ref(), T::ONE, Par::Seq);
        }
        out
    }

    /// The product A Bᴴ.
    ///
    /// # Panics
    /// If the numbers of columns differ.
    #[must_use]
    pub fn times_adjoint(&self, other: &Self) -> Self {
        assert_eq!(self.cols, other.cols, "inner dimensions of a product");
        let mut out = Self::zeros(self.rows, other.rows);
        if !out.data.is_empty() {
            let rhs = other.as_ref().adjoint();
            matmul(out.as_mut(), Accum::Replace, self.as_ref(), rhs, T::ONE, Par::Seq);
        }
        out
    }

    /// Aᵀ Bₙ for every matrix Bₙ with `cols` columns. Both the matrices Bₙ and the products are
    /// stored one after another.
    ///
    /// # Panics
    /// If `b` is not a whole number of matrices with as many rows as A.
    pub(crate) fn transposed_times_each(&self, b: &[T], cols: usize) -> Vec<T> {
        let (rows, size) = (self.cols, self.rows * cols);
        assert!(size > 0 && b.len().is_multiple_of(size), "whole matrices of {cols} columns");
        let mut out = vec![T::ZERO; b.len() / size * rows * cols];
        let left = self.as_ref().transpose();
        for (out, b) in out.chunks_exact_mut((rows * cols).max(1)).zip(b.chunks_exact(size)) {
            let out = MatMut::from_row_major_slice_mut(out, rows, cols);
            let b = MatRef::from_row_major_slice(b, self.rows, cols);
            matmul(out, Accum::Replace, left, b, T::ONE, Par::Seq);
        }
        out
    }

    /// Subtracts the product A B.
    ///
    /// # Panics
    /// If the shapes do not match.
    pub fn subtract_product(&mut self, a: &Self, b: &Self) {
        assert_eq!((self.rows, a.cols, self.cols), (a.rows, b.rows, b.cols), "shapes of a product");
        if !self.data.is_empty() && a.cols > 0 {
            matmul(self.as_mut(), Accum::Add, a.as_ref(), b.as_ref(), -T::ONE, Par::Seq);
        }
    }

    /// Adds Σ Aₙᵀ Bₙ, where `a` and `b` contain the same number of matrices with `rows` rows, one
    /// after another.
    ///
    /// # Panics
    /// If the numbers of entries do not match.
    pub(crate) fn add_transposed_products(&mut self, a: &[T], b: &[T], rows: usize) {
        let (m, n) = (self.rows, self.cols);
        for (a, b) in a.chunks_exact(rows * m).zip(b.chunks_exact(rows * n)) {
            let a = MatRef::from_row_major_slice(a, rows, m).transpose();
            let b = MatRef::from_row_major_slice(b, rows, n);
            matmul(self.as_mut(), Accum::Add, a, b, T::ONE, Par::Seq);
        }
    }

    /// Adds Σ Aₙ Bₙᴴ, where `a` and `b` contain the same number of matrices with `cols` columns,
    /// one after another.
    ///
    /// # Panics
    /// If the numbers of entries do not match.
    pub(crate) fn add_adjoint_products(&mut self, a: &[T], b: &[T], cols: usize) {
        let (m, n) = (self.rows, self.cols);
        for (a, b) in a.chunks_exact(m * cols).zip(b.chunks_exact(n * cols)) {
            let a = MatRef::from_row_major_slice(a, m, cols);
            let b = MatRef::from_row_major_slice(b, n, cols).adjoint();
            matmul(self.as_mut(), Accum::Add, a, b, T::ONE, Par::Seq);
        }
    }

    /// The product A v.
    ///
    /// # Panics
    /// If `v` does not have one entry per column.
    pub fn times_vector(&self, v: &[T]) -> Vec<T> {
        assert_eq!(self.cols, v.len(), "inner dimensions of a product");
        let dot = |row: &[T]| row.iter().zip(v).fold(T::ZERO, |sum, (&w, &x)| sum + w * x);
        (0..self.rows).map(|i| dot(self.row(i))).collect()
    }

    /// The matrix times a real number.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        self.map(|x| x.scale_by(factor))
    }

    /// The squared Frobenius norm Σ |aᵢⱼ|².
    pub fn norm2(&self) -> f64 {
        self.data.iter().map(|x| x.abs2()).sum()
    }

    /// The largest |re| or |im| of any entry; NaN if any is NaN.
    pub fn max_part(&self) -> f64 {
        largest(self.data.iter().map(|x| x.max_part()))
    }

    /// The largest absolute entry of A Aᴴ − I: how far the rows are from orthonormal.
    pub fn semi_unitary_residual(&self) -> f64 {
        let mut gram = self.times_adjoint(self);
        for i in 0..self.rows {
            gram[(i, i)] -= T::ONE;
        }
        largest(gram.data.iter().map(|x| x.abs2().sqrt()))
    }

    /// The Hermitian part (A + Aᴴ) / 2 of a square matrix.
    #[must_use]
    pub fn hermitian_part(&self) -> Self {
        Self::from_fn(self.rows, self.cols, |i, j| {
            (self[(i, j)] + self[(j, i)].conjugate()).scale_by(0.5)
        })
    }

    pub(super) fn as_ref(&self) -> MatRef<'_, T> {
        MatRef::from_row_major_slice(&self.data, self.rows, self.cols)
    }

    pub(super) fn as_mut(&mut self) -> MatMut<'_, T> {
        MatMut::from_row_major_slice_mut(&mut self.data, self.rows, self.cols)
    }

    pub(super) fn from_faer(m: MatRef<'_, T>) -> Self {
        Self::from_fn(m.nrows(), m.ncols(), |i, j| m[(i, j)])
    }
}

/// A Bᴴ of two matrices with `rows` rows, given by their entries.
///
/// # Panics
/// If the numbers of entries differ or do not divide into rows.
pub(crate) fn product_with_adjoint<T: Scalar>(a: &[T], b: &[T], rows: usize) -> Matrix<T> {
    let cols = a.len() / rows.max(1);
    let mut out = Matrix::zeros(rows, rows);
    let [a, b] = [a, b].map(|m| MatRef::from_row_major_slice(m, rows, cols));
    if !out.data.is_empty() && cols > 0 {
        matmul(out.as_mut(), Accum::Replace, a, b.adjoint(), T::ONE, Par::Seq);
    }
    out
}

/// The entries of A B, row by row, where A has `rows` rows and is given by its entries.
///
/// # Panics
/// If the inner dimensions differ.
pub(crate) fn product_of_rows<T: Scalar>(a: &[T], rows: usize, b: &Matrix<T>) -> Vec<T> {
    let mut out = Matrix::zeros(rows, b.cols);
    let a = MatRef::from_row_major_slice(a, rows, b.rows);
    if !out.data.is_empty() && b.rows > 0 {
        matmul(out.as_mut(), Accum::Replace, a, b.as_ref(), T::ONE, Par::Seq);
    }
    out.data
}

impl<T> Index<(usize, usize)> for Matrix<T> {
    type Output = T;

    fn index(&self, (i, j): (usize, usize)) -> &T {
        &self.data[i * self.cols + j]
    }
}

impl<T> IndexMut<(usize, usize)> for Matrix<T> {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut T {
        &mut self.data[i * self.cols + j]
    }
}
