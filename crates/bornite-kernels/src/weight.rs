//! Weights in the order in which the kernels read them.

use crate::lanes::{Real, planes};

/// The number of rows of a full panel.
pub(crate) const PANEL: usize = 4;

/// A dense matrix, row by row. If it is complex, each real part is followed by its imaginary part.
#[derive(Clone, Copy, Debug)]
pub struct Dense<'a> {
    rows: usize,
    cols: usize,
    is_complex: bool,
    parts: &'a [f64],
}

impl<'a> Dense<'a> {
    /// A view of these numbers.
    ///
    /// # Panics
    /// If there are not `rows` × `cols` numbers.
    pub fn new([rows, cols]: [usize; 2], is_complex: bool, parts: &'a [f64]) -> Self {
        assert_eq!(parts.len(), rows * cols * planes(is_complex), "parts of {rows} x {cols}");
        Self { rows, cols, is_complex, parts }
    }
}

/// A batch of `rows` × `cols` matrices, divided into panels of [`PANEL`] rows. A panel of r rows is
/// `[cols][planes][r]`.
#[derive(Clone, Debug, Default)]
pub struct Panels<F> {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    stride: usize,
    data: Vec<F>,
}

impl<F: Real> Panels<F> {
    /// Packs the entries of `w` that `entry` selects, given the matrix b, the row m and the column
    /// n.
    fn new(
        w: Dense<'_>,
        [batch, rows, cols]: [usize; 3],
        entry: impl Fn(usize, usize, usize) -> usize,
    ) -> Self {
        let planes = planes(w.is_complex);
        let stride = rows * cols * planes;
        let mut data = Vec::with_capacity(batch * stride);
        for b in 0..batch {
            for first in (0..rows).step_by(PANEL) {
                let panel = first..(first + PANEL).min(rows);
                for n in 0..cols {
                    for plane in 0..planes {
                        let part = |m: usize| w.parts[entry(b, m, n) * planes + plane];
                        data.extend(panel.clone().map(|m| F::from_f64(part(m))));
                    }
                }
            }
        }
        Self { rows, cols, stride, data }
    }

    /// Whether the weight was packed in this order.
    pub(crate) fn is_packed(&self) -> bool {
        !self.data.is_empty()
    }

    /// The panels of matrix `b`, one after another.
    #[inline(always)]
    pub(crate) fn matrix(&self, b: usize) -> &[F] {
        &self.data[b * self.stride..(b + 1) * self.stride]
    }
}

/// What a packed weight is used for besides evaluation. Each use needs more copies of the weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Mixed messages, and pure messages on the right with an identity on the left: two more
    /// copies.
    pub query: bool,
    /// The reverse pass: one more copy.
    pub reverse: bool,
}

impl Uses {
    /// Only pure messages, and pure messages on the left with an identity on the right.
    pub const PURE: Self = Self { query: false, reverse: false };
    /// Pure messages and the reverse pass.
    pub const LEARN: Self = Self { query: false, reverse: true };
    /// Every kind of message.
    pub const QUERY: Self = Self { query: true, reverse: false };
    /// Everything.
    pub const ALL: Self = Self { query: true, reverse: true };
}

/// The weight W of a sum layer, packed for the kernels.
///
/// Over a Kronecker product, W is K×K₁×K₂; over anything else, it is K×K₁, and K₂ = 1.
#[derive(Clone, Debug)]
pub struct PackedWeight<F> {
    shape: [usize; 3],
    complex: bool,
    /// For each k: rows j, columns i.
    pub(crate) left: Panels<F>,
    /// For each k: rows i, columns j.
    pub(crate) right: Panels<F>,
    /// Rows k, columns (i, j).
    pub(crate) flat: Panels<F>,
    /// Rows (i, j), columns k.
    pub(crate) reverse: Panels<F>,
}

impl<F: Real> PackedWeight<F> {
    /// Packs the weight of a sum over a Kronecker product with widths `k1` and `k2`: entry (i, j)
    /// of row k is in column i·k2 + j.
    ///
    /// # Panics
    /// If the matrix does not have `k1 * k2` columns.
    pub fn kronecker(w: Dense<'_>, [k1, k2]: [usize; 2], uses: Uses) -> Self {
        assert_eq!(w.cols, k1 * k2, "columns of a weight over {k1} x {k2}");
        let (k, cols) = (w.rows, w.cols);
        let at = |k: usize, i: usize, j: usize| k * cols + i * k2 + j;
        let when =
            |on: bool, pack: &dyn Fn() -> Panels<F>| if on { pack() } else { Panels::default() };
        Self {
            shape: [k, k1, k2],
            complex: w.is_complex,
            left: Panels::new(w, [k, k2, k1], |k, j, i| at(k, i, j)),
            right: when(uses.query, &|| Panels::new(w, [k, k1, k2], at)),
            flat: when(uses.query, &|| Panels::new(w, [1, k, cols], |_, k, n| k * cols + n)),
            reverse: when(uses.reverse, &|| Panels::new(w, [1, cols, k], |_, n, k| k * cols + n)),
        }
    }

    /// Packs the weight of a sum over one input or over a Hadamard product. Queries need no more
    /// copies than evaluation.
    pub fn plain(w: Dense<'_>, uses: Uses) -> Self {
        let (k, cols) = (w.rows, w.cols);
        let forward = Panels::new(w, [1, k, cols], |_, k, i| k * cols + i);
        let reverse = if uses.reverse {
            Panels::new(w, [1, cols, k], |_, i, k| k * cols + i)
        } else {
            Panels::default()
        };
        Self {
            shape: [k, cols, 1],
            complex: w.is_complex,
            left: Panels::default(),
            right: Panels::default(),
            flat: forward,
            reverse,
        }
    }

    /// `[K, K₁, K₂]`; K₂ is 1 if the input is not a Kronecker product.
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Whether the weight has imaginary parts.
    pub fn is_complex(&self) -> bool {
        self.complex
    }
}
