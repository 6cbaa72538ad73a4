use std::collections::BTreeMap;
use std::sync::Arc;

use super::matrix::MatrixSource;
use super::node::Node;
use super::place::{Fields, Place, choice, kind_of, named, number, numbers, objects, whole};
use crate::Domain;
use crate::basis::{Basis, BasisError, FourierForm};
use crate::file::FileError;
use crate::file::limits::{MAX_BASIS_DEPTH, MAX_WIDTH};

const KINDS: &[&str] = &[
    "indicator",
    "fourier",
    "legendre",
    "laguerre",
    "hermite",
    "table",
    "gaussian",
    "bspline",
    "steps",
    "transformed",
    "squared",
    "atoms",
];

/// The bases that a file describes. A description gives one basis per domain, which all input layers on that domain
/// share.
pub(super) struct Bases<'n> {
    descriptions: Vec<Description<'n>>,
    names: BTreeMap<&'n str, usize>,
}

struct Description<'n> {
    node: &'n Node,
    place: String,
    made: BTreeMap<DomainKey, Arc<Basis>>,
}

impl<'n> Bases<'n> {
    /// Reads the top-level field with named bases.
    pub(super) fn new(node: Option<&'n Node>, place: &Place<'_>) -> Result<Self, FileError> {
        let mut bases = Self { descriptions: Vec::new(), names: BTreeMap::new() };
        if let Some(node) = node {
            for (name, node) in named(node, place)? {
                bases.names.insert(name, bases.descriptions.len());
                bases.describe(node, &place.field(name));
            }
        }
        Ok(bases)
    }

    /// The index of a basis that is described here, or referred to by name.
    pub(super) fn refer(&mut self, node: &'n Node, place: &Place<'_>) -> Result<usize, FileError> {
        let Node::Text(name) = node else { return Ok(self.describe(node, place)) };
        let known = self.names.keys().copied();
        self.names
            .get(name.as_str())
            .copied()
            .ok_or_else(|| place.unknown_name("basis in \"bases\"", name, known))
    }

    /// Creates the basis of a description on a domain.
    pub(super) fn make(
        &mut self,
        index: usize,
        domain: &Domain,
        source: &mut MatrixSource<'_>,
    ) -> Result<Arc<Basis>, FileError> {
        let Description { node, place, made } = &mut self.descriptions[index];
        if let Some(basis) = made.get(&key(domain)) {
            return Ok(basis.clone());
        }
        let basis = Arc::new(read(node, &Place::Top(place), domain, source, 1)?);
        made.insert(key(domain), basis.clone());
        Ok(basis)
    }

    /// Rejects named bases that are not used by a variable or layer.
    pub(super) fn finish(&self) -> Result<(), FileError> {
        let unused = self.names.values().map(|&i| &self.descriptions[i]);
        match unused.into_iter().find(|d| d.made.is_empty()) {
            Some(d) => Err(FileError::Unused { place: d.place.clone() }),
            None => Ok(()),
        }
    }

    fn describe(&mut self, node: &'n Node, place: &Place<'_>) -> usize {
        let place = place.to_string();
        self.descriptions.push(Description { node, place, made: BTreeMap::new() });
        self.descriptions.len() - 1
    }
}

type DomainKey = (u8, Vec<u64>);

fn key(domain: &Domain) -> DomainKey {
    match domain {
        Domain::Finite(v) => (0, vec![*v as u64]),
        Domain::Real => (1, Vec::new()),
        Domain::Interval(a, b) => (2, vec![a.to_bits(), b.to_bits()]),
        Domain::HalfLine(a) => (3, vec![a.to_bits()]),
        Domain::Circle(period) => (4, vec![period.to_bits()]),
        Domain::Atoms(parts) => {
            let (kind, mut numbers) = key(&parts.rest);
            numbers.extend(parts.points.iter().map(|x| x.to_bits()));
            (5 + kind, numbers)
        }
    }
}

/// The fields of each kind besides `kind`.
fn known_fields(kind: &str) -> &'static [&'static str] {
    match kind {
        "fourier" => &["kind", "functions", "form"],
        "legendre" => &["kind", "functions"],
        "laguerre" => &["kind", "functions", "scale"],
        "hermite" => &["kind", "functions", "location", "scale"],
        "table" => &["kind", "values"],
        "gaussian" => &["kind", "components"],
        "bspline" => &["kind", "degree", "knots", "functions"],
        "steps" => &["kind", "functions", "edges"],
        "transformed" => &["kind", "of", "matrix"],
        "squared" | "atoms" => &["kind", "of"],
        _ => &["kind"],
    }
}

fn read(
    node: &Node,
    place: &Place<'_>,
    domain: &Domain,
    source: &mut MatrixSource<'_>,
    depth: usize,
) -> Result<Basis, FileError> {
    place.check_size("a depth of bases within bases", depth as u128, MAX_BASIS_DEPTH)?;
    let kind = kind_of(node, place, KINDS)?;
    let fields = Fields::of(node, place, known_fields(kind))?;
    let functions = || whole(fields.require("functions", place)?, &place.field("functions"));
    let number_or = |name: &'static str, default: f64| {
        fields.get(name).map_or(Ok(default), |node| number(node, &place.field(name)))
    };
    let wrong = |kind, needs| {
        Err(FileError::BasisDomain {
            place: place.to_string(),
            kind,
            needs,
            domain: domain.clone(),
        })
    };
    let basis = match (kind, domain) {
        ("indicator", Domain::Finite(values)) => Ok(Basis::indicator(*values)),
        ("indicator", _) => return wrong("indicator", "a finite domain"),
        ("fourier", Domain::Interval(..) | Domain::Circle(_)) => {
            let (a, b) = domain.bounds();
            Basis::fourier(functions()?, a, b, form(fields.get("form"), place)?)
        }
        ("fourier", _) => return wrong("fourier", "a circle or an interval"),
        ("legendre", Domain::Interval(a, b)) => Basis::legendre(functions()?, *a, *b),
        ("legendre", _) => return wrong("legendre", "an interval"),
        ("laguerre", Domain::HalfLine(a)) => {
            Basis::laguerre(functions()?, *a, number_or("scale", 1.0)?)
        }
        ("laguerre", _) => return wrong("laguerre", "a half-line"),
        ("hermite", _) => {
            Basis::hermite(functions()?, number_or("location", 0.0)?, number_or("scale", 1.0)?)
        }
        ("table", _) => {
            let values = fields.require("values", place)?;
            Basis::table(source.basis_matrix(values, &place.field("values"))?)
        }
        ("gaussian", _) => Basis::gaussian(components(&fields, place)?),
        ("bspline", _) => bspline(&fields, place, domain)?,
        ("steps", Domain::Interval(..)) => {
            let (node, place) = (fields.require("edges", place)?, place.field("edges"));
            let edges = match node.as_list() {
                Some(_) => numbers(node, &place)?.to_vec(),
                None => source.basis_matrix(node, &place)?.data().iter().map(|z| z.re).collect(),
            };
            let functions = functions()?;
            source.step_functions(functions, edges.len(), &place)?;
            Basis::steps(functions, edges)
        }
        ("steps", _) => return wrong("steps", "an interval"),
        ("transformed", _) => {
            let base = base(&fields, place, domain, source, depth)?;
            let matrix = fields.require("matrix", place)?;
            Basis::transformed(base, source.basis_matrix(matrix, &place.field("matrix"))?)
        }
        ("atoms", Domain::Atoms(parts)) => {
            base(&fields, place, &parts.rest, source, depth)?.with_atoms(&parts.points[..])
        }
        ("atoms", _) => return wrong("atoms", "a domain with atoms"),
        _ => {
            let base = base(&fields, place, domain, source, depth)?;
            let width = base.width() as u128;
            place.check_size("a width", width * width, MAX_WIDTH)?;
            Ok(Basis::squared(Arc::new(base)))
        }
    };
    basis.map_err(|source| FileError::Basis { place: place.to_string(), source })
}

/// The basis inside another. Squared functions cannot be nested.
fn base(
    fields: &Fields<'_>,
    place: &Place<'_>,
    domain: &Domain,
    source: &mut MatrixSource<'_>,
    depth: usize,
) -> Result<Basis, FileError> {
    let node = fields.require("of", place)?;
    let place = place.field("of");
    match read(node, &place, domain, source, depth + 1)? {
        Basis::Squared(_) => Err(place.expected("a basis that is not squared", node)),
        base @ (Basis::Indicator(_)
        | Basis::Fourier(_)
        | Basis::Legendre(_)
        | Basis::Laguerre(_)
        | Basis::Hermite(_)
        | Basis::Table(_)
        | Basis::Gaussian(_)
        | Basis::BSpline(_)
        | Basis::Transformed(_)
        | Basis::Atoms(_)
        | Basis::Steps(_)) => Ok(base),
    }
}

fn form(node: Option<&Node>, place: &Place<'_>) -> Result<FourierForm, FileError> {
    let Some(node) = node else { return Ok(FourierForm::Real) };
    Ok(match choice(node, &place.field("form"), "form", &["real", "complex"])? {
        "real" => FourierForm::Real,
        _ => FourierForm::Complex,
    })
}

fn components(fields: &Fields<'_>, place: &Place<'_>) -> Result<Vec<(f64, f64)>, FileError> {
    let place = place.field("components");
    let pair = |(index, node): (usize, &Node)| match node {
        Node::Pair([location, scale]) => Ok((*location, *scale)),
        _ => Err(place.item(index).expected("a pair [location, scale]", node)),
    };
    let Some(node) = fields.get("components") else {
        return fields.require("components", &place).map(|_| Vec::new());
    };
    objects(node, &place)?.iter().enumerate().map(pair).collect()
}

/// B-splines with given knots, or with evenly spaced knots over the domain and repeated ends.
fn bspline(
    fields: &Fields<'_>,
    place: &Place<'_>,
    domain: &Domain,
) -> Result<Result<Basis, BasisError>, FileError> {
    fields.exclude("knots", "functions", place)?;
    let degree = whole(fields.require("degree", place)?, &place.field("degree"))?;
    let Some(node) = fields.get("functions") else {
        let knots = numbers(fields.require("knots", place)?, &place.field("knots"))?;
        return Ok(Basis::bspline(degree, knots.to_vec()));
    };
    let functions = whole(node, &place.field("functions"))?;
    let &Domain::Interval(a, b) = domain else {
        let (place, needs, domain) = (place.to_string(), "an interval", domain.clone());
        return Err(FileError::BasisDomain { place, kind: "bspline", needs, domain });
    };
    if degree > crate::basis::MAX_DEGREE {
        return Ok(Err(BasisError::Degree { found: degree }));
    }
    if functions <= degree {
        let (place, what) = (place.field("functions").to_string(), "functions");
        return Err(FileError::Count { place, what, expected: degree + 1, found: functions });
    }
    if functions > crate::basis::MAX_FUNCTIONS {
        return Ok(Err(BasisError::TooManyFunctions { family: "B-spline", found: functions }));
    }
    let spans = functions - degree;
    let knot = |n: usize| match n.saturating_sub(degree).min(spans) {
        0 => a,
        n if n == spans => b,
        n => a + (b - a) * (n as f64 / spans as f64),
    };
    Ok(Basis::bspline(degree, (0..=functions + degree).map(knot).collect()))
}
