use std::fmt::Write;

use super::support::{Folder, keys};

/// Two thirds of the people in Bonn are tall; ages are 20 to 59, and the weight depends on the height.
pub(crate) fn people() -> String {
    let mut text = String::from("city,tall,age,weight\n");
    for n in 0..240_u32 {
        let (city, tall) = match n % 6 {
            0 | 1 => ("Bonn", true),
            2 => ("Bonn", false),
            3 => ("Essen", true),
            _ => ("Essen", false),
        };
        let weight = if tall { 80.0 } else { 60.0 } + f64::from(n * 37 % 101) / 10.0;
        let tall = if tall { "yes" } else { "no" };
        writeln!(text, "{city},{tall},{},{weight}", 20 + n * 7 % 40).expect("text");
    }
    text
}

/// A folder with `people.csv` and a quickly fitted `m.model`.
pub(crate) fn fitted() -> Folder {
    let folder = Folder::new();
    folder.write("people.csv", &people());
    let run = folder.run(&["fit", "people.csv", "-o", "m.model", "--epochs", "40", "--width", "4"]);
    assert_eq!(run.code, 0, "{run:?}");
    folder
}

#[test]
fn fit_says_what_it_found_and_the_baseline() {
    let folder = Folder::new();
    folder.write("people.csv", &people());
    let fit = ["fit", "people.csv", "-o", "m.model", "--epochs", "5", "--seed", "3"];
    let run = folder.run(&fit);
    // Five circuits with 24 validation rows each.
    let weights = "5, weights 0.20, 0.20, 0.20, 0.20, 0.20";
    for part in
        ["fitted m.model", "independent columns", "bits per dimension", "216", "24", weights]
    {
        assert!(run.text().contains(part), "no '{part}' in {}", run.stdout);
    }
    let one = ["fit", "people.csv", "-o", "q.model", "--epochs", "5", "--circuits", "1"];
    assert!(!folder.run(&one).text().contains("weights"));
    assert_eq!(run.stderr, "", "no bar where there is no terminal");
    let quick = folder.run(&[
        "fit",
        "people.csv",
        "-o",
        "q.model",
        "--effort",
        "fast",
        "--epochs",
        "2",
        "--json",
    ]);
    assert_eq!(quick.json()["width"], 8);
    let first = std::fs::read(folder.path("m.model")).unwrap();
    let report = folder.run(&[&fit[..], &["--json"]].concat()).json();
    assert_eq!(
        keys(&report),
        [
            "baseline",
            "bits_per_dimension",
            "circuits",
            "columns",
            "epochs",
            "left_out",
            "mean_log_likelihood",
            "output",
            "parameters",
            "rows",
            "seconds",
            "structure",
            "valid_rows",
            "width"
        ]
    );
    assert_eq!(std::fs::read(folder.path("m.model")).unwrap(), first, "the same seed, other bytes");
    folder.write("v.csv", &people());
    let report = folder
        .run(&[
            "fit",
            "people.csv",
            "--valid",
            "v.csv",
            "-o",
            "l.model",
            "--structure",
            "linear",
            "--time",
            "5s",
            "--epochs",
            "2",
            "--json",
        ])
        .json();
    assert_eq!((report["rows"].as_u64(), report["valid_rows"].as_u64()), (Some(240), Some(240)));
    assert_eq!(report["structure"], "linear");
    assert_eq!(folder.names(), ["c.json", "l.model", "m.model", "people.csv", "q.model", "v.csv"]);
}

/// A fit resumed from its last checkpoint gives the same model; a checkpoint of another fit is rejected.
#[test]
fn a_fit_goes_on_from_its_checkpoint() {
    let folder = Folder::new();
    folder.write("people.csv", &people());
    let fit = ["fit", "people.csv", "--epochs", "12", "--width", "3"];
    let write =
        ["--checkpoint", "fit.checkpoint", "--checkpoint-every", "0.000001s", "-o", "a.model"];
    let run = folder.run(&[&fit[..], &write].concat());
    assert_eq!(run.code, 0, "{run:?}");
    let resume = ["--resume", "fit.checkpoint", "-o", "b.model"];
    let run = folder.run(&[&fit[..], &resume].concat());
    assert_eq!(run.code, 0, "{run:?}");
    let bytes = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert_eq!(bytes("a.model"), bytes("b.model"));
    let run = folder.run(&[&fit[..], &resume, &["--rate", "0.5"]].concat());
    assert!(run.code != 0 && run.stderr.contains("different structure or options"), "{run:?}");
    let run = folder.run(&[&fit[..], &["--resume", "people.csv", "-o", "c.model"]].concat());
    assert!(run.code != 0 && run.stderr.contains("not a checkpoint file"), "{run:?}");
}

/// A fit continues from a model with other rows, and keeps its columns and circuits.
#[test]
fn a_fit_goes_on_from_a_model() {
    let folder = fitted();
    // A later day: everyone is from one city, except one person from a city that was never seen.
    let later = people().replace("Essen", "Bonn").replacen("Bonn", "Ulm", 1);
    folder.write("later.csv", &later);
    let info = |name: &str| folder.run(&["info", name, "--json"]).json();
    let fit = ["fit", "later.csv", "--from", "m.model", "--epochs", "20", "-o"];
    let report = folder.run(&[&fit[..], &["n.model", "--json"]].concat()).json();
    let (old, new) = (info("m.model"), info("n.model"));
    assert_eq!((&old["columns"], &old["layers"]), (&new["columns"], &new["layers"]));
    assert_eq!((report["width"].as_u64(), report["rows"].as_u64()), (Some(4), Some(216)));
    let score = |name: &str| {
        let found = folder.run(&["score", name, "later.csv", "--json"]).json();
        found["mean_log_likelihood"].as_f64().unwrap()
    };
    assert!(score("n.model") > score("m.model") + 0.1);
    for (more, words) in [
        (&["--width", "5"][..], "its width is 4, not 5; omit the setting"),
        (&["--structure", "random"], "its structure is "),
        (&["--drop", "city"], "no column 'city'"),
    ] {
        let run = folder.run(&[&fit[..], &["x.model"], more].concat());
        assert!(run.code == 2 && run.stderr.contains(words), "{run:?}");
    }
    let run = folder.run(&[&fit[..], &["m.model"]].concat());
    assert!(run.code == 2 && run.stderr.contains("overwrite an input"), "{run:?}");
}

#[test]
fn a_model_is_shown_asked_and_scored() {
    let folder = fitted();
    let info = folder.run(&["info", "m.model"]);
    for part in ["city", "categorical", "2: Bonn, Essen", "quartiles", "number", "structure, width"]
    {
        assert!(info.text().contains(part), "no '{part}' in {}", info.stdout);
    }
    let info = folder.run(&["info", "m.model", "--json"]).json();
    assert_eq!(
        keys(&info),
        ["circuits", "columns", "given", "info", "layers", "parameters", "variables"]
    );

    let ask = |question: &str| folder.run(&["query", "m.model", question, "--json"]).json();
    let answer = ask("P(tall='yes' | city='Bonn')");
    assert_eq!(keys(&answer), ["kind", "log", "value"]);
    assert!((answer["value"].as_f64().unwrap() - 2.0 / 3.0).abs() < 0.12, "{answer}");
    let mean = ask("E[weight | tall=yes]")["value"].as_f64().unwrap();
    assert!((mean - 85.0).abs() < 4.0, "{mean}");
    assert_eq!(ask("argmax(tall | weight=62)")["value"], "no");
    // Weights are whole numbers, so the cell around one has a probability.
    assert_eq!(ask("P(weight=62)")["kind"], "probability");
    let age = ask("quantile(age, 0.5)")["value"].as_f64().unwrap();
    assert!((35.0..45.0).contains(&age), "{age}");
    assert!(folder.run(&["query", "m.model", "P(age < 30)"]).text().starts_with("probability"));

    let score = folder.run(&["score", "m.model", "people.csv", "--json"]).json();
    assert_eq!(keys(&score), ["bits_per_dimension", "mean_log_likelihood", "outside", "rows"]);
    let rows = folder.run(&["score", "m.model", "people.csv", "--rows"]);
    let logs: Vec<f64> = rows.text().lines().map(|l| l.parse().unwrap()).collect();
    let mean = logs.iter().sum::<f64>() / 240.0;
    assert!((mean - score["mean_log_likelihood"].as_f64().unwrap()).abs() < 1e-9);
    // On a GPU, if there is one.
    let auto = ["score", "m.model", "people.csv", "--device", "auto", "--json"];
    let auto = folder.run(&auto).json()["mean_log_likelihood"].as_f64().unwrap();
    assert!((auto - mean).abs() < 1e-9 * mean.abs().max(1.0), "{auto} for {mean}");
    folder.write("odd.csv", &(people() + "Bonn,no,30,89.5\n"));
    let odd = folder.run(&["score", "m.model", "odd.csv", "--anomalies", "1", "--json"]).json();
    assert_eq!(odd["anomalies"][0]["row"], 241, "{odd}");
    assert!(
        folder.run(&["score", "m.model", "odd.csv", "--anomalies", "2"]).text().contains("241")
    );
    // Long cells do not fill the screen.
    let long = "y".repeat(3000);
    folder.write("long.csv", &folder.read("odd.csv").replace("Bonn", &long));
    let shown = folder.run(&["score", "m.model", "long.csv", "--anomalies", "1"]);
    let shown = shown.text();
    assert!(shown.contains("yyyy…"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() < 500), "{shown}");
    let either = ["score", "m.model", "odd.csv", "--anomalies", "1", "--by", "either", "--json"];
    assert_eq!(folder.run(&either).json()["anomalies"][0]["row"], 241);
    let cells = ["score", "m.model", "odd.csv", "--anomalies", "1", "--by", "cells"];
    let odd = folder.run(&[&cells[..], &["--json"]].concat()).json();
    assert_eq!(odd["anomalies"][0]["row"], 241, "{odd}");
    assert!(odd["anomalies"][0]["anomaly_score"].as_f64().unwrap() > 0.0, "{odd}");
    assert!(folder.run(&cells).text().contains("score"));
    // A model file is also a circuit file.
    assert_eq!(folder.circuit(&["info", "m.model"]).code, 0);
}

/// The weight of shorter people is missing in every other row.
#[test]
fn missing_is_a_value_on_request() {
    let folder = Folder::new();
    let line = |(n, line): (usize, &str)| match line.rsplit_once(',') {
        Some((start, _)) if line.contains(",no,") && n % 2 == 0 => format!("{start},\n"),
        _ => format!("{line}\n"),
    };
    let table: String = people().lines().enumerate().map(line).collect();
    folder.write("gaps.csv", &table);
    let flags = ["--missing-as-value", "weight", "--atoms", "weight=70", "--effort", "fast"];
    let fit = [&["fit", "gaps.csv", "-o", "gaps.model"][..], &flags].concat();
    assert_eq!(folder.run(&fit).code, 0);
    assert!(folder.run(&["info", "gaps.model"]).text().contains("or missing"));
    let ask = |question: &str| {
        let args = ["query", "gaps.model", question, "--data", "gaps.csv", "--json"];
        let answer = folder.run(&args).json();
        answer["value"].as_f64().unwrap()
    };
    let (tall, short) =
        (ask("P(weight is missing | tall)"), ask("P(weight is missing | tall='no')"));
    assert!(tall < 0.1 && (0.2..0.65).contains(&short), "{tall}, {short}");
    assert!(folder.run(&["sample", "gaps.model", "-n", "90"]).text().contains(",\n"));
    let full = folder.run(&["impute", "gaps.model", "gaps.csv"]);
    assert!(!full.text().contains(",\n"), "{full:?}");
}

#[test]
fn rows_are_drawn_and_holes_filled() {
    let folder = fitted();
    let sample = |seed: &str, output: &str| {
        let given = "city=Bonn, age in [30, 40)";
        let args =
            ["sample", "m.model", "-n", "50", "--given", given, "--seed", seed, "-o", output];
        assert_eq!(folder.run(&args).text(), format!("wrote {output}: 50 rows\n"));
        folder.read(output)
    };
    let rows = sample("1", "a.csv");
    assert_eq!(rows, sample("1", "b.csv"));
    assert_ne!(rows, sample("2", "b.csv"));
    for row in rows.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        assert_eq!(cells[0], "Bonn");
        assert!((30..40).contains(&cells[2].parse::<i32>().unwrap()), "{row}");
    }
    folder.write(
        "holes.csv",
        "id,city,tall,age,weight\na1,Bonn,,,8.10e1\na2,,NA,?,\na3,Essen,no,33,61.5\n",
    );
    for with in ["mean", "mode", "median", "sample"] {
        let args = ["impute", "m.model", "holes.csv", "--with", with, "-o", "full.csv"];
        assert_eq!(folder.run(&args).text(), "wrote full.csv: 3 rows, 6 cells imputed\n", "{with}");
        let full = folder.read("full.csv");
        let lines: Vec<&str> = full.lines().collect();
        assert!(lines[1].starts_with("a1,Bonn,") && lines[1].ends_with(",8.10e1"), "{full}");
        assert!(!full.contains(",,") && !full.contains("NA"), "{full}");
        assert_eq!(lines[3], "a3,Essen,no,33,61.5");
    }
}

#[test]
fn columns_are_predicted_from_the_others() {
    let folder = fitted();
    folder.write("new.csv", "city,tall,age\nBonn,yes,33\nEssen,,41\n");
    let predict = |args: &[&str]| {
        let run = folder.run(&[&["predict", "m.model", "new.csv", "--column"], args].concat());
        run.text().to_owned()
    };
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let value = |question: &str| {
        folder.run(&["query", "m.model", question, "--json"]).json()["value"].as_f64().unwrap()
    };
    let found = lines(&predict(&["weight", "--interval", "0.9"]));
    assert_eq!(found[0], "weight,weight low,weight high");
    let numbers: Vec<f64> = found[1].split(',').map(|x| x.parse().unwrap()).collect();
    for (n, level) in [0.5, 0.05, 0.95].into_iter().enumerate() {
        let asked = value(&format!("quantile(weight, {level} | city=Bonn, tall=yes, age=33)"));
        assert!((numbers[n] - asked).abs() < 1e-3 * asked, "{numbers:?}: {asked} at {level}");
    }
    let found = lines(&predict(&["city", "--proba"]));
    assert!(found[0].starts_with("city,city=Bonn,city=Essen"), "{found:?}");
    let bonn: f64 = found[2].split(',').nth(1).unwrap().parse().unwrap();
    // The table's own cells of the predicted column are ignored.
    let asked = value("P(city=Bonn | age=41)");
    assert!((bonn - asked).abs() < 1e-9, "{bonn} and {asked}");
    assert_eq!(predict(&["age", "-o", "p.csv"]), "wrote p.csv: 2 rows\n");
    assert_eq!(lines(&folder.read("p.csv"))[0], "age");
    let json = folder.run(&["predict", "m.model", "new.csv", "--column", "age", "--json"]).json();
    assert_eq!(json["columns"], serde_json::json!(["age"]));
    assert_eq!(json["absent"], serde_json::json!(["weight"]));
    let draw = |seed| predict(&["weight", "--with", "sample", "--seed", seed]);
    assert!(draw("1") == draw("1") && draw("1") != draw("2"));
}

#[test]
fn a_conditional_model_divides_by_what_is_given() {
    let folder = fitted();
    let run = folder.run(&["condition", "m.model", "city='Bonn', age < 40", "-o", "b.model"]);
    assert!(run.text().starts_with("wrote b.model"), "{run:?}");
    let value = |model: &str, question: &str| {
        folder.run(&["query", model, question, "--json"]).json()["value"].as_f64().unwrap()
    };
    let direct = value("b.model", "P(tall=yes)");
    let ratio = value("m.model", "P(tall=yes | city=Bonn, age < 40)");
    assert!((direct - ratio).abs() < 1e-9, "{direct} and {ratio}");
    assert_eq!(value("b.model", "P(city=Essen)"), 0.0);
    assert!(folder.run(&["info", "b.model"]).text().contains("conditioned on"));
    let json =
        folder.run(&["condition", "m.model", "city='Bonn'", "-o", "b.model", "--json"]).json();
    let log = value("m.model", "P(city='Bonn')").ln();
    assert!((json["log_probability"].as_f64().unwrap() - log).abs() < 1e-9, "{json}");
    let json = folder.run(&["impute", "m.model", "people.csv", "-o", "f.csv", "--json"]).json();
    assert_eq!((json["rows"].as_u64(), json["cells"].as_u64()), (Some(240), Some(0)), "{json}");
}

#[test]
fn every_command_has_an_example_and_completions() {
    let folder = Folder::new();
    for command in [
        "fit",
        "score",
        "info",
        "query",
        "sample",
        "impute",
        "predict",
        "condition",
        "truncate",
        "plot",
        "report",
        "completions",
        "demo",
    ] {
        let help = folder.run(&[command, "--help"]);
        assert!(help.text().contains("Example"), "{command}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(folder.run(&["completions", shell]).text().contains("impute"), "{shell}");
    }
}

/// Parquet tables are scored, imputed and fitted like the same tables in CSV.
#[test]
fn parquet_is_read_and_written() {
    let folder = fitted();
    for name in ["s.csv", "s.parquet"] {
        folder.run(&["sample", "m.model", "-n", "200", "--seed", "3", "-o", name]).text();
    }
    let score = |table| folder.run(&["score", "m.model", table, "--json"]).json();
    assert_eq!(score("s.parquet"), score("s.csv"));
    folder.run(&["impute", "m.model", "people.csv", "-o", "full.csv"]).text();
    folder.run(&["impute", "m.model", "people.csv", "-o", "full.parquet"]).text();
    assert_eq!(score("full.parquet"), score("full.csv"));
    for table in ["s.csv", "s.parquet"] {
        let fit = ["fit", table, "-o", "n.model", "--epochs", "2", "--width", "2"];
        folder.run(&fit).text();
        folder.run(&["sample", "n.model", "-n", "20", "-o", &format!("{table}.csv")]).text();
    }
    assert_eq!(folder.read("s.csv.csv"), folder.read("s.parquet.csv"));
}

#[test]
fn samples_are_written_as_json_too() {
    let folder = fitted();
    let sample = ["sample", "m.model", "-n", "5", "--seed", "4"];
    let json = folder.run(&[&sample[..], &["--json"]].concat()).json();
    assert_eq!(json["columns"], serde_json::json!(["city", "tall", "age", "weight"]));
    let csv = folder.run(&sample);
    let row = |row: &serde_json::Value| {
        let cell = |c: &serde_json::Value| c.as_str().map_or_else(|| c.to_string(), str::to_owned);
        row.as_array().expect("a row").iter().map(cell).collect::<Vec<_>>().join(",")
    };
    let rows = json["rows"].as_array().expect("rows").iter().map(row);
    for (found, expected) in rows.zip(csv.text().lines().skip(1)) {
        let number = |line: &str| line.rsplit(',').next().and_then(|x| x.parse::<f64>().ok());
        assert_eq!(number(&found), number(expected));
        assert_eq!(found.rsplit_once(',').map(|p| p.0), expected.rsplit_once(',').map(|p| p.0));
    }
    let json = folder.run(&[&sample[..], &["-o", "s.csv", "--json"]].concat()).json();
    assert_eq!((json["output"].as_str(), json["number"].as_u64()), (Some("s.csv"), Some(5)));
    assert_eq!(folder.read("s.csv"), csv.text());
}

#[test]
fn a_truncated_model_says_so() {
    let folder = fitted();
    for (from, to) in [("m.model", "a.model"), ("a.model", "b.model")] {
        folder
            .run(&["truncate", from, "--width", if to == "a.model" { "3" } else { "2" }, "-o", to])
            .text();
    }
    let info = |model| folder.run(&["info", model, "--json"]).json()["info"].clone();
    assert_eq!(info("m.model").get("truncated"), None);
    let (a, b) = (info("a.model"), info("b.model"));
    assert_eq!((&a["width"], &b["width"]), (&3.into(), &2.into()));
    assert_eq!((&a["truncated"]["width"], &b["truncated"]["width"]), (&4.into(), &4.into()));
    assert!(a["truncated"]["bound"].as_f64() < b["truncated"]["bound"].as_f64());
    assert!(folder.run(&["info", "b.model"]).text().contains("from width 4"));
}

/// A question about a value outside the model's domain says so; a score gives it a small probability.
#[test]
fn values_never_seen_have_a_note() {
    let folder = Folder::new();
    // Twenty ages, from 20 to 39: few enough for a finite column.
    let mut people = people();
    for age in 40..60 {
        people = people.replace(&format!(",{age},"), &format!(",{},", age - 20));
    }
    folder.write("people.csv", &people);
    let run = folder.run(&["fit", "people.csv", "-o", "m.model", "--epochs", "40", "--width", "4"]);
    assert_eq!(run.code, 0, "{run:?}");
    let ask = |question: &str| folder.run(&["query", "m.model", question, "--json"]).json();
    let answer = ask("P(age=90)");
    assert_eq!(answer["value"], 0.0);
    let note = answer["notes"][0].as_str().expect("a note").to_owned();
    assert!(
        note.starts_with("90 was never seen in age; questions give it probability 0"),
        "{note}"
    );
    assert!(note.contains("scores give unseen values 0."), "{note}");
    let text = folder.run(&["query", "m.model", "P(age=90)"]).text().to_owned();
    assert!(text.contains(&format!("note         {note}\n")), "{text}");
    for (question, start) in [
        ("P(age > 90)", "no value of age was ever seen in this range; "),
        ("P(age in {90, 91, 30})", "90 and 91 were never seen in age; questions give them "),
        ("P(age=30 or age=99.5)", "99.5 was never seen in age; "),
        ("E[weight | age != 90]", "90 was never seen in age; "),
    ] {
        let note = &ask(question)["notes"][0];
        assert!(note.as_str().is_some_and(|note| note.starts_with(start)), "{question}: {note}");
    }
    for question in ["P(age=30)", "P(age > 30)", "P(city='Bonn', age <= 20)", "E[weight]"] {
        assert_eq!(ask(question)["notes"], serde_json::Value::Null, "{question}");
    }
    let run = folder.run(&["query", "m.model", "E[weight | age=90]"]);
    assert!(run.code == 2 && run.stderr.contains("(90 was never seen in age)"), "{run:?}");
    let run = folder.run(&["query", "m.model", "P(age=90)", "--each", "people.csv"]);
    assert!(run.code == 0 && run.stderr.contains("note: 90 was never seen"), "{run:?}");
}
