//! Which rows of a block have which kind of message at which step.
//!
//! That is known from the evidence alone, before any arithmetic. Rows that take the same from a step's inputs go through it
//! side by side, in tiles; rows that have a value everywhere are all pure at every step, in one order.

use crate::algebra::Kind;
use crate::program::{Program, StepKind};

/// Rows, at most as many as there are lanes, that go through a step together.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(crate) rows: Vec<u32>,
    /// What they take from the two inputs; both are the same at leaves and sums.
    pub(crate) kinds: [Kind; 2],
    /// Its number among the tiles of its own kind.
    pub(crate) index: usize,
}

impl Tile {
    /// Whether it holds vectors, or else matrices.
    pub(crate) fn is_pure(&self) -> bool {
        self.kinds == [Kind::Pure; 2]
    }
}

/// Where the messages of one step lie.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// For each row its kind, and its place among the lanes of all tiles of that kind.
    rows: Vec<(Kind, u32)>,
    pub(crate) tiles: Vec<Tile>,
    /// Tiles of vectors, and of matrices.
    pub(crate) counts: [usize; 2],
    lanes: usize,
}

impl Places {
    /// Rows of which nothing is known.
    fn new(rows: usize, lanes: usize) -> Self {
        let rows = vec![(Kind::Identity, 0); rows];
        Self { rows, tiles: Vec::new(), counts: [0, 0], lanes }
    }

    pub(crate) fn kind(&self, row: u32) -> Kind {
        self.rows[row as usize].0
    }

    /// The tile and lane of a row.
    pub(crate) fn place(&self, row: u32) -> (usize, usize) {
        let place = self.rows[row as usize].1 as usize;
        (place / self.lanes, place % self.lanes)
    }

    /// The tile in which rows of one kind lie already, in order, if they do.
    pub(crate) fn tile_of(&self, kind: Kind, rows: &[u32]) -> Option<usize> {
        let (_, first) = self.rows[rows[0] as usize];
        let (tile, lane) = (first as usize / self.lanes, first as usize % self.lanes);
        let is_next = |(&row, n): (&u32, u32)| self.rows[row as usize] == (kind, first + n);
        (lane == 0 && rows.iter().zip(0..).all(is_next)).then_some(tile)
    }

    /// Adds tiles for rows that take the same from the inputs.
    fn push(&mut self, kinds: [Kind; 2], rows: &[u32]) {
        let kind = kinds[0].times(kinds[1]);
        let count = &mut self.counts[usize::from(kind != Kind::Pure)];
        for rows in rows.chunks(self.lanes) {
            for (lane, &row) in rows.iter().enumerate() {
                self.rows[row as usize] = (kind, (*count * self.lanes + lane) as u32);
            }
            self.tiles.push(Tile { rows: rows.to_vec(), kinds, index: *count });
            *count += 1;
        }
    }
}

/// The places of all steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    /// One for every step, or one for all of them.
    places: Vec<Places>,
    is_complete: bool,
}

impl Schedule {
    /// For so many rows that have a value everywhere.
    pub(crate) fn complete(rows: usize, lanes: usize) -> Self {
        let mut places = Places::new(rows, lanes);
        let rows: Vec<u32> = (0..rows as u32).collect();
        places.push([Kind::Pure; 2], &rows);
        Self { places: vec![places], is_complete: true }
    }

    /// For so many rows, where `cell` is the kind of a row's cell of a variable. Identities are taken as matrices unless
    /// `orthonormal`.
    pub(crate) fn new(
        program: &Program,
        rows: usize,
        cell: impl Fn(usize, usize) -> Kind,
        orthonormal: bool,
        lanes: usize,
    ) -> Self {
        let mut all: Vec<Places> = Vec::with_capacity(program.steps().len());
        for step in program.steps() {
            let kind = |step: usize, row: usize| all[step].rows[row].0;
            // The rows by the kinds of their messages from the inputs.
            let mut groups: [[Vec<u32>; 3]; 3] = Default::default();
            for row in 0..rows {
                let kinds = match &step.kind {
                    StepKind::Leaf { variable, .. } => [cell(row, *variable); 2],
                    StepKind::Sum { input, .. } => [kind(*input, row); 2],
                    StepKind::Kronecker { inputs, .. } => inputs.map(|input| kind(input, row)),
                    // Inputs of different kinds are made matrices first.
                    StepKind::Hadamard { inputs: [a, b] } => {
                        [kind(*a, row).times(kind(*b, row)); 2]
                    }
                };
                groups[kinds[0] as usize][kinds[1] as usize].push(row as u32);
            }
            groups[Kind::Identity as usize][Kind::Identity as usize].clear();
            share_tiles(&mut groups, orthonormal, lanes);
            let mut places = Places::new(rows, lanes);
            for (first, groups) in Kind::ALL.into_iter().zip(&groups) {
                for (second, rows) in Kind::ALL.into_iter().zip(groups) {
                    places.push([first, second], rows);
                }
            }
            all.push(places);
        }
        Self { places: all, is_complete: false }
    }

    /// Whether all rows are pure everywhere, in one order.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The places of one step.
    pub(crate) fn at(&self, step: usize) -> &Places {
        &self.places[if self.is_complete { 0 } else { step }]
    }
}

/// Makes identities matrices where rows then fit into fewer tiles, or where they are none.
fn share_tiles(groups: &mut [[Vec<u32>; 3]; 3], orthonormal: bool, lanes: usize) {
    let [identity, pure, mixed] = Kind::ALL.map(|kind| kind as usize);
    for ([a, b], [to_a, to_b]) in [
        ([pure, identity], [pure, mixed]),
        ([identity, pure], [mixed, pure]),
        ([identity, mixed], [mixed, mixed]),
        ([mixed, identity], [mixed, mixed]),
    ] {
        let (few, many) = (groups[a][b].len(), groups[to_a][to_b].len());
        let apart = few.div_ceil(lanes) + many.div_ceil(lanes);
        if !orthonormal || (few + many).div_ceil(lanes) < apart {
            let moved = std::mem::take(&mut groups[a][b]);
            groups[to_a][to_b].extend(moved);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::circuit::Weights;
    use crate::structure::{RegionTree, Structure};
    use crate::{Basis, Domain, Variable};

    /// Every row has at every step the kind that the kinds of its cells make, in exactly one lane.
    #[test]
    fn every_row_has_one_place_of_its_kind_at_every_step() {
        let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(3)), Basis::indicator(3));
        let structure = Structure::new(RegionTree::balanced(6), leaf).width(2);
        let circuit = structure.build(Weights::Haar, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        let program = Program::new(&circuit);
        let cell = |row: usize, variable: usize| Kind::ALL[(row * (variable + 1) + row / 7) % 3];
        let schedule = Schedule::new(&program, 50, cell, true, 8);
        for (index, step) in program.steps().iter().enumerate() {
            let places = schedule.at(index);
            let mut seen = [0; 50];
            for tile in &places.tiles {
                for (lane, &row) in tile.rows.iter().enumerate() {
                    assert_eq!(places.place(row), (tile.index, lane));
                    assert_eq!(places.kind(row) == Kind::Pure, tile.is_pure());
                    seen[row as usize] += 1;
                }
            }
            for row in 0..50 {
                // The leaves of a balanced tree stand in the order of its variables.
                let expected =
                    step.leaves.clone().map(|v| cell(row, v)).reduce(Kind::times).unwrap();
                assert_eq!(places.kind(row as u32), expected, "step {index}, row {row}");
                assert_eq!(seen[row] == 1, expected != Kind::Identity);
            }
        }
        let complete = Schedule::complete(50, 8);
        let all_pure = Schedule::new(&program, 50, |_, _| Kind::Pure, true, 8);
        for index in 0..program.steps().len() {
            assert_eq!(complete.at(index).rows, all_pure.at(index).rows);
        }
    }
}
