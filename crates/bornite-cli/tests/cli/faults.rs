//! Faults around the command: outputs that are inputs, permissions, signals, hostile files.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bornite::data::{Column, DataError, Table, write_file};

use crate::bad_input::assert_refused;
use crate::model::fitted;
use crate::support::Folder;

fn hostile(name: &str) -> String {
    format!("{}/../bornite/testdata/hostile/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn leftovers(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path(".")).expect("a folder");
    let names = entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with('.')).collect()
}

#[test]
fn an_output_that_is_an_input_is_refused_unless_forced() {
    let folder = fitted();
    let (table, model) =
        (fs::read(folder.path("people.csv")).unwrap(), fs::read(folder.path("m.model")).unwrap());
    fs::hard_link(folder.path("m.model"), folder.path("hard.model")).unwrap();
    let same = ["fit", "people.csv", "-o", "new.model", "--checkpoint", "./new.model"];
    assert_refused(&folder, &same, &["new.model", "overwrite an input"]);
    let cases: &[&[&str]] = &[
        &["fit", "people.csv", "-o", "people.csv"],
        &["fit", "people.csv", "-o", "new.model", "--checkpoint", "people.csv"],
        &["fit", "people.csv", "-o", "./people.csv"],
        &["sample", "m.model", "-o", "m.model"],
        &["sample", "m.model", "-o", "hard.model"],
        &["impute", "m.model", "people.csv", "-o", "people.csv"],
        &["condition", "m.model", "age > 30", "-o", "m.model"],
        &["compress", "people.csv", "-o", "people.csv"],
        &["report", "m.model", "-o", "m.model"],
        &["circuit", "square", "c.json", "-o", "c.json"],
    ];
    for args in cases {
        assert_refused(&folder, args, &["overwrite an input", "--force"]);
        assert!(fs::read(folder.path("people.csv")).unwrap() == table, "{args:?}");
        assert!(fs::read(folder.path("m.model")).unwrap() == model, "{args:?}");
    }
    let forced = folder.run(&["sample", "m.model", "-n", "3", "-o", "m.model", "--force"]);
    assert_eq!(forced.code, 0, "{forced:?}");
    assert!(fs::read(folder.path("m.model")).unwrap() != model);
    assert_eq!(leftovers(&folder), Vec::<String>::new());
}

#[cfg(unix)]
#[test]
fn outputs_keep_the_mode_of_what_they_replace_and_follow_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = fitted();
    let outputs: [&[&str]; 4] = [
        &["sample", "m.model", "-n", "3", "-o"],
        &["condition", "m.model", "age > 30", "-o"],
        &["report", "m.model", "-o"],
        &["compress", "people.csv", "--epochs", "1", "-o"],
    ];
    for (n, args) in outputs.iter().enumerate() {
        let path = folder.path(&format!("out{n}"));
        let command = format!("umask 077; exec \"$0\" {} {}", quoted(args), path.display());
        let status = Command::new("sh")
            .args(["-c", &command, env!("CARGO_BIN_EXE_bornite")])
            .current_dir(folder.path("."))
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{command}");
        assert_eq!(mode(&path), 0o600, "{args:?}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let name = format!("out{n}");
        let run = folder.run(&[args, &[name.as_str()][..]].concat());
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(mode(&path), 0o640, "{args:?}");
    }
}

#[cfg(unix)]
fn quoted(args: &[&str]) -> String {
    args.iter().map(|a| format!("'{a}'")).collect::<Vec<_>>().join(" ")
}

#[cfg(unix)]
fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// Whether a signal is ignored by this process, as under nohup, and therefore by the command.
#[cfg(unix)]
fn is_ignored(number: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

/// Waits at most a minute.
#[cfg(unix)]
fn exit_code(child: &mut Child) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code();
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("a child");
    panic!("it did not end");
}

#[cfg(unix)]
#[test]
fn every_signal_ends_a_fit_with_the_best_model_so_far() {
    let folder = fitted();
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        if is_ignored(number) {
            continue;
        }
        let model = format!("{name}.model");
        let mut child = Command::new(env!("CARGO_BIN_EXE_bornite"))
            .args(["fit", "people.csv", "-o", &model, "--width", "4", "--epochs", "1000000"])
            .args(["--patience", "1000000", "--checkpoint", "state", "--checkpoint-every", "0.01s"])
            .current_dir(folder.path("."))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // The fit is running once there is a checkpoint.
        let start = Instant::now();
        while !folder.path("state").exists() && start.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(20));
        }
        signal(&child, name);
        assert_eq!(exit_code(&mut child), Some(0), "{name}");
        assert_eq!(folder.run(&["info", &model]).code, 0, "{name}");
        assert_eq!(leftovers(&folder), Vec::<String>::new(), "{name}");
        fs::remove_file(folder.path("state")).unwrap();
    }
}

/// Regression: a signal after the fit, or without a fit, was taken as a request to end the fit.
#[cfg(unix)]
#[test]
fn compression_ends_at_the_first_signal_once_there_is_no_fit() {
    let folder = fitted();
    // Several segments without repetition.
    let (mut text, mut state) = ("city,tall,age,weight\n".to_owned(), 1_u64);
    for _ in 0..900_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (r, weight) = ((state >> 33) as usize, (state >> 40) % 1000);
        let (city, tall) = (["Bonn", "Essen"][r % 2], ["yes", "no"][r / 2 % 2]);
        writeln!(text, "{city},{tall},{},{}.{}", 20 + r / 4 % 40, weight / 10, weight % 10)
            .unwrap();
    }
    folder.write("long.csv", &text);
    for flags in [&["--model", "m.model"][..], &["--epochs", "1", "--width", "2"]] {
        let mut child = folder
            .command(&[&["compress", "long.csv", "-o", "long.brz"][..], flags].concat())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // The temporary file is empty until the fit is over.
        let is_written = || {
            let lengths = fs::read_dir(folder.path(".")).unwrap().filter_map(|entry| {
                let entry = entry.unwrap();
                let is_temporary = entry.file_name().to_string_lossy().starts_with(".bornite-");
                is_temporary.then(|| entry.metadata().map_or(0, |found| found.len()))
            });
            lengths.sum::<u64>() > 0
        };
        let start = Instant::now();
        while !is_written() && start.elapsed() < Duration::from_secs(120) {
            thread::sleep(Duration::from_millis(5));
        }
        signal(&child, "TERM");
        assert_eq!(exit_code(&mut child), Some(143), "{flags:?}");
        assert!(!folder.path("long.brz").exists());
        assert_eq!(leftovers(&folder), Vec::<String>::new());
    }
}

#[test]
fn hostile_files_are_refused_with_a_line() {
    let folder = fitted();
    let lying = folder.run(&["circuit", "check", &hostile("lying.json")]);
    assert!(lying.stdout.contains("orthonormal              no"), "{lying:?}");
    assert_refused(&folder, &["query", &hostile("lying.model"), "P(x=1)"], &["not orthonormal"]);
    let gauss = folder.run(&["circuit", "info", &hostile("gauss.json")]);
    assert_eq!(gauss.code, 2, "{gauss:?}");
    assert!(gauss.stderr.contains("--max-memory"), "{gauss:?}");
    for name in ["hang.brz", "panic.brz", "rows.brz", "mem.brz", "stored.brz"] {
        assert_refused(&folder, &["decompress", &hostile(name), "-o", "o"], &[name]);
        assert!(!folder.path("o").exists(), "{name}");
    }
    assert_eq!(leftovers(&folder), Vec::<String>::new());
}

/// A few bytes that expand to many rows: the memory of the table counts, not only that of the text.
#[test]
fn short_files_of_many_rows_are_refused() {
    let folder = Folder::new();
    let rows = 1_000_000;
    let column = |name: &str| Column::integers(name, std::iter::repeat_n(Some(1), rows));
    let table = Table::new(vec![column("a"), column("b")]).unwrap();
    for name in ["bomb.csv.gz", "bomb.npy.gz", "bomb.parquet.gz", "bomb.parquet"] {
        let path = folder.path(name);
        write_file(&path, |out| match name.split('.').nth(1) {
            Some("csv") => table.write_csv_to(out).map_err(io),
            Some("npy") => {
                table.write_npy(folder.path("plain.npy"))?;
                out.write_all(&fs::read(folder.path("plain.npy")).unwrap()).map_err(io)
            }
            _ => out.write_all(&table.to_parquet_bytes()?).map_err(io),
        })
        .unwrap();
        assert!(fs::metadata(&path).unwrap().len() < 100_000, "{name}");
        fs::copy(&path, folder.path(&format!("2{name}"))).unwrap();
        let second = format!("2{name}");
        for files in [&[name][..], &[name, &second]] {
            let args = [&["fit"][..], files, &["-o", "m", "--max-memory", "20M"]].concat();
            let run = folder.run(&args);
            assert_eq!(run.code, 2, "{run:?}");
            for part in ["bomb", "of memory, but the limit is"] {
                assert!(run.stderr.contains(part), "no '{part}' in {run:?}");
            }
        }
    }
}

fn io(source: std::io::Error) -> DataError {
    DataError::Io { file: String::new(), action: "write", source }
}

#[test]
fn messages_are_short_and_show_numbers_as_typed() {
    let folder = fitted();
    let long = "x".repeat(50_000);
    folder.write("long.csv", &format!("city,tall,age,weight\nBonn,yes,{long},80\n"));
    let rows: Vec<String> = (0..30).map(|n| format!("{n}.25,{}\n", n % 3)).collect();
    folder.write("big.csv", &format!("a,b\n1e308,2\n-1e308,1\n{}", rows.concat()));
    let question = format!("P(city='{long}')");
    let parentheses = format!("P({}", "(".repeat(3000));
    let cases: &[(&[&str], &[&str])] = &[
        (&["score", "m.model", "long.csv"], &["row 1", "'xxx", "…' is not"]),
        (&["query", "m.model", &question], &["…' is not one of", "at character 8"]),
        (&["query", "m.model", &parentheses], &["too many parentheses"]),
        (&["fit", "big.csv", "-o", "n.model"], &["span -1e308 to 1e308"]),
        (
            &["fit", "people.csv", "--atoms", "weight=1e300", "-o", "n.model"],
            &["the atom 1e300", "too many digits"],
        ),
    ];
    for (args, parts) in cases {
        let run = folder.run(args);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.len() < 600, "{} bytes of {run:?}", run.stderr.len());
        for part in *parts {
            assert!(run.stderr.contains(part), "no '{part}' in {run:?}");
        }
    }
}

#[test]
fn files_do_not_command_the_terminal() {
    let folder = fitted();
    fs::write(folder.path("evil.csv"), "age,\u{1b}[2Jb\n1,2\n").unwrap();
    let run = folder.run(&["score", "m.model", "evil.csv"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(!run.stderr.contains('\u{1b}'), "{run:?}");
}

/// A signal while the table was read, or before the first step, was remembered until there was a model.
#[cfg(unix)]
#[test]
fn a_signal_before_the_first_step_ends_a_fit_at_once() {
    let folder = Folder::new();
    for (name, number) in [("TERM", 15), ("INT", 2)] {
        if is_ignored(number) {
            continue;
        }
        // The table never ends.
        let mut child = folder
            .command(&["fit", "-", "-o", "m.model"])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(500));
        signal(&child, name);
        assert_eq!(exit_code(&mut child), Some(128 + number.cast_signed()), "{name}");
        assert!(!folder.path("m.model").exists());
        assert_eq!(leftovers(&folder), Vec::<String>::new());
    }
}

/// A few megabytes with a million columns took gigabytes and minutes.
#[test]
fn circuits_beyond_the_memory_limit_are_refused_or_narrower() {
    let folder = Folder::new();
    let row = |name: &dyn Fn(usize) -> String| (0..3000).map(name).collect::<Vec<_>>().join(",");
    let rows: Vec<String> = (0..4).map(|r| row(&|c| ((c >> r) % 2).to_string())).collect();
    folder.write("wide.csv", &format!("{}\n{}\n", row(&|c| format!("c{c}")), rows.join("\n")));
    let fit = ["fit", "wide.csv", "-o", "m.model", "--epochs", "1", "--structure", "balanced"];
    let limited = |limit| [&["--max-memory", limit][..], &fit].concat();
    assert_refused(&folder, &limited("20M"), &["columns", "limit is", "--drop", "--max-memory 1G"]);
    let narrow = folder.run(&[&limited("32M")[..], &["--json"]].concat()).json();
    assert!(narrow["width"].as_u64().unwrap() < 8, "{narrow}");
}
