//! Turns rows and columns into boxes: sizes by the number of variables, column widths, and folding into lines.

use super::arrange::Arrangement;
use super::cells::CellTree;
use super::text::{self, InputLabel};
use crate::circuit::{Circuit, Layer, LayerId};

/// The box of one layer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Place {
    /// The horizontal center.
    pub(super) x: f64,
    /// The vertical center.
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The line of a folded drawing.
    pub(super) line: usize,
}

impl Place {
    pub(super) fn left(&self) -> f64 {
        self.x - self.width / 2.0
    }

    pub(super) fn right(&self) -> f64 {
        self.x + self.width / 2.0
    }

    pub(super) fn top(&self) -> f64 {
        self.y - self.height / 2.0
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height / 2.0
    }
}

/// The level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Detail {
    /// Dots and lines.
    Dots,
    /// Small boxes with symbols and names.
    Compact,
    /// Large boxes with symbols, names, widths and weights.
    Full,
}

/// The sizes of everything, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) detail: Detail,
    /// The distance between rows.
    pub(super) row: f64,
    /// The side of a box.
    pub(super) side: f64,
    /// The gap between a product and the sum above it.
    pub(super) chain_gap: f64,
    /// The gap between columns.
    pub(super) column_gap: f64,
    pub(super) font: f64,
    /// The margin around the drawing.
    pub(super) margin: f64,
}

impl Scale {
    fn new(num_variables: usize) -> Self {
        let scale = |detail, row, side, chain_gap, column_gap, font| Self {
            detail,
            row,
            side,
            chain_gap,
            column_gap,
            font,
            margin: 28.0,
        };
        match num_variables {
            0..=12 => scale(Detail::Full, 74.0, 42.0, 30.0, 50.0, 14.0),
            13..=128 => scale(Detail::Compact, 22.0, 16.0, 2.0, 44.0, 11.0),
            129..=500 => scale(Detail::Compact, 13.0, 10.0, 1.0, 48.0, 9.0),
            _ => {
                // Limit the height to about 2800 pixels.
                let row = (2800.0 / num_variables as f64).clamp(0.25, 5.0);
                scale(Detail::Dots, row, (0.6 * row).max(0.4), 0.5, 90.0, 11.0)
            }
        }
    }

    /// The gap between an input and its name on the left, which outlines pass through.
    pub(super) fn label_gap(&self) -> f64 {
        if self.detail == Detail::Full { 24.0 } else { 10.0 }
    }
}

/// The side of the inputs' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LabelSide {
    Left,
    Below,
}

/// A box for every layer, and the size of the whole.
#[derive(Debug)]
pub(super) struct Layout {
    /// The box of every layer.
    pub(super) places: Vec<Place>,
    pub(super) scale: Scale,
    pub(super) label_side: LabelSide,
    /// The maximum width of a label, in units of the font size.
    pub(super) label_ems: f64,
    /// The height of one line of a folded drawing, including the gutter below it.
    pub(super) line_height: f64,
    pub(super) num_lines: usize,
    pub(super) width: f64,
    pub(super) height: f64,
}

const MAX_LABEL_EMS: f64 = 16.0;
const MAX_NAME_BELOW_EMS: f64 = 7.0;
/// The additional gap for each pixel that an edge climbs, and its maximum.
const CLIMB: f64 = 0.2;
const MAX_CLIMB: f64 = 110.0;
/// The space for an edge from one line of a folded drawing to the next.
const GUTTER: f64 = 26.0;

impl Layout {
    /// Places every layer; the origin is the top left of the drawing without its legend.
    pub(super) fn new(circuit: &Circuit, cells: &CellTree, labels: &[InputLabel]) -> Self {
        let arrangement = Arrangement::new(cells);
        let mut scale = Scale::new(circuit.num_variables());
        let label_side = if arrangement.is_aligned { LabelSide::Left } else { LabelSide::Below };
        if label_side == LabelSide::Below {
            scale.column_gap = if scale.detail == Detail::Dots { 2.0 } else { 14.0 };
            if scale.detail != Detail::Dots {
                scale.row = scale.side + 3.4 * scale.font;
            }
        }
        let label_ems = label_ems(labels, label_side, scale);
        let columns = Columns::new(circuit, cells, &arrangement, scale, label_side, label_ems);
        let fold = Fold::new(&columns, &arrangement, scale);
        let mut places = vec![Place::default(); circuit.num_layers()];
        for (index, cell) in cells.0.iter().enumerate() {
            let column = arrangement.columns[index];
            let line = fold.line_of[column];
            let mut x = columns.starts[column] - fold.offsets[line];
            let y = (arrangement.rows[index] + 0.5) * scale.row + line as f64 * fold.line_height;
            for &id in &cell.layers {
                let (width, height) = box_size(circuit, id, scale);
                places[id.index()] = Place { x: x + width / 2.0, y, width, height, line };
                x += width + scale.chain_gap;
            }
        }
        let (width, height) = fold.size(&columns, &arrangement, scale);
        Self {
            places,
            scale,
            label_side,
            label_ems,
            line_height: fold.line_height,
            num_lines: fold.offsets.len(),
            width,
            height,
        }
    }

    pub(super) fn place(&self, id: LayerId) -> &Place {
        &self.places[id.index()]
    }
}

fn box_size(circuit: &Circuit, id: LayerId, scale: Scale) -> (f64, f64) {
    let side = scale.side;
    // As in the paper's figure, the output is smaller: it has one entry where the others have K.
    let is_small = id == circuit.output() && circuit.width(id) == 1;
    match circuit.layer(id) {
        Layer::Sum { .. } if is_small && scale.detail == Detail::Full => (0.6 * side, 0.6 * side),
        Layer::Input { .. }
        | Layer::Hadamard { .. }
        | Layer::Kronecker { .. }
        | Layer::Sum { .. } => (side, side),
    }
}

fn label_ems(labels: &[InputLabel], side: LabelSide, scale: Scale) -> f64 {
    if scale.detail == Detail::Dots {
        return 0.0;
    }
    let widths = labels.iter().map(|l| match side {
        LabelSide::Left => text::ems(&l.line()).min(MAX_LABEL_EMS),
        LabelSide::Below => text::ems(&l.name).max(text::ems(&l.evidence)).min(MAX_NAME_BELOW_EMS),
    });
    widths.fold(0.0, f64::max)
}

/// The left edge of each column, and the right edge of the last.
struct Columns {
    starts: Vec<f64>,
    /// The space for labels on the left.
    before: f64,
}

impl Columns {
    fn new(
        circuit: &Circuit,
        cells: &CellTree,
        arrangement: &Arrangement,
        scale: Scale,
        label_side: LabelSide,
        label_ems: f64,
    ) -> Self {
        let mut widths = vec![0.0_f64; arrangement.num_columns];
        for (cell, &column) in cells.0.iter().zip(&arrangement.columns) {
            let boxes: f64 = cell.layers.iter().map(|&id| box_size(circuit, id, scale).0).sum();
            let width = boxes + (cell.layers.len() - 1) as f64 * scale.chain_gap;
            widths[column] = widths[column].max(width);
        }
        let label = label_ems * scale.font;
        let (before, least) = match label_side {
            LabelSide::Left => (scale.margin + label + scale.label_gap(), 0.0),
            LabelSide::Below => (scale.margin + label / 2.0, label),
        };
        let gaps = gaps(cells, arrangement, scale);
        let mut starts = vec![before];
        for (width, gap) in widths.into_iter().zip(gaps) {
            let start = starts[starts.len() - 1];
            starts.push(start + (width + gap).max(least + 6.0));
        }
        Self { starts, before }
    }

    fn end(&self) -> f64 {
        self.starts[self.starts.len() - 1]
    }
}

/// The gap after each column: wider where edges climb far, so that they stay smooth.
fn gaps(cells: &CellTree, arrangement: &Arrangement, scale: Scale) -> Vec<f64> {
    let mut gaps = vec![scale.column_gap; arrangement.num_columns];
    if arrangement.is_aligned && scale.detail != Detail::Dots {
        for (index, cell) in cells.0.iter().enumerate() {
            for &input in &cell.inputs {
                let climb = (arrangement.rows[index] - arrangement.rows[input]).abs() * scale.row;
                let gap = &mut gaps[arrangement.columns[index] - 1];
                *gap = gap.max(scale.column_gap + (CLIMB * climb - 10.0).clamp(0.0, MAX_CLIMB));
            }
        }
    }
    gaps
}

/// How a long and flat drawing is folded into lines of equal length.
struct Fold {
    line_of: Vec<usize>,
    /// For each line, the offset that is subtracted from its columns' positions.
    offsets: Vec<f64>,
    line_height: f64,
}

impl Fold {
    fn new(columns: &Columns, arrangement: &Arrangement, scale: Scale) -> Self {
        let count = arrangement.num_columns;
        let line_height = arrangement.num_rows * scale.row + GUTTER;
        // This number of lines makes the drawing about twice as wide as high.
        let lines = (columns.end() / (2.0 * line_height)).sqrt().round().max(1.0) as usize;
        let is_flat = !arrangement.is_aligned && lines > 1;
        let a_line = if is_flat { count.div_ceil(lines) } else { count };
        let line_of: Vec<usize> = (0..count).map(|c| c / a_line).collect();
        let offsets =
            (0..count).step_by(a_line).map(|c| columns.starts[c] - columns.before).collect();
        Self { line_of, offsets, line_height }
    }

    fn size(&self, columns: &Columns, arrangement: &Arrangement, scale: Scale) -> (f64, f64) {
        let mut width = 0.0_f64;
        for (column, &line) in self.line_of.iter().enumerate() {
            width = width.max(columns.starts[column + 1] - self.offsets[line]);
        }
        let lines = (self.offsets.len() - 1) as f64;
        let height = arrangement.num_rows * scale.row + lines * self.line_height;
        (width - scale.column_gap + scale.margin, height)
    }
}
