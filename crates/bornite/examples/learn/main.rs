//! What learning reaches on public data, as Markdown. `bench/learn` calls it:
//!
//! ```sh
//! cargo run --release -p bornite --example learn -- debd --sets nltcs,plants --seconds 60
//! ```
//!
//! | part | what |
//! |---|---|
//! | `debd` | the binary density-estimation sets, next to published results |
//! | `uci` | continuous tables, next to Gaussian mixtures (`--mixtures FILE`, made by `bench/mixtures.py`) |
//! | `missing` | cells removed from the rows to learn from: marginal likelihood, mean imputation, rows dropped |
//! | `bits` | binarized MNIST as three NPY files, for the command (`--out PREFIX`) |
//! | `smoothing` | smooth input weights of images, from none to much |
//! | `parameterizations` | the four parameterizations side by side, with pictures (`--pictures FOLDER`) |
//!
//! Settings are the library's defaults. `--sets` names data sets, `--seconds` bounds each fit (of a search, all of it),
//! `--seed` is the seed, `--data` the folder. `--width`, `--squares`, `--rate`, `--batch`, `--epochs`, `--patience`,
//! `--averaging` and `--clip` replace defaults, for trials, and `--smoothing` in `parameterizations`; `--verbose` shows every epoch.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

mod arguments;
mod debd;
mod missing;
mod parameterizations;
mod plot;
mod smoothing;
mod table;
mod uci;

use std::error::Error;

use arguments::{Arguments, Part};
use clap::Parser;

/// Whatever can go wrong here ends the program.
type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    match arguments.part {
        Part::Debd => debd::run(&arguments),
        Part::Bits => debd::bits(&arguments),
        Part::Uci => uci::run(&arguments),
        Part::Missing => missing::run(&arguments),
        Part::Parameterizations => parameterizations::run(&arguments),
        Part::Smoothing => smoothing::run(&arguments),
    }
}
