//! Every command that writes a file, with injected faults: a disk that fills up at any point, a process that is killed
//! at any time, and memory that runs out. The output is unchanged or complete, and no temporary file is left.

#![cfg(unix)]

use std::fs;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::Instant;

use crate::model::fitted;
use crate::support::Folder;

/// The previous content of an output.
const OLD: &[u8] = b"what was there before";
/// The unit of `ulimit -f` in `sh`, in bytes.
const BLOCK: usize = 512;

/// Commands, and the file that each of them writes.
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
    ("impute m.model people.csv --out-dir parts --force", "parts/people.csv"),
    ("score m.model people.csv --out-dir parts --force", "parts/people.csv"),
];

/// Size limits in blocks at which a file of this size cannot be completed, from nothing to almost all of it.
fn points(bytes: usize) -> Vec<usize> {
    // The last block is not full.
    let blocks = bytes / BLOCK;
    let mut points = vec![0, 1, blocks / 3, blocks / 2, 2 * blocks / 3, blocks];
    points.retain(|&point| point <= blocks);
    points.sort_unstable();
    points.dedup();
    points
}

fn prepared() -> Folder {
    let folder = fitted();
    let made = folder.run(&["compress", "people.csv", "--epochs", "1", "-o", "people.brz"]);
    assert_eq!(made.code, 0, "{made:?}");
    fs::create_dir(folder.path("parts")).expect("a folder");
    folder
}

/// The exit status of the command under shell limits, such as `ulimit -f 1`.
fn limited(folder: &Folder, limits: &str, command: &str) -> ExitStatus {
    limited_output(folder, limits, command).status
}

/// The exit status and the message under shell limits.
fn limited_output(folder: &Folder, limits: &str, command: &str) -> Output {
    let words: Vec<String> = command.split(' ').map(|word| format!("'{word}'")).collect();
    let line = format!("{limits}; exec \"$0\" {}", words.join(" "));
    Command::new("sh")
        .args(["-c", &line, env!("CARGO_BIN_EXE_bornite")])
        .current_dir(folder.path("."))
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .output()
        .expect("a shell")
}

/// All temporary files in the folder and below.
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

/// The output without any fault.
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
        let mut failures = 0;
        for point in points(whole.len()) {
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

/// If a checkpoint cannot be written, the fit reports it at once, keeps the old one and continues.
#[test]
fn a_checkpoint_without_space_does_not_cost_the_fit() {
    let folder = prepared();
    let fit = "fit people.csv --epochs 3 --width 3";
    let again = format!("{fit} --resume state");
    let save = "--checkpoint state --checkpoint-every 0.000001s";
    let command = format!("{fit} {save} -o out.model");
    let model = whole(&folder, &command, "out.model");
    let state = fs::read(folder.path("state")).unwrap();
    assert!(state.len() / BLOCK > model.len() / BLOCK + 1, "one limit is for both");
    let (mut kept, mut lost) = (0, 0);
    for point in points(state.len()) {
        fs::write(folder.path("out.model"), OLD).unwrap();
        fs::write(folder.path("state"), OLD).unwrap();
        let run = limited_output(&folder, &format!("ulimit -f {point}"), &command);
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{said} at {point}");
        assert_eq!(said.matches("warning: cannot save the checkpoint: ").count(), 1, "{said}");
        // The first checkpoints are short: the last one that fit is complete.
        if fs::read(folder.path("state")).unwrap() != OLD {
            assert!(limited(&folder, "true", &format!("{again} -o of-it.model")).success());
            assert!(fs::read(folder.path("of-it.model")).unwrap() == model, "at {point}");
        }
        let found = fs::read(folder.path("out.model")).unwrap();
        if found == model {
            assert!(said.contains("the model was saved, but its last checkpoint was not"));
            kept += 1;
        } else {
            assert!(found == OLD, "{} bytes at {point}", found.len());
            lost += 1;
        }
        assert_eq!(temporary(&folder), Vec::<String>::new(), "at {point}");
    }
    assert!(kept > 0 && lost > 0, "{kept} and {lost}");
    // A fit that resumes from a checkpoint and overwrites it.
    fs::write(folder.path("state"), &state).unwrap();
    let again = format!("{again} {save} -o out.model");
    for point in [0, 1, model.len() / BLOCK] {
        fs::write(folder.path("out.model"), OLD).unwrap();
        let run = limited_output(&folder, &format!("ulimit -f {point}"), &again);
        assert!(run.status.code().is_some());
        let found = fs::read(folder.path("out.model")).unwrap();
        assert!(found == OLD || found == model, "{} bytes at {point}", found.len());
        assert_eq!(temporary(&folder), Vec::<String>::new(), "at {point}");
    }
    fs::write(folder.path("out.model"), OLD).unwrap();
    assert!(limited(&folder, "true", &again).success());
    assert!(fs::read(folder.path("out.model")).unwrap() == model);
}

/// The parts of an output are complete or absent, and work continues with those that are absent.
#[test]
fn parts_without_space_are_written_by_the_next_run() {
    let folder = prepared();
    let text = folder.read("people.csv");
    let (header, rows) = text.split_once('\n').unwrap();
    fs::create_dir(folder.path("in")).unwrap();
    let names = ["a.csv", "b.csv", "c.csv"];
    for (n, name) in names.iter().enumerate() {
        // The second part is the longest.
        let rows = rows.repeat([1, 6, 3][n]);
        fs::write(folder.path("in").join(name), format!("{header}\n{rows}")).unwrap();
    }
    let command =
        "impute m.model in/a.csv in/b.csv in/c.csv --with sample --out-dir parts --resume";
    assert!(limited(&folder, "true", command).success());
    let part = |name: &str| fs::read(folder.path("parts").join(name)).ok();
    let whole = names.map(|name| part(name).unwrap());
    let mut absent = 0;
    for point in points(whole[1].len()) {
        for name in &names[1..] {
            fs::remove_file(folder.path("parts").join(name)).unwrap();
        }
        fs::write(folder.path("parts/a.csv"), OLD).unwrap();
        assert!(!limited(&folder, &format!("ulimit -f {point}"), command).success());
        assert_eq!(part("a.csv").as_deref(), Some(OLD));
        for (name, whole) in names.iter().zip(&whole).skip(1) {
            let found = part(name);
            assert!(found.is_none() || found.as_ref() == Some(whole), "{name} at {point}");
            absent += u32::from(found.is_none());
        }
        assert_eq!(temporary(&folder), Vec::<String>::new(), "at {point}");
        assert!(limited(&folder, "true", command).success());
        assert_eq!([part("b.csv"), part("c.csv")], [1, 2].map(|n| Some(whole[n].clone())));
    }
    assert!(absent > 0);
}

/// Every file of the demo is unchanged or complete, however far the demo got.
#[test]
fn a_demo_without_space_leaves_whole_files() {
    let folder = prepared();
    let command = "demo -o parts --time 0.2s";
    assert!(limited(&folder, "true", command).success());
    let entries = fs::read_dir(folder.path("parts")).unwrap();
    let names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    assert!(names.len() >= 7, "{names:?}");
    let is_whole = |name: &str| {
        let path = format!("parts/{name}");
        let runs = |args: &[&str]| folder.run(args).code == 0;
        match name.rsplit_once('.').unwrap().1 {
            "svg" => folder.read(&path).trim_end().ends_with("</svg>"),
            "html" => folder.read(&path).trim_end().ends_with("</html>"),
            "csv" => folder.read(&path).lines().count() == 1001,
            "model" => runs(&["info", &path]),
            // The model was written before.
            "brz" => runs(&["decompress", &path, "--model", "parts/images.model", "-o", "back"]),
            other => panic!("nobody knows what is in a .{other}"),
        }
    };
    for point in [0, 12, 200] {
        for name in &names {
            fs::write(folder.path("parts").join(name), OLD).unwrap();
        }
        let status = limited(&folder, &format!("ulimit -f {point}"), command);
        assert_eq!(status.code(), Some(2), "at {point}");
        for name in &names {
            let is_old = fs::read(folder.path("parts").join(name)).unwrap() == OLD;
            assert!(is_old || is_whole(name), "{name} at {point}");
        }
        assert_eq!(temporary(&folder), Vec::<String>::new(), "at {point}");
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
        // Golden-ratio steps are evenly distributed for any number of them.
        let delay = time.mul_f64(f64::from(kill) * 0.618_033_988_75 % 1.0);
        thread::sleep(delay);
        let name = ["TERM", "KILL", "INT", "HUP"][kill as usize % 4];
        let mut sent = Command::new("kill");
        sent.args([&format!("-{name}"), &child.id().to_string()]).stderr(Stdio::null());
        // The process may have ended by itself.
        let _gone = sent.status().unwrap();
        let _status = child.wait().unwrap();
        let found = fs::read(folder.path(output)).unwrap();
        assert!(found == OLD || found == whole, "{name} after {delay:?}: {}", found.len());
        if name == "KILL" {
            // Nothing can clean up after SIGKILL, but the next run is not disturbed either.
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
            // If an allocation fails, the process ends at once, as if it were killed.
            for left in temporary(&folder).iter().filter(|_| status.code().is_none()) {
                fs::remove_file(folder.path(left)).unwrap();
            }
            assert_eq!(temporary(&folder), Vec::<String>::new(), "{command} at {kilobytes}");
        }
    }
}
