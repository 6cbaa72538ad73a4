//! Every command that writes a file, with faults in the system below it: a disk that fills up at any point, a process that is
//! killed at any time, and memory that runs out. The output is what it was or whole, and no temporary file is left.

#![cfg(unix)]

use std::fs;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Instant;

use crate::model::fitted;
use crate::support::Folder;

/// What is in the place of an output before.
const OLD: &[u8] = b"what was there before";

/// Commands and the one file that each of them writes.
const COMMANDS: [(&str, &str); 19] = [
    ("fit people.csv --epochs 1 --width 2 -o out.model", "out.model"),
    ("sample m.model -n 900 -o out.csv", "out.csv"),
    ("sample m.model -n 900 -o out.parquet", "out.parquet"),
    ("impute m.model people.csv -o out.csv", "out.csv"),
    ("score m.model people.csv -o out.csv", "out.csv"),
    ("predict m.model people.csv --column city --proba -o out.csv", "out.csv"),
    ("query m.model P(tall=yes) --each people.csv -o out.csv", "out.csv"),
    ("condition m.model age>30 -o out.model", "out.model"),
    ("truncate m.model --width 2 -o out.model", "out.model"),
    ("compress people.csv --epochs 1 -o out.brz", "out.brz"),
    ("decompress people.brz -o out.csv", "out.csv"),
    ("report m.model -o out.html", "out.html"),
    ("plot m.model --what marginals -o out.svg", "out.svg"),
    ("circuit new --tree balanced --variables 4 --domain finite:2 -o out.json", "out.json"),
    ("circuit square c.json -o out.json", "out.json"),
    ("circuit orthonormalize c.json -o out.json", "out.json"),
    ("circuit plot c.json -o out.svg", "out.svg"),
    ("impute m.model people.csv --out-dir parts", "parts/people.csv"),
    ("score m.model people.csv --out-dir parts", "parts/people.csv"),
];

fn prepared() -> Folder {
    let folder = fitted();
    let made = folder.run(&["compress", "people.csv", "--epochs", "1", "-o", "people.brz"]);
    assert_eq!(made.code, 0, "{made:?}");
    fs::create_dir(folder.path("parts")).expect("a folder");
    folder
}

/// How the command ends under limits of the shell, such as `ulimit -f 1`.
fn limited(folder: &Folder, limits: &str, command: &str) -> ExitStatus {
    let words: Vec<String> = command.split(' ').map(|word| format!("'{word}'")).collect();
    let line = format!("{limits}; exec \"$0\" {}", words.join(" "));
    Command::new("sh")
        .args(["-c", &line, env!("CARGO_BIN_EXE_bornite")])
        .current_dir(folder.path("."))
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("a shell")
}

/// All temporary files, in the folder and below.
fn temporary(folder: &Folder) -> Vec<String> {
    let mut found = Vec::new();
    for place in [".", "parts"] {
        let entries = fs::read_dir(folder.path(place)).expect("a folder");
        let names =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
        found.extend(names.filter(|name| name.starts_with(".bornite")));
    }
    found
}

/// The bytes of an output that nothing has disturbed.
fn whole(folder: &Folder, command: &str, output: &str) -> Vec<u8> {
    let _absent = fs::remove_file(folder.path(output));
    assert!(limited(folder, "true", command).success(), "{command}");
    assert_eq!(temporary(folder), Vec::<String>::new(), "{command}");
    fs::read(folder.path(output)).expect("an output")
}

#[test]
fn a_disk_that_is_full_at_any_point_leaves_what_was_there() {
    let folder = prepared();
    for (command, output) in COMMANDS {
        let whole = whole(&folder, command, output);
        // The shell counts in blocks, of which the last one is not full.
        let blocks = whole.len() / 1024;
        let mut points = vec![0, 1, blocks / 3, blocks / 2, 2 * blocks / 3, blocks];
        points.retain(|&point| point <= blocks);
        points.sort_unstable();
        points.dedup();
        let mut failures = 0;
        for point in points {
            fs::write(folder.path(output), OLD).unwrap();
            let status = limited(&folder, &format!("ulimit -f {point}"), command);
            let found = fs::read(folder.path(output)).unwrap();
            let is_right = if status.success() { found == whole } else { found == OLD };
            assert!(is_right, "{command}: {status}, {} bytes at {point}", found.len());
            assert!(status.code().is_some(), "{command}: {status} at {point}");
            assert_eq!(temporary(&folder), Vec::<String>::new(), "{command} at {point}");
            failures += u32::from(!status.success());
        }
        assert!(failures > 0, "{command}: nothing failed");
    }
}

#[test]
fn a_process_that_is_killed_at_any_time_leaves_what_was_there() {
    let folder = prepared();
    let (command, output) = ("sample m.model -n 60000 -o out.csv", "out.csv");
    let start = Instant::now();
    let whole = whole(&folder, command, output);
    let time = start.elapsed();
    let kills = if std::env::var_os("BORNITE_LONG").is_some() { 600 } else { 16 };
    for kill in 0..kills {
        fs::write(folder.path(output), OLD).unwrap();
        let args: Vec<&str> = command.split(' ').collect();
        let mut child = folder.command(&args).stdout(Stdio::null()).spawn().unwrap();
        // Golden steps are spread evenly, however many there are.
        let delay = time.mul_f64(f64::from(kill) * 0.618_033_988_75 % 1.0);
        thread::sleep(delay);
        let name = ["TERM", "KILL", "INT", "HUP"][kill as usize % 4];
        let mut sent = Command::new("kill");
        sent.args([&format!("-{name}"), &child.id().to_string()]).stderr(Stdio::null());
        // It may have ended by itself.
        let _gone = sent.status().unwrap();
        let _status = child.wait().unwrap();
        let found = fs::read(folder.path(output)).unwrap();
        assert!(found == OLD || found == whole, "{name} after {delay:?}: {}", found.len());
        if name == "KILL" {
            // Nobody can clean up after that, but nothing is in the way of the next run either.
            for left in temporary(&folder) {
                fs::remove_file(folder.path(&left)).unwrap();
            }
        }
        assert_eq!(temporary(&folder), Vec::<String>::new(), "{name} after {delay:?}");
    }
}

#[test]
fn memory_that_runs_out_leaves_what_was_there() {
    let folder = prepared();
    for (command, output) in [COMMANDS[0], COMMANDS[1], COMMANDS[3], COMMANDS[9], COMMANDS[11]] {
        let whole = whole(&folder, command, output);
        for kilobytes in [30_000, 90_000, 150_000, 600_000] {
            fs::write(folder.path(output), OLD).unwrap();
            let limits = format!("ulimit -c 0; ulimit -v {kilobytes}");
            let status = limited(&folder, &limits, command);
            let found = fs::read(folder.path(output)).unwrap();
            let is_right = if status.success() { found == whole } else { found == OLD };
            assert!(is_right, "{command}: {status}, {} bytes at {kilobytes}", found.len());
            // Where an allocation fails the process ends at once, as if it were killed.
            for left in temporary(&folder).iter().filter(|_| status.code().is_none()) {
                fs::remove_file(folder.path(left)).unwrap();
            }
            assert_eq!(temporary(&folder), Vec::<String>::new(), "{command} at {kilobytes}");
        }
    }
}
