use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fit::{mixture_of, with_decoder};
use super::{Fit, Imputation, Model, ModelOptions, StructureKind};
use crate::basis::Basis;
use crate::circuit::{Orthonormal, Weights};
use crate::data::{Column, CsvOptions, InferOptions, KindHint, Table};
use crate::domain::{Domain, Variable};
use crate::engine::Batch;
use crate::file::{self, FileError};
use crate::learn::Control;
use crate::mixture::{Mixture, log_sum};
use crate::ops::Budget;
use crate::structure::{RegionTree, Structure};

const WEIGHTS: [f64; 2] = [0.6, 0.4];

/// A label, a column that depends on it, a number that is often 0, and one as digits.
fn table(rows: usize, seed: u64) -> Table {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let (mut sky, mut mood, mut hours, mut visitors) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rows {
        let sun = rng.random::<f64>() < 0.6;
        sky.push(Some(if sun { "sun" } else { "rain" }));
        mood.push(Some(if rng.random::<f64>() < 0.2 + 0.5 * f64::from(sun) {
            "good"
        } else {
            "bad"
        }));
        hours.push(if sun { (90.0 * rng.random::<f64>()).round() / 10.0 } else { 0.0 });
        visitors.push(Some(rng.random_range(0..700) + if sun { 600 } else { 0 }));
    }
    Table::new(vec![
        Column::labels("sky", sky),
        Column::labels("mood", mood),
        Column::numbers("hours", hours),
        Column::integers("visitors", visitors),
    ])
    .unwrap()
}

fn one(structure: StructureKind, seed: u64) -> Model {
    let kinds = [("visitors".to_owned(), KindHint::Digits)].into();
    let infer = InferOptions { kinds, ..InferOptions::default() };
    let options = ModelOptions { infer, structure, seed, ..ModelOptions::default() };
    Fit::with(options).epochs(4).width(3).run(&table(300, 1)).unwrap()
}

/// Two models with the same schema, and their mixture.
fn models() -> ([Model; 2], Model) {
    let parts = [one(StructureKind::ChowLiu, 1), one(StructureKind::Linear, 2)];
    assert_eq!(parts[0].schema(), parts[1].schema());
    let circuits: Vec<Orthonormal> = parts.iter().map(|m| m.circuit().clone()).collect();
    let mixture = Mixture::new(circuits, &WEIGHTS).unwrap();
    let model = Model::new(parts[0].schema().clone(), mixture, parts[0].info().clone());
    (parts, model)
}

fn number(model: &Model, question: &str) -> f64 {
    model.ask(question).unwrap().number().unwrap()
}

#[test]
fn answers_are_those_of_the_circuits_by_their_weights() {
    let ([a, b], model) = models();
    let rows = table(50, 3);
    let [p, q, both] = [&a, &b, &model].map(|m| m.score(&rows).unwrap());
    for row in 0..50 {
        let expected = log_sum(&[WEIGHTS[0].ln() + p[row], WEIGHTS[1].ln() + q[row]]);
        assert!((both[row] - expected).abs() < 1e-10, "{} for {expected}", both[row]);
    }
    for given in ["", "sky=sun", "hours=0", "visitors in [500, 900)", "sky=sun or hours > 3"] {
        let joint = |model: &Model| {
            if given.is_empty() { 1.0 } else { number(model, &format!("P({given})")) }
        };
        let parts = [WEIGHTS[0] * joint(&a), WEIGHTS[1] * joint(&b)];
        let total = parts[0] + parts[1];
        let bar = if given.is_empty() { String::new() } else { format!(" | {given}") };
        for question in [
            format!("P(mood=good{bar})"),
            format!("P(hours <= 4{bar})"),
            format!("P(hours = 0{bar})"),
            format!("E[hours{bar}]"),
            format!("E[visitors{bar}]"),
            format!("P(visitors < 640{bar})"),
        ] {
            let [x, y, found] = [&a, &b, &model].map(|m| number(m, &question));
            let expected = (parts[0] * x + parts[1] * y) / total;
            assert!((found - expected).abs() < 1e-8, "{question}: {found} for {expected}");
        }
        // The distribution function at a quantile is its level.
        let median = number(&model, &format!("quantile(visitors, 0.5{bar})"));
        let below = number(&model, &format!("P(visitors < {median}{bar})"));
        let up_to = number(&model, &format!("P(visitors <= {median}{bar})"));
        assert!(below <= 0.5 + 1e-9 && up_to >= 0.5 - 1e-9, "{given}: {below} {up_to}");

        // Var X = E X² − (E X)², over all circuits.
        let conditioned = [&a, &b, &model]
            .map(|m| m.condition(if given.is_empty() { "sky=?" } else { given }).unwrap());
        let columns = [2, 3];
        let [p, q, both] = conditioned.each_ref().map(|m| m.covariance(&columns).unwrap());
        for i in 0..2 {
            for j in 0..2 {
                let raw = |(mean, cov): &(Vec<f64>, crate::linalg::Matrix<f64>)| {
                    cov[(i, j)] + mean[i] * mean[j]
                };
                let expected = (parts[0] * raw(&p) + parts[1] * raw(&q)) / total;
                assert!((raw(&both) - expected).abs() < 1e-6 * (1.0 + expected.abs()), "{given}");
            }
        }
    }
}

#[test]
fn batches_of_a_mixture_answer_as_single_rows_do() {
    let (_, model) = models();
    let mut rows = table(40, 4);
    let text = String::from_utf8(rows.to_csv()).unwrap();
    // Every other cell is missing.
    let lines = text.lines().enumerate().map(|(row, line)| {
        let cell = |(n, cell): (usize, &'_ str)| match row {
            1.. if (row + n).is_multiple_of(2) => String::new(),
            _ => cell.to_owned(),
        };
        line.split(',').enumerate().map(cell).collect::<Vec<_>>().join(",")
    });
    let lines: Vec<String> = lines.collect();
    let text = lines.join("\n");
    rows = Table::from_csv_bytes(text.as_bytes(), "holes.csv", &CsvOptions::default()).unwrap();
    for (how, word) in [(Imputation::Median, "median"), (Imputation::Mean, "E")] {
        let found = model.impute(&rows, how, 0).unwrap();
        for row in 0..40 {
            let cells: Vec<&str> = lines[row + 1].split(',').collect();
            let known = |c: usize| !cells[c].is_empty();
            let given: Vec<String> = (0..4)
                .filter(|&c| known(c))
                .map(|c| format!("{}={}", rows.columns()[c].name(), cells[c]))
                .collect();
            let name = if known(2) { "visitors" } else { "hours" };
            let question = match how {
                Imputation::Mean => format!("{word}[{name} | {}]", given.join(", ")),
                _ => format!("{word}({name} | {})", given.join(", ")),
            };
            let truth = number(&model, &question);
            let filled = found.column(name).unwrap().number(row).unwrap();
            // A number on a grid is a cell in a question, and the center of the cell in a row.
            let step = if name == "hours" { 0.051 } else { 1.51 };
            assert!((filled - truth).abs() < step, "{question}: {filled} for {truth}");
        }
    }
}

#[test]
fn files_and_streams_keep_all_circuits() {
    let (_, model) = models();
    let rows = table(200, 5);
    let bytes = model.to_bytes().unwrap();
    let again = Model::from_bytes(&bytes).unwrap();
    assert_eq!(again.mixture().weights(), model.mixture().weights());
    assert_eq!(again.score(&rows).unwrap(), model.score(&rows).unwrap());
    assert_eq!(again.to_bytes().unwrap(), bytes);
    let error = file::from_bytes(&bytes).unwrap_err();
    assert!(matches!(error, FileError::Mixture { count: 2 }), "{error}");
    let conditioned = model.condition("sky=sun").unwrap();
    let again = Model::from_bytes(&conditioned.to_bytes().unwrap()).unwrap();
    assert_eq!(again.score(&rows).unwrap(), conditioned.score(&rows).unwrap());

    // The circuit that compresses the table best is used, whichever that is.
    let packed = model.compress(&rows).unwrap();
    assert_eq!(model.decompress(&packed).unwrap().to_csv(), rows.to_csv());
    let ([a, b], _) = models();
    let alone = [&a, &b].map(|m| m.compress(&rows).unwrap().len());
    assert_eq!(packed.len(), alone[0].min(alone[1]));

    let smaller = model.truncate(Budget::Width(2)).unwrap();
    assert_eq!(smaller.model.mixture().weights(), model.mixture().weights());
    assert!(smaller.bound > 0.0 && smaller.model.info().width == 2);
    // Samples drawn in pieces are the same as all at once.
    let whole = model.sample(100, 7).unwrap();
    let pieces = [model.sample_from(0, None, 30, 7), model.sample_from(30, None, 70, 7)];
    let [first, second] = pieces.map(|table| table.unwrap().to_csv());
    let header = b"sky,mood,hours,visitors\n".len();
    assert_eq!(whole.to_csv(), [&first[..], &second[header..]].concat());
}

/// Answers of eight kinds of people to 24 questions: more than one narrow circuit can learn from few rows.
fn votes(rows: usize, seed: u64) -> Table {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let habits = &mut ChaCha8Rng::seed_from_u64(99);
    let habits: Vec<f64> = (0..8 * 24).map(|_| habits.random()).collect();
    let mut answers = vec![Vec::new(); 24];
    for _ in 0..rows {
        let kind = rng.random_range(0..8);
        for (n, answers) in answers.iter_mut().enumerate() {
            let yes = rng.random::<f64>() < habits[kind * 24 + n];
            answers.push(Some(if yes { "yes" } else { "no" }));
        }
    }
    let columns = answers.into_iter().enumerate();
    Table::new(columns.map(|(n, a)| Column::labels(format!("q{n}"), a)).collect()).unwrap()
}

/// A search adds circuits that help, and resuming while one is trained gives the same model.
#[test]
fn a_search_mixes_circuits_and_can_be_continued() {
    let (rows, valid) = (votes(300, 6), votes(2000, 7));
    let fit = || Fit::new().epochs(10).width(4).circuits(3).validation(&valid);
    let mut snapshots = Vec::new();
    let model = fit()
        .on_step(|p, snapshot| {
            if p.candidate > 0 && p.rows > 0 && p.epoch == 1 {
                snapshots.push(snapshot.to_bytes());
            }
            Control::Continue
        })
        .run(&rows)
        .unwrap();
    let count = model.mixture().circuits().len();
    assert!(count > 1, "{:?}", model.mixture().weights());
    let alone = Fit::new().epochs(10).width(4).validation(&valid).run(&rows).unwrap();
    assert_eq!(alone.mixture().circuits().len(), 1);
    assert!(model.info().valid > alone.info().valid);
    assert!((model.mean_log_likelihood(&valid).unwrap() - model.info().valid).abs() < 1e-9);
    assert!(snapshots.len() > 1);
    for bytes in [&snapshots[0], &snapshots[snapshots.len() - 1]] {
        let again = fit().resume(&bytes[..]).run(&rows).unwrap();
        assert_eq!(again.to_bytes().unwrap(), model.to_bytes().unwrap());
    }
}

/// All circuits of a mixture continue from their weights, and no new one is tried.
#[test]
fn a_fit_goes_on_from_a_mixture() {
    let (rows, valid) = (votes(300, 6), votes(2000, 7));
    let fit = || Fit::new().validation(&valid).epochs(8);
    let model = fit().width(4).circuits(2).run(&rows).unwrap();
    assert_eq!(model.mixture().circuits().len(), 2);
    let more = votes(600, 8);
    let next = fit().start(&model).run(&more).unwrap();
    assert_eq!(next.mixture().circuits().len(), 2);
    let [before, after] = [&model, &next].map(|m| m.mean_log_likelihood(&valid).unwrap());
    assert!(after > before, "{after} after {before}");
    let error = fit().start(&model).circuits(3).run(&more).unwrap_err().to_string();
    assert!(error.contains("number of circuits is 2, not 3"), "{error}");
}

/// Half of the rows come from each of two circuits: together they are better than either, and a
/// circuit is no better together with itself.
#[test]
fn circuits_of_a_decoder_are_added_if_they_improve_validation() {
    let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    let mixture = |seed: u64| {
        let structure = Structure::new(RegionTree::balanced(8), leaf).width(2);
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let circuit = structure.build(Weights::Haar, rng).unwrap();
        mixture_of(vec![Orthonormal::verify(circuit).unwrap()], &[1.0])
    };
    let [first, second] = [1, 2].map(mixture);
    let values = [first.sample(400, 1), second.sample(400, 2)].concat();
    let rows = Batch::from_rows(first.variables(), &values).unwrap();
    let scored = |seed: u64| {
        let mixture = mixture(seed);
        let logs = mixture.log_marginals(&rows).unwrap();
        (mixture, logs)
    };
    let (both, logs) = with_decoder(scored(1), Some(scored(2)));
    assert_eq!(both.circuits().len(), 2);
    assert!(both.weights().iter().all(|w| (w - 0.5).abs() < 0.1), "{:?}", both.weights());
    for (log, expected) in logs.iter().zip(both.log_marginals(&rows).unwrap()) {
        assert!((log - expected).abs() < 1e-9, "{log} {expected}");
    }
    assert_eq!(with_decoder(scored(1), Some(scored(1))).0.circuits().len(), 1);
    assert_eq!(with_decoder(scored(1), None).0.circuits().len(), 1);
}
