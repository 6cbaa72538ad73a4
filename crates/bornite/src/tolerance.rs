//! The tolerances of decisions, in one place.

/// The largest entry of W Wᴴ − I (or of ∫ f fᴴ − I) at which a layer counts as orthonormal.
///
/// Factorizations leave a residual of about 10⁻¹⁵ K. A circuit written by hand with ten digits
/// still passes.
pub(crate) const ORTHONORMALITY: f64 = 1e-10;
