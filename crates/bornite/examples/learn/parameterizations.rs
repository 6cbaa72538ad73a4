//! The four parameterizations side by side: likelihood, time per epoch, final width, and deviation from orthonormality.

use bornite::basis::Basis;
use bornite::circuit::Skeleton;
use bornite::data::{EncodeOptions, Encoded, Mismatch, Schema, Table, Unseen};
use bornite::engine::Batch;
use bornite::learn::{
    Defaults, Epoch, FitOptions, Parameterization, fit, mean_log_likelihood, monotonic,
};
use bornite::structure::{
    InformationOptions, RegionTree, Structure, average_linkage, mutual_information,
};
use bornite::{Domain, Variable};

use super::Failure;
use super::arguments::{Arguments, Clock};
use super::plot::{Line, Plot};
use super::table::Splits;

/// The number of bins of a continuous variable in a monotonic circuit.
const BINS: usize = 32;
const KINDS: [(&str, Parameterization); 4] = [
    ("Cholesky", Parameterization::Cholesky),
    ("Stiefel", Parameterization::Stiefel),
    ("unconstrained", Parameterization::Unconstrained),
    ("monotonic", Parameterization::Monotonic),
];

/// A data set as rows of variables, and a tree over them.
pub(super) struct Problem {
    tree: RegionTree,
    pub(super) variables: Vec<Variable>,
    bases: Vec<Basis>,
    /// The training, validation and test rows.
    pub(super) encoded: [Encoded; 3],
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let seconds = arguments.seconds(60.0);
    println!("At most {seconds} seconds a fit, all of one set with the same width and schedule.\n");
    println!(
        "| set | parameterization | width | final width | epochs | seconds per epoch | valid | test | largest residual |"
    );
    println!("|---|---|{}", "--:|".repeat(7));
    for set in arguments.sets(&["nltcs", "digits8x8", "ccpp"]) {
        let problem = problem(&set, arguments)?;
        let mut lines = Vec::new();
        for (name, kind) in KINDS {
            let history = learn(&set, name, kind, &problem, arguments, seconds)?;
            lines.push((name, history));
        }
        if let Some(folder) = &arguments.pictures {
            draw(folder, &set, &lines)?;
        }
    }
    Ok(())
}

fn learn(
    set: &str,
    name: &str,
    kind: Parameterization,
    problem: &Problem,
    arguments: &Arguments,
    seconds: f64,
) -> Result<Vec<Epoch>, Failure> {
    let is_monotonic = kind == Parameterization::Monotonic;
    let defaults = Defaults::of(problem.encoded[0].num_rows(), problem.variables.len());
    let width = arguments.width.unwrap_or(8);
    let smoothing: f64 = arguments.smoothing.unwrap_or(0.0);
    let smoothing = vec![smoothing; problem.variables.len()];
    let options = arguments.options(&defaults, width);
    let mut options = FitOptions { parameterization: kind, smoothing, ..options };
    if is_monotonic {
        // Logits are about 1 at any width, and have to move far from a start near a product.
        let rate = 4.0 * options.rate * width as f64;
        options = FitOptions { squares: 1, rate, patience: options.epochs, ..options };
    }
    let (circuit, values) = problem.circuit(&options)?;
    let rows = |n: usize| Batch::from_rows(circuit.variables(), &values[n]);
    let (train, valid, test_rows) = (rows(0)?, rows(1)?, rows(2)?);
    let clock = Clock::new(name, seconds, arguments.verbose);
    let (fitted, best, history, test) = if is_monotonic {
        let fit = monotonic::fit(&circuit, &train, &valid, &options, &mut |p| clock.step(p))?;
        let test = monotonic::mean_log_likelihood(&fit.circuit, &test_rows)?;
        (fit.circuit, fit.valid, fit.history, test)
    } else {
        let fit = fit(&circuit, &train, &valid, &options, &mut |p| clock.step(p))?;
        let test = mean_log_likelihood(&fit.circuit, &test_rows);
        (fit.circuit.into_circuit(), fit.valid, fit.history, test)
    };
    let epoch = clock.elapsed() / history.len().max(1) as f64;
    let last = fitted.layer_ids().map(|id| fitted.width(id)).filter(|&w| w <= width).max();
    let residual = history.iter().map(|e| e.residual).fold(0.0, f64::max);
    println!(
        "| {set} | {name} | {width} | {} | {} | {epoch:.2} | {:.3} | **{:.3}** | {residual:.0e} |",
        last.unwrap_or(0),
        history.len(),
        best + problem.offset(1, is_monotonic),
        test + problem.offset(2, is_monotonic),
    );
    let shift = [problem.offset(0, is_monotonic), problem.offset(1, is_monotonic)];
    let moved = |e: &Epoch| Epoch { train: e.train + shift[0], valid: e.valid + shift[1], ..*e };
    Ok(history.iter().map(moved).collect())
}

pub(super) fn problem(set: &str, arguments: &Arguments) -> Result<Problem, Failure> {
    let splits = if set == "digits8x8" {
        digits(&arguments.data("digits8x8"))?
    } else {
        super::missing::splits(set, arguments)?
    };
    let schema = Schema::infer(&splits.train, &bornite::data::InferOptions::default())?;
    let lenient = EncodeOptions { unseen: Unseen::Missing, absent: Mismatch::Error };
    let encode = |table: &Table| schema.encode_with(table, lenient);
    let encoded = [encode(&splits.train)?, encode(&splits.valid)?, encode(&splits.test)?];
    let variables = schema.variables();
    let how = InformationOptions { ordered: schema.ordered(), ..InformationOptions::default() };
    let tree = match splits.train.image() {
        Some([height, width, channels]) => RegionTree::image(height, width, channels),
        None => average_linkage(&mutual_information(encoded[0].batch(), &variables, &how)?),
    };
    let functions = Defaults::of(encoded[0].num_rows(), variables.len()).first_functions();
    Ok(Problem { tree, bases: schema.bases(functions)?, variables, encoded })
}

/// The small digits: every tenth row for validation, and every tenth for test.
fn digits(folder: &str) -> Result<Splits, Failure> {
    let table = Table::read_idx(format!("{folder}/digits-images-idx3-ubyte.gz"))?;
    let rows = |keep: &dyn Fn(usize) -> bool| {
        table.select_rows(&(0..table.num_rows()).filter(|&r| keep(r % 10)).collect::<Vec<_>>())
    };
    Ok(Splits { train: rows(&|n| n < 8), valid: rows(&|n| n == 8), test: rows(&|n| n == 9) })
}

impl Problem {
    fn is_finite(&self, v: usize) -> bool {
        matches!(self.variables[v].domain, Domain::Finite(_))
    }

    /// A circuit, and the rows as values of its variables.
    pub(super) fn circuit(
        &self,
        options: &FitOptions,
    ) -> Result<(Skeleton, [Vec<f64>; 3]), Failure> {
        let is_binned = |v: usize| {
            options.parameterization == Parameterization::Monotonic && !self.is_finite(v)
        };
        let leaf = |v: usize| {
            if !is_binned(v) {
                return (self.variables[v].clone(), self.bases[v].clone());
            }
            let name = self.variables[v].name.clone();
            (Variable::new(name, Domain::Finite(BINS)), Basis::indicator(BINS))
        };
        let structure = Structure::new(self.tree.clone(), leaf)
            .width(options.width)
            .output_width(options.squares);
        let circuit = structure.skeleton()?;
        let d = self.variables.len();
        let values = self.encoded.each_ref().map(|encoded| {
            let mut values = encoded.to_rows();
            for (n, x) in values.iter_mut().enumerate().filter(|(n, _)| is_binned(n % d)) {
                let Domain::Interval(a, b) = self.variables[n % d].domain else { continue };
                *x = monotonic::binned(&[(*x - a) / (b - a)], BINS)[0];
            }
            values
        });
        Ok((circuit, values))
    }

    /// The constant that converts the mean log-likelihood of one of the tables to the units of the data.
    fn offset(&self, table: usize, is_monotonic: bool) -> f64 {
        let logs = self.encoded[table].log_jacobian();
        let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        let log = |v: &Variable| match v.domain {
            Domain::Interval(a, b) if is_monotonic => (BINS as f64 / (b - a)).ln(),
            _ => 0.0,
        };
        mean + self.variables.iter().map(log).sum::<f64>()
    }
}

/// Plots the validation likelihood and the residual by epoch.
fn draw(folder: &str, set: &str, lines: &[(&str, Vec<Epoch>)]) -> Result<(), Failure> {
    type Value = fn(&Epoch) -> f64;
    let parts: [(&str, &str, Value); 2] = [
        ("valid", "validation log-likelihood, nats", |e| e.valid),
        ("residual", "log₁₀ of the largest |W Wᴴ − I|", |e| e.residual.max(1e-17).log10()),
    ];
    for (name, label, value) in parts {
        let kept = lines
            .iter()
            .filter(|(kind, _)| name == "valid" || ["Cholesky", "Stiefel"].contains(kind));
        let line = |(kind, history): &(&str, Vec<Epoch>)| Line {
            name: (*kind).to_owned(),
            values: history.iter().map(value).collect(),
        };
        let plot = Plot {
            title: format!("{set}: {label}"),
            across: "epoch".to_owned(),
            lines: kept.map(line).collect(),
        };
        std::fs::write(format!("{folder}/learning-{set}-{name}.svg"), plot.svg())?;
    }
    Ok(())
}
