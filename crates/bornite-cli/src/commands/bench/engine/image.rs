//! The image tree: every query at one width, interleaved with the machine's peak.

use std::time::Instant;

use anyhow::Result;
use bornite::engine::{Batch, Engine, Work};
use bornite::structure::{Product, RegionTree};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::super::circuits::Shape;
use super::super::stopwatch::{Peak, Took};
use super::Effort;
use crate::image::ImageSize;

/// The number of gray levels.
const STATES: usize = 256;
/// The number of rows in a batch of complete rows.
const BATCH: usize = 256;

/// All queries at one width.
#[derive(Debug, Serialize)]
pub(super) struct ImageTree {
    pub(super) width: usize,
    pub(super) parameters: usize,
    pub(super) repetitions: usize,
    /// The peak of all cores, the best during these measurements.
    pub(super) peak_gflops: f64,
    pub(super) evaluate: Query,
    pub(super) half_marginal: Query,
    pub(super) scattered: Query,
    pub(super) prefix: Query,
    pub(super) sample: Query,
}

impl ImageTree {
    /// The queries by name.
    pub(super) fn queries(&self) -> [(&'static str, &Query); 5] {
        [
            ("evaluate", &self.evaluate),
            ("half marginal", &self.half_marginal),
            ("scattered holes", &self.scattered),
            ("prefix conditionals", &self.prefix),
            ("sample", &self.sample),
        ]
    }
}

/// One query on a batch.
#[derive(Debug, Serialize)]
pub(super) struct Query {
    pub(super) rows: usize,
    /// The shortest time of the whole batch.
    pub(super) seconds: f64,
    pub(super) cpu_seconds: Option<f64>,
    pub(super) rows_per_second: f64,
    /// Complex multiply-adds per row, from the message table.
    pub(super) multiply_adds: f64,
    /// Complex multiply-adds per row, without the redundant halves of Hermitian results.
    pub(super) hermitian_multiply_adds: f64,
    /// Wall time divided by the time of the table's multiply-adds at the peak.
    pub(super) over_bound: f64,
    /// Wall time divided by the time of the Hermitian count at the peak.
    pub(super) over_hermitian_bound: f64,
    /// `over_bound` by CPU time, as it would be if no other program were running.
    pub(super) cpu_over_bound: Option<f64>,
}

/// A query before it is measured.
struct Case<'a> {
    rows: usize,
    work: Work,
    run: Box<dyn Fn() -> Result<()> + 'a>,
    took: Took,
}

impl Case<'_> {
    fn finish(self, peak: &Peak) -> Query {
        let best = self.took;
        let rows = self.rows as f64;
        Query {
            rows: self.rows,
            seconds: best.seconds,
            cpu_seconds: best.cpu_seconds,
            rows_per_second: rows / best.seconds,
            multiply_adds: self.work.table as f64 / rows,
            hermitian_multiply_adds: self.work.hermitian as f64 / rows,
            over_bound: peak.over_bound(best, self.work.table),
            over_hermitian_bound: peak.over_bound(best, self.work.hermitian),
            cpu_over_bound: peak.cpu_over_bound(best, self.work.table),
        }
    }
}

/// The numbers of rows for expensive queries, which take about a second each.
fn dear_rows(width: usize, effort: Effort) -> (usize, usize) {
    match (width, effort.quick) {
        (0..16, _) => (BATCH, BATCH),
        (16..32, false) => (BATCH, 64),
        (16..32, true) => (64, 32),
        _ => (64, 16),
    }
}

pub(super) fn measure(
    image: ImageSize,
    width: usize,
    seed: u64,
    effort: Effort,
    all: &mut Peak,
) -> Result<ImageTree> {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let ImageSize { height, width: columns, channels } = image;
    let tree = RegionTree::image(height, columns, channels);
    let shape = Shape { tree, states: STATES, product: Product::Kronecker, width };
    let circuit = shape.orthonormal(rng)?;
    let parameters = circuit.num_parameters();
    let engine = Engine::new(&circuit);
    drop(circuit);
    let (scattered_rows, traversals) = dear_rows(width, effort);
    let is_left = |v: usize| v / channels % columns < columns / 2;
    let full = shape.rows(BATCH, rng, |_, _| false);
    let half = shape.rows(BATCH, rng, |v, _| is_left(v));
    let holes = shape.rows(scattered_rows, rng, |_, rng| rng.random());
    let rows = |values| Batch::from_rows(engine.variables(), values);
    let (full, half, holes) = (rows(&full)?, rows(&half)?, rows(&holes)?);
    let complete = shape.rows(traversals, rng, |_, _| false);
    let complete = rows(&complete)?;
    let mut cases = [
        marginals(&engine, &full),
        marginals(&engine, &half),
        marginals(&engine, &holes),
        Case {
            rows: traversals,
            work: engine.prefix_work() * traversals,
            run: Box::new(|| Ok(engine.log_conditionals(&complete).map(|_| ())?)),
            took: Took::NOTHING,
        },
        Case {
            rows: traversals,
            work: engine.sample_work() * traversals,
            run: Box::new(|| {
                engine.sample(traversals, seed);
                Ok(())
            }),
            took: Took::NOTHING,
        },
    ];
    let (repetitions, peak) = interleave(&mut cases, effort, all)?;
    let [evaluate, half_marginal, scattered, prefix, sample] = cases.map(|c| c.finish(&peak));
    Ok(ImageTree {
        width,
        parameters,
        repetitions,
        peak_gflops: peak.rate() * 1e-9,
        evaluate,
        half_marginal,
        scattered,
        prefix,
        sample,
    })
}

fn marginals<'a>(engine: &'a Engine, rows: &'a Batch) -> Case<'a> {
    Case {
        rows: rows.len(),
        work: engine.marginal_work(rows),
        run: Box::new(|| Ok(engine.log_marginals(rows).map(|_| ())?)),
        took: Took::NOTHING,
    }
}

/// Runs all cases in turn, each between two measurements of the peak, repeatedly.
///
/// A case counts with its shortest time, and the peak with its best rate over the same period.
fn interleave(cases: &mut [Case<'_>], effort: Effort, all: &mut Peak) -> Result<(usize, Peak)> {
    // Weights are packed at their first use.
    for case in &*cases {
        (case.run)()?;
    }
    let mut peak = Peak::new();
    let start = Instant::now();
    let mut repetitions = 0;
    while repetitions < effort.repetitions
        || repetitions < 100 && start.elapsed().as_secs_f64() < effort.seconds
    {
        for case in &mut *cases {
            case.took = case.took.and(peak.around(all, || (case.run)())?);
        }
        repetitions += 1;
    }
    Ok((repetitions, peak))
}
