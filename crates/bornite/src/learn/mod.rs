//! Learning: the weights of a circuit from rows of data, normalized at every step.

mod backend;
mod checkpoint_bytes;
mod defaults;
mod error;
mod fit;
mod grow;
mod initial;
mod mixture;
pub mod monotonic;
mod objective;
mod optimizer;
mod options;
mod parameter;
mod partition;
mod partners;
mod pass;
mod pieces;
mod progress;
mod quota;
mod search;
mod teacher;
mod tensor;
#[cfg(test)]
mod tests;
mod trainer;
mod trial;

pub(crate) use defaults::LESSON_ROWS;
pub use defaults::{Defaults, Effort};
pub use error::LearnError;
pub use fit::{fit, mean_log_likelihood};
pub use initial::Starts;
pub use optimizer::{Optimizer, Schedule};
pub use options::{Device, FitOptions};
pub use parameter::Parameterization;
pub(crate) use partners::Partners;
pub(crate) use pieces::{Pieces, Rows};
pub use progress::{Control, Epoch, Fitted, Progress, Snapshot};
pub use quota::Quota;
pub use search::{BestFit, fit_best, used_budget};
pub(crate) use search::{Found, Lesson, is_of, search};
pub(crate) use teacher::Teacher;
pub use trial::most_promising;
