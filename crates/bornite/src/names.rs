//! What messages show: names that were probably meant, and cells that can be printed.

/// How far the nearest name may be off to be offered.
const FARTHEST: usize = 3;
/// Letters of a name that is compared with others: the time is quadratic in it, and files may have been made to waste it.
const LONGEST: usize = 256;
/// Names that one is compared with.
const MOST: usize = 1 << 14;

/// The name nearest to this one, letters' case aside, if one is near: at most three edits, and half of its letters.
pub(crate) fn nearest<'a>(names: impl IntoIterator<Item = &'a str>, name: &str) -> Option<String> {
    let name = name.to_lowercase();
    let length = name.chars().count();
    if length > LONGEST {
        return None;
    }
    let distance = |other: &str| {
        let other = other.to_lowercase();
        let others = other.chars().count();
        let edits = (others.abs_diff(length) <= FARTHEST)
            .then(|| strsim::levenshtein(&name, &other))
            .filter(|edits| *edits <= FARTHEST && 2 * edits <= others.max(length));
        edits.unwrap_or(usize::MAX)
    };
    let near = names.into_iter().take(MOST).map(|other| (distance(other), other));
    let (distance, other) = near.min_by_key(|(distance, _)| *distance)?;
    (distance < usize::MAX).then(|| other.to_owned())
}

/// The end of a message about a name that is not there.
pub(crate) fn did_you_mean(hint: Option<&str>) -> String {
    hint.map_or_else(String::new, |h| format!("; did you mean '{}'?", shown(h)))
}

/// The maximum number of characters of a cell or name in a message.
const SHOWN: usize = 60;
/// The maximum number of characters of a message.
const MESSAGE: usize = 2000;

/// A cell or a name for a message: what does not print is escaped, and what is long is cut.
pub(crate) fn shown(text: &str) -> String {
    escaped(text, SHOWN, is_invisible)
}

/// A text of several lines that can be printed: control characters are escaped, since files must not command a terminal, and
/// what has no end is cut after 2,000 characters.
pub fn printable(text: &str) -> String {
    escaped(text, MESSAGE, |c| is_invisible(c) && c != '\n' && c != '\t')
}

/// A text with some characters escaped, cut after so many.
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

/// The line of a text around a character, counted from 1, and a sign below that character.
pub(crate) fn pointed_at(text: &str, position: usize) -> String {
    let at = position.saturating_sub(1);
    let start = if at > SHOWN { at - SHOWN / 2 } else { 0 };
    let visible = |c| if is_invisible(c) { '\u{fffd}' } else { c };
    let mut line: String = text.chars().skip(start).take(2 * SHOWN).map(visible).collect();
    if text.chars().nth(start + 2 * SHOWN).is_some() {
        line.push('…');
    }
    let (before, start) = if start > 0 { ("…", start - 1) } else { ("", 0) };
    format!("  {before}{line}\n  {}^", " ".repeat(at - start))
}

/// A number in few characters, as `1e300`.
pub(crate) fn short(x: f64) -> String {
    let text = format!("{x:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Whether a character does something at a terminal instead of being seen.
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
        assert_eq!(shown(&"é".repeat(5000)).chars().count(), SHOWN + 1);
        assert_eq!(printable("a\u{1b}[2Jb\u{202e}c\r\n\t"), "a\\u{1b}[2Jb\\u{202e}c\\r\n\t");
        assert_eq!(printable(&"x".repeat(5000)).chars().count(), MESSAGE + 1);
        assert_eq!(short(1e300), "1e300");
        assert_eq!(short(-3.0), "-3");
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
