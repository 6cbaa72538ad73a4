//! Time by the clock and time on the processor, and the peak rate by both.

use std::hint::black_box;
use std::time::Instant;

use bornite::engine::{Simd, peak::fused_multiply_adds};
use serde::Serialize;

/// What something took: by the clock, and on all cores together where the system tells.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Took {
    pub(super) seconds: f64,
    pub(super) cpu_seconds: Option<f64>,
}

impl Took {
    /// The time on the processor where it is known, which other programs disturb less, else the clock's.
    pub(super) fn steadier(self) -> f64 {
        self.cpu_seconds.unwrap_or(self.seconds)
    }

    /// The shorter of each: other programs only ever add to a time.
    #[must_use]
    pub(super) fn min(self, other: Self) -> Self {
        let cpu_seconds = match (self.cpu_seconds, other.cpu_seconds) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { seconds: self.seconds.min(other.seconds), cpu_seconds }
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
    Took { seconds, cpu_seconds: cpu_seconds.filter(|&s| s > 0.0) }
}

/// The time that all threads of this process have had on a processor.
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
    /// Floating-point operations of a call.
    flops: f64,
    /// The best of all calls.
    best: Option<Took>,
}

impl Peak {
    /// About this long on every thread.
    const SECONDS: f64 = 0.03;

    pub(super) fn new() -> Self {
        let simd = Simd::default();
        let rounds = 1_000_000;
        let mut one = Took { seconds: f64::MAX, cpu_seconds: None };
        for _ in 0..3 {
            one = one.min(took(|| fused_multiply_adds::<f64>(simd, rounds)));
        }
        let rounds = (Self::SECONDS / one.seconds * rounds as f64).max(1.0) as u64;
        Self { simd, rounds, flops: 0.0, best: None }
    }

    /// Measures once more.
    pub(super) fn measure(&mut self) {
        let (simd, rounds) = (self.simd, self.rounds);
        let mut count = 0;
        let this = took(|| {
            let counts =
                rayon::broadcast(|_| black_box(fused_multiply_adds::<f64>(simd, rounds)).0);
            count = counts.into_iter().sum();
        });
        self.flops = 2.0 * count as f64;
        self.best = Some(self.best.map_or(this, |best| best.min(this)));
    }

    /// Operations a second, by the clock: the best of all calls.
    pub(super) fn rate(&self) -> f64 {
        self.best.map_or(f64::NAN, |best| self.flops / best.seconds)
    }

    /// Operations a second of one core.
    pub(super) fn cpu_rate(&self) -> Option<f64> {
        Some(self.flops / self.best?.cpu_seconds?)
    }

    /// The instruction set.
    pub(super) fn level(&self) -> String {
        format!("{:?}", self.simd.level())
    }
}
