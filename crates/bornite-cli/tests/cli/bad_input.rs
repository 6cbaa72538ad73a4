use std::process::Stdio;

use super::support::Folder;

/// Expects exit code 2, nothing on standard output, one message with all of these parts, and no new file.
pub(crate) fn assert_refused(folder: &Folder, args: &[&str], parts: &[&str]) {
    let before = folder.names();
    let run = folder.run(args);
    assert_eq!(run.code, 2, "{args:?}: {run:?}");
    assert_eq!(run.stdout, "", "{args:?}");
    assert!(run.stderr.starts_with("error: "), "{args:?}: {}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{args:?}: {}", run.stderr);
    assert!(!run.stderr.contains(".bornite-"), "{args:?}: {}", run.stderr);
    for part in parts {
        assert!(run.stderr.contains(part), "{args:?}: no '{part}' in: {}", run.stderr);
    }
    assert_eq!(folder.names(), before, "{args:?}");
}

#[test]
fn a_missing_file_is_named() {
    let folder = Folder::new();
    for args in [
        &["circuit", "check", "none.json"][..],
        &["circuit", "info", "none.json"],
        &["circuit", "square", "none.json", "-o", "s.json"],
        &["circuit", "orthonormalize", "none.json", "-o", "s.json"],
        &["circuit", "evaluate", "none.json", "x0=1"],
        &["circuit", "marginal", "none.json", "x0=1"],
        &["circuit", "plot", "none.json", "-o", "s.svg"],
    ] {
        assert_refused(&folder, args, &["none.json", "does it exist"]);
    }
}

#[test]
fn a_bad_query_points_at_its_character() {
    let folder = Folder::new();
    for (query, parts) in [
        ("x0=1; x1=0", &["expected ','", "\n  x0=1; x1=0\n      ^"][..]),
        ("y0=1", &["there is no variable 'y0'", "did you mean 'x0'?"]),
        ("x0=2", &["cannot be 2", "0 to 1"]),
        ("x0=", &["expected a number"]),
        ("x0=1, x0=0", &["named twice"]),
    ] {
        assert_refused(&folder, &["circuit", "marginal", "c.json", query], parts);
        assert_refused(&folder, &["circuit", "evaluate", "c.json", query], parts);
        assert_refused(&folder, &["circuit", "plot", "c.json", query, "-o", "c.svg"], parts);
    }
    let parts = ["'x1' has no value", "x1=0"];
    assert_refused(&folder, &["circuit", "evaluate", "c.json", "x0=1"], &parts);
}

#[test]
fn a_bad_file_is_refused_with_its_place() {
    let folder = Folder::new();
    for (text, part) in [
        ("", "not a circuit file"),
        ("{", "invalid JSON"),
        (r#"{"variables": [], "layers": [], "output": 0}"#, "bad.json"),
        (
            r#"{"variables": [{"name": "x", "domain": {"finite": 2}}],
            "layers": [{"kind": "input", "variable": "x", "basis": {"kind": "indicator"}},
                       {"kind": "sum", "input": 0, "weight": [[1]]}], "output": 1}"#,
            "layer 1",
        ),
    ] {
        folder.write("bad.json", text);
        assert_refused(&folder, &["circuit", "check", "bad.json"], &["bad.json", part]);
        assert_refused(&folder, &["circuit", "marginal", "bad.json", ""], &["bad.json", part]);
    }
}

#[test]
fn a_circuit_that_is_zero_has_no_distribution() {
    let folder = Folder::new();
    let zero = super::support::TWO_BITS.replace("[[1, [0, 1], 2, 0]]", "[[0, 0, 0, 0]]");
    folder.write("zero.json", &zero);
    for args in [
        &["circuit", "marginal", "zero.json", "x0=1"][..],
        &["circuit", "marginal", "zero.json", "x0=1", "--square"],
        &["circuit", "orthonormalize", "zero.json", "-o", "o.json"],
    ] {
        assert_refused(&folder, args, &["encodes no distribution"]);
    }
    let check = folder.circuit(&["check", "zero.json", "--json"]).json();
    assert_eq!(check["log_partition"], serde_json::Value::Null);
}

#[test]
fn an_output_that_cannot_be_written_leaves_nothing() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("taken")).unwrap();
    for output in ["none/out.json", "taken"] {
        for args in [
            &["circuit", "new", "--variables", "2", "-o", output][..],
            &["circuit", "square", "c.json", "-o", output],
            &["circuit", "orthonormalize", "c.json", "-o", output],
            &["circuit", "plot", "c.json", "-o", output],
        ] {
            assert_refused(&folder, args, &[output]);
        }
    }
    assert_refused(&folder, &["demo", "-o", "c.json"], &["c.json", "--output"]);
}

#[test]
fn bad_flags_of_new_are_named() {
    let folder = Folder::new();
    for (flags, part) in [
        ("--tree balanced", "--variables N"),
        ("--tree oak --variables 3", "nested list"),
        ("--tree image:0x3", "image size"),
        ("--tree image:99999999999x99999999999", "image size"),
        ("--tree image", "image size"),
        ("--tree [0,0]", "variable 0"),
        ("--tree [0,1] --variables 3", "omit the flag"),
        ("--variables 0", "from 1 to"),
        ("--variables 2 --width 0", "--width 0"),
        ("--variables 2 --output-width 0", "--output-width 0"),
        ("--variables 64 --domain finite:100000 --width 100000", "smaller --width"),
        ("--variables 2 --domain finite:0", "finite:V"),
        ("--variables 2 --domain interval:1,0", "interval:A,B"),
        ("--variables 2 --domain square", "half-line"),
        ("--variables 2 --domain real --basis legendre", "is not defined on"),
        ("--variables 2 --domain real --functions 0", "function"),
        ("--variables 2 --domain real --scale -1", "scale"),
    ] {
        let args: Vec<&str> =
            ["circuit", "new", "-o", "n.json"].into_iter().chain(flags.split(' ')).collect();
        assert_refused(&folder, &args, &[part]);
    }
    assert_refused(&folder, &["bench", "paper", "--max-width", "1"], &["--max-width 1"]);
    assert_refused(&folder, &["bench", "paper", "--image", "big"], &["HxW"]);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    let args = ["circuit", "new", "--variables", "5000", "-o", "many.json"];
    assert_eq!(folder.run(&args).code, 0);
    let mut child = folder
        .command(&["circuit", "info", "many.json", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_header_with_years_is_one_and_flags_overrule_what_is_found() {
    let folder = Folder::new();
    let row = |n: usize| format!("{},{},{}", ["DE", "FR"][n % 2], n * 7 % 13, n % 3);
    let rows = (0..40).map(row).collect::<Vec<_>>().join("\n") + "\n";
    folder.write("t.csv", &format!("country,2019,2020\n{rows}"));
    let fit = |more: &[&str]| {
        let args = ["fit", "t.csv", "-o", "m.model", "--width", "2", "--epochs", "1"];
        folder.run(&[&args[..], more].concat())
    };
    let run = fit(&[]);
    assert!(run.stderr.contains("including '2019'; use --no-header"), "{run:?}");
    let run = folder.run(&["query", "m.model", "P(\"2019\" < 20)"]);
    assert_eq!(run.code, 0, "{run:?}");
    let run = fit(&["--header"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let run = fit(&["--no-header"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(folder.run(&["query", "m.model", "P(x1 < 20)"]).code, 0);
    folder.write("r.csv", &rows);
    let run = folder.run(&["score", "m.model", "r.csv"]);
    assert!(run.stderr.contains("read as a row, and the columns are x0 to x2"), "{run:?}");
    assert_eq!(folder.run(&["score", "m.model", "t.csv", "--header", "--no-header"]).code, 2);
}
