//! `mixed.parquet` was written by pyarrow, with two row groups, all codecs, dictionaries and page checksums.
//! `mixed.csv` is the same table.

use std::mem::discriminant;

use ::parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;

use super::*;

const MIXED: &[u8] = include_bytes!("mixed.parquet");

fn read(bytes: &[u8]) -> Result<Table, DataError> {
    Table::from_parquet_bytes(bytes.to_vec(), "t.parquet")
}

#[test]
fn a_file_of_another_library_is_the_table_of_its_csv() {
    let (found, expected) = (read(MIXED).unwrap(), table(include_str!("mixed.csv")));
    assert_eq!(found.num_rows(), expected.num_rows());
    assert_eq!(found.num_columns(), expected.num_columns());
    for (a, b) in found.columns().iter().zip(expected.columns()) {
        assert_eq!(a.name(), b.name());
        assert_eq!(discriminant(a.cells()), discriminant(b.cells()), "{}", a.name());
        for row in 0..a.len() {
            let place = format!("{}, row {row}", a.name());
            assert_eq!(a.is_missing(row), b.is_missing(row), "{place}");
            assert_eq!(a.number(row), b.number(row), "{place}");
            if let Cells::Labels(_) = b.cells() {
                assert_eq!(a.text(row), b.text(row), "{place}");
            }
        }
    }
    let infer = |t: &Table| Schema::infer(t, &InferOptions::default()).unwrap();
    let kinds = |t: &Table| infer(t).columns().iter().map(|c| c.kind.clone()).collect::<Vec<_>>();
    assert_eq!(kinds(&found), kinds(&expected));
}

/// The types and the metadata of a file.
fn types(bytes: &[u8]) -> (Vec<String>, Option<usize>) {
    let file = SerializedFileReader::new(bytes::Bytes::from(bytes.to_vec())).unwrap();
    let metadata = file.metadata().file_metadata();
    let columns = metadata.schema_descr().columns().iter();
    let types = columns.map(|c| format!("{:?}", c.self_type())).collect();
    (types, metadata.key_value_metadata().map(Vec::len))
}

#[test]
fn columns_are_written_in_the_types_that_they_had() {
    let found = read(MIXED).unwrap();
    let written = found.to_parquet_bytes().unwrap();
    assert_eq!(types(&written), types(MIXED));
    assert_eq!(read(&written).unwrap(), found);
    // Also with some columns dropped, and with imputed cells.
    let (first, last) = (&found.columns()[0], &found.columns()[found.num_columns() - 1]);
    let some = found.with_columns(vec![last.filled(last), first.clone()]).unwrap();
    let (kinds, all) = (types(&some.to_parquet_bytes().unwrap()).0, types(MIXED).0);
    assert_eq!(kinds, [all[all.len() - 1].clone(), all[0].clone()]);
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        numbers in prop::collection::vec(prop::option::of(-1e300..1e300_f64), 1..60),
        whole in prop::collection::vec(prop::option::of(any::<i64>()), 60),
        words in prop::collection::vec(prop::option::of("[a-zé ]{0,3}"), 60),
    ) {
        let rows = numbers.len();
        let table = Table::new(vec![
            Column::numbers("a", numbers.iter().map(|x| x.unwrap_or(f64::NAN)).collect()),
            Column::integers("b b", whole[..rows].iter().copied()),
            Column::labels("ü", words[..rows].iter().map(Option::as_deref)),
        ]).unwrap();
        prop_assert_eq!(read(&table.to_parquet_bytes().unwrap()).unwrap(), table);
    }
}

#[test]
fn several_groups_of_rows_are_one_table() {
    let rows = (1 << 20) + 3;
    let table = Table::new(vec![Column::bytes("a", (0..rows).map(|n| (n % 251) as u8).collect())]);
    let table = table.unwrap();
    assert_eq!(read(&table.to_parquet_bytes().unwrap()).unwrap(), table);
}

/// Every damage is an error that names the file: checksums protect the pages, and a panic of the Parquet library stays
/// in its thread.
#[test]
fn damaged_files_are_refused() {
    for cut in (0..MIXED.len()).step_by(11) {
        let message = read(&MIXED[..cut]).unwrap_err().to_string();
        assert!(message.contains("'t.parquet'"), "{cut}: {message}");
    }
    let mut survivors = 0;
    for at in (0..MIXED.len()).step_by(3) {
        for change in [1, 0x80, 0xff] {
            let mut bytes = MIXED.to_vec();
            bytes[at] ^= change;
            match read(&bytes) {
                // Some bytes of headers have no meaning, and names may change.
                Ok(_) => survivors += 1,
                Err(e) => assert!(e.to_string().contains("'t.parquet'"), "{at}: {e}"),
            }
        }
    }
    assert!(survivors < MIXED.len() / 2, "{survivors}");
}

#[test]
fn what_is_no_plain_column_is_refused_by_name() {
    let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    let lists = message(include_bytes!("lists.parquet"));
    assert!(lists.contains("column 'parts': lists and structs"), "{lists}");
    let brotli = message(include_bytes!("brotli.parquet"));
    assert!(brotli.contains("Brotli") && brotli.contains("zstd"), "{brotli}");
    let infinite = Table::new(vec![Column::numbers("x", vec![1.0, f64::INFINITY])]).unwrap();
    let infinite = message(&infinite.to_parquet_bytes().unwrap());
    assert!(infinite.contains("row 2, column 'x': inf"), "{infinite}");
    assert!(message(b"").contains("empty"));
    let none = table("a,b\n1,2\n").select_rows(&[]).to_parquet_bytes().unwrap();
    assert!(message(&none).contains("no rows"), "{}", message(&none));
}
