//! Numbers as text: detects the number format of a column.

use serde::{Deserialize, Serialize};

use super::Storage;

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
    /// The minimum number of digits, with a decimal comma: `1`, `0,1`.
    Comma,
    /// A fixed number of digits after a decimal comma: `1,00`.
    CommaDecimals(u8),
    /// Commas between thousands: `1,234.5`, or `1,234.50` with a fixed number of digits after the decimal point.
    Grouped(Option<u8>),
    /// Points between thousands and a decimal comma: `1.234,5`, or `1.234,50` with a fixed number of digits after it.
    CommaGrouped(Option<u8>),
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
    /// assert_eq!(NumberFormat::CommaDecimals(2).write(2.0), "2,00");
    /// assert_eq!(NumberFormat::Grouped(Some(2)).write(1234.5), "1,234.50");
    /// ```
    pub fn write(self, x: f64) -> String {
        match self {
            NumberFormat::Shortest => x.to_string(),
            NumberFormat::Python => python(x),
            NumberFormat::Decimals(n) => format!("{x:.*}", usize::from(n)),
            NumberFormat::Comma | NumberFormat::CommaDecimals(_) => {
                self.with_point().write(x).replace('.', ",")
            }
            NumberFormat::Grouped(_) => grouped(&self.plain().write(x), '.', ','),
            NumberFormat::CommaGrouped(_) => grouped(&self.plain().write(x), ',', '.'),
        }
    }

    /// Whether numbers have a decimal comma.
    pub fn has_comma(self) -> bool {
        matches!(
            self,
            NumberFormat::Comma | NumberFormat::CommaDecimals(_) | NumberFormat::CommaGrouped(_)
        )
    }

    /// Whether numbers have separators between thousands.
    pub fn is_grouped(self) -> bool {
        matches!(self, NumberFormat::Grouped(_) | NumberFormat::CommaGrouped(_))
    }

    /// The same format with a decimal point.
    pub(super) fn with_point(self) -> Self {
        if self.has_comma() { self.plain() } else { self }
    }

    /// The same format with a decimal point and without separators between thousands.
    fn plain(self) -> Self {
        match self {
            NumberFormat::Comma
            | NumberFormat::Grouped(None)
            | NumberFormat::CommaGrouped(None) => NumberFormat::Shortest,
            NumberFormat::CommaDecimals(n)
            | NumberFormat::Grouped(Some(n))
            | NumberFormat::CommaGrouped(Some(n)) => NumberFormat::Decimals(n),
            NumberFormat::Shortest | NumberFormat::Python | NumberFormat::Decimals(_) => self,
        }
    }

    /// Whether it formats a number as this text, which was parsed as the number.
    pub(super) fn gives_back(self, x: f64, text: &str) -> bool {
        if self.is_grouped() {
            return self.write(x) == text;
        }
        if self.has_comma() {
            return !text.contains('.') && self.with_point().gives_back(x, &text.replace(',', "."));
        }
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
            NumberFormat::Comma
            | NumberFormat::CommaDecimals(_)
            | NumberFormat::Grouped(_)
            | NumberFormat::CommaGrouped(_) => unreachable!("handled above"),
        }
    }

    /// The format that reproduces most of these texts.
    pub(super) fn of<'a>(
        cells: &(impl Iterator<Item = (f64, &'a str)> + Clone),
        decimal: Decimal,
    ) -> Self {
        let separator = match decimal {
            Decimal::Point | Decimal::Grouped => '.',
            Decimal::Comma => ',',
        };
        let decimals = cells
            .clone()
            .filter(|(_, text)| !text.contains(['e', 'E']))
            .filter_map(|(_, text)| text.split_once(separator).map(|(_, d)| d.len()))
            .max()
            .filter(|&n| n <= MAX_DECIMALS)
            .unwrap_or(0);
        let decimals = decimals as u8;
        let points =
            [NumberFormat::Shortest, NumberFormat::Decimals(decimals), NumberFormat::Python];
        let groups = [NumberFormat::Grouped(None), NumberFormat::Grouped(Some(decimals))];
        let commas = [
            NumberFormat::Comma,
            NumberFormat::CommaDecimals(decimals),
            NumberFormat::CommaGrouped(None),
            NumberFormat::CommaGrouped(Some(decimals)),
        ];
        let candidates = match decimal {
            Decimal::Point => &points[..],
            Decimal::Grouped => &groups,
            // Grouping takes longer to check.
            Decimal::Comma if cells.clone().any(|(_, text)| text.contains('.')) => &commas,
            Decimal::Comma => &commas[..2],
        };
        let failures =
            |f: &NumberFormat| cells.clone().filter(|&(x, text)| !f.gives_back(x, text)).count();
        candidates.iter().copied().min_by_key(failures).unwrap_or_default()
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

/// A number with a decimal point, written with these separators instead.
fn grouped(plain: &str, decimal: char, thousands: char) -> String {
    let (whole, decimals) = match plain.split_once('.') {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (plain, None),
    };
    let digits = whole.trim_start_matches('-');
    let mut out = String::with_capacity(plain.len() + digits.len() / 3);
    out.push_str(&whole[..whole.len() - digits.len()]);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(thousands);
        }
        out.push(digit);
    }
    if let Some(decimals) = decimals {
        out.push(decimal);
        out.push_str(decimals);
    }
    out
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

/// How the numbers of a file or a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Decimal {
    /// 1.5
    #[default]
    Point,
    /// 1.5, and 1,234.5 with thousands separators.
    Grouped,
    /// 1,5, and 1.234,5 with thousands separators.
    Comma,
}

impl Decimal {
    /// How the numbers of a file with columns of these types are written.
    pub(super) fn of_types<'a>(mut types: impl Iterator<Item = &'a Storage>) -> Self {
        let has_comma = |s: &Storage| matches!(s, Storage::Numbers(f) if f.has_comma());
        if types.any(has_comma) { Decimal::Comma } else { Decimal::Point }
    }

    /// Parses a trimmed, non-empty text.
    pub(super) fn read(self, text: &str) -> Reading {
        match self {
            Decimal::Point => read(text),
            // Most numbers have no separator.
            Decimal::Grouped if !text.contains(',') => read(text),
            Decimal::Grouped => {
                Written::of(text, '.', ',').map_or(Reading::Text, |number| number.reading)
            }
            Decimal::Comma => Written::of(text, ',', '.').map_or_else(
                || if text.contains('.') { Reading::Text } else { read(text) },
                |number| number.reading,
            ),
        }
    }
}

/// A number with decimals or with thousands separators.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    reading: Reading,
    /// Whether it has separators between thousands.
    pub(super) is_grouped: bool,
    /// Whether the separator could be that of thousands as well, as in 1,234.
    pub(super) is_ambiguous: bool,
}

impl Written {
    /// Parses a text with this decimal separator and this one of thousands; `None` if it has neither, or is not such a
    /// number.
    pub(super) fn of(text: &str, decimal: char, thousands: char) -> Option<Self> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, decimals) = match digits.split_once(decimal) {
            Some((whole, decimals)) => (whole, Some(decimals)),
            None => (digits, None),
        };
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let groups: Vec<&str> = whole.split(thousands).collect();
        let is_grouped = groups.len() > 1;
        let is_first = |text: &str| text.len() <= 3 && !text.starts_with('0');
        let is_number = groups.iter().all(|group| are_digits(group))
            && (!is_grouped
                || is_first(groups[0]) && groups[1..].iter().all(|group| group.len() == 3))
            && decimals.is_none_or(are_digits)
            && (decimals.is_some() || is_grouped);
        if !is_number {
            return None;
        }
        let sign = if text.starts_with('-') { "-" } else { "" };
        let reading = match decimals {
            Some(decimals) => {
                let plain = format!("{sign}{}.{decimals}", groups.concat());
                Reading::Real(plain.parse::<f64>().ok().filter(|x| x.is_finite())?)
            }
            None => read(&format!("{sign}{}", groups.concat())),
        };
        if reading == Reading::Infinite {
            return None;
        }
        let is_ambiguous = match decimals {
            Some(decimals) => !is_grouped && is_first(whole) && decimals.len() == 3,
            None => groups.len() == 2,
        };
        Some(Self { reading, is_grouped, is_ambiguous })
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
        let of = |texts: &[&str]| {
            NumberFormat::of(&texts.iter().map(|t| (t.parse().unwrap(), *t)), Decimal::Point)
        };
        assert_eq!(of(&["1.50", "2.25", "3.00"]), NumberFormat::Decimals(2));
        assert_eq!(of(&["1.5", "2.25", "3"]), NumberFormat::Shortest);
        assert_eq!(of(&["1.5", "2.25", "3.0", "1e-09"]), NumberFormat::Python);
    }

    #[test]
    fn decimal_commas_are_read_and_written() {
        for (text, value) in [
            ("1,5", Some(1.5)),
            ("-0,25", Some(-0.25)),
            ("1.234,5", Some(1234.5)),
            ("1.234.567", Some(1_234_567.0)),
            ("12", Some(12.0)),
            ("1e3", Some(1000.0)),
            ("1.5", None),
            ("1,2,3", None),
            ("12.34,5", None),
            ("0.123,5", None),
            (",5", None),
            ("1,", None),
            ("1.5,", None),
        ] {
            let found = match Decimal::Comma.read(text) {
                Reading::Integer(x) => Some(x as f64),
                Reading::Real(x) => Some(x),
                _ => None,
            };
            assert_eq!(found, value, "{text}");
        }
        assert_eq!(NumberFormat::Comma.write(-1234.5), "-1234,5");
        assert_eq!(NumberFormat::CommaDecimals(2).write(2.0), "2,00");
        let of = |texts: &[&str]| {
            let number = |text: &str| text.replace(',', ".").parse().unwrap();
            NumberFormat::of(&texts.iter().map(|t| (number(t), *t)), Decimal::Comma)
        };
        assert_eq!(of(&["1,50", "2,25", "3,00"]), NumberFormat::CommaDecimals(2));
        assert_eq!(of(&["1,5", "2,25", "3"]), NumberFormat::Comma);
    }

    #[test]
    fn thousands_separators_are_read_and_written() {
        for (text, value) in [
            ("1,234.50", Some(Reading::Real(1234.5))),
            ("-1,234,567", Some(Reading::Integer(-1_234_567))),
            ("9,007,199,254,740,993", Some(Reading::Integer(9_007_199_254_740_993))),
            ("12.5", Some(Reading::Real(12.5))),
            ("1234", Some(Reading::Integer(1234))),
            ("1,23", None),
            ("0,123", None),
            ("1234,567", None),
            ("1,234.", None),
            ("1,234e3", None),
            (",123", None),
            ("1,,234", None),
        ] {
            let found = Some(Decimal::Grouped.read(text)).filter(|r| *r != Reading::Text);
            assert_eq!(found, value, "{text}");
        }
        assert_eq!(Decimal::Comma.read("1.234.567"), Reading::Integer(1_234_567));
        for (format, x, text) in [
            (NumberFormat::Grouped(None), 1234.5, "1,234.5"),
            (NumberFormat::Grouped(None), -1e6, "-1,000,000"),
            (NumberFormat::Grouped(None), -123.0, "-123"),
            (NumberFormat::Grouped(None), 0.001, "0.001"),
            (NumberFormat::Grouped(Some(2)), 999.999, "1,000.00"),
            (NumberFormat::CommaGrouped(Some(1)), 12345.0, "12.345,0"),
            (NumberFormat::CommaGrouped(None), 1234.5, "1.234,5"),
        ] {
            assert_eq!(format.write(x), text);
            assert!(format.gives_back(x, text));
            let decimal = if format.has_comma() { Decimal::Comma } else { Decimal::Grouped };
            let read = match decimal.read(text) {
                Reading::Integer(x) => x as f64,
                Reading::Real(x) => x,
                other => panic!("{text}: {other:?}"),
            };
            assert_eq!(format.write(read), text);
        }
        let of = |texts: &[(f64, &str)], decimal| NumberFormat::of(&texts.iter().copied(), decimal);
        let cells = [(1234.5, "1,234.50"), (7.0, "7.00")];
        assert_eq!(of(&cells, Decimal::Grouped), NumberFormat::Grouped(Some(2)));
        let cells = [(1234.0, "1,234"), (7.0, "7")];
        assert_eq!(of(&cells, Decimal::Grouped), NumberFormat::Grouped(None));
        let cells = [(1234.5, "1.234,5"), (7.0, "7")];
        assert_eq!(of(&cells, Decimal::Comma), NumberFormat::CommaGrouped(None));
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
