//! Taking the time of things that are too short to take once.

use std::time::{Duration, Instant};

const ENOUGH: Duration = Duration::from_millis(200);
const MAX_RUNS: usize = 1000;

/// Runs `work` until a fifth of a second is spent on it, and gives its last answer and its median time.
pub(super) fn median<T>(mut work: impl FnMut() -> T) -> (T, Duration) {
    let start = Instant::now();
    let mut times = Vec::new();
    loop {
        let run = Instant::now();
        let answer = work();
        times.push(run.elapsed());
        if start.elapsed() >= ENOUGH || times.len() >= MAX_RUNS {
            times.sort_unstable();
            return (answer, times[times.len() / 2]);
        }
    }
}
