//! The tolerances of all tests, in one place, and the largest errors seen.

use std::io::Write as _;

use bornite::Circuit;
use bornite::circuit::Layer;

/// The number of roundings on the way to one output: over all layers, the products and sums behind one entry.
pub(crate) fn layer_steps(circuit: &Circuit) -> f64 {
    let steps = |layer: &Layer| match layer {
        Layer::Input { basis, .. } => {
            let is_finite = basis.natural_domain().num_values().is_some();
            // Functions of a real number are recurrences, and their integrals quadratures, on both sides.
            if is_finite { basis.width() } else { 16 + 4 * basis.width() }
        }
        Layer::Hadamard { inputs } | Layer::Kronecker { inputs } => inputs.len(),
        Layer::Sum { input, .. } => circuit.width(*input),
    };
    BASE_STEPS + circuit.layers().iter().map(|l| steps(l) as f64).sum::<f64>()
}

/// The steps of the smallest circuit.
const BASE_STEPS: f64 = 8.0;

/// Compares numbers with a tolerance of ε · steps · scale, and keeps the largest error relative to it.
#[derive(Debug)]
pub(crate) struct Tally {
    family: &'static str,
    largest: f64,
    count: usize,
}

impl Tally {
    pub(crate) fn new(family: &'static str) -> Self {
        Self { family, largest: 0.0, count: 0 }
    }

    /// The error of `actual` relative to ε · steps · scale.
    pub(crate) fn ratio(actual: f64, expected: f64, steps: f64, scale: f64) -> f64 {
        if actual == expected {
            return 0.0;
        }
        (actual - expected).abs() / (f64::EPSILON * steps * scale)
    }

    /// Counts one comparison of a log with the number itself; the rounding of the log is allowed for.
    pub(crate) fn check_log(
        &mut self,
        (log, expected): (f64, f64),
        (steps, scale): (f64, f64),
        context: impl FnOnce() -> String,
    ) {
        let scale = if expected > 0.0 { scale + log.abs() * expected / steps } else { scale };
        self.check((log.exp(), expected), (steps, scale), context);
    }

    /// Counts one comparison.
    ///
    /// # Panics
    /// With the world, what was compared, and both numbers, where the error is larger than the tolerance.
    pub(crate) fn check(
        &mut self,
        (actual, expected): (f64, f64),
        (steps, scale): (f64, f64),
        context: impl FnOnce() -> String,
    ) {
        let ratio = Self::ratio(actual, expected, steps, scale);
        assert!(
            ratio <= 1.0,
            "{}: expected {expected:e}, actual {actual:e}, {ratio:.3} times the tolerance\n{}",
            self.family,
            context()
        );
        self.largest = self.largest.max(ratio);
        self.count += 1;
    }
}

impl Drop for Tally {
    /// Reports even where the harness keeps the output of passed tests to itself.
    fn drop(&mut self) {
        if self.count == 0 {
            return;
        }
        let _ = writeln!(
            std::io::stderr(),
            "largest error, {}: {:.4} of the tolerance, {} comparisons",
            self.family,
            self.largest,
            self.count
        );
    }
}
