//! Small random circuits that know their own truth.
//!
//! A [`World`] holds a circuit twice: as the library's, and as plain nested layers that are evaluated by the definition
//! alone. Everything that the library computes is compared with sums over the plain one.

mod functions;
mod generate;
mod tolerance;
mod truth;

use std::collections::BTreeSet;
use std::fmt;

use bornite::linalg::{Complex64, Matrix};
use bornite::{Circuit, CircuitBuilder, LayerId};

pub(crate) use functions::Functions;
pub(crate) use generate::{Domains, Recipe};
pub(crate) use tolerance::{Tally, layer_steps};
pub(crate) use truth::{Knowledge, Truth, all_knowledge};

/// A layer of the plain circuit with everything below it.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Input { variable: usize },
    Hadamard(Vec<Node>),
    Kronecker(Vec<Node>),
    Sum { weight: usize, input: Box<Node> },
}

/// A weight, row after row.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) data: Vec<Complex64>,
    pub(crate) is_real: bool,
}

/// A circuit by its definition.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) recipe: Recipe,
    pub(crate) functions: Vec<Functions>,
    pub(crate) weights: Vec<Entries>,
    pub(crate) root: Node,
}

impl World {
    /// The same circuit in the library.
    pub(crate) fn circuit(&self) -> Circuit {
        let mut b = CircuitBuilder::new();
        let variables: Vec<_> = (self.functions.iter().enumerate())
            .map(|(n, f)| b.variable(format!("x{n}"), f.domain()))
            .collect();
        let weights: Vec<_> = (self.weights.iter())
            .map(|w| {
                let m = Matrix::new(w.rows, w.cols, w.data.clone());
                if w.is_real { b.weight(m.map(|z| z.re)) } else { b.weight(m) }
            })
            .collect();
        let mut push = |node: &Node, inputs: &[LayerId]| match node {
            Node::Input { variable } => {
                b.input(variables[*variable], self.functions[*variable].basis())
            }
            Node::Hadamard(_) => b.hadamard(inputs),
            Node::Kronecker(_) => b.kronecker(inputs),
            Node::Sum { weight, .. } => b.shared_sum(inputs[0], weights[*weight]),
        };
        let output = visit(&self.root, &mut push);
        b.build(output).unwrap_or_else(|e| panic!("{e}\n{self}"))
    }

    /// c(x), by the definition, from the input functions' values.
    pub(crate) fn evaluate(&self, inputs: &[&[Complex64]]) -> Vec<Complex64> {
        self.value(&self.root, &|v| inputs[v].to_vec(), &|z| z)
    }

    /// What c(x) would be if every weight were its absolute value: the scale of rounding errors.
    pub(crate) fn magnitude(&self, inputs: &[&[Complex64]]) -> Vec<Complex64> {
        self.value(&self.root, &|v| inputs[v].to_vec(), &|z| z.norm().into())
    }

    /// c(x) at a point.
    pub(crate) fn at(&self, x: &[f64]) -> Vec<Complex64> {
        let inputs: Vec<Vec<Complex64>> =
            self.functions.iter().zip(x).map(|(f, &x)| f.at(x)).collect();
        self.evaluate(&inputs.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Z̃ / Z, where Z̃ is the partition function of the circuit of absolute values: the condition of Z. A bound where
    /// input functions change their sign, by ∫ |fᵢ| |fⱼ| ≤ √(Gᵢᵢ Gⱼⱼ).
    pub(crate) fn condition(&self, log_partition: f64) -> f64 {
        let mut world = self.clone();
        let absolute = |z: &mut Complex64| *z = z.norm().into();
        world.weights.iter_mut().flat_map(|w| &mut w.data).for_each(absolute);
        let mut bound = 1.0;
        for functions in &mut world.functions {
            match functions {
                Functions::Table(rows) => rows.iter_mut().flatten().for_each(absolute),
                Functions::Indicator(_) | Functions::Gaussian(_) | Functions::BSpline { .. } => {}
                _ => bound *= functions.width() as f64,
            }
        }
        let log = bornite::ops::log_partition(&world.circuit()).unwrap();
        (log - log_partition).exp() * bound
    }

    fn value(
        &self,
        node: &Node,
        input: &dyn Fn(usize) -> Vec<Complex64>,
        entry: &dyn Fn(Complex64) -> Complex64,
    ) -> Vec<Complex64> {
        match node {
            Node::Input { variable } => input(*variable),
            Node::Hadamard(inputs) => {
                let values: Vec<_> = inputs.iter().map(|n| self.value(n, input, entry)).collect();
                (0..values[0].len()).map(|i| values.iter().map(|v| v[i]).product()).collect()
            }
            Node::Kronecker(inputs) => {
                let mut product = vec![Complex64::ONE];
                for n in inputs {
                    let next = self.value(n, input, entry);
                    product =
                        product.iter().flat_map(|a| next.iter().map(move |b| a * b)).collect();
                }
                product
            }
            Node::Sum { weight, input: below } => {
                let v = self.value(below, input, entry);
                let w = &self.weights[*weight];
                let row =
                    |i: usize| (0..w.cols).map(|j| entry(w.data[i * w.cols + j]) * v[j]).sum();
                (0..w.rows).map(row).collect()
            }
        }
    }
}

/// Applies `push` to every layer, inputs first, with what it gave for the inputs.
pub(crate) fn visit<T>(node: &Node, push: &mut impl FnMut(&Node, &[T]) -> T) -> T {
    let inputs: Vec<T> = match node {
        Node::Input { .. } => Vec::new(),
        Node::Hadamard(inputs) | Node::Kronecker(inputs) => {
            inputs.iter().map(|n| visit(n, push)).collect()
        }
        Node::Sum { input, .. } => vec![visit(input, push)],
    };
    push(node, &inputs)
}

/// The scope of every layer of a circuit, by the definition: the union of its inputs' scopes.
pub(crate) fn scopes(circuit: &Circuit) -> Vec<BTreeSet<usize>> {
    let mut scopes: Vec<BTreeSet<usize>> = Vec::new();
    for layer in circuit.layers() {
        let mut scope = BTreeSet::new();
        if let bornite::circuit::Layer::Input { variable, .. } = layer {
            scope.insert(variable.index());
        }
        for input in layer.inputs() {
            scope.extend(scopes[input.index()].iter().copied());
        }
        scopes.push(scope);
    }
    scopes
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?}", self.recipe)?;
        for (n, functions) in self.functions.iter().enumerate() {
            writeln!(f, "x{n}: {functions:?}")?;
        }
        for (n, w) in self.weights.iter().enumerate() {
            writeln!(f, "W{n}: {}x{} {:?}", w.rows, w.cols, w.data)?;
        }
        write!(f, "{}", self.root)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |inputs: &[Node], sign: &str| {
            let inputs: Vec<String> = inputs.iter().map(ToString::to_string).collect();
            format!("({})", inputs.join(sign))
        };
        match self {
            Node::Input { variable } => write!(f, "x{variable}"),
            Node::Hadamard(inputs) => write!(f, "{}", join(inputs, " ⊙ ")),
            Node::Kronecker(inputs) => write!(f, "{}", join(inputs, " ⊗ ")),
            Node::Sum { weight, input } => write!(f, "W{weight} {input}"),
        }
    }
}
