//! Uninformative rows and columns.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ColumnSchema, OTHER, Schema, Storage};
use crate::data::{Cells, Column, Integers, Table};
use crate::names::shown;

/// The maximum number of items that one finding lists; the rest are counted.
const MAX_PLACES: usize = 8;
/// The maximum number of columns that a suggestion lists.
const MAX_NAMES: usize = 40;

/// The minimum number of rows to recognize a column of distinct values as identifiers.
const MANY_ROWS: usize = 32;
/// The largest first row number, in case the first rows are in another part of the table.
const MAX_FIRST: i64 = 20;
/// Whole numbers in this range may be years.
const YEARS: std::ops::RangeInclusive<i64> = 1500..=2200;
/// What to remove from numbers that are read as text.
const SIGNS: &str = "currency signs, percent signs and thousands separators";
/// Currency codes that may precede or follow a number.
const CODES: [&str; 6] = ["USD", "EUR", "GBP", "CHF", "JPY", "Rs."];
/// From this number of rows on, labels with two rows are as rare as labels with one.
const ENOUGH_ROWS: usize = 200;

/// A reason why a part of a table cannot be learned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// The table has one row.
    OneRow,
    /// At most one column is informative: this one.
    FewColumns(Option<String>),
    /// Rows without an observed cell, counted from 1.
    EmptyRows(Vec<usize>),
    /// Columns without an observed cell.
    EmptyColumns(Vec<String>),
    /// Constant columns, with their values.
    ConstantColumns(Vec<(String, String)>),
    /// Text columns in which most observed cells have labels that are too rare to be learned, with the numbers of such
    /// cells and of observed cells.
    RareLabels(Vec<(String, usize, usize)>),
    /// Text columns of numbers with currency signs, percent signs or thousands separators, each with an example. Their
    /// values are too rare to be learned as labels.
    WrittenNumbers(Vec<(String, String)>),
    /// Columns of row numbers.
    Identifiers(Vec<String>),
}

/// A column that a fit dropped, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The column.
    pub column: String,
    /// The reason.
    pub reason: String,
}

/// The result of [`Schema::findings`].
///
/// Its text form lists the findings and makes suggestions in terms of the library; [`Findings::explain`] accepts other
/// suggestions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings(Vec<Finding>);

impl Schema {
    /// Finds the parts of a table that cannot be learned: a single row or column, rows or columns without an observed
    /// cell, constant columns, and columns of identifiers or free text. `None` if there are none. Pixels of images are
    /// not checked.
    ///
    /// ```
    /// use bornite::data::{CsvOptions, InferOptions, Schema, Table};
    ///
    /// let text = b"unit,size,weight\ncm,1.5,3\n,,\ncm,2.0,4\n";
    /// let table = Table::from_csv_bytes(text, "sizes.csv", &CsvOptions::default())?;
    /// let findings = Schema::infer(&table, &InferOptions::default())?.findings(&table).unwrap().to_string();
    /// assert!(findings.contains("column 'unit' (always 'cm')"));
    /// assert!(findings.contains("row 2: every cell is missing"));
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
        let is_optional = |n: usize| self.columns[n].kind.coding().missing().is_some();
        let is_empty =
            |row: &usize| columns.iter().all(|(n, c)| c.is_missing(*row) && !is_optional(*n));
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
        let (mut written, mut identifiers, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for &(n, column) in columns {
            let name = column.name().to_owned();
            match self.tells(n, column) {
                Tells::Nothing => empty.push(name),
                // With a single row, every column is constant.
                Tells::OneValue(value) if column.len() > 1 => constant.push((name, value)),
                Tells::Rare(few, known) => match written_number(column) {
                    Some(example) => written.push((name, example)),
                    None => rare.push((name, few, known)),
                },
                Tells::Order => identifiers.push(name),
                Tells::OneValue(_) | Tells::Something => left.push(name),
            }
        }
        let few = left.len() < 2;
        [
            (!empty.is_empty()).then_some(Finding::EmptyColumns(empty)),
            (!constant.is_empty()).then_some(Finding::ConstantColumns(constant)),
            (!rare.is_empty()).then_some(Finding::RareLabels(rare)),
            (!written.is_empty()).then_some(Finding::WrittenNumbers(written)),
            (!identifiers.is_empty()).then_some(Finding::Identifiers(identifiers)),
            few.then(|| Finding::FewColumns(left.pop())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn tells(&self, n: usize, column: &Column) -> Tells {
        let cell = |row| column.usual_text(row);
        let Some(value) = (0..column.len()).find_map(cell) else { return Tells::Nothing };
        let known = column.len() - column.num_missing();
        let has_two = self.columns[n].kind.coding().missing().is_some() && known < column.len();
        if !has_two && (0..column.len()).filter_map(cell).all(|other| other == value) {
            return Tells::OneValue(value.into_owned());
        }
        if let Cells::Integers(cells) = column.cells() {
            return if is_numbering(cells) { Tells::Order } else { Tells::Something };
        }
        let coding = self.columns[n].kind.coding();
        if coding.labels().is_empty() && coding.other().is_none() {
            return Tells::Something;
        }
        // Count merged labels and, if there are many rows, labels that occur only once.
        let values = self.encode_column(n, column);
        let mut counts = vec![0_usize; coding.labels().len() + 1];
        values.iter().filter(|x| !x.is_nan()).for_each(|&x| counts[x as usize] += 1);
        let other = coding.other().map_or(0, |other| counts[other]);
        let is_text = self.columns[n].storage == Storage::Labels && known >= MANY_ROWS;
        let few = if known >= ENOUGH_ROWS { 2 } else { 1 };
        let is_rare = |n: &&usize| is_text && **n <= few;
        let once: usize = counts[..coding.labels().len()].iter().filter(is_rare).sum();
        let rare = other + once;
        if 2 * rare > known { Tells::Rare(rare, known) } else { Tells::Something }
    }
}

/// Whether the cells are row numbers: distinct whole numbers in any order that are consecutive, or that start near 0
/// with at most one gap for every two numbers, as after splitting off a third of a table. Years, with one row each, are
/// an ordinary column.
fn is_numbering(cells: &Integers) -> bool {
    let mut known: Vec<i64> = cells.iter().flatten().collect();
    known.sort_unstable();
    let (Some(&min), Some(&max)) = (known.first(), known.last()) else { return false };
    let (rows, range) = (known.len() as u64, max.abs_diff(min).saturating_add(1));
    if known.len() < MANY_ROWS || known.windows(2).any(|w| w[0] == w[1]) {
        return false;
    }
    let are_years = YEARS.contains(&min) && YEARS.contains(&max);
    let is_part = (0..=MAX_FIRST).contains(&min) && range.saturating_mul(2) <= rows * 3;
    (range == rows || is_part) && !are_years
}

/// The first number with signs in a text column in which nearly all cells are numbers once their signs are removed. A
/// caller who gives plain numbers as text wants labels.
fn written_number(column: &Column) -> Option<String> {
    let cells = || (0..column.len()).filter_map(|row| column.usual_text(row));
    let (known, numbers) =
        (cells().count(), cells().filter(|text| is_written_number(text)).count());
    let has_signs = |text: &str| text.trim().parse::<f64>().is_err();
    let example = cells().find(|text| is_written_number(text) && has_signs(text))?;
    (10 * numbers >= 9 * known).then(|| example.into_owned())
}

/// Whether a text is a number with a currency sign or code, a percent sign, parentheses for a minus sign or thousands
/// separators: `$1,234.50`, `-3.5 %`, `(1'000)`, `EUR 20`.
fn is_written_number(text: &str) -> bool {
    let is_sign = |c: char| c.is_whitespace() || "$€£¥₹₩₽%()+-".contains(c);
    let text = CODES.iter().fold(text.trim(), |text, code| {
        text.strip_prefix(code).or_else(|| text.strip_suffix(code)).unwrap_or(text)
    });
    let digits = text.trim_matches(is_sign);
    let is_group = |c: char| matches!(c, '.' | ',' | '\'' | '\u{a0}' | '\u{202f}' | ' ');
    let mut groups = digits.split(is_group);
    let are_digits = |group: &str| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit());
    let first = groups.next().is_some_and(are_digits);
    let others: Vec<&str> = groups.collect();
    // All but the last group are thousands; the last one may be the decimals.
    let thousands = &others[..others.len().saturating_sub(1)];
    first && others.iter().all(|g| are_digits(g)) && thousands.iter().all(|g| g.len() == 3)
}

/// What a column contributes.
enum Tells {
    Nothing,
    OneValue(String),
    Rare(usize, usize),
    Order,
    Something,
}

impl Finding {
    /// The columns of the finding.
    fn columns(&self) -> Vec<&str> {
        match self {
            Finding::EmptyColumns(names) | Finding::Identifiers(names) => {
                names.iter().map(String::as_str).collect()
            }
            Finding::ConstantColumns(names) | Finding::WrittenNumbers(names) => {
                names.iter().map(|c| c.0.as_str()).collect()
            }
            Finding::RareLabels(names) => names.iter().map(|c| c.0.as_str()).collect(),
            Finding::OneRow | Finding::FewColumns(_) | Finding::EmptyRows(_) => Vec::new(),
        }
    }

    /// The columns of the finding, with the reasons for dropping them.
    fn left_out(&self) -> Vec<LeftOut> {
        let out = |column: &String, reason: String| LeftOut { column: column.clone(), reason };
        match self {
            Finding::EmptyColumns(names) => {
                names.iter().map(|c| out(c, "every value is missing".to_owned())).collect()
            }
            Finding::ConstantColumns(names) => names
                .iter()
                .map(|(c, value)| out(c, format!("always '{}'", shortened(value))))
                .collect(),
            Finding::RareLabels(names) => {
                let reason = |few: &usize, known: &usize| {
                    format!("text: {few} of {known} values are too rare to learn")
                };
                names.iter().map(|(c, few, known)| out(c, reason(few, known))).collect()
            }
            Finding::WrittenNumbers(names) => {
                let reason = |example: &str| {
                    let example = shortened(example);
                    format!(
                        "text such as '{example}'; as numbers without {SIGNS} it can be learned"
                    )
                };
                names.iter().map(|(c, example)| out(c, reason(example))).collect()
            }
            Finding::Identifiers(names) => {
                names.iter().map(|c| out(c, "it numbers the rows".to_owned())).collect()
            }
            Finding::OneRow | Finding::FewColumns(_) | Finding::EmptyRows(_) => Vec::new(),
        }
    }
}

/// Truncates a value to a readable length.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 40;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::OneRow => f.write_str("the table has only one row"),
            Finding::FewColumns(None) => f.write_str("no columns remain"),
            Finding::FewColumns(Some(name)) => {
                write!(
                    f,
                    "only column '{name}' is informative, and a single column has no dependencies"
                )
            }
            Finding::EmptyRows(rows) => {
                write!(f, "{}: every cell is missing", places("row", rows, ToString::to_string))
            }
            Finding::EmptyColumns(names) => {
                write!(
                    f,
                    "{}: every cell is missing",
                    places("column", names, |c| format!("'{c}'"))
                )
            }
            Finding::ConstantColumns(names) => {
                let place = |(name, value): &(String, String)| {
                    format!("'{}' (always '{}')", shown(name), shown(value))
                };
                write!(f, "{}: every observed cell is the same", places("column", names, place))
            }
            Finding::Identifiers(names) => {
                let places = places("column", names, |c| format!("'{c}'"));
                write!(f, "{places}: consecutive numbers, each occurring once, like identifiers")
            }
            Finding::WrittenNumbers(names) => {
                let place = |(name, example): &(String, String)| {
                    format!("'{}' (such as '{}')", shown(name), shown(example))
                };
                let places = places("column", names, place);
                write!(f, "{places}: text that can be learned as numbers without {SIGNS}")
            }
            Finding::RareLabels(names) => {
                let place = |(name, few, known): &(_, _, _)| format!("'{name}' ({few} of {known})");
                let places = places("column", names, place);
                write!(
                    f,
                    "{places}: most observed cells contain labels too rare to learn, which count as {OTHER}"
                )
            }
        }
    }
}

/// Lists a few items, and counts the rest.
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

    /// The names of the columns to drop.
    pub fn columns(&self) -> Vec<&str> {
        self.0.iter().flat_map(Finding::columns).collect()
    }

    /// The columns to drop, with the reasons.
    pub(crate) fn left_out(&self) -> Vec<LeftOut> {
        self.0.iter().flat_map(Finding::left_out).collect()
    }

    /// Whether nothing can be learned, whichever columns are dropped.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.0.iter().any(|f| matches!(f, Finding::OneRow | Finding::FewColumns(None)))
    }

    /// Explains the findings and makes suggestions, in the caller's words for how to drop columns, given their names,
    /// and for how to fit the table anyway.
    pub fn explain(&self, drop: impl Fn(&[&str]) -> String, as_is: &str) -> String {
        let has = |what: fn(&Finding) -> bool| self.0.iter().any(what);
        let mut remedies = Vec::new();
        let columns = self.columns();
        if !columns.is_empty() && !has(|f| matches!(f, Finding::FewColumns(None))) {
            let shown = &columns[..columns.len().min(MAX_NAMES)];
            let more = if columns.len() > shown.len() { ", …" } else { "" };
            let plural = if columns.len() == 1 { "" } else { "s" };
            remedies.push(format!("drop the column{plural} ({}{more})", drop(shown)));
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
            "there is little to learn from this table:\n{}\n{}, or fit it anyway ({as_is})",
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
            "rows 11, 12, 13, 14, 15, 16, 17, 18 and 22 more: every cell is missing",
            "columns 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8', 'c9' and 2 more: every cell is missing",
            "'c19' (always '7') and 82 more: every observed cell is the same",
            "drop the columns (Table::without_column, …), remove the empty rows, or fit it anyway",
        ] {
            assert!(text.contains(part), "no '{part}' in {text}");
        }
        assert!(!text.contains("only column"), "{text}");
    }

    #[test]
    fn tables_with_something_to_tell_have_no_findings() {
        assert_eq!(found(&wide(2, 2, |row, column| Some(row + column))), None);
        // Pixels at the edge of an image are always dark.
        let image = wide(4, 9, |row, column| Some(if column == 0 { 0 } else { row % 2 }));
        assert!(found(&image).is_some());
        assert_eq!(found(&image.with_image([2, 2, 1]).unwrap()), None);
    }

    #[test]
    fn numbers_of_rows_are_found_and_years_are_none() {
        let column = |number: fn(i64) -> i64| {
            let rows = (0..60).map(number);
            let id = Column::integers("id", rows.map(Some));
            let other = |name, by: i64| Column::integers(name, (0..60).map(|i| Some(i * i % by)));
            found(&Table::new(vec![id, other("a", 3), other("b", 5)]).unwrap())
        };
        assert!(column(|i| i).unwrap().contains("'id'"));
        assert!(column(|i| 70_001 + (i * 7) % 60).unwrap().contains("'id'"));
        // Four of five rows of a table, as after a split.
        assert!(column(|i| 2 + i + i / 4).unwrap().contains("'id'"));
        assert_eq!(column(|i| 1950 + i), None);
        assert_eq!(column(|i| 1 + i / 2), None);
        assert_eq!(column(|i| 500 + 3 * i), None);
        assert_eq!(column(|i| 2 * i), None);
    }

    #[test]
    fn one_value_in_many_texts_is_one_value() {
        let text = b"a,b,c\n7,x,1\n7.0,y,2\n7.00,x,2\n";
        let table =
            Table::from_csv_bytes(text, "t.csv", &crate::data::CsvOptions::default()).unwrap();
        assert!(found(&table).unwrap().contains("column 'a' (always '7"));
    }

    #[test]
    fn numbers_that_are_written_with_signs_are_named() {
        for text in ["$1,234.50", "€ 12", "12.5%", "(1,000)", "-$3", "1'234'567", "EUR 20", "7 USD"]
        {
            assert!(is_written_number(text), "{text}");
        }
        for text in ["", "$", "12a", "A-12", "1,23,456", "10.0.0.1.5", "12/5", "Rs"] {
            assert!(!is_written_number(text), "{text}");
        }
        let price = |i: i64| format!("${},{:03}", 1 + i, (37 * i) % 1000);
        let name = |i: i64| format!("{i}");
        let text = |name: &str, cell: &dyn Fn(i64) -> String| {
            let cells: Vec<String> = (0..60).map(cell).collect();
            Column::labels(name, cells.iter().map(|cell| Some(&**cell)))
        };
        let other = |name, by: i64| Column::integers(name, (0..60).map(|i| Some(i * i % by)));
        let columns =
            vec![text("price", &price), text("name", &name), other("a", 3), other("b", 5)];
        let table = Table::new(columns).unwrap();
        let found = Schema::infer(&table, &InferOptions::default()).unwrap().findings(&table);
        let found = found.unwrap();
        assert!(found.to_string().contains("'price' (such as '$1,000')"), "{found}");
        let reasons: Vec<LeftOut> = found.left_out();
        assert_eq!(reasons[0].column, "name");
        assert_eq!(
            reasons[1].reason,
            format!("text such as '$1,000'; as numbers without {SIGNS} it can be learned")
        );
    }
}
