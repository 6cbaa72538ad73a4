//! Dates and times as text.

use crate::data::calendar::{date_of, day_number};

const DAY: i64 = 86_400;

/// The date this many days after January 1, 1970, such as `2024-02-29`.
pub(super) fn date(days: i64) -> String {
    let [year, month, day] = date_of(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A time of day, given in fractions of a second, such as `09:30:00.250`.
pub(super) fn time(parts: i64, per_second: i64) -> String {
    let (second, rest) = (parts.div_euclid(per_second), parts.rem_euclid(per_second));
    let text = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    match rest {
        0 => text,
        rest => format!("{text}.{rest:0width$}", width = per_second.ilog10() as usize),
    }
}

/// A date and time, such as `2024-02-29 09:30:00`.
pub(super) fn timestamp(parts: i64, per_second: i64) -> String {
    let (second, rest) = (parts.div_euclid(per_second), parts.rem_euclid(per_second));
    let (day, second) = (second.div_euclid(DAY), second.rem_euclid(DAY));
    format!("{} {}", date(day), time(second * per_second + rest, per_second))
}

/// The number of days from January 1, 1970 to a date.
pub(super) fn parse_date(text: &str) -> Option<i64> {
    let mut parts = text.rsplitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (day, month, year) = (parts.next()??, parts.next()??, parts.next()??);
    if !(-300_000..=300_000).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    let days = (1..=31).contains(&day).then(|| day_number(year, month, day))?;
    // A day that its month does not have would be another date.
    (date(days) == text).then_some(days)
}

/// A time of day, in fractions of a second.
pub(super) fn parse_time(text: &str, per_second: i64) -> Option<i64> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let mut seconds = 0;
    for part in whole.split(':') {
        seconds = seconds * 60 + i64::from(part.parse::<u16>().ok()?);
    }
    let width = per_second.ilog10() as usize;
    let rest = format!("{rest:0<width$}").parse::<u32>().ok()?;
    let parts = seconds.checked_mul(per_second)? + i64::from(rest);
    Some(parts).filter(|&parts| time(parts, per_second) == text)
}

/// A date and time, in fractions of a second since the start of 1970.
pub(super) fn parse_timestamp(text: &str, per_second: i64) -> Option<i64> {
    let (day, time) = text.split_once(' ')?;
    let seconds = parse_date(day)?.checked_mul(DAY)?;
    seconds.checked_mul(per_second)?.checked_add(parse_time(time, per_second)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_come_back() {
        for (days, text) in [(0, "1970-01-01"), (19_782, "2024-02-29"), (-719_529, "-001-12-31")] {
            assert_eq!(date(days), text);
            assert_eq!(parse_date(text), Some(days));
        }
        assert_eq!(parse_date("2023-02-29"), None);
    }

    #[test]
    fn times_before_and_after_the_epoch() {
        assert_eq!(timestamp(0, 1000), "1970-01-01 00:00:00");
        assert_eq!(timestamp(-1, 1_000_000), "1969-12-31 23:59:59.999999");
        assert_eq!(timestamp(1_709_199_000_250, 1000), "2024-02-29 09:30:00.250");
        for parts in [0, -1, 1_709_199_000_250, -99_999_999, 86_400_000_000] {
            for per_second in [1_000, 1_000_000, 1_000_000_000] {
                let text = timestamp(parts, per_second);
                assert_eq!(parse_timestamp(&text, per_second), Some(parts), "{text}");
            }
        }
        for bad in ["2023-02-29", "2023-13-01", "x", "2023-1-01", ""] {
            assert_eq!(parse_date(bad), None, "{bad}");
        }
        for bad in ["12:30", "25:61:00x", "12:30:00.1", "", "1:2:3"] {
            assert_eq!(parse_time(bad, 1000), None, "{bad}");
        }
        for extreme in [i64::MIN, i64::MAX] {
            assert!(timestamp(extreme, 1000).contains('-'));
        }
    }
}
