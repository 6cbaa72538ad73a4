//! Tables as spreadsheets in many countries write them: semicolons or tabs, decimal commas, thousands separators.

use std::fmt::Write;

use super::support::Folder;

/// Rows with a point or a comma in their numbers, and the same numbers in both.
fn table(delimiter: char, decimal: char) -> String {
    let mut text = ["city", "age", "pay"].join(&delimiter.to_string()) + "\n";
    for n in 0..120 {
        let (city, age, pay) = (["Bonn", "Essen", "Köln"][n % 3], 20 + n % 40, 100 + n * 37 % 97);
        let (whole, part) = (pay / 4, pay % 4 * 25);
        writeln!(text, "{city}{delimiter}{age}{delimiter}{whole}{decimal}{part:02}")
            .expect("a string takes text");
    }
    text
}

fn mean(folder: &Folder, model: &str) -> f64 {
    folder.run(&["query", model, "E[pay]", "--json"]).json()["value"].as_f64().expect("a number")
}

const QUICK: [&str; 6] = ["--width", "2", "--epochs", "2", "--effort", "fast"];

#[test]
fn decimal_commas_are_read_as_points_are() {
    let folder = Folder::new();
    folder.write("point.csv", &table(',', '.'));
    folder.write("semicolon.csv", &table(';', ','));
    folder.write("tab.tsv", &table('\t', ','));
    let fit = |name: &str| {
        let model = name.to_owned() + ".model";
        let run = folder.run(&[&["fit", name, "-o", &model][..], &QUICK].concat());
        assert_eq!(run.code, 0, "{run:?}");
        (mean(&folder, &model), run.stderr)
    };
    let (expected, notes) = fit("point.csv");
    assert_eq!(notes, "");
    for name in ["semicolon.csv", "tab.tsv"] {
        let (found, notes) = fit(name);
        assert_eq!(found.to_bits(), expected.to_bits(), "{name}");
        assert!(notes.contains("decimal commas, as in column 'pay'"), "{notes}");
    }
    // Samples are such a table too, and rows are scored the same in both.
    let run = folder.run(&["sample", "semicolon.csv.model", "-n", "20", "-o", "s.csv"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(folder.read("s.csv").starts_with("city;age;pay\n"), "{}", folder.read("s.csv"));
    let score = |model: &str, name: &str| {
        let run = folder.run(&["score", model, name, "--json"]);
        run.json()["mean_log_likelihood"].as_f64().unwrap()
    };
    let own = score("point.csv.model", "point.csv");
    assert_eq!(own.to_bits(), score("semicolon.csv.model", "semicolon.csv").to_bits());
    assert_eq!(own.to_bits(), score("semicolon.csv.model", "point.csv").to_bits());
}

#[test]
fn tables_with_decimal_commas_are_imputed_and_restored() {
    let folder = Folder::new();
    let text = table(';', ',');
    folder.write("t.csv", &text);
    let run = folder.run(&[&["fit", "t.csv", "-o", "m.model"][..], &QUICK].concat());
    assert_eq!(run.code, 0, "{run:?}");
    folder.write("holes.csv", &text.replacen("Essen;21;34,25", "Essen;21;", 1));
    assert_ne!(folder.read("holes.csv"), text);
    assert_eq!(folder.run(&["impute", "m.model", "holes.csv", "-o", "full.csv"]).code, 0);
    let full = folder.read("full.csv");
    let imputed = full.lines().nth(2).unwrap().strip_prefix("Essen;21;").unwrap();
    let value: f64 = imputed.replace(',', ".").parse().unwrap();
    assert!(imputed.contains(',') && (20.0..60.0).contains(&value), "{imputed}");
    for flags in [&["--model", "m.model"][..], &["--epochs", "1", "--width", "2"]] {
        let run =
            folder.run(&[&["compress", "t.csv", "-o", "t.brz", "--force"][..], flags].concat());
        assert_eq!(run.code, 0, "{run:?}");
        let given = if flags[0] == "--model" { flags } else { &[] };
        let back = folder
            .run(&[&["decompress", "t.brz", "-o", "back.csv", "--force"][..], given].concat());
        assert_eq!(back.code, 0, "{back:?}");
        assert_eq!(folder.read("back.csv"), text, "{flags:?}");
    }
}

#[test]
fn thousands_are_not_decimals() {
    let folder = Folder::new();
    let rows = |cell: &dyn Fn(usize) -> String| {
        let lines: Vec<String> = (0..90).map(|n| format!("{};{}", cell(n), n % 7)).collect();
        "a;b\n".to_owned() + &lines.join("\n") + "\n"
    };
    let kind = |text: String| {
        folder.write("t.csv", &text);
        let run = folder.run(&[&["fit", "t.csv", "-o", "m.model", "--as-is"][..], &QUICK].concat());
        assert_eq!(run.code, 0, "{run:?}");
        run.stderr
    };
    // 1,234 may be either: it stays text.
    assert_eq!(kind(rows(&|n| format!("{},{:03}", 1 + n % 9, 100 + n))), "");
    // 1.234,5 is one number.
    assert!(kind(rows(&|n| format!("{}.{:03},5", 1 + n % 9, n))).contains("decimal commas"));
    let median = folder.run(&["query", "m.model", "median(a)", "--json"]).json();
    assert!(median["value"].as_f64().expect("a number") > 1000.0, "{median}");
}
