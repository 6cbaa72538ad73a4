use serde::{Deserialize, Serialize};

use super::optimizer::{Optimizer, Schedule};
use super::parameter::Parameterization;
use crate::structure::Widths;

/// The settings of a fit. [`Defaults`](super::Defaults) chooses them for a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FitOptions {
    /// The width of inner layers that these settings are for. Structures take it; a fit keeps the widths of its circuit.
    pub width: usize,
    /// The number of input functions of continuous variables, likewise.
    #[serde(default)]
    pub functions: usize,
    /// Widths by the size of regions instead, likewise.
    pub widths: Option<Widths>,
    /// The size of the codebook of finite variables, likewise: see [`Structure::codebook`](crate::structure::Structure::codebook).
    pub codebook: Option<usize>,
    /// The maximum number of variables of regions that share weights, likewise: see [`Structure::share`](crate::structure::Structure::share).
    pub share: usize,
    /// The width of the output, likewise: the number of squares in the sum. Densities with few squares have zeros, near
    /// which the gradient of a row is very large; more squares train more steadily and generalize better.
    pub squares: usize,
    /// Complex weights, which learn much better than real ones.
    pub complex: bool,
    /// How weights are kept normalized.
    pub parameterization: Parameterization,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// The learning rate schedule.
    pub schedule: Schedule,
    /// The maximum Euclidean norm of a step's gradient over all weights; longer gradients are clipped to it.
    pub clip: Option<f64>,
    /// The maximum number of passes over the rows.
    pub epochs: usize,
    /// The number of rows per step.
    pub batch: usize,
    /// The learning rate: the largest step of a parameter, reached after the warm-up.
    pub rate: f64,
    /// Whether to divide the rate of each weight by the square root of its number of columns, which is about the size
    /// of its entries.
    pub by_columns: bool,
    /// The fraction of the fit over which steps grow to their full size.
    pub warm_up: f64,
    /// Stop after this many epochs without a better validation likelihood.
    pub patience: usize,
    /// The decay of the running average of weights per step; 0 for no averaging.
    pub averaging: f64,
    /// The strength s of the penalty on differences between input weights of neighboring values, for each variable: it
    /// subtracts `s/2 Σ |w[x] − w[x+1]|²` from the objective. For variables with ordered values, such as gray levels;
    /// no penalty if empty.
    pub smoothing: Vec<f64>,
    /// The height, width and channels of images. If given, half of every batch is shifted by one pixel, up or down,
    /// left or right, around the edges. For long fits of images whose pixels all have the same domain.
    pub shifts: Option<[usize; 3]>,
    /// The strength s of the penalty on fast-changing functions of continuous variables: it subtracts `s/2 Σ λₙ
    /// |w[n]|²` from the objective, where λₙ is n (n + 1) for the Legendre polynomial of degree n.
    #[serde(default)]
    pub roughness: f64,
    /// The variables y of a target, if any. The objective is then log p(x, y) + λ log p(y | x), with
    /// λ = [`emphasis`](Self::emphasis).
    #[serde(default)]
    pub target: Vec<usize>,
    /// The factor λ of the conditional log-likelihood of a target.
    #[serde(default)]
    pub emphasis: f64,
    /// The random seed.
    pub seed: u64,
    /// The device that computes the fit. Checkpoints and circuits do not depend on it, except for the last digits of
    /// their numbers.
    #[serde(skip)]
    pub device: Device,
}

/// The device that computes a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// On the CPU: the same bits on every machine.
    #[default]
    Cpu,
    /// On an NVIDIA GPU, in single precision: the same bits on the same device. It supports orthonormal weights and
    /// complete rows, and needs the crate's feature `cuda`.
    Cuda,
    /// On an NVIDIA GPU with factors rounded to 11 bits (TF32): faster for wide circuits, but less precise.
    CudaTf32,
    /// On an NVIDIA GPU with factors rounded to 8 bits (bfloat16) in products over rows: the fastest for wide circuits.
    CudaBf16,
    /// On a GPU if there is one that supports the fit, and on the CPU otherwise.
    Auto,
}

impl FitOptions {
    /// The width of regions with this many variables.
    pub fn width_of(&self, size: usize) -> usize {
        self.widths.as_ref().map_or(self.width, |widths| widths.of(size))
    }
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            width: 16,
            functions: 16,
            widths: None,
            codebook: None,
            share: 0,
            squares: 1,
            complex: true,
            parameterization: Parameterization::Cholesky,
            optimizer: Optimizer::Adam,
            schedule: Schedule::Cosine,
            clip: None,
            epochs: 100,
            batch: 256,
            rate: 0.02,
            by_columns: false,
            warm_up: 0.05,
            patience: 10,
            averaging: 0.98,
            smoothing: Vec::new(),
            shifts: None,
            roughness: 0.0,
            target: Vec::new(),
            emphasis: 0.0,
            seed: 0,
            device: Device::Cpu,
        }
    }
}
