//! Which rows of a block have which kind of message at each step.
//!
//! This depends only on the evidence, so it is known before any arithmetic. Rows whose inputs have
//! the same kinds of messages go through a step together, side by side in tiles. Rows in which
//! every variable has a value are pure at every step and keep their order. A traversal, which
//! assigns values to rows as it goes, schedules each step when it reaches it.

use std::ops::Range;
use std::sync::Arc;

use crate::algebra::Kind;
use crate::program::{Program, Step, StepKind};

/// Rows that go through a step together; at most one per lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile<'a> {
    pub(crate) rows: &'a [u32],
    /// The kinds of messages that they take from the two inputs. Both are the same at leaves and
    /// sums.
    pub(crate) kinds: [Kind; 2],
    /// The position among the tiles of the same kind.
    pub(crate) index: usize,
}

impl Tile<'_> {
    /// Whether the tile holds vectors, as opposed to matrices.
    pub(crate) fn is_pure(&self) -> bool {
        self.kinds == [Kind::Pure; 2]
    }

    /// The kind of message that the tile holds.
    pub(crate) fn kind(&self) -> Kind {
        if self.is_pure() { Kind::Pure } else { Kind::Mixed }
    }
}

/// Where the messages of each row lie at one step.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// For each row, its kind, and its position among the lanes of all tiles of that kind.
    rows: Vec<(Kind, u32)>,
    /// The kind of all rows if all take the same kinds of messages, and so are in order.
    uniform: Option<Kind>,
    groups: Vec<Group>,
    /// The rows of all groups, one group after another.
    order: Vec<u32>,
    /// The number of tiles of vectors, and of matrices.
    pub(crate) counts: [usize; 2],
    lanes: usize,
}

/// Rows that take the same kinds of messages from the inputs.
#[derive(Debug)]
struct Group {
    kinds: [Kind; 2],
    /// The range of these rows in `order`.
    range: Range<usize>,
    first_tile: usize,
}

impl Places {
    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The kind of message of a row.
    pub(crate) fn kind(&self, row: u32) -> Kind {
        self.rows[row as usize].0
    }

    /// The tile and the lane of a row.
    pub(crate) fn place(&self, row: u32) -> (usize, usize) {
        let place = self.rows[row as usize].1 as usize;
        (place / self.lanes, place % self.lanes)
    }

    /// All tiles. Rows with identities are in none of them.
    pub(crate) fn tiles(&self) -> impl Iterator<Item = Tile<'_>> {
        self.groups.iter().flat_map(|group| {
            let chunks = self.order[group.range.clone()].chunks(self.lanes);
            let tile = |(rows, index)| Tile { rows, kinds: group.kinds, index };
            chunks.zip(group.first_tile..).map(tile)
        })
    }

    /// The kinds of messages from the inputs, with the rows that take them. Rows with identities
    /// are in no group.
    #[cfg(feature = "cuda")]
    pub(crate) fn groups(&self) -> impl Iterator<Item = ([Kind; 2], &[u32])> {
        self.groups.iter().map(|group| (group.kinds, &self.order[group.range.clone()]))
    }

    /// The tile that already holds exactly these rows, all of this kind and in this order, if there
    /// is one.
    pub(crate) fn tile_of(&self, kind: Kind, rows: &[u32]) -> Option<usize> {
        let (_, first) = self.rows[rows[0] as usize];
        let (tile, lane) = (first as usize / self.lanes, first as usize % self.lanes);
        let is_next = |(&row, n): (&u32, u32)| self.rows[row as usize] == (kind, first + n);
        (lane == 0 && rows.iter().zip(0..).all(is_next)).then_some(tile)
    }
}

/// Which rows may share the tiles of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Grouping {
    /// Rows that take the same kinds of messages. Then the bits of a row do not depend on other
    /// rows.
    ByKind,
    /// Rows that take the same kinds of messages if identities are treated as matrices. This is
    /// done if it saves tiles, or if the circuit is not orthonormal, because then unobserved
    /// variables do not give identities. Elementwise products of different kinds multiply matrices.
    Shared { orthonormal: bool },
}

/// The pairs of kinds, numbered, followed by a pair of identities whose product is a matrix.
const NUM_PAIRS: usize = 10;
const IDENTITIES_TO_MATRIX: usize = NUM_PAIRS - 1;

fn pair(kinds: [Kind; 2]) -> usize {
    kinds[0] as usize * 3 + kinds[1] as usize
}

fn kinds_of(pair: usize) -> [Kind; 2] {
    if pair == IDENTITIES_TO_MATRIX {
        [Kind::Identity; 2]
    } else {
        [pair / 3, pair % 3].map(|n| Kind::ALL[n])
    }
}

/// Assigns the rows of a block to tiles, step by step.
#[derive(Debug)]
pub(crate) struct Planner {
    grouping: Grouping,
    lanes: usize,
    len: usize,
    /// The result if all rows have the same pair, by that pair.
    uniform: [Option<Arc<Places>>; NUM_PAIRS],
    /// The pair of each row.
    pairs: Vec<u8>,
}

impl Planner {
    pub(crate) fn new(grouping: Grouping, lanes: usize) -> Self {
        Self { grouping, lanes, len: 0, uniform: Default::default(), pairs: Vec::new() }
    }

    /// Starts a block of `len` rows.
    pub(crate) fn begin(&mut self, len: usize) {
        if len != self.len {
            self.uniform = Default::default();
        }
        self.len = len;
    }

    /// The places of rows that all have one kind.
    pub(crate) fn uniform(&mut self, kind: Kind) -> Arc<Places> {
        self.uniform_pair(pair([kind; 2]))
    }

    /// The places at a leaf, given the kind of each row.
    pub(crate) fn leaf(&mut self, kind: impl Fn(usize) -> Kind) -> Arc<Places> {
        self.plan(|row| pair([kind(row); 2]))
    }

    /// The places of the message of a step that is not a leaf, given those of its inputs.
    pub(crate) fn up<'a>(
        &mut self,
        step: &Step,
        input: impl Fn(usize) -> &'a Places,
    ) -> Arc<Places> {
        let (Some(&a), Some(&b)) = (step.inputs().first(), step.inputs().last()) else {
            unreachable!("only leaves have no inputs")
        };
        let is_elementwise = matches!(step.kind, StepKind::Hadamard { .. });
        let as_matrices = is_elementwise && matches!(self.grouping, Grouping::Shared { .. });
        self.join([input(a), input(b)], None, |kinds| {
            pair(if as_matrices { [kinds[0].times(kinds[1]); 2] } else { kinds })
        })
    }

    /// The places of the environment of one input of a step, given those of the step's environment
    /// and of the other input's message, if there is one. Rows that are not wanted become
    /// identities.
    pub(crate) fn down(
        &mut self,
        step: &Step,
        environment: &Places,
        other: Option<&Places>,
        wanted: Option<&[bool]>,
    ) -> Arc<Places> {
        // A weight that is semi-unitary on the way up is not semi-unitary on the way down.
        let loses_identity = !matches!(step.kind, StepKind::Hadamard { .. });
        self.join([environment, other.unwrap_or(environment)], wanted, |kinds| {
            if loses_identity && kinds == [Kind::Identity; 2] {
                IDENTITIES_TO_MATRIX
            } else {
                pair(kinds)
            }
        })
    }

    fn join(
        &mut self,
        [a, b]: [&Places; 2],
        wanted: Option<&[bool]>,
        pair_of: impl Fn([Kind; 2]) -> usize,
    ) -> Arc<Places> {
        if let (Some(a), Some(b), None) = (a.uniform, b.uniform, wanted) {
            return self.uniform_pair(pair_of([a, b]));
        }
        let nothing = pair([Kind::Identity; 2]);
        self.plan(|row| {
            let is_wanted = wanted.is_none_or(|wanted| wanted[row]);
            if is_wanted { pair_of([a.rows[row].0, b.rows[row].0]) } else { nothing }
        })
    }

    fn plan(&mut self, pair_of: impl Fn(usize) -> usize) -> Arc<Places> {
        let mut counts = [0; NUM_PAIRS];
        self.pairs.clear();
        for row in 0..self.len {
            let pair = pair_of(row);
            counts[pair] += 1;
            self.pairs.push(pair as u8);
        }
        match counts.iter().position(|&count| count == self.len) {
            Some(pair) => self.uniform_pair(pair),
            None => Arc::new(self.places(&counts)),
        }
    }

    fn uniform_pair(&mut self, pair: usize) -> Arc<Places> {
        if let Some(places) = &self.uniform[pair] {
            return places.clone();
        }
        let mut counts = [0; NUM_PAIRS];
        counts[pair] = self.len;
        self.pairs.clear();
        self.pairs.resize(self.len, pair as u8);
        let mut places = self.places(&counts);
        let tile = places.tiles().next();
        places.uniform = Some(tile.map_or(Kind::Identity, |tile| tile.kind()));
        self.uniform[pair].insert(Arc::new(places)).clone()
    }

    /// The places of the rows in `pairs`, given how many rows have each pair.
    fn places(&self, counts: &[usize; NUM_PAIRS]) -> Places {
        let targets = self.targets(counts);
        let mut places = Places {
            rows: vec![(Kind::Identity, 0); self.len],
            uniform: None,
            groups: Vec::new(),
            order: vec![0; self.len - counts[0]],
            counts: [0, 0],
            lanes: self.lanes,
        };
        // The position in `order` of the next row of each pair. A group's own pair comes before
        // those that join it.
        let mut next = [0; NUM_PAIRS];
        let mut end = 0;
        for target in 1..NUM_PAIRS {
            let start = end;
            let others = (1..NUM_PAIRS).filter(|&pair| pair != target);
            for pair in std::iter::once(target).chain(others) {
                if targets[pair] == target {
                    next[pair] = end;
                    end += counts[pair];
                }
            }
            if start < end {
                let (kinds, rows) = (kinds_of(target), end - start);
                let count = &mut places.counts[usize::from(kinds != [Kind::Pure; 2])];
                places.groups.push(Group { kinds, range: start..end, first_tile: *count });
                *count += rows.div_ceil(self.lanes);
            }
        }
        for (row, &pair) in self.pairs.iter().enumerate().filter(|(_, pair)| **pair > 0) {
            let next = &mut next[usize::from(pair)];
            places.order[*next] = row as u32;
            *next += 1;
        }
        for Group { kinds, range, first_tile } in &places.groups {
            let kind = if *kinds == [Kind::Pure; 2] { Kind::Pure } else { Kind::Mixed };
            for (&row, place) in places.order[range.clone()].iter().zip(first_tile * self.lanes..) {
                places.rows[row as usize] = (kind, place as u32);
            }
        }
        places
    }

    /// For each pair, the pair whose tiles its rows join.
    fn targets(&self, counts: &[usize; NUM_PAIRS]) -> [usize; NUM_PAIRS] {
        use Kind::{Identity, Mixed, Pure};
        let mut targets = std::array::from_fn(|pair| pair);
        let Grouping::Shared { orthonormal } = self.grouping else { return targets };
        let mut counts = *counts;
        for (from, to) in [
            ([Pure, Identity], [Pure, Mixed]),
            ([Identity, Pure], [Mixed, Pure]),
            ([Identity, Mixed], [Mixed, Mixed]),
            ([Mixed, Identity], [Mixed, Mixed]),
        ] {
            let (from, to) = (pair(from), pair(to));
            let [few, many] = [from, to].map(|pair| counts[pair].div_ceil(self.lanes));
            let together = (counts[from] + counts[to]).div_ceil(self.lanes);
            if !orthonormal || together < few + many {
                targets[from] = to;
                counts[to] += counts[from];
            }
        }
        targets
    }
}

/// The places of a block at all steps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    /// One entry per step, or a single one for all steps.
    places: Vec<Arc<Places>>,
    is_complete: bool,
}

impl Schedule {
    /// The schedule of rows in which every variable has a value.
    pub(crate) fn complete(planner: &mut Planner) -> Self {
        Self { places: vec![planner.uniform(Kind::Pure)], is_complete: true }
    }

    /// The schedule of rows whose evidence about each variable has the kind `cell(row, variable)`.
    pub(crate) fn new(
        program: &Program,
        planner: &mut Planner,
        cell: impl Fn(usize, usize) -> Kind,
    ) -> Self {
        let mut places: Vec<Arc<Places>> = Vec::with_capacity(program.steps().len());
        for step in program.steps() {
            places.push(match &step.kind {
                StepKind::Leaf { variable, .. } => planner.leaf(|row| cell(row, *variable)),
                StepKind::Kronecker { .. } | StepKind::Hadamard { .. } | StepKind::Sum { .. } => {
                    planner.up(step, |input| &places[input])
                }
            });
        }
        Self { places, is_complete: false }
    }

    /// Whether every row is pure at every step.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The places at a step.
    pub(crate) fn at(&self, step: usize) -> &Arc<Places> {
        &self.places[if self.is_complete { 0 } else { step }]
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

    /// At every step, each row has the kind that follows from its evidence, and exactly one lane.
    #[test]
    fn every_row_has_one_place_of_its_kind_at_every_step() {
        let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(3)), Basis::indicator(3));
        let structure = Structure::new(RegionTree::balanced(6), leaf).width(2);
        let circuit = structure.build(Weights::Haar, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        let program = Program::new(&circuit);
        let cell = |row: usize, variable: usize| Kind::ALL[(row * (variable + 1) + row / 7) % 3];
        for grouping in [Grouping::ByKind, Grouping::Shared { orthonormal: true }] {
            let mut planner = Planner::new(grouping, 8);
            planner.begin(50);
            let schedule = Schedule::new(&program, &mut planner, cell);
            for (index, step) in program.steps().iter().enumerate() {
                let places = schedule.at(index);
                let mut seen = [0; 50];
                for tile in places.tiles() {
                    assert_eq!(places.tile_of(tile.kind(), tile.rows), Some(tile.index));
                    for (lane, &row) in tile.rows.iter().enumerate() {
                        assert_eq!(places.place(row), (tile.index, lane));
                        assert_eq!(places.kind(row), tile.kind());
                        seen[row as usize] += 1;
                        if let (Grouping::ByKind, [a, b]) = (grouping, step.inputs()) {
                            let kinds = [*a, *b].map(|input| schedule.at(input).kind(row));
                            assert_eq!(tile.kinds, kinds);
                        }
                    }
                }
                for row in 0..50 {
                    // The leaves of a balanced tree are in the order of its variables.
                    let expected =
                        step.leaves.clone().map(|v| cell(row, v)).reduce(Kind::times).unwrap();
                    assert_eq!(places.kind(row as u32), expected, "step {index}, row {row}");
                    assert_eq!(seen[row] == 1, expected != Kind::Identity);
                }
            }
        }
        let mut planner = Planner::new(Grouping::ByKind, 8);
        planner.begin(50);
        let complete = Schedule::complete(&mut planner);
        let all_pure = Schedule::new(&program, &mut planner, |_, _| Kind::Pure);
        for index in 0..program.steps().len() {
            assert_eq!(complete.at(index).rows, all_pure.at(index).rows);
        }
    }
}
