//! Columns in which missing is a value, compared with sums over all values.

use super::{AnomalyCriterion, Event, Fit, Imputation, Model, ModelError, ModelOptions};
use crate::data::{Cell, Column, InferOptions, KindHint, Table};

const ROWS: i64 = 600;

/// Younger people do not state their pay, and owners do not state their age; days of visits are missing at random. The
/// height is always known.
fn table() -> Table {
    let age = |i: i64| (i * 37) % 40;
    let is_owner = |i: i64| (i * 11) % 40 + age(i) > 40;
    let pay = |i: i64| if age(i) < 15 && i % 3 > 0 { f64::NAN } else { noisy(age(i), i) };
    let day = |i: i64| (i % 5 > 0).then(|| format!("2024-{:02}-{:02}", 1 + i % 12, 1 + i % 28));
    let days: Vec<Option<String>> = (0..ROWS).map(day).collect();
    Table::new(vec![
        Column::integers("age", (0..ROWS).map(|i| (!is_owner(i) || i % 2 > 0).then(|| age(i)))),
        Column::labels("owner", (0..ROWS).map(|i| Some(if is_owner(i) { "yes" } else { "no" }))),
        Column::numbers("pay", (0..ROWS).map(pay).collect()),
        Column::labels("day", days.iter().map(Option::as_deref)),
        Column::numbers("height", (0..ROWS).map(|i| noisy(i % 7, i)).collect()),
    ])
    .unwrap()
}

/// A number with many decimals, which has a density unless it is one of many zeros.
fn noisy(x: i64, i: i64) -> f64 {
    if i % 6 == 0 { 0.0 } else { 2.0 + x as f64 + (i as f64).sin() }
}

fn model() -> Model {
    let fit = Fit::new().missing_as_value(["age", "pay", "day"]).width(6).epochs(30).seed(1);
    fit.run(&table()).unwrap()
}

fn ask(model: &Model, question: &str) -> f64 {
    model.ask(question).unwrap_or_else(|e| panic!("{question}: {e}")).number().unwrap()
}

fn near(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() < 1e-8 * (1.0 + b.abs()), "{what}: {a} and {b}");
}

/// Rows with these cells; columns that are not listed are unobserved.
fn log_of(model: &Model, columns: Vec<Column>) -> f64 {
    let options = crate::model::predict::LENIENT;
    model.score_with(&Table::new(columns).unwrap(), options).unwrap()[0]
}

#[test]
fn all_values_and_missing_add_up() {
    let model = model();
    for given in ["", " | owner='no'", " | pay > 12, height is not missing"] {
        if given.contains("height") {
            // There nobody asked for it.
            let error = model.ask(&format!("P(age is missing{given})")).unwrap_err().to_string();
            assert!(error.contains("'height'") && error.contains("missing as a value"), "{error}");
            continue;
        }
        let missing = ask(&model, &format!("P(age is missing{given})"));
        let known = ask(&model, &format!("P(age is not missing{given})"));
        near(missing + known, 1.0, given);
        let each = |k: i32| ask(&model, &format!("P(age={k}{given})"));
        let ages: Vec<f64> = (0..40).map(each).collect();
        near(ages.iter().sum(), known, "the sum of all ages");
        near(ask(&model, &format!("P(age < 20{given})")), ages[..20].iter().sum(), "an interval");
        near(ask(&model, &format!("P(age >= 20{given})")), ages[20..].iter().sum(), "no end");
        near(
            ask(&model, &format!("P(not age >= 20{given})")),
            1.0 - ages[20..].iter().sum::<f64>(),
            "not",
        );
        let mean = (0..40).map(|k| f64::from(k) * ages[k as usize]).sum::<f64>() / known;
        near(ask(&model, &format!("E[age{given}]")), mean, "the mean of those that are known");
    }
    // The learned probabilities are close to the frequencies.
    let share = |question: &str| {
        let question = super::Question::parse(model.schema(), question).unwrap();
        let support = model.support(&question, &table()).unwrap();
        support.event.unwrap() as f64 / support.given as f64
    };
    for question in [
        "P(age is missing | owner='yes')",
        "P(age is missing | owner='no')",
        "P(day is missing)",
        "P(pay is missing or age is missing)",
    ] {
        let (found, rows) = (ask(&model, question), share(question));
        assert!((found - rows).abs() < 0.07, "{question}: {found}, {rows} of the rows");
    }
    let [young, old] =
        ["<", ">="].map(|to| ask(&model, &format!("P(pay is missing | age {to} 15)")));
    assert!(young > 0.3 && old < 0.5 * young, "{young}, {old}");
}

#[test]
fn numbers_and_dates_leave_missing_out() {
    let model = model();
    let known = ask(&model, "P(pay is not missing)");
    near(ask(&model, "P(pay > -inf)"), known, "all numbers");
    near(ask(&model, "P(pay < 5)") + ask(&model, "P(pay >= 5)"), known, "both sides");
    near(ask(&model, "P(pay != 0)"), 1.0 - ask(&model, "P(pay = 0)"), "an atom");
    for level in [0.05, 0.5, 0.9, 1.0] {
        let q = ask(&model, &format!("quantile(pay, {level})"));
        let below = ask(&model, &format!("P(pay < {q})")) / known;
        let up_to = ask(&model, &format!("P(pay <= {q})")) / known;
        assert!(below <= level + 1e-9 && level <= up_to + 1e-9, "{level}: {below} to {up_to}");
    }
    let moments = ["E[pay]", "std(pay)", "corr(pay, age)"].map(|q| ask(&model, q));
    assert!(moments.iter().all(|x| x.is_finite()), "{moments:?}");
    let given = model.condition("pay is not missing").unwrap();
    near(moments[0], ask(&given, "E[pay]"), "the mean");
    near(moments[1], ask(&given, "std(pay)"), "the deviation");
    // The parts of missing dates are unobserved.
    let months: f64 = (1..=12).map(|m| ask(&model, &format!("P(day.month={m})"))).sum();
    near(months, ask(&model, "P(day is not missing)"), "all months");
    near(ask(&model, "P(day >= '2024-01-01')"), months, "all days");
    assert!(ask(&model, "H(age, owner)") > 0.0 && ask(&model, "MI(pay; owner)") > 0.0);
}

#[test]
fn scores_are_of_missing_cells_too() {
    let model = model();
    let yes = || Column::labels("owner", [Some("yes")]);
    let hole = || Column::integers("age", [None]);
    let log = log_of(&model, vec![hole(), yes()]);
    near(log.exp(), ask(&model, "P(age is missing, owner='yes')"), "finite");
    let log = log_of(&model, vec![Column::numbers("pay", vec![f64::NAN]), yes()]);
    near(log.exp(), ask(&model, "P(pay is missing, owner='yes')"), "continuous");
    let log = log_of(&model, vec![Column::labels("day", [None]), yes()]);
    near(log.exp(), ask(&model, "P(day is missing, owner='yes')"), "in parts");
    // An unobserved column is not a missing one.
    let log = log_of(&model, vec![Column::unknown("age", 1), yes()]);
    near(log.exp(), ask(&model, "P(owner='yes')"), "unknown");
    let conditioned = model.condition("age is missing").unwrap();
    near(ask(&conditioned, "P(owner='yes')"), ask(&model, "P(owner='yes' | age is missing)"), "");
    assert!(matches!(conditioned.ask("E[age]"), Err(ModelError::Impossible { .. })));
    let rows = table().select_rows(&[0, 1, 2, 3, 4, 5]);
    let surprises = model.surprises(&rows).unwrap();
    assert!(surprises.iter().all(|x| x.is_finite()), "{surprises:?}");
    let anomaly = &model.anomalies(&rows, 1).unwrap()[0];
    assert_eq!(anomaly.contributions.len(), 5);
    assert!(
        model
            .anomaly_scores(&rows, AnomalyCriterion::Either)
            .unwrap()
            .iter()
            .all(|x| x.is_finite())
    );
}

#[test]
fn samples_have_holes() {
    let model = model();
    let sample = model.sample(4000, 3).unwrap();
    for column in ["age", "pay", "day"] {
        let share = sample.column(column).unwrap().num_missing() as f64 / 4000.0;
        let p = ask(&model, &format!("P({column} is missing)"));
        assert!((share - p).abs() < 0.03, "{column}: {share}, {p}");
    }
    assert_eq!(sample.column("height").unwrap().num_missing(), 0);
    let event = Event::parse(model.schema(), "pay is missing, age is not missing").unwrap();
    let sample = model.sample_given(&event, 50, 3).unwrap();
    assert_eq!(sample.column("pay").unwrap().num_missing(), 50);
    assert_eq!(sample.column("age").unwrap().num_missing(), 0);
}

/// What should fill a row's cells, one by one, from the distribution of each given the others, if none is missing.
fn plain(model: &Model, rows: &Table, row: usize, column: &str) -> f64 {
    let schema = model.schema();
    let mut event = Event::parse(schema, "").unwrap();
    for c in rows.columns() {
        let text = c.text(row);
        let cell = c.number(row).map_or(Cell::Text(&text), Cell::Number);
        let known = if !c.is_missing(row) {
            Event::value(schema, c.name(), cell).unwrap()
        } else if c.name() == "height" {
            continue;
        } else {
            Event::known(schema, c.name()).unwrap()
        };
        event = event.and(schema, &known).unwrap();
    }
    model.distribution(column, &event).unwrap().quantile(0.5).unwrap()
}

#[test]
fn missing_cells_are_filled_as_if_they_were_not() {
    let model = model();
    let rows = table().select_rows(&(0..60).collect::<Vec<_>>());
    for how in [Imputation::Median, Imputation::Mean, Imputation::Mode, Imputation::Sample] {
        let full = model.impute(&rows, how, 5).unwrap();
        assert!(full.columns().iter().all(|c| c.num_missing() == 0), "{how:?}");
    }
    let full = model.impute(&rows, Imputation::Median, 0).unwrap();
    for column in ["age", "pay"] {
        let (before, after) = (rows.column(column).unwrap(), full.column(column).unwrap());
        for row in (0..60).filter(|&row| before.is_missing(row)) {
            let expected = plain(&model, &rows, row, column);
            near(after.number(row).unwrap(), expected, &format!("{column} of row {row}"));
        }
    }
    // Many cases take a different code path to the same cells.
    let cases = model.condition("age < 60 or age is missing or height < 100").unwrap();
    let again = cases.impute(&rows, Imputation::Median, 0).unwrap();
    for column in ["age", "pay"] {
        for row in 0..60 {
            let [a, b] = [&full, &again].map(|t| t.column(column).unwrap().number(row).unwrap());
            assert!((a - b).abs() < 1e-6 * (1.0 + a.abs()), "{column} of row {row}: {a}, {b}");
        }
    }
    // Predictions take missing cells of other columns into account.
    let with_hole = Table::new(vec![Column::integers("age", [None])]).unwrap();
    let p = model.predict(&with_hole, "owner").unwrap().probabilities().unwrap();
    near(p.of_row(0)[1], ask(&model, "P(owner='yes' | age is missing)"), "the owner");
    let ages = model.predict(&with_hole, "age").unwrap().probabilities().unwrap();
    assert_eq!(ages.labels.len(), 40);
    near(ages.of_row(0)[7], ask(&model, "P(age=7 | age is not missing)"), "an age");
    let log = model.predict(&with_hole, "age").unwrap().log_density().unwrap()[0];
    near(log.exp(), ask(&model, "P(age is missing)"), "the hole");
}

#[test]
fn models_are_stored_and_read() {
    let model = model();
    let bytes = model.to_bytes().unwrap();
    let again = Model::from_bytes(&bytes).unwrap();
    assert_eq!(again.schema(), model.schema());
    assert_eq!(again.score(&table()).unwrap(), model.score(&table()).unwrap());
    let text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(text.contains("\\\"missing\\\":true") && text.contains("\\\"version\\\":4"));
    let plain = Fit::new().epochs(1).width(2).run(&table()).unwrap().to_bytes().unwrap();
    assert!(!String::from_utf8_lossy(&plain).contains("\\\"missing\\\""));
    #[cfg(feature = "codec")]
    {
        let back = model.decompress(&model.compress(&table()).unwrap()).unwrap();
        assert_eq!(back.to_csv(), table().to_csv());
    }
    assert!(model.info().valid.is_finite() && model.info().baseline < model.info().valid);
}

#[test]
fn some_columns_have_no_place_for_it() {
    let run = |column: &str, kinds: &[(&str, KindHint)]| {
        let kinds = kinds.iter().map(|(name, hint)| ((*name).to_owned(), *hint)).collect();
        let infer = InferOptions { kinds, ..InferOptions::default() };
        let options = ModelOptions { infer, epochs: Some(1), width: Some(2), ..Default::default() };
        Fit::with(options).missing_as_value([column]).run(&table())
    };
    let error = run("ages", &[]).unwrap_err().to_string();
    assert!(error.contains("'ages'") && error.contains("'age'"), "{error}");
    // With digits, with a density, and without any missing cells.
    for (column, kinds) in [
        ("age", &[("age", KindHint::Digits)][..]),
        ("pay", &[("pay", KindHint::Continuous(crate::data::Support::REAL))]),
        ("pay", &[("pay", KindHint::Periodic { period: 9.0 })]),
        ("height", &[("height", KindHint::Periodic { period: 9.0 })]),
        ("owner", &[]),
    ] {
        let model = run(column, kinds).unwrap();
        let [missing, known] =
            ["", "not "].map(|n| ask(&model, &format!("P({column} is {n}missing)")));
        near(missing + known, 1.0, column);
        let full = model.impute(&table(), Imputation::Median, 0).unwrap();
        assert_eq!(full.column(column).unwrap().num_missing(), 0);
        let model = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        if matches!(kinds, [(_, KindHint::Periodic { .. })]) {
            let between = |a: f64, b: f64| ask(&model, &format!("P({column} in [{a}, {b}))"));
            near((0..9).map(|k| between(f64::from(k), f64::from(k) + 1.0)).sum(), known, "turns");
            // An interval across the end of the period, and the same hour of another turn.
            near(between(8.0, 10.0), between(8.0, 9.0) + between(0.0, 1.0), "the end");
            near(between(3.0, 4.5), between(12.0, 13.5), "another turn");
            let samples = model.sample(500, 1).unwrap();
            let samples = samples.column(column).unwrap();
            let share = samples.num_missing() as f64 / 500.0;
            assert!((share - missing).abs() < 0.08, "{share}, {missing}");
            let known = (0..500).filter_map(|row| samples.number(row));
            assert!({ known }.all(|x| (0.0..9.0).contains(&x)));
        }
        if column == "age" {
            let sum: f64 = (0..40).map(|k| ask(&model, &format!("P(age={k})"))).sum();
            near(sum + ask(&model, "P(age > 39)"), known, "digits");
            let mean = (0..50).map(|k| f64::from(k) * ask(&model, &format!("P(age={k})")));
            near(ask(&model, "E[age]"), mean.sum::<f64>() / known, "the mean of digits");
        }
    }
    let error = model().ask("P(age is odd)").unwrap_err().to_string();
    assert!(error.contains("expected 'missing' or 'not missing'"), "{error}");
}
