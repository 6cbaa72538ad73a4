//! Where the messages of a block of rows with holes lie: rows of one kind side by side, in tiles.

use crate::algebra::Kind;
use crate::engine::Batch;
use crate::program::{Program, StepKind};

/// Batch, at most as many as there are lanes, that go through a step together.
#[derive(Clone, Debug)]
pub(super) struct Tile {
    pub(super) rows: Vec<u32>,
    /// What they take from the inputs; of leaves and of steps with one input both say what they are.
    pub(super) kinds: [Kind; 2],
    /// The tile among those of its own kind: pure of pure inputs, else mixed.
    pub(super) index: usize,
}

impl Tile {
    /// Whether it holds vectors.
    pub(super) fn is_pure(&self) -> bool {
        self.kinds == [Kind::Pure; 2]
    }
}

/// The messages of one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// For each row its kind, and its place among the lanes of all tiles of that kind.
    pub(super) rows: Vec<(Kind, u32)>,
    pub(super) tiles: Vec<Tile>,
    /// Tiles of vectors, and of matrices.
    pub(super) counts: [usize; 2],
}

impl Places {
    pub(super) fn kind(&self, row: u32) -> Kind {
        self.rows[row as usize].0
    }

    /// The tile and lane of a row.
    pub(super) fn place(&self, row: u32, lanes: usize) -> (usize, usize) {
        let place = self.rows[row as usize].1 as usize;
        (place / lanes, place % lanes)
    }

    fn new(rows: usize) -> Self {
        Self { rows: vec![(Kind::Identity, 0); rows], ..Self::default() }
    }

    /// Adds tiles for rows that take the same from the inputs.
    fn push(&mut self, kinds: [Kind; 2], rows: &[u32], lanes: usize) {
        let is_pure = kinds == [Kind::Pure; 2];
        let kind = kinds[0].times(kinds[1]);
        for rows in rows.chunks(lanes) {
            let count = &mut self.counts[usize::from(!is_pure)];
            for (lane, &row) in rows.iter().enumerate() {
                self.rows[row as usize] = (kind, (*count * lanes + lane) as u32);
            }
            self.tiles.push(Tile { rows: rows.to_vec(), kinds, index: *count });
            *count += 1;
        }
    }
}

/// The places of all steps for the rows named. Unknown messages are identities where `orthonormal`.
pub(super) fn layout(
    program: &Program,
    rows: &Batch,
    indices: &[usize],
    orthonormal: bool,
    lanes: usize,
) -> Vec<Places> {
    let mut all: Vec<Places> = Vec::with_capacity(program.steps().len());
    for step in program.steps() {
        let kind_of = |step: usize, row: usize| all[step].rows[row].0;
        let mut places = Places::new(indices.len());
        // The rows by the kinds of their messages from the inputs.
        let mut groups: [[Vec<u32>; 3]; 3] = Default::default();
        for row in 0..indices.len() {
            let kinds = match &step.kind {
                StepKind::Leaf { variable, .. } => [rows.kind(indices[row], *variable); 2],
                StepKind::Sum { input, .. } => [kind_of(*input, row); 2],
                StepKind::Kronecker { inputs, .. } => inputs.map(|input| kind_of(input, row)),
                StepKind::Hadamard { inputs: [a, b] } => {
                    // Inputs of different kinds are made matrices first.
                    [kind_of(*a, row).times(kind_of(*b, row)); 2]
                }
            };
            groups[kinds[0] as usize][kinds[1] as usize].push(row as u32);
        }
        groups[0][0].clear();
        share_tiles(&mut groups, orthonormal, lanes);
        for (first, groups) in Kind::ALL.into_iter().zip(&groups) {
            for (second, rows) in Kind::ALL.into_iter().zip(groups) {
                places.push([first, second], rows, lanes);
            }
        }
        all.push(places);
    }
    all
}

/// Makes identities matrices where rows then fit into fewer tiles, or where they are none.
fn share_tiles(groups: &mut [[Vec<u32>; 3]; 3], orthonormal: bool, lanes: usize) {
    let matrix = Kind::Mixed as usize;
    let places = [(1, 0, 1, matrix), (0, 1, matrix, 1), (0, 2, matrix, 2), (2, 0, 2, matrix)];
    for (a, b, to_a, to_b) in places {
        let (few, many) = (groups[a][b].len(), groups[to_a][to_b].len());
        let apart = few.div_ceil(lanes) + many.div_ceil(lanes);
        if !orthonormal || (few + many).div_ceil(lanes) < apart {
            let moved = std::mem::take(&mut groups[a][b]);
            groups[to_a][to_b].extend(moved);
        }
    }
}
