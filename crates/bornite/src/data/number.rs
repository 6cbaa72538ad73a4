//! Numbers as text: detects the number format of a column.

use serde::{Deserialize, Serialize};

/// How the real numbers of a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumberFormat {
    /// The smallest number of digits that determine the number: `1`, `0.1`.
    #[default]
    Shortest,
    /// As in Python: `1.0`, `0.1`, `1e-07`.
    Python,
    /// A fixed number of digits after the decimal point: `1.00`.
    Decimals(u8),
}

/// The maximum number of decimals to detect.
const MAX_DECIMALS: usize = 30;
/// The maximum length of a text whose digits a float preserves.
const MAX_PLAIN: usize = 15;

impl NumberFormat {
    /// Formats a number.
    ///
    /// ```
    /// use bornite::data::NumberFormat;
    ///
    /// assert_eq!(NumberFormat::Shortest.write(2.0), "2");
    /// assert_eq!(NumberFormat::Python.write(2e-7), "2e-07");
    /// assert_eq!(NumberFormat::Decimals(2).write(2.0), "2.00");
    /// ```
    pub fn write(self, x: f64) -> String {
        match self {
            NumberFormat::Shortest => x.to_string(),
            NumberFormat::Python => python(x),
            NumberFormat::Decimals(n) => format!("{x:.*}", usize::from(n)),
        }
    }

    /// Whether it formats a number as this text, which was parsed as the number.
    pub(super) fn gives_back(self, x: f64, text: &str) -> bool {
        // The text of 0 may have a sign that the number has lost.
        let Some(plain) = Plain::of(text).filter(|_| x != 0.0) else {
            return self.write(x) == text;
        };
        match self {
            NumberFormat::Shortest => plain.is_shortest(),
            NumberFormat::Decimals(n) => plain.decimals == Some(usize::from(n)).filter(|n| *n > 0),
            // Small numbers may have an exponent.
            NumberFormat::Python if x.abs() < 1e-3 => self.write(x) == text,
            NumberFormat::Python => match plain.decimals {
                Some(decimals) => decimals == 1 || plain.is_shortest(),
                None => false,
            },
        }
    }

    /// The format that reproduces most of these texts.
    pub(super) fn of<'a>(cells: &(impl Iterator<Item = (f64, &'a str)> + Clone)) -> Self {
        let decimals = cells
            .clone()
            .filter(|(_, text)| !text.contains(['e', 'E']))
            .filter_map(|(_, text)| text.split_once('.').map(|(_, d)| d.len()))
            .max()
            .filter(|&n| n <= MAX_DECIMALS)
            .unwrap_or(0);
        let candidates =
            [NumberFormat::Shortest, NumberFormat::Decimals(decimals as u8), NumberFormat::Python];
        let failures =
            |f: &NumberFormat| cells.clone().filter(|&(x, text)| !f.gives_back(x, text)).count();
        candidates.into_iter().min_by_key(failures).unwrap_or_default()
    }
}

/// A text with so few digits, and neither an exponent nor a redundant leading zero, that formatting its float
/// reproduces it.
struct Plain {
    /// The number of digits after the point; `None` without a point.
    decimals: Option<usize>,
    ends_with_zero: bool,
}

impl Plain {
    fn of(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (whole, decimals) = match digits.split_once('.') {
            Some((whole, decimals)) => (whole, Some(decimals)),
            None => (digits, None),
        };
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let has_needless_zero = whole.len() > 1 && whole.starts_with('0');
        let is_plain = digits.len() <= MAX_PLAIN
            && !has_needless_zero
            && are_digits(whole)
            && decimals.is_none_or(are_digits);
        is_plain.then(|| Self {
            decimals: decimals.map(str::len),
            ends_with_zero: decimals.is_some_and(|d| d.ends_with('0')),
        })
    }

    fn is_shortest(&self) -> bool {
        !self.ends_with_zero
    }
}

/// `repr(float)`: with an exponent below 10⁻⁴ and from 10¹⁶ on, and always with a point or an exponent.
fn python(x: f64) -> String {
    let scientific = format!("{x:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = x.to_string();
        if plain.contains('.') { plain } else { plain + ".0" }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", exponent.abs())
    }
}

/// What kind of number a text is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reading {
    Integer(i64),
    /// A whole number beyond 64 bits, rounded.
    Huge(f64),
    Real(f64),
    Infinite,
    /// Digits with leading zeros: a code rather than a number.
    Padded,
    Text,
}

/// Parses a trimmed, non-empty text.
pub(super) fn read(text: &str) -> Reading {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let whole = unsigned.bytes().all(|b| b.is_ascii_digit()) && !unsigned.is_empty();
    if whole && unsigned.len() > 1 && unsigned.starts_with('0') {
        return Reading::Padded;
    }
    if whole && let Ok(x) = text.parse() {
        return Reading::Integer(x);
    }
    match text.parse::<f64>() {
        Ok(x) if x.is_finite() && whole => Reading::Huge(x),
        Ok(x) if x.is_finite() => Reading::Real(x),
        Ok(x) if x.is_infinite() => Reading::Infinite,
        _ => Reading::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_is_written_as_python_writes_it() {
        for (x, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (-1.25e300, "-1.25e+300"),
        ] {
            assert_eq!(NumberFormat::Python.write(x), text);
        }
    }

    #[test]
    fn the_format_of_a_column_is_found() {
        let of = |texts: &[&str]| NumberFormat::of(&texts.iter().map(|t| (t.parse().unwrap(), *t)));
        assert_eq!(of(&["1.50", "2.25", "3.00"]), NumberFormat::Decimals(2));
        assert_eq!(of(&["1.5", "2.25", "3"]), NumberFormat::Shortest);
        assert_eq!(of(&["1.5", "2.25", "3.0", "1e-09"]), NumberFormat::Python);
    }

    #[test]
    fn what_is_written_is_known_without_writing() {
        let mut texts: Vec<String> = Vec::new();
        for x in [0.0, 1.0, 7.25, 0.1, 123.456, 1e-3, 9.5e-5, 1e-7, 99999.99, 1e14, 1e15, 1e17, 0.3]
        {
            for x in [x, -x, x * 1.01, x / 3.0, x + 0.5] {
                texts.extend((0..=12).map(|n| format!("{x:.n$}")));
                texts.extend([x.to_string(), python(x), format!("{x:e}"), format!("+{x}")]);
            }
        }
        let odd = [
            "-0",
            "-0.0",
            "00.5",
            "0.50",
            ".5",
            "5.",
            "1_0",
            " 1",
            "999999999999999.9",
            "0.10000000000000001",
        ];
        texts.extend(odd.map(str::to_owned));
        let mut same = 0;
        for text in &texts {
            let Ok(x) = text.parse::<f64>() else { continue };
            for format in (0..=12)
                .map(NumberFormat::Decimals)
                .chain([NumberFormat::Shortest, NumberFormat::Python])
            {
                let is_same = format.write(x) == *text;
                assert_eq!(format.gives_back(x, text), is_same, "{format:?} of {text}");
                same += usize::from(is_same);
            }
        }
        assert!(same > texts.len(), "{same}");
    }

    #[test]
    fn texts_are_read_as_what_they_are() {
        assert_eq!(read("-17"), Reading::Integer(-17));
        assert_eq!(read("1e3"), Reading::Real(1000.0));
        assert_eq!(read("99999999999999999999"), Reading::Huge(1e20));
        assert_eq!(read("007"), Reading::Padded);
        assert_eq!(read("0"), Reading::Integer(0));
        assert_eq!(read("0.5"), Reading::Real(0.5));
        assert_eq!(read("-inf"), Reading::Infinite);
        assert_eq!(read("1e999"), Reading::Infinite);
        assert_eq!(read("1,5"), Reading::Text);
        assert_eq!(read("-"), Reading::Text);
        assert_eq!(read("0x10"), Reading::Text);
    }
}
