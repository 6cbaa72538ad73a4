mod bad_input;
mod csv;
#[cfg(feature = "parquet")]
mod parquet;
mod real;
mod schema;
mod stream;

use super::*;

pub(super) fn table(text: &str) -> Table {
    Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap()
}

pub(super) fn infer(text: &str) -> Schema {
    Schema::infer(&table(text), &InferOptions::default()).unwrap()
}

pub(super) fn with_kind(column: &str, hint: KindHint) -> InferOptions {
    InferOptions { kinds: [(column.to_owned(), hint)].into(), ..InferOptions::default() }
}
