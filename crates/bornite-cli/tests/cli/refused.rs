//! Bad input, as a table of cases. Each gives a message with the location and a suggestion, exit code 2, and no file.

use std::fmt::Write;

use super::bad_input::assert_refused;
use super::model::fitted;
use super::support::{Folder, OVERLAPPING};

/// The files in the folder: names and contents.
const FILES: &[(&str, &[u8])] = &[
    ("empty.csv", b""),
    ("header.csv", b"a,b\n"),
    ("ragged.csv", b"a,b\n1,2\n3\n"),
    ("wide.csv", b"a,b\n1,2,3\n"),
    ("twice.csv", b"a,a\n1,2\n"),
    ("latin.csv", b"a\nM\xfcller\n"),
    ("quote.csv", b"a,b\n\"x,2\n"),
    ("infinite.csv", b"a,b\n1.5,x\ninf,y\n2.5,z\n"),
    ("overflow.csv", b"a,b\n1.5,x\n1e999,y\n2.5,z\n"),
    ("binary.csv", b"\x00\xff\xfe\x01\n\x80"),
    ("cut.npy", b"\x93NUMPY\x01\x00"),
    ("none.npz", b"PK"),
    ("cut-idx3-ubyte", b"\x00\x00\x08\x03\x00\x00\x00\x09"),
    ("broken.csv.gz", b"\x1f\x8b\x08\x00broken"),
    ("t.parquet", b"PAR1"),
    ("lists.parquet", include_bytes!("../../../bornite/src/data/tests/lists.parquet")),
    ("no-cell.csv", b"a,b,c\n1,x,\n2,y,NA\n1,y,\n"),
    ("holes.csv", b"a,b\n1,x\n2,y\n1,\n2,x\n1,y\n"),
    ("no-row.csv", b"a,b\n1,x\n,\n2,y\nNA,\n1,y\n"),
    ("constant.csv", b"a,b,unit\n1,x,cm\n2,y,cm\n1,y,\n"),
    ("constants.csv", b"a,b\nx,7\nx,7.0\n"),
    ("one-row.csv", b"a,b\nx,1.5\n"),
    ("one-column.csv", b"a\n1\n2\n1\n"),
    ("other.csv", b"city,tall,age\nBonn,yes,30\n"),
    ("label.csv", b"city,tall,age,weight\nBerlin,yes,30,80\n"),
    ("range.csv", b"city,tall,age,weight\nBonn,yes,30,80\nBonn,no,-9,70\n"),
    ("type.csv", b"city,tall,age,weight\nBonn,yes,old,80\n"),
    ("no-rows.csv", b"city,tall,age,weight\n"),
    ("text.model", b"city,age\nBonn,3\n"),
    ("empty.model", b""),
    ("later.json", br#"{"version": 99, "variables": [], "layers": [], "output": 0}"#),
    ("array.json", b"[1, 2]"),
];

/// The arguments, separated by broken bars, and parts of the message.
const CASES: &[(&str, &[&str])] = &[
    // Tables that cannot be learned from.
    ("fit¦none.csv¦-o¦m", &["none.csv", "read"]),
    ("fit¦empty.csv¦-o¦m", &["empty.csv", "is empty"]),
    ("fit¦header.csv¦-o¦m", &["header.csv", "a header but no rows"]),
    ("fit¦ragged.csv¦-o¦m", &["ragged.csv", "line 3", "check the delimiter"]),
    ("fit¦wide.csv¦-o¦m", &["wide.csv", "line 2", "3 cells"]),
    ("fit¦twice.csv¦-o¦m", &["'a'", "rename one"]),
    ("fit¦latin.csv¦-o¦m", &["latin.csv", "UTF-8"]),
    ("fit¦quote.csv¦-o¦m", &["quote.csv", "never closed"]),
    ("fit¦infinite.csv¦-o¦m", &["column 'a'", "not finite"]),
    ("fit¦overflow.csv¦-o¦m", &["line 3, column 'a'", "1e999", "leave the cell empty"]),
    ("fit¦binary.csv¦-o¦m", &["binary.csv"]),
    // Without a device, and with one that requires complete rows.
    ("fit¦holes.csv¦--weights¦none¦-o¦m", &["no column 'none'"]),
    ("fit¦holes.csv¦--missing-as-value¦b,none¦-o¦m", &["no column 'none'"]),
    ("fit¦holes.csv¦--atoms¦b=1¦-o¦m", &["column 'b'", "not numbers"]),
    ("fit¦holes.csv¦--atoms¦c=1¦-o¦m", &["no column 'c'"]),
    ("fit¦holes.csv¦--atoms¦a=x¦-o¦m", &["'x' is not a finite number"]),
    ("fit¦holes.csv¦--device¦cuda¦-o¦m", &["CUDA device", "--device auto"]),
    ("bench¦case¦--tree¦linear¦-k¦2¦--operation¦prefix¦--device¦cuda", &["--device"]),
    ("fit¦cut.npy¦-o¦m", &["cut.npy"]),
    ("fit¦none.npz¦-o¦m", &["none.npz"]),
    ("fit¦cut-idx3-ubyte¦-o¦m", &["cut-idx3-ubyte"]),
    ("fit¦broken.csv.gz¦-o¦m", &["broken.csv.gz"]),
    ("fit¦t.parquet¦-o¦m", &["t.parquet", "Parquet", "convert"]),
    ("fit¦cut.parquet¦-o¦m", &["cut.parquet", "Parquet", "convert"]),
    ("fit¦start.parquet¦-o¦m", &["start.parquet", "Parquet", "convert"]),
    ("score¦m.model¦end.parquet", &["end.parquet", "Parquet", "convert"]),
    ("fit¦page.parquet¦-o¦m", &["page.parquet", "Parquet", "convert"]),
    ("fit¦lists.parquet¦-o¦m", &["lists.parquet", "column 'parts'", "lists", "leave it out"]),
    ("fit¦.¦-o¦m", &["."]),
    // Uninformative tables or columns.
    (
        "fit¦no-cell.csv¦-o¦m¦--strict",
        &["column 'c': every cell is missing", "(--drop c)", "--as-is"],
    ),
    (
        "fit¦no-row.csv¦-o¦m¦--strict",
        &["rows 2, 4: every cell is missing", "remove the empty rows", "--as-is"],
    ),
    (
        "fit¦constant.csv¦-o¦m¦--strict",
        &["column 'unit' (always 'cm')", "(--drop unit)", "--as-is"],
    ),
    (
        "fit¦constants.csv¦-o¦m¦--strict",
        &["'a' (always 'x'), 'b' (always '7')", "add columns", "--as-is"],
    ),
    ("fit¦one-row.csv¦-o¦m¦--strict", &["one row", "add rows", "--as-is"]),
    ("fit¦one-column.csv¦-o¦m¦--strict", &["only column 'a'", "add columns", "--as-is"]),
    (
        "fit¦million.csv¦-o¦m¦--strict",
        &["'a' (1000000 of 1000000)", "too rare", "(--drop a)", "--as-is"],
    ),
    ("fit¦people.csv¦-o¦m¦--drop¦city,agee", &["no column 'agee'", "did you mean 'age'?"]),
    ("fit¦people.csv¦-o¦m¦--drop¦city,tall¦--drop¦age,weight", &["--drop leaves no column"]),
    // Flags of fit.
    ("fit¦people.csv¦-o¦m¦--width¦0", &["width", "at least 1"]),
    ("fit¦people.csv¦-o¦m¦--epochs¦0", &["epochs"]),
    ("fit¦people.csv¦-o¦m¦--batch¦0", &["batch"]),
    ("fit¦people.csv¦-o¦m¦--functions¦0", &["functions"]),
    ("fit¦people.csv¦-o¦m¦--output-width¦0", &["output width"]),
    ("fit¦people.csv¦-o¦m¦--rate¦0", &["rate"]),
    ("fit¦people.csv¦-o¦m¦--rate¦NaN", &["rate"]),
    ("fit¦people.csv¦-o¦m¦--time¦soon", &["60s"]),
    ("fit¦people.csv¦-o¦m¦--structure¦image", &["images"]),
    ("fit¦people.csv¦-o¦m¦--structure¦oak", &["oak"]),
    ("fit¦people.csv¦-o¦m¦--image¦3x3", &["3 × 3"]),
    ("fit¦people.csv¦-o¦m¦--valid¦none.csv", &["none.csv"]),
    ("fit¦people.csv¦-o¦m¦--valid¦other.csv", &["'weight'"]),
    // Questions.
    ("query¦m.model¦P(town=Bonn)", &["no column 'town'"]),
    ("query¦m.model¦P(cty=Bonn)", &["did you mean 'city'?", "\n  P(cty=Bonn)\n    ^"]),
    ("query¦m.model¦P(city=Bnn)", &["did you mean 'Bonn'?"]),
    ("query¦m.model¦P(age=young)", &["'age'", "'young'", "number"]),
    ("query¦m.model¦P(weight=inf)", &["inf"]),
    ("query¦m.model¦P(city=Bonn | tall=yes, tall=no)", &["probability 0", "relax it"]),
    ("query¦m.model¦P(city=Bonn", &["expected"]),
    ("query¦m.model¦E[city]", &["no mean", "argmax(city)"]),
    ("query¦m.model¦quantile(age, 2)", &["from 0 to 1"]),
    ("query¦m.model¦income?", &["expected"]),
    ("query¦m.model¦", &["expected"]),
    // Evidence for samples and conditional models.
    ("sample¦m.model¦--given¦city=Berlin", &["'Berlin'"]),
    ("sample¦m.model¦--given¦age in [30, 20)¦-o¦s.csv", &["not in order"]),
    ("sample¦m.model¦--given¦tall=yes, tall=no¦-o¦s.csv", &["probability 0"]),
    ("sample¦m.model¦-n¦99999999999999999", &["--number", "sample fewer"]),
    ("sample¦m.model¦-n¦-1", &["-1"]),
    ("condition¦m.model¦tall=yes, tall=no¦-o¦n.model", &["probability 0"]),
    // Tables that do not match the model.
    ("score¦m.model¦other.csv", &["no column 'weight'", "add it"]),
    ("score¦m.model¦label.csv¦--strict", &["row 1", "'Berlin'"]),
    ("score¦m.model¦range.csv¦--strict", &["row 2", "'age'", "-9"]),
    ("score¦m.model¦type.csv", &["row 1", "'age'", "'old'"]),
    ("score¦m.model¦no-rows.csv", &["no rows"]),
    ("impute¦m.model¦other.csv¦-o¦full.csv", &["no column 'weight'"]),
    ("predict¦m.model¦people.csv¦--column¦wieght", &["'wieght'", "'weight'"]),
    ("predict¦m.model¦people.csv¦--column¦weight¦--interval¦1.5", &["--interval 1.5", "0.9"]),
    ("predict¦m.model¦people.csv¦--column¦city¦--interval¦0.9", &["'city'", "not numbers"]),
    ("predict¦m.model¦people.csv¦--column¦weight¦--proba", &["'weight'", "quantiles"]),
    ("impute¦m.model¦type.csv¦-o¦full.csv", &["row 1", "'age'", "'old'"]),
    // Files that are not models, or damaged.
    ("info¦none.model", &["none.model", "does it exist"]),
    ("info¦empty.model", &["empty.model", "is empty"]),
    ("info¦text.model", &["text.model", "not a circuit file"]),
    ("info¦start.model", &["start.model"]),
    ("info¦cut.model", &["cut.model", "truncated"]),
    ("info¦end.model", &["end.model", "truncated"]),
    ("score¦longer.model¦people.csv", &["longer.model", "trailing bytes"]),
    ("query¦flipped.model¦P(age=30)", &["flipped.model", "digest"]),
    ("sample¦later.model", &["later.model", "version 99", "newer"]),
    ("query¦c.json¦P(x0=1)", &["c.json", "not a model"]),
    ("circuit¦info¦later.json", &["later.json", "99"]),
    ("circuit¦info¦array.json", &["array.json"]),
    ("circuit¦info¦overlapping.json", &["overlapping.json", "layer 2", "disjoint scopes"]),
    // Truncation and plots.
    ("truncate¦m.model¦-o¦t.model", &["--error", "--width"]),
    ("truncate¦m.model¦--error¦2¦-o¦t.model", &["--error 2", "from 0 to 1"]),
    ("truncate¦m.model¦--error¦NaN¦-o¦t.model", &["--error NaN"]),
    ("truncate¦m.model¦--width¦0¦-o¦t.model", &["--width 0", "at least 1"]),
    ("truncate¦c.json¦--width¦2¦-o¦t.model", &["c.json", "not a model"]),
    ("plot¦m.model¦--what¦oak¦-o¦p.svg", &["oak", "structure"]),
    ("plot¦m.model¦--what¦training¦-o¦p.gif", &["p.gif", ".svg"]),
    ("plot¦m.model¦--what¦training¦-o¦p.png", &["p.png", "only samples"]),
    ("plot¦m.model¦--what¦samples¦-o¦p.png", &["not a model of images"]),
    ("plot¦m.model¦--what¦calibration¦-o¦p.svg", &["give one"]),
    ("plot¦m.model¦--what¦anomalies¦--data¦type.csv¦-o¦p.svg", &["row 1", "'age'"]),
    ("plot¦m.model¦--what¦pairs¦--columns¦age,wait¦-o¦p.svg", &["'wait'"]),
    ("plot¦m.model¦--what¦training¦--query¦age=1¦-o¦p.svg", &["--query", "remove it"]),
    ("plot¦m.model¦--what¦circuit¦--query¦aeg=1¦-o¦p.svg", &["'aeg'"]),
    ("plot¦c.json¦--what¦marginals¦-o¦p.svg", &["c.json", "not a model"]),
    ("report¦none.model¦-o¦r.html", &["none.model", "does it exist"]),
    ("report¦m.model¦--data¦other.csv¦-o¦r.html", &["no column 'weight'"]),
    ("report¦c.json¦--data¦people.csv¦-o¦r.html", &["c.json", "remove --data"]),
    // Outputs that cannot be written: the folder does not exist, the output is a folder, or writing is not permitted.
    ("fit¦people.csv¦-o¦none/m.model", &["none/m.model", "does the folder exist"]),
    ("fit¦people.csv¦-o¦taken", &["taken", "this is a folder"]),
    ("fit¦people.csv¦-o¦/proc/m.model", &["/proc/m.model", "can you write to it"]),
    ("sample¦m.model¦-o¦none/s.csv", &["none/s.csv"]),
    ("sample¦m.model¦-o¦/proc/s.csv", &["/proc/s.csv", "can you write to it"]),
    ("impute¦m.model¦people.csv¦-o¦taken", &["taken"]),
    ("condition¦m.model¦age < 30¦-o¦none/n.model", &["none/n.model"]),
    ("truncate¦m.model¦--width¦2¦-o¦/proc/t.model", &["/proc/t.model"]),
    ("plot¦m.model¦--what¦training¦-o¦none/p.svg", &["none/p.svg"]),
    ("report¦m.model¦-o¦taken", &["taken", "this is a folder"]),
    ("report¦m.model¦-o¦/proc/r.html", &["/proc/r.html", "can you write to it"]),
    ("demo¦-o¦people.csv", &["people.csv", "--output"]),
];

/// FNV-1a of 64 bits.
fn digest(parts: &[&[u8]]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().copied().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// The same model as a newer version of the format would write it.
fn of_a_later_version(model: &[u8]) -> Vec<u8> {
    let length = usize::try_from(u64::from_le_bytes(model[..8].try_into().expect("it is there")))
        .expect("it is there");
    let header = std::str::from_utf8(&model[8..8 + length]).expect("it is there");
    let value: serde_json::Value = serde_json::from_str(header).expect("it is there");
    let text = |key: &str| value["__metadata__"][key].as_str().expect("it is there").to_owned();
    let later = (1..99).fold(text("bornite.model"), |text, version| {
        text.replacen(&format!("\"version\":{version},"), "\"version\":99,", 1)
    });
    assert_ne!(later, text("bornite.model"));
    let new =
        digest(&[text("bornite").as_bytes(), &[0], later.as_bytes(), &[0], &model[8 + length..]]);
    let escaped = |t: &str| serde_json::to_string(t).expect("it is there");
    let header = header.replacen(&escaped(&text("bornite.model")), &escaped(&later), 1).replacen(
        &text("bornite.digest"),
        &new,
        1,
    );
    // Padded to whole words, as before.
    let header = format!("{header:width$}", width = header.chars().count() + 8 - header.len() % 8);
    let size = (header.len() as u64).to_le_bytes();
    [&size[..], header.as_bytes(), &model[8 + length..]].concat()
}

fn folder() -> Folder {
    let folder = fitted();
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(folder.path(name), bytes).expect("it is there");
    for (name, bytes) in FILES {
        write(name, bytes);
    }
    std::fs::create_dir(folder.path("taken")).expect("it is there");
    let sample = folder.run(&["sample", "m.model", "-n", "99", "-o", "s.parquet"]);
    assert_eq!(sample.code, 0, "{sample:?}");
    let parquet = std::fs::read(folder.path("s.parquet")).expect("it is there");
    write("cut.parquet", &parquet[..parquet.len() / 2]);
    write("start.parquet", &parquet[parquet.len() / 3..]);
    write("end.parquet", &parquet[..parquet.len() - 1]);
    // The header of the first page declares its length.
    write("page.parquet", &[&parquet[..4], &[0xff; 12], &parquet[16..]].concat());
    write("million.csv", many_labels(1_000_000).as_bytes());
    write("overlapping.json", OVERLAPPING.as_bytes());
    let model = std::fs::read(folder.path("m.model")).expect("it is there");
    let mut flipped = model.clone();
    flipped[model.len() - 9] ^= 1;
    write("start.model", &model[..4]);
    write("cut.model", &model[..200]);
    write("end.model", &model[..model.len() - 5]);
    write("longer.model", &[&model[..], b"12345678"].concat());
    write("flipped.model", &flipped);
    write("later.model", &of_a_later_version(&model));
    folder
}

#[test]
fn bad_input_is_refused_with_its_place_and_a_remedy() {
    let folder = folder();
    const { assert!(CASES.len() >= 100) };
    for (args, parts) in CASES {
        assert_refused(&folder, &args.split('¦').collect::<Vec<_>>(), parts);
    }
    // Unseen values are scored, or treated as missing.
    for (flags, outside) in [(&[][..], 1), (&["--lenient"], 0), (&["--anomalies", "1"], 1)] {
        let score = folder.run(&[&["score", "m.model", "label.csv", "--json"], flags].concat());
        assert_eq!(score.json()["outside"], outside, "{flags:?}");
    }
    let both = ["score", "m.model", "label.csv", "--lenient", "--anomalies", "1"];
    assert_eq!(folder.run(&both).code, 0);
}

#[test]
#[cfg(unix)]
fn a_full_disk_is_told_and_a_device_stays_one() {
    use std::os::unix::fs::FileTypeExt;
    let is_device = || std::fs::metadata("/dev/full").is_ok_and(|m| m.file_type().is_char_device());
    if !is_device() {
        return;
    }
    let folder = fitted();
    for args in [
        &["sample", "m.model", "-n", "9", "-o", "/dev/full"][..],
        &["impute", "m.model", "people.csv", "-o", "/dev/full"],
        &["report", "m.model", "-o", "/dev/full"],
        &["condition", "m.model", "age < 30", "-o", "/dev/full"],
        &["truncate", "m.model", "--width", "2", "-o", "/dev/full"],
        &["circuit", "plot", "c.json", "-o", "/dev/full"],
    ] {
        assert_refused(&folder, args, &["/dev/full"]);
        assert!(is_device(), "{args:?} put a file in the place of a device");
    }
    for args in [&["query", "m.model", "P(age < 30)"][..], &["sample", "m.model", "-n", "9"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("it is there");
        let output = folder.command(args).stdout(full).output().expect("it is there");
        let message = String::from_utf8(output.stderr).expect("it is there");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains("standard output") && message.contains("space"), "{message}");
    }
}

/// A label for every row.
fn many_labels(rows: usize) -> String {
    let mut text = String::from("a,b,c\n");
    for n in 0..rows {
        writeln!(text, "x{n},{},{}", n % 3, n % 2).expect("text");
    }
    text
}

#[test]
fn odd_but_honest_tables_are_fitted() {
    let folder = Folder::new();
    let labels = many_labels(3000);
    for (name, text, flag) in [
        ("constant.csv", "a,b\nx,1\nx,2\nx,1\nx,2\n", "--as-is"),
        ("one-row.csv", "a,b\nx,1.5\n", "--as-is"),
        ("one-column.csv", "a\n1\n2\n1\n", "--as-is"),
        ("unnamed.csv", "1,2\n3,4\n5,6\n", ""),
        ("holes.csv", "a,b\n1,x\n,y\n2,\n3,x\n,\n1,y\n", "--as-is"),
        ("no-cell.csv", "a,b\n1,\n2,\n3,NA\n", "--as-is"),
        ("no-row.csv", "a,b\n,\n,\n", "--as-is"),
        ("marked.csv", "\u{feff}a;b\r\n1;x\r\n2;y\r\n1;x", ""),
        ("labels.csv", &labels, "--as-is"),
        ("huge.csv", "a,b\n-9000000000000000000,1\n9000000000000000000,2\n5,1\n", ""),
    ] {
        folder.write(name, text);
        let fit = ["fit", name, "-o", "m.model", "--epochs", "2", flag];
        let run = folder.run(&fit[..fit.len() - usize::from(flag.is_empty())]);
        assert_eq!(run.code, 0, "{name}: {run:?}");
        assert!(!run.stdout.contains("dropped: "), "{name}: {run:?}");
        assert_eq!(folder.run(&["score", "m.model", name]).code, 0, "{name}");
        let run = folder.run(&["report", "m.model", "--data", name, "-o", "r.html"]);
        assert_eq!(run.code, 0, "{name}: {run:?}");
    }
}

/// Columns that cannot be learned are dropped, on request or automatically, and the model reads the whole table.
#[test]
fn columns_are_left_out() {
    let folder = Folder::new();
    let mut text = String::from("\"id, of whom\",unit,size,kind,empty\n");
    for n in 0..300 {
        writeln!(text, "person {n},cm,{},{},", n % 7, n % 2).expect("text");
    }
    folder.write("t.csv", &text);
    let fit = ["fit", "t.csv", "-o", "m.model", "--epochs", "2", "--width", "2"];
    let run = folder.run(&fit);
    let line = "dropped: empty (every value is missing), unit (always 'cm'), id, of whom (text: 300 of 300";
    assert!(run.text().contains(line), "{run:?}");
    let drop = ["--drop", "empty", "--drop", "unit", "--drop", "id, of whom"];
    let flags = drop.map(|d| if d.starts_with("--") { d.to_owned() } else { format!("\"{d}\"") });
    let strict = [&fit[..], &["--strict"]].concat();
    assert_refused(&folder, &strict, &["'id, of whom' (300 of 300)", &flags.join(" ")]);
    let run = folder.run(&[&fit[..], &drop].concat());
    assert!(run.text().contains("2 columns") && !run.text().contains("left out"), "{run:?}");
    let query = folder.run(&["query", "m.model", "P(unit=cm)"]);
    assert!(query.stderr.contains("no column 'unit'"), "{query:?}");
    assert_eq!(folder.run(&["score", "m.model", "t.csv", "--json"]).json()["rows"], 300);
}

#[test]
fn a_million_labels_are_one_column() {
    let folder = Folder::new();
    folder.write("million.csv", &many_labels(1_000_000));
    let mut fit = vec!["fit", "million.csv", "-o", "m.model", "--epochs", "1", "--time", "5s"];
    fit.push("--as-is");
    let run = folder.run(&fit);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(folder.run(&["query", "m.model", "P(b=1)", "--json"]).json()["kind"], "probability");
}
