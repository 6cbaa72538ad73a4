//! Structure-aware fuzzing on a stable toolchain: every format, question and table, with laws as oracles.
//!
//! Without arguments, as in `cargo test`, a short run of every target with a fixed seed. `./fuzz [--time 10m] [--seed N]
//! [target]` runs until the time is over. Every input has a limit of time and of memory. One that panics, hangs, takes too
//! much or breaks a law is written to `target/fuzz`, and the command that runs it again is printed: `./fuzz --input FILE
//! target`. When mended, it goes to `testdata/fuzz`, named after its target, and is run first from then on.

#![expect(clippy::print_stdout, reason = "it reports to who runs it")]

mod formats;
mod laws;
mod mutate;
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bornite::memory;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use targets::{TARGETS, Target};

/// The executions of each target in a short run.
const SHORT_RUNS: u64 = 60;
/// The longest time of one input. Debug builds are slow, and machines busy.
const MAX_TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 300 } else { 30 });
/// The most memory of the process, in kilobytes.
const MAX_MEMORY: u64 = 3 << 20;
/// The most that an input may ask for, in bytes.
const MAX_DECLARED: u64 = 1 << 30;

/// What is asked for.
struct Options {
    time: Option<Duration>,
    seed: u64,
    input: Option<PathBuf>,
    targets: Vec<&'static Target>,
}

fn main() -> ExitCode {
    let Some(options) = options() else { return ExitCode::SUCCESS };
    memory::set_limit(MAX_DECLARED);
    if let Some(path) = &options.input {
        let input = fs::read(path).expect("the input can be read");
        for target in &options.targets {
            let outcome = (target.check)(&input);
            println!("{}: {outcome:?}", target.name);
        }
        return ExitCode::SUCCESS;
    }
    let watch = Watch::start();
    let mut failures = 0;
    for target in &options.targets {
        failures += fuzz(target, &options, &watch);
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options() -> Option<Options> {
    let mut options = Options { time: None, seed: 0, input: None, targets: Vec::new() };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_default();
        match arg.as_str() {
            "--time" => options.time = Some(seconds(&value())),
            "--seed" => options.seed = value().parse().expect("--seed is a number"),
            "--input" => options.input = Some(PathBuf::from(value())),
            // What `cargo test` hands to every test.
            flag if flag.starts_with('-') => {}
            name => match TARGETS.iter().find(|t| t.name == name) {
                Some(target) => options.targets.push(target),
                // The filter of some other test.
                None if options.time.is_none() => return None,
                None => {
                    let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
                    panic!("there is no target '{name}'; give one of {}", names.join(", "));
                }
            },
        }
    }
    if options.targets.is_empty() {
        options.targets.extend(&TARGETS);
    }
    Some(options)
}

fn seconds(text: &str) -> Duration {
    let (digits, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    Duration::from_secs_f64(unit * digits.parse::<f64>().expect("--time is such as 90s or 10m"))
}

/// The inputs of a target that once broke something.
fn past_failures(target: &Target) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/fuzz");
    let entries = fs::read_dir(folder).expect("the past failures are there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let is_of_target = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.split_once('-')).is_some_and(|(first, _)| first == target.name)
    };
    paths.retain(is_of_target);
    paths.into_iter().map(|path| fs::read(path).expect("the input can be read")).collect()
}

/// Runs a target, and says how many inputs it did not stand.
fn fuzz(target: &Target, options: &Options, watch: &Watch) -> u32 {
    let start = Instant::now();
    let share = options.targets.len() as u32;
    let (mut runs, mut accepted, mut failures) = (0_u64, 0_u64, 0);
    let mut past = past_failures(target).into_iter();
    loop {
        let is_over = match options.time {
            Some(time) => start.elapsed() >= time / share,
            None => runs >= SHORT_RUNS,
        };
        if is_over || failures >= 10 {
            break;
        }
        let input = past.next().unwrap_or_else(|| {
            let mut rng = ChaCha8Rng::seed_from_u64(options.seed);
            rng.set_stream(runs);
            (target.make)(&mut rng)
        });
        watch.begin(target, &input);
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.check)(&input)));
        watch.end();
        runs += 1;
        match outcome {
            Ok(Ok(was_accepted)) => accepted += u64::from(was_accepted),
            Ok(Err(law)) => failures += keep(target, &input, &law),
            Err(_) => failures += keep(target, &input, "a panic"),
        }
        if let Some(peak) = peak_memory().filter(|&peak| peak > MAX_MEMORY) {
            keep(target, &input, &format!("{peak} kB of memory"));
            std::process::exit(1);
        }
    }
    let time = start.elapsed().as_secs_f64();
    println!(
        "{:<12} {runs} runs, {accepted} accepted, {failures} failures, {time:.1} s",
        target.name
    );
    failures
}

/// Writes an input down, and says how to run it again.
fn keep(target: &Target, input: &[u8], what: &str) -> u32 {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fuzz");
    let path = folder.join(format!("{}-{:08x}", target.name, crc32fast::hash(input)));
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, input));
    println!("{}: {what}; ./fuzz --input {} {}", target.name, path.display(), target.name);
    if let Err(error) = written {
        println!("the input could not be written: {error}");
    }
    1
}

/// The most memory that the process has had, in kilobytes, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// The input that is running, since when, and its target.
type Running = Option<(Instant, &'static str, Vec<u8>)>;

/// A thread that ends the process where an input takes too long.
struct Watch(Arc<Mutex<Running>>);

impl Watch {
    fn start() -> Self {
        let running: Arc<Mutex<Running>> = Arc::default();
        let watched = Arc::clone(&running);
        thread::spawn(move || {
            loop {
                thread::sleep(Duration::from_millis(100));
                let running = watched.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((since, name, input)) = &*running
                    && since.elapsed() > MAX_TIME
                    && let Some(target) = TARGETS.iter().find(|t| t.name == *name)
                {
                    keep(target, input, "a hang");
                    std::process::exit(1);
                }
            }
        });
        Self(running)
    }

    fn begin(&self, target: &Target, input: &[u8]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((Instant::now(), target.name, input.to_vec()));
    }

    fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
