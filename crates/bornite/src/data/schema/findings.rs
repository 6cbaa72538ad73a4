//! Tables, rows and columns of which little can be learned.

use std::collections::BTreeMap;
use std::fmt;

use super::{ColumnSchema, OTHER, Schema};
use crate::data::{Column, Table};

/// The most places that one finding lists; the others are counted.
const MAX_PLACES: usize = 8;
/// The most columns that a remedy lists.
const MAX_NAMES: usize = 40;

/// What of a table teaches nothing, one finding for each way of doing so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// The table has one row.
    OneRow,
    /// At most one column tells anything: this one.
    FewColumns(Option<String>),
    /// Rows without a known cell, counted from 1.
    EmptyRows(Vec<usize>),
    /// Columns without a known cell.
    EmptyColumns(Vec<String>),
    /// Columns with one value alone, and the value.
    ConstantColumns(Vec<(String, String)>),
    /// Columns of which most known cells hold labels too rare to be learned: how many, and how many are known.
    RareLabels(Vec<(String, usize, usize)>),
}

/// All that [`Schema::findings`] has to say of a table.
///
/// As text, what is found and what to do about it, in the words of the library; [`Findings::explain`] takes others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings(Vec<Finding>);

impl Schema {
    /// What stands in the way of learning from this table: one row or column alone, rows or columns without a known cell,
    /// columns with one value alone, or of which most labels are too rare to be learned. `None` where nothing does. The
    /// pixels of images may be whatever they are.
    ///
    /// ```
    /// use bornite::data::{CsvOptions, InferOptions, Schema, Table};
    ///
    /// let text = b"unit,size,weight\ncm,1.5,3\n,,\ncm,2.0,4\n";
    /// let table = Table::from_csv_bytes(text, "sizes.csv", &CsvOptions::default())?;
    /// let findings = Schema::infer(&table, &InferOptions::default())?.findings(&table).unwrap().to_string();
    /// assert!(findings.contains("column 'unit' (always 'cm')"));
    /// assert!(findings.contains("row 2: no cell is known"));
    /// # Ok::<(), bornite::data::DataError>(())
    /// ```
    pub fn findings(&self, table: &Table) -> Option<Findings> {
        let mut found = Vec::new();
        if table.num_rows() == 1 {
            found.push(Finding::OneRow);
        }
        let by_name: BTreeMap<&str, &Column> =
            table.columns().iter().map(|c| (c.name(), c)).collect();
        let column = |c: &'_ ColumnSchema| by_name.get(&*c.name).copied();
        let columns: Vec<(usize, &Column)> =
            self.columns.iter().enumerate().filter_map(|(n, c)| Some((n, column(c)?))).collect();
        let is_empty = |row: &usize| columns.iter().all(|(_, c)| c.is_missing(*row));
        let rows: Vec<usize> = (0..table.num_rows()).filter(is_empty).map(|row| row + 1).collect();
        if !rows.is_empty() {
            found.push(Finding::EmptyRows(rows));
        }
        if self.image.is_none() {
            found.extend(self.findings_of(&columns));
        }
        (!found.is_empty()).then_some(Findings(found))
    }

    fn findings_of(&self, columns: &[(usize, &Column)]) -> Vec<Finding> {
        let (mut empty, mut constant, mut rare) = (Vec::new(), Vec::new(), Vec::new());
        let mut left = Vec::new();
        for &(n, column) in columns {
            let name = column.name().to_owned();
            match self.tells(n, column) {
                Tells::Nothing => empty.push(name),
                // Of one row, every column has one value.
                Tells::OneValue(value) if column.len() > 1 => constant.push((name, value)),
                Tells::Rare(few, known) => rare.push((name, few, known)),
                Tells::OneValue(_) | Tells::Something => left.push(name),
            }
        }
        let few = left.len() < 2;
        [
            (!empty.is_empty()).then_some(Finding::EmptyColumns(empty)),
            (!constant.is_empty()).then_some(Finding::ConstantColumns(constant)),
            (!rare.is_empty()).then_some(Finding::RareLabels(rare)),
            few.then(|| Finding::FewColumns(left.pop())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn tells(&self, n: usize, column: &Column) -> Tells {
        let cell = |row| column.usual_text(row);
        let Some(value) = (0..column.len()).find_map(cell) else { return Tells::Nothing };
        if (0..column.len()).filter_map(cell).all(|other| other == value) {
            return Tells::OneValue(value.into_owned());
        }
        let Some(other) = self.columns[n].kind.coding().other() else { return Tells::Something };
        let values = self.encode_column(n, column);
        let rare = values.iter().filter(|x| **x == other as f64).count();
        let known = column.len() - column.num_missing();
        if 2 * rare > known { Tells::Rare(rare, known) } else { Tells::Something }
    }
}

/// What a column has to tell.
enum Tells {
    Nothing,
    OneValue(String),
    Rare(usize, usize),
    Something,
}

impl Finding {
    /// The columns that it names.
    fn columns(&self) -> Vec<&str> {
        match self {
            Finding::EmptyColumns(names) => names.iter().map(String::as_str).collect(),
            Finding::ConstantColumns(names) => names.iter().map(|c| c.0.as_str()).collect(),
            Finding::RareLabels(names) => names.iter().map(|c| c.0.as_str()).collect(),
            Finding::OneRow | Finding::FewColumns(_) | Finding::EmptyRows(_) => Vec::new(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::OneRow => f.write_str("the table has one row, and that shows no distribution"),
            Finding::FewColumns(None) => f.write_str("no column is left to learn from"),
            Finding::FewColumns(Some(name)) => {
                write!(
                    f,
                    "only column '{name}' tells anything, and of one column there is no dependence"
                )
            }
            Finding::EmptyRows(rows) => {
                write!(f, "{}: no cell is known", places("row", rows, ToString::to_string))
            }
            Finding::EmptyColumns(names) => {
                write!(f, "{}: no cell is known", places("column", names, |c| format!("'{c}'")))
            }
            Finding::ConstantColumns(names) => {
                let place = |(name, value): &(_, _)| format!("'{name}' (always '{value}')");
                write!(f, "{}: every known cell is the same", places("column", names, place))
            }
            Finding::RareLabels(names) => {
                let place = |(name, few, known): &(_, _, _)| format!("'{name}' ({few} of {known})");
                let places = places("column", names, place);
                write!(
                    f,
                    "{places}: most known cells hold labels too rare to be learned, which count as {OTHER}"
                )
            }
        }
    }
}

/// A few places, and how many more there are.
fn places<T>(word: &str, all: &[T], place: impl Fn(&T) -> String) -> String {
    let shown: Vec<String> = all.iter().take(MAX_PLACES).map(place).collect();
    let more = match all.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let plural = if all.len() == 1 { "" } else { "s" };
    format!("{word}{plural} {}{more}", shown.join(", "))
}

impl Findings {
    /// The findings.
    pub fn list(&self) -> &[Finding] {
        &self.0
    }

    /// The names of the columns that are better left out.
    pub fn columns(&self) -> Vec<&str> {
        self.0.iter().flat_map(Finding::columns).collect()
    }

    /// What is found and what to do about it: how columns are left out, given their names, and how the table is fitted
    /// nevertheless, are told in the words of whoever asks.
    pub fn explain(&self, drop: impl Fn(&[&str]) -> String, as_is: &str) -> String {
        let has = |what: fn(&Finding) -> bool| self.0.iter().any(what);
        let mut remedies = Vec::new();
        let columns = self.columns();
        if !columns.is_empty() && !has(|f| matches!(f, Finding::FewColumns(None))) {
            let shown = &columns[..columns.len().min(MAX_NAMES)];
            let more = if columns.len() > shown.len() { ", …" } else { "" };
            let plural = if columns.len() == 1 { "" } else { "s" };
            remedies.push(format!("leave the column{plural} out ({}{more})", drop(shown)));
        }
        if has(|f| matches!(f, Finding::EmptyRows(_))) {
            remedies.push("remove the empty rows".to_owned());
        }
        if has(|f| matches!(f, Finding::OneRow)) {
            remedies.push("add rows".to_owned());
        }
        if has(|f| matches!(f, Finding::FewColumns(_))) {
            remedies.push("add columns".to_owned());
        }
        let list: Vec<String> = self.0.iter().map(|f| format!("  {f}")).collect();
        format!(
            "there is little to learn from in this table:\n{}\n{}, or fit it as it is ({as_is})",
            list.join("\n"),
            remedies.join(", "),
        )
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drop = |_: &[&str]| "Table::without_column".to_owned();
        f.write_str(&self.explain(drop, "ModelOptions::as_is"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::InferOptions;

    fn found(table: &Table) -> Option<String> {
        let schema = Schema::infer(table, &InferOptions::default()).unwrap();
        schema.findings(table).map(|f| f.to_string())
    }

    fn wide(columns: i64, rows: i64, cell: impl Fn(i64, i64) -> Option<i64>) -> Table {
        let column = |j: i64| Column::integers(format!("c{j}"), (0..rows).map(|i| cell(i, j)));
        Table::new((0..columns).map(column).collect()).unwrap()
    }

    #[test]
    fn all_places_are_counted_and_a_few_are_named() {
        let table = wide(102, 50, |row, column| match column {
            _ if (10..40).contains(&row) => None,
            0 | 1 => Some((row + column) % 3),
            2..12 => None,
            _ => Some(7),
        });
        let text = found(&table).unwrap();
        for part in [
            "rows 11, 12, 13, 14, 15, 16, 17, 18 and 22 more: no cell is known",
            "columns 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'c9' and 2 more: no cell is known",
            "'c19' (always '7') and 82 more: every known cell is the same",
            "leave the columns out (Table::without_column, …), remove the empty rows, or fit it as it is",
        ] {
            assert!(text.contains(part), "no '{part}' in {text}");
        }
        assert!(!text.contains("only column"), "{text}");
    }

    #[test]
    fn tables_with_something_to_tell_have_no_findings() {
        assert_eq!(found(&wide(2, 2, |row, column| Some(row + column))), None);
        // Pixels at the edge are always dark.
        let image = wide(4, 9, |row, column| Some(if column == 0 { 0 } else { row % 2 }));
        assert!(found(&image).is_some());
        assert_eq!(found(&image.with_image([2, 2, 1]).unwrap()), None);
    }

    #[test]
    fn one_value_in_many_texts_is_one_value() {
        let text = b"a,b,c\n7,x,1\n7.0,y,2\n7.00,x,2\n";
        let table =
            Table::from_csv_bytes(text, "t.csv", &crate::data::CsvOptions::default()).unwrap();
        assert!(found(&table).unwrap().contains("column 'a' (always '7"));
    }
}
