//! Command-line arguments.

use std::cell::Cell;
use std::time::{Duration, Instant};

use bornite::data::Table;
use bornite::learn::{Control, Defaults, FitOptions, Progress};
use bornite::model::ModelOptions;
use bornite::{Fit, Model};
use clap::{Parser, ValueEnum};

use super::Failure;

/// Measures log-likelihoods on public data, and prints Markdown.
#[derive(Debug, Parser)]
pub(super) struct Arguments {
    /// What to measure.
    #[arg(value_enum)]
    pub(super) part: Part,
    /// The data sets, separated by commas [default: all].
    #[arg(long, value_delimiter = ',')]
    sets: Vec<String>,
    /// The time limit of each fit or search.
    #[arg(long)]
    seconds: Option<f64>,
    /// The folder with the data sets.
    #[arg(long, default_value = "../shared/data")]
    data: String,
    /// The random seed.
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// The maximum number of circuits of a mixture.
    #[arg(long)]
    pub(super) circuits: Option<usize>,
    /// The width K of inner layers.
    #[arg(long)]
    pub(super) width: Option<usize>,
    /// The number of squares in the sum.
    #[arg(long)]
    pub(super) squares: Option<usize>,
    /// The number of input functions per continuous column.
    #[arg(long)]
    pub(super) functions: Option<usize>,
    /// The learning rate.
    #[arg(long)]
    pub(super) rate: Option<f64>,
    /// The number of rows per step.
    #[arg(long)]
    pub(super) batch: Option<usize>,
    /// The maximum number of passes over the rows.
    #[arg(long)]
    pub(super) epochs: Option<usize>,
    /// The number of epochs without improvement before a fit stops.
    #[arg(long)]
    pub(super) patience: Option<usize>,
    /// The decay of the running average of weights per step.
    #[arg(long)]
    pub(super) averaging: Option<f64>,
    /// The norm that gradients are clipped to.
    #[arg(long)]
    pub(super) clip: Option<f64>,
    /// The strength of smoothing, for parameterizations.
    #[arg(long)]
    pub(super) smoothing: Option<f64>,
    /// The Gaussian mixtures to compare with, from bench/mixtures.py.
    #[arg(long, value_name = "FILE")]
    pub(super) mixtures: Option<String>,
    /// The prefix of the files that bits writes.
    #[arg(long, value_name = "PREFIX", default_value = "bmnist")]
    pub(super) out: String,
    /// The folder for the plots of parameterizations.
    #[arg(long, value_name = "FOLDER")]
    pub(super) pictures: Option<String>,
    /// Show every epoch.
    #[arg(long)]
    pub(super) verbose: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Part {
    /// The binary density-estimation sets, next to published results.
    Debd,
    /// Continuous tables, next to Gaussian mixtures.
    Uci,
    /// Values removed from the training rows.
    Missing,
    /// Binarized MNIST as three NPY files, for the command.
    Bits,
    /// Input weights of images with more and more smoothing.
    Smoothing,
    /// The four parameterizations side by side.
    Parameterizations,
}

impl Arguments {
    pub(super) fn seconds(&self, default: f64) -> f64 {
        self.seconds.unwrap_or(default)
    }

    pub(super) fn sets(&self, all: &[&str]) -> Vec<String> {
        if self.sets.is_empty() {
            return all.iter().map(|&s| s.to_owned()).collect();
        }
        self.sets.clone()
    }

    pub(super) fn data(&self, folder: &str) -> String {
        format!("{}/{folder}", self.data)
    }

    /// The options of a model, as given.
    pub(super) fn of_model(&self) -> ModelOptions {
        ModelOptions {
            circuits: self.circuits,
            width: self.width,
            output_width: self.squares,
            functions: self.functions,
            epochs: self.epochs,
            batch: self.batch,
            rate: self.rate,
            patience: self.patience,
            averaging: self.averaging,
            clip: self.clip,
            seed: self.seed.unwrap_or_default(),
            as_is: true,
            ..ModelOptions::default()
        }
    }

    /// Fits a model within this time limit, and returns the time that it took in seconds.
    pub(super) fn fit(
        &self,
        set: &str,
        [train, valid]: [&Table; 2],
        seconds: f64,
    ) -> Result<(Model, f64), Failure> {
        let clock = Clock::new(set, seconds, self.verbose);
        let model = Fit::with(self.of_model())
            .validation(valid)
            .time(Duration::try_from_secs_f64(seconds).ok())
            .on_step(|p, _| {
                clock.step(p);
                Control::Continue
            })
            .run(train)?;
        Ok((model, clock.elapsed()))
    }

    /// The default settings of a width, overridden by the arguments.
    pub(super) fn options(&self, defaults: &Defaults, width: usize) -> FitOptions {
        let d = defaults.options(width);
        FitOptions {
            squares: self.squares.unwrap_or(d.squares),
            epochs: self.epochs.unwrap_or(d.epochs),
            batch: self.batch.unwrap_or(d.batch),
            rate: self.rate.unwrap_or(d.rate),
            patience: self.patience.unwrap_or(d.patience),
            averaging: self.averaging.unwrap_or(d.averaging),
            clip: self.clip,
            seed: self.seed.unwrap_or(d.seed),
            ..d
        }
    }
}

/// Ends a fit after its time limit, and shows its epochs.
#[derive(Debug)]
pub(super) struct Clock<'a> {
    start: Instant,
    seconds: f64,
    name: &'a str,
    verbose: bool,
    pub(super) epochs: Cell<usize>,
}

impl<'a> Clock<'a> {
    pub(super) fn new(name: &'a str, seconds: f64, verbose: bool) -> Self {
        Self { start: Instant::now(), seconds, name, verbose, epochs: Cell::new(0) }
    }

    pub(super) fn elapsed(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    pub(super) fn step(&self, p: &Progress) -> Control {
        let time = self.elapsed();
        if p.epoch_ended {
            self.epochs.set(self.epochs.get() + 1);
        }
        if p.epoch_ended && self.verbose {
            let (name, width, epoch, train) = (self.name, p.width, p.epoch, p.train);
            let valid = p.valid.unwrap_or(f64::NAN);
            eprintln!(
                "{name} K={width} epoch {epoch}: train {train:.3}, valid {valid:.3}, {time:.2} s"
            );
        }
        if self.seconds.is_finite() {
            Control::Used(time / self.seconds)
        } else {
            Control::Continue
        }
    }
}
