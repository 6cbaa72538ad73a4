use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::file::FileError;

/// A JSON value with a compact representation: most of a file is weights, whose entries need no separate allocation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// `null`, `true` or `false`, which have no meaning in a circuit file.
    Word(&'static str),
    /// A finite number.
    Number(f64),
    /// A string.
    Text(String),
    /// A list of exactly two numbers, such as a complex entry.
    Pair([f64; 2]),
    /// A list of numbers with any other length.
    Numbers(Vec<f64>),
    /// Any other list.
    List(Vec<Node>),
    /// An object, with its fields in the order of the file.
    Object(Vec<(String, Node)>),
}

impl Node {
    /// Parses JSON. The parser limits the nesting to 128, and numbers to the range of `f64`.
    pub(crate) fn parse(text: &str) -> Result<Self, FileError> {
        serde_json::from_str(text).map_err(|source| {
            // The parser has no separate category for this.
            if source.to_string().starts_with("recursion limit exceeded") {
                FileError::TooDeep { line: source.line(), column: source.column() }
            } else {
                FileError::Syntax { source }
            }
        })
    }

    /// The items, if this is a list.
    pub(crate) fn as_list(&self) -> Option<Items<'_>> {
        match self {
            Node::Pair(pair) => Some(Items::Numbers(pair)),
            Node::Numbers(numbers) => Some(Items::Numbers(numbers)),
            Node::List(list) => Some(Items::Nodes(list)),
            Node::Word(_) | Node::Number(_) | Node::Text(_) | Node::Object(_) => None,
        }
    }

    /// A short description of the value, for messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Node::Word(word) => (*word).to_owned(),
            Node::Number(x) => format!("the number {x:?}"),
            Node::Text(text) => format!("the string \"{}\"", shorten(text)),
            Node::Object(fields) => match fields.first() {
                Some((name, _)) => format!("an object that begins with \"{}\"", shorten(name)),
                None => "an empty object".to_owned(),
            },
            Node::Pair(_) | Node::Numbers(_) | Node::List(_) => {
                match self.as_list().map_or(0, |items| items.len()) {
                    0 => "an empty list".to_owned(),
                    1 => "a list of 1 item".to_owned(),
                    n => format!("a list of {n} items"),
                }
            }
        }
    }
}

/// At most forty characters of a text.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The items of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Items<'n> {
    /// Numbers only.
    Numbers(&'n [f64]),
    /// Any values.
    Nodes(&'n [Node]),
}

impl Items<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Items::Numbers(numbers) => numbers.len(),
            Items::Nodes(nodes) => nodes.len(),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Word("null"))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Word(if value { "true" } else { "false" }))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Node, E> {
        Ok(Node::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut numbers: Vec<f64> = Vec::new();
        let mut nodes: Vec<Node> = Vec::new();
        while let Some(item) = access.next_element::<Node>()? {
            match item {
                Node::Number(x) if nodes.is_empty() => numbers.push(x),
                item => {
                    nodes.extend(numbers.drain(..).map(Node::Number));
                    nodes.push(item);
                }
            }
        }
        Ok(match (numbers.as_slice(), nodes.is_empty()) {
            (_, false) => Node::List(nodes),
            (&[first, second], true) => Node::Pair([first, second]),
            _ => Node::Numbers(numbers),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = access.next_entry()? {
            fields.push(field);
        }
        Ok(Node::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_take_their_smallest_form() {
        let parse = |text| Node::parse(text).unwrap();
        assert_eq!(parse("[1, 2]"), Node::Pair([1.0, 2.0]));
        assert_eq!(parse("[1, 2, 3]"), Node::Numbers(vec![1.0, 2.0, 3.0]));
        assert_eq!(parse("[]"), Node::Numbers(vec![]));
        let mixed = vec![Node::Number(1.0), Node::Pair([2.0, 3.0]), Node::Number(4.0)];
        assert_eq!(parse("[1, [2, 3], 4]"), Node::List(mixed));
        assert!(size_of::<Node>() <= 32);
    }

    #[test]
    fn numbers_keep_every_bit() {
        for text in ["-0.0", "-0", "5e-324", "0.1", "1.7976931348623157e308", "2.5e-310"] {
            let Node::Number(x) = Node::parse(text).unwrap() else { panic!("{text}") };
            assert_eq!(x.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
        assert!(Node::parse("1e400").is_err());
        assert!(Node::parse("NaN").is_err());
    }
}
