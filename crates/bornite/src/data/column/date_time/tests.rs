//! Tests of dates and times.

use super::*;
use crate::data::calendar::date_of;

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
    let ends = Ends::new(Bound::Included((low * DAY) as f64), Bound::Excluded((high * DAY) as f64));
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
            &["2019-02-28", "2019-03-01", "2020-02-29", "2020-04-30", "2019-01-01", "2020-12-31"][..],
        ),
        (&["2019-02", "2020-11"], &["2019-02", "2020-12"]),
        (&["08:15", "23:40"], &["08:15", "00:00", "23:59"]),
        // The month or the hour is always the same.
        (&["2018-02-03 10:15", "2020-02-11 10:40"], &["2018-02-28 10:59", "2019-02-01 10:00"]),
        // All days are the 31st, which stands for the last day of shorter months.
        (&["2018-01-31", "2020-12-31"], &["2018-03-31", "2019-02-28", "2020-02-29", "2020-04-30"]),
        (&["2018-01-03 00:15", "2018-12-11 23:40"], &["2018-02-28 13:30", "2018-06-30 23:59"]),
    ] {
        let kind = dates(labels);
        for text in moments {
            let at = kind.number_of(text).unwrap();
            let mut own = vec![0.0; kind.parts.len()];
            kind.encoder(Storage::Labels)(Cell::Text(text), &mut own).unwrap();
            let parts = |low, high| kind.interval(&Ends::new(low, high).unwrap()).unwrap();
            let (free, before) = (Bound::Unbounded, parts(Bound::Unbounded, Bound::Excluded(at)));
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
                let expected = [number < at, number == at, number > at, number <= at, number >= at];
                assert_eq!(found, expected.map(usize::from), "{moment:?} and {text}");
            }
        }
    }
}

/// Regression: a day such as February 30 is written as February 28 in samples, but counted in no day of the week and as
/// day 30 in questions, and not at all in scores.
#[test]
fn days_after_the_last_of_a_month_count_as_that_day() {
    for labels in [
        &["2019-01-02", "2020-12-31"][..],
        &["2018-01-31", "2020-12-31"],
        &["2020-02-01", "2020-02-29"],
        &["2018-02-03 10:15", "2021-11-11 10:40"],
    ] {
        let kind = dates(labels);
        let part = |name: &str, values: &[&str]| {
            let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
            kind.part(name, &values).unwrap()
        };
        let sets = [&["28"][..], &["29"], &["30"], &["31"], &["27", "28"], &["1", "31", "29"]];
        let days = sets.map(|set| (set, part("day", set)));
        let weekdays = WEEKDAYS.map(|day| part("weekday", &[day]));
        let encoder = kind.encoder(Storage::Labels);
        let (mut ambiguous, step) = (0, kind.num_ranks() / 20_000 + 1);
        for rank in (0..kind.num_ranks()).step_by(step as usize) {
            let values = kind.values(&kind.at_rank(rank)).unwrap();
            let [year, month, day, ..] = kind.moment(&values);
            for (set, cases) in &days {
                let expected = set.contains(&day.to_string().as_str());
                assert_eq!(holds(cases, &values), usize::from(expected), "{values:?} in {set:?}");
            }
            let weekday = (day_number(year, month, day) + 3).rem_euclid(7) as usize;
            for (n, cases) in weekdays.iter().enumerate() {
                assert_eq!(holds(cases, &values), usize::from(n == weekday), "{values:?}");
            }
            // Scores use the set of all values that a cell with this text may have.
            let mut own = vec![0.0; values.len()];
            encoder(Cell::Text(&kind.write(&kind.moment(&values))), &mut own).unwrap();
            let place = kind.ambiguous().unwrap();
            let same = kind.same_cell(&own);
            ambiguous += usize::from(same.is_some());
            let same = same.unwrap_or(vec![own[place] as usize]);
            assert!(same.contains(&(values[place] as usize)), "{values:?}: {same:?}");
            own[place] = values[place];
            assert_eq!(own, values);
            for x in same {
                own[place] = x as f64;
                assert_eq!(kind.moment(&own), kind.moment(&values));
            }
        }
        // If all days are the 31st, no other day stands for the last one of a month.
        assert_eq!(ambiguous == 0, labels[0] == "2018-01-31", "{labels:?}");
    }
}
