//! How time and memory grow with variables, rows and width.

use anyhow::Result;
use bornite::engine::{Batch, Engine};
use bornite::structure::{Product, RegionTree};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::super::circuits::Shape;
use super::super::machine::peak_memory_mib;
use super::super::stopwatch::{Peak, Took, took};
use super::Effort;

/// Growth in one dimension at a time.
#[derive(Debug, Serialize)]
pub(super) struct Scaling {
    pub(super) variables: Vec<Point>,
    pub(super) rows: Vec<Point>,
    pub(super) linear_tree_widths: Vec<Point>,
    /// The exponent of K in the time of all prefix conditionals on a linear tree, over the last doubling; by CPU time
    /// if the system provides it.
    pub(super) linear_tree_exponent: f64,
}

/// One circuit and batch.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Point {
    pub(super) tree: &'static str,
    pub(super) variables: usize,
    pub(super) width: usize,
    pub(super) states: usize,
    pub(super) rows: usize,
    /// log p of one row.
    pub(super) evaluate: Took,
    /// All prefix conditionals of one row.
    pub(super) prefix: Option<Took>,
    /// log p of the first row, which is finite for any number of variables.
    pub(super) log_p: f64,
    /// The peak memory of the process so far, if the system provides it.
    pub(super) peak_memory_mib: Option<f64>,
}

const WIDTH: usize = 8;
const STATES: usize = 16;

pub(super) fn measure(seed: u64, effort: Effort, peak: &mut Peak) -> Result<Scaling> {
    peak.measure();
    let bench = Bench { seed, effort };
    let rows = bench.rows()?;
    let variables = bench.variables()?;
    let linear_tree_widths = bench.linear_tree_widths()?;
    peak.measure();
    let prefix = |n: usize| linear_tree_widths[n].prefix.map_or(f64::NAN, Took::steadier);
    let last = linear_tree_widths.len() - 1;
    let linear_tree_exponent = (prefix(last) / prefix(last - 1)).log2();
    Ok(Scaling { variables, rows, linear_tree_widths, linear_tree_exponent })
}

struct Bench {
    seed: u64,
    effort: Effort,
}

impl Bench {
    fn engine(&self, shape: &Shape) -> Result<Engine> {
        Ok(Engine::new(&shape.orthonormal(&mut ChaCha8Rng::seed_from_u64(self.seed))?))
    }

    fn values(&self, shape: &Shape, rows: usize) -> Vec<f64> {
        let rng = &mut ChaCha8Rng::seed_from_u64(self.seed + 1);
        shape.rows(rows, rng, |_, _| false)
    }

    /// Growing numbers of rows of one table, which is in memory from the start.
    fn rows(&self) -> Result<Vec<Point>> {
        let shape = shape(RegionTree::balanced(100), WIDTH, STATES);
        let engine = self.engine(&shape)?;
        let counts: &[usize] =
            if self.effort.quick { &[500, 2_000] } else { &[1_000, 10_000, 100_000] };
        let values = self.values(&shape, counts[counts.len() - 1]);
        let point = |&rows| self.point(&engine, "balanced", &shape, &values[..rows * 100], false);
        counts.iter().map(point).collect()
    }

    fn variables(&self) -> Result<Vec<Point>> {
        let counts: &[usize] = if self.effort.quick { &[100, 400] } else { &[100, 1_000, 10_000] };
        let mut points = Vec::new();
        for name in ["balanced", "linear"] {
            for &variables in counts {
                let tree = if name == "linear" {
                    RegionTree::linear(variables)
                } else {
                    RegionTree::balanced(variables)
                };
                let shape = shape(tree, WIDTH, STATES);
                let engine = self.engine(&shape)?;
                let values = self.values(&shape, 256);
                points.push(self.point(&engine, name, &shape, &values, true)?);
            }
        }
        Ok(points)
    }

    fn linear_tree_widths(&self) -> Result<Vec<Point>> {
        let widths: &[usize] = if self.effort.quick { &[8, 16, 32] } else { &[8, 16, 32, 64] };
        let mut points = Vec::new();
        for &width in widths {
            let shape = shape(RegionTree::linear(200), width, 4);
            let engine = self.engine(&shape)?;
            let values = self.values(&shape, 256);
            points.push(self.point(&engine, "linear", &shape, &values, true)?);
        }
        Ok(points)
    }

    fn point(
        &self,
        engine: &Engine,
        tree: &'static str,
        shape: &Shape,
        values: &[f64],
        prefix: bool,
    ) -> Result<Point> {
        let rows = Batch::from_rows(engine.variables(), values)?;
        let log_p = engine.log_marginals(&rows)?[0];
        let a_row = |t: Took| Took {
            seconds: t.seconds / rows.len() as f64,
            cpu_seconds: t.cpu_seconds.map(|s| s / rows.len() as f64),
            runs: t.runs,
        };
        let evaluate = self.best(|| Ok(engine.log_marginals(&rows).map(|_| ())?))?;
        let prefix = if prefix {
            Some(self.best(|| Ok(engine.log_conditionals(&rows).map(|_| ())?))?)
        } else {
            None
        };
        Ok(Point {
            tree,
            variables: engine.variables().len(),
            width: shape.width,
            states: shape.states,
            rows: rows.len(),
            evaluate: a_row(evaluate),
            prefix: prefix.map(a_row),
            log_p,
            peak_memory_mib: peak_memory_mib(),
        })
    }

    /// The shortest of a few runs, after one that packs the weights.
    fn best(&self, mut work: impl FnMut() -> Result<()>) -> Result<Took> {
        let mut all = Took::NOTHING;
        let mut spent = 0.0;
        for run in 0..50 {
            let mut result = Ok(());
            let this = took(|| result = work());
            result?;
            all = all.and(this);
            spent += this.seconds;
            if run > self.effort.repetitions && spent > self.effort.seconds / 10.0 {
                break;
            }
        }
        Ok(all)
    }
}

fn shape(tree: RegionTree, width: usize, states: usize) -> Shape {
    Shape { tree, states, product: Product::Kronecker, width }
}
