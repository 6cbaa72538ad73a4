//! Selection of the instruction set at run time.

/// The highest instruction set that a plan may use.
///
/// The bits of a result are the same at every level; only the time differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SimdLevel {
    /// What the compiler assumes for every machine of this architecture.
    Scalar,
    /// AVX2 and FMA, if the machine has them.
    Avx2,
    /// AVX-512, if the machine has it.
    Avx512,
    /// The best instruction set of the machine.
    #[default]
    Best,
}

/// An instruction set of this machine, which the hot loops are called with.
#[derive(Clone, Copy, Debug)]
pub struct Simd(pub(crate) Set);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Set {
    Baseline,
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    V3(pulp::x86::V3),
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    V4(pulp::x86::V4),
}

impl Simd {
    /// The best instruction set of this machine that is not above `level`.
    pub fn new(level: SimdLevel) -> Self {
        Self(detect(level))
    }

    /// Calls a closure. The parts that are inlined are compiled for the instruction set.
    #[inline(always)]
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        match self.0 {
            Set::Baseline => f(),
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Set::V3(set) => set.vectorize(f),
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Set::V4(set) => set.vectorize(f),
        }
    }

    /// The level in use, which is never [`SimdLevel::Best`].
    pub fn level(self) -> SimdLevel {
        match self.0 {
            Set::Baseline => SimdLevel::Scalar,
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Set::V3(_) => SimdLevel::Avx2,
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Set::V4(_) => SimdLevel::Avx512,
        }
    }
}

impl Default for Simd {
    fn default() -> Self {
        Self::new(SimdLevel::Best)
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn detect(level: SimdLevel) -> Set {
    if level >= SimdLevel::Avx512
        && let Some(set) = pulp::x86::V4::try_new()
    {
        return Set::V4(set);
    }
    if level >= SimdLevel::Avx2
        && let Some(set) = pulp::x86::V3::try_new()
    {
        return Set::V3(set);
    }
    Set::Baseline
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn detect(_: SimdLevel) -> Set {
    Set::Baseline
}

/// A closure that consumes this value can only be called once. So the compiler does not generate a
/// separate function that calls it by value, which might not be inlined into code with more
/// features.
#[derive(Debug)]
pub(crate) struct Once;

/// Calls `f::<token, F, C>(token, args…)`. The parts that are inlined are compiled for the
/// instruction set of a [`Simd`].
macro_rules! dispatch {
    ($simd:expr, $f:path, [$($generic:tt)*], $($arg:expr),* $(,)?) => {{
        use $crate::simd::{Once, Set};
        use $crate::vector::{One, Pair};
        use $f as kernel;
        let once = Once;
        match $simd.0 {
            Set::Baseline => kernel::<_, $($generic)*>(Pair(pulp::Scalar), $($arg),*),
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Set::V3(set) => set.vectorize(
                #[inline(always)]
                move || {
                    let _consumed: Once = once;
                    kernel::<_, $($generic)*>(Pair(set), $($arg),*)
                },
            ),
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Set::V4(set) => set.vectorize(
                #[inline(always)]
                move || {
                    let _consumed: Once = once;
                    kernel::<_, $($generic)*>(One(set), $($arg),*)
                },
            ),
        }
    }};
}
pub(crate) use dispatch;
