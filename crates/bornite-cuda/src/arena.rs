//! Places messages in one piece of memory, before anything is computed.

use std::collections::BTreeMap;

/// Places of a piece of memory that are in use.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// The lengths of what is in use, by where it begins.
    used: BTreeMap<usize, usize>,
    /// The most that has been in use.
    most: usize,
}

impl Arena {
    /// A place for this many numbers: the first one that is free.
    pub(crate) fn take(&mut self, len: usize) -> usize {
        if len == 0 {
            return 0;
        }
        let mut at = 0;
        for (&start, &own) in &self.used {
            if start - at >= len {
                break;
            }
            at = start + own;
        }
        self.used.insert(at, len);
        self.most = self.most.max(at + len);
        at
    }

    /// Gives a place of this many numbers back.
    pub(crate) fn give(&mut self, at: usize, len: usize) {
        if len > 0 {
            self.used.remove(&at);
        }
    }

    /// How much memory all of it takes.
    pub(crate) fn most(&self) -> usize {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_in_use_do_not_overlap() {
        let mut arena = Arena::default();
        let mut used: Vec<(usize, usize)> = Vec::new();
        let mut state = 1_usize;
        for round in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if state >> 60 < 7 && !used.is_empty() {
                let (at, len) = used.swap_remove((state >> 33) % used.len());
                arena.give(at, len);
            } else if used.len() < 20 {
                let len = (state >> 40) % 50;
                used.push((arena.take(len), len));
            }
            for (n, a) in used.iter().enumerate() {
                assert!(a.0 + a.1 <= arena.most());
                let apart =
                    |b: &(usize, usize)| a.1 * b.1 == 0 || a.0 + a.1 <= b.0 || b.0 + b.1 <= a.0;
                assert!(used[n + 1..].iter().all(apart), "round {round}: {used:?}");
            }
        }
        // What is given back is used again.
        for (at, len) in used {
            arena.give(at, len);
        }
        let most = arena.most();
        assert_eq!((arena.take(most), arena.most()), (0, most));
    }
}
