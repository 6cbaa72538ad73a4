//! Dates and times, split into year, month, day, hour, minute and second.
//!
//! The parts make it possible to learn and query hours of the day or months of the year as such. Their lexicographic
//! order is the order of time. A day that its month does not have becomes the last day of the month in samples, and
//! counts as that day in scores and questions.

mod form;
mod moment;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::digits::between;
use super::outside::Tails;
use super::{
    Cell, Coding, ColumnKind, Decoded, Encoder, Ends, MAX_VALUES, NOT_NUMBERS, Outside, OutsideSet,
    Parts, Problem,
};
use crate::basis::Part;
use crate::data::Storage;
use crate::data::calendar::{day_number, days_of};
use crate::domain::Domain;
use crate::query::Evidence;
use moment::{DAY, Moment, START, moment_of, seconds};

pub(super) use form::Found;

/// The names of the days of the week in questions.
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// The number of days that every month has.
const SHORTEST_MONTH: i64 = 28;

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

impl DateTime {
    fn moment(&self, values: &[f64]) -> Moment {
        let mut moment = START;
        for (part, &x) in self.parts.iter().zip(values) {
            moment[part.unit as usize] = part.min + x as i64;
        }
        clamped(moment)
    }

    /// The encoded values of a moment; `None` if a part is out of range.
    fn values(&self, moment: &Moment) -> Option<Vec<f64>> {
        let value = |part: &TimePart| {
            let mut offset = moment[part.unit as usize] - part.min;
            if part.unit == TimeUnit::Day && moment[2] == days_of(moment[0], moment[1]) {
                // If all days are after the last one of the month, they stand for it.
                offset = offset.max(0);
            }
            (0..part.count).contains(&offset).then_some(offset as f64)
        };
        self.parts.iter().map(value).collect()
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

    /// The parts with this rank, which may be a day that its month does not have, if the column can have its last day
    /// too.
    fn at_rank(&self, mut rank: i128) -> Moment {
        let mut moment = START;
        for part in self.parts.iter().rev() {
            moment[part.unit as usize] = part.min + (rank % i128::from(part.count)) as i64;
            rank /= i128::from(part.count);
        }
        if self.is_after_last(&moment) { moment } else { clamped(moment) }
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

    /// The first value that means the last day of a month, if later ones do too. `day` is the position of the days among
    /// the parts.
    fn last_of_short(&self, day: usize, year: i64, month: i64) -> Option<usize> {
        let last = (days_of(year, month) - self.parts[day].min).max(0);
        (last < self.parts[day].count - 1).then_some(last as usize)
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
        let Some(evidence) = parts.iter_mut().find(|(place, _)| *place == day) else {
            return Some(parts);
        };
        let days = match &evidence.1 {
            Evidence::Value(x) => vec![*x as usize],
            Evidence::In(Part::Values(set)) => set.clone(),
            Evidence::In(Part::Interval { .. }) | Evidence::Unknown => return Some(parts),
        };
        if let Some(last) = self.last_of_short(day, year, month) {
            let has = |x: &usize| days.contains(&(*x).min(last));
            let set = (0..self.parts[day].count as usize).filter(has).collect();
            evidence.1 = Evidence::In(Part::Values(set));
        }
        match &evidence.1 {
            Evidence::In(Part::Values(set)) if set.is_empty() => None,
            _ => Some(parts),
        }
    }
}

/// A day that its month does not have becomes the last day.
fn clamped(mut moment: Moment) -> Moment {
    moment[2] = moment[2].min(days_of(moment[0], moment[1]));
    moment
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

    fn why_no_atoms(&self, _are_numbers: bool) -> Option<&'static str> {
        Some(NOT_NUMBERS)
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

    fn ambiguous(&self) -> Option<usize> {
        self.parts.iter().position(|part| part.unit == TimeUnit::Day)
    }

    fn same_cell(&self, values: &[f64]) -> Option<Vec<usize>> {
        let day = self.ambiguous()?;
        // The parts up to the day tell the month.
        if values[..=day].iter().any(|x| x.is_nan()) {
            return None;
        }
        let [year, month, ..] = self.moment(values);
        let last = self.last_of_short(day, year, month)?;
        let is_last = values[day] as usize >= last;
        is_last.then(|| (last..self.parts[day].count as usize).collect())
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

    fn expected_outside(&self) -> Option<f64> {
        Some(2.0)
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
        let wanted: Option<Vec<i64>> = values.iter().map(|value| value.parse().ok()).collect();
        let (wanted, part) = (wanted?, &self.parts[place]);
        // Days that all months have are the same in all of them.
        if part.unit == TimeUnit::Day && wanted.iter().any(|day| *day >= SHORTEST_MONTH) {
            return self.days(&wanted);
        }
        let has = |offset: &i64| wanted.contains(&(part.min + offset));
        let set: Vec<usize> = (0..part.count).filter(has).map(|offset| offset as usize).collect();
        if set.is_empty() {
            return Some(Vec::new());
        }
        Some(vec![vec![(place, Evidence::In(Part::Values(set)))]])
    }

    fn part_values(&self, name: &str) -> Option<Vec<i64>> {
        let name = name.to_lowercase();
        let part = self.parts.iter().find(|part| part.unit.name() == name)?;
        // The last days of months stand for later ones.
        let first =
            if part.unit == TimeUnit::Day { part.min.min(SHORTEST_MONTH) } else { part.min };
        Some((first..part.min + part.count).collect())
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
    /// The positions of year, month and day among the parts, if the format has all three.
    fn date_places(&self) -> Option<[usize; 3]> {
        let place = |unit| self.parts.iter().position(|part| part.unit == unit);
        Some([place(TimeUnit::Year)?, place(TimeUnit::Month)?, place(TimeUnit::Day)?])
    }

    /// These days of all months, as mutually exclusive cases: the months of each length, in the years in which they
    /// have it. `None` if the format has no date.
    fn days(&self, wanted: &[i64]) -> Option<Vec<Parts>> {
        let [year, month, day] = self.date_places()?;
        let mut cases = Vec::new();
        for length in SHORTEST_MONTH..=31 {
            let (mut years, mut months) = (BTreeSet::new(), BTreeSet::new());
            for m in 0..self.parts[month].count {
                for y in 0..self.parts[year].count {
                    if days_of(self.parts[year].min + y, self.parts[month].min + m) == length {
                        years.insert(y as usize);
                        months.insert(m as usize);
                    }
                }
            }
            let has = |offset: &i64| wanted.contains(&length.min(self.parts[day].min + offset));
            let offsets = (0..self.parts[day].count).filter(has);
            let days: Vec<usize> = offsets.map(|offset| offset as usize).collect();
            if !months.is_empty() && !days.is_empty() {
                let of = |set: BTreeSet<usize>| Part::Values(set.into_iter().collect());
                let sets = [(year, of(years)), (month, of(months)), (day, Part::Values(days))];
                cases.push(sets.map(|(place, set)| (place, Evidence::In(set))).to_vec());
            }
        }
        Some(cases)
    }

    /// The days of every month that fall on these days of the week.
    fn weekdays(&self, names: &[String]) -> Option<Vec<Parts>> {
        let [year, month, day] = self.date_places()?;
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
                    let date = days.min(first + offset);
                    // January 1, 1970 was a Thursday.
                    let weekday = (day_number(of_year, of_month, date) + 3).rem_euclid(7);
                    wanted.contains(&weekday)
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
