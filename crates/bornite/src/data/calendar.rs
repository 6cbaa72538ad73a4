//! Day numbers in the Gregorian calendar.

/// The number of days from January 1, 1970 to a date.
pub(super) fn day_number(year: i64, month: i64, day: i64) -> i64 {
    // Start the year in March, so that the leap day is its last day; 400 years have 146,097 days.
    let (year, march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day = (153 * march + 2) / 5 + day - 1;
    era * 146_097 + 365 * year + year / 4 - year / 100 + day - 719_468
}

/// The year, month and day this many days after January 1, 1970.
pub(super) fn date_of(days: i64) -> [i64; 3] {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let day = day - (153 * march + 2) / 5 + 1;
    let (month, next) = if march < 10 { (march + 3, 0) } else { (march - 9, 1) };
    [400 * era + year + next, month, day]
}

/// The number of days in a month.
pub(super) fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_each_other() {
        let (mut year, mut month, mut day) = (1600, 1, 1);
        for n in -135_140..50_000 {
            assert_eq!(date_of(n), [year, month, day], "{n}");
            assert_eq!(day_number(year, month, day), n);
            (month, day) =
                if day < days_of(year, month) { (month, day + 1) } else { (month + 1, 1) };
            (year, month) = if month > 12 { (year + 1, 1) } else { (year, month) };
        }
        assert_eq!(date_of(0), [1970, 1, 1]);
    }
}
