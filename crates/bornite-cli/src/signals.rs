//! Signals that ask the command to end: Ctrl-C, SIGTERM and SIGHUP, all alike.
//!
//! A fit is asked to end first, and keeps the best model so far; a second signal ends the command at once. Whatever it was
//! doing, no temporary file is left behind.

use std::process;
#[cfg(unix)]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bornite::file::remove_unfinished;

/// Whether a first signal only asks.
static GENTLE: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Listens from now on.
#[cfg(unix)]
pub(crate) fn watch() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    use signal_hook::iterator::Signals;

    // A file that grows beyond a limit is an error of the write, as on a full disk, and not the end.
    let _as_ever = signal_hook::flag::register(SIGXFSZ, Arc::default());
    // `nohup` has SIGHUP ignored, and a script SIGINT of what it runs in the background: that stays so.
    let listened = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal));
    // Where nothing can be listened to, signals end the command as they ever did.
    if let Ok(mut signals) = Signals::new(listened) {
        thread::spawn(move || signals.forever().for_each(|signal| heard(128 + signal)));
    }
}

#[cfg(not(unix))]
pub(crate) fn watch() {
    let _as_ever = ctrlc::set_handler(|| heard(130));
}

/// Whether the parent has arranged for a signal to be ignored, where the system tells.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

fn heard(code: i32) {
    if GENTLE.load(Ordering::Relaxed) && !STOPPED.swap(true, Ordering::Relaxed) {
        return;
    }
    remove_unfinished();
    process::exit(code);
}

/// From now on the first signal only sets what [`stopped`] tells.
pub(crate) fn stop_gently() {
    GENTLE.store(true, Ordering::Relaxed);
}

/// From now on a signal ends the command at once again: the fit is over.
pub(crate) fn stop_at_once() {
    GENTLE.store(false, Ordering::Relaxed);
}

/// Whether a signal has asked for an end.
pub(crate) fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}
