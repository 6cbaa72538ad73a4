//! The checkpoint of several fits in a row.

use super::checkpoint_bytes::{FOLDS, Reader, Writer};
use super::error::LearnError;

/// The finished fits of several in a row, and what the others need to know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Folds {
    /// The bytes of each finished fit's model.
    pub(crate) models: Vec<Vec<u8>>,
    /// The number of input functions that the first fit chose, if it did.
    pub(crate) functions: Option<usize>,
    /// The fraction of the caller's budget that had been used when the current fit started, and now.
    pub(crate) begun: f64,
    pub(crate) used: f64,
}

impl Folds {
    /// The bytes of a checkpoint, given those of the current fit.
    pub(super) fn to_bytes(&self, current: &[u8]) -> Vec<u8> {
        let mut to = Writer::with(FOLDS);
        to.numbers(&self.functions.map_or(Vec::new(), |n| vec![n]));
        to.reals(&[self.begun, self.used]);
        to.numbers(&[self.models.len()]);
        for model in &self.models {
            to.bytes(model);
        }
        to.bytes(current);
        to.finish()
    }

    /// Reads a checkpoint: the finished fits, and the checkpoint of the current one. `None` if it is not
    /// a checkpoint of several fits.
    pub(crate) fn read(bytes: &[u8]) -> Option<Result<(Self, Vec<u8>), LearnError>> {
        bytes.starts_with(FOLDS).then(|| {
            let mut from = Reader::with(FOLDS, bytes)?;
            let functions = from.numbers()?.first().copied();
            let &[begun, used] = &from.reals()?[..] else { return Err(LearnError::Damaged) };
            let &[count] = &from.numbers()?[..] else { return Err(LearnError::Damaged) };
            let mut models = Vec::new();
            for _ in 0..count {
                models.push(from.bytes()?);
            }
            let current = from.bytes()?;
            if !(begun.is_finite() && used.is_finite() && from.is_empty()) {
                return Err(LearnError::Damaged);
            }
            Ok((Self { models, functions, begun, used }, current))
        })
    }
}
