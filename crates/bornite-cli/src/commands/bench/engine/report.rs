//! The results by name, as tables and as Markdown.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use super::super::machine::Machine;
use super::super::page::Page;
use super::image::ImageTree;
use super::scaling::{Point, Scaling};
use super::single::Single;
use crate::image::ImageSize;
use crate::output::{Table, grouped, time};

/// The raw measurements, without the figures derived from them.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) machine: Machine,
    pub(super) load_after: Option<f64>,
    pub(super) threads: usize,
    pub(super) instruction_set: String,
    pub(super) image: ImageSize,
    pub(super) seed: u64,
    pub(super) quick: bool,
    pub(super) peak_memory_mib: Option<f64>,
    pub(super) peak_gflops: f64,
    pub(super) peak_gflops_of_one_core: Option<f64>,
    pub(super) widths: Vec<ImageTree>,
    pub(super) scaling: Scaling,
    pub(super) single: Vec<Single>,
}

/// The ratios by name, each the worst over all widths, and the data behind them.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    machine: Machine,
    load_after: Option<f64>,
    threads: usize,
    instruction_set: String,
    image: String,
    seed: u64,
    quick: bool,
    peak_gflops: f64,
    peak_gflops_of_one_core: Option<f64>,
    /// The lowest over the widths from 16 on, or over all widths if there is none.
    evaluate_over_peak: f64,
    half_marginal_over_evaluate: f64,
    scattered_over_bound: f64,
    prefix_over_bound: f64,
    sample_over_bound: f64,
    /// By width and query.
    rows_per_second: BTreeMap<usize, BTreeMap<&'static str, f64>>,
    scaling: Scaling,
    single: Vec<Single>,
    peak_memory_mib: Option<f64>,
    widths: Vec<ImageTree>,
}

fn worst(widths: &[ImageTree], ratio: impl Fn(&ImageTree) -> f64) -> f64 {
    widths.iter().map(ratio).fold(f64::NEG_INFINITY, f64::max)
}

fn half_over_evaluate(w: &ImageTree) -> f64 {
    w.half_marginal.seconds / w.evaluate.seconds
}

impl Report {
    pub(super) fn new(facts: Facts) -> Self {
        let widths = facts.widths;
        let large = widths.iter().filter(|w| w.width >= 16).map(|w| 1.0 / w.evaluate.over_bound);
        let all = widths.iter().map(|w| 1.0 / w.evaluate.over_bound).fold(f64::INFINITY, f64::min);
        let rates = |w: &ImageTree| {
            let queries = w.queries().into_iter();
            (w.width, queries.map(|(name, q)| (name, q.rows_per_second)).collect())
        };
        let ImageSize { height, width, .. } = facts.image;
        Self {
            machine: facts.machine,
            load_after: facts.load_after,
            threads: facts.threads,
            instruction_set: facts.instruction_set,
            image: format!("{height}×{width}"),
            seed: facts.seed,
            quick: facts.quick,
            peak_gflops: facts.peak_gflops,
            peak_gflops_of_one_core: facts.peak_gflops_of_one_core,
            evaluate_over_peak: large.reduce(f64::min).unwrap_or(all),
            half_marginal_over_evaluate: worst(&widths, half_over_evaluate),
            scattered_over_bound: worst(&widths, |w| w.scattered.over_bound),
            prefix_over_bound: worst(&widths, |w| w.prefix.over_bound),
            sample_over_bound: worst(&widths, |w| w.sample.over_bound),
            rows_per_second: widths.iter().map(rates).collect(),
            scaling: facts.scaling,
            single: facts.single,
            peak_memory_mib: facts.peak_memory_mib,
            widths,
        }
    }

    /// Writes the report as text or Markdown.
    pub(super) fn write(&self, out: &mut dyn Write, markdown: bool) -> Result<()> {
        let page = Page {
            title: "The batched engine",
            introduction: INTRODUCTION,
            facts: &self.facts(),
            tables: &self.tables(),
        };
        if markdown { page.write_markdown(out) } else { page.write(out) }
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let m = &self.machine;
        let load = match (m.load, self.load_after) {
            (Some(a), Some(b)) => format!("{a:.1} before, {b:.1} after"),
            _ => "unknown".to_owned(),
        };
        let one = self.peak_gflops_of_one_core.map_or_else(String::new, |r| {
            format!(" by wall time, {r:.1} GFLOP/s per core by CPU time")
        });
        let memory = self.peak_memory_mib.map_or_else(
            || "unknown".to_owned(),
            |mib| format!("{mib:.0} MiB, for all models of the run in sequence"),
        );
        let k = self.scaling.linear_tree_exponent;
        vec![
            ("Machine", format!("{}, {} cores, {} threads", m.cpu, m.cores, self.threads)),
            ("Load", load),
            ("Date", m.date.clone()),
            ("Build", format!("{}; {} at run time", m.build, self.instruction_set)),
            ("Seed", self.seed.to_string()),
            ("Effort", if self.quick { QUICK } else { "full" }.to_owned()),
            ("Peak", format!("{:.1} GFLOP/s{one}", self.peak_gflops)),
            (
                "Circuit",
                format!("image tree {}, Kronecker, complex f64, 256 gray levels", self.image),
            ),
            ("Peak memory", memory),
            (
                "Growth with K on a linear tree",
                format!("K to the power of {k:.2} over the last doubling"),
            ),
        ]
    }

    fn tables(&self) -> [(&'static str, Table); 6] {
        let scaling = &self.scaling;
        [
            ("Targets", self.targets()),
            ("Image tree", self.queries()),
            ("Single answers", self.singles()),
            ("Growth with variables", points(&scaling.variables)),
            ("Growth with rows", points(&scaling.rows)),
            ("Growth with width on a linear tree", points(&scaling.linear_tree_widths)),
        ]
    }

    fn targets(&self) -> Table {
        let mut table = Table::new(2, &["ratio", "target", "K", "measured", "by CPU time"]);
        for w in &self.widths {
            let mut row = |name: &str, target: &str, x: f64, cpu: Option<f64>| {
                let cpu = or_dash(cpu, |x| format!("{x:.2}"));
                let cells = [name, target, &w.width.to_string(), &format!("{x:.2}"), &cpu];
                table.row(cells.map(ToOwned::to_owned));
            };
            let at_least = if w.width < 16 { "≥ 0.60" } else { "≥ 0.70" };
            let e = &w.evaluate;
            row(
                "evaluate_over_peak",
                at_least,
                1.0 / e.over_bound,
                e.cpu_over_bound.map(f64::recip),
            );
            let cpu = w.half_marginal.cpu_seconds.zip(e.cpu_seconds).map(|(a, b)| a / b);
            row("half_marginal_over_evaluate", "≤ 0.60", half_over_evaluate(w), cpu);
            let bounds = [
                ("scattered_over_bound", "≤ 1.30", &w.scattered),
                ("prefix_over_bound", "≤ 3.00", &w.prefix),
                ("sample_over_bound", "≤ 3.00", &w.sample),
            ];
            for (name, target, q) in bounds {
                row(name, target, q.over_bound, q.cpu_over_bound);
            }
        }
        table
    }

    fn singles(&self) -> Table {
        let head =
            ["answer", "K", "time", "multiply-adds", "target", "time / bound", "by CPU time"];
        let mut table = Table::new(1, &head);
        for s in &self.single {
            table.row([
                s.name.to_owned(),
                s.width.to_string(),
                seconds(s.took.seconds),
                grouped(s.multiply_adds as u128),
                "≤ 2.00".to_owned(),
                format!("{:.2}", s.over_bound),
                or_dash(s.cpu_over_bound, |x| format!("{x:.2}")),
            ]);
        }
        table
    }

    fn queries(&self) -> Table {
        let head = [
            "query",
            "K",
            "rows",
            "time",
            "rows per second",
            "multiply-adds per row",
            "Hermitian",
            "time / bound",
            "time / Hermitian bound",
        ];
        let mut table = Table::new(1, &head);
        for w in &self.widths {
            for (name, q) in w.queries() {
                table.row([
                    name.to_owned(),
                    w.width.to_string(),
                    q.rows.to_string(),
                    seconds(q.seconds),
                    three_digits(q.rows_per_second),
                    grouped(q.multiply_adds.round() as u128),
                    grouped(q.hermitian_multiply_adds.round() as u128),
                    format!("{:.2}", q.over_bound),
                    format!("{:.2}", q.over_hermitian_bound),
                ]);
            }
        }
        table
    }
}

fn points(points: &[Point]) -> Table {
    let head = [
        "tree",
        "variables",
        "K",
        "values",
        "rows",
        "evaluate, per row",
        "CPU time",
        "prefix, per row",
        "CPU time",
        "log p",
        "peak memory, MiB",
    ];
    let mut table = Table::new(1, &head);
    for p in points {
        table.row([
            p.tree.to_owned(),
            grouped(p.variables as u128),
            p.width.to_string(),
            p.states.to_string(),
            grouped(p.rows as u128),
            seconds(p.evaluate.seconds),
            or_dash(p.evaluate.cpu_seconds, seconds),
            or_dash(p.prefix.map(|t| t.seconds), seconds),
            or_dash(p.prefix.and_then(|t| t.cpu_seconds), seconds),
            format!("{:.1}", p.log_p),
            or_dash(p.peak_memory_mib, |m| format!("{m:.0}")),
        ]);
    }
    table
}

fn or_dash(x: Option<f64>, write: impl Fn(f64) -> String) -> String {
    x.map_or_else(|| "–".to_owned(), write)
}

fn seconds(s: f64) -> String {
    time(Duration::from_secs_f64(s))
}

fn three_digits(x: f64) -> String {
    if x < 100.0 { format!("{x:.1}") } else { grouped(x.round() as u128) }
}

const QUICK: &str = "--quick: fewer widths, rows and repetitions than the command above";

const INTRODUCTION: &str = "\
All queries of the engine on all cores, compared with the machine's peak throughput and with the
number of operations. Generated by

```sh
cargo run --release -- bench engine --markdown > docs/benchmarks/engine.md
```

The *peak* is the throughput of a pure loop of fused multiply-adds on all threads at once. Peak and
query are measured in turn, many times over, and the best rate is compared with the shortest time. *By
CPU time* is the same ratio with the CPU time of our own threads, averaged over all runs on both
sides. If other programs are running, the wall-time ratios are noisy, and these are closer to the
results of an idle machine, although caches are still shared.

The *bound* is the number of multiply-adds in the message table divided by peak throughput: K³ for two
vectors, 2K³ for a vector and an identity, 3K³ for a vector and a matrix, 2K⁴ for a matrix and an
identity, 3K⁴ for two matrices (computed with the actual widths of each layer). A complex multiply-add
is 8 operations. A traversal takes 2K⁴ + 4K³ if the environment is a matrix, and K² + K at a variable.
A sample takes 4K³, because its environments are vectors, and K for each value of a variable.
Rescaling, copies and input values are not counted. The table counts every entry of a Hermitian
result; *Hermitian* counts only one half, which is what the engine computes and the least that is
needed.

*Half marginal*: the left half of every image is missing. *Scattered holes*: each cell is missing with
probability ½. *Prefix conditionals*: all conditionals of a complete row, in one traversal. *Sample*:
exact, without evidence. *Single answers* are products of whole matrices, one answer at a time: the
partition function of a circuit that is not orthonormal, which threads share, and a marginal of a
matrix product state with 784 sites whose right half is missing. The latter is one chain of products,
so it is compared with the peak of one core. *CPU time* is the time on all cores together. For growth
with rows, all rows are in memory from the start, and peak memory is the maximum up to that point: it
does not grow with the number of rows processed, except for their answers.
";
