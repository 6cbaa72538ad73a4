//! How the rows of a table that is larger than memory are divided, and in which order they are used.

use std::ops::Range;

use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// The number of pieces in memory at a time. There are several, so that neighboring rows of a table
/// are not always in the same batches.
const LOADED_PIECES: usize = 64;
/// The minimum number of rows of one shard in a step, on average: a block of the passes.
const CHUNK_ROWS: usize = 64;

/// A table in shards of consecutive rows, which consist of pieces.
///
/// An epoch goes through all pieces in random order, in rounds with the same number of pieces from
/// every shard, and through the rows of a round in random order. The rows of a step from one shard
/// are a *chunk*. All of this depends only on the table and the settings, and not on who holds which
/// shard: see [`workers`](super::workers).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Layout {
    /// The number of rows of the table.
    rows: u64,
    /// The positions of held-out rows, in increasing order.
    held: Vec<u64>,
    /// The number of rows of a piece, including held-out rows.
    piece: u64,
    /// The number of shards, a power of two.
    shards: usize,
    /// The weight for which a row is repeated once, if rows have weights.
    unit: Option<f64>,
    /// The number of training rows of each piece with their repetitions, once they are known. Empty without weights.
    counts: Vec<usize>,
}

impl Layout {
    /// The layout of this many rows, given the positions of held-out rows, the approximate number of
    /// rows in memory at a time, and the number of rows per step.
    pub(crate) fn new(rows: u64, held: Vec<u64>, loaded: usize, batch: usize) -> Self {
        let most = (batch / CHUNK_ROWS).clamp(1, LOADED_PIECES);
        let piece = loaded.div_ceil(LOADED_PIECES).max(1) as u64;
        Self { rows, held, piece, shards: 1 << most.ilog2(), unit: None, counts: Vec::new() }
    }

    /// Repeats rows in proportion to their weights, once for every `unit`.
    #[must_use]
    pub(crate) fn with_weights(self, unit: f64) -> Self {
        Self { unit: Some(unit), ..self }
    }

    /// Whether rows have weights.
    pub(crate) fn has_weights(&self) -> bool {
        self.unit.is_some()
    }

    /// Sets the number of training rows of each piece, with their repetitions.
    pub(crate) fn set_counts(&mut self, counts: Vec<usize>) {
        debug_assert!(self.has_weights() && counts.len() == self.len());
        self.counts = counts;
    }

    /// The number of pieces.
    pub(crate) fn len(&self) -> usize {
        self.rows.div_ceil(self.piece) as usize
    }

    /// The number of shards.
    pub(crate) fn num_shards(&self) -> usize {
        self.shards
    }

    /// The number of training rows, with their repetitions.
    pub(crate) fn num_rows(&self) -> usize {
        if self.has_weights() {
            self.counts.iter().sum()
        } else {
            self.rows as usize - self.held.len()
        }
    }

    /// The shard of a piece.
    pub(super) fn shard_of(&self, piece: usize) -> usize {
        piece * self.shards / self.len().max(1)
    }

    /// The shards of one of this many workers.
    pub(super) fn shards_of(&self, worker: usize, of: usize) -> Range<usize> {
        let start = |n: usize| n * self.shards / of.max(1);
        start(worker)..start(worker + 1)
    }

    /// The pieces of some shards.
    pub(super) fn pieces_of(&self, shards: Range<usize>) -> Range<usize> {
        let start = |shard: usize| (shard * self.len()).div_ceil(self.shards);
        start(shards.start)..start(shards.end)
    }

    /// The positions of the rows of some pieces.
    pub(super) fn places(&self, pieces: Range<usize>) -> Range<u64> {
        let start = |piece: usize| (piece as u64 * self.piece).min(self.rows);
        start(pieces.start)..start(pieces.end)
    }

    /// The number of training rows in a piece, with their repetitions.
    pub(super) fn rows_of(&self, piece: usize) -> usize {
        if self.has_weights() {
            return self.counts[piece];
        }
        let places = self.places(piece..piece + 1);
        let before = |place: u64| self.held.partition_point(|&held| held < place);
        (places.end - places.start) as usize - (before(places.end) - before(places.start))
    }

    /// Shuffles the pieces for the next epoch.
    pub(super) fn shuffle(&self, pieces: &mut [usize], rng: &mut impl Rng) {
        pieces.shuffle(rng);
        let mut counts = vec![0; self.shards];
        // The round and the shard of every piece.
        let mut at = vec![(0, 0); pieces.len()];
        for &piece in &*pieces {
            let shard = self.shard_of(piece);
            at[piece] = (counts[shard] / self.shard_pieces_per_round(), shard);
            counts[shard] += 1;
        }
        pieces.sort_by_key(|&piece| at[piece]);
    }

    /// The number of pieces at the start of these that are in the same round.
    pub(super) fn round_len(&self, pieces: &[usize]) -> usize {
        let (mut last, mut count) = (0, 0);
        let is_same = |&&piece: &&usize| {
            let shard = self.shard_of(piece);
            count = if shard == last { count + 1 } else { 1 };
            let is_same = shard >= last && count <= self.shard_pieces_per_round();
            last = shard;
            is_same
        };
        pieces.iter().take_while(is_same).count()
    }

    /// The number of pieces of a shard in a round.
    fn shard_pieces_per_round(&self) -> usize {
        LOADED_PIECES / self.shards
    }

    /// Splits `count` rows after the first `before` rows of the table into pieces, without held-out
    /// rows and without repetitions.
    fn split(&self, before: u64, count: usize) -> Vec<(usize, Vec<usize>)> {
        let mut split: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut held =
            self.held[self.held.partition_point(|&held| held < before)..].iter().peekable();
        for row in 0..count {
            let place = before + row as u64;
            if held.next_if_eq(&&place).is_some() {
                continue;
            }
            let piece = (place / self.piece) as usize;
            match split.last_mut() {
                Some((last, rows)) if *last == piece => rows.push(row),
                _ => split.push((piece, vec![row])),
            }
        }
        split
    }
}

/// Splits rows into pieces as they arrive, and repeats them in proportion to their weights.
#[derive(Clone, Debug, Default)]
pub(crate) struct Splitter {
    shard: usize,
    /// The sum of the weights in the shard, and how many rows were taken for it.
    sum: f64,
    taken: usize,
}

impl Splitter {
    /// The largest number of times that a row can be repeated.
    pub(crate) const MOST: f64 = 65_536.0;

    /// Splits `count` rows after the first `before` rows of the table into pieces, without held-out rows. If rows have
    /// weights, a row is repeated such that neither it nor a run of consecutive rows of a shard is off by more than one.
    /// The repetitions of a shard depend only on its own rows, so it does not matter who holds it.
    pub(crate) fn split(
        &mut self,
        layout: &Layout,
        before: u64,
        count: usize,
        weights: &[f64],
    ) -> Vec<(usize, Vec<usize>)> {
        let mut split = layout.split(before, count);
        let Some(unit) = layout.unit else { return split };
        for (piece, rows) in &mut split {
            let shard = layout.shard_of(*piece);
            if shard != self.shard {
                *self = Self { shard, ..Self::default() };
            }
            let mut often = Vec::with_capacity(rows.len());
            for &row in &*rows {
                self.sum += (weights[row] / unit).min(Self::MOST);
                while self.taken as f64 + 0.5 < self.sum {
                    often.push(row);
                    self.taken += 1;
                }
            }
            *rows = often;
        }
        split
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    proptest! {
        /// Every row is in one piece, every piece is in one shard and one round, and every piece has one worker.
        #[test]
        fn rows_are_divided(rows in 1_u64..2000, loaded in 1_usize..500, batch in 1_usize..9000, of in 1_usize..9, seed: u64) {
            let held: Vec<u64> = (0..rows).filter(|n| (n ^ seed) % 7 == 0).collect();
            let layout = Layout::new(rows, held.clone(), loaded, batch);
            let all = layout.pieces_of(0..layout.num_shards());
            prop_assert_eq!(&all, &(0..layout.len()));
            prop_assert_eq!(layout.places(all.clone()), 0..rows);
            prop_assert_eq!(all.clone().map(|n| layout.rows_of(n)).sum::<usize>(), layout.num_rows());
            let mut next = 0;
            for worker in 0..of {
                let pieces = layout.pieces_of(layout.shards_of(worker, of));
                prop_assert_eq!(pieces.start, next);
                next = pieces.end;
                let shards = layout.shards_of(worker, of);
                prop_assert!(pieces.clone().all(|n| shards.contains(&layout.shard_of(n))));
            }
            prop_assert_eq!(next, layout.len());
            // The split does not depend on how the rows arrive.
            let mut parts = vec![Vec::new(); layout.len()];
            let step = 1 + seed % 97;
            for before in (0..rows).step_by(step as usize) {
                for (piece, rows) in layout.split(before, step.min(rows - before) as usize) {
                    parts[piece].extend(rows.into_iter().map(|row| before + row as u64));
                }
            }
            for (n, part) in parts.iter().enumerate() {
                let own = layout.places(n..n + 1).filter(|place| !held.contains(place));
                prop_assert!(part.iter().copied().eq(own));
                prop_assert_eq!(part.len(), layout.rows_of(n));
            }
            // Repetitions do not depend on it either, and add up to the weights of every shard.
            let weights: Vec<f64> = (0..rows).map(|n| ((n ^ seed) % 5) as f64).collect();
            let mut layout = layout;
            layout = layout.with_weights(0.7);
            let mut counts = vec![0; layout.len()];
            for step in [rows, step] {
                let (mut splitter, mut found) = (Splitter::default(), vec![0; layout.len()]);
                for before in (0..rows).step_by(step as usize) {
                    let own = &weights[before as usize..(before + step).min(rows) as usize];
                    for (piece, rows) in splitter.split(&layout, before, own.len(), own) {
                        prop_assert!(rows.iter().all(|&row| own[row] > 0.0));
                        found[piece] += rows.len();
                    }
                }
                prop_assert!(step == rows || found == counts);
                counts = found;
            }
            for shard in 0..layout.num_shards() {
                let pieces = layout.pieces_of(shard..shard + 1);
                let own = layout.places(pieces.clone()).filter(|place| !held.contains(place));
                let expected: f64 = own.map(|place| weights[place as usize] / 0.7).sum();
                let found: usize = counts[pieces].iter().sum();
                prop_assert!((found as f64 - expected).abs() < 0.5 + 1e-9, "{} {}", found, expected);
            }
            let total: usize = counts.iter().sum();
            layout.set_counts(counts);
            prop_assert_eq!(layout.num_rows(), total);
            prop_assert_eq!((0..layout.len()).map(|n| layout.rows_of(n)).sum::<usize>(), total);
            let mut order: Vec<usize> = all.collect();
            layout.shuffle(&mut order, &mut ChaCha8Rng::seed_from_u64(seed));
            let (mut at, mut rounds) = (0, 0);
            while at < order.len() {
                let count = layout.round_len(&order[at..]);
                let round = &order[at..at + count];
                prop_assert!(count > 0 && round.is_sorted_by_key(|&n| layout.shard_of(n)));
                for shard in 0..layout.num_shards() {
                    let own = round.iter().filter(|n| layout.shard_of(**n) == shard).count();
                    let left = order[at..].iter().filter(|n| layout.shard_of(**n) == shard).count();
                    prop_assert_eq!(own, left.min(LOADED_PIECES / layout.num_shards()));
                }
                (at, rounds) = (at + count, rounds + 1);
            }
            prop_assert!(rounds <= layout.len().div_ceil(LOADED_PIECES) + 1);
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..layout.len()));
        }
    }
}
