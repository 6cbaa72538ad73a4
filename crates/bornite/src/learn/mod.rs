//! Learning: the weights of a circuit from rows of data, normalized at every step.

mod fit;
mod initial;
mod marginal;
mod network;
mod objective;
mod parameter;
mod search;
mod tensor;
#[cfg(test)]
mod tests;

pub use fit::{Control, Epoch, Fit, FitOptions, Progress, WIDTHS, fit, mean_log_likelihood};
pub use network::LearnError;
pub use parameter::Parameterization;
pub use search::{BestFit, fit_best};
