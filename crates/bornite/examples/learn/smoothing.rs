//! The effect of smooth input weights on a table of few images.

use bornite::engine::Batch;
use bornite::learn::{Defaults, FitOptions, fit, mean_log_likelihood};

use super::Failure;
use super::arguments::{Arguments, Clock};
use super::parameterizations::problem;

const STRENGTHS: [f64; 7] = [0.0, 0.001, 0.01, 0.03, 0.1, 0.3, 1.0];

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let seconds = arguments.seconds(60.0);
    let problem = problem("digits8x8", arguments)?;
    let rows = problem.encoded[0].num_rows();
    let defaults = Defaults::of(rows, problem.variables.len());
    let width = arguments.width.unwrap_or(8);
    println!(
        "{rows} images of 8 × 8 digits, width {width}, at most {seconds} seconds a fit; the default is {:.3}.\n",
        defaults.image_smoothing()
    );
    println!("| smoothing | epochs | seconds | valid | test |");
    println!("|{}", "--:|".repeat(5));
    for strength in STRENGTHS {
        let smoothing = vec![strength; problem.variables.len()];
        let options = FitOptions { smoothing, ..arguments.options(&defaults, width) };
        let (circuit, values) = problem.circuit(&options)?;
        let rows = |n: usize| Batch::from_rows(circuit.variables(), &values[n]);
        let (train, valid, test) = (rows(0)?, rows(1)?, rows(2)?);
        let clock = Clock::new("digits8x8", seconds, arguments.verbose);
        let fit = fit(&circuit, &train, &valid, &options, &mut |p| clock.step(p))?;
        println!(
            "| {strength} | {} | {:.0} | {:.3} | **{:.3}** |",
            fit.history.len(),
            clock.elapsed(),
            fit.valid,
            mean_log_likelihood(&fit.circuit, &test),
        );
    }
    Ok(())
}
