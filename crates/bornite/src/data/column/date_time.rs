//! Dates and times, split into year, month, day, hour, minute and second.
//!
//! The parts make it possible to learn and query hours of the day or months of the year as such. Their lexicographic
//! order is the order of time. A day that its month does not have becomes the last day of the month in samples, and
//! counts as that day in questions.

use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::digits::between;
use super::outside::Tails;
use super::{
    Cell, Coding, ColumnKind, Decoded, Encoder, Ends, MAX_VALUES, Outside, OutsideSet, Parts,
    Problem,
};
use crate::basis::Part;
use crate::data::Storage;
use crate::data::calendar::{date_of, day_number, days_of};
use crate::domain::Domain;
use crate::query::Evidence;

const DAY: i64 = 86_400;
/// The full names of the months; `%b` is their first three letters.
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Two-digit years from this one on belong to the twentieth century.
const FIRST_SHORT_YEAR: i64 = 69;
/// The names of the days of the week in questions.
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A date, a time of day, or both. One finite variable per part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DateTime {
    /// The format: `%Y` is the year, and `%m`, `%d`, `%H`, `%M` and `%S` are month, day, hour, minute and second. `%y`
    /// is a two-digit year, `%B` and `%b` are the full and three-letter name of the month, and `%I` is an hour up to 12
    /// with `%p` (AM or PM) or `%P` (am or pm).
    pub form: String,
    /// Whether months, days and hours below ten have a leading zero.
    pub padded: bool,
    /// The range of each part in the format, from the year on.
    pub parts: Vec<TimePart>,
}

/// The range of one part of a date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimePart {
    /// The unit of the part.
    pub unit: TimeUnit,
    /// The smallest value.
    pub min: i64,
    /// The number of values.
    pub count: i64,
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum TimeUnit {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
}

impl TimeUnit {
    const ALL: [Self; 6] =
        [Self::Year, Self::Month, Self::Day, Self::Hour, Self::Minute, Self::Second];

    fn name(self) -> &'static str {
        match self {
            Self::Year => "year",
            Self::Month => "month",
            Self::Day => "day",
            Self::Hour => "hour",
            Self::Minute => "minute",
            Self::Second => "second",
        }
    }

    /// The unit that a letter in a format stands for.
    fn of_letter(letter: char) -> Option<Self> {
        Some(match letter {
            'Y' | 'y' => Self::Year,
            'm' | 'b' | 'B' => Self::Month,
            'd' => Self::Day,
            'H' | 'I' => Self::Hour,
            'M' => Self::Minute,
            'S' => Self::Second,
            _ => return None,
        })
    }

    /// The units in a format, in order.
    fn written(form: &str) -> Vec<Self> {
        let letters = form.split('%').skip(1).filter_map(|part| part.chars().next());
        let mut units: Vec<Self> = letters.filter_map(Self::of_letter).collect();
        units.sort_unstable();
        units
    }

    /// The range of its values; `None` if it is unlimited.
    fn range(self) -> Option<(i64, i64)> {
        match self {
            Self::Year => None,
            Self::Month => Some((1, 12)),
            Self::Day => Some((1, 31)),
            Self::Hour => Some((0, 23)),
            Self::Minute | Self::Second => Some((0, 59)),
        }
    }
}

/// A moment: year, month, day, hour, minute, second. Parts that are not in the format are those of January 1, 1970.
type Moment = [i64; 6];

const START: Moment = [1970, 1, 1, 0, 0, 0];

/// The result of reading a text in a format.
enum Reading {
    Moment(Moment),
    /// The text has the format, but there is no such day or hour.
    Impossible,
    Other,
}

/// Reads a text in a format.
fn read(form: &str, padded: bool, text: &str) -> Reading {
    let mut moment = START;
    let mut rest = text;
    let mut letters = form.chars();
    // Whether the hour is on a 12-hour clock, and whether it is PM.
    let (mut is_twelve, mut is_late) = (true, None);
    while let Some(letter) = letters.next() {
        if letter != '%' {
            match rest.strip_prefix(letter) {
                Some(after) => rest = after,
                None => return Reading::Other,
            }
            continue;
        }
        let Some(letter) = letters.next() else { return Reading::Other };
        if let 'p' | 'P' = letter {
            let half = halves(letter).iter().position(|half| rest.starts_with(half));
            let Some(half) = half else { return Reading::Other };
            (is_late, rest) = (Some(half == 1), &rest[2..]);
            continue;
        }
        let Some(unit) = TimeUnit::of_letter(letter) else { return Reading::Other };
        if let 'b' | 'B' = letter {
            let name = |month: i64| month_name(month, letter);
            let Some(month) = (1..=12).find(|&month| rest.starts_with(name(month))) else {
                return Reading::Other;
            };
            (moment[1], rest) = (month, &rest[name(month).len()..]);
            continue;
        }
        let most = if letter == 'Y' { 4 } else { 2 };
        let digits = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let is_right = if is_short(unit, padded) {
            digits > 0 && (digits == 1 || !rest.starts_with('0'))
        } else {
            digits == most
        };
        let Some(value) = rest[..digits].parse::<i64>().ok().filter(|_| is_right) else {
            return Reading::Other;
        };
        let value = match letter {
            'y' if value < FIRST_SHORT_YEAR => 2000 + value,
            'y' => 1900 + value,
            _ => value,
        };
        if letter == 'I' {
            is_twelve = (1..=12).contains(&value);
        }
        (moment[unit as usize], rest) = (value, &rest[digits..]);
    }
    if !rest.is_empty() {
        return Reading::Other;
    }
    if let Some(is_late) = is_late {
        moment[3] = moment[3] % 12 + if is_late { 12 } else { 0 };
    }
    let fits = |unit: TimeUnit| {
        unit.range().is_none_or(|(low, high)| (low..=high).contains(&moment[unit as usize]))
    };
    let exists = TimeUnit::ALL.into_iter().all(fits) && moment[2] <= days_of(moment[0], moment[1]);
    if exists && is_twelve { Reading::Moment(moment) } else { Reading::Impossible }
}

/// Whether the unit has no leading zero. Minutes and seconds always have two digits.
fn is_short(unit: TimeUnit, padded: bool) -> bool {
    match unit {
        TimeUnit::Month | TimeUnit::Day | TimeUnit::Hour => !padded,
        TimeUnit::Year | TimeUnit::Minute | TimeUnit::Second => false,
    }
}

/// The words for the two halves of a day.
fn halves(letter: char) -> [&'static str; 2] {
    if letter == 'p' { ["AM", "PM"] } else { ["am", "pm"] }
}

/// The name of a month, counted from 1; the full name for `B`.
fn month_name(month: i64, letter: char) -> &'static str {
    let name = MONTHS[(month - 1).clamp(0, 11) as usize];
    if letter == 'B' { name } else { &name[..3] }
}

/// The date part of a format; `None` if the format has no date.
fn date_form(form: &str) -> Option<&str> {
    let time = ["%H", "%I"].iter().filter_map(|hour| form.find(hour)).min();
    let date = form[..time.unwrap_or(form.len())].trim_end_matches(['T', ' ']);
    (!date.is_empty()).then_some(date)
}

/// Seconds since the start of 1970.
fn seconds(moment: &Moment) -> i64 {
    let [year, month, day, hour, minute, second] = *moment;
    day_number(year, month, day) * DAY + hour * 3600 + minute * 60 + second
}

/// The moment this many seconds after the start of 1970.
fn moment_of(seconds: i64) -> Moment {
    let [year, month, day] = date_of(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    [year, month, day, second / 3600, second / 60 % 60, second % 60]
}

/// The result of looking for a date format in the labels of a column.
pub(super) enum Found {
    Dates(DateTime),
    /// All labels have a date format, but this one is not a possible date or time.
    Impossible(String),
    Nothing,
}

impl DateTime {
    /// Finds a format in which all labels are dates or times.
    pub(super) fn of<'a>(labels: &(impl Iterator<Item = &'a str> + Clone)) -> Found {
        let Some(first) = labels.clone().next() else { return Found::Nothing };
        if labels.clone().nth(1).is_none() || !first.bytes().any(|b| b.is_ascii_digit()) {
            return Found::Nothing;
        }
        let mut impossible = None;
        for (form, padded) in forms(first) {
            let mut ends: Option<(Moment, Moment)> = None;
            let (mut odd, mut possible, mut others) = (None, 0, 0);
            let all = labels.clone().all(|label| match read(&form, padded, label) {
                Reading::Moment(moment) => {
                    possible += 1;
                    let (low, high) = ends.get_or_insert((moment, moment));
                    for n in 0..6 {
                        low[n] = low[n].min(moment[n]);
                        high[n] = high[n].max(moment[n]);
                    }
                    true
                }
                Reading::Impossible => {
                    others += 1;
                    odd.get_or_insert(label);
                    true
                }
                Reading::Other => false,
            });
            // Seasons such as 2012-13 are not months, and many impossible days are not typos.
            let is_date = form.contains("%d") || form.contains("%M");
            match (all, ends, odd) {
                (true, Some((low, high)), None) => {
                    return Found::Dates(Self::with_form(form, padded, low, high));
                }
                (true, Some(_), Some(label)) if is_date && others <= possible => {
                    impossible.get_or_insert(label);
                }
                _ => {}
            }
        }
        impossible.map_or(Found::Nothing, |label| Found::Impossible(label.to_owned()))
    }

    fn with_form(form: String, padded: bool, low: Moment, high: Moment) -> Self {
        let written = TimeUnit::written(&form);
        let part = |unit: TimeUnit| {
            let (low, high) = (low[unit as usize], high[unit as usize]);
            // A part that is constant stays constant; any other part can have all of its values.
            let (min, max) = unit.range().filter(|_| low < high).unwrap_or((low, high));
            TimePart { unit, min, count: max - min + 1 }
        };
        let parts = written.into_iter().map(part).collect();
        Self { form, padded, parts }
    }

    fn moment(&self, values: &[f64]) -> Moment {
        let mut moment = START;
        for (part, &x) in self.parts.iter().zip(values) {
            moment[part.unit as usize] = part.min + x as i64;
        }
        moment[2] = moment[2].min(days_of(moment[0], moment[1]));
        moment
    }

    /// The moment that a text describes, and whether the column can represent it exactly. It cannot if the text is more
    /// precise, such as a time of day in a column of dates. A date without a time is the start of the day.
    fn read(&self, text: &str) -> Option<(Moment, bool)> {
        match read(&self.form, self.padded, text) {
            Reading::Moment(moment) => return Some((moment, true)),
            Reading::Impossible => return None,
            Reading::Other => {}
        }
        let (own, whole) = (date_form(&self.form), without_fraction(text));
        let is_like = |form: &(String, bool)| {
            let date = date_form(&form.0);
            date == own || own.is_some() && date == Some("%Y-%m-%d")
        };
        let mut forms = forms(&whole).into_iter().filter(is_like);
        let moment = forms.find_map(|(form, padded)| match read(&form, padded, &whole) {
            Reading::Moment(moment) => Some(moment),
            Reading::Impossible | Reading::Other => None,
        })?;
        let is_part = |unit: TimeUnit| self.parts.iter().any(|part| part.unit == unit);
        let is_whole = |unit: &TimeUnit| moment[*unit as usize] == START[*unit as usize];
        let mut others = TimeUnit::ALL.into_iter().filter(|unit| !is_part(*unit));
        Some((moment, whole == text && others.all(|unit| is_whole(&unit))))
    }

    /// The encoded values of a moment; `None` if a part is out of range.
    fn values(&self, moment: &Moment) -> Option<Vec<f64>> {
        let value = |part: &TimePart| {
            let offset = moment[part.unit as usize] - part.min;
            (0..part.count).contains(&offset).then_some(offset as f64)
        };
        self.parts.iter().map(value).collect()
    }

    fn write(&self, moment: &Moment) -> String {
        let mut text = String::new();
        let mut letters = self.form.chars();
        while let Some(letter) = letters.next() {
            let written = if letter == '%' { letters.next() } else { None };
            match written {
                None => text.push(letter),
                Some(half @ ('p' | 'P')) => {
                    text.push_str(halves(half)[usize::from(moment[3] >= 12)]);
                }
                Some(name @ ('b' | 'B')) => text.push_str(month_name(moment[1], name)),
                Some(letter) => {
                    let Some(unit) = TimeUnit::of_letter(letter) else { continue };
                    let (value, width) = match letter {
                        'Y' => (moment[0], 4),
                        'y' => (moment[0] % 100, 2),
                        'I' => ((moment[3] + 11) % 12 + 1, 2),
                        _ => (moment[unit as usize], 2),
                    };
                    let width = if is_short(unit, self.padded) { 1 } else { width };
                    let value = format!("{value:0width$}");
                    text.push_str(&value);
                }
            }
        }
        text
    }

    /// The number of seconds in the smallest unit of the format.
    fn step(&self) -> i64 {
        match self.parts.last().map(|part| part.unit) {
            Some(TimeUnit::Second) => 1,
            Some(TimeUnit::Minute) => 60,
            Some(TimeUnit::Hour) => 3600,
            Some(TimeUnit::Year | TimeUnit::Month | TimeUnit::Day) | None => DAY,
        }
    }

    fn radices(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.count as usize).collect()
    }

    /// The first and the last moment of the domain, in seconds.
    fn ends(&self) -> (i64, i64) {
        let last: Vec<f64> = self.parts.iter().map(|part| part.count as f64 - 1.0).collect();
        let first = vec![0.0; self.parts.len()];
        (seconds(&self.moment(&first)), seconds(&self.moment(&last)))
    }

    /// The parts with this rank, which may be a day that its month does not have.
    fn at_rank(&self, mut rank: i128) -> Moment {
        let mut moment = START;
        for part in self.parts.iter().rev() {
            moment[part.unit as usize] = part.min + (rank % i128::from(part.count)) as i64;
            rank /= i128::from(part.count);
        }
        moment
    }

    /// The number of ranks at the start whose parts are in order before (or, if `inclusive`, up to) those of a moment.
    fn ranks_before(&self, moment: &Moment, inclusive: bool) -> i128 {
        let (mut low, mut high) = (0, self.num_ranks());
        while low < high {
            let middle = low + (high - low) / 2;
            let parts = self.at_rank(middle);
            if parts < *moment || inclusive && parts == *moment {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn num_ranks(&self) -> i128 {
        self.parts.iter().map(|part| i128::from(part.count)).product()
    }

    /// The number of ranks of a day.
    fn ranks_per_day(&self) -> i128 {
        let finer = self.parts.iter().filter(|part| part.unit > TimeUnit::Day);
        finer.map(|part| i128::from(part.count)).product()
    }

    /// Whether the month does not have such a day, but a last one that the column can have.
    fn is_after_last(&self, parts: &Moment) -> bool {
        let last = days_of(parts[0], parts[1]);
        let day = self.parts.iter().find(|part| part.unit == TimeUnit::Day);
        parts[2] > last && day.is_some_and(|day| day.min <= last)
    }

    /// The rank of the first moment at or after `at`, in seconds, or the number of ranks if there is none.
    fn first_from(&self, at: i64) -> i128 {
        let (mut rank, end) = (self.ranks_before(&moment_of(at), false), self.num_ranks());
        while rank < end && self.is_after_last(&self.at_rank(rank)) {
            rank += self.ranks_per_day();
        }
        rank.min(end)
    }

    /// The rank of the last moment at or before `at`, in seconds, or −1 if there is none.
    fn last_to(&self, at: i64) -> i128 {
        let mut rank = self.ranks_before(&moment_of(at), true) - 1;
        while rank >= 0 && self.is_after_last(&self.at_rank(rank)) {
            rank -= self.ranks_per_day();
        }
        rank.max(-1)
    }

    /// Evidence about cells as evidence about their parts: days that a month does not have count as its last day, as in
    /// samples. `None` if nothing is left.
    fn with_days_after_last(&self, mut parts: Parts) -> Option<Parts> {
        let value = |unit: TimeUnit| match self.parts.iter().position(|part| part.unit == unit) {
            None => Some(START[unit as usize]),
            Some(place) => parts.iter().find_map(|(at, evidence)| match evidence {
                Evidence::Value(x) if *at == place => Some(self.parts[place].min + *x as i64),
                _ => None,
            }),
        };
        let date = value(TimeUnit::Year).zip(value(TimeUnit::Month));
        let day = self.parts.iter().position(|part| part.unit == TimeUnit::Day);
        let Some(((year, month), day)) = date.zip(day) else { return Some(parts) };
        let last = days_of(year, month) - self.parts[day].min;
        let Some(evidence) = parts.iter_mut().find(|(place, _)| *place == day) else {
            return Some(parts);
        };
        let days = match &evidence.1 {
            Evidence::Value(x) => vec![*x as usize],
            Evidence::In(Part::Values(set)) => set.clone(),
            Evidence::In(Part::Interval { .. }) | Evidence::Unknown => return Some(parts),
        };
        if (0..self.parts[day].count - 1).contains(&last) {
            let has = |x: &usize| days.contains(&(*x).min(last as usize));
            let set = (0..self.parts[day].count as usize).filter(has).collect();
            evidence.1 = Evidence::In(Part::Values(set));
        }
        match &evidence.1 {
            Evidence::In(Part::Values(set)) if set.is_empty() => None,
            _ => Some(parts),
        }
    }

    /// The seconds of a text in the column's format, or of a date without a time.
    pub(crate) fn number_of(&self, text: &str) -> Option<f64> {
        let date = date_form(&self.form).unwrap_or_default();
        let readings = [(self.form.as_str(), self.padded), (date, self.padded), ("%Y-%m-%d", true)];
        readings.into_iter().find_map(|(form, padded)| match read(form, padded, text) {
            Reading::Moment(moment) => Some(seconds(&moment) as f64),
            Reading::Impossible | Reading::Other => None,
        })
    }
}

/// The text without fractional seconds.
fn without_fraction(text: &str) -> String {
    let point = text.rfind(':').and_then(|at| text[at..].find('.').map(|n| at + n));
    point.map_or_else(
        || text.to_owned(),
        |at| {
            text[..at].to_owned() + text[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit())
        },
    )
}

/// The formats that the first label may have, the most likely first.
fn forms(first: &str) -> Vec<(String, bool)> {
    const DATES: [&str; 11] = [
        "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%d-%m-%Y",
        "%m-%d-%Y", "%m/%d/%y", "%d/%m/%y", "%Y-%m",
    ];
    const NAMED: [&str; 12] = [
        "%b %d %Y",
        "%b %d, %Y",
        "%d %b %Y",
        "%d-%b-%Y",
        "%d-%b-%y",
        "%b %Y",
        "%B %d %Y",
        "%B %d, %Y",
        "%d %B %Y",
        "%d-%B-%Y",
        "%d. %B %Y",
        "%B %Y",
    ];
    const TIMES: [&str; 2] = ["%H:%M:%S", "%H:%M"];
    const HALVES: [&str; 4] = ["%I:%M:%S %p", "%I:%M %p", "%I:%M:%S %P", "%I:%M %P"];
    // Time zones are kept as literal text.
    let zone = ["Z", "+00:00", "+00", " UTC"].into_iter().find(|zone| first.ends_with(zone));
    let zone = zone.unwrap_or_default();
    let has_name = (1..=12).any(|month| first.contains(month_name(month, 'b')));
    let dates = if has_name { &NAMED[..] } else { &DATES[..] };
    let times = if first.ends_with(['m', 'M']) { &HALVES[..] } else { &TIMES[..] };
    let mut found = Vec::new();
    for padded in [true, false] {
        for date in dates {
            found.push(((*date).to_owned(), padded));
            for between in [" ", "T"] {
                for time in times {
                    found.push((format!("{date}{between}{time}{zone}"), padded));
                }
            }
        }
        for time in times {
            found.push(((*time).to_owned(), padded));
        }
    }
    found
}

impl From<DateTime> for ColumnKind {
    fn from(kind: DateTime) -> Self {
        ColumnKind::DateTime(kind)
    }
}

impl Coding for DateTime {
    fn name(&self) -> &'static str {
        match self.parts.first().map(|part| part.unit) {
            Some(TimeUnit::Year) if self.step() < DAY => "a date and time",
            Some(TimeUnit::Year) => "a date",
            Some(
                TimeUnit::Month
                | TimeUnit::Day
                | TimeUnit::Hour
                | TimeUnit::Minute
                | TimeUnit::Second,
            )
            | None => "a time of day",
        }
    }

    fn summary(&self) -> String {
        let (first, last) = self.ends();
        let [first, last] = [first, last].map(|at| self.write(&moment_of(at)));
        format!("{first} to {last}, written {}", self.form)
    }

    fn problem(&self, storage: Storage) -> Option<&'static str> {
        if storage != Storage::Labels {
            return Some("its cells are numbers, but its kind is for text");
        }
        let written = TimeUnit::written(&self.form).into_iter();
        if self.parts.is_empty() || !written.eq(self.parts.iter().map(|part| part.unit)) {
            return Some("its parts do not match its format");
        }
        let fits = |part: &TimePart| {
            let max = part.min.checked_add(part.count - 1);
            let (low, high) = part.unit.range().unwrap_or((0, 9999));
            part.count > 0
                && (part.count as u64) <= MAX_VALUES
                && part.min >= low
                && max.is_some_and(|max| max <= high)
        };
        (!self.parts.iter().all(fits)).then_some("a part has impossible values")
    }

    fn domains(&self) -> Vec<Domain> {
        self.parts.iter().map(|part| Domain::Finite(part.count as usize)).collect()
    }

    fn suffix(&self, place: usize) -> String {
        format!(".{}", self.parts[place].unit.name())
    }

    fn encoder(&self, _storage: Storage) -> Encoder<'_> {
        Box::new(|cell, out| {
            const EXPECTED: &str = "a date or time in the column's format";
            let Cell::Text(text) = cell else { return Err(Problem::Type(EXPECTED)) };
            let (moment, is_own) = self.read(text).ok_or(Problem::Type(EXPECTED))?;
            let values = self.values(&moment).ok_or(Problem::Beyond("within the times seen"))?;
            out.copy_from_slice(&values);
            let between = Problem::Between { slope: 0.0, expected: EXPECTED };
            if is_own { Ok(0.0) } else { Err(between) }
        })
    }

    fn decode(&self, values: &[f64]) -> Decoded<'_> {
        Decoded::Written(self.write(&self.moment(values)))
    }

    fn outside(&self, _storage: Storage) -> Option<Outside> {
        let (min, max) = (self.parts[0].min as f64, (self.parts[0].min - 1) as f64);
        Some(Outside::Numbers(Tails::of_range(min, max + self.parts[0].count as f64)))
    }

    /// Identifies the cell by its first part only. A moment whose first part was seen, but a later part was not, such as
    /// February in a column of times in March, counts as the next year (or whatever the first part is) on the same side.
    fn outside_cell(&self, _storage: Storage, cell: Cell<'_>) -> Option<OutsideSet> {
        let Cell::Text(text) = cell else { return None };
        let (moment, _) = self.read(text)?;
        let first = &self.parts[0];
        let (below, above) = (first.min - 1, first.min + first.count);
        let is_outside = |part: &&TimePart| {
            let x = moment[part.unit as usize];
            x < part.min || x >= part.min + part.count
        };
        let part = self.parts.iter().find(is_outside)?;
        let x = moment[part.unit as usize];
        let x = match part.unit == first.unit {
            true => x,
            false if x < part.min => below,
            false => above,
        } as f64;
        Some(OutsideSet::Numbers { low: x - 0.5, high: x + 0.5 })
    }

    fn set(&self, values: &[Vec<f64>]) -> Result<Vec<Parts>, &'static str> {
        let mut values = values.to_vec();
        values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        values.dedup();
        let part = |values: Vec<f64>| {
            values.into_iter().map(Evidence::Value).enumerate().collect::<Parts>()
        };
        Ok(values.into_iter().filter_map(|x| self.with_days_after_last(part(x))).collect())
    }

    fn exactly(&self, values: &[f64]) -> Parts {
        let parts: Parts = values.iter().copied().map(Evidence::Value).enumerate().collect();
        self.with_days_after_last(parts.clone()).unwrap_or(parts)
    }

    fn interval(&self, ends: &Ends) -> Result<Vec<Parts>, &'static str> {
        let (low, high) = ends.bounds();
        let from = match low {
            Bound::Included(a) => self.first_from(a.ceil() as i64),
            Bound::Excluded(a) => self.first_from((a.floor() as i64).saturating_add(1)),
            Bound::Unbounded => 0,
        };
        let to = match high {
            Bound::Included(b) => self.last_to(b.floor() as i64),
            Bound::Excluded(b) => self.last_to((b.ceil() as i64).saturating_sub(1)),
            Bound::Unbounded => self.num_ranks() - 1,
        };
        let mut parts = Vec::new();
        if from <= to {
            between(&self.radices(), from, to, (0, &mut Vec::new()), &mut parts);
        }
        Ok(parts.into_iter().filter_map(|parts| self.with_days_after_last(parts)).collect())
    }

    fn is_time(&self) -> bool {
        true
    }

    fn part(&self, name: &str, values: &[String]) -> Option<Vec<Parts>> {
        let name = name.to_lowercase();
        if name == "weekday" {
            return self.weekdays(values);
        }
        let place = self.parts.iter().position(|part| part.unit.name() == name)?;
        let part = &self.parts[place];
        let mut set = Vec::new();
        for value in values {
            let offset = value.parse::<i64>().ok()? - part.min;
            if (0..part.count).contains(&offset) {
                set.push(offset as usize);
            }
        }
        set.sort_unstable();
        set.dedup();
        if set.is_empty() {
            return Some(Vec::new());
        }
        Some(vec![vec![(place, Evidence::In(Part::Values(set)))]])
    }

    fn part_values(&self, name: &str) -> Option<Vec<i64>> {
        let name = name.to_lowercase();
        let part = self.parts.iter().find(|part| part.unit.name() == name)?;
        Some((part.min..part.min + part.count).collect())
    }

    fn read_number(&self, text: &str) -> Option<f64> {
        self.number_of(text)
    }

    fn term(&self, _storage: Storage, _place: usize, _x: f64) -> Option<f64> {
        None
    }

    fn number(&self, _storage: Storage, values: &[f64]) -> Option<f64> {
        Some(seconds(&self.moment(values)) as f64)
    }

    fn nearest(&self, x: f64) -> Vec<f64> {
        let (first, last) = self.ends();
        let at = (x.round() as i64).clamp(first, last);
        let moment = moment_of(at);
        let value = |part: &TimePart| {
            (moment[part.unit as usize] - part.min).clamp(0, part.count - 1) as f64
        };
        self.parts.iter().map(value).collect()
    }

    fn range(&self) -> (f64, f64) {
        let (first, last) = self.ends();
        (first as f64, last as f64)
    }
}

impl DateTime {
    /// The days of every month that fall on these days of the week.
    fn weekdays(&self, names: &[String]) -> Option<Vec<Parts>> {
        let [year, month, day] = [TimeUnit::Year, TimeUnit::Month, TimeUnit::Day]
            .map(|unit| self.parts.iter().position(|part| part.unit == unit));
        let (year, month, day) = (year?, month?, day?);
        let mut wanted = Vec::new();
        for name in names {
            let name = name.to_lowercase();
            let short = name.get(..3)?;
            let (number, _) = (0_i64..).zip(WEEKDAYS).find(|(_, day)| *day == short)?;
            wanted.push(number);
        }
        let mut parts = Vec::new();
        for y in 0..self.parts[year].count {
            for m in 0..self.parts[month].count {
                let [of_year, of_month, first] = [(year, y), (month, m), (day, 0)]
                    .map(|(place, offset)| self.parts[place].min + offset);
                let days = days_of(of_year, of_month);
                let is_wanted = |offset: &i64| {
                    let date = first + offset;
                    // January 1, 1970 was a Thursday.
                    let weekday = (day_number(of_year, of_month, date) + 3).rem_euclid(7);
                    date <= days && wanted.contains(&weekday)
                };
                let set = (0..self.parts[day].count).filter(is_wanted);
                let set: Vec<usize> = set.map(|offset| offset as usize).collect();
                if !set.is_empty() {
                    parts.push(vec![
                        (year, Evidence::Value(y as f64)),
                        (month, Evidence::Value(m as f64)),
                        (day, Evidence::In(Part::Values(set))),
                    ]);
                }
            }
        }
        Some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(labels: &[&str]) -> Found {
        DateTime::of(&labels.iter().copied())
    }

    fn dates(labels: &[&str]) -> DateTime {
        match found(labels) {
            Found::Dates(kind) => kind,
            Found::Impossible(label) => panic!("{label}"),
            Found::Nothing => panic!("nothing"),
        }
    }

    #[test]
    fn common_forms_are_found_and_written_back() {
        for labels in [
            &["2019-03-23", "2020-02-29"][..],
            &["2019-03-23 20:21:09", "2019-01-04 00:00:00"],
            &["2019-03-23T20:21:09Z", "2019-01-04T00:00:00Z"],
            &["2019/03/23 20:21", "2019/12/31 23:59"],
            &["23.03.2019", "01.12.2020"],
            &["3/23/2019", "12/1/2020"],
            &["23/03/2019", "01/12/2020"],
            &["08:15", "23:00"],
            &["17-08-1984", "03-07-1989"],
            &["12/31/08", "01/05/69"],
            &["1887.05.12", "1893.10.30"],
            &["2019-03", "2020-12"],
            &["Jan 1 2000", "Dec 24 2009"],
            &["January 5, 2009", "May 15, 2010"],
            &["5 March 2009", "15 May 2010"],
            &["05-Mar-09", "15-May-10"],
            &["Mar 2009", "May 2010"],
            &["1/5/2009 9:05", "12/31/2009 19:00"],
            &["3/23/2019 12:05 AM", "3/24/2019 12:30 PM", "3/24/2019 1:07 PM"],
            &["08:15 am", "11:59 pm"],
        ] {
            let kind = dates(labels);
            assert_eq!(kind.problem(Storage::Labels), None, "{kind:?}");
            let encoder = kind.encoder(Storage::Labels);
            for label in labels {
                let mut values = vec![0.0; kind.parts.len()];
                encoder(Cell::Text(label), &mut values).unwrap();
                assert_eq!(kind.decode(&values).text(), Some(*label));
                let number = kind.number(Storage::Labels, &values).unwrap();
                assert_eq!(kind.nearest(number), values, "{label}");
                assert_eq!(kind.number_of(label), Some(number));
            }
        }
        assert!(matches!(found(&["a", "b"]), Found::Nothing));
        assert!(matches!(found(&["2019-03-23", "soon"]), Found::Nothing));
        assert!(
            matches!(found(&["2019-02-28", "2019-02-31"]), Found::Impossible(l) if l == "2019-02-31")
        );
        // Seasons and other numbers are not mistaken for dates.
        assert!(matches!(found(&["2011-12", "2012-13", "2013-14"]), Found::Nothing));
        assert!(matches!(found(&["11-22-3333", "45-67-8901", "98-76-5432"]), Found::Nothing));
        // The month comes before the day if both orders are possible.
        assert_eq!(dates(&["01/02/2019", "03/04/2019"]).form, "%m/%d/%Y");
        assert_eq!(dates(&["01/02/2019", "31/05/2018"]).form, "%d/%m/%Y");
    }

    #[test]
    fn finer_texts_are_those_of_the_moment_before() {
        // The same moment in another format.
        for (labels, text, own) in [
            (["2019-03-23 20:21", "2020-12-24 00:00"], "2020-04-05", "2020-04-05 00:00"),
            (["2019-03-23", "2020-02-29"], "2019-04-05T00:00:00Z", "2019-04-05"),
        ] {
            let kind = dates(&labels);
            let mut values = vec![f64::NAN; kind.parts.len()];
            kind.encoder(Storage::Labels)(Cell::Text(text), &mut values).unwrap();
            assert_eq!(kind.decode(&values).text(), Some(own));
        }
        for (labels, text, nearest) in [
            (["2019-03-23", "2020-02-29"], "2019-04-05 10:30:00", Some("2019-04-05")),
            (["2019-03-23", "2020-02-29"], "2019-04-05T10:30:00.25Z", Some("2019-04-05")),
            (["3/23/2019", "12/1/2020"], "4/5/2019 10:30", Some("4/5/2019")),
            (["08:15", "23:00"], "09:17:59.5", Some("09:17")),
            (["08:15", "23:00"], "2019-04-05", None),
            (["2019-03-23", "2020-02-29"], "2019-02-31 10:30", None),
            (["2019-03-23", "2020-02-29"], "09:17", None),
        ] {
            let kind = dates(&labels);
            let mut values = vec![f64::NAN; kind.parts.len()];
            let found = kind.encoder(Storage::Labels)(Cell::Text(text), &mut values);
            match nearest {
                Some(nearest) => {
                    assert!(matches!(found, Err(Problem::Between { .. })), "{text}: {found:?}");
                    assert_eq!(kind.decode(&values).text(), Some(nearest));
                }
                None => assert!(matches!(found, Err(Problem::Type(_))), "{text}: {found:?}"),
            }
        }
    }

    /// How many of the cases hold.
    fn holds(parts: &[Parts], values: &[f64]) -> usize {
        let has = |(place, evidence): &(usize, Evidence)| match evidence {
            Evidence::Value(x) => *x == values[*place],
            Evidence::In(Part::Values(set)) => set.contains(&(values[*place] as usize)),
            _ => true,
        };
        parts.iter().filter(|part| part.iter().all(has)).count()
    }

    #[test]
    fn intervals_and_weekdays_are_those_of_an_enumeration() {
        let kind = dates(&["2019-11-02", "2020-03-30"]);
        let all: Vec<i64> = (day_number(2019, 1, 1)..=day_number(2020, 12, 31)).collect();
        let values = |day: i64| kind.values(&moment_of(day * DAY)).unwrap();
        let (low, high) = (day_number(2019, 12, 30), day_number(2020, 2, 29));
        let ends =
            Ends::new(Bound::Included((low * DAY) as f64), Bound::Excluded((high * DAY) as f64));
        let parts = kind.interval(&ends.unwrap()).unwrap();
        let fridays = kind.part("weekday", &["Fri".to_owned(), "sunday".to_owned()]).unwrap();
        let march = kind.part("month", &["3".to_owned()]).unwrap();
        for day in all {
            let x = values(day);
            assert_eq!(holds(&parts, &x), usize::from((low..high).contains(&day)), "{day}");
            let weekday = (day + 3).rem_euclid(7);
            assert_eq!(holds(&fridays, &x), usize::from(weekday == 4 || weekday == 6), "{day}");
            assert_eq!(holds(&march, &x), usize::from(date_of(day)[1] == 3));
        }
        // 6 March 2020 was a Friday.
        assert_eq!(holds(&fridays, &values(day_number(2020, 3, 6))), 1);
    }

    /// Regression: `day > '2019-02-28'` included that day, and days such as February 30, which a model gives a little
    /// probability, were neither before nor after March 1.
    #[test]
    fn every_value_is_before_at_or_after_a_moment() {
        for (labels, moments) in [
            (
                &["2019-01-02", "2020-12-31"][..],
                &[
                    "2019-02-28",
                    "2019-03-01",
                    "2020-02-29",
                    "2020-04-30",
                    "2019-01-01",
                    "2020-12-31",
                ][..],
            ),
            (&["2019-02", "2020-11"], &["2019-02", "2020-12"]),
            (&["08:15", "23:40"], &["08:15", "00:00", "23:59"]),
            // The month or the hour is always the same.
            (&["2018-02-03 10:15", "2020-02-11 10:40"], &["2018-02-28 10:59", "2019-02-01 10:00"]),
            (&["2018-01-31", "2020-12-31"], &["2018-03-31", "2019-12-31"]),
            (&["2018-01-03 00:15", "2018-12-11 23:40"], &["2018-02-28 13:30", "2018-06-30 23:59"]),
        ] {
            let kind = dates(labels);
            for text in moments {
                let at = kind.number_of(text).unwrap();
                let mut own = vec![0.0; kind.parts.len()];
                kind.encoder(Storage::Labels)(Cell::Text(text), &mut own).unwrap();
                let parts = |low, high| kind.interval(&Ends::new(low, high).unwrap()).unwrap();
                let (free, before) =
                    (Bound::Unbounded, parts(Bound::Unbounded, Bound::Excluded(at)));
                let events = [
                    before,
                    kind.set(std::slice::from_ref(&own)).unwrap(),
                    parts(Bound::Excluded(at), free),
                    parts(free, Bound::Included(at)),
                    parts(Bound::Included(at), free),
                ];
                // All values, every so many if there are very many.
                let step = kind.num_ranks() / 20_000 + 1;
                for rank in (0..kind.num_ranks()).step_by(step as usize) {
                    let moment = kind.at_rank(rank);
                    let values = kind.values(&moment).unwrap();
                    let number = kind.number(Storage::Labels, &values).unwrap();
                    let found = events.each_ref().map(|event| holds(event, &values));
                    let expected =
                        [number < at, number == at, number > at, number <= at, number >= at];
                    assert_eq!(found, expected.map(usize::from), "{moment:?} and {text}");
                }
            }
        }
    }
}
