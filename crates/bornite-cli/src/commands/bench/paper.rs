use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::{Result, bail};
use bornite::circuit::Weights;
use bornite::ops::{Marginal, OperationError, marginalize, orthonormalize, square};
use bornite::structure::{Product, RegionTree, Structure};
use bornite::{Basis, Circuit, Domain, Orthonormal, Query, Variable};
use clap::Args;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::machine::Machine;
use super::page::Page;
use super::timing;
use crate::counts::{Layers, MultiplyAdds};
use crate::image::{ImageSize, right_half};
use crate::output::{self, Table, grouped, time};

/// The paper's example: the marginal of half an image, by squaring and by Algorithm 2.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  bornite bench paper --markdown > docs/benchmarks/paper.md")]
pub(crate) struct Paper {
    /// The maximum width: measures those of 4, 8, 16 and 32 that do not exceed it.
    #[arg(long, default_value_t = 32)]
    max_width: usize,
    /// The size of the image.
    #[arg(long, default_value = "28x28")]
    image: ImageSize,
    /// The seed of weights and pixels.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON object.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown.
    #[arg(long)]
    markdown: bool,
}

const WIDTHS: [usize; 4] = [4, 8, 16, 32];

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    image: String,
    variables: usize,
    seed: u64,
    rows: Vec<Row>,
}

/// One circuit.
#[derive(Debug, Serialize)]
struct Row {
    product: &'static str,
    width: usize,
    parameters: usize,
    log_marginal: f64,
    layers: Layers,
    multiply_adds: MultiplyAdds,
    seconds: Seconds,
    /// The difference between the log marginal by squaring and ours.
    difference: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Seconds {
    ours: f64,
    /// Building c² once; `None` if it does not fit.
    square: Option<f64>,
    /// One marginal of c², without building it.
    squaring: Option<f64>,
    /// Algorithm 1 on a circuit of the same shape with weights that are not orthonormal.
    orthonormalize: f64,
}

impl Paper {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<()> {
        if self.max_width < WIDTHS[0] {
            bail!("--max-width {}: the smallest measured width is {}", self.max_width, WIDTHS[0]);
        }
        // Before the measurement adds to the load.
        let machine = Machine::here();
        let mut rows = Vec::new();
        for product in [Product::Hadamard, Product::Kronecker] {
            for width in WIDTHS.into_iter().filter(|&k| k <= self.max_width) {
                progress(product, width);
                rows.push(self.measure(product, width)?);
            }
        }
        let ImageSize { height, width, channels } = self.image;
        let report = Report {
            machine,
            image: format!("{height}×{width}"),
            variables: height * width * channels,
            seed: self.seed,
            rows,
        };
        if self.json { output::json(out, &report) } else { report.write(out, self.markdown) }
    }

    fn measure(&self, product: Product, width: usize) -> Result<Row> {
        let rng = &mut ChaCha8Rng::seed_from_u64(self.seed);
        let circuit = self.circuit(product, width, Weights::Haar, rng)?;
        let query = right_half(&circuit, self.image, || rng.random())?;
        let free = self.circuit(product, width, Weights::Gaussian, rng)?;
        let (result, orthonormalize) = timing::best(|| orthonormalize(&free).map(|_| ()));
        result?;
        drop(free);
        let parameters = circuit.num_parameters();
        let squared = square_and_query(&circuit, &query)?;
        let orthonormal = Orthonormal::verify(circuit).map_err(bornite::Error::from)?;
        let (marginal, ours) = timing::best(|| marginalize(&orthonormal, &query));
        let Marginal { log_marginal, layers, multiply_adds } = marginal?;
        Ok(Row {
            product: match product {
                Product::Hadamard => "Hadamard",
                Product::Kronecker => "Kronecker",
            },
            width,
            parameters,
            log_marginal,
            layers: layers.into(),
            multiply_adds: multiply_adds.into(),
            seconds: Seconds {
                ours: ours.as_secs_f64(),
                square: squared.as_ref().map(|s| s.build.as_secs_f64()),
                squaring: squared.as_ref().map(|s| s.query.as_secs_f64()),
                orthonormalize: orthonormalize.as_secs_f64(),
            },
            difference: squared.map(|s| (s.log_marginal - log_marginal).abs()),
        })
    }

    fn circuit(
        &self,
        product: Product,
        width: usize,
        weights: Weights,
        rng: &mut ChaCha8Rng,
    ) -> Result<Circuit> {
        let basis = std::sync::Arc::new(Basis::legendre(width, 0.0, 1.0)?);
        let leaf = |v| (Variable::new(format!("x{v}"), Domain::Interval(0.0, 1.0)), basis.clone());
        let ImageSize { height, width: columns, channels } = self.image;
        let structure = Structure::new(RegionTree::image(height, columns, channels), leaf);
        Ok(structure.width(width).product(product).build(weights, rng)?)
    }
}

struct Squared {
    build: Duration,
    query: Duration,
    log_marginal: f64,
}

/// The marginal by squaring; `None` if c² does not fit.
fn square_and_query(circuit: &Circuit, query: &Query) -> Result<Option<Squared>> {
    let (squared, build) = timing::best(|| square(circuit));
    let squared = match squared {
        Ok(squared) => squared,
        Err(OperationError::TooLarge { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let log_partition = squared.log_partition();
    let (marginal, query) = timing::best(|| squared.log_unnormalized_marginal(query));
    Ok(Some(Squared { build, query, log_marginal: marginal? - log_partition }))
}

/// Prints what is being measured if standard error is a terminal.
fn progress(product: Product, width: usize) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = writeln!(err, "measuring {product:?}, K = {width} …");
    }
}

impl Report {
    /// Writes the report as text or Markdown.
    fn write(&self, out: &mut dyn Write, markdown: bool) -> Result<()> {
        let page = Page {
            title: &format!("The marginal of the right half of a {} image", self.image),
            introduction: INTRODUCTION,
            facts: &self.facts(),
            tables: &self.tables(),
        };
        if markdown { page.write_markdown(out) } else { page.write(out) }
    }

    fn facts(&self) -> [(&'static str, String); 6] {
        let machine = &self.machine;
        let load = machine.load.map_or_else(String::new, |l| format!(" with a load of {l:.1}"));
        let difference = self.rows.iter().filter_map(|r| r.difference).fold(0.0, f64::max);
        [
            (
                "Machine",
                format!("{}, {} cores{load}; one thread is used", machine.cpu, machine.cores),
            ),
            ("Build", machine.build.clone()),
            ("Seed", self.seed.to_string()),
            (
                "Inputs",
                format!(
                    "{} pixels in [0, 1], K Legendre functions each, so inputs have the same width as all other layers",
                    self.variables
                ),
            ),
            ("Weights", "complex semi-unitary (Haar); complex Gaussian for Algorithm 1".to_owned()),
            (
                "Agreement",
                format!("log p by squaring and by our method differ by at most {difference:.0e}"),
            ),
        ]
    }

    fn tables(&self) -> [(&'static str, Table); 3] {
        let mut layers = Table::new(1, &["products", "K", "parameters", "φ_Y", "φ_Z", "φ_YZ"]);
        let mut work = Table::new(
            1,
            &["products", "K", "squaring", "the paper's bound", "ours", "squaring / ours"],
        );
        let mut times = Table::new(
            1,
            &[
                "products",
                "K",
                "building c²",
                "marginal of c²",
                "ours",
                "marginal of c² / ours",
                "Algorithm 1",
            ],
        );
        for row in &self.rows {
            let head = [row.product.to_owned(), row.width.to_string()];
            let with = |cells: Vec<String>| head.iter().cloned().chain(cells);
            let Layers { kept, marginalized, mixed } = row.layers;
            let counts = [row.parameters, kept, marginalized, mixed];
            layers.row(with(counts.map(|n| grouped(n as u128)).into()));
            let MultiplyAdds { ours, paper_bound, squaring } = row.multiply_adds;
            let mut cells: Vec<String> = [squaring, paper_bound, ours].map(grouped).into();
            cells.push(ratio(squaring as f64 / ours as f64));
            work.row(with(cells));
            let s = &row.seconds;
            let or_not = |s: Option<f64>| s.map_or_else(|| "does not fit".to_owned(), seconds);
            let gain = s.squaring.map_or_else(|| "–".to_owned(), |q| ratio(q / s.ours));
            times.row(with(vec![
                or_not(s.square),
                or_not(s.squaring),
                seconds(s.ours),
                gain,
                seconds(s.orthonormalize),
            ]));
        }
        [("Layers", layers), ("Multiply-adds of one marginal", work), ("Time", times)]
    }
}

fn seconds(s: f64) -> String {
    time(Duration::from_secs_f64(s))
}

/// How many times as much, with two digits or more.
fn ratio(x: f64) -> String {
    if x < 10.0 { format!("{x:.1}×") } else { format!("{}×", grouped(x.round() as u128)) }
}

const INTRODUCTION: &str = "\
The paper's example: the tree splits the image into halves, alternating between the two directions. The
pixels of the right half are observed, and those of the left half are marginalized. Only the output's
product and sum depend on both (φ_YZ); layers that depend only on the left half (φ_Z) are skipped.
Generated by

```sh
cargo run --release -- bench paper --markdown > docs/benchmarks/paper.md
```

*Squaring* builds the circuit c² of width K² and integrates it; its multiply-adds are the sizes of the
squared layers. *The paper's bound* is Algorithm 2 as printed; *ours* is Algorithm 2 with messages. A
square that would take more than 2 GiB *does not fit*. *Algorithm 1* is the time to orthonormalize a
circuit of the same shape whose weights are not orthonormal; this cost is paid once, not per query. Times
are the shortest of at least five runs.
";
