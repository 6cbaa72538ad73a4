//! Detecting the delimiter.

use ::csv::ReaderBuilder;

use crate::data::number::{Decimal, Reading};

/// The delimiters to try, the most likely first.
const DELIMITERS: [u8; 4] = *b",;\t|";
/// The number of rows that determine the delimiter.
const PROBED_ROWS: usize = 64;

/// The delimiter that a first line such as `sep=;` names, and the length of that line.
pub(super) fn named_delimiter(bytes: &[u8]) -> Option<(u8, usize)> {
    let end = bytes.iter().take(16).position(|&b| b == b'\n')?;
    let line = bytes[..end].trim_ascii_end();
    // A tab is not the end of this line.
    let line = if bytes[..end].starts_with(b"sep=\t") { &bytes[..5] } else { line };
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    let (word, delimiter) = line.split_at_checked(4)?;
    match delimiter {
        &[delimiter] if word.eq_ignore_ascii_case(b"sep=") && DELIMITERS.contains(&delimiter) => {
            Some((delimiter, end + 1))
        }
        _ => None,
    }
}

/// Detects the delimiter: one that gives the first rows the same width above 1 (the widest, then the most likely);
/// otherwise the one that splits the first row into the most cells.
pub(super) fn find_delimiter(bytes: &[u8]) -> u8 {
    let widths = |delimiter| -> Vec<usize> {
        let records = reader(bytes, delimiter).into_byte_records().take(PROBED_ROWS);
        records.filter_map(|r| Some(r.ok()?.len())).collect()
    };
    let probes = DELIMITERS.map(|d| (d, widths(d)));
    if let Some(delimiter) = DELIMITERS.into_iter().find(|&d| d != b',' && has_commas(bytes, d)) {
        return delimiter;
    }
    let mut best = (false, 1, b',');
    for (delimiter, widths) in &probes {
        let Some(&first) = widths.first() else { continue };
        let even = first > 1 && widths.iter().all(|&w| w == first);
        if (even, first) > (best.0, best.1) {
            best = (even, first, *delimiter);
        }
    }
    best.2
}

/// Whether a delimiter splits the first rows into equally many cells that are all numbers, some with a comma. The first
/// row may be the header.
fn has_commas(bytes: &[u8], delimiter: u8) -> bool {
    [Decimal::Comma, Decimal::Grouped].into_iter().any(|d| are_numbers(bytes, delimiter, d))
}

fn are_numbers(bytes: &[u8], delimiter: u8, decimal: Decimal) -> bool {
    let (mut width, mut commas) = (None, 0);
    let records = reader(bytes, delimiter).into_byte_records().take(PROBED_ROWS);
    for (row, record) in records.filter_map(Result::ok).enumerate() {
        if record.len() < 2 || *width.get_or_insert(record.len()) != record.len() {
            return false;
        }
        for cell in record.iter().skip(if row == 0 { record.len() } else { 0 }) {
            let Ok(cell) = std::str::from_utf8(cell).map(str::trim) else { return false };
            let reading = if cell.is_empty() { None } else { Some(decimal.read(cell)) };
            if !matches!(reading, None | Some(Reading::Integer(_) | Reading::Real(_))) {
                return false;
            }
            commas += usize::from(cell.contains(','));
        }
    }
    commas > 0
}

pub(super) fn reader(bytes: &[u8], delimiter: u8) -> ::csv::Reader<&[u8]> {
    ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(bytes)
}
