//! Signals that ask the command to stop: Ctrl-C, SIGTERM and SIGHUP, all handled alike.
//!
//! The first signal asks a fit to stop, and the fit keeps the best model so far; a second signal ends the command at once.
//! Before the first step of a fit there is no model to keep, so the first signal ends the command, whatever it is doing.
//! No temporary file is ever left behind.

use std::io::{self, Write};
use std::process;
#[cfg(unix)]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bornite::file::remove_unfinished;

/// Whether the first signal is only a request to stop.
static GENTLE: AtomicBool = AtomicBool::new(false);
/// Whether a fit is about to begin.
static BEFORE: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Starts listening for signals.
#[cfg(unix)]
pub(crate) fn watch() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;

    // Exceeding the file size limit becomes a write error, as on a full disk, instead of ending the process.
    let _unused = signal_hook::flag::register(SIGXFSZ, Arc::default());
    // `nohup` ignores SIGHUP, and shell scripts ignore SIGINT for background jobs. Respect that.
    let listened = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal));
    // If listening fails, signals end the command as usual.
    if let Ok(mut signals) = Signals::new(listened) {
        thread::spawn(move || signals.forever().for_each(|signal| on_signal(128 + signal)));
    }
}

#[cfg(not(unix))]
pub(crate) fn watch() {
    let _unused = ctrlc::set_handler(|| on_signal(130));
}

/// Whether the parent process set a signal to be ignored, if the system provides this.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

fn on_signal(code: i32) {
    if GENTLE.load(Ordering::Relaxed) && !STOPPED.swap(true, Ordering::Relaxed) {
        return;
    }
    remove_unfinished();
    if BEFORE.load(Ordering::Relaxed) {
        let _ = writeln!(io::stderr(), "stopped before training began, so there is no model");
    }
    process::exit(code);
}

/// From now on and until [`stop_gently`], a signal that ends the command says that there is no model yet.
pub(crate) fn before_a_fit() {
    BEFORE.store(true, Ordering::Relaxed);
}

/// From now on, the first signal only makes [`stopped`] return true.
pub(crate) fn stop_gently() {
    BEFORE.store(false, Ordering::Relaxed);
    GENTLE.store(true, Ordering::Relaxed);
}

/// From now on, a signal stops the command at once: the fit is over.
pub(crate) fn stop_at_once() {
    BEFORE.store(false, Ordering::Relaxed);
    GENTLE.store(false, Ordering::Relaxed);
}

/// Whether a signal has asked the command to stop.
pub(crate) fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}
