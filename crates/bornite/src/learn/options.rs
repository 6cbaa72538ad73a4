use serde::{Deserialize, Serialize};

use super::optimizer::{Optimizer, Schedule};
use super::parameter::Parameterization;
use crate::structure::Widths;

/// The settings of a fit. [`Defaults`](super::Defaults) has those for a table.
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
    /// The width of the output, likewise: how many squares are summed. Densities of few squares have zeros, near which the
    /// gradient of a row is very large; more squares learn steadier and generalize better.
    pub squares: usize,
    /// Complex weights, which learn much better than real ones.
    pub complex: bool,
    /// How weights are kept normalized.
    pub parameterization: Parameterization,
    /// How gradients become steps.
    pub optimizer: Optimizer,
    /// How the size of steps changes over the fit.
    pub schedule: Schedule,
    /// The largest Euclidean norm of a step's gradient, of all weights together; longer ones are shortened to it.
    pub clip: Option<f64>,
    /// The most passes over the rows.
    pub epochs: usize,
    /// Rows to a step.
    pub batch: usize,
    /// The largest step of a parameter, reached after the warm-up.
    pub rate: f64,
    /// Whether the rate of a weight is this one divided by the root of its columns: about as large as its entries.
    pub by_columns: bool,
    /// The share of the fit over which steps grow to their full size.
    pub warm_up: f64,
    /// Stop after so many epochs without a better validation likelihood.
    pub patience: usize,
    /// The share of the average of past weights that one step keeps; 0 for none.
    pub averaging: f64,
    /// How strongly the input weights of each variable are drawn towards ones that are smooth over neighboring values: the
    /// objective loses `s/2 Σ |w[x] − w[x+1]|²`. For variables of ordered values, such as gray levels; none if it is empty.
    pub smoothing: Vec<f64>,
    /// The height, width and channels of images, of which half of a batch is moved by one pixel up or down, left or right, around the
    /// edges. For long fits of images whose pixels have one domain; none are moved if it is not given.
    pub shifts: Option<[usize; 3]>,
    /// How strongly the input weights of continuous variables are drawn away from functions that change fast: the objective
    /// loses `s/2 Σ λₙ |w[n]|²`, where λₙ is n (n + 1) of the Legendre polynomial of degree n.
    #[serde(default)]
    pub roughness: f64,
    /// The variables of a target, whose log-likelihood given the rest of a row counts [`emphasis`](Self::emphasis) times more than
    /// that of the whole row: the objective is log p(x, y) + λ log p(y | x). None if it is empty.
    #[serde(default)]
    pub target: Vec<usize>,
    /// The factor λ of a target.
    #[serde(default)]
    pub emphasis: f64,
    /// The seed of everything random.
    pub seed: u64,
    /// Where the fit is computed. Checkpoints and circuits do not depend on it, except for the last digits of their numbers.
    #[serde(skip)]
    pub device: Device,
}

/// The device that computes a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// On the CPU: the same bits on every machine.
    #[default]
    Cpu,
    /// On an NVIDIA GPU, in single precision: the same bits on the same device. It learns orthonormal weights from complete
    /// rows, with the crate's feature `cuda`.
    Cuda,
    /// The same, with products of factors that are rounded to 11 bits (TF32): faster for wide circuits, and less precise.
    CudaTf32,
    /// On a GPU if there is one that can learn this, and on the CPU otherwise.
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
