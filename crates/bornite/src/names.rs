//! Helpers for messages: suggestions for misspelled names, and text that is safe to print.

/// The largest edit distance at which a name is suggested.
const MAX_EDITS: usize = 3;
/// The longest name that is compared with others. Comparing takes quadratic time, and hostile files
/// may contain very long names.
const MAX_NAME_CHARS: usize = 256;
/// The largest number of names that a name is compared with.
const MAX_NAMES: usize = 1 << 14;

/// The closest name, ignoring case, if it is within three edits and no more than half of its
/// characters differ.
pub(crate) fn nearest<'a>(names: impl IntoIterator<Item = &'a str>, name: &str) -> Option<String> {
    let name = name.to_lowercase();
    let length = name.chars().count();
    if length > MAX_NAME_CHARS {
        return None;
    }
    let distance = |other: &str| {
        let other = other.to_lowercase();
        let others = other.chars().count();
        let edits = (others.abs_diff(length) <= MAX_EDITS)
            .then(|| strsim::levenshtein(&name, &other))
            .filter(|edits| *edits <= MAX_EDITS && 2 * edits <= others.max(length));
        edits.unwrap_or(usize::MAX)
    };
    let near = names.into_iter().take(MAX_NAMES).map(|other| (distance(other), other));
    let (distance, other) = near.min_by_key(|(distance, _)| *distance)?;
    (distance < usize::MAX).then(|| other.to_owned())
}

/// The end of a message about an unknown name.
pub(crate) fn did_you_mean(hint: Option<&str>) -> String {
    hint.map_or_else(String::new, |h| format!("; did you mean '{}'?", shown(h)))
}

/// The maximum number of characters of a cell or name in a message.
const MAX_CELL_CHARS: usize = 60;
/// The maximum number of characters of a message.
const MAX_MESSAGE_CHARS: usize = 2000;

/// A cell or name for a message, with nonprinting characters escaped and long text truncated.
pub fn shown(text: &str) -> String {
    escaped(text, MAX_CELL_CHARS, is_invisible)
}

/// Escapes control characters, so that text from a file cannot control a terminal, and truncates
/// the text after 2,000 characters. Newlines and tabs are kept.
pub fn printable(text: &str) -> String {
    escaped(text, MAX_MESSAGE_CHARS, |c| is_invisible(c) && c != '\n' && c != '\t')
}

/// [`printable`], in full.
pub fn printable_text(text: &str) -> String {
    escaped(text, usize::MAX, |c| is_invisible(c) && c != '\n' && c != '\t')
}

/// Escapes some characters of a text, and truncates it after `most` characters.
fn escaped(text: &str, most: usize, is_escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len().min(most));
    for (n, c) in text.chars().enumerate() {
        match c {
            _ if n == most => {
                out.push('…');
                break;
            }
            c if is_escaped(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// The text around a character, counted from 1, with a caret below that character.
pub(crate) fn pointed_at(text: &str, position: usize) -> String {
    let at = position.saturating_sub(1);
    let start = if at > MAX_CELL_CHARS { at - MAX_CELL_CHARS / 2 } else { 0 };
    let visible = |c| if is_invisible(c) { '\u{fffd}' } else { c };
    let mut line: String = text.chars().skip(start).take(2 * MAX_CELL_CHARS).map(visible).collect();
    if text.chars().nth(start + 2 * MAX_CELL_CHARS).is_some() {
        line.push('…');
    }
    let (before, start) = if start > 0 { ("…", start - 1) } else { ("", 0) };
    format!("  {before}{line}\n  {}^", " ".repeat(at - start))
}

/// A number with the fewest digits that preserve every bit, such as `3`, `0.1` or `1e300`.
pub fn shortest_number(x: f64) -> String {
    let text = format!("{x:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Whether a character controls a terminal instead of being visible.
fn is_invisible(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_short_and_can_be_printed() {
        assert_eq!(shown("Tür, 東京"), "Tür, 東京");
        assert_eq!(shown("a\u{1b}[2J\nb\u{202e}"), "a\\u{1b}[2J\\nb\\u{202e}");
        assert_eq!(shown(&"é".repeat(5000)).chars().count(), MAX_CELL_CHARS + 1);
        assert_eq!(printable("a\u{1b}[2Jb\u{202e}c\r\n\t"), "a\\u{1b}[2Jb\\u{202e}c\\r\n\t");
        assert_eq!(printable(&"x".repeat(5000)).chars().count(), MAX_MESSAGE_CHARS + 1);
        assert_eq!(shortest_number(1e300), "1e300");
        assert_eq!(shortest_number(-3.0), "-3");
        assert_eq!(pointed_at("P(x=\0)", 5), "  P(x=\u{fffd})\n      ^");
        for (length, position) in [(5, 6), (70, 60), (1000, 1), (1000, 500), (1000, 1001)] {
            let mut text = "x".repeat(length);
            text.insert(position - 1, 'y');
            let shown = pointed_at(&text, position);
            let (line, sign) = shown.split_once('\n').unwrap();
            assert_eq!(line.chars().position(|c| c == 'y'), sign.chars().position(|c| c == '^'));
            assert!(line.chars().count() < 130, "{line}");
        }
    }

    #[test]
    fn the_nearest_name_is_found() {
        let known = ["kind", "variable", "basis", "x", "Größe"];
        for (name, expected) in [
            ("varible", Some("variable")),
            ("BASIS", Some("basis")),
            ("bais", Some("basis")),
            ("X", Some("x")),
            ("größen", Some("Größe")),
            ("y", None),
            ("zzzzzz", None),
            ("variables and more", None),
        ] {
            assert_eq!(nearest(known, name).as_deref(), expected, "{name}");
        }
        assert_eq!(nearest([], "x"), None);
        assert_eq!(nearest(known, &"x".repeat(1 << 20)), None);
    }
}
