//! Numbers with a wide exponent range: e^y far below the smallest `f64`, times polynomials that
//! bring it back into range.

use std::f64::consts::LN_2;

/// ln 2 in two parts. Whole multiples of the first part up to 2²¹ are exact.
const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// For |y| above this, no polynomial of degree 4096 brings e^y back into range.
pub(super) const MAX_EXPONENT: f64 = 1e6;

/// Values above this are divided by it.
const LARGE: f64 = 3.273_390_607_896_142e150;
const LARGE_BITS: i32 = 500;

/// e^(y + tail) = `mantissa` · 2^`exponent`, for −10⁶ ≤ y ≤ 0 and a tiny tail, with a relative
/// error of a few ε.
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

/// Two numbers of a recurrence that share a power of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScaledPair {
    pub(super) first: f64,
    pub(super) second: f64,
    pub(super) exponent: i32,
}

impl ScaledPair {
    /// Scales the pair down if one of the two is large. This is exact.
    pub(super) fn rescale(&mut self) {
        if self.first.abs().max(self.second.abs()) > LARGE {
            self.first /= LARGE;
            self.second /= LARGE;
            self.exponent += LARGE_BITS;
        }
    }

    /// Both numbers; zero if they are below the range of `f64`.
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
        // Far below the range of `f64`, compared with 40-digit arithmetic.
        for (y, exponent, mantissa) in [
            (-4096.0, -5909, 0.824_226_365_585_923_1),
            (-MAX_EXPONENT, -1_442_695, 0.972_055_799_086_464_3),
        ] {
            let e = ScaledExp::new(y, 0.0);
            assert_eq!(e.exponent, exponent);
            assert!((e.mantissa - mantissa).abs() < 1e-15, "{y}: {}", e.mantissa);
        }
        let mut pair = ScaledPair { first: 2f64.powi(600), second: -3.0, exponent: -1500 };
        pair.rescale();
        assert_eq!(pair.exponent, -1000);
        assert_eq!(pair.get(), (2f64.powi(-900), 0.0));
    }
}
