//! A caller's budget, for computations without steps.

use std::fmt;
use std::sync::Arc;

/// A budget, such as a time limit. Long computations check it and end early if it runs out.
///
/// The default is unlimited.
#[derive(Clone, Default)]
pub struct Quota(Option<Arc<dyn Fn() -> f64 + Send + Sync>>);

impl Quota {
    /// A budget. `used` returns the fraction that has been used, which is at least 1 if nothing is
    /// left. Infinity means to stop at once, even if there is no model yet.
    pub fn new(used: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(used)))
    }

    /// The fraction that has been used.
    pub(crate) fn used(&self) -> f64 {
        self.0.as_ref().map_or(0.0, |used| used())
    }

    /// Whether the caller wants to stop at once.
    pub(crate) fn is_stopped(&self) -> bool {
        self.used() == f64::INFINITY
    }

    /// The fraction that will have been used after this part of the remaining budget.
    pub(crate) fn after(&self, part: f64) -> f64 {
        let used = self.used();
        used + part * (1.0 - used).max(0.0)
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Quota").field(&self.used()).finish()
    }
}
