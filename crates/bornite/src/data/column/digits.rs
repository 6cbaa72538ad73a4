//! Whole numbers with a wide range, as digits.

use serde::{Deserialize, Serialize};

use super::outside::Tails;
use super::{Coding, ColumnKind, Decoded, Encoder, Ends, MAX_VALUES, Outside, Parts, Problem};
use crate::basis::Part;
use crate::data::Storage;
use crate::domain::Domain;
use crate::query::Evidence;

/// The largest radix that is inferred.
const MAX_RADIX: f64 = 64.0;

/// The radices of all 64-bit integers, whose product is 2⁶⁴.
const ALL: [usize; 11] = [16, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64];

/// A whole number ≥ `min`, as digits in a mixed radix, the most significant first. One finite variable per digit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digits {
    /// The smallest number.
    pub min: i64,
    /// The number of values of each digit.
    pub radices: Vec<usize>,
}

impl Digits {
    /// The smallest number of digits with nearly equal radices up to 64 that cover the range. If their product does not
    /// fit 64 bits, the digits of all 64-bit integers.
    pub(super) fn of(min: i64, max: i64) -> Self {
        let (min, max) = (i128::from(min), i128::from(max));
        let mut rest = max - min + 1;
        let count = ((rest as f64).ln() / MAX_RADIX.ln()).ceil().max(1.0) as usize;
        let mut radices = Vec::with_capacity(count);
        for left in (1..=count).rev() {
            let radix = (rest as f64).powf(1.0 / left as f64).ceil().max(1.0) as i128;
            radices.push(radix as usize);
            rest = (rest + radix - 1) / radix;
        }
        // The product may exceed the range and overflow 64 bits. Then start from a lower minimum.
        let product: i128 = radices.iter().map(|&r| r as i128).product();
        let min = min.min(i128::from(i64::MAX) - product + 1);
        match i64::try_from(min) {
            Ok(min) => Self { min, radices },
            Err(_) => Self { min: i64::MIN, radices: ALL.to_vec() },
        }
    }

    /// The number of representable numbers.
    fn count(&self) -> i128 {
        self.radices.iter().map(|&r| r as i128).product()
    }

    /// The largest number.
    fn max(&self) -> i128 {
        i128::from(self.min) + self.count() - 1
    }

    /// The number with these digits.
    fn whole(&self, digits: &[f64]) -> i128 {
        let digits = digits.iter().zip(&self.radices);
        i128::from(self.min) + digits.fold(0, |n, (&x, &r)| n * r as i128 + x as i128)
    }

    /// Writes the digits of a number, given as an offset from the smallest.
    fn digits(&self, mut offset: i128, out: &mut [f64]) {
        for (digit, &radix) in out.iter_mut().zip(&self.radices).rev() {
            *digit = (offset % radix as i128) as f64;
            offset /= radix as i128;
        }
    }
}

impl From<Digits> for ColumnKind {
    fn from(kind: Digits) -> Self {
        ColumnKind::Digits(kind)
    }
}

impl Coding for Digits {
    fn name(&self) -> &'static str {
        "an integer in digits"
    }

    fn summary(&self) -> String {
        format!("{} to {}, in {} digits", self.min, self.max(), self.radices.len())
    }

    fn problem(&self, storage: Storage) -> Option<&'static str> {
        let fits = |&r: &usize| r > 0 && r as u64 <= MAX_VALUES;
        if self.radices.is_empty() || !self.radices.iter().all(fits) {
            return Some("it has no radices, or one outside 1 to 2^20");
        }
        let count = self.radices.iter().try_fold(1_i128, |n, &r| n.checked_mul(r as i128));
        let last = count.and_then(|n| n.checked_add(i128::from(self.min) - 1));
        if last.is_none_or(|last| last > i128::from(i64::MAX)) {
            return Some("its largest number does not fit in 64 bits");
        }
        storage.problem_of_numbers()
    }

    fn domains(&self) -> Vec<Domain> {
        self.radices.iter().map(|&r| Domain::Finite(r)).collect()
    }

    fn suffix(&self, place: usize) -> String {
        format!("[{place}]")
    }

    fn encoder(&self, _storage: Storage) -> Encoder<'_> {
        let count = self.count();
        Box::new(move |cell, out| {
            const EXPECTED: &str = "a whole number";
            let (x, is_whole) = cell.nearest_integer().ok_or(Problem::Type(EXPECTED))?;
            let offset = x.saturating_sub(i128::from(self.min));
            if !(0..count).contains(&offset) {
                let (low, high) = self.range();
                return Err(Problem::OutOfRange { low, high });
            }
            self.digits(offset, out);
            let between = Problem::Between { slope: 0.0, expected: EXPECTED };
            if is_whole { Ok(0.0) } else { Err(between) }
        })
    }

    fn decode(&self, values: &[f64]) -> Decoded<'_> {
        // The schema has checked that the largest number fits.
        Decoded::Integer(self.whole(values) as i64)
    }

    fn outside(&self, _storage: Storage) -> Option<Outside> {
        let (min, max) = self.range();
        Some(Outside::Numbers(Tails::of_range(min, max)))
    }

    fn set(&self, values: &[Vec<f64>]) -> Result<Vec<Parts>, &'static str> {
        let mut values = values.to_vec();
        values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        values.dedup();
        let part = |digits: Vec<f64>| {
            digits.into_iter().map(Evidence::Value).enumerate().collect::<Parts>()
        };
        Ok(values.into_iter().map(part).collect())
    }

    fn interval(&self, ends: &Ends) -> Result<Vec<Parts>, &'static str> {
        let mut parts = Vec::new();
        if let Some((from, to)) = ends.whole(i128::from(self.min), self.max()) {
            between(&self.radices, from, to, (0, &mut Vec::new()), &mut parts);
        }
        Ok(parts)
    }

    fn term(&self, _storage: Storage, place: usize, x: f64) -> Option<f64> {
        let unit: f64 = self.radices[place + 1..].iter().map(|&r| r as f64).product();
        Some(unit * x)
    }

    fn base(&self) -> f64 {
        self.min as f64
    }

    /// The float nearest to the whole number. A sum of terms would be rounded at every digit.
    fn number(&self, _storage: Storage, values: &[f64]) -> Option<f64> {
        Some(self.whole(values) as f64)
    }

    fn number_above(&self, _storage: Storage, values: &[f64]) -> Option<f64> {
        let whole = self.whole(values);
        let near = whole as f64;
        Some(if (near as i128) < whole { near.next_up() } else { near })
    }

    fn nearest(&self, x: f64) -> Vec<f64> {
        let offset = ((x.round() as i128) - i128::from(self.min)).clamp(0, self.count() - 1);
        let mut digits = vec![0.0; self.radices.len()];
        self.digits(offset, &mut digits);
        digits
    }

    fn range(&self) -> (f64, f64) {
        (self.min as f64, self.max() as f64)
    }
}

/// The numbers `from` to `to` in a mixed radix, as at most two cases per digit.
pub(super) fn between(
    radices: &[usize],
    from: i128,
    to: i128,
    (place, fixed): (usize, &mut Parts),
    cases: &mut Vec<Parts>,
) {
    let Some((&radix, rest)) = radices.split_first() else {
        cases.push(fixed.clone());
        return;
    };
    let size: i128 = rest.iter().map(|&r| r as i128).product();
    let (mut first, mut last) = (from / size, to / size);
    let (head, tail) = (from % size, to % size);
    let mut within = |digit: i128, from: i128, to: i128, cases: &mut Vec<Parts>| {
        fixed.push((place, Evidence::Value(digit as f64)));
        between(rest, from, to, (place + 1, fixed), cases);
        fixed.pop();
    };
    if first == last && (head != 0 || tail != size - 1) {
        within(first, head, tail, cases);
        return;
    }
    if head != 0 {
        within(first, head, size - 1, cases);
        first += 1;
    }
    if tail != size - 1 {
        within(last, 0, tail, cases);
        last -= 1;
    }
    if first <= last {
        let mut all = fixed.clone();
        if first == last {
            all.push((place, Evidence::Value(first as f64)));
        } else if first > 0 || last < radix as i128 - 1 {
            let set = (first as usize..=last as usize).collect();
            all.push((place, Evidence::In(Part::Values(set))));
        }
        cases.push(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Cell;

    /// Regression: a sum of floats, rounded at every digit, was 128 below the largest of these numbers.
    #[test]
    fn numbers_are_rounded_once_and_up_where_asked() {
        for max in [1_000_000_000_000_000_128, 844_764_166_777_121_519, i64::MAX - 1, 1 << 53] {
            let digits = Digits::of(0, max);
            for x in [max, max - 1, max - 63, max / 3, (1 << 53) + 1, 12_345] {
                let mut values = vec![0.0; digits.radices.len()];
                let Ok(_) = digits.encoder(Storage::Integers)(Cell::Integer(x), &mut values) else {
                    continue;
                };
                assert_eq!(digits.number(Storage::Integers, &values), Some(x as f64));
                let above = digits.number_above(Storage::Integers, &values).unwrap();
                assert!(above as i128 >= i128::from(x), "{above} is below {x}");
                assert!((above.next_down() as i128) < i128::from(x), "{above} is far above {x}");
            }
        }
    }
}
