//! Continuous tables, next to Gaussian mixtures on the same columns.

use std::collections::BTreeMap;

use bornite::data::Table;

use super::Failure;
use super::arguments::Arguments;
use super::table::{log_units, numbers};

const SETS: [&str; 16] = [
    "wine_red",
    "wine_white",
    "seeds",
    "ionosphere",
    "sonar",
    "ccpp",
    "concrete",
    "energy",
    "yacht",
    "kin8nm",
    "protein",
    "breast_cancer",
    "wine13",
    "iris",
    "power_head",
    "miniboone_head",
];

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mixtures = mixtures(arguments)?;
    let seconds = arguments.seconds(f64::INFINITY);
    println!(
        "Mean log-likelihood in nats of columns with more than 30 distinct values, as a density in units of their deviations. At most {seconds} seconds a set.\n"
    );
    println!(
        "| set | rows | columns | on a grid | width | circuits | seconds | valid | test | mixture (k) | ahead |"
    );
    println!("|---|{}---|", "--:|".repeat(9));
    for set in arguments.sets(&SETS) {
        let path = format!("{}/{set}.csv.gz", arguments.data("uci"));
        let (splits, deviations) = numbers(&path)?;
        let train = &splits.train;
        let (model, time) = arguments.fit(&set, [train, &splits.valid], seconds)?;
        let (units, grids) = log_units(model.schema(), &deviations);
        let test = model.mean_log_likelihood(&splits.test)? + units;
        let info = model.info();
        let (mixture, ahead) = match mixtures.get(&set) {
            Some((k, log)) => {
                (format!("{log:.3} ({k})"), if test > *log { "yes" } else { "**no**" })
            }
            None => (String::new(), ""),
        };
        println!(
            "| {set} | {} | {} | {grids} | {} | {} | {time:.0} | {:.3} | **{test:.3}** | {mixture} | {ahead} |",
            train.num_rows(),
            train.num_columns(),
            info.width,
            model.mixture().circuits().len(),
            info.valid + units,
        );
    }
    Ok(())
}

/// By set the number of components and the test likelihood, from lines `set,k,valid,test`.
fn mixtures(arguments: &Arguments) -> Result<BTreeMap<String, (usize, f64)>, Failure> {
    let Some(path) = &arguments.mixtures else { return Ok(BTreeMap::new()) };
    let table = Table::read_csv(path, &bornite::data::CsvOptions::default())?;
    let column = |name: &str| table.column(name);
    let (set, k, test) = (column("set")?, column("k")?, column("test")?);
    let line = |row: usize| {
        let number = |c: &bornite::data::Column| c.number(row).unwrap_or(f64::NAN);
        (set.text(row).into_owned(), (number(k) as usize, number(test)))
    };
    Ok((0..table.num_rows()).map(line).collect())
}
