//! A file read in pieces of any size gives the same table as read whole.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn file(name: &str, bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn options(piece: usize) -> StreamOptions {
    StreamOptions { piece, ..StreamOptions::default() }
}

fn pieces(path: &PathBuf, schema: &Schema, piece: usize) -> Vec<Table> {
    TableStream::open(path, schema, &options(piece)).unwrap().map(Result::unwrap).collect()
}

/// The first error when reading in such pieces.
fn problem(path: &PathBuf, schema: &Schema, piece: usize) -> String {
    match TableStream::open(path, schema, &options(piece)) {
        Ok(mut stream) => stream.find_map(Result::err).unwrap().to_string(),
        Err(error) => error.to_string(),
    }
}

/// The content of a file after reading and writing it in pieces.
fn written(pieces: &[Table], format: TableFormat) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = TableWriter::new(&mut out, format);
    for piece in pieces {
        writer.write(piece).unwrap();
    }
    writer.finish().unwrap();
    out
}

/// The values of all rows as bits, and their contributions to log p.
fn encoded(pieces: &[Table], schema: &Schema) -> Vec<u64> {
    let of = |piece: &Table| {
        let rows = schema.encode(piece).unwrap();
        let values = rows.to_rows().into_iter().chain(rows.log_jacobian().to_vec());
        let width = rows.num_variables();
        let (values, slopes): (Vec<f64>, Vec<f64>) = {
            let all: Vec<f64> = values.collect();
            let (a, b) = all.split_at(rows.num_rows() * width);
            (a.to_vec(), b.to_vec())
        };
        let row = |(row, slope): (&[f64], &f64)| [row, &[*slope]].concat();
        values.chunks_exact(width).zip(&slopes).flat_map(row).map(f64::to_bits).collect::<Vec<_>>()
    };
    pieces.iter().flat_map(of).collect()
}

const PEOPLE: &str = "\u{feff}id;city;age;height;note\r\n\
    007;Bonn;30;1.50;\"a\nb\"\r\n8;Essen;;1.7;x \" y\r\n009;Bonn;41;NA;\r\n\r\n10;;52;2;\"q\"\"\"\r\n11;Essen;30.0;1e0;z";

#[test]
fn csv_in_pieces_of_any_size_is_the_file() {
    let schema = infer("city;age;height\nBonn;30;1.50\nEssen;41;1.75\nBonn;52;2.00\n");
    let (_folder, path) = file("t.csv", PEOPLE.as_bytes());
    let whole = pieces(&path, &schema, 1 << 20);
    assert_eq!(whole.len(), 1);
    let expected = encoded(&whole, &schema);
    for piece in 1..160 {
        let found = pieces(&path, &schema, piece);
        assert_eq!(written(&found, TableFormat::Csv), written(&whole, TableFormat::Csv), "{piece}");
        assert_eq!(encoded(&found, &schema), expected, "pieces of {piece} bytes");
    }
    // A cell means the same, whatever the other cells are: leading zeros, and whole or real numbers.
    assert_eq!(whole[0].column("id").unwrap().text(0), "007");
    assert_eq!(whole[0].column("age").unwrap().number(4), Some(30.0));
    assert!(pieces(&path, &schema, 40).len() > 2, "it is read in pieces");
}

#[test]
fn cells_that_are_no_numbers_are_named_with_their_lines() {
    let schema = infer("a,b\n1,x\n2,y\n3,x\n");
    for (text, part) in [
        ("a,b\n1,x\n2,y\n3\n", "line 4"),
        ("a,b\n1,x\n2,y\n3,x,z\n4,y\n", "line 4"),
        ("a,b\n1,x\n2,y\ninf,x\n", "line 4"),
        ("a,b\n1,x\n2,y\n3,\"x\n4,y\n", "never closed"),
    ] {
        let (_folder, path) = file("t.csv", text.as_bytes());
        for piece in 1..30 {
            let message = problem(&path, &schema, piece);
            assert!(message.contains(part) && message.contains("t.csv"), "{piece}: {message}");
        }
    }
    let (_folder, path) = file("t.csv", b"a,b\n1,x\n2,y\n3,\xff\n");
    for piece in 1..20 {
        assert!(problem(&path, &schema, piece).contains("line 4"));
    }
    for (name, bytes) in [("t.csv", &b""[..]), ("t.csv", b"a,b\n"), ("t.parquet", b"")] {
        let (_folder, path) = file(name, bytes);
        assert!(problem(&path, &schema, 4).contains(name), "{bytes:?}");
    }
}

#[test]
fn packed_files_are_read_too_and_say_where_they_are() {
    let schema = infer("a,b\n1,x\n2,y\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv.gz");
    let rows: Vec<Option<i64>> = (0..5000).map(Some).collect();
    let columns = vec![Column::integers("a", rows), Column::labels("b", [Some("x"); 5000])];
    Table::new(columns).unwrap().write_csv(&path).unwrap();
    let mut stream = TableStream::open(&path, &schema, &options(1000)).unwrap();
    let (mut rows, mut before) = (0, 0.0);
    while let Some(piece) = stream.next() {
        rows += piece.unwrap().num_rows();
        let share = stream.share().unwrap();
        assert!((before..=1.0).contains(&share));
        before = share;
    }
    assert_eq!((rows, before), (5000, 1.0));
}

#[test]
fn arrays_are_read_in_pieces() {
    let table = Table::new(vec![
        Column::integers("x0", (0..100).map(Some)),
        Column::integers("x1", (0..100).map(|n| Some(n * n))),
    ]);
    let table = table.unwrap();
    let schema = Schema::infer(&table, &InferOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.npy");
    table.write_npy(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    for piece in [1, 16, 100, 1 << 20] {
        let found = pieces(&path, &schema, piece);
        assert_eq!(found.len(), 100_usize.div_ceil((piece / 16).max(1)));
        assert_eq!(written(&found, TableFormat::Npy), bytes, "{piece}");
    }
    for end in [bytes.len() - 1, bytes.len() - 900, 20] {
        fs::write(&path, &bytes[..end]).unwrap();
        assert!(problem(&path, &schema, 64).contains("t.npy"), "{end}");
    }
    fs::write(&path, [&bytes[..], b"x"].concat()).unwrap();
    assert!(problem(&path, &schema, 64).contains("follow"));
}

/// Whole numbers become floats once a real number appears.
#[test]
fn arrays_are_written_in_pieces() {
    let of = |values: Vec<f64>| Table::new(vec![Column::numbers("x", values)]).unwrap();
    let whole = |values: &[i64]| {
        Table::new(vec![Column::integers("x", values.iter().map(|&x| Some(x)))]).unwrap()
    };
    let found = written(&[whole(&[1, 2]), whole(&[3]), of(vec![0.5])], TableFormat::Npy);
    assert_eq!(found, written(&[of(vec![1.0, 2.0, 3.0, 0.5])], TableFormat::Npy));
    let text = Table::new(vec![Column::labels("x", [Some("a")])]).unwrap();
    assert!(TableWriter::new(Vec::new(), TableFormat::Npy).write(&text).is_err());
}

#[test]
fn pieces_of_one_table_have_the_same_columns() {
    let of = |name: &str| Table::new(vec![Column::numbers(name, vec![1.0])]).unwrap();
    let mut writer = TableWriter::new(Vec::new(), TableFormat::Csv);
    writer.write(&of("a")).unwrap();
    let message = writer.write(&of("b")).unwrap_err().to_string();
    assert!(message.contains("columns are b") && message.contains("were a"), "{message}");
}

#[cfg(feature = "parquet")]
mod parquet_pieces {
    use super::*;

    const MIXED: &[u8] = include_bytes!("mixed.parquet");

    #[test]
    fn groups_of_rows_are_read_in_pieces() {
        let whole = Table::from_parquet_bytes(MIXED.to_vec(), "t").unwrap();
        let schema = Schema::infer(&whole, &InferOptions::default()).unwrap();
        let (_folder, path) = file("mixed.parquet", MIXED);
        for piece in [1, 1000, 5000, 1 << 20] {
            let found = pieces(&path, &schema, piece);
            let csv = written(&found, TableFormat::Csv);
            assert!(csv == whole.to_csv(), "{piece}");
            // Also written in pieces, with the original types.
            let again = written(&found, TableFormat::Parquet);
            assert_eq!(Table::from_parquet_bytes(again, "t").unwrap(), whole, "{piece}");
            assert_eq!(encoded(&found, &schema), encoded(std::slice::from_ref(&whole), &schema));
        }
        assert!(pieces(&path, &schema, 1).len() == whole.num_rows());
    }

    #[test]
    fn damaged_files_are_errors_that_name_them() {
        let whole = Table::from_parquet_bytes(MIXED.to_vec(), "t").unwrap();
        let schema = Schema::infer(&whole, &InferOptions::default()).unwrap();
        for end in [MIXED.len() - 1, MIXED.len() / 2, 10] {
            let (_folder, path) = file("cut.parquet", &MIXED[..end]);
            let message = problem(&path, &schema, 1000);
            assert!(message.contains("cut.parquet"), "{message}");
        }
        // An invalid page in the middle.
        let mut bytes = MIXED.to_vec();
        let middle = bytes.len() / 3;
        bytes[middle..middle + 64].fill(0xa5);
        let (_folder, path) = file("middle.parquet", &bytes);
        let stream = TableStream::open(&path, &schema, &options(100)).unwrap();
        let errors: Vec<String> = stream.filter_map(|p| Some(p.err()?.to_string())).collect();
        assert!(matches!(&errors[..], [e] if e.contains("middle.parquet")), "{errors:?}");
    }

    #[test]
    fn a_type_that_later_cells_do_not_fit_is_refused() {
        let whole = Table::new(vec![Column::integers("x", [Some(1)])]).unwrap();
        let half = Table::new(vec![Column::numbers("x", vec![2.0, 0.5])]).unwrap();
        let mut writer = TableWriter::new(Vec::new(), TableFormat::Parquet);
        writer.write(&whole).unwrap();
        let message = writer.write(&half).unwrap_err().to_string();
        assert!(message.contains("column 'x'") && message.contains("row 2"), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any text that is a table is the same table in pieces.
    #[test]
    fn any_csv_is_the_same_in_pieces(
        rows in prop::collection::vec(
            ("[a-c\" \n]{0,4}", prop::option::of(-3_i32..3), prop::option::of(-1e3..1e3_f64)), 1..40),
        piece in 1_usize..200,
    ) {
        let columns = vec![
            Column::labels("a", rows.iter().map(|r| Some(r.0.as_str()))),
            Column::integers("b", rows.iter().map(|r| r.1.map(i64::from))),
            Column::numbers("c", rows.iter().map(|r| r.2.unwrap_or(f64::NAN)).collect()),
        ];
        let bytes = Table::new(columns).unwrap().to_csv();
        let schema = infer("a,b,c\nx,1,0.5\ny,2,1.5\nx,3,2.5\n");
        let (_folder, path) = file("t.csv", &bytes);
        let found = pieces(&path, &schema, piece);
        let whole = pieces(&path, &schema, 1 << 20);
        prop_assert_eq!(written(&found, TableFormat::Csv), written(&whole, TableFormat::Csv));
        let cells = |pieces: &[Table], column: &str| -> Vec<Option<u64>> {
            let of = |t: &Table| (0..t.num_rows())
                .map(|row| t.column(column).unwrap().number(row).map(f64::to_bits)).collect::<Vec<_>>();
            pieces.iter().flat_map(of).collect()
        };
        for column in ["b", "c"] {
            prop_assert_eq!(cells(&found, column), cells(&whole, column));
        }
    }
}
