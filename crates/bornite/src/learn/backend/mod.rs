//! Backends: the interface between learning and the device that computes a fit.
//!
//! The [trainer](super::trainer) decides which rows a step uses, how long the step is and when the
//! fit ends. A backend holds the rows, the weights and their moments, and does the arithmetic.

#[cfg(feature = "cuda")]
mod cuda;
mod processor;
mod sum;
#[cfg(test)]
mod tests;

use super::error::LearnError;
use super::optimizer::Update;
use super::options::{Device, FitOptions};
use super::pieces::Rows;
use crate::circuit::{Circuit, Layer, Skeleton};
use crate::linalg::Complex64;
use processor::Processor;
pub(super) use processor::{fill, workspace};
pub(super) use sum::{Chunk, Sum, SumContext, total};

/// The rows, weights and arithmetic of one fit.
pub(super) trait Backend: std::fmt::Debug {
    /// Takes one step up the gradient of the mean objective of some training rows, at most as many as
    /// a batch has. Returns the mean before the step. The objective is the log-likelihood, plus that
    /// of a target given the rest if there is one.
    fn step(&mut self, rows: &Selection<'_>, update: Update) -> Result<f64, LearnError>;

    /// Loads the rows of these pieces for the next steps, and returns their number.
    fn set_pieces(&mut self, _: &[usize]) -> Result<usize, LearnError> {
        Err(needs_memory())
    }

    /// The mean objective of the validation rows under the averaged and normalized weights.
    fn score(&mut self) -> Result<f64, LearnError>;

    /// The deviation of the weights from normalized ones: the largest entry of W Wᴴ − I, or the
    /// largest |Σ w − 1| of a row.
    fn residual(&mut self) -> Result<f64, LearnError>;

    /// Keeps the averaged weights as the best ones so far. They stay where the weights are.
    fn keep(&mut self) -> Result<(), LearnError>;

    /// The parts of the weights that were kept last, or of the first ones.
    fn kept(&self) -> Result<Vec<Vec<f32>>, LearnError>;

    /// Replaces the weights that are kept. Fails if the lengths differ.
    fn set_kept(&mut self, weights: Vec<Vec<f32>>) -> Result<(), LearnError>;

    /// Everything that is needed to continue the fit, with one entry per weight.
    fn parameters(&self) -> Result<Vec<Numbers>, LearnError>;

    /// Continues from the result of [`parameters`](Self::parameters). Fails if the lengths differ.
    fn set_parameters(&mut self, parameters: &[Numbers]) -> Result<(), LearnError>;
}

/// The rows of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection<'a> {
    /// The indices of the rows.
    pub(super) rows: &'a [usize],
    /// The shift of each row, if the rows are images.
    pub(super) shifts: Option<&'a Shifts>,
}

/// Shifts of images by at most one pixel, around the edges.
#[derive(Clone, Debug)]
pub(super) struct Shifts {
    /// Height, width and channels.
    pub(super) image: [usize; 3],
    /// For each row, the position that it moves to, out of nine; 4 is its own.
    pub(super) places: Vec<usize>,
}

impl Shifts {
    /// The variable of an image whose value variable `v` of the shifted image takes.
    pub(super) fn source([height, width, channels]: [usize; 3], place: usize, v: usize) -> usize {
        let (up, left) = (place / 3, place % 3);
        let (y, x, c) = (v / channels / width, v / channels % width, v % channels);
        let (y, x) = ((y + height + up - 1) % height, (x + width + left - 1) % width);
        (y * width + x) * channels + c
    }
}

/// The numbers of one weight as real parts: the weight, and the moments of its gradient.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Numbers {
    pub(super) weight: Vec<f64>,
    pub(super) mean: Vec<f32>,
    /// Empty for momentum.
    pub(super) square: Vec<f32>,
    pub(super) average: Vec<f32>,
}

/// Starts a backend with the weights of a circuit.
pub(super) fn start<'a>(
    circuit: &Circuit,
    rows: Rows<'a>,
    options: &'a FitOptions,
) -> Result<Box<dyn Backend + 'a>, LearnError> {
    match options.device {
        Device::Cpu => on_processor(circuit, rows, options),
        Device::Cuda | Device::CudaTf32 | Device::CudaBf16 => on_cuda(circuit, rows, options),
        Device::Auto => match on_cuda(circuit, rows, options) {
            Err(LearnError::Device { .. }) => on_processor(circuit, rows, options),
            other => other,
        },
    }
}

/// The error of a device that does not support pieces.
fn needs_memory() -> LearnError {
    LearnError::Device { reason: "it supports only tables that fit into memory".to_owned() }
}

fn on_processor<'a>(
    circuit: &Circuit,
    rows: Rows<'a>,
    options: &'a FitOptions,
) -> Result<Box<dyn Backend + 'a>, LearnError> {
    Ok(if circuit.is_real() {
        Box::new(Processor::<f64, false>::new(circuit, rows, options)?)
    } else {
        Box::new(Processor::<Complex64, true>::new(circuit, rows, options)?)
    })
}

#[cfg(feature = "cuda")]
fn on_cuda<'a>(
    circuit: &Circuit,
    rows: Rows<'a>,
    options: &'a FitOptions,
) -> Result<Box<dyn Backend + 'a>, LearnError> {
    if rows.pieces.is_some() {
        return Err(needs_memory());
    }
    Ok(Box::new(cuda::Cuda::start(circuit, [rows.train, rows.valid], options)?))
}

#[cfg(not(feature = "cuda"))]
fn on_cuda<'a>(
    _: &Circuit,
    _: Rows<'a>,
    _: &'a FitOptions,
) -> Result<Box<dyn Backend + 'a>, LearnError> {
    Err(LearnError::Device { reason: "this build does not include CUDA".to_owned() })
}

/// The weight of the output, if that is a sum.
pub(super) fn output_weight(circuit: &Skeleton) -> Option<usize> {
    match circuit.layer(circuit.output()) {
        Layer::Sum { weight, .. } => Some(weight.index()),
        Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Kronecker { .. } => None,
    }
}
