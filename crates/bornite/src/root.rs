//! Roots of increasing functions.

/// Finds the root of an increasing function within a bracket, by Newton's method with bisection.
///
/// `f` returns the value and the slope at a point. Stops when the value is within `tolerance`, when
/// the bracket cannot be divided any further, or after `max_steps` steps.
pub(crate) fn increasing_root(
    (mut low, mut high): (f64, f64),
    tolerance: f64,
    max_steps: usize,
    f: impl Fn(f64) -> (f64, f64),
) -> f64 {
    let mut x = 0.5 * (low + high);
    let mut last = f64::INFINITY;
    for _ in 0..max_steps {
        let (value, slope) = f(x);
        if value.abs() <= tolerance {
            break;
        }
        if value > 0.0 {
            high = x;
        } else {
            low = x;
        }
        let (newton, middle) = (x - value / slope, 0.5 * (low + high));
        if middle <= low || middle >= high {
            break;
        }
        // A Newton step as long as it stays inside and the error falls quickly; otherwise,
        // bisection.
        let falls = 2.0 * value.abs() < last;
        last = value.abs();
        x = if falls && newton > low && newton < high { newton } else { middle };
    }
    x
}
