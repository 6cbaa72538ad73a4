//! Random choices of circuits and cases.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A random choice for every row, which depends only on the seed and the row's position.
pub(crate) struct Picks(ChaCha8Rng);

impl Picks {
    /// Chooses one of several cases.
    pub(crate) fn of_cases(seed: u64) -> Self {
        Self::in_stream(seed, u64::MAX)
    }

    /// Chooses one of several circuits.
    pub(super) fn of_circuits(seed: u64) -> Self {
        Self::in_stream(seed, u64::MAX - 1)
    }

    /// Uses one of the last streams, which no row uses.
    fn in_stream(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// Picks one of these shares, which sum to 1, and returns its index.
    pub(crate) fn pick(&mut self, row: u64, shares: &[f64]) -> usize {
        if shares.len() == 1 {
            return 0;
        }
        // Each number takes two words.
        self.0.set_word_pos(2 * u128::from(row));
        let (u, mut sum): (f64, f64) = (self.0.random(), 0.0);
        let reached = |share: &f64| {
            sum += share;
            u < sum
        };
        let found = shares.iter().position(reached);
        found.or(shares.iter().rposition(|share| *share > 0.0)).unwrap_or(0)
    }
}
