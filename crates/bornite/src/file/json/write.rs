use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use super::VERSION;
use crate::Domain;
use crate::basis::{Basis, FourierForm};
use crate::circuit::{Circuit, Layer, Weight, WeightId};
use crate::linalg::{Complex64, Matrix};

/// A circuit as JSON, and the matrices that it refers to but does not contain.
pub(crate) struct Written<'c> {
    pub(crate) text: String,
    pub(crate) tensors: Vec<(String, Data<'c>)>,
}

/// A matrix to write.
#[derive(Clone, Copy)]
pub(crate) enum Data<'c> {
    /// A real matrix.
    Real(&'c Matrix<f64>),
    /// A complex matrix, which stays complex even if all imaginary parts are zero.
    Complex(&'c Matrix<Complex64>),
    /// The real part of a matrix that is complex in memory but has no imaginary parts.
    RealPart(&'c Matrix<Complex64>),
}

/// Writes a circuit as JSON, with its matrices inline or as references to tensors whose names start with this prefix.
pub(crate) fn write<'c>(circuit: &'c Circuit, tensors: Option<&'c str>) -> Written<'c> {
    let out = Written { text: String::new(), tensors: Vec::new() };
    let mut writer = Writer { circuit, out, tensors, shared_bases: shared_bases(circuit) };
    writer.circuit();
    if tensors.is_some() {
        // Remove the line breaks, which nobody reads there. Strings contain none.
        writer.out.text = writer.out.text.lines().map(str::trim_start).collect();
    }
    writer.out
}

/// Names for the bases that several input layers share, by address. Indicators are shorter than a reference.
fn shared_bases(circuit: &Circuit) -> BTreeMap<*const Basis, usize> {
    let mut uses: BTreeMap<*const Basis, usize> = BTreeMap::new();
    for (_, basis) in input_bases(circuit) {
        *uses.entry(Arc::as_ptr(basis)).or_default() += 1;
    }
    let mut names = BTreeMap::new();
    for (_, basis) in input_bases(circuit) {
        let shared = uses.get(&Arc::as_ptr(basis)).is_some_and(|&n| n > 1);
        if shared && !matches!(**basis, Basis::Indicator(_)) {
            let next = names.len();
            names.entry(Arc::as_ptr(basis)).or_insert(next);
        }
    }
    names
}

fn input_bases(circuit: &Circuit) -> impl Iterator<Item = (usize, &Arc<Basis>)> {
    circuit.layers().iter().enumerate().filter_map(|(index, layer)| match layer {
        Layer::Input { basis, .. } => Some((index, basis)),
        Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => None,
    })
}

struct Writer<'c> {
    circuit: &'c Circuit,
    out: Written<'c>,
    tensors: Option<&'c str>,
    shared_bases: BTreeMap<*const Basis, usize>,
}

impl<'c> Writer<'c> {
    fn circuit(&mut self) {
        let circuit = self.circuit;
        self.put(&format!("{{\n  \"version\": {VERSION},\n  \"variables\": ["));
        for (index, variable) in circuit.variables().iter().enumerate() {
            self.line(index);
            self.put(&format!("{{\"name\": {}, \"domain\": ", quoted(&variable.name)));
            self.put(&domain(&variable.domain));
            self.put("}");
        }
        self.put("\n  ],\n");
        self.bases();
        let used = used_weights(circuit);
        // Write weights inside their layers if reading them in that order restores every weight's id.
        let inline = used.iter().enumerate().all(|(n, id)| id.index() == n);
        if !inline {
            self.weights(used);
        }
        self.put("  \"layers\": [");
        for (index, layer) in circuit.layers().iter().enumerate() {
            self.line(index);
            self.layer(layer, inline);
        }
        self.put(&format!("\n  ],\n  \"output\": {}\n}}\n", circuit.output()));
    }

    /// The named bases. The first layer that uses a basis determines its position.
    fn bases(&mut self) {
        let mut next = 0;
        for (_, basis) in input_bases(self.circuit) {
            if self.shared_bases.get(&Arc::as_ptr(basis)) == Some(&next) {
                self.put(if next == 0 { "  \"bases\": {" } else { "" });
                self.line(next);
                self.put(&format!("\"b{next}\": "));
                self.basis(basis);
                next += 1;
            }
        }
        self.put(if next > 0 { "\n  },\n" } else { "" });
    }

    fn weights(&mut self, mut used: Vec<WeightId>) {
        used.sort_unstable();
        used.dedup();
        self.put("  \"weights\": {");
        for (index, id) in used.into_iter().enumerate() {
            self.line(index);
            self.put(&format!("\"w{id}\": "));
            self.weight(id);
        }
        self.put("\n  },\n");
    }

    fn layer(&mut self, layer: &'c Layer, inline: bool) {
        self.put(&format!("{{\"kind\": \"{}\", ", layer.kind()));
        match layer {
            Layer::Input { variable, basis } => {
                let name = quoted(&self.circuit.variable(*variable).name);
                self.put(&format!("\"variable\": {name}, \"basis\": "));
                match self.shared_bases.get(&Arc::as_ptr(basis)) {
                    Some(name) => self.put(&format!("\"b{name}\"")),
                    None => self.basis(basis),
                }
            }
            Layer::Hadamard { inputs } | Layer::Kronecker { inputs } => {
                let inputs: Vec<String> = inputs.iter().map(ToString::to_string).collect();
                self.put(&format!("\"inputs\": [{}]", inputs.join(", ")));
            }
            Layer::Sum { input, weight } => {
                self.put(&format!("\"input\": {input}, \"weight\": "));
                if inline {
                    self.weight(*weight);
                } else {
                    self.put(&format!("\"w{weight}\""));
                }
            }
        }
        self.put("}");
    }

    fn basis(&mut self, basis: &'c Basis) {
        match basis {
            Basis::Indicator(_) => self.put("{\"kind\": \"indicator\""),
            Basis::Fourier(b) => {
                let form = match b.form() {
                    FourierForm::Real => "real",
                    FourierForm::Complex => "complex",
                };
                let functions = b.width();
                self.put(&format!(
                    "{{\"kind\": \"fourier\", \"functions\": {functions}, \"form\": \"{form}\""
                ));
            }
            Basis::Legendre(b) => {
                self.put(&format!("{{\"kind\": \"legendre\", \"functions\": {}", b.width()));
            }
            Basis::Laguerre(b) => {
                self.put(&format!("{{\"kind\": \"laguerre\", \"functions\": {}", b.width()));
                self.put(&format!(", \"scale\": {}", number(b.scale())));
            }
            Basis::Hermite(b) => {
                self.put(&format!("{{\"kind\": \"hermite\", \"functions\": {}", b.width()));
                let (location, scale) = (number(b.location()), number(b.scale()));
                self.put(&format!(", \"location\": {location}, \"scale\": {scale}"));
            }
            Basis::Table(b) => {
                self.put("{\"kind\": \"table\", \"values\": ");
                self.basis_matrix(b.values());
            }
            Basis::Gaussian(b) => {
                let pair = |&(m, s): &(f64, f64)| format!("[{}, {}]", number(m), number(s));
                let pairs: Vec<String> = b.components().iter().map(pair).collect();
                self.put("{\"kind\": \"gaussian\", \"components\": [");
                self.put(&format!("{}]", pairs.join(", ")));
            }
            Basis::BSpline(b) => {
                let knots: Vec<String> = b.knots().iter().map(|&t| number(t)).collect();
                self.put(&format!("{{\"kind\": \"bspline\", \"degree\": {}", b.degree()));
                self.put(&format!(", \"knots\": [{}]", knots.join(", ")));
            }
            Basis::Steps(b) => {
                self.put(&format!("{{\"kind\": \"steps\", \"functions\": {}", b.width()));
                self.put(", \"edges\": ");
                if self.tensors.is_some() {
                    let name = format!("bases.{}", self.out.tensors.len());
                    self.matrix(&name, Data::Real(b.edge_matrix()));
                } else {
                    let edges: Vec<String> = b.edges().iter().map(|&x| number(x)).collect();
                    self.put(&format!("[{}]", edges.join(", ")));
                }
            }
            Basis::Transformed(b) => {
                self.put("{\"kind\": \"transformed\", \"of\": ");
                self.basis(b.base());
                self.put(", \"matrix\": ");
                self.basis_matrix(b.transform());
            }
            Basis::Squared(b) => {
                self.put("{\"kind\": \"squared\", \"of\": ");
                self.basis(b.base());
            }
            Basis::Atoms(b) => {
                self.put("{\"kind\": \"atoms\", \"of\": ");
                self.basis(b.rest());
            }
        }
        self.put("}");
    }

    fn weight(&mut self, id: WeightId) {
        let data = match self.circuit.weight(id) {
            Weight::Real(m) => Data::Real(m),
            Weight::Complex(m) => Data::Complex(m),
        };
        self.matrix(&format!("weights.{id}"), data);
    }

    fn basis_matrix(&mut self, m: &'c Matrix<Complex64>) {
        let is_real = m.data().iter().all(|z| z.im.to_bits() == 0);
        let data = if is_real { Data::RealPart(m) } else { Data::Complex(m) };
        self.matrix(&format!("bases.{}", self.out.tensors.len()), data);
    }

    fn matrix(&mut self, name: &str, data: Data<'c>) {
        if let Some(prefix) = self.tensors {
            let name = format!("{prefix}{name}");
            self.put(&format!("{{\"tensor\": \"{name}\"}}"));
            self.out.tensors.push((name, data));
            return;
        }
        match data {
            Data::Real(m) => self.rows(m, |_, x| number(x)),
            Data::RealPart(m) => self.rows(m, |_, z| number(z.re)),
            // One pair makes a matrix complex, so the first entry is always written as one.
            Data::Complex(m) => self.rows(m, |n, z| match z.im.to_bits() {
                0 if n > 0 => number(z.re),
                _ => format!("[{}, {}]", number(z.re), number(z.im)),
            }),
        }
    }

    fn rows<T: Copy>(&mut self, m: &Matrix<T>, entry: impl Fn(usize, T) -> String) {
        self.put("[");
        for r in 0..m.rows() {
            self.put(if r > 0 { ", [" } else { "[" });
            for (c, &x) in m.row(r).iter().enumerate() {
                self.put(if c > 0 { ", " } else { "" });
                let entry = entry(r * m.cols() + c, x);
                self.put(&entry);
            }
            self.put("]");
        }
        self.put("]");
    }

    fn line(&mut self, index: usize) {
        self.put(if index > 0 { ",\n    " } else { "\n    " });
    }

    fn put(&mut self, text: &str) {
        self.out.text.push_str(text);
    }
}

/// The weights of the sum layers, in order.
fn used_weights(circuit: &Circuit) -> Vec<WeightId> {
    let weight = |layer: &Layer| match layer {
        Layer::Sum { weight, .. } => Some(*weight),
        Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Kronecker { .. } => None,
    };
    circuit.layers().iter().filter_map(weight).collect()
}

fn domain(domain: &Domain) -> String {
    match domain {
        Domain::Finite(v) => format!("{{\"finite\": {v}}}"),
        Domain::Real => "\"real\"".to_owned(),
        Domain::Interval(a, b) => format!("{{\"interval\": [{}, {}]}}", number(*a), number(*b)),
        Domain::HalfLine(a) => format!("{{\"half_line\": {}}}", number(*a)),
        Domain::Circle(period) => format!("{{\"circle\": {}}}", number(*period)),
        Domain::Atoms(parts) => {
            let points: Vec<String> = parts.points.iter().map(|&x| number(x)).collect();
            let rest = self::domain(&parts.rest);
            format!("{{\"atoms\": [{}], \"rest\": {rest}}}", points.join(", "))
        }
    }
}

/// The smallest number of digits that preserve every bit. Whole numbers have no point, except −0, which would become 0.
fn number(x: f64) -> String {
    let mut text = String::new();
    let written = write!(text, "{x:?}");
    debug_assert!(written.is_ok(), "a string takes any text");
    if x != 0.0 || x.is_sign_positive() {
        text.truncate(text.strip_suffix(".0").map_or(text.len(), str::len));
    }
    text
}

/// A JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
