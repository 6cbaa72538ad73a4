//! The binary density-estimation sets.

use std::collections::BTreeMap;

use bornite::basis::Basis;
use bornite::circuit::Skeleton;
use bornite::data::read_bits;
use bornite::engine::Batch;
use bornite::learn::{
    Defaults, FitOptions, Progress, Starts, fit_best, mean_log_likelihood, most_promising,
};
use bornite::structure::{
    InformationOptions, RegionTree, Structure, average_linkage, chow_liu_tree, mutual_information,
    root_edges,
};
use bornite::{Domain, Variable};

use super::arguments::{Arguments, Clock};
use super::{Failure, table};

const PUBLISHED: &str = include_str!("debd.csv");

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let published = Published::new();
    let all: Vec<&str> = published.sets.iter().map(String::as_str).collect();
    let names = &published.columns;
    let seconds = arguments.seconds(f64::INFINITY);
    println!("At most {seconds} seconds a set, all widths together.\n");
    println!(
        "| set | vars | tree | width | tried | epochs | seconds | valid | test | {} |",
        names.join(" | ")
    );
    println!("|---|{}", "--:|".repeat(8 + names.len()));
    for set in arguments.sets(&all) {
        let columns = published.rows.get(&set).map_or(String::new(), |row| row.join(" | "));
        println!("| {set} | {} | {columns} |", learn(&set, arguments, seconds)?);
    }
    Ok(())
}

/// Binarized MNIST as files that the command reads.
pub(super) fn bits(arguments: &Arguments) -> Result<(), Failure> {
    let splits = read_bits(format!("{}/bmnist.bits.gz", arguments.data("bmnist")))?;
    let out = &arguments.out;
    splits.train.write_npy(format!("{out}-train.npy"))?;
    splits.valid.write_npy(format!("{out}-valid.npy"))?;
    splits.test.write_npy(format!("{out}-test.npy"))?;
    Ok(())
}

struct Published {
    sets: Vec<String>,
    columns: Vec<String>,
    rows: BTreeMap<String, Vec<String>>,
}

impl Published {
    fn new() -> Self {
        let mut lines = PUBLISHED.lines().filter(|line| !line.starts_with('#'));
        let cells = |line: &str| line.split(',').skip(1).map(str::to_owned).collect::<Vec<_>>();
        let set = |line: &str| line.split(',').next().unwrap_or_default().to_owned();
        let columns = lines.next().map(cells).unwrap_or_default();
        let sets = lines.clone().map(set).collect();
        Self { sets, columns, rows: lines.map(|line| (set(line), cells(line))).collect() }
    }
}

/// Learns one set; returns the cells of its line.
fn learn(set: &str, arguments: &Arguments, seconds: f64) -> Result<String, Failure> {
    let splits = read_bits(format!("{}/{set}.bits.gz", arguments.data("debd")))?;
    let [values, valid, test] = [&splits.train, &splits.valid, &splits.test].map(table::values);
    let clock = Clock::new(set, seconds, arguments.verbose);
    let d = splits.train.num_columns();
    let variables: Vec<Variable> = (0..d).map(variable).collect();
    let rows = |values| Batch::from_rows(&variables, values);
    let (train, valid, test) = (rows(&values)?, rows(&valid)?, rows(&test)?);
    let defaults = Defaults::of(splits.train.num_rows(), d);
    // As `Model::fit` does: a short trial of two trees, then the widths.
    let trees = trees(&train, &variables)?;
    let mut trials = Vec::new();
    for (_, tree) in &trees {
        let options = arguments.options(&defaults, 4);
        trials.push((circuit(tree, &options)?, options));
    }
    let starts = &mut Starts::default();
    let step = &mut |p: &Progress| clock.step(p);
    let (structure, tree) = &trees[most_promising(&trials, &train, &valid, starts, step)?];
    let mut candidates = Vec::new();
    for options in arguments.candidates(&defaults) {
        candidates.push((circuit(tree, &options)?, options));
    }
    let best = fit_best(&candidates, &train, &valid, None, starts, &mut |p, _| clock.step(p))?;
    let best = best.ok_or("no width")?;
    let time = clock.elapsed();
    let test = mean_log_likelihood(&best.fit.circuit, &test);
    let (width, epochs, valid) =
        (candidates[best.index].1.width, best.fit.history.len(), best.fit.valid);
    let tried = best.tried.len();
    Ok(format!(
        "{d} | {structure} | {width} | {tried} | {epochs} | {time:.0} | {valid:.3} | **{test:.3}**"
    ))
}

fn variable(v: usize) -> Variable {
    Variable::new(format!("x{v}"), Domain::Finite(2))
}

/// The trees that come into question, by the mutual information of the rows.
fn trees(
    train: &Batch,
    variables: &[Variable],
) -> Result<[(&'static str, RegionTree); 2], Failure> {
    let information = mutual_information(train, variables, &InformationOptions::default())?;
    let rooted = root_edges(variables.len(), &chow_liu_tree(&information));
    Ok([("chow-liu", rooted), ("linkage", average_linkage(&information))])
}

/// Indicators below, Kronecker products.
pub(super) fn circuit(tree: &RegionTree, options: &FitOptions) -> Result<Skeleton, Failure> {
    let structure = Structure::new(tree.clone(), |v| (variable(v), Basis::indicator(2)))
        .width(options.width)
        .output_width(options.squares);
    Ok(structure.skeleton()?)
}
