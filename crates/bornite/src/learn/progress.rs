//! The reports of a fit to its caller, and the caller's responses.

use std::fmt;

use super::checkpoint_bytes::Writer;
use super::folds::Folds;
use crate::circuit::Orthonormal;

/// The progress of a fit, after every step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The number of circuits that are fitted to different parts of the rows, one after another, and the index of the
    /// current one, for models of small tables. 1 and 0 otherwise.
    pub folds: usize,
    /// See [`folds`](Self::folds).
    pub fold: usize,
    /// The index of the candidate being fitted, in a search.
    pub candidate: usize,
    /// The width in the candidate's settings.
    pub width: usize,
    /// The number of completed epochs.
    pub epoch: usize,
    /// The maximum number of epochs.
    pub epochs: usize,
    /// Rows used so far in this epoch.
    pub rows: usize,
    /// Rows per epoch.
    pub epoch_rows: usize,
    /// The mean log-likelihood of the last batch, before its step.
    pub train: f64,
    /// The mean log-likelihood of the validation rows, after the last whole epoch.
    pub valid: Option<f64>,
    /// The best mean log-likelihood of the validation rows so far.
    pub best: Option<f64>,
    /// Whether an epoch has just ended.
    pub epoch_ended: bool,
    /// Whether this is a short fit that only chooses between circuits: see [`most_promising`](super::most_promising).
    pub is_trial: bool,
}

impl Progress {
    /// The epochs done, including the fraction of the current one.
    pub(super) fn epochs_done(&self) -> f64 {
        let within = if self.epoch_ended { 0 } else { self.rows };
        self.epoch as f64 + within as f64 / self.epoch_rows.max(1) as f64
    }
}

/// The caller's decision about a running fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// Continue.
    Continue,
    /// Continue; this fraction of the caller's budget has been used. At 1 the fit ends.
    Used(f64),
    /// End now, with the best model so far.
    Stop,
}

impl Control {
    /// Whether the fit should end.
    pub(super) fn is_end(self) -> bool {
        match self {
            Self::Continue => false,
            Self::Used(share) => share >= 1.0,
            Self::Stop => true,
        }
    }
}

/// A learned circuit and its history.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The circuit with the best validation likelihood.
    pub circuit: Orthonormal,
    /// Its mean log-likelihood of the validation rows.
    pub valid: f64,
    /// One entry per epoch.
    pub history: Vec<Epoch>,
}

/// The results of an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epoch {
    /// The mean log-likelihood of the batches, each before its step.
    pub train: f64,
    /// The mean log-likelihood of the validation rows at the end, with averaged weights.
    pub valid: f64,
    /// The largest entry of W Wᴴ − I of any inner weight.
    pub residual: f64,
}

/// The state of a running fit, which can be saved and continued later, bit for bit.
pub struct Snapshot<'a> {
    write: &'a dyn Fn(&mut Writer),
    /// The fits before this one, if it is one of several.
    before: Option<&'a Folds>,
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(write: &'a dyn Fn(&mut Writer)) -> Self {
        Self { write, before: None }
    }

    /// The state before the first step, whose bytes start a fit from the beginning.
    pub(crate) fn empty() -> Self {
        Self::new(&|_| {})
    }

    /// The state of a fit that comes after others.
    pub(crate) fn after<'b>(&self, before: &'b Folds) -> Snapshot<'b>
    where
        'a: 'b,
    {
        Snapshot { write: self.write, before: Some(before) }
    }

    pub(super) fn write(&self, to: &mut Writer) {
        (self.write)(to);
    }

    /// The bytes of a checkpoint, for [`fit_best`](super::fit_best).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        self.write(&mut writer);
        let bytes = writer.finish();
        match self.before {
            Some(before) => before.to_bytes(&bytes),
            None => bytes,
        }
    }
}

impl fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}
