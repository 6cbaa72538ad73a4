//! Wall time and CPU time, and the peak rate by both.

use std::hint::black_box;
use std::time::Instant;

use bornite_kernels::{Simd, peak::fused_multiply_adds};
use serde::Serialize;

/// Floating-point operations of a complex multiply-add.
const FLOPS: f64 = 8.0;

/// A measured time: wall time, and CPU time on all cores together if the system provides it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Took {
    /// The shortest of all runs: other programs can only add to it.
    pub(super) seconds: f64,
    /// The mean of all runs. The system accounts CPU time in ticks, so one run may be charged too little
    /// and the next too much; the shortest would be too short.
    pub(super) cpu_seconds: Option<f64>,
    pub(super) runs: u32,
}

impl Took {
    /// No measurement yet.
    pub(super) const NOTHING: Self = Self { seconds: f64::INFINITY, cpu_seconds: None, runs: 0 };

    /// The best and the mean over both.
    #[must_use]
    pub(super) fn and(self, other: Self) -> Self {
        let (a, b) = (f64::from(self.runs), f64::from(other.runs));
        let cpu_seconds = match (self.cpu_seconds, other.cpu_seconds) {
            (Some(x), Some(y)) => Some((a * x + b * y) / (a + b)),
            (None, y) if self.runs == 0 => y,
            (x, None) if other.runs == 0 => x,
            _ => None,
        };
        let seconds = self.seconds.min(other.seconds);
        Self { seconds, cpu_seconds, runs: self.runs + other.runs }
    }

    /// The CPU time if it is known, since other programs disturb it less; otherwise the wall time.
    pub(super) fn steadier(self) -> f64 {
        self.cpu_seconds.unwrap_or(self.seconds)
    }
}

/// Runs `work` once.
pub(super) fn took<T>(work: impl FnOnce() -> T) -> Took {
    let before = cpu_nanoseconds();
    let start = Instant::now();
    black_box(work());
    let seconds = start.elapsed().as_secs_f64();
    let after = cpu_nanoseconds();
    let cpu_seconds = before.zip(after).map(|(a, b)| b.saturating_sub(a) as f64 * 1e-9);
    Took { seconds, cpu_seconds, runs: 1 }
}

/// The CPU time of all threads of this process.
fn cpu_nanoseconds() -> Option<u64> {
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        sum += text.split(' ').next()?.parse::<u64>().ok()?;
    }
    Some(sum)
}

/// The machine's rate in pure loops of fused multiply-adds, on all threads at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peak {
    simd: Simd,
    rounds: u64,
    /// Floating-point operations per call.
    flops: f64,
    took: Took,
}

impl Peak {
    /// About this long on every thread.
    const SECONDS: f64 = 0.03;

    pub(super) fn new() -> Self {
        let simd = Simd::default();
        let rounds = 1_000_000;
        let mut one = Took::NOTHING;
        for _ in 0..3 {
            one = one.and(took(|| fused_multiply_adds::<f64>(simd, rounds)));
        }
        let rounds = (Self::SECONDS / one.seconds * rounds as f64).max(1.0) as u64;
        Self { simd, rounds, flops: 0.0, took: Took::NOTHING }
    }

    /// Measures again.
    pub(super) fn measure(&mut self) {
        let (simd, rounds) = (self.simd, self.rounds);
        let mut count = 0;
        let this = took(|| {
            let counts =
                rayon::broadcast(|_| black_box(fused_multiply_adds::<f64>(simd, rounds)).0);
            count = counts.into_iter().sum();
        });
        self.flops = 2.0 * count as f64;
        self.took = self.took.and(this);
    }

    /// Operations per second of wall time: the best of all calls.
    pub(super) fn rate(&self) -> f64 {
        self.flops / self.took.seconds
    }

    /// Operations per second of CPU time on one core: the mean of all calls.
    pub(super) fn cpu_rate(&self) -> Option<f64> {
        self.took.cpu_seconds.map(|s| self.flops / s)
    }

    /// Runs something once, right after measuring this peak and that of the whole benchmark again.
    pub(super) fn around(
        &mut self,
        all: &mut Self,
        run: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<Took> {
        self.measure();
        all.measure();
        let mut result = Ok(());
        let this = took(|| result = run());
        result.map(|()| this)
    }

    /// The wall time divided by the time of this many complex multiply-adds at the peak.
    pub(super) fn over_bound(&self, took: Took, multiply_adds: u128) -> f64 {
        took.seconds * self.rate() / (multiply_adds as f64 * FLOPS)
    }

    /// The same ratio for CPU time, as it would be if no other program were running.
    pub(super) fn cpu_over_bound(&self, took: Took, multiply_adds: u128) -> Option<f64> {
        let (seconds, rate) = took.cpu_seconds.zip(self.cpu_rate())?;
        Some(seconds * rate / (multiply_adds as f64 * FLOPS))
    }

    /// The instruction set.
    pub(super) fn level(&self) -> String {
        format!("{:?}", self.simd.level())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_a_minimum_and_the_processor_a_mean() {
        let run = |seconds, cpu| Took { seconds, cpu_seconds: Some(cpu), runs: 1 };
        let all = Took::NOTHING.and(run(3.0, 0.0)).and(run(2.0, 4.0)).and(run(5.0, 2.0));
        assert_eq!((all.seconds, all.cpu_seconds, all.runs), (2.0, Some(2.0), 3));
    }
}
