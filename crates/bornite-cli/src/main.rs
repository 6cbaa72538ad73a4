//! The `bornite` command.
//!
//! Every command writes its answer to the writer that `main` passes in, and its errors are reported here: one message
//! on standard error and exit code 2 for bad input, exit code 1 if a check fails, and 0 otherwise.

mod commands;
mod counts;
mod device;
mod files;
mod image;
mod output;
mod progress;
mod signals;
mod streams;
mod tables;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::panic;
use std::process::ExitCode;
use std::thread;

use clap::Parser;

fn main() -> ExitCode {
    progress::start();
    signals::watch();
    silence_parquet_panics();
    let command = commands::Cli::parse();
    command.set_limits();
    let stdout = io::stdout().lock();
    let mut out: BufWriter<Box<dyn Write>> = BufWriter::new(if stdout.is_terminal() {
        Box::new(output::Terminal::new(stdout))
    } else {
        Box::new(stdout)
    });
    let result = command.run(&mut out).and_then(|code| Ok(out.flush().map(|()| code)?));
    match result {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<io::Error>() => {
            let _ = writeln!(
                io::stderr(),
                "error: cannot write to standard output: {error}; is there enough disk space?"
            );
            ExitCode::from(2)
        }
        Err(error) => {
            // The message of `error` already contains the rest of the chain. A failure to write it cannot be reported
            // anywhere.
            let _ = writeln!(io::stderr(), "error: {}", output::printable(&error.to_string()));
            if error.chain().any(<dyn std::error::Error>::is::<bornite::memory::OverLimit>) {
                let _ = writeln!(io::stderr(), "hint: --max-memory 16G allows 16 GiB");
            }
            ExitCode::from(2)
        }
    }
}

/// Whether the reader closed the pipe, as `head` does. This is not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// Panics on damaged Parquet files stay in their thread and become errors, so they are not printed.
fn silence_parquet_panics() {
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if thread::current().name() != Some(bornite::data::PARQUET_THREAD) {
            default_hook(info);
        }
    }));
}
