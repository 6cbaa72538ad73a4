//! One case of an event: a query, and on which side the cells are that a column may have no place for.

use std::collections::BTreeMap;

use crate::basis::Part;
use crate::data::{OutsideSet, Schema};
use crate::domain::{Domain, Variable};
use crate::query::{Evidence, Query};

/// What is known of a row: of the variables, and of cells without a place of their own.
///
/// A column has a share of cells [outside](crate::data::ColumnSchema::outside) of what its kind has a place for, whatever the
/// rest of the row is. Of such a cell the variables say nothing: they are unknown, and what is known is the case's weight.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    pub(super) query: Query,
    /// By column. One that is not there may be anywhere, or has no cells outside.
    sides: BTreeMap<usize, Side>,
}

#[derive(Clone, Debug, PartialEq)]
enum Side {
    /// In a place of its own.
    Inside,
    /// One of these, in the place for others where the column has one, and outside else.
    Others(OutsideSet),
}

impl Case {
    /// Nothing of so many variables.
    pub(super) fn nothing(num_variables: usize) -> Self {
        Self { query: Query::unknown(num_variables), sides: BTreeMap::new() }
    }

    /// What a query says, of these columns: all that it says something of.
    pub(super) fn of(
        schema: &Schema,
        query: Query,
        columns: impl IntoIterator<Item = usize>,
    ) -> Self {
        let mut case = Self { query, sides: BTreeMap::new() };
        case.set_inside(schema, columns);
        case
    }

    /// What is known of a row of values.
    pub(super) fn of_row(schema: &Schema, query: Query) -> Self {
        let is_known = |column: &usize| {
            schema.variables_of(*column).any(|v| query.evidence()[v] != Evidence::Unknown)
        };
        let known: Vec<usize> = (0..schema.columns().len()).filter(is_known).collect();
        Self::of(schema, query, known)
    }

    /// That a column is one of those without a place of their own; `None` where that is impossible.
    pub(super) fn others(
        schema: &Schema,
        variables: &[Variable],
        column: usize,
        set: OutsideSet,
    ) -> Option<Self> {
        let mut case = Self::nothing(variables.len());
        if let Some(other) = schema.columns()[column].kind.coding().other() {
            let variable = schema.variables_of(column).start;
            case.query.set(variables, variable, Evidence::Value(other as f64)).ok()?;
        }
        case.sides.insert(column, Side::Others(set));
        (case.log_weight(schema) > f64::NEG_INFINITY).then_some(case)
    }

    /// Adds that a row has a cell outside of a column.
    pub(super) fn set_outside(&mut self, column: usize, set: OutsideSet) {
        self.sides.insert(column, Side::Others(set));
    }

    fn set_inside(&mut self, schema: &Schema, columns: impl IntoIterator<Item = usize>) {
        let open = columns.into_iter().filter(|&column| schema.unplaced(column) > 0.0);
        self.sides.extend(open.map(|column| (column, Side::Inside)));
    }

    /// The case in which these columns have cells with a place; `None` where they have none.
    pub(super) fn inside(&self, schema: &Schema, columns: &[usize]) -> Option<Self> {
        if columns.iter().any(|&column| self.is_outside(schema, column)) {
            return None;
        }
        let mut case = self.clone();
        let are_open = |column: &usize| !self.sides.contains_key(column);
        case.set_inside(schema, columns.iter().copied().filter(are_open));
        Some(case)
    }

    /// Whether a column has a cell outside of what its kind has a place for.
    pub(super) fn is_outside(&self, schema: &Schema, column: usize) -> bool {
        matches!(self.sides.get(&column), Some(Side::Others(_)))
            && schema.columns()[column].kind.coding().other().is_none()
    }

    /// The columns that can have cells outside, with one that has a place.
    pub(super) fn placed(&self) -> impl Iterator<Item = usize> {
        let is_inside = |side: &Side| matches!(side, Side::Inside);
        self.sides.iter().filter(move |(_, side)| is_inside(side)).map(|(&column, _)| column)
    }

    /// The columns with a cell outside.
    pub(super) fn outside<'a>(&'a self, schema: &'a Schema) -> impl Iterator<Item = usize> + 'a {
        self.sides.keys().copied().filter(|&column| self.is_outside(schema, column))
    }

    /// Whether a cell outside of a column is one of those that are meant.
    pub(super) fn has_outside(&self, column: usize, cell: &OutsideSet) -> bool {
        match self.sides.get(&column) {
            Some(Side::Others(set)) => set.and(cell).is_some(),
            Some(Side::Inside) | None => false,
        }
    }

    /// Whether something is known of a column.
    pub(super) fn is_about(&self, schema: &Schema, column: usize) -> bool {
        let is_known = |v: usize| self.query.evidence()[v] != Evidence::Unknown;
        self.sides.contains_key(&column) || schema.variables_of(column).any(is_known)
    }

    /// Whether nothing is known.
    pub(super) fn is_nothing(&self) -> bool {
        self.sides.is_empty() && self.query.evidence().iter().all(|e| *e == Evidence::Unknown)
    }

    /// ln of what the probability of the query is multiplied by.
    pub(super) fn log_weight(&self, schema: &Schema) -> f64 {
        self.log_weight_of(schema, |_| true)
    }

    /// The same, by some of the columns.
    pub(super) fn log_weight_of(&self, schema: &Schema, is_one: impl Fn(usize) -> bool) -> f64 {
        let log = |(&column, side): (&usize, &Side)| {
            let (c, share) = (&schema.columns()[column], schema.unplaced(column));
            match side {
                Side::Inside => (-share).ln_1p(),
                Side::Others(set) => {
                    let coding = c.kind.coding();
                    let own = coding.spread(c.storage).map_or(0.0, |spread| spread.log_share(set));
                    if coding.other().is_some() { own } else { share.ln() + own }
                }
            }
        };
        self.sides.iter().filter(|side| is_one(*side.0)).map(log).sum()
    }

    /// What both say; `None` where that is impossible.
    pub(super) fn and(&self, variables: &[Variable], other: &Self) -> Option<Self> {
        let query = intersect(variables, &self.query, &other.query)?;
        let mut sides = self.sides.clone();
        for (column, side) in &other.sides {
            let both = match (sides.get(column), side) {
                (None, side) => side.clone(),
                (Some(Side::Inside), Side::Inside) => Side::Inside,
                (Some(Side::Others(a)), Side::Others(b)) => Side::Others(a.and(b)?),
                (Some(Side::Inside), Side::Others(_)) | (Some(Side::Others(_)), Side::Inside) => {
                    return None;
                }
            };
            sides.insert(*column, both);
        }
        Some(Self { query, sides })
    }

    /// The same with more known of the variables.
    pub(super) fn with(&self, query: Query) -> Self {
        Self { query, sides: self.sides.clone() }
    }

    /// Adds the cases of what is in this and not in the other, no two of which hold at once.
    pub(super) fn subtract(
        self,
        schema: &Schema,
        variables: &[Variable],
        taken: &Self,
        left: &mut Vec<Self>,
    ) {
        if self.and(variables, taken).is_none() {
            left.push(self);
            return;
        }
        // Column by column and variable by variable: what differs there, and is within what was taken before it.
        let mut rest = self;
        for column in 0..schema.columns().len() {
            match taken.sides.get(&column) {
                Some(Side::Inside) if !rest.sides.contains_key(&column) => {
                    left.push(rest.on_side(column, Side::Others(OutsideSet::All)));
                    rest.sides.insert(column, Side::Inside);
                }
                Some(Side::Others(set)) if taken.is_outside(schema, column) => {
                    if !rest.sides.contains_key(&column) {
                        left.push(rest.on_side(column, Side::Inside));
                    }
                    rest.subtract_others(column, set, left);
                }
                Some(_) | None => {}
            }
            for variable in schema.variables_of(column) {
                let (domain, own) =
                    (&variables[variable].domain, rest.query.evidence()[variable].clone());
                let evidence = &taken.query.evidence()[variable];
                if *evidence == Evidence::Unknown {
                    continue;
                }
                for piece in complement(domain, evidence) {
                    let piece = both(domain, &own, &piece);
                    left.extend(piece.and_then(|piece| rest.knowing(variables, variable, piece)));
                }
                if let Some(both) = both(domain, &own, evidence) {
                    // It was so in both.
                    let _ = rest.query.set(variables, variable, both);
                }
                if let Some(Side::Others(set)) = taken.sides.get(&column) {
                    rest.subtract_others(column, set, left);
                }
            }
        }
    }

    /// Adds the cases of others that are not among these, and leaves those that are.
    fn subtract_others(&mut self, column: usize, set: &OutsideSet, left: &mut Vec<Self>) {
        let before = match self.sides.get(&column) {
            Some(Side::Others(before)) => before.clone(),
            Some(Side::Inside) | None => OutsideSet::All,
        };
        for rest in set.complement() {
            let rest = before.and(&rest).map(Side::Others);
            left.extend(rest.map(|rest| self.on_side(column, rest)));
        }
        if let Some(both) = before.and(set) {
            self.sides.insert(column, Side::Others(both));
        }
    }

    fn on_side(&self, column: usize, side: Side) -> Self {
        let mut case = self.clone();
        case.sides.insert(column, side);
        case
    }

    fn knowing(&self, variables: &[Variable], variable: usize, piece: Evidence) -> Option<Self> {
        let mut case = self.clone();
        case.query.set(variables, variable, piece).ok()?;
        Some(case)
    }
}

/// What is known of a variable of which this does not hold; the parts exclude each other.
fn complement(domain: &Domain, evidence: &Evidence) -> Vec<Evidence> {
    use Part::{Interval, Values};
    let intervals = |mut points: Vec<(f64, f64)>| {
        let (low, high) = match domain {
            Domain::Circle(period) => (0.0, *period),
            Domain::Finite(_)
            | Domain::Real
            | Domain::Interval(..)
            | Domain::HalfLine(_)
            | Domain::Atoms(_) => (f64::NEG_INFINITY, f64::INFINITY),
        };
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let starts = std::iter::once(low).chain(points.iter().map(|p| p.1));
        let ends = points.iter().map(|p| p.0).chain([high]);
        let between = starts.zip(ends).filter(|(low, high)| low < high);
        between.map(|(low, high)| Evidence::In(Interval { low, high })).collect()
    };
    let atom = |x: f64| (x, x.next_up());
    match (evidence, domain.num_values()) {
        (Evidence::Unknown, _) => Vec::new(),
        (Evidence::Value(x), Some(count)) => {
            let others: Vec<usize> = (0..count).filter(|&n| n as f64 != *x).collect();
            if others.is_empty() { Vec::new() } else { vec![Evidence::In(Values(others))] }
        }
        (Evidence::In(Values(values)), Some(count)) => {
            let others: Vec<usize> = (0..count).filter(|n| !values.contains(n)).collect();
            if others.is_empty() { Vec::new() } else { vec![Evidence::In(Values(others))] }
        }
        (Evidence::Value(x), None) => intervals(vec![atom(*x)]),
        (Evidence::In(Values(atoms)), None) => {
            let points = domain.atoms();
            intervals(atoms.iter().filter_map(|&n| points.get(n).copied().map(atom)).collect())
        }
        (Evidence::In(Interval { low, high }), _) => intervals(vec![(*low, *high)]),
    }
}

/// What both queries say; `None` where that is impossible.
fn intersect(variables: &[Variable], a: &Query, b: &Query) -> Option<Query> {
    let mut query = a.clone();
    for (n, (x, y)) in a.evidence().iter().zip(b.evidence()).enumerate() {
        query.set(variables, n, both(&variables[n].domain, x, y)?).ok()?;
    }
    Some(query)
}

pub(super) fn both(domain: &Domain, a: &Evidence, b: &Evidence) -> Option<Evidence> {
    use Evidence::{In, Unknown, Value};
    use Part::{Interval, Values};
    match (a, b) {
        (Unknown, other) | (other, Unknown) => Some(other.clone()),
        (Value(x), Value(y)) => (x == y).then_some(Value(*x)),
        (Value(x), In(part)) | (In(part), Value(x)) => match part {
            Values(values) => {
                let n = if domain.atoms().is_empty() { Some(*x as usize) } else { domain.atom(*x) };
                n.filter(|n| values.contains(n)).map(|_| Value(*x))
            }
            Interval { low, high } => (x >= low && x < high).then_some(Value(*x)),
        },
        (In(Values(x)), In(Values(y))) => {
            let shared: Vec<usize> = x.iter().copied().filter(|v| y.contains(v)).collect();
            (!shared.is_empty()).then_some(In(Values(shared)))
        }
        (In(Interval { low: a, high: b }), In(Interval { low: c, high: d })) => {
            let (low, high) = (a.max(*c), b.min(*d));
            (low < high).then_some(In(Interval { low, high }))
        }
        // Of a variable with atoms: no other is both finite and continuous.
        (In(Values(atoms)), In(Interval { low, high }))
        | (In(Interval { low, high }), In(Values(atoms))) => {
            let points = domain.atoms();
            let inside = |n: &usize| points.get(*n).is_some_and(|x| (*low..*high).contains(x));
            let shared: Vec<usize> = atoms.iter().copied().filter(inside).collect();
            (!shared.is_empty()).then_some(In(Values(shared)))
        }
    }
}
