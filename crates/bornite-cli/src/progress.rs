//! The progress bar of a fit, and a spinner for other long tasks.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bornite::learn::{Control, Progress, Quota};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::{grouped, printable};
use crate::signals;

/// When the command started.
static START: OnceLock<Instant> = OnceLock::new();

/// Records when the command started, since the time limit of a fit counts from there.
pub(crate) fn start() -> Instant {
    *START.get_or_init(Instant::now)
}

/// Runs a task that may take a while, with a spinner on standard error if that is a terminal.
pub(crate) fn busy<T>(words: &'static str, work: impl FnOnce() -> T) -> T {
    let bar = ProgressBar::new_spinner().with_message(words);
    bar.enable_steady_tick(Duration::from_millis(100));
    let done = work();
    bar.finish_and_clear();
    done
}

/// Shows how many rows of the tables are done, on standard error if that is a terminal.
#[derive(Debug)]
pub(crate) struct RowsBar {
    bar: ProgressBar,
    words: &'static str,
    start: Instant,
    rows: usize,
    files: usize,
    files_done: usize,
    /// The file being read, if known.
    file: Option<PathBuf>,
}

impl RowsBar {
    pub(crate) fn new(words: &'static str, files: usize) -> Self {
        let bar = ProgressBar::new(PARTS);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3}% {msg}") {
            bar.set_style(style.progress_chars("█▌ "));
        }
        Self::on(bar, words, files)
    }

    fn on(bar: ProgressBar, words: &'static str, files: usize) -> Self {
        Self { bar, words, start: Instant::now(), rows: 0, files, files_done: 0, file: None }
    }

    /// Adds rows of this file, when earlier files may have ended.
    pub(crate) fn add_of(&mut self, file: &Path, rows: usize, share: Option<f64>) {
        if self.file.replace(file.to_owned()).is_some_and(|last| last != file) {
            self.files_done += 1;
        }
        self.add(rows, share);
    }

    /// Adds rows, after which this fraction of their file has been read.
    pub(crate) fn add(&mut self, rows: usize, share: Option<f64>) {
        self.rows += rows;
        self.draw(share.unwrap_or(0.0));
    }

    pub(crate) fn end_file(&mut self) {
        self.files_done += 1;
        self.draw(0.0);
    }

    fn draw(&self, share: f64) {
        let share = (self.files_done as f64 + share) / self.files.max(1) as f64;
        self.bar.set_position((share.min(1.0) * PARTS as f64) as u64);
        let speed = self.rows as f64 / self.start.elapsed().as_secs_f64().max(1e-9);
        let (rows, speed) = (grouped(self.rows as u128), grouped(speed as u128));
        let file = match self.files {
            1 => String::new(),
            n => format!(", file {} of {n}", (self.files_done + 1).min(n)),
        };
        self.bar.set_message(format!("{}: {rows} rows, {speed} per second{file}", self.words));
    }
}

impl Drop for RowsBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The length of the progress bar of a fit.
const PARTS: u64 = 1000;

/// Shows a fit's progress on standard error if that is a terminal, and ends the fit in time or on request.
#[derive(Debug)]
pub(crate) struct FitBar {
    bar: ProgressBar,
    start: Instant,
    limit: Option<Duration>,
    /// The fraction of the limit that an interrupted fit had used.
    before: Duration,
}

impl FitBar {
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        let bar = ProgressBar::new(PARTS);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3}% {msg}") {
            bar.set_style(style.progress_chars("█▌ "));
        }
        signals::before_a_fit();
        Self { bar, start: Instant::now(), limit, before: Duration::ZERO }
    }

    /// Counts the limit from the start of the command, including the time to read the table.
    pub(crate) fn counting_from_start(mut self) -> Self {
        self.start = start();
        self
    }

    /// For a fit that continues after this fraction of the limit.
    pub(crate) fn after(mut self, used: f64) -> Self {
        self.before = self.limit.unwrap_or_default().mul_f64(used.clamp(0.0, 1.0));
        self
    }

    /// Ends the parts of a fit that have no steps.
    pub(crate) fn quota(&self) -> Quota {
        let (start, limit, before) = (self.start, self.limit, self.before);
        Quota::new(move || match limit {
            _ if signals::stopped() => f64::INFINITY,
            Some(limit) => (start.elapsed() + before).as_secs_f64() / limit.as_secs_f64(),
            None => 0.0,
        })
    }

    /// The callback for every piece of the files that a fit reads first.
    pub(crate) fn reading(&self, files: usize) -> impl FnMut(&Path, usize, Option<f64>) + use<> {
        let mut rows = RowsBar::on(self.bar.clone(), "encoding", files);
        move |file, count, share| rows.add_of(file, count, share)
    }

    /// The callback after every step of a fit.
    pub(crate) fn step(&mut self, progress: &Progress) -> Control {
        signals::stop_gently();
        let elapsed = self.start.elapsed() + self.before;
        let within = progress.rows as f64 / progress.epoch_rows.max(1) as f64;
        let epoch = progress.epoch as f64 + if progress.epoch_ended { 0.0 } else { within };
        let used = self.limit.map_or(0.0, |limit| elapsed.as_secs_f64() / limit.as_secs_f64());
        let within = (epoch / progress.epochs.max(1) as f64).min(1.0);
        let share = (progress.fold as f64 + within) / progress.folds as f64;
        let share = share.max(used).min(1.0);
        self.bar.set_position((share * PARTS as f64) as u64);
        if progress.is_trial {
            let place = progress.candidate + 1;
            self.bar.set_message(format!("choosing a structure: short fit {place}"));
        } else if progress.epoch_ended {
            let valid = progress.valid.map_or(String::new(), |v| format!(", validation {v:.3}"));
            let circuit = match progress.folds {
                1 => String::new(),
                folds => format!("circuit {} of {folds}, ", progress.fold + 1),
            };
            let left = elapsed.as_secs_f64() * (1.0 - share) / share.max(1e-3);
            self.bar.set_message(format!(
                "{circuit}width {}, epoch {} of {}{valid}, about {left:.0} s left",
                progress.width, progress.epoch, progress.epochs
            ));
        }
        match (signals::stopped(), self.limit) {
            (true, _) => Control::Stop,
            (false, Some(_)) => Control::Used(used),
            (false, None) => Control::Continue,
        }
    }

    /// Prints a message on standard error above the bar.
    pub(crate) fn say(&self, warning: &str) {
        self.bar.suspend(|| {
            let _ = writeln!(io::stderr(), "warning: {}", printable(warning));
        });
    }

    /// Removes the bar and returns how long the fit took.
    pub(crate) fn finish(self) -> Duration {
        self.bar.finish_and_clear();
        self.start.elapsed()
    }
}
