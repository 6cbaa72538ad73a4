//! Dates and times as text.

const DAY: i64 = 86_400;

/// The date so many days after the first of January 1970: `2024-02-29`.
pub(super) fn date(days: i64) -> String {
    // Years from March on, so that the leap day is the last of its year; 400 of them have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let day = day - (153 * march + 2) / 5 + 1;
    let (month, next) = if march < 10 { (march + 3, 0) } else { (march - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", 400 * era + year + next)
}

/// A time of day, in parts of a second of which there are so many: `09:30:00.250`.
pub(super) fn time(parts: i64, per_second: i64) -> String {
    let (second, rest) = (parts.div_euclid(per_second), parts.rem_euclid(per_second));
    let text = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
    match rest {
        0 => text,
        rest => format!("{text}.{rest:0width$}", width = per_second.ilog10() as usize),
    }
}

/// A date and a time: `2024-02-29 09:30:00`.
pub(super) fn timestamp(parts: i64, per_second: i64) -> String {
    let (second, rest) = (parts.div_euclid(per_second), parts.rem_euclid(per_second));
    let (day, second) = (second.div_euclid(DAY), second.rem_euclid(DAY));
    format!("{} {}", date(day), time(second * per_second + rest, per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_each_other() {
        let is_leap = |y: i64| y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
        let (mut year, mut month, mut day) = (1600, 1, 1);
        for n in -135_140..50_000 {
            assert_eq!(date(n), format!("{year:04}-{month:02}-{day:02}"), "{n}");
            let last = match month {
                2 => 28 + i64::from(is_leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (month, day) = if day < last { (month, day + 1) } else { (month + 1, 1) };
            (year, month) = if month > 12 { (year + 1, 1) } else { (year, month) };
        }
        assert_eq!(date(0), "1970-01-01");
    }

    #[test]
    fn times_before_and_after_the_epoch() {
        assert_eq!(timestamp(0, 1000), "1970-01-01 00:00:00");
        assert_eq!(timestamp(-1, 1_000_000), "1969-12-31 23:59:59.999999");
        assert_eq!(timestamp(1_709_199_000_250, 1000), "2024-02-29 09:30:00.250");
        for extreme in [i64::MIN, i64::MAX] {
            assert!(timestamp(extreme, 1000).contains('-'));
        }
    }
}
