//! Scores, questions and samples of dates, including days such as February 30, which a model gives a little probability.

use std::fmt::Write as _;

use super::{AnswerValue, Event, Fit, Imputation, Model, Question};
use crate::data::{Cell, CsvOptions, Table};
use crate::query::{Evidence, Query};

fn read(text: &str) -> Table {
    Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap()
}

/// Days of two years, and two columns that depend on the month. Few rows, so that the model smooths a lot.
fn model() -> Model {
    let mut text = String::from("day,season,visits\n");
    for n in 0..240_u32 {
        let (month, day) = (1 + n * 7 % 12, 1 + n * 11 % 28);
        let day = if n % 9 == 0 && month != 2 { 30 } else { day };
        let season = if (4..10).contains(&month) { "summer" } else { "winter" };
        writeln!(text, "{}-{month:02}-{day:02},{season},{}", 2019 + n % 2, n % 5 + month).unwrap();
    }
    Fit::new().epochs(6).width(4).circuits(2).run(&read(&text)).unwrap()
}

const DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// Every day of the two years.
fn all_days() -> Vec<String> {
    let mut days = Vec::new();
    for year in [2019, 2020] {
        for (month, count) in (1..).zip(DAYS) {
            let last = count + i64::from(year == 2020 && month == 2);
            days.extend((1..=last).map(|day| format!("{year}-{month:02}-{day:02}")));
        }
    }
    days
}

fn probability(model: &Model, question: &str) -> f64 {
    model.ask(question).unwrap().number().unwrap()
}

/// Regression: the score of the last day of a short month lacked the probability of the days after it, which questions
/// and samples gave to it.
#[test]
fn scores_of_days_are_their_probabilities() {
    let model = model();
    let days = all_days();
    let table = read(&format!("day,season,visits\n{}", days.join(",,\n") + ",,\n"));
    let scores = model.score(&table).unwrap();
    let asked: Vec<f64> =
        days.iter().map(|day| probability(&model, &format!("P(day = '{day}')"))).collect();
    for ((day, score), p) in days.iter().zip(&scores).zip(&asked) {
        assert!((score - p.ln()).abs() < 1e-9, "{day}: {score} and {}", p.ln());
    }
    let total: f64 = scores.iter().map(|score| score.exp()).sum();
    assert!((total - 1.0).abs() < 1e-9, "{total}");
    // The days after the last one have enough probability for the test to mean something.
    let plain = |day: &str| {
        let (year, rest) = day.split_once('-').unwrap();
        let (month, day) = rest.split_once('-').unwrap();
        let known = [("day.year", year), ("day.month", month), ("day.day", day)];
        let mut query = Query::unknown(model.schema().num_variables());
        let variables = model.schema().variables();
        for (name, value) in known {
            let place = variables.iter().position(|v| v.name == name).unwrap();
            let min = if name == "day.year" { 2019.0 } else { 1.0 };
            let x = value.parse::<f64>().unwrap() - min;
            query.set(&variables, place, Evidence::Value(x)).unwrap();
        }
        model.log_cases(&[query]).unwrap()[0].exp()
    };
    let last = days.iter().position(|day| day == "2019-02-28").unwrap();
    assert!(
        asked[last] > plain("2019-02-28") * 1.001,
        "{} of {}",
        plain("2019-02-28"),
        asked[last]
    );
    // Days of the week and of the month are sums of days.
    for (question, has) in [
        ("P(day.day = 28)", &(|day: &str| day.ends_with("-28")) as &dyn Fn(&str) -> bool),
        ("P(day.day = 31)", &|day: &str| day.ends_with("-31")),
        ("P(day.day in [29, 30])", &|day: &str| day.ends_with("-29") || day.ends_with("-30")),
        ("P(day >= '2020-02-29', day.month = 2)", &|day: &str| day == "2020-02-29"),
    ] {
        let sum: f64 = days.iter().zip(&asked).filter(|(day, _)| has(day)).map(|(_, p)| p).sum();
        let found = probability(&model, question);
        assert!((found - sum).abs() < 1e-9, "{question}: {found}, not {sum}");
    }
    let weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let week: f64 =
        weekdays.iter().map(|day| probability(&model, &format!("P(day.weekday = {day})"))).sum();
    assert!((week - 1.0).abs() < 1e-9, "{week}");
}

/// The same evidence about a day gives the same answers, whether it comes with a question, from a row, or from the
/// model itself.
#[test]
fn rows_and_questions_agree_about_the_last_day_of_a_month() {
    let model = model();
    for day in ["2019-02-28", "2020-02-29", "2020-04-30", "2020-03-15"] {
        let table = read(&format!("day,season,visits\n{day},summer,\n{day},,7\n"));
        let joint = probability(&model, &format!("P(day = '{day}', season = summer)"));
        let scores = model.score(&table).unwrap();
        assert!((scores[0] - joint.ln()).abs() < 1e-9, "{day}");
        // Predictions and answers for rows.
        let expected =
            probability(&model, &format!("P(season = summer | day = '{day}', visits = 7)"));
        let question = Question::parse(model.schema(), "P(season = summer)").unwrap();
        let answers = model.for_each_row(&question).unwrap().answer(&table).unwrap();
        assert!((answers.number(1).unwrap() - expected).abs() < 1e-9, "{day}");
        let proba = model.predict(&table, "season").unwrap().probabilities().unwrap();
        let summer = proba.labels.iter().position(|label| label == "summer").unwrap();
        assert!((proba.of_row(1)[summer] - expected).abs() < 1e-9, "{day}: {proba:?}");
        // A model conditioned on the day.
        let event = Event::value(model.schema(), "day", Cell::Text(day)).unwrap();
        let conditional = model.under(&event).unwrap();
        let alone = read("season\nsummer\n");
        let lenient = super::predict::LENIENT;
        let score = conditional.score_with(&alone, lenient).unwrap()[0];
        let given = probability(&model, &format!("P(season = summer | day = '{day}')"));
        assert!((score - given.ln()).abs() < 1e-9, "{day}");
        // In it, the day itself is certain.
        let certain = conditional.score(&read(&format!("day,season,visits\n{day},,\n"))).unwrap();
        assert!(certain[0].abs() < 1e-9, "{day}: {certain:?}");
        // Samples of the rest of a row keep the day.
        let filled = model.impute(&table, Imputation::Sample, 3).unwrap();
        assert!((0..2).all(|row| filled.columns()[0].text(row) == day));
    }
}

/// The most likely day is that of the questions, also if its probability includes that of days after it.
#[test]
fn the_most_likely_day_has_the_largest_probability() {
    let model = model();
    for given in ["day.month = 2", "day.month = 2, day.day >= 28", "day.month = 4, day.day >= 29"] {
        let (mut best, mut total) = ((0.0, String::new()), 0.0);
        for day in all_days() {
            let p = probability(&model, &format!("P(day = '{day}' | {given})"));
            total += p;
            if p > best.0 {
                best = (p, day);
            }
        }
        assert!((total - 1.0).abs() < 1e-9, "{given}: {total}");
        let found = model.ask(&format!("argmax(day | {given})")).unwrap();
        assert!((found.probability.unwrap() - best.0).abs() < 1e-9, "{given}: {found:?}, {best:?}");
        assert_eq!(found.value, AnswerValue::Label(best.1), "{given}");
        assert_eq!(found.bound, None);
    }
}
