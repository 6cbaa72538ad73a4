//! Learns the binary density-estimation sets and prints a Markdown table next to published results:
//!
//! ```sh
//! cargo run --release -p bornite --example learn_debd -- --data FOLDER --sets nltcs,plants --seconds 60
//! ```
//!
//! Widths are tried from the narrowest on until validation says stop; `--width 4,8` names them. Every other setting has a
//! default that comes from the size of the data; `--epochs`, `--rate`, `--batch`, `--averaging`,
//! `--patience`, `--squares`, `--tree`, `--parameterization` and `--seed` change it, `--seconds` ends each fit early, `--verbose` shows
//! every epoch.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

use bornite::basis::Basis;
use bornite::circuit::Weights;
use bornite::data::{Table, read_bits};
use bornite::engine::Rows;
use bornite::learn::{
    Control, FitOptions, Parameterization, Progress, WIDTHS, fit_best, mean_log_likelihood,
};
use bornite::structure::{
    InformationOptions, RegionTree, Structure, average_linkage, chow_liu_tree, cut_edges,
    mutual_information,
};
use bornite::{Circuit, Domain, Variable};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

const PUBLISHED: &str = include_str!("debd.csv");

type Arguments = BTreeMap<String, String>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    let published = published();
    let sets = match arguments.get("sets") {
        Some(list) => list.split(',').map(str::to_owned).collect(),
        None => published.0.clone(),
    };
    let names = &published.2;
    println!(
        "| set | vars | width | tried | epochs | seconds | valid | test | {} |",
        names.join(" | ")
    );
    println!("|---|{}", "--:|".repeat(7 + names.len()));
    for set in sets {
        let columns = published.1.get(&set).map_or(String::new(), |row| row.join(" | "));
        println!("| {set} | {} | {columns} |", learn(&set, &arguments)?);
    }
    Ok(())
}

/// `--name value` pairs; `--verbose` stands alone.
fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut list = std::env::args().skip(1);
    let mut arguments = Arguments::new();
    while let Some(name) = list.next() {
        let name = name.strip_prefix("--").ok_or(format!("'{name}' is no option"))?.to_owned();
        let value =
            if name == "verbose" { String::new() } else { list.next().ok_or("no value")? };
        arguments.insert(name, value);
    }
    Ok(arguments)
}

/// The sets in their order, their rows, and the names of the columns.
fn published() -> (Vec<String>, BTreeMap<String, Vec<String>>, Vec<String>) {
    let mut lines = PUBLISHED.lines().filter(|line| !line.starts_with('#'));
    let cells = |line: &str| line.split(',').skip(1).map(str::to_owned).collect::<Vec<_>>();
    let names = lines.next().map(cells).unwrap_or_default();
    let set = |line: &str| line.split(',').next().unwrap_or_default().to_owned();
    let order = lines.clone().map(set).collect();
    (order, lines.map(|line| (set(line), cells(line))).collect(), names)
}

fn values(table: &Table) -> Vec<f64> {
    let columns = table.columns();
    let cell = |row: usize, column: usize| columns[column].number(row).unwrap_or(f64::NAN);
    (0..table.num_rows()).flat_map(|row| (0..columns.len()).map(move |c| cell(row, c))).collect()
}

/// Learns one set; returns the cells of its line.
fn learn(set: &str, arguments: &Arguments) -> Result<String, Box<dyn Error>> {
    let folder = arguments.get("data").map_or("../shared/data/debd", String::as_str);
    let splits = read_bits(format!("{folder}/{set}.bits.gz"))?;
    let [train, valid, test] = [&splits.train, &splits.valid, &splits.test].map(values);
    let start = Instant::now();
    let num_variables = splits.train.num_columns();
    let widths: Vec<usize> = match arguments.get("width") {
        Some(list) => list.split(',').map(str::parse).collect::<Result<_, _>>()?,
        None => WIDTHS.to_vec(),
    };
    let mut candidates = Vec::new();
    for width in widths {
        let options = options(splits.train.num_rows(), width, arguments)?;
        candidates.push((circuit(&train, num_variables, &options, arguments)?, options));
    }
    let variables = candidates[0].0.variables().to_vec();
    let rows = |values| Rows::new(&variables, values);
    let (train, valid, test) = (rows(&train)?, rows(&valid)?, rows(&test)?);
    let seconds = number(arguments, "seconds", f64::INFINITY)?;
    let verbose = arguments.contains_key("verbose");
    let widths: Vec<usize> = candidates.iter().map(|c| c.1.width).collect();
    let mut progress = |index: usize, p: &Progress| {
        let time = start.elapsed().as_secs_f64();
        if p.epoch_ended && verbose {
            let (width, valid) = (widths[index], p.valid.unwrap_or(f64::NAN));
            let [epoch, train] = [format!("{}", p.epoch), format!("{:.3}", p.train)];
            eprintln!(
                "{set} K={width} epoch {epoch}: train {train}, valid {valid:.3}, {time:.0} s"
            );
        }
        if time >= seconds { Control::Stop } else { Control::Continue }
    };
    let best = fit_best(candidates, &train, &valid, &mut progress)?.ok_or("no width")?;
    let time = start.elapsed().as_secs_f64();
    let test = mean_log_likelihood(&best.fit.circuit, &test);
    let (width, epochs, valid) = (widths[best.index], best.fit.history.len(), best.fit.valid);
    let tried = best.tried.len();
    Ok(format!(
        "{num_variables} | {width} | {tried} | {epochs} | {time:.0} | {valid:.3} | **{test:.3}**"
    ))
}

/// A tree from the mutual information of the rows, indicators below, Kronecker products.
fn circuit(
    train: &[f64],
    num_variables: usize,
    options: &FitOptions,
    arguments: &Arguments,
) -> Result<Circuit, Box<dyn Error>> {
    let variable = |v: usize| Variable::new(format!("x{v}"), Domain::Finite(2));
    let variables: Vec<Variable> = (0..num_variables).map(variable).collect();
    let information = mutual_information(train, &variables, &InformationOptions::default())?;
    let leaf = |v: usize| (variable(v), Basis::indicator(2));
    let tree = match arguments.get("tree").map(String::as_str) {
        None | Some("linkage") => average_linkage(&information),
        Some("chow-liu") => cut_edges(num_variables, &chow_liu_tree(&information)),
        Some("balanced") => RegionTree::balanced(num_variables),
        Some(other) => return Err(format!("'{other}' is no tree").into()),
    };
    let structure = Structure::new(tree, leaf);
    let rng = &mut ChaCha8Rng::seed_from_u64(0);
    let structure = structure.width(options.width).output_width(options.squares);
    Ok(structure.build(Weights::Haar, rng)?)
}

fn options(rows: usize, width: usize, a: &Arguments) -> Result<FitOptions, Box<dyn Error>> {
    let defaults = FitOptions::for_data(rows, width);
    Ok(FitOptions {
        squares: number(a, "squares", defaults.squares as f64)? as usize,
        epochs: number(a, "epochs", defaults.epochs as f64)? as usize,
        batch: number(a, "batch", defaults.batch as f64)? as usize,
        rate: number(a, "rate", defaults.rate)?,
        patience: number(a, "patience", defaults.patience as f64)? as usize,
        averaging: number(a, "averaging", defaults.averaging)?,
        seed: number(a, "seed", 0.0)? as u64,
        parameterization: match a.get("parameterization").map(String::as_str) {
            None | Some("cholesky") => Parameterization::Cholesky,
            Some("stiefel") => Parameterization::Stiefel,
            Some("unconstrained") => Parameterization::Unconstrained,
            Some(other) => return Err(format!("'{other}' is no parameterization").into()),
        },
        ..defaults
    })
}

fn number(arguments: &Arguments, name: &str, default: f64) -> Result<f64, Box<dyn Error>> {
    arguments.get(name).map_or(Ok(default), |text| Ok(text.parse()?))
}
