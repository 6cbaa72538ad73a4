//! What was asked for.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Instant;

use bornite::learn::{Control, Defaults, FitOptions, Progress};

use super::Failure;

#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) part: String,
    named: BTreeMap<String, String>,
}

impl Arguments {
    /// A part, then `--name value` pairs; `--verbose` stands alone.
    pub(super) fn from_command_line() -> Result<Self, Failure> {
        let mut list = std::env::args().skip(1);
        let part =
            list.next().ok_or("give a part: debd, uci, missing, parameterizations or smoothing")?;
        let mut named = BTreeMap::new();
        while let Some(name) = list.next() {
            let name = name.strip_prefix("--").ok_or(format!("'{name}' is no option"))?.to_owned();
            let is_flag = name == "verbose";
            let value = if is_flag {
                String::new()
            } else {
                list.next().ok_or("an option has no value")?
            };
            named.insert(name, value);
        }
        Ok(Self { part, named })
    }

    pub(super) fn text<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.named.get(name).map_or(default, String::as_str)
    }

    pub(super) fn get<T: FromStr>(&self, name: &str) -> Result<Option<T>, Failure> {
        let parse = |text: &String| {
            text.parse().map_err(|_| format!("--{name}: '{text}' is no number").into())
        };
        self.named.get(name).map(parse).transpose()
    }

    pub(super) fn seconds(&self, default: f64) -> Result<f64, Failure> {
        Ok(self.get("seconds")?.unwrap_or(default))
    }

    pub(super) fn sets(&self, all: &[&str]) -> Vec<String> {
        match self.named.get("sets") {
            Some(list) => list.split(',').map(str::to_owned).collect(),
            None => all.iter().map(|&s| s.to_owned()).collect(),
        }
    }

    pub(super) fn data(&self, folder: &str) -> String {
        format!("{}/{folder}", self.text("data", "../shared/data"))
    }

    /// The settings of every width to try: the defaults, less what was given.
    pub(super) fn candidates(&self, defaults: &Defaults) -> Result<Vec<FitOptions>, Failure> {
        let given: Option<usize> = self.get("width")?;
        let widths = given.as_ref().map(std::slice::from_ref);
        widths
            .unwrap_or_else(|| defaults.widths())
            .iter()
            .map(|&w| self.options(defaults, w))
            .collect()
    }

    pub(super) fn options(&self, defaults: &Defaults, width: usize) -> Result<FitOptions, Failure> {
        let d = defaults.options(width);
        Ok(FitOptions {
            squares: self.get("squares")?.unwrap_or(d.squares),
            epochs: self.get("epochs")?.unwrap_or(d.epochs),
            batch: self.get("batch")?.unwrap_or(d.batch),
            rate: self.get("rate")?.unwrap_or(d.rate),
            patience: self.get("patience")?.unwrap_or(d.patience),
            averaging: self.get("averaging")?.unwrap_or(d.averaging),
            clip: self.get("clip")?,
            seed: self.get("seed")?.unwrap_or(d.seed),
            ..d
        })
    }

    pub(super) fn is_verbose(&self) -> bool {
        self.named.contains_key("verbose")
    }
}

/// Ends a fit in time, and shows its epochs.
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
