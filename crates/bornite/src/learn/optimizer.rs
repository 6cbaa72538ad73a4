//! Optimizers, which turn gradients into steps, and learning rate schedules.

#![expect(clippy::inline_always, reason = "only inlined code is compiled for the instruction set")]

use serde::{Deserialize, Serialize};

use crate::engine::Simd;

/// The optimizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Optimizer {
    /// Adam, for the real and imaginary part of each number separately.
    #[default]
    Adam,
    /// Stochastic gradient ascent with a momentum of 0.9.
    Momentum,
}

/// The learning rate schedule, after a warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schedule {
    /// Cosine decay to a hundredth of the rate.
    #[default]
    Cosine,
    /// Constant, but halved after every epoch without a better validation likelihood.
    Plateau,
}

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.99;
const EPSILON: f64 = 1e-12;
/// Smaller moments are set to zero. They are far too small to move a weight, and far from subnormal
/// numbers, which are slow.
const TINY: f32 = 1e-30;

/// Running averages of the gradients of a weight and of the weight itself, with one entry per real
/// part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moments {
    pub(super) mean: Vec<f32>,
    /// The average of the squared gradients; empty for momentum.
    pub(super) square: Vec<f32>,
    /// The average of the weight.
    pub(super) average: Vec<f32>,
}

/// The settings of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Update {
    pub(super) optimizer: Optimizer,
    pub(super) rate: f64,
    /// The number of the step, from 1.
    pub(super) number: u32,
    /// The factor that gradients are multiplied by first.
    pub(super) scale: f64,
    /// The decay of the averages of weights.
    pub(super) keep: f64,
}

impl Update {
    /// The rate and ε. For Adam, they include the bias corrections of both moments.
    pub(super) fn corrected(&self) -> (f32, f32) {
        if self.optimizer == Optimizer::Momentum {
            return (self.rate as f32, EPSILON as f32);
        }
        let n = f64::from(self.number);
        let (c1, c2) = (1.0 - BETA1.powf(n), (1.0 - BETA2.powf(n)).sqrt());
        ((self.rate * c2 / c1) as f32, (EPSILON * c2) as f32)
    }
}

impl Moments {
    pub(super) fn new(optimizer: Optimizer, w: &[f64]) -> Self {
        let squares = if optimizer == Optimizer::Adam { w.len() } else { 0 };
        let average = w.iter().map(|&x| x as f32).collect();
        Self { mean: vec![0.0; w.len()], square: vec![0.0; squares], average }
    }

    /// Moves v *up* the gradient.
    pub(super) fn advance(&mut self, update: &Update, v: &mut [f64], gradient: &[f64]) {
        let (mean, square) = (&mut self.mean[..], &mut self.square[..]);
        match update.optimizer {
            Optimizer::Adam => Simd::default().run(
                #[inline(always)]
                || adam(update, v, gradient, mean, square),
            ),
            Optimizer::Momentum => Simd::default().run(
                #[inline(always)]
                || momentum(update, v, gradient, mean),
            ),
        }
    }

    /// Updates the average of the weight.
    pub(super) fn average(&mut self, keep: f64, w: &[f64]) {
        let average = &mut self.average[..];
        Simd::default().run(
            #[inline(always)]
            || {
                let (keep, new) = (keep as f32, (1.0 - keep) as f32);
                for (a, &w) in average.iter_mut().zip(w) {
                    *a = *a * keep + w as f32 * new;
                }
            },
        );
    }
}

#[inline(always)]
fn adam(update: &Update, v: &mut [f64], g: &[f64], mean: &mut [f32], square: &mut [f32]) {
    let (rate, epsilon) = update.corrected();
    let [b1, b2, n1, n2] = [BETA1, BETA2, 1.0 - BETA1, 1.0 - BETA2].map(|b| b as f32);
    let scale = update.scale as f32;
    let moments = mean.iter_mut().zip(square);
    for ((v, &g), (mean, square)) in v.iter_mut().zip(g).zip(moments) {
        let g = g as f32 * scale;
        let m = b1 * *mean + n1 * g;
        let s = b2 * *square + n2 * (g * g);
        *mean = if m.abs() < TINY { 0.0 } else { m };
        *square = if s < TINY { 0.0 } else { s };
        *v += f64::from(rate * *mean / (square.sqrt() + epsilon));
    }
}

#[inline(always)]
fn momentum(update: &Update, v: &mut [f64], g: &[f64], mean: &mut [f32]) {
    let (rate, scale, keep) = (update.rate as f32, update.scale as f32, BETA1 as f32);
    for ((v, &g), mean) in v.iter_mut().zip(g).zip(mean) {
        let m = keep * *mean + g as f32 * scale;
        *mean = if m.abs() < TINY { 0.0 } else { m };
        *v += f64::from(rate * *mean);
    }
}

/// The learning rate relative to its maximum, after this share of a fit and `waited` epochs after
/// the best one.
pub(super) fn schedule(kind: Schedule, share: f64, warm_up: f64, waited: usize) -> f64 {
    let share = share.clamp(0.0, 1.0);
    let warm_up = (share / warm_up.max(f64::MIN_POSITIVE)).clamp(0.05, 1.0);
    warm_up
        * match kind {
            Schedule::Cosine => (0.5 * (1.0 + (std::f64::consts::PI * share).cos())).max(0.01),
            Schedule::Plateau => 0.5_f64.powf(waited.min(10) as f64),
        }
}
