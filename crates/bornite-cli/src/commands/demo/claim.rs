//! The paper's claim: the answers of a squared circuit, without squaring it.

use std::time::{Duration, Instant};

use anyhow::Result;
use bornite::circuit::Weights;
use bornite::draw::circuit_svg;
use bornite::ops::{Marginal, marginalize, orthonormalize, square};
use bornite::structure::{RegionTree, Structure};
use bornite::{Basis, Circuit, Domain, Query, Variable};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Stage;
use crate::files;
use crate::image::{ImageSize, right_half};
use crate::output::{Table, grouped, number, plural, time};

const SIZE: ImageSize = ImageSize { height: 8, width: 8, channels: 1 };
/// The number of gray levels, and the width of every layer.
const K: usize = 6;

pub(super) fn run(stage: &mut Stage<'_>) -> Result<()> {
    let rng = &mut ChaCha8Rng::seed_from_u64(stage.seed);
    let leaf = |v: usize| {
        let name = format!("p{}_{}", v / SIZE.width, v % SIZE.width);
        (Variable::new(name, Domain::Finite(K)), Basis::indicator(K))
    };
    let tree = RegionTree::image(SIZE.height, SIZE.width, 1);
    let circuit = Structure::new(tree, leaf).width(K).build(Weights::Gaussian, rng)?;
    let query = right_half(&circuit, SIZE, || rng.random_range(0..K) as f64)?;
    introduce(stage, &circuit)?;

    let both = Both::measure(&circuit, &query)?;
    both.write(stage)?;

    let path = stage.folder.join("circuit.svg");
    files::write_text(&path, &circuit_svg(&circuit, Some(&query))?)?;
    writeln!(
        stage.out,
        "\nThe circuit, colored by φ_Y, φ_Z and φ_YZ, is drawn in {}",
        path.display()
    )?;
    Ok(())
}

fn introduce(stage: &mut Stage<'_>, circuit: &Circuit) -> Result<()> {
    writeln!(stage.out, "The answers of a squared circuit, without squaring it")?;
    writeln!(
        stage.out,
        "\n  A circuit c over the pixels of an {}×{} image with {K} gray levels: {}, {},\n  \
         Kronecker products, all widths K = {K}, random complex weights. p(x) = |c(x)|² / Z.\n",
        SIZE.height,
        SIZE.width,
        plural(circuit.num_layers(), "layer"),
        plural(circuit.num_parameters(), "parameter"),
    )?;
    Ok(())
}

/// One answer and how long it took.
struct Timed {
    value: f64,
    time: Duration,
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

/// Each answer, computed in two ways.
struct Both {
    squaring: Duration,
    squared_size: u128,
    log_partition: [Timed; 2],
    log_marginal: [Timed; 2],
    marginal: Marginal,
}

impl Both {
    fn measure(circuit: &Circuit, query: &Query) -> Result<Self> {
        let (squared, squaring) = timed(|| square(circuit));
        let squared = squared?;
        let (naive_z, naive_z_time) = timed(|| squared.log_partition());
        let (naive, naive_time) = timed(|| squared.log_unnormalized_marginal(query));
        let (orthonormal, z_time) = timed(|| orthonormalize(circuit));
        let orthonormal = orthonormal?;
        let (marginal, marginal_time) = timed(|| marginalize(&orthonormal.circuit, query));
        let marginal = marginal?;
        Ok(Self {
            squaring,
            squared_size: squared.circuit().num_parameters() as u128,
            log_partition: [
                Timed { value: naive_z, time: naive_z_time },
                Timed { value: orthonormal.log_partition, time: z_time },
            ],
            log_marginal: [
                Timed { value: naive? - naive_z, time: naive_time },
                Timed { value: marginal.log_marginal, time: marginal_time },
            ],
            marginal,
        })
    }

    fn write(&self, stage: &mut Stage<'_>) -> Result<()> {
        let out = &mut *stage.out;
        let mut answers = Table::new(1, &["answer", "by squaring c", "ours", "difference"]);
        let rows = [
            ("log Z", &self.log_partition),
            ("log p(right half), left half marginalized", &self.log_marginal),
        ];
        for (name, [naive, ours]) in rows {
            let difference = format!("{:.0e}", (naive.value - ours.value).abs());
            answers.row([name.to_owned(), number(naive.value), number(ours.value), difference]);
        }
        answers.write(out)?;

        writeln!(out)?;
        let work = &self.marginal.multiply_adds;
        let [z, marginal] = [&self.log_partition, &self.log_marginal];
        let mut costs = Table::new(1, &["cost", "by squaring c", "ours", "the paper's bound"]);
        let mut row = |name: &str, cells: [String; 3]| {
            costs.row(std::iter::once(name.to_owned()).chain(cells));
        };
        let none = String::new;
        row("build c²: parameters", [grouped(self.squared_size), none(), none()]);
        row("build c²: time", [time(self.squaring), none(), none()]);
        row("Z: time (ours by Algorithm 1)", [time(z[0].time), time(z[1].time), none()]);
        row(
            "marginal: multiply-adds",
            [grouped(work.squaring), grouped(work.ours), grouped(work.paper_bound)],
        );
        row("marginal: time", [time(marginal[0].time), time(marginal[1].time), none()]);
        costs.write(out)?;

        writeln!(out)?;
        let layers = &self.marginal.layers;
        let mut sets = Table::new(3, &["layers", "depend on", "and are", "count"]);
        let mut row = |set: &str, scope: &str, count: usize, fate: &str| {
            sets.row([set, scope, fate, &grouped(count as u128)].map(str::to_owned));
        };
        row("φ_Y", "observed pixels", layers.kept, "evaluated, not squared");
        row("φ_Z", "missing pixels", layers.marginalized, "skipped");
        row("φ_YZ", "both", layers.mixed, "one K × K matrix each");
        sets.write(out)?;
        Ok(())
    }
}
