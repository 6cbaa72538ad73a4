//! Checks that the commands in the guide print what the guide shows.

use super::model::people;
use super::support::Folder;

const README: &str = include_str!("../../../../README.md");
const TOUR: &str = include_str!("../../../../docs/guide/tour.md");
const TABLES: &str = include_str!("../../../../docs/guide/tables.md");
const COMPRESSION: &str = include_str!("../../../../docs/guide/compression.md");
const IMAGES: &str = include_str!("../../../../docs/guide/images.md");
const REPORT: &str = include_str!("../../../../docs/guide/report.md");
const QUERIES: &str = include_str!("../../../../docs/guide/queries.md");

/// The fenced code blocks in a language, each with the rest of its opening line.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<(&'a str, &'a str)> {
    let fence = format!("\n```{language}");
    let block = |piece: &'a str| {
        let (name, rest) = piece.split_once('\n').expect("a line after a fence");
        (name.trim(), rest.split_once("\n```").expect("a fence is closed").0)
    };
    page.split(fence.as_str()).skip(1).map(block).collect()
}

/// Splits a command line into words, respecting quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.trim().chars() {
        match quote {
            Some(q) if c == q => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == ' ' => words.push(String::new()),
            _ => words.last_mut().expect("a word").push(c),
        }
    }
    words
}

/// Separates the numbers in a text from the rest of it.
fn numbers(text: &str) -> (Vec<f64>, String) {
    let (mut found, mut rest) = (Vec::new(), String::new());
    for word in text.split_inclusive([' ', '\n', ',', ':', '[', ']', '{', '}']) {
        let end =
            word.len() - usize::from(word.ends_with([' ', '\n', ',', ':', '[', ']', '{', '}']));
        match word[..end].parse::<f64>() {
            Ok(number) => {
                found.push(number);
                rest.push('#');
                rest.push_str(&word[end..]);
            }
            Err(_) => rest.push_str(word),
        }
    }
    (found, rest)
}

fn check_page(page: &str) {
    let folder = Folder::new();
    for (name, text) in blocks(page, "json") {
        folder.write(name, text);
    }
    let mut count = 0;
    for (_, block) in blocks(page, "console") {
        for session in block.split("$ ").skip(1) {
            let (line, expected) = session.split_once('\n').unwrap_or((session, ""));
            let line = words(line);
            let [program, args @ ..] = line.as_slice() else { unreachable!("a command") };
            assert_eq!(program, "bornite");
            let run = folder.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
            let printed = format!("{}{}", run.stdout, run.stderr);
            assert_eq!(run.code, if run.stderr.is_empty() { 0 } else { 2 }, "{line:?}: {run:?}");
            let (expected, printed) = (numbers(expected.trim_end()), numbers(printed.trim_end()));
            assert_eq!(printed.1, expected.1, "{line:?}");
            for (a, b) in printed.0.iter().zip(&expected.0) {
                // The last digits are rounding errors, which may differ between machines.
                assert!(
                    (a - b).abs() <= 1e6 * f64::EPSILON * b.abs().max(1.0),
                    "{line:?}: {a}, not {b}"
                );
            }
            count += 1;
        }
    }
    assert!(count >= 5, "{count}");
}

#[test]
fn the_commands_of_the_tour() {
    check_page(TOUR);
}

#[test]
fn the_commands_of_the_page_on_queries() {
    check_page(QUERIES);
}

#[test]
fn the_commands_of_the_readme_work() {
    assert!(run_all(&Folder::new(), README) >= 4);
}

#[test]
fn the_commands_of_the_page_on_tables_work() {
    assert!(run_all(&Folder::new(), TABLES) >= 4);
}

#[test]
fn the_commands_of_the_page_on_compression_give_the_table_back() {
    let folder = Folder::new();
    folder.write("people.csv", &people());
    assert_eq!(run_all(&folder, COMPRESSION), 5);
    assert_eq!(folder.read("back.csv"), people());
}

/// Runs the commands in the `sh` blocks of a page, with the tables on that page as files, and counts them.
fn run_all(folder: &Folder, page: &str) -> usize {
    for (name, text) in blocks(page, "csv") {
        folder.write(name, text);
    }
    let mut count = 0;
    for (_, block) in blocks(page, "sh") {
        for line in block.lines().filter(|line| line.starts_with("bornite ")) {
            let words = words(line);
            let run = folder.run(&words[1..].iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(run.code, 0, "{line}: {run:?}");
            count += 1;
        }
    }
    count
}

#[test]
fn the_commands_of_the_page_on_reports() {
    let folder = Folder::new();
    folder.write("people.csv", &people());
    folder.write("test.csv", &people());
    assert_eq!(run_all(&folder, REPORT), 13);
    assert!(folder.read("report.html").contains("<section id=\"calibration\">"));
}

#[test]
fn the_commands_of_the_page_on_images() {
    let folder = Folder::new();
    let image = |row: usize, is_covered: bool| {
        let pixel = |n: usize| match (n % 6, (n % 6 + n / 6 + row) % 5) {
            (3.., _) if is_covered => String::new(),
            (_, level) => level.min(3).to_string(),
        };
        (0..36).map(pixel).collect::<Vec<_>>().join(",")
    };
    let table = |rows: usize, is_covered: bool| {
        let names = (0..36).map(|n| format!("p{n}")).collect::<Vec<_>>().join(",");
        let rows: Vec<String> = (0..rows).map(|row| image(row, is_covered)).collect();
        format!("{names}\n{}\n", rows.join("\n"))
    };
    folder.write("images.csv", &table(60, false));
    folder.write("covered.csv", &table(8, true));
    assert_eq!(run_all(&folder, IMAGES), 10);
    assert!(!folder.read("completed.csv").contains(",,"));
}
