use super::bad_input::assert_refused;
use super::model::{fitted, people};
use super::support::{Folder, keys};

fn same(folder: &Folder, one: &str, other: &str) -> bool {
    std::fs::read(folder.path(one)).unwrap() == std::fs::read(folder.path(other)).unwrap()
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
    let folder = fitted();
    folder.write(
        "new.csv",
        "tall,extra,city,weight\nyes,a,Bonn,71.5\nno,b,Paris,\nyes,c,Essen,1e9\n",
    );
    let pack = |table: &str| folder.run(&["compress", table, "--model", "m.model", "-o", "p.brz"]);
    let unpack =
        |model: &str| folder.run(&["decompress", "p.brz", "--model", model, "-o", "back.csv"]);
    assert!(pack("people.csv").text().contains("same --model"));
    assert_eq!(unpack("m.model").code, 0);
    assert!(same(&folder, "people.csv", "back.csv"));
    let full = std::fs::metadata(folder.path("p.brz")).unwrap().len();
    assert!(full < people().len() as u64 / 3, "{full}");

    assert_refused(&folder, &["decompress", "p.brz", "-o", "x.csv"], &["p.brz", "give the model"]);
    let run = folder.run(&["fit", "people.csv", "-o", "other.model", "--epochs", "1"]);
    assert_eq!(run.code, 0, "{run:?}");
    let refused = ["decompress", "p.brz", "--model", "other.model", "-o", "x.csv"];
    assert_refused(&folder, &refused, &["was made with the model", "give the model"]);

    assert_eq!(pack("new.csv").code, 0);
    assert_eq!(unpack("m.model").code, 0);
    assert!(same(&folder, "new.csv", "back.csv"));
}

#[test]
fn any_file_is_packed_and_a_damaged_one_refused() {
    let folder = Folder::new();
    folder.write("words.txt", "\"quoted\",1\nx,2\n");
    let run = folder.run(&["compress", "words.txt", "-o", "w.brz"]);
    assert!(run.text().contains("packed by zstd"), "{run:?}");
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
        (&good[..3], "no compressed stream"),
        (b"a,b\n1,2\n", "no compressed stream"),
        (&later, "use a newer bornite"),
    ] {
        std::fs::write(folder.path("bad.brz"), bytes).unwrap();
        assert_refused(&folder, &["decompress", "bad.brz", "-o", "x.txt"], &["bad.brz", part]);
    }
    assert_refused(&folder, &["compress", "none.csv", "-o", "x.brz"], &["none.csv"]);
    assert_refused(&folder, &["compress", "words.txt", "-o", "no/x.brz"], &["no/x.brz"]);
    assert!(!folder.path("x.txt").exists());
}
