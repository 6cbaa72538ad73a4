//! The uses of a traversal: all prefix conditionals of given rows, and exact samples.

use std::sync::OnceLock;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::batch::Batch;
use super::lanes::{Real, get};
use super::message::Message;
use super::pieces::{Pieces, RowPart};
use super::plan::{Leaf, Plan, leaf_values};
use super::traverse::{LeafVisit, Visit};
use super::upward::block_len;
use super::workspace::Workspace;
use crate::algebra::Kind;
use crate::basis::{Basis, Part};
use crate::linalg::{Complex64, Matrix};
use crate::ops::Univariate;

impl<F: Real, const C: bool> Plan<F, C> {
    /// log p(xᵢ | the variables visited before i), row by row, in the order of the variables.
    ///
    /// Requires: complete rows.
    pub(crate) fn log_conditionals(&self, rows: &Batch) -> Vec<f64> {
        let d = rows.num_variables();
        let mut out = vec![0.0; rows.len() * d];
        let block = block_len::<F>(rows.len());
        out.par_chunks_mut(block * d).enumerate().for_each_init(
            Workspace::default,
            |ws, (n, out)| {
                let range = (n * block, out.len() / d);
                let mut visit = Visit::Score(Score { rows, first: n * block, out });
                self.traverse(None, range, &mut visit, ws);
            },
        );
        out
    }

    /// Draws one sample per row, given its evidence. Known values are kept.
    ///
    /// The sample of a row depends only on the seed and the row's `index`.
    pub(crate) fn sample(
        &self,
        evidence: &Batch,
        seed: u64,
        index: &(dyn Fn(usize) -> u64 + Sync),
    ) -> Vec<f64> {
        let d = evidence.num_variables();
        let mut out = vec![0.0; evidence.len() * d];
        let block = block_len::<F>(evidence.len());
        let tables: Vec<OnceLock<Option<Pieces<F>>>> = (0..d).map(|_| OnceLock::new()).collect();
        let tables = &tables[..];
        out.par_chunks_mut(block * d).enumerate().for_each_init(
            Workspace::default,
            |ws, (n, out)| {
                let (first, count) = (n * block, out.len() / d);
                let rng = |row: usize| row_rng(seed, index(row));
                let rngs = (first..first + count).map(rng).collect();
                let known = (first..first + count).any(|row| {
                    (0..d).any(|v| !evidence.is_missing(row, v) || evidence.part(row, v).is_some())
                });
                let mut visit = Visit::Draw(Draw { tables, evidence, first, rngs, out });
                self.traverse(known.then_some(evidence), (first, count), &mut visit, ws);
            },
        );
        out
    }
}

/// The random numbers of one row: a separate stream for each row.
pub(super) fn row_rng(seed: u64, index: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(index);
    rng
}

/// Computes log p of the values of complete rows, starting with row `first`.
pub(super) struct Score<'a> {
    rows: &'a Batch,
    first: usize,
    out: &'a mut [f64],
}

impl Score<'_> {
    pub(super) fn visit<F: Real, const C: bool>(
        &mut self,
        &LeafVisit { leaf, variable, .. }: &LeafVisit<'_, F, C>,
        environment: &Message<F>,
        values: &mut [f64],
    ) {
        let d = self.rows.num_variables();
        for (row, value) in values.iter_mut().enumerate() {
            *value = self.rows.value(self.first + row, variable);
            let f = leaf_values(&leaf.basis, leaf.weight.as_ref(), *value);
            let (density, total) = density_and_total::<F, C>(leaf, environment, row, &f);
            self.out[row * d + variable] = (density.max(0.0) / total).ln();
        }
    }
}

/// Σ E[k,l] fₖ fₗ* and its integral over the domain, for one row.
fn density_and_total<F: Real, const C: bool>(
    leaf: &Leaf<F>,
    environment: &Message<F>,
    row: usize,
    f: &[Complex64],
) -> (f64, f64) {
    let (tile, lane) = environment.place(C, row);
    let number = |n: usize| get(C, tile, n, lane);
    let width = f.len();
    let norm: f64 = f.iter().map(Complex64::norm_sqr).sum();
    match environment.kind(row) {
        // Only the environment of the output is an identity, and there the weight of the leaf has
        // unit norm.
        Kind::Identity => (norm, leaf.weight.as_ref().map_or(width as f64, Matrix::norm2)),
        Kind::Pure => {
            let amplitude: Complex64 = (0..width).map(|k| number(k) * f[k]).sum();
            let total = match (&leaf.weight, leaf.is_output) {
                (Some(w), true) => {
                    let below =
                        w.transpose().times_vector(&(0..width).map(number).collect::<Vec<_>>());
                    below.iter().map(Complex64::norm_sqr).sum()
                }
                _ => (0..width).map(|k| number(k).norm_sqr()).sum(),
            };
            (amplitude.norm_sqr(), total)
        }
        Kind::Mixed => {
            let mut density = 0.0;
            for k in 0..width {
                let sum: Complex64 = (0..width).map(|l| number(k * width + l) * f[l].conj()).sum();
                density += (f[k] * sum).re;
            }
            (density, (0..width).map(|k| number(k * width + k).re).sum())
        }
    }
}

/// Draws samples given the evidence of rows, starting with row `first`.
pub(super) struct Draw<'a, F> {
    /// The pieces of each variable, computed when first needed.
    tables: &'a [OnceLock<Option<Pieces<F>>>],
    evidence: &'a Batch,
    first: usize,
    pub(super) rngs: Vec<ChaCha8Rng>,
    out: &'a mut [f64],
}

impl<F: Real> Draw<'_, F> {
    pub(super) fn visit<const C: bool>(
        &mut self,
        &LeafVisit { kernels, leaf, variable }: &LeafVisit<'_, F, C>,
        environment: &Message<F>,
        values: &mut [f64],
        ws: &mut Workspace<F>,
    ) {
        let d = self.evidence.num_variables();
        // Every row draws at every variable, so that the evidence does not shift a row's random
        // numbers.
        let draws: Vec<f64> = self.rngs.iter_mut().map(rand::RngExt::random).collect();
        let mut unknown: Vec<u32> = Vec::with_capacity(values.len());
        for (row, value) in values.iter_mut().enumerate() {
            *value = self.evidence.value(self.first + row, variable);
            if value.is_nan() {
                unknown.push(row as u32);
            }
        }
        if leaf.columns.is_some() {
            leaf.probabilities(kernels, environment, &unknown, ws, |row, p| {
                let row = row as usize;
                let part = self.evidence.part(self.first + row, variable);
                values[row] = draw_finite(p, part, draws[row]) as f64;
            });
        } else {
            let table = self.tables[variable].get_or_init(|| Pieces::new::<C>(leaf, &[]));
            let part = |row: u32| self.evidence.part(self.first + row as usize, variable);
            let domain = leaf.basis.natural_domain();
            let is_whole = |row: u32| part(row).is_none_or(|p| p.covers_rest(&domain));
            let (piecewise, mut exact): (Vec<u32>, Vec<u32>) =
                unknown.iter().partition(|&&row| table.is_some() && is_whole(row));
            if let Some(table) = table {
                let rows = (&piecewise[..], &part as RowPart<'_>);
                table.distributions(kernels, leaf, environment, rows, ws, &mut |row, p| {
                    values[row as usize] = p.draw(draws[row as usize]);
                });
            }
            exact.extend(piecewise.iter().filter(|&&row| values[row as usize].is_nan()));
            for row in exact {
                let (row, part) = (row as usize, part(row));
                let all = leaf.distribution::<C>(environment, row);
                let within = part.and_then(|part| all.within(part).ok());
                values[row] = within.unwrap_or(all).draw(draws[row]);
            }
        }
        for (row, &value) in values.iter().enumerate() {
            self.out[row * d + variable] = value;
        }
    }
}

/// The first value at which the cumulative probability exceeds `u` times the total.
fn draw_finite(p: &[f64], part: Option<&Part>, u: f64) -> usize {
    let candidates: Vec<usize> = match part {
        Some(Part::Values(values)) => values.clone(),
        Some(Part::Interval { .. }) | None => (0..p.len()).collect(),
    };
    let total: f64 = candidates.iter().map(|&x| p[x]).sum();
    let mut rest = u * total;
    let mut last = candidates.first().copied().unwrap_or(0);
    for &x in &candidates {
        let probability = p[x];
        if probability > 0.0 {
            last = x;
            if rest < probability {
                return x;
            }
        }
        rest -= probability;
    }
    last
}

impl<F: Real> Leaf<F> {
    /// The distribution of a continuous variable, given the environment of one row.
    pub(super) fn distribution<const C: bool>(
        &self,
        environment: &Message<F>,
        row: usize,
    ) -> Univariate {
        let domain = self.basis.natural_domain();
        if let Basis::Atoms(b) = &*self.basis {
            let (masses, rest) = self.row_blocks::<C>(environment, row, b.points().len());
            return Univariate::with_atoms(domain, b, &masses, &rest);
        }
        let e = self.row_environment::<C>(environment, row);
        Univariate::continuous(domain, &self.basis, &e)
    }
}
