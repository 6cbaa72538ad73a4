use super::*;
use std::ops::Bound::Included;

/// The error, whose message must contain these parts.
fn check(case: &str, message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{case}: '{part}' is not in: {message}");
    }
}

#[test]
fn files_that_are_no_table_name_place_and_remedy() {
    let numbers = |fault: &str| format!("x\n{}{fault}\n", "1\n2\n3\n".repeat(20)).into_bytes();
    let long = numbers("1.5.2");
    let infinite = numbers("inf");
    let cases: Vec<(&str, &[u8], &[&str])> = vec![
        ("empty", b"", &["'t.csv' is empty"]),
        ("blank", b"\n \r\n\n", &["'t.csv' is empty"]),
        ("mark alone", b"\xef\xbb\xbf", &["'t.csv' is empty"]),
        ("header only", b"a,b\n", &["'t.csv' has a header but no rows"]),
        ("ragged, short", b"a,b\n1,2\n3\n", &["line 3", "1 cells", "has 2", "delimiter ','"]),
        ("ragged, long", b"a,b\n1,2,3\n", &["line 2", "3 cells", "quotes"]),
        ("ragged after a break", b"a,b\n\"1\n\",2\n3\n", &["line 4"]),
        ("same name twice", b"a,b,a\n1,2,3\n", &["columns 1 and 3 of 't.csv'", "'a'", "rename"]),
        ("same after trimming", b"a, a\n1,2\n", &["columns 1 and 2"]),
        ("name of an unnamed", b"x1,\n1,2\n", &["both named 'x1'"]),
        ("Latin-1", b"a,b\n1,2\ncaf\xe9,3\n", &["'t.csv', line 3", "not UTF-8", "iconv"]),
        ("UTF-16", b"\xff\xfea\0,\0b\0\n\0", &["UTF-16"]),
        ("spreadsheet", b"PK\x03\x04\xff\xff", &["zip archive"]),
        ("Parquet", b"PAR1\x15\xff", &["Parquet"]),
        ("open quote", b"a,b\n1,\"x\n2,y\n", &["line 2", "never closed"]),
        ("open quote in the last", b"a\n\"x\ny\n", &["line 2", "never closed"]),
        (
            "a fault in numbers",
            &long,
            &["line 62, column 'x'", "'1.5.2' is not a number", "60 of", "declare"],
        ),
        (
            "infinity",
            &infinite,
            &["'t.csv', line 62", "'x'", "inf is not finite", "leave the cell empty"],
        ),
        ("too large", b"x\n1e400\n1\n", &["line 2", "1e400 is not finite"]),
    ];
    for (case, bytes, parts) in cases {
        let options = CsvOptions::default();
        let message = Table::from_csv_bytes(bytes, "t.csv", &options).unwrap_err().to_string();
        check(case, &message, parts);
    }
    let options = CsvOptions { text_columns: vec!["ages".to_owned()], ..CsvOptions::default() };
    let message = Table::from_csv_bytes(b"age\n1\n", "t", &options).unwrap_err().to_string();
    check("unknown text column", &message, &["'ages'", "did you mean 'age'?"]);
}

#[test]
fn files_that_cannot_be_opened_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.csv");
    let message = Table::read_csv(&path, &CsvOptions::default()).unwrap_err().to_string();
    check("absent", &message, &["cannot read", "none.csv"]);
    let message = Table::read_csv(folder.path(), &CsvOptions::default()).unwrap_err().to_string();
    check("folder", &message, &["cannot read"]);
    let t = table("a,b\n1,x\n");
    let message = t.write_csv(folder.path().join("no/t.csv")).unwrap_err().to_string();
    check("no folder", &message, &["cannot write", "t.csv"]);
    check(
        "text in NPY",
        &t.write_npy(folder.path().join("t.npy")).unwrap_err().to_string(),
        &["'b'", "number"],
    );
    let packed = folder.path().join("cut.csv.gz");
    table(&format!("a\n{}", "1\n2\n".repeat(500))).write_csv(&packed).unwrap();
    let bytes = std::fs::read(&packed).unwrap();
    for cut in [3, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&packed, &bytes[..cut]).unwrap();
        let message = Table::read_csv(&packed, &CsvOptions::default()).unwrap_err().to_string();
        check("cut off", &message, &["cannot unpack", "cut.csv.gz"]);
    }
    for (name, bytes) in
        [("a.idx", &b"hello"[..]), ("b.npy", b"hello"), ("c.npz", b"hello"), ("d.bits", b"hello")]
    {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let message = match &name[2..] {
            "idx" => Table::read_idx(&path).unwrap_err(),
            "npy" => Table::read_npy(&path).unwrap_err(),
            "npz" => Table::read_npz(&path, None).unwrap_err(),
            _ => read_bits(&path).unwrap_err(),
        };
        check(name, &message.to_string(), &[name, "cannot be read as", "does not start"]);
    }
    let bits = folder.path().join("cut.bits");
    std::fs::write(&bits, b"BITM\x02\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\xff").unwrap();
    check(
        "cut bits",
        &read_bits(&bits).unwrap_err().to_string(),
        &["expected 3 bytes of data, found 1"],
    );
}

#[test]
fn tables_that_make_no_sense_are_refused() {
    let column = |name: &str, n: usize| Column::numbers(name, vec![0.5; n]);
    let message = |result: Result<Table, DataError>| result.unwrap_err().to_string();
    check("none", &message(Table::new(vec![])), &["at least one column"]);
    check(
        "lengths",
        &message(Table::new(vec![column("a", 2), column("b", 3)])),
        &["'b' has 3 cells"],
    );
    check(
        "names",
        &message(Table::new(vec![column("a", 2), column("a", 2)])),
        &["columns 1 and 2"],
    );
    check(
        "rows",
        &message(Table::from_rows(&["a", "b"], &[1.0])),
        &["1 values do not divide into rows of 2"],
    );
    check("infinite", &message(Table::from_rows(&["a"], &[1.0, f64::INFINITY])), &["row 2", "'a'"]);
    let two = Table::new(vec![column("a", 1), column("b", 1)]).unwrap();
    check("image", &message(two.clone().with_image([2, 2, 1])), &["2 × 2 × 1", "2 columns"]);
    check(
        "column",
        &two.column("B").unwrap_err().to_string(),
        &["no column 'B'", "did you mean 'b'"],
    );
    let empty = two.select_rows(&[]);
    let message = Schema::infer(&empty, &InferOptions::default()).unwrap_err().to_string();
    check("no rows", &message, &["no rows"]);
}

#[test]
fn schemas_that_make_no_sense_are_refused() {
    let t = table("x,s,n\n0.5,a,1\n0.7,b,2\n2.5,c,900\n");
    let unit = Support { low: Some(0.0), high: Some(1.0) };
    for (column, hint, parts) in [
        ("y", KindHint::Boolean, &["no column 'y'"][..]),
        ("x", KindHint::Integer, &["'x' cannot be an integer", "not whole"]),
        ("s", KindHint::Digits, &["'s'", "not whole"]),
        ("s", KindHint::Continuous(Support::REAL), &["'s' cannot be continuous"]),
        ("s", KindHint::Boolean, &["exactly two"]),
        (
            "x",
            KindHint::Continuous(unit),
            &["column 'x'", "2.5 is outside the given bounds 0 to 1"],
        ),
        ("n", KindHint::Periodic { period: 0.0 }, &["'n'", "period"]),
        ("s", KindHint::Periodic { period: 1.0 }, &["'s'", "not numbers"]),
    ] {
        let message = Schema::infer(&t, &with_kind(column, hint)).unwrap_err().to_string();
        check(column, &message, parts);
    }
    let wide = Table::new(vec![Column::integers("n", [Some(0), Some(i64::MAX)])]).unwrap();
    let message = Schema::infer(&wide, &with_kind("n", KindHint::Integer)).unwrap_err().to_string();
    check("wide", &message, &["too wide; declare digits"]);
    for (json, part) in [
        (r#"{"columns": []}"#, "at least one column"),
        (
            r#"{"columns": [{"name": "a", "kind": "integer", "min": 3, "max": 1, "storage": "integers"}]}"#,
            "'a' is invalid",
        ),
        (
            r#"{"columns": [{"name": "a", "kind": "digits", "min": 0, "radices": [0], "storage": "integers"}]}"#,
            "radices",
        ),
        (
            r#"{"columns": [{"name": "a", "kind": "digits", "min": 9223372036854775807, "radices": [2], "storage": "integers"}]}"#,
            "64 bits",
        ),
        (
            r#"{"columns": [{"name": "a", "kind": "categorical", "labels": [], "has_other": false, "storage": "labels"}]}"#,
            "no labels",
        ),
        (
            r#"{"columns": [{"name": "a", "kind": "categorical", "labels": ["x", "x"], "has_other": false, "storage": "labels"}]}"#,
            "twice",
        ),
        (
            r#"{"columns": [{"name": "a", "kind": "categorical", "labels": ["2", "1"], "has_other": false, "storage": "integers"}]}"#,
            "in order",
        ),
        (
            r#"{"columns": [{"name": "a", "kind": "boolean", "labels": ["1", "1"], "storage": "labels"}]}"#,
            "two labels",
        ),
        (
            r#"{"columns": [{"name": "a", "kind": "periodic", "origin": 0, "period": -1, "storage": "integers"}]}"#,
            "period",
        ),
        (
            r#"{"columns": [{"name": "a", "kind": "integer", "min": 0, "max": 1, "storage": "labels"}]}"#,
            "cells are text",
        ),
        (
            r#"{"columns": [{"name": "a", "kind": "mystery", "storage": "labels"}]}"#,
            "unknown variant",
        ),
    ] {
        let message = serde_json::from_str::<Schema>(json).unwrap_err().to_string();
        check(json, &message, &[part]);
    }
}

#[test]
fn cells_that_do_not_fit_are_named() {
    let schema = infer(&format!("n,x,s,w\n{}", "1,0.25,a,1\n2,0.75,b,5000\n3,1.5,b,9\n".repeat(9)));
    let positive = Support { low: Some(0.0), high: None };
    let bounded = Schema::infer(
        &table("x\n0.5\n0.7\n2.5\n"),
        &with_kind("x", KindHint::Continuous(positive)),
    )
    .unwrap();
    for (schema, text, parts) in [
        (
            &schema,
            "n,x,s,w\n1,0.25,a,1\n4,0.25,a,1\n",
            &["row 2, column 'n'", "4 is outside 1 to 3"][..],
        ),
        (&schema, "n,x,s,w\n1.5,0.25,a,1\n", &["row 1, column 'n': '1.5' is not a whole number"]),
        (&schema, "n,x,s,w\none,0.25,a,1\n", &["column 'n': 'one' is not a whole number"]),
        (&schema, "n,x,s,w\n1,0.25,bb,1\n", &["column 's': the label 'bb'", "did you mean 'b'?"]),
        (&schema, "n,x,s,w\n1,0.3,a,1\n", &["column 'x': the label '0.3' is not one of its 3"]),
        (&schema, "n,x,s,w\n1,0.25,a,2\n", &["column 'w'"]),
        (&schema, "n,X,s,w\n1,0.25,a,1\n", &["no column 'x'", "did you mean 'X'?", "empty cells"]),
        (&bounded, "x\n-1\n", &["row 1, column 'x': -1 is outside 0 to inf"]),
        (&bounded, "x\nhigh\n", &["'high' is not a finite number"]),
    ] {
        let strict = EncodeOptions { unseen: Unseen::Refuse, ..EncodeOptions::default() };
        let message = schema.encode_with(&table(text), strict).unwrap_err().to_string();
        check(text, &message, parts);
    }
    let decode = |values: &[f64]| schema.decode(values).unwrap_err().to_string();
    check("short", &decode(&[0.0, 0.0, 0.0]), &["3 values do not divide into rows of 4"]);
    check("outside", &decode(&[0.0, 0.0, 7.0, 0.0]), &["row 1, column 's': 7"]);
    check("fraction", &decode(&[0.5, 0.0, 0.0, 0.0]), &["column 'n': 0.5"]);
}

#[test]
fn evidence_that_does_not_fit_is_refused() {
    let x = (0..200).map(|i| format!("{},a\n{},b\n", f64::from(i).sqrt(), i));
    let schema = infer(&format!("x,s\n{}", x.collect::<Vec<_>>().concat()));
    let interval = |column, a, b| {
        schema.evidence_interval(column, Included(a), Included(b)).unwrap_err().to_string()
    };
    check("order", &interval("x", 2.0, 1.0), &["'x'", "2 to 1 is not in order"]);
    check("NaN", &interval("x", f64::NAN, 1.0), &["not in order"]);
    check("labels", &interval("s", 0.0, 1.0), &["'s'", "not numbers", "set"]);
    check("column", &interval("y", 0.0, 1.0), &["no column 'y'"]);
    let set = schema.evidence_set("x", &[Cell::Number(1.0)]).unwrap_err().to_string();
    check("set", &set, &["'x'", "ask for an interval"]);
    let value = schema.evidence_value("s", Cell::Text("c")).unwrap_err().to_string();
    check("label", &value, &["column 's': the label 'c'"]);
    assert!(!value.contains("row"), "{value}");
    let number = schema.evidence_value("x", Cell::Number(f64::NAN)).unwrap_err().to_string();
    check("NaN", &number, &["not a finite number"]);
}
