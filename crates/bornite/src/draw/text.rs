//! Text in a drawing: the label of each input, its width, and escaping.

use crate::basis::Part;
use crate::circuit::Circuit;
use crate::query::{Evidence, Query};

/// The label of an input layer.
pub(super) struct InputLabel {
    /// The variable's name.
    pub(super) name: String,
    /// The evidence about it, such as `= 1`; empty without a query.
    pub(super) evidence: String,
}

impl InputLabel {
    /// Name and evidence on one line.
    pub(super) fn line(&self) -> String {
        format!("{} {}", self.name, self.evidence).trim_end().to_owned()
    }
}

/// One label per variable.
pub(super) fn input_labels(circuit: &Circuit, query: Option<&Query>) -> Vec<InputLabel> {
    let label = |(n, name): (usize, &str)| InputLabel {
        name: name.to_owned(),
        evidence: query.map_or_else(String::new, |q| evidence(&q.evidence()[n])),
    };
    circuit.variables().iter().map(|v| v.name.as_str()).enumerate().map(label).collect()
}

fn evidence(evidence: &Evidence) -> String {
    match evidence {
        Evidence::Unknown => "= ?".to_owned(),
        Evidence::Value(x) => format!("= {}", number(*x)),
        Evidence::In(Part::Values(values)) if values.is_empty() => "∈ ∅".to_owned(),
        Evidence::In(Part::Values(values)) => {
            let shown: Vec<String> = values.iter().take(4).map(ToString::to_string).collect();
            let rest = if values.len() > 4 { ", …" } else { "" };
            format!("∈ {{{}{rest}}}", shown.join(", "))
        }
        Evidence::In(Part::Interval { low, high }) => {
            format!("∈ [{}, {})", number(*low), number(*high))
        }
    }
}

/// A number with at most four significant decimals.
fn number(x: f64) -> String {
    if x.is_infinite() {
        return if x > 0.0 { "∞" } else { "−∞" }.to_owned();
    }
    let trim = |digits: &str| digits.trim_end_matches('0').trim_end_matches('.').to_owned();
    let is_far = x != 0.0 && (x.abs() < 1e-3 || x.abs() >= 1e6);
    let text = match format!("{x:.2e}").split_once('e') {
        Some((digits, power)) if is_far => format!("{}e{power}", trim(digits)),
        _ => trim(&format!("{x:.4}")),
    };
    text.replace('-', "−")
}

/// The approximate width of a text, in units of its font size.
pub(crate) fn ems(text: &str) -> f64 {
    text.chars().map(char_ems).sum()
}

fn char_ems(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | '\'' | ' ' | '[' | ']' => 0.28,
        'f' | 'r' | 't' | '(' | ')' | '-' => 0.34,
        'm' | 'w' | 'M' | 'W' => 0.88,
        c if (c as u32) >= 0x1100 => 1.05,
        c if c.is_uppercase() => 0.7,
        _ => 0.56,
    }
}

/// The text, truncated with `…` if it does not fit.
pub(crate) fn fit(text: &str, max_ems: f64) -> String {
    if ems(text) <= max_ems {
        return text.to_owned();
    }
    let mut fitted = String::new();
    let mut width = 1.0;
    for c in text.chars() {
        width += char_ems(c);
        if width > max_ems {
            break;
        }
        fitted.push(c);
    }
    format!("{}…", fitted.trim_end())
}

/// Escapes a text for XML, and removes control characters.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' | '\r' => escaped.push(' '),
            // U+FFFE and U+FFFF are not XML characters.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (x, text) in
            [(0.0, "0"), (10.0, "10"), (-0.123_456, "−0.1235"), (1e-4, "1e−4"), (2.5e7, "2.5e7")]
        {
            assert_eq!(number(x), text);
        }
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(fit("short", 16.0), "short");
        let cut = fit("a name of many, many letters", 6.0);
        assert!(cut.ends_with('…') && ems(&cut) <= 6.5, "{cut}");
    }
}
