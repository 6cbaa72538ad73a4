use super::bad_input::assert_refused;
use super::model::{fitted, people};
use super::support::Folder;

#[test]
fn a_table_that_cannot_be_learned_from_is_refused() {
    let folder = Folder::new();
    let cases: [(&str, &[u8], &[&str]); 14] = [
        ("empty.csv", b"", &["empty.csv", "is empty"]),
        ("header.csv", b"a,b\n", &["header.csv", "no rows below"]),
        ("ragged.csv", b"a,b\n1,2\n3\n", &["ragged.csv", "line 3"]),
        ("twice.csv", b"a,a\n1,2\n", &["'a'", "rename one"]),
        ("latin.csv", b"a\nM\xfcller\n", &["latin.csv", "UTF-8"]),
        ("quote.csv", b"a,b\n\"x,2\n", &["quote.csv", "never closed"]),
        ("infinite.csv", b"a,b\n1.5,x\ninf,y\n2.5,z\n", &["column 'a'", "not finite"]),
        ("holes.csv", b"a,b\n1,x\n,y\n2,z\n3,x\n", &["column 'a'", "missing"]),
        ("cut.npy", b"\x93NUMPY\x01\x00", &["cut.npy"]),
        ("none.npz", b"PK", &["none.npz"]),
        ("cut-idx3-ubyte", b"\x00\x00\x08\x03\x00\x00\x00\x09", &["cut-idx3-ubyte"]),
        ("broken.csv.gz", b"\x1f\x8b\x08\x00broken", &["broken.csv.gz"]),
        ("t.parquet", b"PAR1", &["t.parquet", "convert"]),
        ("binary.csv", b"\x00\xff\xfe\x01\n\x80", &["binary.csv"]),
    ];
    for (name, bytes, parts) in cases {
        std::fs::write(folder.path(name), bytes).unwrap();
        assert_refused(&folder, &["fit", name, "-o", "m.model"], parts);
    }
    assert_refused(&folder, &["fit", "none.csv", "-o", "m.model"], &["none.csv"]);
}

#[test]
fn odd_but_honest_tables_are_fitted() {
    let folder = Folder::new();
    for (name, text) in [
        ("constant.csv", "a,b\nx,1\nx,2\nx,1\nx,2\n"),
        ("one-row.csv", "a,b\nx,1.5\n"),
        ("one-column.csv", "a\n1\n2\n1\n"),
        ("unnamed.csv", "1,2\n3,4\n5,6\n"),
    ] {
        folder.write(name, text);
        let run = folder.run(&["fit", name, "-o", "m.model", "--epochs", "2"]);
        assert_eq!(run.code, 0, "{name}: {run:?}");
        assert_eq!(folder.run(&["score", "m.model", name]).code, 0, "{name}");
    }
}

#[test]
fn bad_flags_of_fit_are_named() {
    let folder = Folder::new();
    folder.write("people.csv", &people());
    for (flags, part) in [
        ("--width 0", "width"),
        ("--epochs 0", "epochs"),
        ("--batch 0", "batch"),
        ("--functions 0", "functions"),
        ("--output-width 0", "output width"),
        ("--rate 0", "rate"),
        ("--rate NaN", "rate"),
        ("--time soon", "60s"),
        ("--structure image", "images"),
        ("--structure oak", "oak"),
        ("--image 3x3", "3 × 3"),
        ("--valid none.csv", "none.csv"),
    ] {
        let args: Vec<&str> =
            ["fit", "people.csv", "-o", "m.model"].into_iter().chain(flags.split(' ')).collect();
        assert_refused(&folder, &args, &[part]);
    }
    std::fs::create_dir(folder.path("taken")).unwrap();
    for output in ["none/m.model", "taken"] {
        assert_refused(&folder, &["fit", "people.csv", "-o", output], &[output]);
    }
}

#[test]
fn questions_and_tables_that_do_not_fit_the_model_are_refused() {
    let folder = fitted();
    for (question, parts) in [
        ("P(town=Bonn)", &["no column 'town'"][..]),
        ("P(cty=Bonn)", &["did you mean 'city'?", "\n  P(cty=Bonn)\n    ^"]),
        ("P(city=Bnn)", &["did you mean 'Bonn'?"]),
        ("P(age=200)", &["not within 20 to 59"]),
        ("P(age=young)", &["whole number"]),
        ("P(weight in {60, 70})", &["ask for an interval"]),
        ("P(city=Bonn | age < 3)", &["probability 0"]),
        ("E[city]", &["no mean", "argmax(city)"]),
        ("quantile(age, 2)", &["from 0 to 1"]),
        ("income?", &["expected"]),
    ] {
        assert_refused(&folder, &["query", "m.model", question], parts);
    }
    let given = ["sample", "m.model", "-n", "5", "-o", "s.csv", "--given"];
    assert_refused(&folder, &[&given[..], &["city=Berlin"]].concat(), &["'Berlin'"]);
    assert_refused(&folder, &[&given[..], &["age in [30, 20)"]].concat(), &["not in order"]);
    assert_refused(&folder, &[&given[..], &["age > 59"]].concat(), &["probability 0"]);
    assert_refused(
        &folder,
        &["condition", "m.model", "age < 20", "-o", "n.model"],
        &["probability 0"],
    );
    for (name, text, parts) in [
        ("other.csv", "city,tall,age\nBonn,yes,30\n", &["no column 'weight'"][..]),
        ("label.csv", "city,tall,age,weight\nBerlin,yes,30,80\n", &["row 1", "'Berlin'"]),
        (
            "range.csv",
            "city,tall,age,weight\nBonn,yes,30,80\nBonn,no,99,70\n",
            &["row 2", "'age'", "99"],
        ),
        ("type.csv", "city,tall,age,weight\nBonn,yes,old,80\n", &["row 1", "'age'", "'old'"]),
        ("none-below.csv", "city,tall,age,weight\n", &["no rows"]),
    ] {
        folder.write(name, text);
        assert_refused(&folder, &["score", "m.model", name], parts);
        assert_refused(&folder, &["impute", "m.model", name, "-o", "full.csv"], parts);
    }
    assert_eq!(folder.run(&["score", "m.model", "label.csv", "--lenient"]).code, 0);
    for output in ["none/s.csv", "."] {
        assert_refused(&folder, &["sample", "m.model", "-n", "2", "-o", output], &[output]);
        assert_refused(&folder, &["impute", "m.model", "people.csv", "-o", output], &[output]);
        assert_refused(&folder, &["condition", "m.model", "age < 30", "-o", output], &[output]);
    }
}

#[test]
fn a_damaged_model_is_refused() {
    let folder = fitted();
    let bytes = std::fs::read(folder.path("m.model")).unwrap();
    let later = String::from_utf8_lossy(&bytes).contains("version");
    assert!(later);
    let changed = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        bytes
    };
    for (name, bytes, part) in [
        ("empty.model", Vec::new(), "is empty"),
        ("start.model", bytes[..4].to_vec(), "start.model"),
        ("header.model", bytes[..200].to_vec(), "cut short"),
        ("end.model", bytes[..bytes.len() - 5].to_vec(), "cut short"),
        ("longer.model", [&bytes[..], b"12345678"].concat(), "more at its end"),
        ("flipped.model", changed(bytes.len() - 9), "digest"),
        ("text.model", b"city,age\nBonn,3\n".to_vec(), "no circuit file"),
    ] {
        std::fs::write(folder.path(name), bytes).unwrap();
        assert_refused(&folder, &["info", name], &[name, part]);
        assert_refused(&folder, &["score", name, "people.csv"], &[name, part]);
    }
    assert_refused(&folder, &["query", "c.json", "P(x0=1)"], &["c.json", "no model"]);
    assert_refused(&folder, &["info", "none.model"], &["none.model", "is it there"]);
}
