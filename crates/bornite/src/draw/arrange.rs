//! Assigns rows and columns to cells: aligned for shallow trees, along the spine for deep ones.

use super::cells::{Cell, CellTree};

/// The position of every cell, in rows and columns from the top left.
pub(super) struct Arrangement {
    pub(super) columns: Vec<usize>,
    pub(super) rows: Vec<f64>,
    pub(super) num_columns: usize,
    pub(super) num_rows: f64,
    /// Whether all inputs are in the first column, one per row.
    pub(super) is_aligned: bool,
}

impl Arrangement {
    /// Aligns a tree if its depth is at most three times the minimum.
    pub(super) fn new(cells: &CellTree) -> Self {
        let heights = cells.heights();
        let height = heights.iter().copied().max().unwrap_or(0);
        let num_variables = cells.0.last().map_or(1, |c| c.num_variables);
        let log = num_variables.ilog2() as usize;
        if height <= 3 * log + 3 { aligned(cells, heights, height) } else { spined(cells, height) }
    }
}

/// The gap between two subtrees, in rows per level of the lower one, and the gap if only one of them is an input.
const GAP: f64 = 0.25;
const LEAST_GAP: f64 = 0.1;
const MAX_GAP: f64 = 1.0;

fn aligned(cells: &CellTree, columns: Vec<usize>, height: usize) -> Arrangement {
    let input_rows = input_rows(cells, &columns);
    let mut rows: Vec<f64> = Vec::with_capacity(cells.0.len());
    let mut num_rows = 0.0_f64;
    for cell in &cells.0 {
        rows.push(match cell.inputs[..] {
            [first, .., last] => f64::midpoint(rows[first], rows[last]),
            [only] => rows[only],
            [] => input_rows[cell.start],
        });
        num_rows = num_rows.max(rows[rows.len() - 1] + 1.0);
    }
    Arrangement { columns, rows, num_columns: height + 1, num_rows, is_aligned: true }
}

/// One row per input, with more space where larger subtrees meet.
fn input_rows(cells: &CellTree, heights: &[usize]) -> Vec<f64> {
    let num_variables = cells.0.last().map_or(1, |c| c.num_variables);
    let mut steps = vec![1.0; num_variables];
    steps[0] = 0.0;
    for cell in &cells.0 {
        for pair in cell.inputs.windows(2) {
            let (above, below) = (heights[pair[0]], heights[pair[1]]);
            let least = if above.max(below) > 0 { LEAST_GAP } else { 0.0 };
            let gap = (GAP * above.min(below) as f64).clamp(least, MAX_GAP);
            steps[cells.0[pair[1]].start] += gap;
        }
    }
    let mut row = 0.0;
    for step in &mut steps {
        row += *step;
        *step = row;
    }
    steps
}

/// Places each cell one column before its consumer, subtrees as close together as they fit, and a cell in line with an
/// input that contains most of its variables.
fn spined(cells: &CellTree, height: usize) -> Arrangement {
    let mut contours: Vec<Option<Contour>> = Vec::with_capacity(cells.0.len());
    // For each cell, the offset of its inputs' rows, and its own row, relative to the origin of its contour.
    let mut shifts = vec![0.0; cells.0.len()];
    let mut own = vec![0.0; cells.0.len()];
    for cell in &cells.0 {
        let mut merged: Option<Contour> = None;
        for &input in &cell.inputs {
            let Some(next) = contours[input].take() else { unreachable!("received once") };
            match &mut merged {
                None => merged = Some(next),
                Some(above) => shifts[input] = above.append(next),
            }
        }
        let row = row_of(cells, cell, &shifts, &own);
        own[contours.len()] = row;
        let mut contour = merged.unwrap_or_default();
        contour.push(row);
        contours.push(Some(contour));
    }
    let depths = cells.depths();
    let mut origins = vec![0.0; cells.0.len()];
    let mut rows = vec![0.0; cells.0.len()];
    for (index, cell) in cells.0.iter().enumerate().rev() {
        rows[index] = origins[index] + own[index];
        for &input in &cell.inputs {
            origins[input] = origins[index] + shifts[input];
        }
    }
    let top = rows.iter().copied().fold(f64::INFINITY, f64::min);
    let bottom = rows.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Arrangement {
        columns: depths.iter().map(|d| height - d).collect(),
        rows: rows.iter().map(|r| r - top).collect(),
        num_columns: height + 1,
        num_rows: bottom - top + 1.0,
        is_aligned: false,
    }
}

fn row_of(cells: &CellTree, cell: &Cell, shifts: &[f64], own: &[f64]) -> f64 {
    let row = |i: usize| shifts[i] + own[i];
    let heaviest = cell.inputs.iter().copied().max_by_key(|&i| cells.0[i].num_variables);
    match (heaviest, &cell.inputs[..]) {
        (Some(heavy), _)
            if cell.num_variables > 2
                && 3 * cells.0[heavy].num_variables >= 2 * cell.num_variables =>
        {
            row(heavy)
        }
        (_, [first, .., last]) => f64::midpoint(row(*first), row(*last)),
        (Some(only), _) => row(only),
        (None, _) => 0.0,
    }
}

/// The first and last row of a subtree in each column, with its root's column last.
#[derive(Default)]
struct Contour {
    rows: Vec<(f64, f64)>,
    /// The offset to add to every row.
    shift: f64,
}

impl Contour {
    /// Adds the column of the subtree's new root.
    fn push(&mut self, row: f64) {
        self.rows.push((row - self.shift, row - self.shift));
    }

    /// Places another subtree below this one, and returns how far it moved. The cost is the smaller height.
    fn append(&mut self, mut below: Contour) -> f64 {
        let common = self.rows.len().min(below.rows.len());
        let last = |contour: &Contour, n: usize| {
            let (top, bottom) = contour.rows[contour.rows.len() - 1 - n];
            (top + contour.shift, bottom + contour.shift)
        };
        let moved = (0..common)
            .map(|n| last(self, n).1 + 1.0 - last(&below, n).0)
            .fold(f64::NEG_INFINITY, f64::max);
        below.shift += moved;
        let spans: Vec<(f64, f64)> =
            (0..common).map(|n| (last(self, n).0, last(&below, n).1)).collect();
        if below.rows.len() > self.rows.len() {
            *self = below;
        }
        let length = self.rows.len();
        for (n, (top, bottom)) in spans.into_iter().enumerate() {
            self.rows[length - 1 - n] = (top - self.shift, bottom - self.shift);
        }
        moved
    }
}
