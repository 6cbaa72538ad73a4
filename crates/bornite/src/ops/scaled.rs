//! Numbers times a power of two, which can neither underflow nor overflow.

use crate::linalg::Scalar;

/// A vector or matrix times 2^exponent.
#[derive(Clone, Debug)]
pub(crate) struct Scaled<V> {
    pub(crate) value: V,
    pub(crate) exponent: i64,
}

impl Scaled<f64> {
    /// Divides this number by another. Only the ratio must be in the range of `f64`.
    pub(crate) fn over(&self, other: &Self) -> f64 {
        ldexp(self.value / other.value, self.exponent - other.exponent)
    }

    /// The logarithm of the number; −∞ if it is not positive.
    pub(crate) fn log(&self) -> f64 {
        self.value.max(0.0).ln() + self.exponent as f64 * std::f64::consts::LN_2
    }
}

/// Sums of products of two numbers between 2⁻⁴⁸⁰ and 2⁴⁸⁰ stay in range. The limit is not smaller,
/// so that numbers of very different sizes keep the range that `f64` has for them.
const SAFE: i64 = 480;

/// Scales the largest part to [1, 2) by a power of two, which is exact, and returns the exponent
/// that was removed. Zeros are unchanged.
///
/// Entries below 2⁻¹⁰²² times the largest are lost, because all entries share one exponent.
pub(crate) fn rescale<T: Scalar>(values: &mut [T]) -> i64 {
    let max = max_part(values);
    if max == 0.0 {
        return 0;
    }
    let exponent = ilogb(max);
    for x in values {
        *x = ldexp(*x, -exponent);
    }
    exponent
}

/// Rescales if the largest part is not safe to multiply: 2^±480 and beyond.
pub(crate) fn rescale_if_extreme<T: Scalar>(values: &mut [T]) -> i64 {
    if is_safe(values) { 0 } else { rescale(values) }
}

/// Whether the largest part is zero or safe to multiply without rescaling.
pub(crate) fn is_safe<T: Scalar>(values: &[T]) -> bool {
    let max = max_part(values);
    max == 0.0 || (exp2(-SAFE)..=exp2(SAFE)).contains(&max)
}

/// The product of any number of factors.
pub(crate) fn product<T: Scalar>(factors: impl IntoIterator<Item = T>) -> Scaled<T> {
    let mut product = Scaled { value: T::ONE, exponent: 0 };
    for mut x in factors {
        product.exponent += rescale_if_extreme(std::slice::from_mut(&mut x));
        product.value *= x;
        product.exponent += rescale_if_extreme(std::slice::from_mut(&mut product.value));
    }
    product
}

/// Converts numbers that have one exponent each to numbers that share one exponent.
pub(crate) fn align<T: Scalar>(values: Vec<Scaled<T>>) -> Scaled<Vec<T>> {
    let size = |x: &Scaled<T>| match x.value.max_part() {
        0.0 => None,
        part => Some(x.exponent + ilogb(part)),
    };
    let exponent = values.iter().filter_map(size).max().unwrap_or(0);
    let value = values.into_iter().map(|x| ldexp(x.value, x.exponent - exponent)).collect();
    Scaled { value, exponent }
}

/// floor(log₂ x) of a positive finite number.
fn ilogb(x: f64) -> i64 {
    let exponent = (x.to_bits() >> 52).cast_signed();
    if exponent == 0 { ilogb(x * exp2(64)) - 64 } else { exponent - 1023 }
}

/// x · 2^e.
pub(crate) fn ldexp<T: Scalar>(x: T, e: i64) -> T {
    // In steps, because 2^e may be out of range even if the product is not.
    let e = e.clamp(-4000, 4000);
    let step = |k: i64| exp2((e + k).div_euclid(4));
    (0..4).fold(x, |x, k| x.scale_by(step(k)))
}

/// 2^e for e in the normal range.
fn exp2(e: i64) -> f64 {
    f64::from_bits((e + 1023).cast_unsigned() << 52)
}

fn max_part<T: Scalar>(values: &[T]) -> f64 {
    // Track several maxima at once: a single one would make each comparison wait for the previous
    // one.
    let mut max = [0.0_f64; 8];
    let mut chunks = T::parts(values).chunks_exact(max.len());
    for chunk in &mut chunks {
        for (max, x) in max.iter_mut().zip(chunk) {
            *max = if x.abs() > *max { x.abs() } else { *max };
        }
    }
    let rest = chunks.remainder().iter().map(|x| x.abs());
    rest.chain(max).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rescaling_is_exact_over_the_whole_range() {
        for (x, exponent) in [
            (1.5, 0),
            (3.0, 1),
            (f64::MAX, 1023),
            (f64::MIN_POSITIVE, -1022),
            (f64::from_bits(1), -1074),
            (f64::from_bits(3), -1073),
        ] {
            let mut v = [x, -x / 4.0, 0.0];
            let kept = v;
            assert_eq!(rescale(&mut v), exponent, "{x:e}");
            assert!((1.0..2.0).contains(&v[0]), "{x:e}: {v:?}");
            assert_eq!(ldexp(v[0], exponent), kept[0]);
        }
        assert_eq!(rescale(&mut [0.0, 0.0]), 0);
        assert_eq!(rescale::<f64>(&mut []), 0);
    }

    #[test]
    fn products_and_sums_of_exponents_stay_in_range() {
        let tiny = product([f64::from_bits(1); 1000]);
        assert_eq!((tiny.value, tiny.exponent), (1.0, -1_074_000));
        let large = product([f64::MAX; 3]);
        assert_eq!(ldexp(large.value, large.exponent - 3072), (1.0 - f64::EPSILON / 2.0).powi(3));
        assert_eq!(product([0.0, f64::MAX, f64::MAX]).value, 0.0);
        let aligned = align(vec![
            Scaled { value: 1.0, exponent: -5000 },
            Scaled { value: 3.0, exponent: -4999 },
            Scaled { value: 1.0, exponent: -90_000 },
            Scaled { value: 0.0, exponent: 7 },
        ]);
        assert_eq!((aligned.value, aligned.exponent), (vec![0.25, 1.5, 0.0, 0.0], -4998));
    }
}
