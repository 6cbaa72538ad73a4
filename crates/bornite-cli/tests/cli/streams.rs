//! Tables in pieces: multiple files, patterns, standard input, parts and interruptions.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use crate::bad_input::assert_refused;
use crate::model::{fitted, people};
use crate::support::{Folder, Run};

/// The rows of people in three files with some missing cells, and all of them in `all.csv`.
fn parts() -> Folder {
    let folder = fitted();
    let text = people();
    let (head, rows) = text.split_once('\n').expect("a head");
    let rows: Vec<String> = rows
        .lines()
        .enumerate()
        .map(|(n, line)| {
            let cell = |(k, cell): (usize, &'_ str)| {
                if (n + k) % 5 == 0 { String::new() } else { cell.to_owned() }
            };
            line.split(',').enumerate().map(cell).collect::<Vec<_>>().join(",")
        })
        .collect();
    let file = |rows: &[String]| format!("{head}\n{}\n", rows.join("\n"));
    folder.write("all.csv", &file(&rows));
    fs::create_dir(folder.path("in")).expect("a new folder");
    for (n, rows) in rows.chunks(90).enumerate() {
        folder.write(&format!("in/p{n}.csv"), &file(rows));
    }
    folder
}

fn ok(run: Run) -> Run {
    assert_eq!(run.code, 0, "{run:?}");
    run
}

#[test]
fn many_files_are_one_table() {
    let folder = parts();
    let whole = ok(folder.run(&["score", "m.model", "all.csv", "--json"])).json();
    let many = ok(folder.run(&["score", "m.model", "in/*.csv", "--json"])).json();
    assert_eq!(whole, many);
    assert_eq!(many["rows"], 240);
    for (with, seed) in [("median", "0"), ("sample", "4")] {
        let impute = |table: &str, output: &str| {
            let args = ["impute", "m.model", table, "--with", with, "--seed", seed, "-o", output];
            ok(folder.run(&args));
            folder.read(output)
        };
        assert_eq!(impute("all.csv", "whole.csv"), impute("in/p?.csv", "many.csv"), "{with}");
    }
    let predict = |table| {
        ok(folder.run(&["predict", "m.model", table, "--column", "weight", "--interval", "0.5"]))
            .stdout
    };
    assert_eq!(predict("all.csv"), predict("in/*.csv"));
    let question = "P(city='Bonn', age > 40 | tall='yes')";
    let count =
        |table| ok(folder.run(&["query", "m.model", question, "--json", "--data", table])).json();
    assert_eq!(count("all.csv"), count("in/*.csv"));
    let lowest = |table| {
        let args = ["score", "m.model", table, "--anomalies", "4", "--json"];
        ok(folder.run(&args)).json()["anomalies"].clone()
    };
    let (whole, many) = (lowest("all.csv"), lowest("in/*.csv"));
    for (a, b) in whole.as_array().unwrap().iter().zip(many.as_array().unwrap()) {
        assert_eq!((&a["log_density"], &a["cells"]), (&b["log_density"], &b["cells"]));
        let file = b["file"].as_str().unwrap();
        let n: u64 = file.trim_start_matches("in/p").trim_end_matches(".csv").parse().unwrap();
        assert_eq!(a["row"].as_u64().unwrap(), 90 * n + b["row"].as_u64().unwrap());
    }
    assert_refused(&folder, &["score", "m.model", "none/*.csv"], &["none/*.csv", "no such file"]);
    assert_refused(&folder, &["score", "m.model", "in"], &["in", "folder", "in/*.parquet"]);
}

#[test]
fn the_standard_input_is_a_table() {
    let folder = parts();
    let mut child = folder
        .command(&["impute", "m.model", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(folder.read("all.csv").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    ok(folder.run(&["impute", "m.model", "all.csv", "-o", "full.csv"]));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), folder.read("full.csv"));
}

/// Fitting, compressing and decompressing read standard input; the last two also write standard output.
#[test]
fn pipes_are_files() {
    let folder = parts();
    let piped = |args: &[&str], input: &[u8]| {
        let mut child = folder
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command runs");
        child.stdin.take().expect("a pipe").write_all(input).expect("it is read");
        let output = child.wait_with_output().expect("an end");
        assert!(output.status.success(), "{args:?}");
        output.stdout
    };
    let table = folder.read("all.csv").into_bytes();
    let flags = ["--epochs", "2", "--width", "2", "-o"];
    piped(&[&["fit", "-"][..], &flags, &["a.model"]].concat(), &table);
    ok(folder.run(&[&["fit", "all.csv"][..], &flags, &["b.model"]].concat()));
    let score = |model| ok(folder.run(&["score", model, "all.csv", "--json"])).stdout;
    assert_eq!(score("a.model"), score("b.model"));
    let packed = piped(&[&["compress", "-"][..], &flags, &["-"]].concat(), &table);
    ok(folder.run(&[&["compress", "all.csv"][..], &flags, &["all.brz"]].concat()));
    assert_eq!(packed, fs::read(folder.path("all.brz")).unwrap());
    assert_eq!(piped(&["decompress", "-", "-o", "-"], &packed), table);
    assert!(!folder.path("-").exists());
}

#[test]
fn many_files_are_compressed_as_parts() {
    let folder = parts();
    let compress = ["compress", "in/*.csv", "--out-dir", "out", "--epochs", "2", "--width", "2"];
    let json = ok(folder.run(&[&compress[..], &["--json"]].concat())).json();
    assert_eq!((json["parts"].as_array().unwrap().len(), &json["kept"]), (3, &0.into()));
    assert_refused(&folder, &compress, &["out/p0.csv.brz", "--resume", "--force"]);
    let whole = fs::read(folder.path("out/p1.csv.brz")).unwrap();
    fs::remove_file(folder.path("out/p1.csv.brz")).unwrap();
    let text = ok(folder.run(&[&compress[..], &["--resume"]].concat())).stdout;
    assert!(text.contains("wrote out/p1.csv.brz") && text.contains("2 parts already done"));
    assert_eq!(fs::read(folder.path("out/p1.csv.brz")).unwrap(), whole);
    for n in 0..3 {
        ok(folder.run(&["decompress", &format!("out/p{n}.csv.brz"), "-o", "back.csv"]));
        assert_eq!(folder.read("back.csv"), folder.read(&format!("in/p{n}.csv")));
    }
    assert_refused(&folder, &["compress", "in/*.csv", "-o", "x.brz"], &["--out-dir"]);
    assert_refused(&folder, &["compress", "in/p0.csv"], &["-o", "--out-dir"]);
    assert_refused(&folder, &["compress", "in/p0.csv", "-o", "in/p0.csv"], &["overwrite an input"]);
}

#[test]
fn scores_are_printed_and_written_alike() {
    let folder = parts();
    let lines = ok(folder.run(&["score", "m.model", "in/*.csv", "--rows"])).stdout;
    let json = ok(folder.run(&["score", "m.model", "in/*.csv", "--rows", "--json"])).json();
    let found: Vec<f64> = lines.lines().map(|line| line.parse().unwrap()).collect();
    let listed: Vec<f64> =
        json["log_densities"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    assert_eq!(found, listed);
    let mean = json["mean_log_likelihood"].as_f64().unwrap();
    assert_eq!(mean, found.iter().sum::<f64>() / 240.0);
    let text = ok(folder.run(&["score", "m.model", "in/*.csv", "-o", "s.csv"])).stdout;
    assert!(text.contains("wrote s.csv: 240 rows") && text.contains("bits per dimension"));
    let table = folder.read("s.csv");
    let written: Vec<f64> = table.lines().skip(1).map(|line| line.parse().unwrap()).collect();
    assert_eq!((table.lines().next(), written), (Some("log_density"), found));
}

#[test]
fn a_question_is_answered_for_every_row_of_tables() {
    let folder = parts();
    let each = |question: &str, table: &str| {
        ok(folder.run(&["query", "m.model", question, "--each", table])).stdout
    };
    let question = "P(tall='yes')";
    assert_eq!(each(question, "all.csv"), each(question, "in/*.csv"));
    let found = each(question, "in/p0.csv");
    assert_eq!(found.lines().count(), 91);
    // The second row knows no 'tall' and no 'weight' is left out.
    let row = folder.read("in/p0.csv").lines().nth(1).unwrap().to_owned();
    let cells: Vec<&str> = row.split(',').collect();
    assert_eq!(cells[0], "", "{row}");
    let asked = format!("P(tall='yes' | age={}, weight={})", cells[2], cells[3]);
    let direct = ok(folder.run(&["query", "m.model", &asked, "--json"])).json();
    let value: f64 = found.lines().nth(1).unwrap().parse().unwrap();
    // A weight on a grid is a point in a row, and an interval in a question.
    assert!((value - direct["value"].as_f64().unwrap()).abs() < 0.01);
    assert_refused(
        &folder,
        &["query", "m.model", "std(age)", "--each", "all.csv"],
        &["row by row"],
    );
    assert_refused(&folder, &["query", "m.model", question, "-o", "a.csv"], &["--each"]);
}

#[test]
fn parts_are_whole_and_kept() {
    let folder = parts();
    let impute =
        ["impute", "m.model", "in/*.csv", "--with", "sample", "--seed", "9", "--out-dir", "out"];
    let json = ok(folder.run(&[&impute[..], &["--json"]].concat())).json();
    assert_eq!((&json["parts"], &json["kept"], &json["rows"]), (&3.into(), &0.into(), &240.into()));
    let read = || [0, 1, 2].map(|n| folder.read(&format!("out/p{n}.csv")));
    let whole = read();
    // Parts differ, and do not depend on each other.
    assert_refused(&folder, &impute, &["out/p0.csv", "--resume", "--force"]);
    fs::remove_file(folder.path("out/p1.csv")).unwrap();
    folder.write("out/p2.csv", "kept as it is");
    let text = ok(folder.run(&[&impute[..], &["--resume"]].concat())).stdout;
    assert!(text.contains("wrote 1 part to out: 90 rows") && text.contains("2 parts already done"));
    assert_eq!(read(), [&whole[0], &whole[1], &"kept as it is".to_owned()].map(Clone::clone));
    ok(folder.run(&[&impute[..], &["--force"]].concat()));
    assert_eq!(read(), whole);
    assert_refused(
        &folder,
        &["impute", "m.model", "in/*.csv", "--out-dir", "in"],
        &["overwrite an input"],
    );
}

/// If a file in the middle is invalid, the parts before it are kept, and the rest continue once it is repaired.
#[test]
fn an_error_in_the_middle_names_the_file_and_work_goes_on() {
    let folder = parts();
    let sample = ["sample", "m.model", "-n", "99", "-o", "in/p1.parquet"];
    ok(folder.run(&sample));
    let good = fs::read(folder.path("in/p1.parquet")).unwrap();
    let inputs = ["in/p0.csv", "in/p1.parquet", "in/p2.csv"];
    let score = [&["score", "m.model"][..], &inputs, &["--out-dir", "out"]].concat();
    let broken: [(&[u8], &str); 3] = [
        (&good[..good.len() / 2], "Parquet"),
        (&[], "empty"),
        (b"city,tall\nBonn,yes\n", "Parquet"),
    ];
    for (bytes, part) in broken {
        fs::write(folder.path("in/p1.parquet"), bytes).unwrap();
        let run = folder.run(&[&score[..], &["--resume"]].concat());
        assert_eq!(run.code, 2, "{run:?}");
        for part in ["in/p1.parquet", part, "1 part finished", "--resume"] {
            assert!(run.stderr.contains(part), "no '{part}' in {run:?}");
        }
        let names: Vec<_> = fs::read_dir(folder.path("out"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(names, ["p0.csv"]);
    }
    fs::write(folder.path("in/p1.parquet"), good).unwrap();
    let run = ok(folder.run(&[&score[..], &["--resume"]].concat()));
    assert!(run.stdout.contains("wrote 2 parts to out") && run.stdout.contains("1 part already"));
    // With another schema or a cell of another type, the error gives the row within its own file.
    folder.write("in/x.csv", "city,tall\nBonn,yes\n");
    let args = ["score", "m.model", "in/p0.csv", "in/x.csv"];
    assert_refused(&folder, &args, &["in/x.csv", "no column 'age'"]);
    folder.write("in/x.csv", "city,tall,age,weight\nBonn,yes,30,80\nBonn,yes,old,80\n");
    assert_refused(&folder, &args, &["in/x.csv", "row 2", "'old'"]);
    folder.write("in/x.csv", "city,age,tall,weight\nBonn,30,yes,80\n");
    let impute = ["impute", "m.model", "in/p0.csv", "in/x.csv", "-o", "y.csv"];
    assert_refused(&folder, &impute, &["in/x.csv", "same order"]);
    assert!(!folder.path("y.csv").exists());
}

/// A full disk leaves no partial file.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let folder = parts();
    let run = folder.run(&["impute", "m.model", "in/*.csv", "-o", "/dev/full"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("/dev/full") && run.stderr.contains("space"), "{run:?}");
}

/// After a kill, work continues with the missing parts.
#[cfg(unix)]
#[test]
fn a_killed_process_leaves_whole_parts() {
    let folder = parts();
    for n in 3..40 {
        fs::copy(folder.path("in/p0.csv"), folder.path(&format!("in/p{n:02}.csv"))).unwrap();
    }
    let args = ["impute", "m.model", "in/*.csv", "--with", "mode", "--out-dir", "out"];
    let mut child = folder.command(&args).stdout(Stdio::null()).spawn().unwrap();
    let start = std::time::Instant::now();
    let count = || {
        fs::read_dir(folder.path("out")).map_or(0, |entries| {
            entries
                .filter(|e| !e.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'))
                .count()
        })
    };
    while count() < 2 && start.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = count();
    assert!(before >= 2);
    let json = ok(folder.run(&[&args[..], &["--resume", "--json"]].concat())).json();
    assert_eq!(json["kept"], before);
    assert_eq!(json["parts"].as_u64().unwrap() as usize + before, 40);
    ok(folder.run(&["impute", "m.model", "in/*.csv", "--with", "mode", "--out-dir", "again"]));
    for n in ["p0.csv", "p1.csv", "p2.csv", "p03.csv", "p39.csv"] {
        assert_eq!(folder.read(&format!("out/{n}")), folder.read(&format!("again/{n}")), "{n}");
    }
}

/// Several files are one table, which is fitted in pieces if it is larger than the limit.
#[test]
fn fits_take_many_files_of_any_size() {
    let folder = Folder::new();
    let text = people();
    let (header, rows) = text.split_once('\n').unwrap();
    for part in 0..3 {
        folder.write(&format!("part-{part}.csv"), &format!("{header}\n{}", rows.repeat(4)));
    }
    let fit = ["fit", "part-*.csv", "--epochs", "4", "--width", "3", "--json", "-o"];
    let whole = folder.run(&[&fit[..], &["a.model"]].concat()).json();
    assert_eq!((whole["rows"].as_u64(), whole["valid_rows"].as_u64()), (Some(2592), Some(288)));
    let pieces = folder.run(&[&fit[..], &["b.model", "--memory", "100K"]].concat()).json();
    let counts = [&pieces["rows"], &pieces["valid_rows"]].map(|n| n.as_u64().unwrap());
    assert!(counts[0] + counts[1] == 2880 && counts[1] < 100, "{counts:?}");
    let score = |name: &str| {
        let found = folder.run(&["score", name, "part-0.csv", "--json"]).json();
        found["mean_log_likelihood"].as_f64().unwrap()
    };
    assert!((score("a.model") - score("b.model")).abs() < 0.3);
    folder.write("part-9.csv", "a,b\n1,2\n");
    let run = folder.run(&[&fit[..], &["c.model"]].concat());
    assert!(run.code == 2 && run.stderr.contains("part-9.csv': its columns are a, b"), "{run:?}");
    let run = folder.run(&["fit", "-", "part-0.csv", "-o", "c.model"]);
    assert!(run.code == 2 && run.stderr.contains("cannot be combined"), "{run:?}");
}
