//! Columns of which little can be learned.

use std::collections::BTreeSet;

use super::{ColumnKind, OTHER, Schema};
use crate::data::{Column, Table};

impl Schema {
    /// What whoever fits this table may want to know: columns without a known cell, with one value alone, or of which most
    /// labels are too rare to be learned. Each note names the column and what to do. Pixels of images have none.
    ///
    /// ```
    /// use bornite::data::{CsvOptions, InferOptions, Schema, Table};
    ///
    /// let text = b"id,unit,size\na,cm,1.5\nb,cm,2.5\nc,cm,2.0\n";
    /// let table = Table::from_csv_bytes(text, "sizes.csv", &CsvOptions::default())?;
    /// let notes = Schema::infer(&table, &InferOptions::default())?.notes(&table);
    /// assert!(notes.iter().any(|note| note.starts_with("column 'unit': every known cell is 'cm'")));
    /// # Ok::<(), bornite::data::DataError>(())
    /// ```
    pub fn notes(&self, table: &Table) -> Vec<String> {
        if self.image.is_some() {
            return Vec::new();
        }
        let column = |name: &str| table.columns().iter().find(|c| c.name() == name);
        let note = |c: &super::ColumnSchema| {
            let what = note(&c.kind, column(&c.name)?)?;
            Some(format!("column '{}': {what}", c.name))
        };
        self.columns.iter().filter_map(note).collect()
    }
}

fn note(kind: &ColumnKind, column: &Column) -> Option<String> {
    let known: Vec<usize> = (0..column.len()).filter(|&row| !column.is_missing(row)).collect();
    let Some(&first) = known.first() else {
        return Some("no cell is known, so nothing is learned of it; leave it out".to_owned());
    };
    let value = column.text(first);
    if known.len() > 1 && known.iter().all(|&row| column.text(row) == value) {
        return Some(format!("every known cell is '{value}', so it tells nothing; leave it out"));
    }
    let ColumnKind::Categorical { labels, has_other: true } = kind else { return None };
    let labels: BTreeSet<&str> = labels.iter().map(String::as_str).collect();
    let rare = known.iter().filter(|&&row| !labels.contains(&*column.text(row))).count();
    (2 * rare > known.len()).then(|| {
        format!(
            "{rare} of {} known cells hold labels too rare to be learned, which count as {OTHER}; leave it out, \
             or group them",
            known.len()
        )
    })
}
