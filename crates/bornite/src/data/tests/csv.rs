use super::*;

#[test]
fn the_same_text_is_written_back() {
    for text in [
        "a,b\n1,2\n3,4\n",
        "a;b\r\n1;x\r\n;y\r\n",
        "a\tb\n1.50\tx\n2.25\t\"y\tz\"\n",
        "a|b\n1|2\n3|4",
        "\u{feff}a,b\n1,ü\n2,\"say \"\"hi\"\"\"\n",
        "a,b\n0.7,NA\n0,NaN\n1e-09,?\n",
        "1,2\n3,4\n",
        "a, b ,c\n 1, x,2.0\n2,y ,3.0\n",
        ",b\n0,1\n1,2\n",
        "zip,n\n00123,+5\n04567,6\n",
        "a,b\r\n1,2\r\n3,4",
        "a,b\n\"line\nbreak\",1\nx,2\n",
        "id\n18446744073709551615\n1\n",
        "x\n-0.0\n0.0\n",
        "x,y\n1.0,1e5\n-2.5,100000.0\n",
    ] {
        assert_eq!(String::from_utf8(table(text).to_csv()).unwrap(), text);
    }
}

#[test]
fn columns_are_what_their_cells_are() {
    let t = table("i,x,s,z,n\n1,1.5,a,007,\n-2,3,b,1,NA\n,NaN,?,2,\n");
    assert!(matches!(t.column("i").unwrap().cells(), Cells::Integers(_)));
    assert!(matches!(t.column("x").unwrap().cells(), Cells::Numbers(_)));
    assert!(matches!(t.column("s").unwrap().cells(), Cells::Labels(_)));
    assert!(matches!(t.column("z").unwrap().cells(), Cells::Labels(_)));
    assert_eq!(t.column("n").unwrap().num_missing(), 3);
    assert_eq!(t.column("i").unwrap().number(1), Some(-2.0));
    assert!((0..4).all(|j| t.columns()[j].is_missing(2) == (j != 3)));
    let text = CsvOptions { text_columns: vec!["i".to_owned()], ..CsvOptions::default() };
    let t = Table::from_csv_bytes(b"i\n1\n2\n", "t", &text).unwrap();
    assert!(matches!(t.columns()[0].cells(), Cells::Labels(_)));
}

#[test]
fn words_among_numbers_are_missing_cells_or_make_labels() {
    let numbers = |count: usize, of: usize| {
        let lines = (0..count).map(|n| format!("{}.5,{}\n", n % of, n % 7));
        lines.collect::<Vec<_>>().concat()
    };
    // A word for a missing number, in any case; next to other words it is a label.
    for word in ["nil", "None", "-", "unknown", "."] {
        let text = format!("x,y\n{}{word},3\n", numbers(40, 30));
        let t = table(&text);
        assert!(matches!(t.columns()[0].cells(), Cells::Numbers(_)), "{word}");
        assert!(t.columns()[0].is_missing(40));
        assert_eq!(String::from_utf8(t.to_csv()).unwrap(), text);
    }
    let t = table("x\nnone\nsome\nall\nnone\n");
    assert_eq!(t.columns()[0].num_missing(), 0);
    // A few repeated numbers next to a word are labels, as in the cylinders of cars.
    let t = table(&format!("x,y\n{}rotary,3\n", numbers(90, 5)));
    assert!(matches!(t.columns()[0].cells(), Cells::Labels(_)));
    // Codes are labels too, even if some are whole numbers.
    let codes: Vec<String> = (100..160).map(|n| format!("{n},{}\n", n % 7)).collect();
    let t = table(&format!("x,y\n{}c168,3\n", codes.concat()));
    assert!(matches!(t.columns()[0].cells(), Cells::Labels(_)));
    // A word among many different numbers is a mistake.
    let text = format!("x,y\n{}rotary,3\n", numbers(90, 30));
    let read = Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default());
    assert!(matches!(read, Err(DataError::NotANumber { line: 92, .. })));
}

#[test]
fn a_first_line_with_numbers_names_no_columns() {
    assert_eq!(table("0,1\n1,1\n").columns()[1].name(), "x1");
    assert_eq!(table("a,1\nb,1\n").num_rows(), 2);
    assert_eq!(table("a,\nb,1\n").columns()[1].name(), "x1");
    let t = table("country,2019,2020\nDE,1,2\nFR,3,4\n");
    assert_eq!((t.columns()[2].name(), t.num_rows(), t.layout().header), ("2020", 2, true));
    let options = CsvOptions { header: Some(false), ..CsvOptions::default() };
    let t = Table::from_csv_bytes(b"a,b\n1,2\n", "t", &options).unwrap();
    assert_eq!((t.columns()[1].name(), t.num_rows()), ("x1", 2));
    let options = CsvOptions { header: Some(true), ..CsvOptions::default() };
    let t = Table::from_csv_bytes(b"2020,2021\n1,2\n", "t", &options).unwrap();
    assert_eq!((t.columns()[1].name(), t.num_rows()), ("2021", 1));
}

#[test]
fn whole_numbers_beyond_64_bits_stay_apart() {
    let t = table("id\n18446744073709551614\n18446744073709551615\n7\n");
    let Cells::Labels(cells) = t.columns()[0].cells() else { panic!("{t:?}") };
    assert_eq!(cells.labels().len(), 3);
    // Whole numbers that floats represent exactly are numbers, and so are columns with fractions.
    let t = table("a,b\n100000000000000000000,1.5\n18446744073709551616,99999999999999999999\n");
    assert!(t.columns().iter().all(|c| matches!(c.cells(), Cells::Numbers(_))));
}

#[test]
fn selected_rows_keep_their_text() {
    let t = table("a,b,c\n+1,x,1\n2,y,\n3, z,2\n");
    let part = t.select_rows(&[2, 0]);
    assert_eq!(part.to_csv(), b"a,b,c\n3, z,2\n+1,x,1\n");
    assert_eq!(part.without_column("b").unwrap().to_csv(), b"a,c\n3,2\n+1,1\n");
}

#[test]
fn files_are_written_whole_and_packed_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let t = table("a,b\n1,x\n2,\n");
    for name in ["t.csv", "t.csv.gz"] {
        let path = folder.path().join(name);
        t.write_csv(&path).unwrap();
        assert_eq!(Table::read_csv(&path, &CsvOptions::default()).unwrap(), t);
    }
    let packed = std::fs::read(folder.path().join("t.csv.gz")).unwrap();
    assert!(packed.starts_with(&[0x1f, 0x8b]));
    assert!(t.write_csv(folder.path().join("none/t.csv")).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    let numbers = table("a,b\n1,0.5\n2,\n");
    let path = folder.path().join("t.npy");
    numbers.write_npy(&path).unwrap();
    let back = Table::read_npy(&path).unwrap();
    assert_eq!(back.columns()[1].number(0), Some(0.5));
    assert!(back.columns()[1].is_missing(1));
    table("a\n1\n-9007199254740993\n").write_npy(&path).unwrap();
    assert_eq!(Table::read_npy(&path).unwrap().columns()[0].text(1), "-9007199254740993");
}

#[test]
fn tables_with_the_same_holes_are_equal() {
    let text = "\"\"\"\"\n5.\n ";
    assert_eq!(table(text), table(text));
    assert_ne!(table("a\n0.5\n\n1.5\n"), table("a\n0.5\n2.5\n1.5\n"));
}

proptest::proptest! {
    /// Any text is a table or an error, and a table is written, read, encoded and decoded without loss.
    #[test]
    fn no_text_is_too_odd(text in r#"[,;"\nab01.5eN?  -]{0,60}"#) {
        let options = CsvOptions { delimiter: Some(b','), header: Some(true), ..CsvOptions::default() };
        let Ok(t) = Table::from_csv_bytes(text.as_bytes(), "t.csv", &options) else { return Ok(()) };
        let again = Table::from_csv_bytes(&t.to_csv(), "t.csv", &options).unwrap();
        proptest::prop_assert_eq!(again.columns(), t.columns());
        let Ok(schema) = Schema::infer(&t, &InferOptions::default()) else { return Ok(()) };
        let encoded = schema.encode(&t).unwrap();
        let back = schema.decode(&encoded.to_rows()).unwrap();
        for (a, b) in t.columns().iter().zip(back.columns()) {
            for row in 0..t.num_rows() {
                proptest::prop_assert_eq!(a.is_missing(row), b.is_missing(row));
            }
        }
    }

    #[test]
    fn no_bytes_are_too_odd(bytes in proptest::collection::vec(0_u8..=255, 0..80)) {
        let _ = Table::from_csv_bytes(&bytes, "t.csv", &CsvOptions::default());
    }
}
