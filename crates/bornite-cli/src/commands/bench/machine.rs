//! What was measured on.

use serde::Serialize;

/// The machine and the build.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    pub(super) cpu: String,
    pub(super) cores: usize,
    /// How many programs wanted a core in the minute before, where the system tells.
    pub(super) load: Option<f64>,
    pub(super) build: String,
}

impl Machine {
    pub(super) fn here() -> Self {
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        let (version, arch, os) =
            (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH, std::env::consts::OS);
        Self {
            cpu: cpu_model().unwrap_or_else(|| "unknown CPU".to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            load: load(),
            build: format!("bornite {version}, {profile}, {arch} {os}"),
        }
    }
}

fn cpu_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}
