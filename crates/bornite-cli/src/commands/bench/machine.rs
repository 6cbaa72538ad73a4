//! The machine and the date of a measurement.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// The machine and the build.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    pub(super) cpu: String,
    pub(super) cores: usize,
    /// The load average of the last minute, if the system provides it.
    pub(super) load: Option<f64>,
    pub(super) build: String,
    /// The day, in UTC.
    pub(super) date: String,
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
            date: date(),
        }
    }
}

fn cpu_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The load average of the last minute.
pub(super) fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// The peak memory of this process, if the system provides it.
pub(super) fn peak_memory_mib() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}

fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
    civil(seconds / 86_400)
}

/// The Gregorian date this many days after 1970-01-01.
fn civil(days: u64) -> String {
    // Years start in March, so that the leap day comes last; year 0 starts 719,468 days before 1970.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_are_named() {
        assert_eq!(civil(0), "1970-01-01");
        assert_eq!(civil(11_016), "2000-02-29");
        assert_eq!(civil(11_017), "2000-03-01");
        assert_eq!(civil(20_453), "2025-12-31");
    }
}
