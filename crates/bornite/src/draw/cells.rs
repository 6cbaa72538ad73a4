//! The cells of a drawing: an input or product layer together with the sums directly above it.

use crate::circuit::{Circuit, Layer, LayerId};

/// One cell.
pub(crate) struct Cell {
    /// An input or product layer, then the sums above it.
    pub(crate) layers: Vec<LayerId>,
    /// The cells that feed the first layer.
    pub(crate) inputs: Vec<usize>,
    /// The number of input layers in or below the cell.
    pub(crate) num_variables: usize,
    /// The position of its first variable in the variable order.
    pub(crate) start: usize,
}

/// All cells of a circuit, inputs before their consumers.
pub(crate) struct CellTree(pub(super) Vec<Cell>);

impl CellTree {
    pub(crate) fn new(circuit: &Circuit) -> Self {
        let mut cells: Vec<Cell> = Vec::new();
        let mut cell_of: Vec<usize> = Vec::with_capacity(circuit.num_layers());
        for id in circuit.layer_ids() {
            let layer = circuit.layer(id);
            if let Layer::Sum { input, .. } = layer {
                let cell = cell_of[input.index()];
                cells[cell].layers.push(id);
                cell_of.push(cell);
                continue;
            }
            let (start, end) = circuit.span(id);
            let inputs = layer.inputs().iter().map(|i| cell_of[i.index()]).collect();
            cells.push(Cell { layers: vec![id], inputs, num_variables: end - start, start });
            cell_of.push(cells.len() - 1);
        }
        Self(cells)
    }

    /// The cells, the one with the output last.
    pub(crate) fn list(&self) -> &[Cell] {
        &self.0
    }

    /// The number of cells on the longest path from an input to each cell, excluding the cell itself.
    pub(super) fn heights(&self) -> Vec<usize> {
        let mut heights: Vec<usize> = Vec::with_capacity(self.0.len());
        for cell in &self.0 {
            let height = cell.inputs.iter().map(|&i| heights[i] + 1).max().unwrap_or(0);
            heights.push(height);
        }
        heights
    }

    /// The number of cells between each cell and the output.
    pub(crate) fn depths(&self) -> Vec<usize> {
        let mut depths = vec![0; self.0.len()];
        for (index, cell) in self.0.iter().enumerate().rev() {
            for &input in &cell.inputs {
                depths[input] = depths[index] + 1;
            }
        }
        depths
    }
}
