use std::collections::BTreeSet;
use std::fmt;

use super::node::{Items, Node, shorten};
use crate::file::FileError;
use crate::memory;
use crate::names::nearest;

/// The path from the top of a file to a value. It is built on the stack, and formatted only in errors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'p> {
    /// The top, by its name in messages.
    Top(&'p str),
    /// A field of an object.
    Field(&'p Place<'p>, &'p str),
    /// An item of a list.
    Item(&'p Place<'p>, usize),
}

impl<'p> Place<'p> {
    pub(crate) fn field(&'p self, name: &'p str) -> Place<'p> {
        Place::Field(self, name)
    }

    pub(crate) fn item(&'p self, index: usize) -> Place<'p> {
        Place::Item(self, index)
    }

    /// The error that something else was expected here.
    pub(crate) fn expected(&self, expected: &'static str, found: &Node) -> FileError {
        FileError::Expected { place: self.to_string(), expected, found: found.describe() }
    }

    /// Checks the size of something here.
    pub(crate) fn check_size(
        &self,
        what: &'static str,
        found: u128,
        limit: usize,
    ) -> Result<(), FileError> {
        let limit = limit as u128;
        if found <= limit {
            return Ok(());
        }
        Err(FileError::TooLarge { place: self.to_string(), what, found, limit })
    }

    /// Checks the memory that something here needs, for which this many bytes of the file were read.
    pub(crate) fn check_memory(
        &self,
        what: &'static str,
        bytes: u128,
        read: u64,
    ) -> Result<(), FileError> {
        let failed = |source| FileError::Memory { place: self.to_string(), source };
        memory::check(what, bytes, read).map_err(failed)
    }

    /// The error that a name is unknown, with the nearest known name.
    pub(crate) fn unknown_name<'k>(
        &self,
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'k str> + Clone,
    ) -> FileError {
        FileError::UnknownName {
            place: self.to_string(),
            what,
            name: shorten(name),
            nearest: nearest(known.clone(), name).map(|near| shorten(&near)),
            known: list(known),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Top(name) => f.write_str(name),
            Place::Field(Place::Top("the circuit"), name) => f.write_str(&shorten(name)),
            Place::Field(parent, name) => write!(f, "{parent}.{}", shorten(name)),
            Place::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// The fields of an object, all of them known and distinct.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'n> {
    entries: &'n [(String, Node)],
}

impl<'n> Fields<'n> {
    /// Reads an object that may have only the `known` fields.
    pub(crate) fn of(
        node: &'n Node,
        place: &Place<'_>,
        known: &'static [&'static str],
    ) -> Result<Self, FileError> {
        let Node::Object(entries) = node else {
            return Err(place.expected("an object { … }", node));
        };
        for (index, (name, _)) in entries.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let known = known.iter().copied();
                return Err(FileError::UnknownField {
                    place: place.to_string(),
                    field: shorten(name),
                    nearest: nearest(known.clone(), name).map(|near| shorten(&near)),
                    known: list(known),
                });
            }
            if entries[..index].iter().any(|(earlier, _)| earlier == name) {
                let (place, field) = (place.to_string(), name.clone());
                return Err(FileError::DuplicateField { place, field });
            }
        }
        Ok(Self { entries })
    }

    /// The value of an optional field.
    pub(crate) fn get(&self, name: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// The value of a required field.
    pub(crate) fn require(
        &self,
        name: &'static str,
        place: &Place<'_>,
    ) -> Result<&'n Node, FileError> {
        let missing = || FileError::MissingField { place: place.to_string(), field: name };
        self.get(name).ok_or_else(missing)
    }

    /// Rejects two fields that exclude each other.
    pub(crate) fn exclude(
        &self,
        first: &'static str,
        second: &'static str,
        place: &Place<'_>,
    ) -> Result<(), FileError> {
        if self.get(first).is_some() && self.get(second).is_some() {
            return Err(FileError::Conflict { place: place.to_string(), first, second });
        }
        Ok(())
    }
}

/// The string field `kind`, which determines the other fields of an object.
pub(crate) fn kind_of<'n>(
    node: &'n Node,
    place: &Place<'_>,
    kinds: &'static [&'static str],
) -> Result<&'n str, FileError> {
    let Node::Object(entries) = node else {
        return Err(place.expected("an object with a \"kind\"", node));
    };
    let Some((_, kind)) = entries.iter().find(|(name, _)| name == "kind") else {
        return Err(FileError::MissingField { place: place.to_string(), field: "kind" });
    };
    choice(kind, &place.field("kind"), "kind", kinds)
}

/// A string that is one of several choices.
pub(crate) fn choice<'n>(
    node: &'n Node,
    place: &Place<'_>,
    what: &'static str,
    known: &'static [&'static str],
) -> Result<&'n str, FileError> {
    let name = text(node, place)?;
    if known.contains(&name) {
        Ok(name)
    } else {
        Err(place.unknown_name(what, name, known.iter().copied()))
    }
}

/// A string.
pub(crate) fn text<'n>(node: &'n Node, place: &Place<'_>) -> Result<&'n str, FileError> {
    let Node::Text(text) = node else { return Err(place.expected("a string", node)) };
    Ok(text)
}

/// A number.
pub(crate) fn number(node: &Node, place: &Place<'_>) -> Result<f64, FileError> {
    let Node::Number(x) = node else { return Err(place.expected("a number", node)) };
    Ok(*x)
}

/// A whole number from 0 to 2⁵³, which all programs read and write exactly.
pub(crate) fn whole(node: &Node, place: &Place<'_>) -> Result<usize, FileError> {
    let found = if let Node::Number(x) = node { whole_number(*x) } else { None };
    found.ok_or_else(|| place.expected("a whole number from 0 to 2^53", node))
}

fn whole_number(x: f64) -> Option<usize> {
    let fits = (0.0..=9_007_199_254_740_992.0).contains(&x) && x.fract() == 0.0;
    if fits { usize::try_from(x as u64).ok() } else { None }
}

/// A list of objects.
pub(crate) fn objects<'n>(node: &'n Node, place: &Place<'_>) -> Result<&'n [Node], FileError> {
    match node.as_list() {
        Some(Items::Nodes(nodes)) => Ok(nodes),
        Some(Items::Numbers([])) => Ok(&[]),
        Some(Items::Numbers([first, ..])) => {
            Err(place.item(0).expected("an object { … }", &Node::Number(*first)))
        }
        None => Err(place.expected("a list [ … ]", node)),
    }
}

/// An object whose keys are names that the file chooses, each at most once.
pub(crate) fn named<'n>(
    node: &'n Node,
    place: &Place<'_>,
) -> Result<&'n [(String, Node)], FileError> {
    let Node::Object(entries) = node else {
        return Err(place.expected("an object that maps names to values", node));
    };
    let mut seen = BTreeSet::new();
    match entries.iter().find(|(name, _)| !seen.insert(name)) {
        Some((name, _)) => {
            Err(FileError::DuplicateField { place: place.to_string(), field: shorten(name) })
        }
        None => Ok(entries),
    }
}

/// A list of numbers.
pub(crate) fn numbers<'n>(node: &'n Node, place: &Place<'_>) -> Result<&'n [f64], FileError> {
    match node.as_list() {
        Some(Items::Numbers(numbers)) => Ok(numbers),
        Some(Items::Nodes(nodes)) => {
            let bad = nodes.iter().position(|n| !matches!(n, Node::Number(_))).unwrap_or(0);
            Err(place.item(bad).expected("a number", &nodes[bad]))
        }
        None => Err(place.expected("a list of numbers", node)),
    }
}

/// A list of whole numbers.
pub(crate) fn wholes(node: &Node, place: &Place<'_>) -> Result<Vec<usize>, FileError> {
    let items = numbers(node, place)?.iter().enumerate();
    items.map(|(n, &x)| whole(&Node::Number(x), &place.item(n))).collect()
}

/// The first twelve names.
fn list<'k>(known: impl Iterator<Item = &'k str> + Clone) -> String {
    let more = if known.clone().nth(12).is_some() { ", …" } else { "" };
    known.take(12).map(shorten).collect::<Vec<_>>().join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_read_like_code() {
        let top = Place::Top("the circuit");
        let layers = top.field("layers");
        assert_eq!(layers.item(3).field("weight").item(1).to_string(), "layers[3].weight[1]");
        assert_eq!(top.to_string(), "the circuit");
    }
}
