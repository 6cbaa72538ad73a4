//! How the rows of a table larger than memory are divided, and in which order they are used.

use std::ops::Range;

use rand::Rng;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

/// The pieces that are at hand at a time, so that rows that stand together in a table do not learn together.
const AT_HAND: usize = 64;
/// A step has this many rows of a shard or more, on average: a block of the passes.
const CHUNK: usize = 64;

/// A table in shards of consecutive rows, and these in pieces.
///
/// An epoch goes through all pieces in a random order, in rounds of as many of each shard, and through the rows of a round in a random order.
/// The rows of a step that are of one shard are a *chunk*. All of this depends on the table and the settings, and not on who holds which
/// shard: see [`workers`](super::workers).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Layout {
    /// All rows of the table.
    rows: u64,
    /// The places of those that are not learned from, in ascending order.
    held: Vec<u64>,
    /// The rows of a piece, with those that are not learned from.
    piece: u64,
    /// A power of two.
    shards: usize,
}

impl Layout {
    /// So many rows, of which some are held out and about so many are at hand at a time, for steps of so many.
    pub(crate) fn new(rows: u64, held: Vec<u64>, at_hand: usize, batch: usize) -> Self {
        let most = (batch / CHUNK).clamp(1, AT_HAND);
        let piece = at_hand.div_ceil(AT_HAND).max(1) as u64;
        Self { rows, held, piece, shards: 1 << most.ilog2() }
    }

    /// The number of pieces.
    pub(crate) fn len(&self) -> usize {
        self.rows.div_ceil(self.piece) as usize
    }

    /// The number of shards.
    pub(crate) fn num_shards(&self) -> usize {
        self.shards
    }

    /// The number of rows to learn from.
    pub(crate) fn num_rows(&self) -> usize {
        self.rows as usize - self.held.len()
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

    /// The places of the rows of some pieces.
    pub(super) fn places(&self, pieces: Range<usize>) -> Range<u64> {
        let start = |piece: usize| (piece as u64 * self.piece).min(self.rows);
        start(pieces.start)..start(pieces.end)
    }

    /// The number of rows of a piece to learn from.
    pub(super) fn rows_of(&self, piece: usize) -> usize {
        let places = self.places(piece..piece + 1);
        let before = |place: u64| self.held.partition_point(|&held| held < place);
        (places.end - places.start) as usize - (before(places.end) - before(places.start))
    }

    /// Puts the pieces in the order of another epoch.
    pub(super) fn shuffle(&self, pieces: &mut [usize], rng: &mut impl Rng) {
        pieces.shuffle(rng);
        let mut counts = vec![0; self.shards];
        // The round and the shard of every piece.
        let mut at = vec![(0, 0); pieces.len()];
        for &piece in &*pieces {
            let shard = self.shard_of(piece);
            at[piece] = (counts[shard] / self.of_shard(), shard);
            counts[shard] += 1;
        }
        pieces.sort_by_key(|&piece| at[piece]);
    }

    /// How many of these pieces, one or more, are of one round.
    pub(super) fn together(&self, pieces: &[usize]) -> usize {
        let (mut last, mut count) = (0, 0);
        let is_same = |&&piece: &&usize| {
            let shard = self.shard_of(piece);
            count = if shard == last { count + 1 } else { 1 };
            let is_same = shard >= last && count <= self.of_shard();
            last = shard;
            is_same
        };
        pieces.iter().take_while(is_same).count()
    }

    /// The pieces of a shard that are at hand at a time.
    fn of_shard(&self) -> usize {
        AT_HAND / self.shards
    }

    /// Of so many rows that come after some others, those to learn from, by piece.
    pub(crate) fn cut(&self, before: u64, count: usize) -> Vec<(usize, Vec<usize>)> {
        let mut cut: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut held =
            self.held[self.held.partition_point(|&held| held < before)..].iter().peekable();
        for row in 0..count {
            let place = before + row as u64;
            if held.next_if_eq(&&place).is_some() {
                continue;
            }
            let piece = (place / self.piece) as usize;
            match cut.last_mut() {
                Some((last, rows)) if *last == piece => rows.push(row),
                _ => cut.push((piece, vec![row])),
            }
        }
        cut
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    proptest! {
        /// Every row is of one piece, every piece of one shard and of one round, and workers share all of them.
        #[test]
        fn rows_are_divided(rows in 1_u64..2000, at_hand in 1_usize..500, batch in 1_usize..9000, of in 1_usize..9, seed: u64) {
            let held: Vec<u64> = (0..rows).filter(|n| (n ^ seed) % 7 == 0).collect();
            let layout = Layout::new(rows, held.clone(), at_hand, batch);
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
            // However the rows come, they are cut alike.
            let mut parts = vec![Vec::new(); layout.len()];
            let step = 1 + seed % 97;
            for before in (0..rows).step_by(step as usize) {
                for (piece, rows) in layout.cut(before, step.min(rows - before) as usize) {
                    parts[piece].extend(rows.into_iter().map(|row| before + row as u64));
                }
            }
            for (n, part) in parts.iter().enumerate() {
                let own = layout.places(n..n + 1).filter(|place| !held.contains(place));
                prop_assert!(part.iter().copied().eq(own));
                prop_assert_eq!(part.len(), layout.rows_of(n));
            }
            let mut order: Vec<usize> = all.collect();
            layout.shuffle(&mut order, &mut ChaCha8Rng::seed_from_u64(seed));
            let (mut at, mut rounds) = (0, 0);
            while at < order.len() {
                let count = layout.together(&order[at..]);
                let round = &order[at..at + count];
                prop_assert!(count > 0 && round.is_sorted_by_key(|&n| layout.shard_of(n)));
                for shard in 0..layout.num_shards() {
                    let own = round.iter().filter(|n| layout.shard_of(**n) == shard).count();
                    let left = order[at..].iter().filter(|n| layout.shard_of(**n) == shard).count();
                    prop_assert_eq!(own, left.min(AT_HAND / layout.num_shards()));
                }
                (at, rounds) = (at + count, rounds + 1);
            }
            prop_assert!(rounds <= layout.len().div_ceil(AT_HAND) + 1);
            order.sort_unstable();
            prop_assert!(order.into_iter().eq(0..layout.len()));
        }
    }
}
