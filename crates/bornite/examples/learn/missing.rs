//! Values removed at random from the training rows. Validation and test rows are complete.

use bornite::data::{Column, Table, read_bits};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Failure;
use super::arguments::Arguments;
use super::table::{Splits, standardized};

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let seconds = arguments.seconds(120.0);
    println!("Test log-likelihood in nats of complete rows. At most {seconds} seconds a fit.\n");
    println!("| set | removed | exact | mean imputation | rows dropped | rows left | seconds |");
    println!("|---|{}", "--:|".repeat(6));
    for set in arguments.sets(&["nltcs", "wine_white", "ccpp"]) {
        let splits = splits(&set, arguments)?;
        for share in [0.0, 0.2, 0.5] {
            let train = remove(&splits.train, share)?;
            let whole: Vec<usize> = (0..train.num_rows())
                .filter(|&row| train.columns().iter().all(|c| !c.is_missing(row)))
                .collect();
            let (exact, time) = score(&set, &train, &splits, arguments, seconds)?;
            let mut cells = [exact, f64::NAN, f64::NAN];
            if share > 0.0 {
                cells[1] = score(&set, &mean_filled(&train)?, &splits, arguments, seconds)?.0;
                if whole.len() >= 10 {
                    let rest = train.select_rows(&whole);
                    cells[2] = score(&set, &rest, &splits, arguments, seconds)?.0;
                }
            }
            let text = cells.map(|x| if x.is_nan() { "–".to_owned() } else { format!("{x:.3}") });
            let left = whole.len();
            println!(
                "| {set} | {:.0} % | {} | {left} | {time:.0} |",
                share * 100.0,
                text.join(" | ")
            );
        }
    }
    Ok(())
}

/// The binary data set with this name if there is one, and otherwise the continuous one.
pub(super) fn splits(set: &str, arguments: &Arguments) -> Result<Splits, Failure> {
    let bits = format!("{}/{set}.bits.gz", arguments.data("debd"));
    if !std::path::Path::new(&bits).exists() {
        return standardized(&format!("{}/{set}.csv.gz", arguments.data("uci")));
    }
    let found = read_bits(bits)?;
    Ok(Splits { train: found.train, valid: found.valid, test: found.test })
}

fn score(
    set: &str,
    train: &Table,
    splits: &Splits,
    arguments: &Arguments,
    seconds: f64,
) -> Result<(f64, f64), Failure> {
    let (model, time) = arguments.fit(set, [train, &splits.valid], seconds)?;
    Ok((model.mean_log_likelihood(&splits.test)?, time))
}

/// The table with this fraction of its values removed.
fn remove(table: &Table, share: f64) -> Result<Table, Failure> {
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    let columns = table.columns().iter().map(|c| {
        let cell = |row: usize, rng: &mut ChaCha8Rng| match c.number(row) {
            Some(x) if !rng.random_bool(share) => x,
            _ => f64::NAN,
        };
        Column::numbers(c.name(), (0..c.len()).map(|row| cell(row, &mut rng)).collect())
    });
    Ok(Table::new(columns.collect())?)
}

/// The table with missing values replaced by the mean of their column, or by the more frequent value
/// of a binary column.
fn mean_filled(table: &Table) -> Result<Table, Failure> {
    let columns = table.columns().iter().map(|c| {
        let known: Vec<f64> = (0..c.len()).filter_map(|row| c.number(row)).collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        let is_bit = known.iter().all(|&x| x == 0.0 || x == 1.0);
        let fill = if is_bit { mean.round() } else { mean };
        let cell = |row: usize| c.number(row).unwrap_or(fill);
        Column::numbers(c.name(), (0..c.len()).map(cell).collect())
    });
    Ok(Table::new(columns.collect())?)
}
