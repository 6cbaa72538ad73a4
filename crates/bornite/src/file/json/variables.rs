use std::collections::BTreeMap;

use super::basis::Bases;
use super::node::Node;
use super::place::{Fields, Place, numbers, objects, text, whole};
use crate::circuit::CircuitError;
use crate::domain::{Domain, Variable};
use crate::file::FileError;
use crate::file::limits::{BYTES_PER_VARIABLE, MAX_COUNTED_VARIABLES, MAX_TEMPLATE, MAX_WIDTH};

/// The variables of a file, with the bases that some of them declare.
#[derive(Default)]
pub(super) struct Variables {
    pub(super) list: Vec<Variable>,
    /// For each variable, the index of its basis among the file's descriptions.
    pub(super) bases: Vec<Option<usize>>,
    positions: BTreeMap<String, usize>,
    counted: usize,
}

impl Variables {
    pub(super) fn read<'n>(
        node: &'n Node,
        place: &Place<'_>,
        bases: &mut Bases<'n>,
    ) -> Result<Self, FileError> {
        let mut variables = Self::default();
        for (index, node) in objects(node, place)?.iter().enumerate() {
            variables.declare(node, &place.item(index), bases)?;
        }
        Ok(variables)
    }

    /// The position of the variable with this name.
    pub(super) fn find(&self, name: &str, place: &Place<'_>) -> Result<usize, FileError> {
        let known = self.list.iter().map(|v| v.name.as_str());
        let unknown = || place.unknown_name("variable", name, known);
        self.positions.get(name).copied().ok_or_else(unknown)
    }

    /// Reads one entry of the list: a variable, or a number of identical ones.
    fn declare<'n>(
        &mut self,
        node: &'n Node,
        place: &Place<'_>,
        bases: &mut Bases<'n>,
    ) -> Result<(), FileError> {
        let fields = Fields::of(node, place, &["name", "domain", "basis", "count", "first"])?;
        let name_node = fields.require("name", place)?;
        let name = text(name_node, &place.field("name"))?;
        let domain = domain(fields.require("domain", place)?, &place.field("domain"))?;
        if !domain.is_valid() {
            let source = CircuitError::InvalidDomain { variable: name.to_owned(), domain };
            return Err(FileError::Circuit { place: place.field("domain").to_string(), source });
        }
        let basis = match fields.get("basis") {
            Some(node) => Some(bases.refer(node, &place.field("basis"))?),
            None => None,
        };
        let Some(count) = fields.get("count") else {
            if fields.get("first").is_some() {
                let (place, field) = (place.to_string(), "count");
                return Err(FileError::MissingField { place, field });
            }
            return self.push(name.to_owned(), domain, basis, place);
        };
        let count = whole(count, &place.field("count"))?;
        let first = fields.get("first").map_or(Ok(0), |n| whole(n, &place.field("first")))?;
        self.counted = self.counted.saturating_add(count);
        let counted = self.counted as u128;
        place.field("count").check_size("a count", counted, MAX_COUNTED_VARIABLES)?;
        let bytes = counted.saturating_mul(BYTES_PER_VARIABLE);
        place.field("count").check_memory("a circuit with this many variables", bytes, 0)?;
        place.field("name").check_size("a length", name.len() as u128, MAX_TEMPLATE)?;
        if name.matches("{}").count() != 1 {
            return Err(place
                .field("name")
                .expected("a name with one {} for the number", name_node));
        }
        (first..first + count).try_for_each(|n| {
            self.push(name.replace("{}", &n.to_string()), domain.clone(), basis, place)
        })
    }

    fn push(
        &mut self,
        name: String,
        domain: Domain,
        basis: Option<usize>,
        place: &Place<'_>,
    ) -> Result<(), FileError> {
        if self.positions.insert(name.clone(), self.list.len()).is_some() {
            let source = CircuitError::DuplicateVariable { name };
            return Err(FileError::Circuit { place: place.to_string(), source });
        }
        self.list.push(Variable::new(name, domain));
        self.bases.push(basis);
        Ok(())
    }
}

fn domain(node: &Node, place: &Place<'_>) -> Result<Domain, FileError> {
    const DOMAIN: &str = "\"real\", {\"finite\": v}, {\"interval\": [a, b]}, {\"half_line\": a} or \
                          {\"circle\": period}, or {\"atoms\": [a, …], \"rest\": one of them}";
    const FIELDS: &[&str] = &["finite", "interval", "half_line", "circle", "atoms", "rest"];
    match node {
        Node::Text(name) if name == "real" => return Ok(Domain::Real),
        Node::Object(entries) if entries.len() == 1 => {}
        Node::Object(entries) if entries.len() == 2 => {
            let fields = Fields::of(node, place, &["atoms", "rest"])?;
            let points = numbers(fields.require("atoms", place)?, &place.field("atoms"))?;
            let rest = domain(fields.require("rest", place)?, &place.field("rest"))?;
            return Ok(Domain::with_atoms(points.to_vec(), rest));
        }
        _ => return Err(place.expected(DOMAIN, node)),
    }
    let fields = Fields::of(node, place, FIELDS)?;
    let number = |name| match fields.get(name) {
        Some(Node::Number(x)) => Ok(Some(*x)),
        Some(node) => Err(place.field(name).expected("a number", node)),
        None => Ok(None),
    };
    if let Some(node) = fields.get("finite") {
        let place = place.field("finite");
        let values = whole(node, &place)?;
        place.check_size("a number of values", values as u128, MAX_WIDTH)?;
        return Ok(Domain::Finite(values));
    }
    if let Some(a) = number("half_line")? {
        return Ok(Domain::HalfLine(a));
    }
    if let Some(period) = number("circle")? {
        return Ok(Domain::Circle(period));
    }
    match fields.get("interval") {
        Some(Node::Pair([a, b])) => Ok(Domain::Interval(*a, *b)),
        Some(node) => Err(place.field("interval").expected("a pair [a, b]", node)),
        None => Err(place.expected(DOMAIN, node)),
    }
}
