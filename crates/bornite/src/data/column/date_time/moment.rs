//! Moments, and their numbers of seconds.

use crate::data::calendar::{date_of, day_number};

pub(super) const DAY: i64 = 86_400;

/// A moment: year, month, day, hour, minute, second. Parts that are not in the format are those of January 1, 1970.
pub(super) type Moment = [i64; 6];

pub(super) const START: Moment = [1970, 1, 1, 0, 0, 0];

/// Seconds since the start of 1970.
pub(super) fn seconds(moment: &Moment) -> i64 {
    let [year, month, day, hour, minute, second] = *moment;
    day_number(year, month, day) * DAY + hour * 3600 + minute * 60 + second
}

/// The moment this many seconds after the start of 1970.
pub(super) fn moment_of(seconds: i64) -> Moment {
    let [year, month, day] = date_of(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    [year, month, day, second / 3600, second / 60 % 60, second % 60]
}
