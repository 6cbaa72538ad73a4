//! Timing of operations that are too short to time once.

use std::time::{Duration, Instant};

const ENOUGH: Duration = Duration::from_millis(200);
const MIN_RUNS: usize = 5;
const MAX_RUNS: usize = 1000;

/// Runs `work` five times, and on until a fifth of a second is spent on it, and gives its last answer and its shortest time: what other
/// programs on the machine do only ever adds to it.
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
