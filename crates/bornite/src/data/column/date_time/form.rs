//! Formats of dates and times: finding the one of a column, reading and writing.

use super::moment::{Moment, START, seconds};
use super::{DateTime, TimePart, TimeUnit};
use crate::data::calendar::days_of;

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

/// The result of looking for a date format in the labels of a column.
pub(in crate::data::column) enum Found {
    Dates(DateTime),
    /// All labels have a date format, but this one is not a possible date or time.
    Impossible(String),
    Nothing,
}

impl DateTime {
    /// Finds a format in which all labels are dates or times.
    pub(in crate::data::column) fn of<'a>(
        labels: &(impl Iterator<Item = &'a str> + Clone),
    ) -> Found {
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

    /// The moment that a text describes, and whether the column can represent it exactly. It cannot if the text is more
    /// precise, such as a time of day in a column of dates. A date without a time is the start of the day.
    pub(super) fn read(&self, text: &str) -> Option<(Moment, bool)> {
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

    pub(super) fn write(&self, moment: &Moment) -> String {
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
