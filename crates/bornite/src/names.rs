//! Names that are not there, and those that were probably meant.

/// How far the nearest name may be off to be offered.
const FARTHEST: usize = 3;
/// Letters of a name that is compared with others: the time is quadratic in it, and files may have been made to waste it.
const LONGEST: usize = 256;
/// Names that one is compared with.
const MOST: usize = 1 << 14;

/// The name nearest to this one, letters' case aside, where one is near: at most three edits, and half of its letters.
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
    hint.map_or_else(String::new, |h| format!("; did you mean '{h}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
