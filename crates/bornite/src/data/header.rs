//! Detects whether the first line of a CSV file is a header.

use super::number::{Decimal, Reading};

/// The number of rows below the first line to examine.
const PROBED_ROWS: usize = 1000;
/// Numbers in this range may be years, the most common numbers among column names.
const YEARS: std::ops::RangeInclusive<i64> = 1500..=2200;
/// The minimum number of other numbers that form a sequence of names.
const SEQUENCE: usize = 3;

/// Whether the first cells of these columns are names, given the observed cells below them.
///
/// A name is text above numbers, or, in most columns, at least not a value of its own column. Numbers are names only
/// beside other names: if at least as many columns are certainly named, or if the numbers are years or an arithmetic
/// sequence and the cells below are not. A missing first cell tells nothing.
pub(super) fn names_columns<'a, B>(
    columns: impl Iterator<Item = (Option<&'a str>, B)>,
    decimal: Decimal,
) -> bool
where
    B: Iterator<Item = &'a str> + Clone,
{
    // 1,234 is not a name, whatever its comma means.
    let decimal = if decimal == Decimal::Point { Decimal::Grouped } else { decimal };
    let (mut names, mut sure, mut repeated) = (0, 0, 0);
    let mut numbers = Vec::new();
    let mut below_numbers = Vec::new();
    for (first, below) in columns {
        let Some(first) = first else { continue };
        let mut below = below.take(PROBED_ROWS);
        if decimal.read(first) == Reading::Text {
            names += 1;
            repeated += usize::from(below.clone().any(|cell| cell == first));
            let mut below = below.peekable();
            let has_cells = below.peek().is_some();
            sure += usize::from(has_cells && below.all(|cell| is_number(cell, decimal)));
        } else {
            numbers.push(whole(first));
            below_numbers.push(below.next().and_then(whole));
        }
    }
    let Some(numbers) = numbers.into_iter().collect::<Option<Vec<i64>>>() else { return false };
    if names == 0 {
        return false;
    }
    if sure > 0 && sure >= numbers.len() {
        return true;
    }
    if numbers.is_empty() {
        return names == 1 || 4 * repeated < 3 * names;
    }
    let below: Option<Vec<i64>> = below_numbers.into_iter().collect();
    repeated == 0 && is_sequence(&numbers) && !below.is_some_and(|below| is_sequence(&below))
}

fn is_number(cell: &str, decimal: Decimal) -> bool {
    matches!(decimal.read(cell), Reading::Integer(_) | Reading::Huge(_) | Reading::Real(_))
}

/// Parses a text that consists of digits.
fn whole(text: &str) -> Option<i64> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// Whether these are years in order, or a long enough arithmetic sequence.
fn is_sequence(numbers: &[i64]) -> bool {
    let is_even = numbers.windows(3).all(|w| w[1].checked_sub(w[0]) == w[2].checked_sub(w[1]))
        && numbers.windows(2).all(|w| w[0] != w[1]);
    let are_years = numbers.iter().all(|n| YEARS.contains(n));
    let is_ordered = numbers.is_sorted_by(|a, b| a < b) || numbers.is_sorted_by(|a, b| a > b);
    are_years && is_ordered || is_even && numbers.len() >= SEQUENCE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(rows: &[&str]) -> bool {
        let rows: Vec<Vec<&str>> = rows
            .iter()
            .map(|row| row.split(if row.contains(';') { ';' } else { ',' }).collect())
            .collect();
        let known = |cell: &&str| !cell.is_empty();
        names_columns(
            (0..rows[0].len()).map(|j| {
                let below = rows[1..].iter().map(move |row| row[j]).filter(known);
                (Some(rows[0][j]).filter(known), below)
            }),
            Decimal::Point,
        )
    }

    #[test]
    fn names_are_told_from_cells_by_all_columns() {
        for rows in [
            &["country,2019,2020", "DE,1,2"][..],
            &["country,2019", "DE,1.5", "FR,2"],
            &["country,2020,2019,2018", "DE,1,,3"],
            &["country,population,2019", "DE,83,1"],
            &["city,0,1,2", "Bonn,0.5,0.25,1"],
            &["a,b", "1,2"],
            &["a,", "b,1"],
            &["city,sky", "Bonn,rain", "Bonn,sun"],
            &["name,code,7", "x,1,2", "y,3,4"],
            &["a,b"],
            &["c", "a", "b", "c"],
            &["name;pay", "x;1,234", "y;12"],
        ] {
            assert!(named(rows), "{rows:?}");
        }
        for rows in [
            &["0,1", "1,1"][..],
            &["0,1,2,3", "4,5,6,7"],
            &["a,1", "b,1"],
            &["a,1,2,3", "b,4,5,6"],
            &["car,2019", "bus,2018"],
            &["DE,2.5,2019", "FR,1.5,3"],
            &["1,abc,2", "3,4,5"],
            &["Bonn,rain", "Essen,sun", "Bonn,rain"],
            &["DE,2019,2020", "DE,1,2"],
            &["-1,a", "2,b"],
            &["x;1,234", "y;1,250"],
        ] {
            assert!(!named(rows), "{rows:?}");
        }
    }
}
