//! The mutual information of all pairs of variables, by counting bits.

use pulp::Arch;
use rayon::prelude::*;

use crate::domain::{Domain, Variable};
use crate::engine::Batch;

/// The number of variables per side of a tile, whose bits fit into the cache.
const TILE: usize = 32;
/// The number of rows per cell of two variables' bins that the quantiles aim at, if the variables
/// are independent.
const ROWS_PER_CELL: f64 = 5.0;
const MISSING: u16 = u16::MAX;
/// The minimum number of rows to sample, however little work is allowed.
const MIN_ROWS: usize = 256;

/// How to estimate mutual information.
#[derive(Clone, Debug, PartialEq)]
pub struct InformationOptions {
    /// The maximum number of bins of a variable. Fewer are used if there are few rows.
    pub max_bins: usize,
    /// The number of rows added to the counts of a pair, spread evenly over its cells: 1/4 per cell
    /// for two binary variables.
    pub smoothing: f64,
    /// The maximum number of rows to use. A larger table is sampled at even intervals.
    pub max_rows: usize,
    /// Whether the values of each variable are ordered; empty if all are. This matters for finite
    /// variables with more values than bins: ordered values are merged with their neighbors, other
    /// values if they are rare.
    pub ordered: Vec<bool>,
}

impl Default for InformationOptions {
    fn default() -> Self {
        Self { max_bins: 16, smoothing: 1.0, max_rows: 100_000, ordered: Vec::new() }
    }
}

impl InformationOptions {
    /// The largest number of rows, at most `max_rows`, for which comparing `variables` variables
    /// reads at most `words` words.
    pub(crate) fn rows_of_work(&self, variables: usize, words: f64) -> usize {
        let pairs = 0.5 * (variables as f64).powi(2);
        let work = |rows: usize| {
            let bins = num_bins(rows, self.max_bins) as f64;
            pairs * bins * bins * (rows as f64 / 64.0)
        };
        let mut rows = self.max_rows;
        while rows > MIN_ROWS && work(rows) > words {
            rows = (rows * 3 / 4).max(MIN_ROWS);
        }
        rows
    }
}

/// Why there is no estimate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InformationError {
    /// No variables.
    #[error("there are no variables to compare")]
    NoVariables,
    /// A batch with a different number of variables.
    #[error("the batch has {found} variables, not {expected}")]
    Variables {
        /// The number of variables.
        expected: usize,
        /// The number of variables of the batch.
        found: usize,
    },
}

/// The mutual information of all pairs of d variables, in nats: a symmetric matrix with the
/// entropies on its diagonal.
#[derive(Clone, Debug, PartialEq)]
pub struct MutualInformation {
    size: usize,
    values: Vec<f64>,
}

impl MutualInformation {
    /// A matrix with these entries for i < j, called in the order (0, 1), (0, 2), …, and zeros on
    /// the diagonal.
    pub fn from_fn(size: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Self {
        let mut this = Self { size, values: vec![0.0; size * size] };
        for i in 0..size {
            for j in i + 1..size {
                this.set(i, j, entry(i, j));
            }
        }
        this
    }

    /// The number of variables.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The mutual information of variables i and j.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        self.values[i * self.size + j]
    }

    /// The mutual information of variable i and every variable.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.size..(i + 1) * self.size]
    }

    fn set(&mut self, i: usize, j: usize, value: f64) {
        self.values[i * self.size + j] = value;
        self.values[j * self.size + i] = value;
    }
}

/// Estimates the mutual information Σ p(x, y) ln (p(x, y) / p(x) p(y)) of all pairs of variables.
///
/// A pair is counted over the rows in which neither value is missing. Finite variables with few
/// values are used unchanged, all others by quantiles: √(n / 5) of them, but at most `max_bins`.
///
/// Cost: d² / 2 pairs × bins² × n / 64 words, on all cores. The result does not depend on the
/// number of cores.
///
/// ```
/// use bornite::engine::Batch;
/// use bornite::structure::{InformationOptions, mutual_information};
/// use bornite::{Domain, Variable};
///
/// let variables = ["a", "b"].map(|name| Variable::new(name, Domain::Finite(2)));
/// let rows = Batch::from_rows(&variables, &[0.0, 0.0, 1.0, 1.0].repeat(500))?;
/// let information = mutual_information(&rows, &variables, &InformationOptions::default())?;
/// assert!((information.get(0, 1) - 2f64.ln()).abs() < 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// There are no variables, or the batch has a different number of variables.
pub fn mutual_information(
    rows: &Batch,
    variables: &[Variable],
    options: &InformationOptions,
) -> Result<MutualInformation, InformationError> {
    let width = variables.len();
    if width == 0 {
        return Err(InformationError::NoVariables);
    }
    if rows.num_variables() != width {
        let found = rows.num_variables();
        return Err(InformationError::Variables { expected: width, found });
    }
    let columns: Vec<Column> =
        (0..width).into_par_iter().map(|j| Column::new(rows, &variables[j], j, options)).collect();
    let arch = Arch::new();
    let num_tiles = width.div_ceil(TILE);
    let tiles: Vec<(usize, usize)> =
        (0..num_tiles).flat_map(|a| (a..num_tiles).map(move |b| (a, b))).collect();
    let entries: Vec<Vec<(usize, usize, f64)>> = tiles
        .into_par_iter()
        .map(|(a, b)| arch.dispatch(|| tile(&columns, a, b, options.smoothing)))
        .collect();
    let mut information = MutualInformation { size: width, values: vec![0.0; width * width] };
    for (i, j, value) in entries.into_iter().flatten() {
        information.set(i, j, value);
    }
    Ok(information)
}

/// A binned variable as bits: one plane for every bin but the last, then one for the rows with a
/// value.
struct Column {
    planes: Vec<Vec<u64>>,
    /// The number of bits in each plane.
    counts: Vec<u64>,
    is_complete: bool,
}

impl Column {
    fn new(rows: &Batch, variable: &Variable, j: usize, options: &InformationOptions) -> Self {
        let taken = rows.len().min(options.max_rows.max(1));
        // Even distances, even if they are not whole numbers.
        let row = |n: usize| (n as u128 * rows.len() as u128 / taken as u128) as usize;
        let column: Vec<f64> = (0..taken).map(|n| rows.value(row(n), j)).collect();
        let is_ordered = options.ordered.get(j).copied().unwrap_or(true);
        let (codes, bins) = discretize(&column, &variable.domain, is_ordered, options.max_bins);
        Self::pack(&codes, bins)
    }

    fn pack(codes: &[u16], bins: usize) -> Self {
        let mut planes = vec![vec![0_u64; codes.len().div_ceil(64)]; bins];
        let known = bins - 1;
        for (row, &code) in codes.iter().enumerate().filter(|(_, c)| **c != MISSING) {
            let bit = 1 << (row % 64);
            planes[known][row / 64] |= bit;
            if usize::from(code) != known {
                planes[usize::from(code)][row / 64] |= bit;
            }
        }
        let count = |plane: &Vec<u64>| plane.iter().map(|w| u64::from(w.count_ones())).sum();
        let counts: Vec<u64> = planes.iter().map(count).collect();
        let is_complete = counts[known] == codes.len() as u64;
        Self { planes, counts, is_complete }
    }

    fn bins(&self) -> usize {
        self.planes.len()
    }
}

/// The maximum number of bins for a variable with this many values.
fn num_bins(values: usize, max_bins: usize) -> usize {
    let largest = max_bins.clamp(2, usize::from(MISSING));
    ((values as f64 / ROWS_PER_CELL).sqrt() as usize).clamp(2, largest)
}

/// The bin of every value, and the number of bins.
fn discretize(
    column: &[f64],
    domain: &Domain,
    ordered: bool,
    max_bins: usize,
) -> (Vec<u16>, usize) {
    let mut sorted: Vec<f64> = column.iter().copied().filter(|x| !x.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let bins = num_bins(sorted.len(), max_bins);
    let code = |f: &dyn Fn(f64) -> usize| -> Vec<u16> {
        column.iter().map(|&x| if x.is_nan() { MISSING } else { f(x) as u16 }).collect()
    };
    if let Domain::Finite(v) = *domain
        && v <= bins
    {
        return (code(&|x| x as usize), v);
    }
    let runs: Vec<&[f64]> = sorted.chunk_by(|a, b| a == b).collect();
    if ordered || domain.num_values().is_none() {
        // A run of equal values belongs to the quantile of its middle. Empty quantiles are dropped.
        let mut starts = Vec::new();
        let (mut seen, mut last) = (0.0, usize::MAX);
        for run in &runs {
            let middle = (seen + 0.5 * run.len() as f64) / sorted.len() as f64;
            let quantile = (middle * bins as f64) as usize;
            seen += run.len() as f64;
            if quantile != last {
                starts.push(run[0]);
                last = quantile;
            }
        }
        let bin = |x: f64| starts.partition_point(|&s| s <= x).saturating_sub(1);
        return (code(&bin), starts.len().max(1));
    }
    let mut common: Vec<(usize, usize)> = runs.iter().map(|r| (r.len(), r[0] as usize)).collect();
    common.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let kept: Vec<usize> = common.iter().take(bins - 1).map(|c| c.1).collect();
    let bin = |x: f64| kept.iter().position(|&k| k == x as usize).unwrap_or(kept.len());
    (code(&bin), (kept.len() + 1).min(runs.len()).max(1))
}

/// All pairs of variables of two tiles.
#[expect(clippy::inline_always, reason = "to be compiled for the features that are dispatched to")]
#[inline(always)]
fn tile(columns: &[Column], a: usize, b: usize, smoothing: f64) -> Vec<(usize, usize, f64)> {
    let range = |t: usize| t * TILE..((t + 1) * TILE).min(columns.len());
    let mut entries = Vec::with_capacity(TILE * TILE);
    let mut counts = Vec::new();
    for i in range(a) {
        for j in range(b).filter(|&j| j >= i) {
            let value = if i == j {
                entropy(&columns[i], smoothing)
            } else {
                joint_counts(&columns[i], &columns[j], &mut counts);
                information(&mut counts, columns[j].bins(), smoothing)
            };
            entries.push((i, j, value));
        }
    }
    entries
}

/// The number of rows in each cell of two variables' bins, in row-major order.
#[expect(clippy::inline_always, reason = "to be compiled for the features that are dispatched to")]
#[inline(always)]
fn joint_counts(x: &Column, y: &Column, counts: &mut Vec<f64>) {
    let (rows, cols) = (x.bins(), y.bins());
    counts.clear();
    counts.resize(rows * cols, 0.0);
    for i in 0..rows {
        for j in 0..cols {
            // If the last plane has all rows, the count is known.
            let count = if j + 1 == cols && y.is_complete {
                x.counts[i]
            } else if i + 1 == rows && x.is_complete {
                y.counts[j]
            } else {
                common_bits(&x.planes[i], &y.planes[j])
            };
            counts[i * cols + j] = count as f64;
        }
    }
    // The last plane has all rows with a value, so subtract the other bins.
    for i in 0..rows {
        let others: f64 = counts[i * cols..(i + 1) * cols - 1].iter().sum();
        counts[(i + 1) * cols - 1] -= others;
    }
    for j in 0..cols {
        let others: f64 = (0..rows - 1).map(|i| counts[i * cols + j]).sum();
        counts[(rows - 1) * cols + j] -= others;
    }
}

#[expect(clippy::inline_always, reason = "to be compiled for the features that are dispatched to")]
#[inline(always)]
fn common_bits(x: &[u64], y: &[u64]) -> u64 {
    x.iter().zip(y).map(|(a, b)| u64::from((a & b).count_ones())).sum()
}

/// The mutual information of counts, which are smoothed in place.
fn information(counts: &mut [f64], cols: usize, smoothing: f64) -> f64 {
    let more = smoothing / counts.len() as f64;
    let total: f64 = counts.iter().sum::<f64>() + smoothing;
    if total <= 0.0 {
        return 0.0;
    }
    for n in counts.iter_mut() {
        *n = (*n + more) / total;
    }
    let mut below = vec![0.0; cols];
    for row in counts.chunks_exact(cols) {
        for (sum, p) in below.iter_mut().zip(row) {
            *sum += p;
        }
    }
    let mut sum = 0.0;
    for row in counts.chunks_exact(cols) {
        let row_sum: f64 = row.iter().sum();
        for (p, q) in row.iter().zip(&below).filter(|(p, _)| **p > 0.0) {
            sum += p * (p / (row_sum * q)).ln();
        }
    }
    // Only rounding makes it negative.
    sum.max(0.0)
}

fn entropy(x: &Column, smoothing: f64) -> f64 {
    let bins = x.bins();
    let known = x.counts[bins - 1];
    let last = known - x.counts[..bins - 1].iter().sum::<u64>();
    let total = known as f64 + smoothing;
    let term = |n: u64| {
        let p = (n as f64 + smoothing / bins as f64) / total;
        if p > 0.0 { -p * p.ln() } else { 0.0 }
    };
    x.counts[..bins - 1].iter().copied().chain([last]).map(term).sum()
}
