//! The gradient of a packed weight.

use crate::buffer::Buffer;
use crate::lanes::{Real, planes};

/// The sum over rows of the gradient with respect to a weight of shape K×K₁×K₂.
///
/// The last index is in the SIMD lanes. Each entry is one chain of additions in the order of the
/// rows, whatever rows each call contains.
#[derive(Clone, Debug)]
pub struct WeightGradient<F: Real> {
    shape: [usize; 3],
    /// The number of entries in one row of `data`.
    pub(crate) cols: usize,
    complex: bool,
    /// `[K·K₁][planes][padded K₂]`; for a plain weight `[K][planes][padded K₁]`.
    pub(crate) data: Buffer<F>,
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

    /// The shape of the weight: `[K, K₁, K₂]`, where K₂ is 1 for a plain weight.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Whether the weight is complex.
    pub fn is_complex(&self) -> bool {
        self.complex
    }

    /// Adds the gradient to a matrix with K rows and K₁·K₂ columns, row by row. If the weight is
    /// complex, each real part is followed by its imaginary part.
    ///
    /// # Panics
    /// If the matrix has a different size.
    pub fn add_to(&self, parts: &mut [f64]) {
        let [k, k1, k2] = self.shape;
        let planes = planes(self.complex);
        assert_eq!(parts.len(), k * k1 * k2 * planes, "size of a weight gradient");
        let cols = self.cols;
        let stride = padded::<F>(cols);
        let rows = self.data.chunks_exact((planes * stride).max(1));
        for (to, row) in parts.chunks_exact_mut((planes * cols).max(1)).zip(rows) {
            for (n, to) in to.chunks_exact_mut(planes).enumerate() {
                for (plane, to) in to.iter_mut().enumerate() {
                    *to += row[plane * stride + n].to_f64();
                }
            }
        }
    }

    /// The numbers that [`add_to`](Self::add_to) adds.
    pub fn to_parts(&self) -> Vec<f64> {
        let mut parts = vec![0.0; self.shape.iter().product::<usize>() * planes(self.complex)];
        self.add_to(&mut parts);
        parts
    }
}

/// `n` rounded up to whole registers of half a tile.
pub(crate) const fn padded<F: Real>(n: usize) -> usize {
    n.next_multiple_of(F::LANES / 2)
}
