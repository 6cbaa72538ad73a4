//! Numbers with a wide exponent: e^y far below the smallest `f64`, times polynomials that bring it back.

use std::f64::consts::LN_2;

/// ln 2 in two parts; whole multiples of the first up to 2³² are exact.
const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Above this |y| no polynomial of degree 4096 brings e^y back into range.
pub(super) const MAX_EXPONENT: f64 = 1e9;

/// Polynomial values above this are brought down by it.
const LARGE: f64 = 3.273_390_607_896_142e150;
const LARGE_BITS: i32 = 500;

/// e^(y + tail) = `mantissa` · 2^`exponent`, for −10⁹ ≤ y ≤ 0 and a tiny tail, to a few ε relative.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScaledExp {
    pub(super) mantissa: f64,
    pub(super) exponent: i32,
}

impl ScaledExp {
    pub(super) fn new(y: f64, tail: f64) -> Self {
        let turns = (y / LN_2).round();
        let rest = (y - turns * LN_2_HIGH) - turns * LN_2_LOW + tail;
        Self { mantissa: rest.exp(), exponent: turns as i32 }
    }
}

/// Two numbers of a recurrence with a common power of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScaledPair {
    pub(super) first: f64,
    pub(super) second: f64,
    pub(super) exponent: i32,
}

impl ScaledPair {
    /// Brings the pair down where one of the two has become large. Exact.
    pub(super) fn rescale(&mut self) {
        if self.first.abs().max(self.second.abs()) > LARGE {
            self.first /= LARGE;
            self.second /= LARGE;
            self.exponent += LARGE_BITS;
        }
    }

    /// Both numbers, zero where they are below the range of `f64`.
    pub(super) fn get(&self) -> (f64, f64) {
        (libm::ldexp(self.first, self.exponent), libm::ldexp(self.second, self.exponent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_keep_their_digits() {
        assert_eq!(LARGE, 2f64.powi(LARGE_BITS));
        for y in [0.0, -0.3, -1.0, -37.5, -700.0] {
            let e = ScaledExp::new(y, 0.0);
            let back = libm::ldexp(e.mantissa, e.exponent);
            assert!((back - f64::exp(y)).abs() <= 4.0 * f64::EPSILON * f64::exp(y), "{y}");
        }
        // e^(−4096) · e^3700 is e^(−396), an ordinary number.
        let (a, b) = (ScaledExp::new(-4096.0, 0.0), ScaledExp::new(-396.0, 0.0));
        let grown =
            a.mantissa * f64::exp(700.0).powi(1) * libm::ldexp(1.0, a.exponent - b.exponent + 4328);
        let expected = b.mantissa * f64::exp(700.0 - 3700.0 + 4328.0 * LN_2);
        assert!((grown / expected - 1.0).abs() < 1e-12);
    }
}
