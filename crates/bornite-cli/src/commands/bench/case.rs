//! `bornite bench case`: one operation on one circuit, for comparisons with other libraries.

use std::io::Write;
use std::time::Instant;

use anyhow::{Result, bail};
use bornite::circuit::Weights;
use bornite::engine::{Batch, Engine};
use bornite::ops;
use bornite::structure::{Product, RegionTree};
use clap::{Args, ValueEnum};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::circuits::Shape;
use super::machine::peak_memory_mib;
use super::stopwatch::{Took, took};
use crate::device::Device;
use crate::image::{ImageSize, MAX_VARIABLES};
use crate::output;

/// Time one operation on one circuit with random complex weights, and print a JSON object.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite bench case --tree image --product hadamard --states 256 -k 16 --operation evaluate --batch 256")]
pub(crate) struct Case {
    /// The region tree.
    #[arg(long)]
    tree: Tree,
    /// The size of the image, for an image tree.
    #[arg(long, default_value = "28x28")]
    image: ImageSize,
    /// The number of variables, for a linear or balanced tree.
    #[arg(long, default_value_t = 784)]
    variables: usize,
    /// The kind of the products.
    #[arg(long, default_value = "kronecker")]
    product: ProductKind,
    /// The number of values of each variable.
    #[arg(long, default_value_t = 256)]
    states: usize,
    /// The width K.
    #[arg(long, short = 'k')]
    width: usize,
    /// The operation to time.
    #[arg(long)]
    operation: Operation,
    /// The number of rows.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// Where to evaluate, compute marginals or sample.
    #[arg(long, value_enum, default_value_t)]
    device: Device,
    /// How long to repeat the operation.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// The seed of weights and values.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Tree {
    Image,
    Linear,
    Balanced,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProductKind {
    Kronecker,
    Hadamard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Operation {
    /// log p of complete rows.
    Evaluate,
    /// log Z of a circuit that is not orthonormal.
    Partition,
    /// log p of half of each row: the right half of an image, or the first half of a sequence.
    Marginal,
    /// All prefix conditionals of complete rows.
    Prefix,
    /// Exact samples.
    Sample,
}

#[derive(Debug, Serialize)]
struct Answer {
    operation: Operation,
    width: usize,
    batch: usize,
    runs: usize,
    /// The shortest time of the whole batch.
    seconds: f64,
    cpu_seconds: Option<f64>,
    /// Building and packing the circuit, which is not part of the time.
    build_seconds: f64,
    peak_memory_mib: Option<f64>,
}

impl Case {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        if self.device != Device::Cpu
            && matches!(self.operation, Operation::Partition | Operation::Prefix)
        {
            bail!("a device can only evaluate, compute marginals and sample; omit --device");
        }
        if self.width == 0 || self.batch == 0 || !(1..=MAX_VARIABLES).contains(&self.variables) {
            bail!(
                "width and batch must be at least 1, and there must be 1 to {MAX_VARIABLES} variables"
            );
        }
        let ImageSize { height, width, channels } = self.image;
        let tree = match self.tree {
            Tree::Image => RegionTree::image(height, width, channels),
            Tree::Linear => RegionTree::linear(self.variables),
            Tree::Balanced => RegionTree::balanced(self.variables),
        };
        let product = match self.product {
            ProductKind::Kronecker => Product::Kronecker,
            ProductKind::Hadamard => Product::Hadamard,
        };
        let shape = Shape { tree, states: self.states, product, width: self.width };
        let (build_seconds, runs, best) = self.measure(&shape)?;
        output::json(
            out,
            &Answer {
                operation: self.operation,
                width: self.width,
                batch: self.batch,
                runs,
                seconds: best.seconds,
                cpu_seconds: best.cpu_seconds,
                build_seconds,
                peak_memory_mib: peak_memory_mib(),
            },
        )
    }

    /// The seconds to build the circuit, the number of runs, and the best time.
    fn measure(&self, shape: &Shape) -> Result<(f64, usize, Took)> {
        let rng = &mut ChaCha8Rng::seed_from_u64(self.seed);
        let start = Instant::now();
        if self.operation == Operation::Partition {
            let circuit = shape.build(Weights::Gaussian, rng)?;
            let built = start.elapsed().as_secs_f64();
            let (runs, best) = self.repeat(|| Ok(ops::log_partition(&circuit).map(|_| ())?))?;
            return Ok((built, runs, best));
        }
        let engine = Engine::new(&shape.orthonormal(rng)?);
        let built = start.elapsed().as_secs_f64();
        let half = |v: usize| match self.tree {
            Tree::Image => v / self.image.channels % self.image.width < self.image.width / 2,
            Tree::Linear | Tree::Balanced => v >= self.variables / 2,
        };
        let is_marginal = self.operation == Operation::Marginal;
        let values = shape.rows(self.batch, rng, |v, _| is_marginal && half(v));
        let rows = Batch::from_rows(engine.variables(), &values)?;
        let (runs, best) = self.repeat(|| {
            match self.operation {
                Operation::Sample => {
                    drop(engine.sample_from_on(0, self.batch, self.seed, self.device.into())?);
                }
                Operation::Prefix => drop(engine.log_conditionals(&rows)?),
                Operation::Evaluate | Operation::Partition | Operation::Marginal => {
                    drop(engine.log_marginals_on(&rows, self.device.into())?);
                }
            }
            Ok(())
        })?;
        Ok((built, runs, best))
    }

    /// Runs once to warm up, then at least once, and repeats until the time is up.
    fn repeat(&self, mut work: impl FnMut() -> Result<()>) -> Result<(usize, Took)> {
        work()?;
        let start = Instant::now();
        let (mut runs, mut all) = (0, Took::NOTHING);
        while runs == 0 || runs < 10_000 && start.elapsed().as_secs_f64() < self.seconds {
            let mut result = Ok(());
            all = all.and(took(|| result = work()));
            result?;
            runs += 1;
        }
        Ok((runs, all))
    }
}
