use std::fmt::Write;

use super::bad_input::assert_refused;
use super::model::people;
use super::support::{Folder, keys};

fn same(folder: &Folder, one: &str, other: &str) -> bool {
    let read = |name| std::fs::read(folder.path(name)).expect("a file in a temporary folder");
    read(one) == read(other)
}

/// Rows with little repetition: a model can predict them, zstd cannot.
fn noise(seed: u64) -> String {
    let (mut text, mut state) = ("city,tall,age,weight\n".to_owned(), seed);
    for _ in 0..600 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let r = state >> 33;
        let (city, tall) = (["Bonn", "Essen"][r as usize % 2], ["yes", "no"][r as usize / 2 % 2]);
        let weight = 40.0 + (r / 240 % 600) as f64 / 10.0;
        writeln!(text, "{city},{tall},{},{weight:.1}", 20 + r / 4 % 60).expect("text");
    }
    text
}

#[test]
fn a_table_comes_back_with_no_other_file() {
    let folder = Folder::new();
    folder.write("people.csv", &people());
    let run = folder.run(&["compress", "people.csv", "-o", "p.brz", "--epochs", "2"]);
    assert!(run.text().contains("wrote p.brz"), "{run:?}");
    assert_eq!(run.stderr, "", "no bar where there is no terminal");
    let run = folder.run(&["decompress", "p.brz", "-o", "back.csv"]);
    assert!(run.text().contains("wrote back.csv"), "{run:?}");
    assert!(same(&folder, "people.csv", "back.csv"));
    let report =
        folder.run(&["compress", "people.csv", "-o", "p.brz", "--epochs", "2", "--json"]).json();
    assert_eq!(
        keys(&report),
        [
            "bytes_in",
            "bytes_out",
            "method",
            "model_bytes",
            "output",
            "ratio",
            "seconds",
            "segments",
            "stored",
            "why",
            "width"
        ]
    );
    assert_eq!(report["bytes_in"], people().len());
    let report = folder.run(&["decompress", "p.brz", "-o", "back.csv", "--json"]).json();
    assert_eq!(keys(&report), ["bytes_in", "bytes_out", "output", "seconds"]);
}

#[test]
fn a_table_comes_back_with_the_model_that_compressed_it() {
    let folder = Folder::new();
    folder.write("a.csv", &noise(1));
    folder.write("b.csv", &(noise(2) + "Paris,maybe,17,1e9\n,,,\n"));
    let fit = |table: &str, model: &str| {
        let flags = ["--epochs", "2", "--width", "2", "--as-is"];
        let run = folder.run(&[&["fit", table, "-o", model][..], &flags].concat());
        assert_eq!(run.code, 0, "{run:?}");
    };
    fit("a.csv", "a.model");
    fit("b.csv", "b.model");
    for table in ["a.csv", "b.csv"] {
        let run = folder.run(&["compress", table, "--model", "a.model", "-o", "p.brz"]);
        assert!(run.text().contains("same --model"), "{run:?}");
        let run = folder.run(&["decompress", "p.brz", "--model", "a.model", "-o", "back.csv"]);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(same(&folder, table, "back.csv"));
    }
    assert_refused(&folder, &["decompress", "p.brz", "-o", "x.csv"], &["p.brz", "give the model"]);
    let refused = ["decompress", "p.brz", "--model", "b.model", "-o", "x.csv"];
    assert_refused(&folder, &refused, &["was made with the model", "give the model"]);
}

#[test]
fn any_file_is_packed_and_a_damaged_one_refused() {
    let folder = Folder::new();
    folder.write("words.txt", "\"quoted\",1\nx,2\n");
    let run = folder.run(&["compress", "words.txt", "-o", "w.brz"]);
    assert!(run.text().contains("compressed with zstd"), "{run:?}");
    assert_eq!(folder.run(&["decompress", "w.brz", "-o", "back.txt"]).code, 0);
    assert!(same(&folder, "words.txt", "back.txt"));
    let good = std::fs::read(folder.path("w.brz")).unwrap();
    let mut bad = good.clone();
    bad[20] ^= 1;
    let mut later = good.clone();
    later[8] = 2;
    for (bytes, part) in [
        (&bad[..], "damaged"),
        (&good[..good.len() - 1], "damaged"),
        (&good[..3], "not a compressed stream"),
        (b"a,b\n1,2\n", "not a compressed stream"),
        (&later, "use a newer bornite"),
    ] {
        std::fs::write(folder.path("bad.brz"), bytes).unwrap();
        assert_refused(&folder, &["decompress", "bad.brz", "-o", "x.txt"], &["bad.brz", part]);
    }
    assert_refused(&folder, &["compress", "none.csv", "-o", "x.brz"], &["none.csv"]);
    assert_refused(&folder, &["compress", "words.txt", "-o", "no/x.brz"], &["no/x.brz"]);
    assert!(!folder.path("x.txt").exists());
}
