//! The tolerances that decide something, in one place.

/// The largest entry of W Wᴴ − I (or of ∫ f fᴴ − I) at which a layer counts as orthonormal.
///
/// Factorizations leave about 10⁻¹⁵ K; a circuit written by hand with ten digits still passes.
pub(crate) const ORTHONORMALITY: f64 = 1e-10;
