//! The binary density-estimation sets.

use std::collections::BTreeMap;

use bornite::data::read_bits;

use super::Failure;
use super::arguments::Arguments;

const PUBLISHED: &str = include_str!("debd.csv");

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let published = Published::new();
    let all: Vec<&str> = published.sets.iter().map(String::as_str).collect();
    let names = &published.columns;
    let seconds = arguments.seconds(f64::INFINITY);
    println!("At most {seconds} seconds a set, all widths together.\n");
    println!(
        "| set | vars | tree | width | circuits | epochs | seconds | valid | test | {} |",
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

/// Fits a model to a data set, and returns the cells of its line.
fn learn(set: &str, arguments: &Arguments, seconds: f64) -> Result<String, Failure> {
    let splits = read_bits(format!("{}/{set}.bits.gz", arguments.data("debd")))?;
    let (model, time) = arguments.fit(set, [&splits.train, &splits.valid], seconds)?;
    let test = model.mean_log_likelihood(&splits.test)?;
    let (info, d) = (model.info(), splits.train.num_columns());
    let circuits = model.mixture().circuits().len();
    Ok(format!(
        "{d} | {} | {} | {circuits} | {} | {time:.0} | {:.3} | **{test:.3}**",
        info.structure,
        info.width,
        info.history.len(),
        info.valid,
    ))
}
