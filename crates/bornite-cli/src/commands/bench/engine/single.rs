//! Single answers that multiply whole matrices: log Z, and one marginal of a tensor network.

use anyhow::Result;
use bornite::circuit::Weights;
use bornite::structure::{Product, RegionTree};
use bornite::{Query, ops};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::super::circuits::Shape;
use super::super::stopwatch::{Peak, Took};
use super::Effort;
use crate::image::ImageSize;

/// The number of sites and the bond dimension of the matrix product state.
const SITES: usize = 784;
const BOND: usize = 64;

/// One answer.
#[derive(Debug, Serialize)]
pub(super) struct Single {
    pub(super) name: &'static str,
    pub(super) width: usize,
    pub(super) took: Took,
    pub(super) multiply_adds: f64,
    /// Wall time divided by the time of the multiply-adds at the peak of the threads that can share them.
    pub(super) over_bound: f64,
    /// The same ratio for CPU time.
    pub(super) cpu_over_bound: Option<f64>,
}

/// log Z of an image tree at each of the widths, and the half marginal of a matrix product state.
pub(super) fn measure(
    image: ImageSize,
    widths: &[usize],
    seed: u64,
    effort: Effort,
    all: &mut Peak,
) -> Result<Vec<Single>> {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let mut out = Vec::new();
    let threads = rayon::current_num_threads();
    for &width in widths {
        let tree = RegionTree::image(image.height, image.width, image.channels);
        let shape = Shape { tree, states: 256, product: Product::Kronecker, width };
        let circuit = shape.build(Weights::Gaussian, rng)?;
        let count = ops::partition_multiply_adds(&circuit)?;
        let run = || Ok(ops::log_partition(&circuit).map(|_| ())?);
        let case = Case { name: "log Z, image tree", width, count, threads };
        out.push(case.measure(effort, all, run)?);
    }
    let tree = RegionTree::linear(SITES);
    let shape = Shape { tree, states: 2, product: Product::Kronecker, width: BOND };
    let circuit = shape.orthonormal(rng)?;
    let row = shape.rows(1, rng, |v, _| v >= SITES / 2);
    let query = Query::row(circuit.variables(), &row)?;
    let count = ops::marginalize(&circuit, &query)?.multiply_adds.ours;
    let run = || Ok(ops::log_marginal(&circuit, &query).map(|_| ())?);
    // The products of a chain depend on each other, so threads cannot share them.
    let name = "half marginal, matrix product state";
    out.push(Case { name, width: BOND, count, threads: 1 }.measure(effort, all, run)?);
    Ok(out)
}

/// An answer before it is measured.
struct Case {
    name: &'static str,
    width: usize,
    /// Multiply-adds.
    count: u128,
    /// The number of threads that can share them.
    threads: usize,
}

impl Case {
    fn measure(
        self,
        effort: Effort,
        all: &mut Peak,
        run: impl Fn() -> Result<()>,
    ) -> Result<Single> {
        let mut peak = Peak::new();
        let mut best = Took::NOTHING;
        for _ in 0..effort.repetitions.max(4) {
            best = best.and(peak.around(all, &run)?);
        }
        let share = self.threads as f64 / rayon::current_num_threads() as f64;
        Ok(Single {
            name: self.name,
            width: self.width,
            took: best,
            multiply_adds: self.count as f64,
            over_bound: peak.over_bound(best, self.count) * share,
            cpu_over_bound: peak.cpu_over_bound(best, self.count),
        })
    }
}
