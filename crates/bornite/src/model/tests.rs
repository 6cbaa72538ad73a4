use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    AnomalyCriterion, AnswerValue, Event, Fit, Imputation, Model, ModelError, ModelOptions,
    Question, StructureKind, Worker,
};
use crate::data::{
    Column, ColumnKind, ColumnSchema, CsvOptions, EncodeOptions, InferOptions, KindHint, Mismatch,
    Other, Sample, SampleOptions, Table, Unseen,
};
use crate::file::FileError;
use crate::learn::{Control, Defaults, Device, Effort, Workers};
use crate::ops::Budget;
use crate::query::QueryError;

/// Rain; an umbrella and a temperature that depend on it, 8 ± 3 or 20 ± 5; and visitors, a wide whole number.
fn weather(rows: usize, seed: u64) -> Table {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let (mut sky, mut umbrella, mut degrees, mut visitors) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rows {
        let rain = rng.random::<f64>() < 0.4;
        let carried = rng.random::<f64>() < if rain { 0.8 } else { 0.1 };
        let normal = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        sky.push(if rain { "rain" } else { "sun" });
        umbrella.push(if carried { "yes" } else { "no" });
        degrees.push(if rain { 8.0 + 3.0 * normal } else { 20.0 + 5.0 * normal });
        visitors.push(Some(rng.random_range(0..1000) + if rain { 0 } else { 1000 }));
    }
    Table::new(vec![
        Column::labels("sky", sky.into_iter().map(Some)),
        Column::labels("umbrella", umbrella.into_iter().map(Some)),
        Column::numbers("degrees", degrees),
        Column::integers("visitors", visitors),
    ])
    .unwrap()
}

/// A fit with the visitors as digits.
fn in_digits() -> Fit<'static> {
    let kinds = [("visitors".to_owned(), KindHint::Digits)].into();
    let infer = InferOptions { kinds, ..InferOptions::default() };
    Fit::with(ModelOptions { infer, ..ModelOptions::default() })
}

fn fitted(rows: usize) -> Model {
    in_digits().epochs(25).run(&weather(rows, 1)).unwrap()
}

fn small() -> Model {
    in_digits().epochs(3).width(4).run(&weather(300, 2)).unwrap()
}

/// Rides paid by card, with a tip in cents, or in cash, without one; a few tips are exactly 5.
fn rides(rows: usize) -> Table {
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    let (mut pay, mut tip) = (vec![], vec![]);
    for _ in 0..rows {
        let card = rng.random::<f64>() < 0.6;
        let cents = 100 + (300.0 * (rng.random::<f64>() + rng.random::<f64>())) as i32;
        pay.push(Some(if card { "card" } else { "cash" }));
        let round = rng.random::<f64>() < 0.2;
        let given = if round { 5.0 } else { f64::from(cents) / 100.0 };
        tip.push(if card { given } else { 0.0 });
    }
    Table::new(vec![Column::labels("pay", pay), Column::numbers("tip", tip)]).unwrap()
}

#[test]
fn numbers_with_atoms_are_answered_as_the_rows_would() {
    let table = rides(1500);
    let model = Fit::new().epochs(30).width(4).run(&table).unwrap();
    let tips = table.column("tip").unwrap();
    let tips: Vec<f64> = (0..1500).map(|row| tips.number(row).unwrap()).collect();
    let share = |holds: &dyn Fn(f64) -> bool| {
        tips.iter().filter(|x| holds(**x)).count() as f64 / tips.len() as f64
    };
    let ask = |question: &str| number(&model, question);
    let close = |found: f64, expected: f64, question: &str| {
        assert!((found - expected).abs() < 0.03, "{question}: {found}, not {expected}");
    };
    for (question, expected) in [
        ("P(tip = 0)", share(&|x| x == 0.0)),
        ("P(tip <= 0)", share(&|x| x == 0.0)),
        ("P(tip = 5)", share(&|x| x == 5.0)),
        ("P(tip < 5)", share(&|x| x < 5.0)),
        ("P(tip <= 5)", share(&|x| x <= 5.0)),
        ("P(tip > 5)", share(&|x| x > 5.0)),
        ("P(tip in {0, 5})", share(&|x| x == 0.0 || x == 5.0)),
        ("P(tip > 0 | pay='cash')", 0.0),
        ("P(pay='card' | tip = 5)", 1.0),
    ] {
        close(ask(question), expected, question);
    }
    assert_eq!(ask("P(tip < 0)"), 0.0);
    let mean = tips.iter().sum::<f64>() / 1500.0;
    assert!((ask("E[tip]") - mean).abs() < 0.1, "{} of {mean}", ask("E[tip]"));
    assert_eq!(ask("quantile(tip, 0.2)"), 0.0);
    // The jump of the distribution function at an atom is its probability, and cells have probabilities.
    let jump = ask("P(tip <= 5)") - ask("P(tip < 5)");
    assert!((jump - ask("P(tip = 5)")).abs() < 1e-9);
    let cell = ask("P(tip = 2.5)");
    assert!((cell - (ask("P(tip <= 2.5)") - ask("P(tip < 2.5)"))).abs() < 1e-9);
    assert!(cell > 0.0 && cell < 0.02 && !known(&model, "tip = 2.5").is_density());
    let row = Table::from_csv_bytes(b"pay,tip\ncard,2.5\n", "t.csv", &CsvOptions::default());
    let score = model.score(&row.unwrap()).unwrap()[0];
    let asked = model.ask("P(pay='card', tip = 2.5)").unwrap().log.unwrap();
    assert!((score - asked).abs() < 1e-3, "{score} and {asked}");
    // Samples look like the rows.
    let samples = model.sample(400, 3).unwrap();
    let drawn = samples.column("tip").unwrap();
    for row in 0..400 {
        let x = drawn.number(row).unwrap();
        assert!(x >= 0.0 && ((x * 100.0).round() / 100.0 - x).abs() < 1e-12, "{x}");
    }
    // Scores are probabilities: they sum to 1, and agree with questions.
    let cents: Vec<f64> = (0..2500).map(|n| f64::from(n) / 100.0).collect();
    let pay = Column::labels("pay", vec![None::<&str>; cents.len()]);
    let all = Table::new(vec![pay, Column::numbers("tip", cents.clone())]).unwrap();
    let scores: Vec<f64> = model.score(&all).unwrap().iter().map(|log| log.exp()).collect();
    let sum: f64 = scores.iter().sum();
    assert!((sum - 1.0).abs() < 0.01, "{sum}");
    for n in [0, 150, 333, 500, 621] {
        let asked = ask(&format!("P(tip = {})", cents[n]));
        assert!((scores[n] - asked).abs() < 0.02 * asked, "{}: {}, {asked}", cents[n], scores[n]);
    }
}

#[test]
fn means_of_many_functions_are_those_of_their_densities() {
    // Two spikes and a plateau make the density oscillate.
    let rng = &mut ChaCha8Rng::seed_from_u64(3);
    let value = |u: f64, v: f64| if u < 0.3 { 2.0 + 0.01 * v } else { 5.0 * v };
    let x: Vec<f64> = (0..400).map(|_| value(rng.random(), rng.random())).collect();
    let y = x.iter().map(|x| Some(if *x < 2.5 { "low" } else { "high" }));
    let table = Table::new(vec![Column::numbers("x", x.clone()), Column::labels("y", y)]).unwrap();
    let options = ModelOptions { functions: Some(96), ..ModelOptions::default() };
    let model = Fit::with(options).width(4).epochs(10).run(&table).unwrap();
    for given in ["", " | y='low'"] {
        let quantile = |n: u32| (f64::from(n) + 0.5) / 500.0;
        let all = (0..500).map(|n| number(&model, &format!("quantile(x, {}{given})", quantile(n))));
        let (sum, squares) = all.fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        let (mean, square) = (sum / 500.0, squares / 500.0);
        let found = number(&model, &format!("E[x{given}]"));
        assert!((found - mean).abs() < 0.01, "{found}, not {mean}");
        let (found, deviation) =
            (number(&model, &format!("std(x{given})")), (square - mean * mean).sqrt());
        assert!((found - deviation).abs() < 0.03, "{found}, not {deviation}");
    }
}

fn number(model: &Model, question: &str) -> f64 {
    model.ask(question).unwrap().number().unwrap()
}

#[test]
fn a_fit_recovers_known_probabilities() {
    let model = fitted(3000);
    assert!(model.info().valid > model.info().baseline + 0.5, "{:?}", model.info());
    let near = |question: &str, expected: f64, tolerance: f64| {
        let found = number(&model, question);
        assert!((found - expected).abs() < tolerance, "{question} = {found}, not {expected}");
    };
    near("P(sky='rain')", 0.4, 0.04);
    near("P(umbrella='yes' | sky='rain')", 0.8, 0.06);
    near("P(umbrella=yes | sky != rain)", 0.1, 0.05);
    near("P(degrees in [5, 11) | sky=rain)", 0.683, 0.07);
    near("P(visitors >= 1000 | sky=sun)", 1.0, 0.05);
    near("E[degrees | sky=sun]", 20.0, 1.0);
    near("median(degrees | sky=rain)", 8.0, 1.0);
    near("quantile(degrees, 0.9 | sky=rain)", 11.84, 1.2);
    near("E[visitors | sky=rain]", 500.0, 60.0);
    near("median(visitors | sky=sun)", 1500.0, 120.0);
    near("argmax(degrees | sky=rain)", 8.0, 2.0);
    assert_eq!(model.ask("argmax(sky | degrees=3)").unwrap().kind, "mode");
    assert_eq!(
        model.distribution("sky", &known(&model, "degrees=3")).unwrap().mode().unwrap().0,
        "rain"
    );
}

fn known(model: &Model, text: &str) -> Event {
    Event::parse(model.schema(), text).unwrap()
}

#[test]
fn distributions_agree_with_probabilities() {
    let model = small();
    let given = "umbrella='yes', visitors in [150, 1200)";
    let of = |column: &str| model.distribution(column, &known(&model, given)).unwrap();
    for (label, p) in of("sky").probabilities().unwrap().unwrap() {
        let asked = number(&model, &format!("P(sky='{label}' | {given})"));
        assert!((p - asked).abs() < 1e-9, "{label}: {p} and {asked}");
    }
    for level in [0.05, 0.5, 0.93] {
        let x = of("degrees").quantile(level).unwrap();
        let below = number(&model, &format!("P(degrees < {x:?} | {given})"));
        assert!((below - level).abs() < 1e-9, "{level}: {below}");
        let n = of("visitors").quantile(level).unwrap();
        let up_to = number(&model, &format!("P(visitors <= {n} | {given})"));
        let before = number(&model, &format!("P(visitors < {n} | {given})"));
        assert!(before <= level + 1e-9 && level <= up_to + 1e-9, "{before} {level} {up_to}");
    }
    // The mean by definition, from probabilities of single numbers and of narrow intervals.
    let mean: f64 = (150..1200)
        .map(|n| f64::from(n) * number(&model, &format!("P(visitors={n} | umbrella=yes)")))
        .sum::<f64>()
        / number(&model, "P(visitors in [150, 1200) | umbrella=yes)");
    assert!((of("visitors").mean().unwrap() - mean).abs() < 1e-6, "{mean}");
    let step = 0.05;
    let mean: f64 = (-400..1200)
        .map(|n| {
            let (low, high) = (f64::from(n) * step, f64::from(n + 1) * step);
            0.5 * (low + high)
                * number(&model, &format!("P(degrees in [{low}, {high}) | sky=rain)"))
        })
        .sum();
    assert!((number(&model, "E[degrees | sky=rain]") - mean).abs() < 0.05, "{mean}");
    let (best, p) = of("visitors").mode().unwrap();
    for n in (150..1200).step_by(7) {
        let other = number(&model, &format!("P(visitors={n} | {given})"));
        assert!(other <= p.unwrap() + 1e-12, "{n}: {other} is above that of {best}");
    }
}

#[test]
fn a_file_keeps_every_bit() {
    let model = small().with_note("sky: category".to_owned());
    let bytes = model.to_bytes().unwrap();
    let read = Model::from_bytes(&bytes).unwrap();
    assert_eq!(read.to_bytes().unwrap(), bytes);
    assert_eq!(read.circuit(), model.circuit());
    assert_eq!((read.schema(), read.info()), (model.schema(), model.info()));
    let table = weather(50, 3);
    assert_eq!(read.score(&table).unwrap(), model.score(&table).unwrap());
    // A model file is also a circuit file.
    assert_eq!(&crate::file::from_bytes(&bytes).unwrap(), &**model.circuit());
    let narrow = model.condition("sky='rain', degrees in [0, 10)").unwrap();
    let read = Model::from_bytes(&narrow.to_bytes().unwrap()).unwrap();
    assert_eq!(read.given(), narrow.given());
    assert_eq!(read.score(&table).unwrap(), narrow.score(&table).unwrap());
}

#[test]
fn damage_is_found() {
    let bytes = small().to_bytes().unwrap();
    for length in (0..bytes.len()).step_by(bytes.len() / 97) {
        assert!(Model::from_bytes(&bytes[..length]).is_err(), "{length}");
    }
    for at in (0..bytes.len()).step_by(bytes.len() / 211) {
        let mut changed = bytes.clone();
        changed[at] ^= 4;
        // Whitespace between tokens of the header is insignificant.
        if bytes[at] != b' ' {
            assert!(Model::from_bytes(&changed).is_err(), "{at}");
        }
    }
    let json = crate::file::to_json(small().circuit());
    let error = Model::from_bytes(json.as_bytes()).unwrap_err();
    assert!(matches!(error, ModelError::File(FileError::NotAModel)), "{error}");
}

#[test]
fn a_conditional_model_is_a_ratio() {
    let model = small();
    let given = "degrees=7.5, visitors in [900, 1100]";
    let narrow = model.condition(given).unwrap();
    for event in ["sky=rain", "umbrella=yes, visitors < 1000", "degrees < 8", "degrees=7.5"] {
        let ratio = number(&model, &format!("P({event} | {given})"));
        let direct = number(&narrow, &format!("P({event})"));
        assert!((ratio - direct).abs() < 1e-9 * (1.0 + ratio), "{event}: {ratio} and {direct}");
    }
    // Conditioned twice; samples respect the model's evidence.
    let twice = narrow.condition("sky=rain").unwrap();
    let ratio = number(&model, &format!("P(umbrella=yes | {given}, sky=rain)"));
    assert!((number(&twice, "P(umbrella=yes)") - ratio).abs() < 1e-9);
    let sample = twice.sample(200, 5).unwrap();
    for row in 0..200 {
        assert_eq!(sample.column("sky").unwrap().text(row), "rain");
        let n = sample.column("visitors").unwrap().number(row).unwrap();
        assert!((900.0..=1100.0).contains(&n), "{n}");
        assert!((sample.column("degrees").unwrap().number(row).unwrap() - 7.5).abs() < 1e-6);
    }
    let scores = narrow.score(&sample).unwrap();
    assert!(scores.iter().all(|s| !s.is_nan()));
    assert!(matches!(narrow.condition("degrees=3"), Err(ModelError::Impossible { .. })));
}

#[test]
fn scores_of_rows_with_holes_are_marginals() {
    let model = small();
    let text = b"sky,umbrella,degrees,visitors\nrain,,,\n,yes,12.5,\n,,,\nsun,no,,1200\n";
    let table = Table::from_csv_bytes(text, "t.csv", &CsvOptions::default()).unwrap();
    let scores = model.score(&table).unwrap();
    let asked = [
        "P(sky=rain)",
        "P(umbrella=yes, degrees=12.5)",
        "P(sky=?)",
        "P(sky=sun, umbrella=no, visitors=1200)",
    ];
    for (score, question) in scores.iter().zip(asked) {
        let log = model.ask(question).unwrap().log.unwrap();
        assert!((score - log).abs() < 1e-9, "{question}: {score} and {log}");
    }
}

#[test]
fn imputed_tables_keep_known_cells() {
    let model = small();
    let text = "id;sky;umbrella;degrees;visitors\n007;rain;NA;9.50;\n008;;no;;0012\n009;?;;;\n010;sun;no;1e1;5\n";
    let table = Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap();
    for how in [Imputation::Mean, Imputation::Median, Imputation::Mode, Imputation::Sample] {
        let filled = model.impute(&table, how, 3).unwrap();
        assert!(filled.columns().iter().all(|c| c.num_missing() == 0), "{how:?}");
        let written = String::from_utf8(filled.to_csv()).unwrap();
        for (old, new) in text.lines().zip(written.lines()) {
            for (a, b) in old.split(';').zip(new.split(';')) {
                assert!(["", "NA", "?"].contains(&a) || a == b, "{how:?}: {old} became {new}");
            }
        }
    }
    let whole = weather(20, 4);
    assert_eq!(model.impute(&whole, Imputation::Mean, 0).unwrap(), whole);
}

#[test]
fn anomalies_name_the_column_that_is_odd() {
    let model = fitted(1500);
    let mut rows = weather(60, 9).to_csv();
    rows.extend_from_slice(b"rain,yes,34.0,420\n");
    let table = Table::from_csv_bytes(&rows, "t.csv", &CsvOptions::default()).unwrap();
    let found = model.anomalies(&table, 3).unwrap();
    assert_eq!(found.len(), 3);
    let odd = found.iter().find(|a| a.row == 60).unwrap_or_else(|| panic!("{found:?}"));
    assert_eq!(odd.contributions[0].column, "degrees", "{found:?}");
    assert_eq!(odd.contributions[0].cell, "34.0");
    assert!(found[0].log_density <= found[1].log_density);
}

#[test]
fn surprises_are_those_of_the_anomalies() {
    let model = fitted(300);
    // A missing cell, and a label that was never seen.
    let text =
        "sky,umbrella,degrees,visitors\nrain,yes,34.0,420\nsun,,18.5,1200\nhail,no,7.25,80\n";
    let table = Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap();
    let found = model.surprises(&table).unwrap();
    assert_eq!(found.len(), 12);
    assert_eq!(found.iter().filter(|x| x.is_nan()).count(), 1);
    assert!(found[4 + 1].is_nan());
    let mut seen = 0;
    for anomaly in model.anomalies(&table, 3).unwrap() {
        for cell in &anomaly.contributions {
            let column = model.schema().find(&cell.column).unwrap();
            let surprise = found[4 * anomaly.row + column];
            assert!((surprise + cell.log_standardized).abs() < 1e-6, "{cell:?}: {surprise}");
            seen += 1;
        }
    }
    assert_eq!(seen, 11);
}

#[test]
fn anomaly_scores_are_ratios_of_probabilities() {
    let model = fitted(300);
    let text = "sky,umbrella,degrees,visitors\nrain,yes,,\nsun,yes,,\n,,,\nhail,no,,\n";
    let table = Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap();
    let found = model.anomaly_scores(&table, AnomalyCriterion::Cells).unwrap();
    for (row, sky) in ["rain", "sun"].into_iter().enumerate() {
        let p = |event: &str| number(&model, &format!("P({event})"));
        let (a, b) = (p(&format!("sky='{sky}'")), p("umbrella='yes'"));
        let both = p(&format!("sky='{sky}', umbrella='yes'"));
        // The uniform distribution gives a half to each of two labels.
        let anew = |own: f64, other: f64| (0.99 * own + 0.01 * 0.5) * other / both;
        let expected = 0.5 * (0.5 * (anew(a, b) + anew(b, a)) + a * b / both);
        assert!((found[row] - expected.ln()).abs() < 1e-6, "{}: {}", found[row], expected.ln());
    }
    assert!(found[1] > found[0], "an umbrella in the sun: {found:?}");
    assert_eq!(found[2], 0.0);
    assert!(found[3] > found[1], "a sky that was never seen: {found:?}");
    // A row that contradicts the evidence.
    let rainy = model.condition("sky='rain'").unwrap();
    assert_eq!(rainy.anomaly_scores(&table, AnomalyCriterion::Cells).unwrap()[1], f64::INFINITY);
    assert_eq!(rainy.anomaly_scores(&table, AnomalyCriterion::Either).unwrap()[1], f64::INFINITY);
}

#[test]
fn few_rows_of_a_model_are_strange_to_it() {
    let model = fitted(1500);
    let own = model.sample(2000, 7).unwrap();
    let found = model.anomaly_scores(&own, AnomalyCriterion::Either).unwrap();
    for s in [1.0, 2.0, 3.0] {
        let above = found.iter().filter(|score| **score > s).count() as f64 / 2000.0;
        assert!(above <= (-s).exp(), "{above} are above {s}");
    }
    // An umbrella in the sun; a temperature that does not fit a typical sky and umbrella; and an ordinary row with
    // missing values.
    let text = "sky,umbrella,degrees,visitors\nsun,yes,24.0,\nsun,no,44.0,\nsun,no,,\n,,,\n";
    let table = Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap();
    let found = model.anomaly_scores(&table, AnomalyCriterion::Either).unwrap();
    assert!(found[0] > found[2] + 1.0 && found[1] > found[2] + 1.0, "{found:?}");
    assert!(found[2] < 0.5 && found[3] < 0.5, "{found:?}");
    let density = model.anomaly_scores(&table, AnomalyCriterion::Density).unwrap();
    let logs = model.score(&table).unwrap();
    assert!(density.iter().zip(logs).all(|(score, log)| *score == -log));
}

#[test]
fn effort_is_in_what_is_tried_and_progress_in_the_units_of_the_data() {
    let table = weather(200, 1);
    let run = |effort| {
        let (mut widths, mut trials, mut last) = (vec![], 0, f64::NAN);
        let model = Fit::new()
            .effort(effort)
            .circuits(1)
            .epochs(2)
            .on_step(|p, _| {
                trials += usize::from(p.is_trial);
                if p.epoch_ended && !p.is_trial {
                    widths.push(p.width);
                    last = p.valid.unwrap();
                }
                Control::Continue
            })
            .run(&table)
            .unwrap();
        widths.dedup();
        (widths, trials, last, model)
    };
    let (widths, trials, last, model) = run(Effort::Fast);
    assert_eq!((widths, trials), (vec![8], 0));
    let history = &model.info().history;
    assert!((last - history[history.len() - 1].valid).abs() < 1e-9);
    let (widths, trials, ..) = run(Effort::Balanced);
    assert!(widths.len() > 1 && trials > 0, "{widths:?}");
    let defaults = Defaults::of(200, 5);
    assert_eq!(Defaults::of(200, 49).with_effort(Effort::Best).widths().last(), Some(&64));
    assert_eq!(defaults.with_effort(Effort::Best).widths().last(), Some(&16));
    assert_eq!(defaults.with_effort(Effort::Best).functions(), [6, 14, 28, 56]);
    assert_eq!(defaults.first_functions(), 14);
}

#[test]
fn every_table_of_odd_shape_is_fitted() {
    let fit = |text: &str, structure| {
        let table =
            Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap();
        let refused = Fit::new().structure(structure).strict().run(&table);
        assert!(matches!(refused, Err(ModelError::LittleToLearn(_))), "{text}: {refused:?}");
        Fit::new().epochs(2).structure(structure).as_is().run(&table)
    };
    for (text, question) in [
        ("a\n1\n2\n1\n", "P(a=1)"),
        ("a\nx\n", "P(a=x)"),
        ("a,b\n1,2.5\n", "P(a=1)"),
        ("a,b\nx,1.5\nx,2.5\nx,0.25\nx,7\n", "P(b < 2)"),
        ("a,b\n1,1\n1,1\n1,1\n", "P(b=1)"),
    ] {
        for structure in [StructureKind::Auto, StructureKind::Linear, StructureKind::Random] {
            let model = fit(text, structure).unwrap_or_else(|e| panic!("{text}: {e}"));
            let p = number(&model, question);
            assert!(p > 0.0 && p <= 1.0, "{text}: {p}");
        }
    }
    let error = fit("a,b\n1,2\n", StructureKind::Image).unwrap_err();
    assert!(matches!(error, ModelError::NotImages), "{error}");
}

#[test]
fn columns_that_cannot_be_learned_are_left_out_and_come_back() {
    let mut text = String::from("id,name,unit,size,toll,kind\n");
    for n in 0..200 {
        let toll = if n % 50 == 7 { "6.55" } else { "0.0" };
        let size = if n == 3 { String::new() } else { (n % 7).to_string() };
        writeln!(text, "{},person {n},cm,{size},{toll},{}", 1000 + n, n % 2).unwrap();
    }
    let table = Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap();
    let fit = || Fit::new().epochs(2).width(2);
    let model = fit().run(&table).unwrap();
    let left: Vec<&str> = model.info().left_out.iter().map(|c| c.column.as_str()).collect();
    assert_eq!(left, ["unit", "name", "id"], "{:?}", model.info().left_out);
    let kept: Vec<&str> = model.schema().columns().iter().map(|c| c.name.as_str()).collect();
    assert_eq!(kept, ["size", "toll", "kind"]);
    // Dropped columns come back unchanged.
    let filled = model.impute(&table, Imputation::Mode, 0).unwrap();
    assert_eq!(filled.num_columns(), 6);
    for name in left {
        assert_eq!(filled.column(name).unwrap(), table.column(name).unwrap());
    }
    assert_eq!(filled.column("size").unwrap().num_missing(), 0);
    assert_eq!(Model::from_bytes(&model.to_bytes().unwrap()).unwrap().info(), model.info());
    let strict = fit().strict().run(&table);
    assert!(matches!(strict, Err(ModelError::LittleToLearn(_))));
}

/// Whole numbers in a small range and as digits, cents, 0 and 1, a few numbers, and dates.
fn grids(rows: usize) -> Table {
    let mut text = String::from("few,wide,cents,flag,level,day\n");
    for n in 0..rows {
        let (day, level) = (n % 27 + 1, [0.5, 1.0, 2.0][n % 3]);
        let (wide, cents) = (n * 7919 % 5000, n * 31 % 700);
        let _ = writeln!(
            text,
            "{},{wide},{}.{:02},{},{level},2021-03-{day:02}",
            n % 12,
            cents / 100,
            cents % 100,
            n % 2
        );
    }
    Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap()
}

/// All days of the column are in one month, so only a later part than the year tells that a day is outside.
#[test]
fn days_of_months_never_seen_are_scored() {
    let model = Fit::new().epochs(2).width(4).run(&grids(400)).unwrap();
    let score = |day: &str| {
        let text = format!("few,wide,cents,flag,level,day\n5,1234,3.21,1,1.0,{day}\n");
        let table = Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default());
        model.score(&table.unwrap()).unwrap()[0]
    };
    let usual = score("2021-03-05");
    for day in ["2021-02-05", "2021-04-05", "2020-03-05", "2022-03-05"] {
        let unusual = score(day);
        assert!(unusual.is_finite() && unusual < usual - 3.0, "{day}: {unusual}, {usual}");
    }
}

#[test]
fn numbers_between_those_seen_are_outside() {
    let kinds = [("wide".to_owned(), KindHint::Digits)].into();
    let infer = InferOptions { kinds, ..InferOptions::default() };
    let options = ModelOptions { infer, ..ModelOptions::default() };
    let model = Fit::with(options).epochs(3).width(4).run(&grids(400)).unwrap();
    let read = |rows: &[&str]| {
        let text = format!("few,wide,cents,flag,level,day\n{}\n", rows.join("\n"));
        Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap()
    };
    let usual = "5,1234,3.21,1,1.0,2021-03-05";
    let odd = [
        "5.25,1234,3.21,1,1.0,2021-03-05",
        "5,1234.1,3.21,1,1.0,2021-03-05",
        "5,1234,3.2125,1,1.0,2021-03-05",
        "5,1234,3.21,0.5,1.0,2021-03-05",
        "5,1234,3.21,1,0.75,2021-03-05",
        "5,1234,3.21,1,1.0,2021-03-05 07:00",
    ];
    let score = model.score(&read(&[usual])).unwrap()[0];
    let refused = EncodeOptions { unseen: Unseen::Refuse, ..EncodeOptions::default() };
    let lenient = EncodeOptions { unseen: Unseen::Missing, ..EncodeOptions::default() };
    for (column, row) in odd.iter().enumerate() {
        let table = read(&[usual, row]);
        let scores = model.score(&table).unwrap();
        assert_eq!(scores[0].to_bits(), score.to_bits());
        assert!(scores[1].is_finite() && scores[1] < score - 3.0, "{row}: {scores:?}");
        let encoded = model.schema().encode(&table).unwrap();
        assert_eq!(encoded.outside().collect::<Vec<_>>(), [(1, column)], "{row}");
        let name = &model.schema().columns()[column].name;
        let anomaly = &model.anomalies(&table, 1).unwrap()[0];
        assert_eq!((anomaly.row, &anomaly.contributions[0].column), (1, name), "{row}");
        assert!(model.score_with(&table, refused).is_err(), "{row}");
        let rows = model.schema().encode_with(&table, lenient).unwrap();
        assert!(rows.outside().len() == 0 && rows.row(1).iter().any(|x| x.is_nan()), "{row}");
        let predicted = model.predict(&table, "few").unwrap().mean().unwrap();
        assert!(predicted.iter().all(|x| x.is_finite()), "{row}");
    }
    // Otherwise, a number off the grid counts as the nearest grid point.
    let near = model.predict(&read(&[usual, odd[1], odd[2]]), "few").unwrap().mean().unwrap();
    assert!(near.iter().all(|x| x.to_bits() == near[0].to_bits()), "{near:?}");
    let columns = model.schema().columns();
    let expected = score + columns[1].log_between();
    assert!((model.score(&read(&[odd[1]])).unwrap()[0] - expected).abs() < 1e-9);
    let holes = read(&["5.25,1234.1,3.2125,,1.0,2021-03-05 07:00"]);
    let filled = model.impute(&holes, Imputation::Median, 0).unwrap();
    assert_eq!(filled.column("cents").unwrap().text(0), "3.2125");
    assert_eq!(filled.column("flag").unwrap().num_missing(), 0);
    for question in ["P(few = 5.25)", "P(wide = 7.5)", "P(cents = 3.2125)", "P(flag = 0.5)"] {
        assert_eq!(number(&model, question), 0.0, "{question}");
    }
    let bytes = model.compress(&read(&odd)).unwrap();
    assert_eq!(model.decompress(&bytes).unwrap().to_csv(), read(&odd).to_csv());
    // A condition holds for the nearest number.
    let given = model.condition("wide < 2000").unwrap();
    assert!(given.score(&read(&[odd[1]])).unwrap()[0].is_finite());
}

/// Regression: a score was the density in the middle of a cell times its length, and functions that change within a cell
/// could be large in the middle only.
#[test]
fn scores_on_grids_are_the_probabilities_of_cells() {
    let mut text = String::from("coarse,fine,zeros\n");
    for n in 0..300_u32 {
        let (a, b) = (n * 7919 % 13, n * 31 % 4000);
        let zeros = if n % 3 == 0 { 0 } else { b / 40 };
        let _ = writeln!(text, "{}.5,{}.{:02},{zeros}.0", a + b / 500, b / 100, b % 100);
    }
    let table = Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap();
    let kinds = ["coarse", "fine", "zeros"]
        .map(|name| (name.to_owned(), KindHint::Number { atoms_from: 0.0 }));
    let infer = InferOptions { kinds: kinds.into(), ..InferOptions::default() };
    let options = ModelOptions { infer, functions: Some(80), ..ModelOptions::default() };
    let model = Fit::with(options).epochs(30).width(6).run(&table).unwrap();
    let is_grid = |c: &ColumnSchema| matches!(&c.kind, ColumnKind::Number(n) if n.unit().is_some());
    assert!(model.schema().columns().iter().all(is_grid));
    let scores = model.score(&table).unwrap();
    for (row, score) in scores.iter().enumerate().step_by(7) {
        let cell = |c: &Column| format!("{}={}", c.name(), c.text(row));
        let cells: Vec<String> = table.columns().iter().map(cell).collect();
        let p = number(&model, &format!("P({})", cells.join(", ")));
        assert!((score - p.ln()).abs() < 1e-9, "{cells:?}: {score}, {}", p.ln());
    }
    // The probabilities of all cells sum to 1, and their mean is E.
    let cell = |n: u32| 0.5 * f64::from(n);
    let cells = (0..120).map(|n| (cell(n), number(&model, &format!("P(coarse={})", cell(n)))));
    let cells: Vec<(f64, f64)> = cells.collect();
    let (total, mean) = cells.iter().fold((0.0, 0.0), |(t, m), (x, p)| (t + p, m + x * p));
    assert!((total - 1.0).abs() < 1e-6, "{total}");
    let (found, from_table) = (number(&model, "E[coarse]"), |c: &Column| {
        (0..c.len()).filter_map(|row| c.number(row)).sum::<f64>() / c.len() as f64
    });
    assert!((found - mean).abs() < 1e-3, "{found}, {mean}");
    assert!((found - from_table(table.column("coarse").unwrap())).abs() < 0.5, "{found}");
}

/// Regression (issue 13): 0.5, 1.5, 2.5, … were taken for multiples of 0.5, and half of the mass went to whole numbers.
#[test]
fn samples_lie_on_a_grid_with_an_offset() {
    let mut text = String::from("half,seven\n");
    for n in 0..400_u32 {
        let seven = if n % 10 == 0 { String::new() } else { (n * n % 83 * 10 + 7).to_string() };
        let _ = writeln!(text, "{}.5,{seven}", n * 7919 % 61);
    }
    let table = Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap();
    let model = Fit::new().epochs(5).width(4).run(&table).unwrap();
    let model = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let numbers = |table: &Table, column: &str| -> Vec<f64> {
        let column = table.column(column).unwrap();
        (0..column.len()).map(|row| column.number(row).unwrap()).collect()
    };
    let mut tables = vec![model.sample(2000, 1).unwrap()];
    for how in [Imputation::Mode, Imputation::Mean, Imputation::Sample] {
        tables.push(model.impute(&table, how, 1).unwrap());
    }
    for table in &tables {
        assert!(numbers(table, "half").iter().all(|x| *x > 0.0 && x.fract() == 0.5));
        assert!(numbers(table, "seven").iter().all(|x| *x > 0.0 && x % 10.0 == 7.0));
    }
    for (question, expected) in [
        ("P(half = 3)", 0.0),
        ("P(half in {1, 2, 3})", 0.0),
        ("P(seven = 10)", 0.0),
        ("P(seven > 7, seven < 17)", 0.0),
        ("P(seven < 0)", 0.0),
        ("P(half >= 0)", 1.0),
    ] {
        assert_eq!(number(&model, question), expected, "{question}");
    }
    let [below, at, above] = ["<", "=", ">"].map(|op| number(&model, &format!("P(seven {op} 27)")));
    assert!(at > 0.0 && (below + at + above - 1.0).abs() < 1e-12, "{below}, {at}, {above}");
    assert!((number(&model, "P(seven <= 29)") - below - at).abs() < 1e-12);
    assert!((number(&model, "P(seven < 27.5)") - below - at).abs() < 1e-12);
    // Numbers off the grid still have a score.
    let off = b"half,seven\n3,12\n-2.5,-3\n";
    let off = Table::from_csv_bytes(off, "t.csv", &CsvOptions::default()).unwrap();
    assert!(model.score(&off).unwrap().iter().all(|score| score.is_finite()));
}

#[test]
fn rows_count_by_their_weights() {
    let table = weather(600, 3);
    let sky = table.column("sky").unwrap();
    let is_rain = |row: usize| sky.text(row) == "rain";
    let weights = (0..600).map(|row| if is_rain(row) { 3.0 } else { 0.5 }).collect();
    let mut columns = table.columns().to_vec();
    columns.push(Column::numbers("weight", weights));
    let weighed = Table::new(columns).unwrap();
    let fit = || in_digits().epochs(15).width(4);
    let model = fit().weights("weight").run(&weighed).unwrap();
    assert!(model.schema().columns().iter().all(|c| c.name != "weight"));
    assert_eq!((model.info().rows, model.info().valid_rows), (540, 60));
    let rain = (0..600).filter(|&row| is_rain(row)).count() as f64;
    let expected = 3.0 * rain / (3.0 * rain + 0.5 * (600.0 - rain));
    let found = number(&model, "P(sky='rain')");
    assert!((found - expected).abs() < 0.04, "{found}, not {expected}");
    // Equal weights change nothing.
    let mut columns = table.columns().to_vec();
    columns.push(Column::integers("weight", vec![Some(7); 600]));
    let alike = fit().weights("weight").run(&Table::new(columns).unwrap()).unwrap();
    assert_eq!(alike.to_bytes().unwrap(), fit().run(&table).unwrap().to_bytes().unwrap());
}

#[test]
fn every_value_has_a_score() {
    let model = fitted(400);
    let seen = Table::from_csv_bytes(
        b"sky,umbrella,degrees,visitors\nrain,yes,9.5,420\n",
        "t.csv",
        &CsvOptions::default(),
    )
    .unwrap();
    let text = b"sky,umbrella,degrees,visitors\nhail,yes,9.5,420\nrain,yes,9.5,99999999\nrain,maybe,1e6,420\nrain,yes,9.5,420\n";
    let table = Table::from_csv_bytes(text, "t.csv", &CsvOptions::default()).unwrap();
    let usual = model.score(&seen).unwrap()[0];
    let scores = model.score(&table).unwrap();
    assert!(scores.iter().all(|s| s.is_finite()), "{scores:?}");
    assert!(scores[..3].iter().all(|s| *s < usual - 1.0), "{scores:?} next to {usual}");
    assert_eq!(scores[3].to_bits(), usual.to_bits());
    let encoded = model.schema().encode(&table).unwrap();
    assert_eq!(encoded.outside().collect::<Vec<_>>(), [(0, 0), (1, 3), (2, 1)]);
    // The odd cell is what makes a row anomalous.
    for (row, column) in [(0, "sky"), (1, "visitors")] {
        let anomaly = model.anomalies(&table, 4).unwrap().into_iter().find(|a| a.row == row);
        assert_eq!(anomaly.unwrap().contributions[0].column, column);
    }
    // Treated as missing, and rejected.
    let with = |unseen| EncodeOptions { unseen, absent: Mismatch::Error };
    let lenient = model.schema().encode_with(&table, with(Unseen::Missing)).unwrap();
    assert_eq!(model.anomalies_encoded(&table, &lenient, 2).unwrap().len(), 2);
    assert!(model.score_with(&table, with(Unseen::Refuse)).is_err());
    // Below a bound that the fit has inferred.
    let positive = Table::new(vec![
        Column::numbers("x", (1..200).map(|n| f64::from(n * n) / 7.0).collect()),
        Column::labels("c", (1..200).map(|n| Some(if n % 2 == 0 { "a" } else { "b" }))),
    ]);
    let model = Fit::new().epochs(2).width(2).run(&positive.unwrap()).unwrap();
    let below = Table::from_csv_bytes(b"x,c\n-3.5,a\n3.5,a\n", "t.csv", &CsvOptions::default());
    let scores = model.score(&below.unwrap()).unwrap();
    assert!(scores[0].is_finite() && scores[0] < scores[1] - 1.0, "{scores:?}");
    assert_eq!(number(&model, "P(x = -3.5)"), 0.0);
    let model = fitted(400);
    // A model conditioned on evidence that a row contradicts.
    let rainy = model.condition("sky='rain'").unwrap();
    assert_eq!(rainy.score(&table).unwrap()[0], f64::NEG_INFINITY);
    assert!(rainy.score(&table).unwrap()[1].is_finite());
}

#[test]
fn truths_are_filled_in_the_words_of_the_table() {
    let table = |wet: fn(bool) -> Option<&'static str>| {
        let rows = (0..120).map(|n| n % 3 == 0);
        let sky = rows.clone().map(|rain| Some(if rain { "rain" } else { "sun" }));
        let wet = Column::labels("wet", rows.map(wet));
        Table::new(vec![Column::labels("sky", sky), wet]).unwrap()
    };
    let numbers = |holes: bool| {
        let cell = |n: i64| (!holes || n > 5).then_some(i64::from(n % 3 == 0));
        let sky = (0..120).map(|n| Some(if n % 3 == 0 { "rain" } else { "sun" }));
        let wet = Column::integers("wet", (0..120).map(cell));
        Table::new(vec![Column::labels("sky", sky), wet]).unwrap()
    };
    let fit = |table: &Table| Fit::new().epochs(20).width(2).run(table).unwrap();
    let words = table(|wet| Some(if wet { "yes" } else { "no" }));
    // A model of labels fills numbers, and a model of numbers fills labels.
    let filled = fit(&words).impute(&numbers(true), Imputation::Mode, 0).unwrap();
    assert_eq!(filled, numbers(false));
    let model = fit(&numbers(false));
    assert_eq!(number(&model, "P(wet=true)"), number(&model, "P(wet=1)"));
    let mut rows: Vec<String> = words
        .to_csv()
        .split(|&b| b == b'\n')
        .map(|l| String::from_utf8(l.to_vec()).unwrap())
        .collect();
    rows[1] = "rain,".to_owned();
    rows[2] = "sun,".to_owned();
    let holes =
        Table::from_csv_bytes(rows.join("\n").as_bytes(), "t.csv", &CsvOptions::default()).unwrap();
    let filled = model.impute(&holes, Imputation::Mode, 0).unwrap();
    assert_eq!(
        (filled.columns()[1].text(0), filled.columns()[1].text(1)),
        ("yes".into(), "no".into())
    );
}

#[test]
fn dates_are_learned_in_parts_and_come_back_as_they_were_written() {
    let mut text = String::from("at,shift\n");
    for n in 0..600 {
        let (hour, shift) = if n % 2 == 0 { (7 + n % 3, "early") } else { (19 + n % 3, "late") };
        let (month, day) = (1 + n * 7 % 12, 1 + n * 11 % 28);
        writeln!(text, "2019-{month:02}-{day:02} {hour:02}:30,{shift}").unwrap();
    }
    let read = |text: &str| {
        Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap()
    };
    let table = read(&text);
    let model = Fit::new().epochs(20).width(4).run(&table).unwrap();
    assert_eq!(model.schema().columns()[0].kind.name(), "a date and time");
    let names: Vec<String> = model.schema().variables().into_iter().map(|v| v.name).collect();
    assert_eq!(names[..5], ["at.year", "at.month", "at.day", "at.hour", "at.minute"]);
    assert!(number(&model, "P(at.hour in [7, 10) | shift=early)") > 0.9);
    assert!(number(&model, "P(at.hour >= 12 | shift=early)") < 0.1);
    assert!((number(&model, "P(at.minute = 30)") - 1.0).abs() < 1e-9);
    assert_eq!(number(&model, "P(at.minute != 30)"), 0.0);
    let before = number(&model, "P(at < '2019-07-01 00:00')");
    let after = number(&model, "P(at in ['2019-07-01 00:00', 2020-01-01))");
    assert!((before + after - 1.0).abs() < 1e-9, "{before} and {after}");
    let (first, one) = (number(&model, "P(at.month <= 6)"), number(&model, "P(at.month in {1})"));
    assert!((before - first).abs() < 1e-9 && one < first, "{before}, {first}, {one}");
    let weekend = number(&model, "P(at.weekday in {Sat, Sun})");
    assert!(weekend > 0.1 && weekend < 0.5, "{weekend}");
    assert!(number(&model, "P(at.weekday = Sat, at.weekday = Mon)") == 0.0);
    // The output is formatted like the input, and is a valid date.
    let sample = model.sample(200, 3).unwrap();
    assert_eq!(model.schema().encode(&sample).unwrap().outside().len(), 0);
    assert!(sample.columns()[0].text(0).starts_with("2019-"));
    let median = model.ask("median(at)").unwrap().value;
    assert!(matches!(median, AnswerValue::Label(text) if text.len() == 16));
    let holes = read("at,shift\n,early\n2019-03-04 07:30,\n");
    for how in [Imputation::Mode, Imputation::Mean, Imputation::Median, Imputation::Sample] {
        let filled = model.impute(&holes, how, 1).unwrap();
        assert!(filled.columns()[0].text(0).ends_with(":30"), "{how:?}");
    }
    // Later years have a probability too, and other text is rejected.
    let later = read("at,shift\n2031-01-01 07:30,early\n2019-01-01 07:30,early\n");
    let scores = model.score(&later).unwrap();
    assert!(scores[0].is_finite() && scores[0] < scores[1], "{scores:?}");
    assert!(model.score(&read("at,shift\nsoon,early\n")).is_err());
    let error = model.ask("P(at < soon)").unwrap_err().to_string();
    assert!(error.contains("expected a date or time"), "{error}");
    let error = model.ask("P(at.hour = noon)").unwrap_err().to_string();
    assert!(error.contains("not a value of 'hour'"), "{error}");
    let bad = read("d,x\n2019-02-28,1\n2019-02-31,2\n2019-03-01,1\n");
    let error = Fit::new().run(&bad).unwrap_err();
    assert!(error.to_string().contains("there is no date or time '2019-02-31'"), "{error}");
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.schema(), model.schema());
    assert_eq!(model.decompress(&model.compress(&table).unwrap()).unwrap(), table);
}

#[test]
fn labels_without_a_place_exclude_each_other() {
    let labels: Vec<String> = (0..400).map(|n| format!("city {}", n % 310)).collect();
    let table = Table::new(vec![
        Column::labels("city", labels.iter().map(|l| Some(l.as_str()))),
        Column::integers("size", (0..400).map(|n| Some(n % 3))),
    ])
    .unwrap();
    let model = Fit::new().epochs(2).width(2).as_is().run(&table).unwrap();
    assert!(number(&model, "P(city=Paris)") > 0.0);
    assert_eq!(number(&model, "P(city=Paris, city=Rome)"), 0.0);
    assert_eq!(number(&model, "P(city in {Paris, Oslo}, city in {Rome, 'city 3'})"), 0.0);
    let both = number(&model, "P(city in {Paris, Rome}, city in {Rome, Oslo})");
    assert_eq!(both, number(&model, "P(city=Rome)"));
}

#[test]
fn a_question_that_cannot_be_read_is_pointed_at() {
    let model = small();
    for (text, position, part) in [
        ("", 1, "expected P(…)"),
        ("Q(sky=rain)", 1, "found 'Q'"),
        ("P sky", 3, "expected '('"),
        ("P(ski=rain)", 3, "did you mean 'sky'?"),
        ("P(sky=rian)", 7, "did you mean 'rain'?"),
        ("P(sky~rain)", 3, "no column 'sky~rain'"),
        ("P(sky rain)", 7, "'not in' or 'is' after the column"),
        ("P(sky=)", 7, "expected a value"),
        ("P(sky='rain)", 7, "not closed"),
        ("P(sky in {rain, snow})", 17, "'snow'"),
        ("P(degrees in {1, 2})", 11, "ask for an interval"),
        ("P(degrees in [2, 1))", 11, "not in order"),
        ("P(sky in [1, 2))", 7, "ask for a set"),
        ("P(sky < 3)", 9, "ask for a set"),
        ("P(degrees < warm)", 13, "expected a number"),
        ("P(visitors=many)", 12, "not a whole number"),
        ("P(sky=rain or degrees=3)", 12, "probability 0"),
        ("P(not degrees=3)", 3, "probability 0"),
        ("P((sky=rain)", 13, "expected ',', '|' or ')'"),
        ("P((sky=rain", 12, "expected ')'"),
        ("P(1 < sky < 2)", 3, "ask for a set"),
        ("P(1 < ski)", 7, "did you mean 'sky'?"),
        ("P(degres < 1)", 3, "did you mean 'degrees'?"),
        ("corr(degrees)", 13, "another column"),
        ("argmax(sky, sky)", 13, "named twice"),
        ("MI(sky, umbrella)", 17, "expected ';'"),
        ("P(sky=rain | )", 14, "expected the name of a column"),
        ("P(sky=rain", 11, "expected ',', '|' or ')'"),
        ("P(sky=rain) and more", 13, "remove the rest"),
        ("quantile(degrees)", 17, "expected ','"),
        ("quantile(degrees, 3)", 19, "from 0 to 1"),
        ("E(temperature)", 3, "no column"),
    ] {
        match Question::parse(model.schema(), text).unwrap_err() {
            ModelError::Query(QueryError::Syntax { message, position: at, .. }) => {
                assert!(message.contains(part), "{text}: {message}");
                assert_eq!(at, position, "{text}: {message}");
            }
            other => panic!("{text}: {other}"),
        }
    }
    assert!(matches!(model.ask("E[sky]"), Err(ModelError::NoNumbers { .. })));
    let impossible = model.ask("P(umbrella=yes | visitors in [3, 4), visitors > 7)");
    assert!(matches!(impossible, Err(ModelError::Impossible { .. })), "{impossible:?}");
    assert_eq!(number(&model, "P(visitors in [3, 4), visitors > 7)"), 0.0);
}

/// Events obey the laws of probability under any combination.
#[test]
fn events_are_joined_by_and_or_and_not() {
    let model = small();
    let p = |event: &str| number(&model, &format!("P({event})"));
    let events = [
        "sky=rain",
        "umbrella == True",
        "umbrella and not sky=sun",
        "umbrella != 'yes'",
        "visitors in [150, 1200)",
        "not (visitors > 300)",
        "visitors not in {3, 700}",
        "degrees < 12",
        "3 <= degrees < 20.5",
        "1000 > visitors",
        "sky=rain and degrees > 5 or umbrella=no",
    ];
    for a in events {
        let not = p(&format!("not ({a})"));
        assert!((p(a) + not - 1.0).abs() < 1e-9, "{a}: {} and {not}", p(a));
        assert_eq!(p(&format!("({a}) and not ({a})")), 0.0, "{a}");
        assert!((p(&format!("{a} or not ({a})")) - 1.0).abs() < 1e-9, "{a}");
        for b in events {
            let (both, either) = (p(&format!("({a}) and ({b})")), p(&format!("({a}) or ({b})")));
            assert!((p(a) + p(b) - both - either).abs() < 1e-9, "{a}; {b}");
            let morgan = p(&format!("not (not ({a}) or not ({b}))"));
            assert!((morgan - both).abs() < 1e-9, "{a}; {b}: {morgan}, not {both}");
        }
    }
    assert_eq!(p("3 <= degrees < 20.5"), p("degrees in [3, 20.5)"));
    assert_eq!(p("20.5 > degrees >= 3"), p("degrees in [3, 20.5)"));
    // Evidence, models and samples accept them too.
    let given = "sky=rain or 500 <= visitors < 700";
    let ratio = p(&format!("({given}) and umbrella=yes")) / p(given);
    assert!((number(&model, &format!("P(umbrella=yes | {given})")) - ratio).abs() < 1e-9);
    let conditioned = model.condition(given).unwrap();
    assert!((number(&conditioned, "P(umbrella=yes)") - ratio).abs() < 1e-9);
    let sample = model.sample_given(&known(&model, given), 100, 1).unwrap();
    let question = Question::parse(model.schema(), &format!("P({given})")).unwrap();
    let support = model.support(&question, &sample).unwrap();
    assert_eq!((support.given, support.event), (100, Some(100)));
}

#[test]
fn numbers_that_were_never_seen_are_impossible_in_questions() {
    let model = small();
    for event in
        ["visitors=99999999", "visitors > 99999998", "visitors in {99999999}", "visitors=-7"]
    {
        assert_eq!(number(&model, &format!("P({event})")), 0.0, "{event}");
        assert!((number(&model, &format!("P(not {event})")) - 1.0).abs() < 1e-12, "{event}");
    }
    // All other numbers share the catch-all value.
    let text = format!("n,c\n{}", "7,a\n7,b\n".repeat(40));
    let table = Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap();
    let options = ModelOptions { as_is: true, epochs: Some(3), ..ModelOptions::default() };
    let model = Fit::with(options).run(&table).unwrap();
    let p = |event: &str| number(&model, &format!("P({event})"));
    assert!(p("n=8") > 0.0 && p("n=8") <= p("n > 7") && p("n > 7") < 1.0 - p("n=7"));
    assert!((p("n <= 7") + p("n > 7") - 1.0).abs() < 1e-12);
    assert!((p("n != 8") + p("n = 8") - 1.0).abs() < 1e-12);
    assert!((p("n in {8, 9}") - p("n=8") - p("n=9")).abs() < 1e-12);
    assert!((p("n > 7 and n < 10") - p("n in {8, 9}")).abs() < 1e-12);
    assert_eq!(p("n=8, n=9"), 0.0);
    let row = Table::from_csv_bytes(b"n,c\n8,a\n", "t.csv", &CsvOptions::default()).unwrap();
    let score = model.score(&row).unwrap()[0];
    assert!((score - p("n=8, c=a").ln()).abs() < 1e-9);
}

#[test]
fn moments_and_information_are_those_of_the_distribution() {
    let model = small();
    let ask = |question: &str| number(&model, question);
    for given in ["", " | sky=rain", " | visitors in [150, 1200)"] {
        let variance = ask(&format!("var(degrees{given})"));
        assert!((ask(&format!("std(degrees{given})")).powi(2) - variance).abs() < 1e-9 * variance);
        let r = ask(&format!("corr(degrees, visitors{given})"));
        assert!((-1.0..=1.0).contains(&r) && r != 0.0, "{r}");
        assert!((ask(&format!("corr(degrees, degrees{given})")) - 1.0).abs() < 1e-9);
        // Computed by enumerating the labels.
        let p =
            |sky: &str, umbrella: &str| ask(&format!("P(sky={sky}, umbrella={umbrella}{given})"));
        let (mut joint, mut information) = (0.0, 0.0);
        for sky in ["rain", "sun"] {
            for umbrella in ["yes", "no"] {
                let q = p(sky, umbrella);
                let a = ask(&format!("P(sky={sky}{given})"));
                let b = ask(&format!("P(umbrella={umbrella}{given})"));
                if q > 0.0 {
                    joint -= q * q.ln();
                    information += q * (q / (a * b)).ln();
                }
            }
        }
        assert!((ask(&format!("H(sky, umbrella{given})")) - joint).abs() < 1e-9, "{given}");
        let found = ask(&format!("MI(sky; umbrella{given})"));
        assert!((found - information).abs() < 1e-9, "{given}: {found}, not {information}");
    }
    assert_eq!(model.ask("H(sky)").unwrap().error, None);
    assert!((ask("MI(sky; sky)") - ask("H(sky)")).abs() < 1e-9);
    // For a density: by a sum over small steps, and by samples.
    let found = model.ask("H(degrees)").unwrap();
    assert_eq!(found.kind, "differential entropy");
    let (mut sum, step) = (0.0, 0.05);
    for n in -600..1200 {
        let low = f64::from(n) * step;
        let q = ask(&format!("P(degrees in [{low}, {}))", low + step));
        sum -= if q > 0.0 { q * (q / step).ln() } else { 0.0 };
    }
    let (x, error) = (found.number().unwrap(), found.error.unwrap());
    assert!(error > 0.0 && (x - sum).abs() < 5.0 * error + 1e-3, "{x} ± {error}, not {sum}");
    let found = model.ask("MI(sky; degrees)").unwrap();
    assert!(found.error.unwrap() < 0.05 && found.number().unwrap() > 0.1, "{found:?}");
}

#[test]
fn the_most_likely_row_is_found_and_certain() {
    let model = small();
    for given in ["", " | umbrella=yes", " | visitors in [150, 1200)"] {
        let found = model.ask(&format!("argmax(sky, umbrella{given})")).unwrap();
        let mut best = (0.0, String::new());
        for sky in ["rain", "sun"] {
            for umbrella in ["no", "yes"] {
                let q = number(&model, &format!("P(sky={sky}, umbrella={umbrella}{given})"));
                if q > best.0 {
                    best = (q, format!("sky={sky}, umbrella={umbrella}"));
                }
            }
        }
        assert_eq!(found.to_string(), best.1, "{given}");
        assert!((found.probability.unwrap() - best.0).abs() < 1e-9 && found.bound.is_none());
        // All digits, one by one.
        let found = model.ask(&format!("argmax(visitors{given})")).unwrap();
        let AnswerValue::Whole(x) = found.value else { panic!("{found:?}") };
        let p = |x: i64| number(&model, &format!("P(visitors={x}{given})"));
        let best = (0..2100).map(p).fold(0.0, f64::max);
        assert!((p(x) - best).abs() < 1e-12 && found.bound.is_none(), "{given}: {x}, {best}");
        assert!((found.probability.unwrap() - best).abs() < 1e-9);
    }
    assert!(model.ask("argmax(sky, degrees)").unwrap_err().to_string().contains("degrees"));
}

#[test]
fn whole_numbers_beyond_floats_are_told_apart() {
    let first = 9_007_199_254_740_992_i64;
    let rows = (0..200).map(|n| Some(first + n % 5 * n % 7));
    let column = Column::integers("id", rows);
    let other = Column::labels("c", (0..200).map(|n| Some(if n % 2 == 0 { "a" } else { "b" })));
    let table = Table::new(vec![column, other]).unwrap();
    let infer = InferOptions {
        kinds: [("id".to_owned(), KindHint::Digits)].into(),
        ..InferOptions::default()
    };
    let options = ModelOptions { infer, as_is: true, epochs: Some(3), ..ModelOptions::default() };
    let model = Fit::with(options).run(&table).unwrap();
    let p = |event: &str| number(&model, &format!("P({event})"));
    let (mut sum, mut best) = (0.0, (0.0, 0));
    for x in first..first + 7 {
        assert!(
            (p(&format!("id <= {x}")) - p(&format!("id < {x}")) - p(&format!("id = {x}"))).abs()
                < 1e-12
        );
        sum += p(&format!("id = {x}"));
        assert!((p(&format!("id < {}", x + 1)) - sum).abs() < 1e-12, "{x}");
        if p(&format!("id = {x}")) > best.0 {
            best = (p(&format!("id = {x}")), x);
        }
    }
    assert_eq!(model.ask("argmax(id)").unwrap().value, AnswerValue::Whole(best.1));
}

/// As floats, some of them would be equal.
#[test]
fn the_ends_of_all_whole_numbers_are_told_apart() {
    let values = [i64::MIN, i64::MIN + 1, 0, i64::MAX - 1, i64::MAX];
    let column = Column::integers("a", (0..200).map(|n| Some(values[n * n % 11 % 5])));
    let other = Column::labels("c", (0..200).map(|n| Some(if n % 2 == 0 { "a" } else { "b" })));
    let table = Table::new(vec![column, other]).unwrap();
    let options = ModelOptions { as_is: true, epochs: Some(3), ..ModelOptions::default() };
    let model = Fit::with(options).run(&table).unwrap();
    let p = |event: &str| number(&model, &format!("P({event})"));
    let is = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a}, {b}");
    for x in values {
        is(p(&format!("a <= {x}")) - p(&format!("a < {x}")), p(&format!("a = {x}")));
    }
    is(p(&format!("a > {}", i64::MAX - 1)), p(&format!("a = {}", i64::MAX)));
    is(p(&format!("a < {}", i64::MIN + 1)), p(&format!("a = {}", i64::MIN)));
    is(p(&format!("a >= {}", i64::MIN)), 1.0);
    assert_ne!(p(&format!("a = {}", i64::MAX)), p(&format!("a = {}", i64::MAX - 1)));
}

/// All columns together, each one separately, and as a ratio of probabilities: several cases, sets, intervals, a value.
#[test]
fn all_posteriors_come_from_one_pass() {
    let model = small();
    let columns = [0, 1, 2, 3];
    for given in
        ["", "umbrella='yes'", "visitors in [150, 1200)", "sky=rain, degrees < 12", "degrees=9.5"]
    {
        let cases = known(&model, given).cases().to_vec();
        let together = model.distributions_of(&columns, cases.clone()).unwrap();
        for (column, found) in columns.iter().zip(&together) {
            let name = model.schema().columns()[*column].name.clone();
            let alone = model.distribution(&name, &known(&model, given)).unwrap();
            assert_eq!(found.mode().unwrap(), alone.mode().unwrap(), "{given}: {name}");
            if let Some(p) = found.probabilities().unwrap() {
                for (label, p) in p {
                    let question = format!("P({name}='{label}' | {given})").replace(" | )", ")");
                    let asked = number(&model, &question);
                    assert!((p - asked).abs() < 1e-9, "{question}: {p}, not {asked}");
                }
            } else {
                for x in [4.0, 9.6, 700.0] {
                    let question = format!("P({name} <= {x} | {given})").replace(" | )", ")");
                    let asked = number(&model, &question);
                    let cdf = found.cdf(x).unwrap();
                    assert!((cdf - asked).abs() < 1e-9, "{question}: {cdf}, not {asked}");
                }
            }
        }
        if !given.contains("degrees=") {
            let degrees = &together[2];
            let slope = (degrees.cdf(10.001).unwrap() - degrees.cdf(9.999).unwrap()) / 0.002;
            let density = degrees.density(10.0).unwrap();
            assert!(
                (slope - density).abs() < 1e-5 * density.max(1.0),
                "{given}: {slope}, {density}"
            );
        }
    }
    assert!(model.distributions_of(&columns, Vec::new()).is_err());
}

#[test]
fn a_smaller_model_is_as_near_as_it_says() {
    let rng = &mut ChaCha8Rng::seed_from_u64(8);
    let mut cells: Vec<Vec<&str>> = vec![Vec::new(); 5];
    for _ in 0..300 {
        let mut bit = rng.random::<bool>();
        for column in &mut cells {
            bit = if rng.random::<f64>() < 0.7 { bit } else { rng.random() };
            column.push(if bit { "yes" } else { "no" });
        }
    }
    let column = |(n, c): (usize, Vec<&'static str>)| {
        Column::labels(format!("c{n}"), c.into_iter().map(Some))
    };
    let table = Table::new(cells.into_iter().enumerate().map(column).collect()).unwrap();
    let model = Fit::new().epochs(8).width(4).run(&table).unwrap();
    for budget in [Budget::Error(0.0), Budget::Error(0.05), Budget::Width(2), Budget::Width(1)] {
        let smaller = model.truncate(budget).unwrap();
        let distance = smaller.distance.unwrap();
        assert!(distance <= smaller.bound + 1e-7, "{budget:?}: {distance} over {}", smaller.bound);
        assert!(smaller.model.circuit().num_parameters() <= model.circuit().num_parameters());
        // By a sum over all rows with labels.
        let mut overlap = 0.0;
        for n in 0..32 {
            let word = |c: usize| if n >> c & 1 == 1 { "yes" } else { "no" };
            let row: Vec<String> = (0..5).map(|c| format!("c{c}={}", word(c))).collect();
            let question = format!("P({})", row.join(", "));
            overlap += (number(&model, &question) * number(&smaller.model, &question)).sqrt();
        }
        let expected = (1.0 - overlap).max(0.0).sqrt();
        assert!((distance - expected).abs() < 1e-6, "{budget:?}: {distance}, not {expected}");
    }
    let conditioned = model.condition("c0=yes").unwrap();
    assert!(matches!(conditioned.truncate(Budget::Width(2)), Err(ModelError::Conditioned)));
    assert!(model.truncate(Budget::Width(0)).is_err());
}

/// A table with every kind of column, and with missing cells.
fn mixed(rows: usize) -> Table {
    let rng = &mut ChaCha8Rng::seed_from_u64(31);
    let mut text = String::from("sky,umbrella,degrees,visitors,tip,city,at\n");
    for _ in 0..rows {
        let rain = rng.random_bool(0.4);
        let cells = [
            (if rain { "rain" } else { "sun" }).to_owned(),
            (if rng.random_bool(if rain { 0.8 } else { 0.1 }) { "yes" } else { "no" }).to_owned(),
            format!("{:.4}", 8.0 + rng.random::<f64>() * if rain { 3.0 } else { 15.0 }),
            (rng.random_range(0..1000) + if rain { 0 } else { 1000 }).to_string(),
            format!("{}", if rng.random_bool(0.4) { 0.0 } else { rng.random_range(1.0..9.0_f64) }),
            format!("city {}", rng.random_range(0..if rain { 30 } else { 300 })),
            format!("2019-{:02}-{:02}", rng.random_range(1..13), rng.random_range(1..29)),
        ];
        let cells: Vec<String> = cells
            .into_iter()
            .map(|c| if rng.random_bool(0.2) { String::new() } else { c })
            .collect();
        writeln!(text, "{}", cells.join(",")).unwrap();
    }
    Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap()
}

/// Statistics of one row's distributions, cell by cell.
fn filled_alone(model: &Model, row: &[f64], how: Imputation) -> Vec<f64> {
    let schema = model.schema();
    let is_missing = |c: &usize| row[schema.variables_of(*c).start].is_nan();
    let missing: Vec<usize> = (0..schema.columns().len()).filter(is_missing).collect();
    let cases = model.labelled_cases_of_row(row, &|_| true).unwrap();
    let mut out = row.to_vec();
    for distribution in model.distributions_of(&missing, cases).unwrap() {
        let c = &schema.columns()[distribution.column()];
        let coding = c.kind.coding();
        let values = match how {
            _ if coding.is_words(c.storage) => distribution.mode_values().unwrap().0,
            Imputation::Mean if !coding.is_time() => coding.nearest(distribution.mean().unwrap()),
            Imputation::Mean | Imputation::Median => distribution.quantile_values(0.5).unwrap(),
            Imputation::Mode | Imputation::Sample => distribution.mode_values().unwrap().0,
        };
        out[schema.variables_of(distribution.column())].copy_from_slice(&values);
    }
    out
}

#[test]
fn tables_are_imputed_as_their_rows_are_one_by_one() {
    let table = mixed(400);
    let kinds = [("visitors".to_owned(), KindHint::Digits)].into();
    let infer = InferOptions { kinds, other: Other::Always, ..InferOptions::default() };
    let options = ModelOptions { infer, ..ModelOptions::default() };
    let model = Fit::with(options).epochs(4).width(3).run(&table).unwrap();
    let kinds: Vec<&str> = model.schema().columns().iter().map(|c| c.kind.name()).collect();
    assert!(kinds.contains(&"a date and time") || kinds.contains(&"a date"), "{kinds:?}");
    assert!(model.has_other(), "{kinds:?}");
    let some = table.select_rows(&(0..60).collect::<Vec<_>>());
    for given in ["", "degrees in [9, 15)", "sky in {rain}, tip=0", "visitors in [300, 1700)"] {
        let model =
            if given.is_empty() { model.condition("sky=?") } else { model.condition(given) };
        let model = model.unwrap();
        let encoded = model.schema().encode(&some).unwrap();
        // Rows that are possible given the evidence.
        let scores = model.score_encoded(&encoded).unwrap();
        let kept: Vec<usize> = (0..60).filter(|&row| scores[row].is_finite()).collect();
        let rows = encoded.select(&kept);
        assert!(kept.len() > 5, "{given}");
        for how in [Imputation::Mean, Imputation::Median, Imputation::Mode] {
            let found = model.impute(&some.select_rows(&kept), how, 0).unwrap();
            let mut expected = Vec::new();
            for row in 0..rows.num_rows() {
                expected.extend(filled_alone(&model, &rows.row(row), how));
            }
            let expected = model.schema().decode(&expected).unwrap();
            for (n, column) in expected.columns().iter().enumerate() {
                let found = &found.columns()[n];
                for row in 0..rows.num_rows() {
                    let same = match (found.number(row), column.number(row)) {
                        (Some(a), Some(b)) => (a - b).abs() <= 2e-3 * b.abs().max(1.0),
                        _ => found.text(row) == column.text(row),
                    };
                    let (a, b) = (found.text(row), column.text(row));
                    let name = column.name();
                    assert!(same, "{given}, {how:?}, {name}, row {row}: {a} for {b}");
                }
            }
        }
    }
    // The default is the median.
    assert_eq!(Imputation::default(), Imputation::Median);
    let rainy = model.condition("sky='rain'").unwrap();
    let text = b"sky,umbrella,degrees,visitors,tip,city,at\nsun,,,,,,\n";
    let sun = Table::from_csv_bytes(text, "t.csv", &CsvOptions::default()).unwrap();
    for how in [Imputation::Median, Imputation::Sample] {
        let error = rainy.impute(&sun, how, 0).unwrap_err().to_string();
        assert!(error.contains("row 1 has probability 0"), "{error}");
    }
}

#[test]
fn predictions_are_what_questions_about_each_row_answer() {
    let model = fitted(800);
    let table = Table::from_csv_bytes(
        b"visitors,sky,umbrella,degrees\n1500,sun,no,19.5\n,rain,,7.5\n300,,yes,\n",
        "t.csv",
        &CsvOptions::default(),
    )
    .unwrap();
    let given =
        ["visitors=1500, umbrella=no, degrees=19.5", "degrees=7.5", "visitors=300, umbrella=yes"];
    let sky = model.predict(&table, "sky").unwrap();
    assert_eq!((sky.absent().len(), sky.num_rows()), (0, 3));
    let p = sky.probabilities().unwrap();
    assert_eq!(p.labels, ["rain", "sun"]);
    let best = sky.values().unwrap();
    let logs = sky.log_density().unwrap();
    for (row, given) in given.iter().enumerate() {
        let rain = number(&model, &format!("P(sky=rain | {given})"));
        assert!((p.of_row(row)[0] - rain).abs() < 1e-9);
        assert_eq!(best.text(row), if rain > 0.5 { "rain" } else { "sun" });
        let expected = [(1.0 - rain).ln(), rain.ln(), 0.0][row];
        assert!((logs[row] - expected).abs() < 1e-9, "{} for {expected}", logs[row]);
    }
    assert!(matches!(sky.mean(), Err(ModelError::NoNumbers { .. })));
    let given = ["visitors=1500, umbrella=no, sky=sun", "sky=rain", "visitors=300, umbrella=yes"];
    let degrees = model.predict(&table, "degrees").unwrap();
    let (mean, quantiles) = (degrees.mean().unwrap(), degrees.quantiles(&[0.05, 0.5]).unwrap());
    let logs = degrees.log_density().unwrap();
    for (row, given) in given.iter().enumerate() {
        let ask = |question: &str| number(&model, &format!("{question} | {given})"));
        let expected = number(&model, &format!("E[degrees | {given}]"));
        assert!((mean[row] - expected).abs() < 1e-6, "{} for {expected}", mean[row]);
        assert!((quantiles[2 * row] - ask("quantile(degrees, 0.05")).abs() < 1e-6);
        assert!((quantiles[2 * row + 1] - ask("median(degrees")).abs() < 1e-6);
    }
    let density = model.ask(&format!("P(degrees=19.5 | {})", given[0])).unwrap().log.unwrap();
    assert!((logs[0] - density).abs() < 1e-9 && logs[2] == 0.0, "{logs:?} and {density}");
    assert!(matches!(degrees.probabilities(), Err(ModelError::NotFinite { .. })));
    assert!(degrees.quantiles(&[1.5]).is_err());
    let visitors = model.predict(&table, "visitors").unwrap();
    let median = visitors.quantiles(&[0.5]).unwrap();
    let asked = number(&model, "median(visitors | sky=sun, umbrella=no, degrees=19.5)");
    assert_eq!(median[0], asked);
    assert_eq!(visitors.values().unwrap().number(0), Some(asked));
    let asked = number(&model, "E[visitors | sky=sun, umbrella=no, degrees=19.5]");
    assert!((visitors.mean().unwrap()[0] - asked).abs() < 1e-6 * asked);
    // Absent columns are integrated out; other seeds give other samples.
    let few = Table::from_csv_bytes(b"sky\nrain\nsun\n", "t.csv", &CsvOptions::default()).unwrap();
    let degrees = model.predict(&few, "degrees").unwrap();
    assert_eq!(degrees.absent(), ["umbrella", "visitors"]);
    let asked = number(&model, "E[degrees | sky=sun]");
    assert!((degrees.mean().unwrap()[1] - asked).abs() < 1e-6);
    assert!(degrees.log_density().is_err());
    let draws = [1, 1, 2].map(|seed| degrees.values_by(Imputation::Sample, seed).unwrap());
    assert!(draws[0] == draws[1] && draws[0] != draws[2]);
    assert!(model.predict(&few, "moon").is_err());
    assert_eq!(model.predict(&few, "sky").unwrap().probabilities().unwrap().probabilities.len(), 4);
}

/// Labels y that depend on the product of two signs, and other columns that are easier to learn.
#[test]
fn a_target_is_predicted_better() {
    let n = 600_u32;
    let rng = &mut ChaCha8Rng::seed_from_u64(3);
    let noise: Vec<f64> = (0..2 * n * 3).map(|_| rng.random_range(-1.0..1.0)).collect();
    let wave = |i: u32, k: u32| {
        let own = noise[(3 * i + k.min(2)) as usize];
        if k > 2 { own + 0.05 * noise[(3 * i + k - 3) as usize] } else { own }
    };
    let columns = |rows: std::ops::Range<u32>| {
        let number =
            |k: u32| Column::numbers(format!("x{k}"), rows.clone().map(|i| wave(i, k)).collect());
        let y = rows.clone().map(|i| Some(if wave(i, 0) * wave(i, 1) > 0.0 { "a" } else { "b" }));
        let mut columns: Vec<Column> = (0..5).map(number).collect();
        columns.push(Column::labels("y", y));
        Table::new(columns).unwrap()
    };
    let (train, test) = (columns(0..n), columns(n..2 * n));
    let error = |target: Option<String>| {
        let model = Fit::new().width(4).epochs(15).target(target.clone()).run(&train).unwrap();
        assert_eq!(model.info().target, target);
        let predicted = model.predict(&test, "y").unwrap();
        let p = predicted.probabilities().unwrap();
        let is_first = |row: usize| wave(n + row as u32, 0) * wave(n + row as u32, 1) > 0.0;
        assert_eq!(p.labels, ["a", "b"]);
        let of = |row: usize| -p.of_row(row)[usize::from(!is_first(row))].ln();
        (0..n as usize).map(of).sum::<f64>() / f64::from(n)
    };
    let (plain, emphasized) = (error(None), error(Some("y".to_owned())));
    assert!(emphasized < 0.7 * plain, "{emphasized} nats of surprise, {plain} without a target");
    let missing = Fit::new().target("z".to_owned()).run(&train);
    assert!(missing.unwrap_err().to_string().contains("'z'"));
}

/// The same rows, a few at a time.
fn in_pieces(table: &Table, size: usize) -> Vec<(usize, Table)> {
    let rows: Vec<usize> = (0..table.num_rows()).collect();
    rows.chunks(size).map(|piece| (piece[0], table.select_rows(piece))).collect()
}

#[test]
fn samples_in_pieces_are_the_samples() {
    let model = small();
    let either = model.condition("sky='rain' or visitors < 300").unwrap();
    let known = known(&model, "degrees < 5 or umbrella='yes'");
    for (model, event) in [(&model, None), (&model, Some(&known)), (&either, None)] {
        let whole = model.sample_from(0, event, 5000, 3).unwrap();
        let mut start = 0;
        for count in [1, 700, 3395, 4, 900] {
            let rows: Vec<usize> = (start..start + count).collect();
            let piece = model.sample_from(start as u64, event, count, 3).unwrap();
            let expected = whole.select_rows(&rows).to_csv();
            assert!(piece.to_csv() == expected, "{count} from {start} on");
            start += count;
        }
    }
    assert_eq!(model.sample_from(0, None, 50, 3).unwrap(), model.sample(50, 3).unwrap());
    let given = model.sample_given(&known, 50, 3).unwrap();
    assert_eq!(model.sample_from(0, Some(&known), 50, 3).unwrap(), given);
}

#[test]
fn cells_are_filled_in_pieces_as_in_the_whole() {
    let model = small();
    let mut text = String::from("sky,umbrella,degrees,visitors\n");
    for n in 0..97 {
        let cells = ["rain", if n % 3 == 0 { "Y" } else { "N" }, "8.25", "1200"];
        let cell = |(k, cell): (usize, &str)| {
            if (n + k) % 4 == 0 { String::new() } else { cell.to_owned() }
        };
        let row: Vec<String> = cells.into_iter().enumerate().map(cell).collect();
        writeln!(text, "{}", row.join(",")).unwrap();
    }
    let table = Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap();
    let either = model.condition("sky='rain' or visitors < 300").unwrap();
    for model in [&model, &either] {
        for how in [Imputation::Median, Imputation::Mode, Imputation::Sample] {
            let whole = model.impute(&table, how, 5).unwrap();
            // With the labels of the table.
            assert!(
                (0..97).all(|row| "YN".contains(&*whole.column("umbrella").unwrap().text(row)))
            );
            for size in [1, 10, 96] {
                for (start, piece) in in_pieces(&table, size) {
                    let found = model.impute_from(start as u64, &piece, how, 5).unwrap();
                    for (a, b) in found.columns().iter().zip(whole.columns()) {
                        for row in 0..a.len() {
                            assert_eq!(a.text(row), b.text(start + row), "{how:?}, {}", a.name());
                        }
                    }
                }
            }
            let predicted = model.predict(&table, "degrees").unwrap();
            let all = predicted.values_by(how, 5).unwrap();
            for (start, piece) in in_pieces(&table, 10) {
                let found = model.predict(&piece, "degrees").unwrap();
                let found = found.values_from(start as u64, how, 5).unwrap();
                assert!((0..found.len()).all(|row| found.text(row) == all.text(start + row)));
            }
        }
    }
}

/// A question for every row is the question with the row as evidence.
#[test]
fn a_question_is_answered_for_every_row() {
    let model = fitted(800);
    let text =
        "sky,umbrella,visitors,degrees\nrain,yes,300,8.5\nsun,,1500,20\n,no,,\nsun,yes,200,\n";
    let table = Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap();
    let given = model.condition("visitors < 1900").unwrap();
    // The row as evidence, except for the columns in question.
    let evidence = |row: usize, asked: &str| -> Vec<String> {
        let others = table.columns().iter().filter(|c| !asked.contains(c.name()));
        let known = others.filter(|c| !c.is_missing(row));
        known.map(|c| format!("{}='{}'", c.name(), c.text(row))).collect()
    };
    for (model, more) in [(&model, None), (&model, Some("visitors > 100")), (&given, None)] {
        for (question, asked) in [
            ("P(umbrella='yes'", "umbrella"),
            ("P(umbrella='yes' or sky='sun'", "umbrella, sky"),
            ("P(degrees=10", "degrees"),
            ("E[degrees", "degrees"),
            ("quantile(degrees, 0.9", "degrees"),
            ("argmax(sky", "sky"),
        ] {
            let close = if question.contains('[') { ']' } else { ')' };
            let under = |evidence: &[String]| match evidence {
                [] => format!("{question}{close}"),
                some => format!("{question} | {}{close}", some.join(", ")),
            };
            let more: Vec<String> = more.map(str::to_owned).into_iter().collect();
            let each = Question::parse(model.schema(), &under(&more)).unwrap();
            let found = model.for_each_row(&each).unwrap().answer(&table).unwrap();
            for row in 0..table.num_rows() {
                let text = under(&[evidence(row, asked), more.clone()].concat());
                let direct = model.ask(&text).unwrap();
                match (direct.number(), found.number(row)) {
                    (Some(x), Some(y)) => {
                        assert!((x - y).abs() < 1e-6 * (1.0 + x.abs()), "{text}: {y}, not {x}");
                    }
                    _ => assert_eq!(found.text(row), direct.to_string(), "{text}"),
                }
            }
        }
    }
    refuses_other_questions(&model, &table);
}

fn refuses_other_questions(model: &Model, table: &Table) {
    for question in ["std(degrees)", "argmax(sky, umbrella)", "H(sky)", "MI(sky; umbrella)"] {
        let asked = Question::parse(model.schema(), question).unwrap();
        assert!(matches!(model.for_each_row(&asked), Err(ModelError::NotForRows)), "{question}");
    }
    let asked = Question::parse(model.schema(), "P(umbrella='yes' | sky='rain')").unwrap();
    let refused = model.for_each_row(&asked).unwrap().answer(table).unwrap_err().after(10);
    assert!(refused.to_string().contains("row 12"), "{refused}");
}

/// A fit that continues from a model starts with its density, never gets worse on the validation rows, and learns what
/// is new.
#[test]
fn a_fit_goes_on_from_a_model() {
    let model = Fit::new().epochs(20).width(4).run(&weather(600, 1)).unwrap();
    let rows = weather(400, 7);
    let mean = |model: &Model, table: &Table| {
        model.score(table).unwrap().iter().sum::<f64>() / table.num_rows() as f64
    };
    // Steps too small to change anything: the model is the same up to the precision of its weights.
    let mut first = f64::NAN;
    let still = ModelOptions {
        rate: Some(1e-12),
        epochs: Some(1),
        batch: Some(360),
        ..ModelOptions::default()
    };
    let same = Fit::with(still)
        .start(&model)
        .on_step(|p, _| {
            first = if first.is_nan() { p.train } else { first };
            Control::Continue
        })
        .run(&rows)
        .unwrap();
    assert_eq!(same.schema(), model.schema());
    assert!((mean(&same, &rows) - mean(&model, &rows)).abs() < 1e-4);
    assert!((first - mean(&model, &rows)).abs() < 0.2, "{first}");
    // Steps that are far too large: nothing improves on the model.
    let wild = ModelOptions { rate: Some(1.0), epochs: Some(1), ..ModelOptions::default() };
    let wild = Fit::with(wild).start(&model).run(&rows).unwrap();
    assert!((mean(&wild, &rows) - mean(&model, &rows)).abs() < 1e-4);
    // Other weather: rain without umbrellas, and snow, which is outside the model's domain.
    let sky = (0..400).map(|n| Some(if n == 0 { "snow" } else { ["rain", "sun"][n % 2] }));
    let columns = vec![
        Column::labels("sky", sky),
        Column::labels("umbrella", vec![Some("no"); 400]),
        rows.column("degrees").unwrap().clone(),
        rows.column("visitors").unwrap().clone(),
    ];
    let shifted = Table::new(columns).unwrap();
    let quick = ModelOptions { rate: Some(0.01), epochs: Some(30), ..ModelOptions::default() };
    let learned = Fit::with(quick).start(&model).run(&shifted).unwrap();
    assert!(mean(&learned, &shifted) > mean(&model, &shifted) + 0.3);
    assert!(number(&learned, "P(umbrella='yes')") < 0.1);
    assert_eq!((learned.info().rows, learned.info().width), (360, 4));
    // The same for a checkpoint in the first epoch.
    let (mut snapshot, fit) = (None, || Fit::new().epochs(3).start(&model));
    let whole = fit()
        .on_step(|_, s| {
            snapshot.get_or_insert_with(|| s.to_bytes());
            Control::Continue
        })
        .run(&shifted)
        .unwrap();
    let resumed = fit().resume(snapshot.as_deref()).run(&shifted).unwrap();
    assert_eq!(resumed.to_bytes().unwrap(), whole.to_bytes().unwrap());
}

#[test]
fn a_fit_keeps_the_circuit_of_the_model_that_it_goes_on_from() {
    let (model, rows) = (small(), weather(100, 3));
    let words = |options: ModelOptions| {
        Fit::with(ModelOptions { epochs: Some(1), ..options })
            .start(&model)
            .run(&rows)
            .map_or_else(|error| error.to_string(), |_| String::new())
    };
    let plain = ModelOptions::default;
    assert_eq!(words(plain()), "");
    assert_eq!(words(ModelOptions { width: Some(4), output_width: Some(8), ..plain() }), "");
    assert!(words(ModelOptions { width: Some(8), ..plain() }).contains("width is 4, not 8"));
    assert!(words(ModelOptions { output_width: Some(3), ..plain() }).contains("output width is 8"));
    assert!(words(ModelOptions { functions: Some(5), ..plain() }).contains("5 functions"));
    assert!(words(ModelOptions { codebook: Some(5), ..plain() }).contains("a codebook"));
    let structure = StructureKind::Linear;
    assert!(words(ModelOptions { structure, ..plain() }).contains("not 'linear'"));
    let kinds = [("degrees".to_owned(), KindHint::Number { atoms_from: 0.0 })].into();
    let infer = InferOptions { kinds, ..InferOptions::default() };
    assert!(words(ModelOptions { infer, ..plain() }).contains("kinds of columns"));
    let given = model.condition("sky='sun'").unwrap();
    let error = Fit::new().start(&given).run(&rows).unwrap_err().to_string();
    assert!(error.contains("conditioned on sky='sun'"), "{error}");
    let less = rows.without_column("sky").unwrap();
    let error = Fit::new().start(&model).run(&less).unwrap_err().to_string();
    assert!(error.contains("no column 'sky'"), "{error}");
}

/// The rows of a table in files of a thousand, and a sample of 800 of them.
fn in_files(folder: &Path, table: &Table) -> (Vec<PathBuf>, Sample) {
    let mut files = Vec::new();
    for start in (0..table.num_rows()).step_by(1000) {
        let rows: Vec<usize> = (start..table.num_rows().min(start + 1000)).collect();
        files.push(folder.join(format!("{start}.csv")));
        table.select_rows(&rows).write_csv(files.last().unwrap()).unwrap();
    }
    let memory = 800 * 64 * table.num_columns() as u64;
    let options = SampleOptions { memory, ..SampleOptions::default() };
    let sample = Sample::draw(&files, &options, &mut |_, _, _| {}).unwrap();
    assert_eq!((sample.table().num_rows(), sample.is_whole()), (800, false));
    (files, sample)
}

#[test]
fn a_table_in_pieces_is_learned_as_well_as_one_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (rows, test) = (weather(4000, 1), weather(1000, 9));
    let (files, sample) = in_files(folder.path(), &rows);
    let fit = || Fit::new().epochs(8).width(4);
    let mean =
        |model: &Model| model.score(&test).unwrap().iter().sum::<f64>() / test.num_rows() as f64;
    let whole = mean(&fit().run(&rows).unwrap());
    let (mut read, mut seen, mut steps, mut snapshots) = (0, 0, 0, Vec::new());
    let pieces = fit()
        .on_rows(|_, rows, _| read += rows)
        .on_step(|p, s| {
            seen = seen.max(p.rows);
            steps += 1;
            if steps % 200 == 3 {
                snapshots.push(s.to_bytes());
            }
            Control::Continue
        })
        .run_sample(&sample)
        .unwrap();
    assert_eq!((read, seen), (4000, 3920), "all rows but those held out");
    assert_eq!((pieces.info().rows, pieces.info().valid_rows), (3920, 80));
    assert!((mean(&pieces) - whole).abs() < 0.1, "{} and {whole}", mean(&pieces));
    // The training likelihood is that of all rows, in the units of the data.
    let last = pieces.info().history.last().unwrap();
    assert!((last.train - mean(&pieces)).abs() < 0.15, "{last:?}");
    // The same bits for any number of threads, and after resuming in the middle of an epoch.
    let bytes = pieces.to_bytes().unwrap();
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let again = pool.install(|| fit().run_sample(&sample).unwrap());
        assert_eq!(again.to_bytes().unwrap(), bytes, "{threads} threads");
    }
    assert!(snapshots.len() > 3, "{steps} steps");
    for snapshot in &snapshots {
        let resumed = fit().resume(&snapshot[..]).run_sample(&sample).unwrap();
        assert_eq!(resumed.to_bytes().unwrap(), bytes);
    }
    // It can also continue from a model, and use a validation table.
    let later = Fit::new().epochs(1).start(&pieces).validation(&test).run_sample(&sample).unwrap();
    assert_eq!((later.info().rows, later.info().valid_rows), (4000, 1000));
    assert!(mean(&later) > mean(&pieces) - 1e-4);
    // A file that has changed since, or does not match.
    let text = std::fs::read_to_string(&files[2]).unwrap();
    let line = text.lines().nth(7).unwrap();
    std::fs::write(&files[2], text.replace(line, "sun,no,warm,3")).unwrap();
    let error = fit().run_sample(&sample).unwrap_err().to_string();
    assert!(error.contains("2000.csv': row ") && error.contains("'warm'"), "{error}");
}

#[test]
fn rows_in_pieces_count_by_their_weights() {
    let folder = tempfile::tempdir().unwrap();
    let table = weather(4000, 3);
    let sky = table.column("sky").unwrap();
    let is_rain = |row: usize| sky.text(row) == "rain";
    let weighed = |rain: f64, sun: f64, zeros: usize| {
        let weight = |row: usize| match row % zeros {
            1 => 0.0,
            _ if is_rain(row) => rain,
            _ => sun,
        };
        let mut columns = table.columns().to_vec();
        columns.push(Column::numbers("weight", (0..4000).map(weight).collect()));
        Table::new(columns).unwrap()
    };
    let fit = || Fit::new().epochs(8).width(4);
    // Multiples of the smallest weight, and others.
    for (rain, sun, zeros) in [(3.0, 1.0, 10), (0.71, 0.13, 5)] {
        let rows = weighed(rain, sun, zeros);
        let (files, sample) = in_files(folder.path(), &rows);
        let model = fit().weights("weight").run_sample(&sample).unwrap();
        assert!(model.schema().columns().iter().all(|c| c.name != "weight"));
        let (learned, valid) = (model.info().rows, model.info().valid_rows);
        let used = 4000 - 4000 / zeros;
        assert_eq!(learned + valid, used, "rows of weight 0 are not used");
        let rain_rows = (0..4000).filter(|&row| row % zeros != 1 && is_rain(row)).count() as f64;
        let expected = rain * rain_rows / (rain * rain_rows + sun * (used as f64 - rain_rows));
        let found = number(&model, "P(sky='rain')");
        assert!((found - expected).abs() < 0.03, "{found}, not {expected}");
        let whole = number(&fit().weights("weight").run(&rows).unwrap(), "P(sky='rain')");
        assert!((found - whole).abs() < 0.03, "{found}, and {whole} in memory");
        // Workers give the same bits.
        let bytes = model.to_bytes().unwrap();
        let places = sample.places().to_vec();
        let shared = Sample::of_places(sample.table().clone(), places, 4000);
        for of in [1, 3] {
            let workers = Local::new(&rows, of, 50);
            let model =
                fit().weights("weight").workers(&workers as &dyn Workers).run_sample(&shared);
            assert_eq!(model.unwrap().to_bytes().unwrap(), bytes, "{of} workers");
        }
        // A bad weight, and one far above those of the sample.
        let text = std::fs::read_to_string(&files[2]).unwrap();
        let line = text.lines().nth(7).unwrap();
        let start = line.rsplit_once(',').unwrap().0;
        for (weight, problem) in
            [("-2", "the weight '-2' is not"), ("1e9", "1000000000 is too large")]
        {
            std::fs::write(&files[2], text.replace(line, &format!("{start},{weight}"))).unwrap();
            let error = fit().weights("weight").run_sample(&sample).unwrap_err().to_string();
            assert!(error.contains("2000.csv': row 7") && error.contains(problem), "{error}");
        }
    }
}

#[test]
fn samples_that_are_whole_are_fitted_as_tables() {
    let folder = tempfile::tempdir().unwrap();
    let rows = weather(600, 4);
    let path = folder.path().join("t.csv");
    rows.write_csv(&path).unwrap();
    let table = Table::read_csv(&path, &CsvOptions::default()).unwrap();
    let whole = Sample::draw(&[path], &SampleOptions::default(), &mut |_, _, _| {}).unwrap();
    let fit = || Fit::new().epochs(2).width(4);
    let bytes = |model: Model| model.to_bytes().unwrap();
    assert!(whole.is_whole());
    assert_eq!(bytes(fit().run(&table).unwrap()), bytes(fit().run_sample(&whole).unwrap()));
    let same = Sample::whole(table.clone());
    assert_eq!(bytes(fit().run(&table).unwrap()), bytes(fit().run_sample(&same).unwrap()));
}

/// Workers in this process, each with some rows of a table. They are recreated after every few answers.
#[derive(Debug)]
struct Local {
    table: Table,
    count: usize,
    lost: usize,
    plan: Mutex<Vec<u8>>,
    made: Mutex<(usize, Vec<Worker>)>,
}

impl Local {
    fn new(table: &Table, count: usize, lost: usize) -> Self {
        let (plan, made) = (Mutex::default(), Mutex::default());
        Self { table: table.clone(), count, lost, plan, made }
    }

    /// The rows come in pieces of any size.
    fn make(&self, plan: &[u8]) -> Result<Vec<Worker>, ModelError> {
        let of = self.count.min(Worker::most(plan)?);
        let mut workers = Vec::new();
        for number in 0..of {
            let mut worker = Worker::new(plan, number, of)?;
            while !worker.wanted().is_empty() {
                let start = worker.wanted().start as usize;
                let end = (start + 100 + 77 * number).min(self.table.num_rows());
                worker.add(&self.table.select_rows(&(start..end).collect::<Vec<_>>()))?;
            }
            workers.push(worker);
        }
        Ok(workers)
    }
}

impl Workers for Local {
    fn hold(&self, plan: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let workers = self.make(plan).map_err(|e| e.to_string())?;
        let held = workers.iter().map(|w| w.held().unwrap()).collect();
        (*self.plan.lock().unwrap(), *self.made.lock().unwrap()) = (plan.to_vec(), (0, workers));
        Ok(held)
    }

    fn ask(&self, fit: &[u8], step: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let (asked, workers) = &mut *self.made.lock().unwrap();
        *asked += 1;
        if *asked % self.lost == 0 {
            *workers = self.make(&self.plan.lock().unwrap()).unwrap();
        }
        workers.iter_mut().map(|w| w.answer(fit, step).map_err(|e| e.to_string())).collect()
    }
}

#[test]
fn workers_learn_what_one_machine_learns() {
    let folder = tempfile::tempdir().unwrap();
    let mut columns = weather(4000, 1).columns().to_vec();
    let degree = |n: usize| columns[2].number(n).filter(|_| n % 9 != 4).unwrap_or(f64::NAN);
    columns[2] = Column::numbers("degrees", (0..4000).map(degree).collect());
    let rows = Table::new(columns).unwrap();
    let (_, drawn) = in_files(folder.path(), &rows);
    rows.write_csv(folder.path().join("all.csv")).unwrap();
    let table = Table::read_csv(folder.path().join("all.csv"), &CsvOptions::default()).unwrap();
    let places = drawn.places().to_vec();
    let sampled: Vec<usize> = places.iter().map(|&n| n as usize).collect();
    let sample = Sample::of_places(table.select_rows(&sampled), places, 4000);
    let bytes = |model: Model| model.to_bytes().unwrap();
    // One chunk per step, four, and the maximum; with a target, and with several circuits.
    let fits: [&dyn Fn() -> Fit<'static>; 3] = [
        &|| Fit::new().epochs(2).width(4),
        &|| {
            let options = ModelOptions { batch: Some(300), ..ModelOptions::default() };
            Fit::with(options).epochs(2).width(4).target("umbrella".to_owned())
        },
        &|| {
            let options = ModelOptions { batch: Some(5000), ..ModelOptions::default() };
            Fit::with(options).epochs(1).effort(Effort::Fast).circuits(2)
        },
    ];
    for (n, fit) in fits.iter().enumerate() {
        let one = bytes(fit().run_sample(&drawn).unwrap());
        for (count, lost) in [(1, 1000), (2, 7), (3, 1000), (7, 5)] {
            let local = Local::new(&table, count, lost);
            let model = fit().workers(&local as &dyn Workers).run_sample(&sample).unwrap();
            assert!(bytes(model) == one, "fit {n} with {count} workers");
        }
    }
    // It also continues from a model, and a table that fits into memory needs no workers.
    let model = fits[0]().run_sample(&drawn).unwrap();
    let later = |workers: Option<&dyn Workers>| {
        let fit = Fit::new().epochs(1).start(&model).validation(&table);
        bytes(match workers {
            Some(workers) => fit.workers(workers).run_sample(&sample).unwrap(),
            None => fit.run_sample(&drawn).unwrap(),
        })
    };
    let local = Local::new(&table, 2, 9);
    assert!(later(Some(&local as &dyn Workers)) == later(None));
    // Errors name rows that do not match, and workers that do not answer.
    let words = (0..4000).map(|n| if n == 2500 { Some("warm") } else { Some("3") });
    let other = table.without_column("degrees").unwrap();
    let mut columns = other.columns().to_vec();
    columns.push(Column::labels("degrees", words));
    let other = Local::new(&Table::new(columns).unwrap(), 2, 9);
    let error = fits[0]().workers(&other as &dyn Workers).run_sample(&sample).unwrap_err();
    assert!(error.to_string().contains("row 2501"), "{error}");
    let device = ModelOptions { device: Device::Cuda, ..ModelOptions::default() };
    let error = Fit::with(device).workers(&local as &dyn Workers).run_sample(&sample).unwrap_err();
    assert!(error.to_string().contains("CUDA"), "{error}");
}

/// Columns that have nothing in common, or of which one follows another.
fn pairs(rows: usize, seed: u64, is_noise: bool) -> Table {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let (mut label, mut number, mut other) = (vec![], vec![], vec![]);
    let normal = |rng: &mut ChaCha8Rng| (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    for _ in 0..rows {
        let (k, x) = (rng.random_range(0..3_usize), normal(rng));
        label.push(Some(["a", "b", "c"][k]));
        number.push(if is_noise { x } else { x + 5.0 * k as f64 });
        other.push(normal(rng));
    }
    let label = Column::labels("label", label);
    Table::new(vec![label, Column::numbers("number", number), Column::numbers("other", other)])
        .unwrap()
}

#[test]
fn columns_are_independent_if_no_circuit_is_better() {
    let fit = |is_noise: bool| {
        let (table, valid) = (pairs(40, 3, is_noise), pairs(400, 4, is_noise));
        Fit::new().epochs(20).validation(&valid).run(&table).unwrap()
    };
    let noise = fit(true);
    assert_eq!((noise.info().width, noise.mixture().circuits().len()), (1, 1));
    let p = |model: &Model, question: &str| model.ask(question).unwrap().number().unwrap();
    let (given, alone) = (p(&noise, "P(label='a' | number < -0.3)"), p(&noise, "P(label='a')"));
    assert!((given - alone).abs() < 1e-9, "{given} and {alone}");
    // The transform's own density of numbers, and the frequencies of labels with half a row added.
    let info = noise.info();
    assert!((info.valid - info.baseline).abs() < 1e-6, "{} and {}", info.valid, info.baseline);
    assert_eq!(
        Model::from_bytes(&noise.to_bytes().unwrap()).unwrap().to_bytes().unwrap(),
        noise.to_bytes().unwrap()
    );

    let follows = fit(false);
    assert!(follows.info().width > 1 && p(&follows, "P(label='a' | number < 0)") > 0.8);
}
