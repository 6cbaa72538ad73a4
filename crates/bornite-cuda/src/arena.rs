//! Assigns memory to messages before anything is computed.

use std::collections::BTreeMap;

/// The parts of a piece of memory that are in use.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    /// The length of each part in use, by its start.
    used: BTreeMap<usize, usize>,
    /// The largest end of a part so far.
    most: usize,
}

impl Arena {
    /// The first free place for `len` numbers.
    pub(crate) fn take(&mut self, len: usize) -> usize {
        if len == 0 {
            return 0;
        }
        let mut at = 0;
        for (&start, &used) in &self.used {
            if start - at >= len {
                break;
            }
            at = start + used;
        }
        self.used.insert(at, len);
        self.most = self.most.max(at + len);
        at
    }

    /// Frees a place of `len` numbers.
    pub(crate) fn give(&mut self, at: usize, len: usize) {
        if len > 0 {
            self.used.remove(&at);
        }
    }

    /// The amount of memory that all of it needs.
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
                let is_disjoint =
                    |b: &(usize, usize)| a.1 * b.1 == 0 || a.0 + a.1 <= b.0 || b.0 + b.1 <= a.0;
                assert!(used[n + 1..].iter().all(is_disjoint), "round {round}: {used:?}");
            }
        }
        // Freed memory is used again.
        for (at, len) in used {
            arena.give(at, len);
        }
        let most = arena.most();
        assert_eq!((arena.take(most), arena.most()), (0, most));
    }
}
