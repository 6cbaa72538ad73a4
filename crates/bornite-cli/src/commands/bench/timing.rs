//! Timing of operations that are too short to time once.

use std::time::{Duration, Instant};

const ENOUGH: Duration = Duration::from_millis(200);
const MIN_RUNS: usize = 5;
const MAX_RUNS: usize = 1000;

/// Runs `work` at least five times and for at least a fifth of a second. Returns the last answer and the shortest time,
/// since other programs can only make it longer.
pub(super) fn best<T>(mut work: impl FnMut() -> T) -> (T, Duration) {
    let start = Instant::now();
    let mut shortest = Duration::MAX;
    for run in 1.. {
        let began = Instant::now();
        let answer = work();
        shortest = shortest.min(began.elapsed());
        if run >= MAX_RUNS || run >= MIN_RUNS && start.elapsed() >= ENOUGH {
            return (answer, shortest);
        }
    }
    unreachable!("the runs are counted")
}
