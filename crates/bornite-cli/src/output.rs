//! Output: aligned tables, readable numbers, JSON.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Result;
use bornite::data::{Cells, Column};
use bornite::printable_text;
pub(crate) use bornite::{printable, shortest_number as number, shown};
use serde::Serialize;
use serde_json::Value;

/// Writes one JSON object on one line. A number that is not finite, such as the log of 0, becomes `null`.
pub(crate) fn json(out: &mut dyn Write, value: &impl Serialize) -> Result<()> {
    // Serialized to a string first, so that a write error stays an `io::Error`.
    writeln!(out, "{}", serde_json::to_string(value)?)?;
    Ok(())
}

/// A cell of a table, for JSON.
pub(crate) fn json_cell(column: &Column, row: usize) -> Value {
    match column.cells() {
        Cells::Numbers(c) => Value::from(c.values()[row]),
        Cells::Integers(c) => Value::from(c.get(row)),
        Cells::Labels(c) => Value::from(c.get(row)),
    }
}

/// Writes names and values in two columns.
pub(crate) fn pairs(out: &mut dyn Write, pairs: &[(&str, String)]) -> io::Result<()> {
    let width = pairs.iter().map(|(name, _)| chars(name)).max().unwrap_or(0);
    for (name, value) in pairs {
        let line = format!("{name}{}  {}", " ".repeat(width - chars(name)), printable(value));
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Rows of cells under a header; the first columns are text and the others numbers.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    num_words: usize,
}

impl Table {
    /// A table whose first `num_words` columns are aligned to the left.
    pub(crate) fn new(num_words: usize, head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(ToString::to_string).collect()], num_words }
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| one_line(&cell)).collect());
    }

    fn widths(&self) -> Vec<usize> {
        let column = |c: usize| self.rows.iter().map(|r| r.get(c).map_or(0, |x| chars(x))).max();
        (0..self.rows[0].len()).map(|c| column(c).unwrap_or(0)).collect()
    }

    fn pad(&self, column: usize, cell: &str, width: usize) -> String {
        let space = " ".repeat(width.saturating_sub(chars(cell)));
        if column < self.num_words { format!("{cell}{space}") } else { format!("{space}{cell}") }
    }

    /// Writes the table for a terminal.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let widths = self.widths();
        for (n, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> =
                row.iter().zip(&widths).enumerate().map(|(c, (x, &w))| self.pad(c, x, w)).collect();
            writeln!(out, "  {}", cells.join("   ").trim_end())?;
            if n == 0 {
                let length = widths.iter().sum::<usize>() + 3 * (widths.len() - 1);
                writeln!(out, "  {}", "─".repeat(length))?;
            }
        }
        Ok(())
    }

    /// Writes the table as Markdown.
    pub(crate) fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        let widths: Vec<usize> = self.widths().iter().map(|&w| w.max(3)).collect();
        for (n, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> =
                row.iter().zip(&widths).enumerate().map(|(c, (x, &w))| self.pad(c, x, w)).collect();
            writeln!(out, "| {} |", cells.join(" | "))?;
            if n == 0 {
                let rule = |(c, &w): (usize, &usize)| {
                    let end = if c < self.num_words { "-" } else { ":" };
                    format!("{}{end}", "-".repeat(w - 1))
                };
                let rules: Vec<String> = widths.iter().enumerate().map(rule).collect();
                writeln!(out, "| {} |", rules.join(" | "))?;
            }
        }
        Ok(())
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Escapes control characters on their way to a terminal, so that the cells of a table cannot control it.
#[derive(Debug)]
pub(crate) struct Terminal<W> {
    out: W,
    /// The beginning of a character.
    rest: Vec<u8>,
}

impl<W: Write> Terminal<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, rest: Vec::new() }
    }
}

impl<W: Write> Write for Terminal<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend(bytes);
        let mut text = String::new();
        let mut done = 0;
        for chunk in self.rest.utf8_chunks() {
            text += chunk.valid();
            done += chunk.valid().len();
            // The last bytes may be the beginning of a character.
            if done + chunk.invalid().len() == self.rest.len() {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            done += chunk.invalid().len();
        }
        self.rest.drain(..done);
        self.out.write_all(printable_text(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A cell on one line.
fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// exp(log), as a power of ten if it is out of the range of a float.
pub(crate) fn exp(log: f64) -> String {
    match log {
        f64::NEG_INFINITY => "0".to_owned(),
        log if log.abs() < 700.0 => number(log.exp()),
        log => format!("about 10^{:.1}", log / std::f64::consts::LN_10),
    }
}

/// A count with a comma before every three digits.
pub(crate) fn grouped(count: u128) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time with three digits.
pub(crate) fn time(time: Duration) -> String {
    let s = time.as_secs_f64();
    let (value, unit) = match s {
        s if s < 1e-3 => (s * 1e6, "µs"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$} {unit}")
}

/// `yes` or `no`.
pub(crate) fn yes_no(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}

/// `1 layer` or `2 layers`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count as u128), if count == 1 { "" } else { "s" })
}

/// The maximum number of weights to list.
const MAX_WEIGHTS: usize = 8;

/// How many circuits a model has, with their weights if there are several, the heaviest first.
pub(crate) fn circuits(weights: &[f64]) -> String {
    if weights.len() == 1 {
        return "1".to_owned();
    }
    let texts: Vec<String> = weights.iter().take(MAX_WEIGHTS).map(|w| format!("{w:.2}")).collect();
    let rest = if weights.len() > MAX_WEIGHTS { ", …" } else { "" };
    format!("{}, weights {}{rest}", weights.len(), texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(number(-0.5), "-0.5");
        assert_eq!(number(3.0), "3");
        assert_eq!(number(f64::NEG_INFINITY), "-inf");
        assert_eq!(exp(f64::NEG_INFINITY), "0");
        assert_eq!(exp(0.0), "1");
        assert_eq!(exp(-1000.0 * std::f64::consts::LN_10), "about 10^-1000.0");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(time(Duration::from_nanos(1_500)), "1.50 µs");
        assert_eq!(time(Duration::from_millis(12)), "12.0 ms");
        assert_eq!(time(Duration::from_secs(120)), "120 s");
    }

    #[test]
    fn files_do_not_command_a_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\u{202e}c\r"), "a\\u{1b}[2Jb\\u{202e}c\\r");
        assert_eq!(one_line("a\nb"), "a\\nb");
        assert_eq!(printable(&"x".repeat(5000)).chars().count(), 2001);
        assert_eq!(printable("Tür, 東京"), "Tür, 東京");
        // Written in pieces that end inside of characters, and with a byte that is not text.
        let bytes = "a,東\u{9b}京\u{1b}]0;t\u{7}\n\u{202e}é\t".as_bytes();
        for length in 1..bytes.len() {
            let mut out = Terminal::new(Vec::new());
            bytes.chunks(length).for_each(|piece| out.write_all(piece).unwrap());
            out.write_all(b"\xffz").unwrap();
            assert_eq!(
                String::from_utf8(out.out).unwrap(),
                "a,東\\u{9b}京\\u{1b}]0;t\\u{7}\n\\u{202e}é\t\u{fffd}z"
            );
        }
        assert_eq!(printable_text(&"x".repeat(5000)).len(), 5000);
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(1, &["name", "K"]);
        table.row(["φ".to_owned(), "16".to_owned()]);
        let (mut text, mut markdown) = (Vec::new(), Vec::new());
        table.write(&mut text).unwrap();
        table.write_markdown(&mut markdown).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "  name    K\n  ─────────\n  φ      16\n");
        assert_eq!(
            String::from_utf8(markdown).unwrap(),
            "| name |   K |\n| ---- | --: |\n| φ    |  16 |\n"
        );
    }
}
