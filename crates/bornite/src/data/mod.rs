//! Tables: reading and writing them, and encoding their cells as values of a circuit's variables.
//!
//! A [`Table`] contains cells. A [`Schema`] defines what each column means and maps it to variables. Supported files
//! are CSV ([`Table::read_csv`]), NPY and NPZ ([`Table::read_npy`]), IDX images ([`Table::read_idx`]), packed bits
//! ([`read_bits`]) and Parquet ([`Table::read_parquet`]), plain or gzip-compressed. Tables that do not fit into memory
//! are read ([`TableStream`]) and written ([`write_table`]) piece by piece.

mod archive;
mod array;
mod buffered;
mod calendar;
mod column;
mod csv;
mod error;
mod file;
mod file_form;
mod header;
mod npy;
mod number;
#[cfg(feature = "parquet")]
mod parquet;
mod pieces;
mod sample;
mod schema;
mod stream;
mod table;
#[cfg(test)]
mod tests;
mod warp;
mod writer;

pub use array::{Splits, read_bits};
pub use column::{
    Boolean, Categorical, Cell, ColumnKind, Continuous, DateTime, Digits, InferOptions, Integer,
    KindHint, Number, OTHER, Optional, Other, Periodic, TimePart, TimeUnit, WideIntegers,
};
pub(crate) use column::{Coding, End, Ends, OutsideSet, Parts};
pub use csv::{CsvLayout, CsvOptions};
pub use error::{DataError, FormatProblem};
pub(crate) use file::name as file_name;
pub use file::{FileReader, ReadShare, open_file, write_file};
pub(crate) use file_form::FileForm;
pub use number::NumberFormat;
#[cfg(feature = "parquet")]
pub use parquet::PARQUET_THREAD;
pub(crate) use pieces::{Piece, Pieces};
pub(crate) use sample::in_file;
pub use sample::{Sample, SampleOptions};
pub(crate) use schema::OutsideCell;
pub use schema::{
    Block, ColumnSchema, EncodeOptions, Encoded, Finding, Findings, LeftOut, Mismatch, Schema,
    Storage, Unseen,
};
pub use stream::{StreamOptions, TableStream};
pub(crate) use table::TextForm;
pub use table::{Cells, Column, Integers, Labels, Numbers, Table};
pub use warp::{Component, Scale, Support, Warp, WarpError, WarpOptions};
pub use writer::{TableFormat, TableWriter, write_table};
