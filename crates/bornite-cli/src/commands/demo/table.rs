//! A table of mixed types: fitted, then asked questions with known answers.

use anyhow::Result;
use bornite::Model;
use bornite::data::{CsvOptions, Table as Data};
use bornite::model::Imputation;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::Stage;
use super::weather::{Day, MISSING_SHARE, days};
use crate::output::{Table, time};
use crate::tables;

const ROWS: usize = 4000;
/// New days, for the report of the model.
const FRESH: usize = 1000;

pub(super) fn run(stage: &mut Stage<'_>) -> Result<()> {
    let rng = &mut ChaCha8Rng::seed_from_u64(stage.seed);
    let table = days(ROWS, rng)?;
    writeln!(stage.out, "\nA table of mixed types, from a known distribution\n")?;
    let (model, took) = stage.fit(&table)?;
    let info = model.info();
    writeln!(
        stage.out,
        "  {ROWS} days of season, rain, umbrella, degrees and visitors, {:.0}% of all cells missing, fitted in {}.\n  \
         Log-likelihood of held-out days: {:.3} nats; {:.3} if all columns were independent.\n",
        100.0 * MISSING_SHARE,
        time(took),
        info.valid,
        info.baseline
    )?;
    compare(stage, &model)?;
    fill(stage, &model)?;
    let path = stage.folder.join("weather.model");
    model.save(&path)?;
    let rows = stage.folder.join("weather-samples.csv");
    tables::write(&model.sample(1000, stage.seed)?, &rows)?;
    writeln!(
        stage.out,
        "\n  The model is in {}, a thousand new days are in {}.\n  Ask it: bornite query {} \
         \"P(rain='yes' | degrees in [10, 15))\"",
        path.display(),
        rows.display(),
        path.display()
    )?;
    let fresh = days(FRESH, rng)?;
    stage.report(&model, &fresh, "report.html", "Simulated weather")?;
    Ok(())
}

/// The model's answers next to the true ones.
fn compare(stage: &mut Stage<'_>, model: &Model) -> Result<()> {
    let any = Day::default();
    let p = |event: Day, given: Day| event.probability() / given.probability();
    let (wet, umbrella) = (Day { rain: Some(true), ..any }, Day { umbrella: Some(true), ..any });
    let cold = Day { degrees: Some((f64::NEG_INFINITY, 5.0)), ..any };
    let summer = Day { season: Some(1), ..any };
    let few = Day { degrees: Some((8.0, 12.0)), visitors: Some((0, 10)), ..any };
    let questions = [
        ("P(rain=yes)", wet.probability()),
        ("P(umbrella=yes | rain=yes)", p(Day { rain: Some(true), ..umbrella }, wet)),
        ("P(rain=yes | umbrella=yes)", p(Day { rain: Some(true), ..umbrella }, umbrella)),
        ("P(season=winter | degrees < 5)", p(Day { season: Some(3), ..cold }, cold)),
        (
            "P(degrees in [20, 25) | season=summer)",
            p(Day { degrees: Some((20.0, 25.0)), ..summer }, summer),
        ),
        (
            "P(rain=yes | degrees in [8, 12), visitors < 10)",
            p(Day { rain: Some(true), ..few }, few),
        ),
        ("E[degrees | umbrella=yes]", umbrella.mean_degrees()),
        ("median(degrees | season=winter)", 2.0),
    ];
    let mut table = Table::new(1, &["question", "model", "truth"]);
    for (question, truth) in questions {
        let found = model.ask(question)?.number().unwrap_or(f64::NAN);
        table.row([question.to_owned(), format!("{found:.3}"), format!("{truth:.3}")]);
    }
    Ok(table.write(stage.out)?)
}

/// A few rows with missing values, before and after imputation.
fn fill(stage: &mut Stage<'_>, model: &Model) -> Result<()> {
    let text = "season,rain,umbrella,degrees,visitors\n,,yes,3.5,\nsummer,,,,22\n,no,,12.0,\n";
    let missing = Data::from_csv_bytes(text.as_bytes(), "the demo", &CsvOptions::default())?;
    let filled = model.impute(&missing, Imputation::Median, stage.seed)?;
    let names: Vec<&str> = missing.columns().iter().map(bornite::data::Column::name).collect();
    writeln!(stage.out, "\n  Missing cells, imputed from the rest of the row (in brackets):\n")?;
    let mut table = Table::new(names.len(), &names);
    for row in 0..missing.num_rows() {
        table.row(missing.columns().iter().zip(filled.columns()).map(|(old, new)| {
            let number = new.number(row).map(|x| format!("{}", (x * 10.0).round() / 10.0));
            let cell = number.unwrap_or_else(|| new.text(row).into_owned());
            if old.is_missing(row) { format!("[{cell}]") } else { cell }
        }));
    }
    Ok(table.write(stage.out)?)
}
