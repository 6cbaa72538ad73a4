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

/// Rows with or without separators between thousands, in English or in German.
fn large(delimiter: char, [thousands, decimal]: [&str; 2]) -> String {
    let mut text = ["city", "count", "pay"].join(&delimiter.to_string()) + "\n";
    let quote = if delimiter == ',' && thousands == "," { "\"" } else { "" };
    for n in 0..120 {
        let city = ["Bonn", "Essen", "Köln"][n % 3];
        let (count, pay) = (1000 + n * 37 % 97, 2000 + n * 53 % 83);
        let group = |x: usize| format!("{}{thousands}{:03}", x / 1000, x % 1000);
        let (count, pay) = (group(count), group(pay) + decimal + ["00", "25", "50"][n % 3]);
        writeln!(text, "{city}{delimiter}{quote}{count}{quote}{delimiter}{quote}{pay}{quote}")
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

#[test]
fn separators_of_thousands_are_read_and_written() {
    let folder = Folder::new();
    folder.write("plain.csv", &large(',', ["", "."]));
    let fit = |name: &str| {
        let model = name.to_owned() + ".model";
        let run = folder.run(&[&["fit", name, "-o", &model][..], &QUICK].concat());
        assert_eq!(run.code, 0, "{run:?}");
        (mean(&folder, &model), run.stderr)
    };
    let (expected, notes) = fit("plain.csv");
    assert_eq!(notes, "");
    for (name, delimiter, separators, example) in [
        ("quoted.csv", ',', [",", "."], "12,345"),
        ("tab.tsv", '\t', [",", "."], "12,345"),
        ("german.csv", ';', [".", ","], "12.345"),
    ] {
        let text = large(delimiter, separators);
        folder.write(name, &text);
        let (found, notes) = fit(name);
        assert_eq!(found.to_bits(), expected.to_bits(), "{name}");
        assert!(notes.contains("thousands separators, as in column 'count'"), "{notes}");
        assert!(notes.contains(&format!("{example} is 12345")), "{notes}");
        // Imputed cells are written like the others, and those keep their text.
        let model = name.to_owned() + ".model";
        let lines: Vec<&str> = text.lines().collect();
        let holes = format!("{}\nBonn{delimiter}{delimiter}\n{}\n", lines[0], lines[1]);
        folder.write("holes.csv", &holes);
        assert_eq!(folder.run(&["impute", &model, "holes.csv", "-o", "full.csv"]).code, 0);
        let full = folder.read("full.csv");
        let full: Vec<&str> = full.lines().collect();
        assert_eq!((full[0], full[2]), (lines[0], lines[1]), "{name}");
        let [thousands, decimal] = separators;
        assert!(
            full[1].contains(&format!("{delimiter}1{thousands}0")) || full[1].contains("\"1,0")
        );
        assert!(full[1].matches(decimal).count() >= 1, "{}", full[1]);
        // So are samples, which are scored as they are written.
        assert_eq!(folder.run(&["sample", &model, "-n", "50", "-o", "s.csv"]).code, 0);
        let score = folder.run(&["score", &model, "s.csv", "--strict", "--json"]);
        assert_eq!(score.code, 0, "{score:?}");
        let run = folder.run(&["compress", name, "-o", "t.brz", "--force", "--model", &model]);
        assert_eq!(run.code, 0, "{run:?}");
        let back = ["decompress", "t.brz", "-o", "back.csv", "--force", "--model", &model];
        assert_eq!(folder.run(&back).code, 0);
        assert_eq!(folder.read("back.csv"), text);
    }
    // A model of plain numbers reads them too where commas separate the columns.
    let score = |model: &str, name: &str| {
        let run = folder.run(&["score", model, name, "--json"]);
        run.json()["mean_log_likelihood"].as_f64().unwrap()
    };
    let own = score("plain.csv.model", "plain.csv");
    assert_eq!(own.to_bits(), score("plain.csv.model", "quoted.csv").to_bits());
    assert_eq!(own.to_bits(), score("quoted.csv.model", "plain.csv").to_bits());
}

#[test]
fn a_first_line_that_names_the_delimiter_is_no_row() {
    let folder = Folder::new();
    let plain = table(';', ',');
    for (name, first, end) in
        [("unix.csv", "sep=;\n", "\n"), ("excel.csv", "\u{feff}sep=;\r\n", "\r\n")]
    {
        let text = first.to_owned() + &plain.replace('\n', end);
        folder.write(name, &text);
        let run = folder.run(&[&["fit", name, "-o", "m.model", "--force"][..], &QUICK].concat());
        assert_eq!(run.code, 0, "{run:?}");
        folder.write("plain.csv", &plain);
        let run =
            folder.run(&[&["fit", "plain.csv", "-o", "p.model", "--force"][..], &QUICK].concat());
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(mean(&folder, "m.model").to_bits(), mean(&folder, "p.model").to_bits());
        // It comes back with the table.
        let run = folder.run(&["impute", "m.model", name, "-o", "full.csv", "--force"]);
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(folder.read("full.csv"), text);
        let run = folder.run(&["compress", name, "-o", "t.brz", "--force", "--model", "m.model"]);
        assert_eq!(run.code, 0, "{run:?}");
        let back = ["decompress", "t.brz", "-o", "back.csv", "--force", "--model", "m.model"];
        assert_eq!(folder.run(&back).code, 0);
        assert_eq!(folder.read("back.csv"), text);
    }
    // Lines are counted with it.
    folder.write("bad.csv", "sep=;\na;b\n1;2\n3\n");
    let run = folder.run(&["fit", "bad.csv", "-o", "bad.model"]);
    assert!(run.stderr.contains("line 4"), "{run:?}");
}

#[test]
fn several_files_with_semicolons_are_fitted_as_one() {
    let folder = Folder::new();
    let text = table(';', ',');
    folder.write("a.csv", &text);
    folder.write("b.csv", &text);
    let run = folder.run(&[&["fit", "a.csv", "b.csv", "-o", "m.model"][..], &QUICK].concat());
    assert_eq!(run.code, 0, "{run:?}");
    let info = folder.run(&["info", "m.model", "--json"]);
    assert!(info.stdout.contains("pay"), "{info:?}");
    assert!((20.0..60.0).contains(&mean(&folder, "m.model")));
}
