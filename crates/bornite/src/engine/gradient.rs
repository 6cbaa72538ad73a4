//! The gradient of a packed weight.

use super::buffer::Buffer;
use super::lanes::{Real, planes};
use crate::linalg::{Complex64, Matrix, Scalar};

/// The sum over rows of the gradient with respect to a weight of shape K×K₁×K₂.
///
/// The last index lies in the SIMD lanes and each entry is one chain of additions in the order of the
/// rows, however they are cut into calls.
#[derive(Clone, Debug)]
pub struct WeightGradient<F: Real> {
    shape: [usize; 3],
    /// Entries of one row of `data`.
    pub(super) cols: usize,
    complex: bool,
    /// `[K·K₁][planes][padded K₂]`; for a plain weight `[K][planes][padded K₁]`.
    pub(super) data: Buffer<F>,
}

impl<F: Real> WeightGradient<F> {
    /// A gradient of zeros for a weight K×K₁×K₂ over a Kronecker product.
    pub fn kronecker(complex: bool, [k, k1, k2]: [usize; 3]) -> Self {
        let data = Buffer::zeros(k * k1 * planes(complex) * padded::<F>(k2));
        Self { shape: [k, k1, k2], cols: k2, complex, data }
    }

    /// A gradient of zeros for a weight K×K₁ over one input, or over a Hadamard product.
    pub fn plain(complex: bool, [k, k1]: [usize; 2]) -> Self {
        let data = Buffer::zeros(k * planes(complex) * padded::<F>(k1));
        Self { shape: [k, k1, 1], cols: k1, complex, data }
    }

    /// Sets all entries to zero.
    pub fn clear(&mut self) {
        self.data.fill(F::ZERO);
    }

    /// The shape of the weight: `[K, K₁, K₂]`, where K₂ is 1 for a plain one.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Whether the weight is complex.
    pub fn is_complex(&self) -> bool {
        self.complex
    }

    /// The gradient as a matrix of K rows and K₁·K₂ columns.
    pub fn to_matrix<T: Scalar>(&self) -> Matrix<T> {
        let [k, k1, k2] = self.shape;
        let mut out = Matrix::zeros(k, k1 * k2);
        self.add_to(&mut out);
        out
    }

    /// Adds the gradient to a matrix of K rows and K₁·K₂ columns.
    ///
    /// # Panics
    /// If the matrix has another shape.
    pub fn add_to<T: Scalar>(&self, out: &mut Matrix<T>) {
        let [k, k1, k2] = self.shape;
        assert_eq!((out.rows(), out.cols()), (k, k1 * k2), "shape of a weight gradient");
        let cols = self.cols;
        let stride = padded::<F>(cols);
        let rows = self.data.chunks_exact((planes(self.complex) * stride).max(1));
        for (to, row) in out.data_mut().chunks_exact_mut(cols.max(1)).zip(rows) {
            for (n, to) in to.iter_mut().enumerate() {
                let im = if self.complex { row[stride + n].to_f64() } else { 0.0 };
                *to += T::from_complex(Complex64::new(row[n].to_f64(), im));
            }
        }
    }
}

/// `n` rounded up to whole registers of half a tile.
pub(super) const fn padded<F: Real>(n: usize) -> usize {
    n.next_multiple_of(F::LANES / 2)
}
