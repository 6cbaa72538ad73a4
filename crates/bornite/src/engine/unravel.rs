//! Environments of samples: matrices are replaced by vectors drawn from them.
//!
//! An environment E = Σⱼ vⱼ vⱼᴴ is a mixture. The variables below it have the density Σⱼ |vⱼᵀ ℓ|²,
//! so drawing a term j with probability proportional to ∫ |vⱼᵀ ℓ|², and then the variables from vⱼ,
//! is the same as drawing them from E. Later variables are conditioned on the values drawn, not on
//! j. So a sample never carries a matrix down the tree: a sum over a Kronecker product with widths
//! K takes 4 K³ multiply-adds, compared with 2 K⁴ + 4 K³ for prefix conditionals.
//!
//! The terms are the columns of a pivoted Cholesky factor of E, computed one at a time until one is
//! drawn. The pivot is always the largest remaining diagonal entry, so the first few columns
//! usually account for nearly all of E.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::combine::set_lane;
use super::lanes::{Real, get};
use super::message::Message;
use super::workspace::Workspace;
use crate::algebra::Kind;
use crate::linalg::Complex64;

/// A pivot that is smaller than this, relative to its original entry, is a rounding error.
const ROUNDING: f64 = 1e-14;

/// Replaces matrices by vectors drawn from them, given the evidence about the variables below.
/// `None` means no evidence.
pub(super) fn unravel<F: Real, const C: bool>(
    environment: Message<F>,
    evidence: Option<&Message<F>>,
    rngs: &mut [ChaCha8Rng],
    ws: &mut Workspace<F>,
) -> Message<F> {
    if environment.places().counts[1] == 0 {
        return environment;
    }
    let width = environment.width;
    let kind = |row: usize| environment.kind(row);
    let places = ws
        .planner
        .leaf(|row| if kind(row) == Kind::Identity { Kind::Identity } else { Kind::Pure });
    let mut out = ws.take(C, width, &places);
    let mut terms = Terms::default();
    for tile in places.tiles() {
        let to = out.tile_mut(C, &tile);
        to.fill(F::ZERO);
        for (lane, &row) in tile.rows.iter().enumerate() {
            let row = row as usize;
            let (from, from_lane) = environment.place(C, row);
            let number = |n: usize| get(C, from, n, from_lane);
            if kind(row) == Kind::Pure {
                set_lane(C, to, lane, (0..width).map(number));
                continue;
            }
            let below =
                evidence.map_or(Below::Unknown, |evidence| Below::new::<F, C>(evidence, row));
            let u = rngs[row].random();
            let drawn = terms.draw(width, |i, j| number(i * width + j), &below, u);
            set_lane(C, to, lane, drawn.iter().copied());
        }
    }
    ws.give(environment);
    out
}

/// The evidence of one row about the variables below: M = ∫ ℓ ℓᴴ over everything that is possible.
enum Below {
    /// M = I.
    Unknown,
    /// M = b bᴴ.
    Vector(Vec<Complex64>),
    /// M, row by row.
    Matrix(Vec<Complex64>),
}

impl Below {
    fn new<F: Real, const C: bool>(evidence: &Message<F>, row: usize) -> Self {
        let (tile, lane) = evidence.place(C, row);
        let kind = evidence.kind(row);
        let numbers = (0..kind.numbers(evidence.width)).map(|n| get(C, tile, n, lane)).collect();
        match kind {
            Kind::Identity => Self::Unknown,
            Kind::Pure => Self::Vector(numbers),
            Kind::Mixed => Self::Matrix(numbers),
        }
    }

    /// ∫ |vᵀ ℓ|².
    fn share(&self, v: &[Complex64]) -> f64 {
        match self {
            Self::Unknown => v.iter().map(Complex64::norm_sqr).sum(),
            Self::Vector(b) => dot(v, b).norm_sqr(),
            Self::Matrix(m) => {
                let conjugate: Vec<Complex64> = v.iter().map(Complex64::conj).collect();
                let rows = m.chunks_exact(v.len());
                rows.zip(v).map(|(row, v)| (v * dot(row, &conjugate)).re).sum()
            }
        }
    }

    /// The sum of the shares of all terms: Σ E[k,l] M[k,l].
    fn total(&self, width: usize, entry: impl Fn(usize, usize) -> Complex64) -> f64 {
        let sum = |m: &dyn Fn(usize, usize) -> Complex64| {
            let row = |k: usize| (0..width).map(|l| (entry(k, l) * m(k, l)).re).sum::<f64>();
            (0..width).map(row).sum()
        };
        match self {
            Self::Unknown => (0..width).map(|k| entry(k, k).re).sum(),
            Self::Vector(b) => sum(&|k, l| b[k] * b[l].conj()),
            Self::Matrix(m) => sum(&|k, l| m[k * width + l]),
        }
    }
}

fn dot(a: &[Complex64], b: &[Complex64]) -> Complex64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The columns of a pivoted Cholesky factor, in reused memory.
#[derive(Debug, Default)]
struct Terms {
    /// One column after another.
    columns: Vec<Complex64>,
    /// The diagonal minus the contribution of the columns; −∞ at a pivot.
    diagonal: Vec<f64>,
}

impl Terms {
    /// Draws one of the terms vⱼ of E = Σ vⱼ vⱼᴴ, with probability proportional to its share.
    fn draw(
        &mut self,
        width: usize,
        entry: impl Fn(usize, usize) -> Complex64,
        below: &Below,
        u: f64,
    ) -> &[Complex64] {
        self.columns.clear();
        self.diagonal.clear();
        self.diagonal.extend((0..width).map(|k| entry(k, k).re));
        let mut rest = u * below.total(width, &entry);
        let mut drawn = 0;
        for n in 0..width {
            if !self.add_column(width, &entry) {
                break;
            }
            let share = below.share(&self.columns[n * width..]);
            if share > 0.0 {
                drawn = n;
                if rest < share {
                    break;
                }
                rest -= share;
            }
        }
        &self.columns[drawn * width..][..width]
    }

    /// Adds the column of the largest pivot. Returns false if only rounding errors are left.
    fn add_column(&mut self, width: usize, entry: &impl Fn(usize, usize) -> Complex64) -> bool {
        let start = self.columns.len();
        let d = &self.diagonal;
        let pivot = (0..width).fold(0, |best, k| if d[k] > d[best] { k } else { best });
        let left = d[pivot];
        if start > 0 && left <= ROUNDING * entry(pivot, pivot).re {
            return false;
        }
        self.columns.extend((0..width).map(|k| entry(k, pivot)));
        let (before, column) = self.columns.split_at_mut(start);
        for earlier in before.chunks_exact(width) {
            let factor = earlier[pivot].conj();
            column.iter_mut().zip(earlier).for_each(|(z, e)| *z -= e * factor);
        }
        let scale = left.max(f64::MIN_POSITIVE).sqrt().recip();
        for (z, d) in column.iter_mut().zip(&mut self.diagonal) {
            *z *= scale;
            *d -= z.norm_sqr();
        }
        self.diagonal[pivot] = f64::NEG_INFINITY;
        true
    }
}
