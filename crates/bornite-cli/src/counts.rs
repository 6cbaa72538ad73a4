//! Counts of layers and operations, in the form of the JSON output.

use bornite::ops;
use serde::Serialize;

/// The numbers of layers in φ_Y, φ_Z and φ_YZ.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Layers {
    pub(crate) kept: usize,
    pub(crate) marginalized: usize,
    pub(crate) mixed: usize,
}

/// The multiply-adds of one answer, computed in three ways.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct MultiplyAdds {
    pub(crate) ours: u128,
    pub(crate) paper_bound: u128,
    pub(crate) squaring: u128,
}

impl From<ops::LayerCounts> for Layers {
    fn from(l: ops::LayerCounts) -> Self {
        Self { kept: l.kept, marginalized: l.marginalized, mixed: l.mixed }
    }
}

impl From<ops::MultiplyAdds> for MultiplyAdds {
    fn from(m: ops::MultiplyAdds) -> Self {
        Self { ours: m.ours, paper_bound: m.paper_bound, squaring: m.squaring }
    }
}
