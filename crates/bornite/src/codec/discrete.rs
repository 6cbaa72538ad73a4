//! Discretization of continuous variables: a circuit over bins that is exactly as orthonormal as the original.

use crate::basis::Basis;
use crate::basis::quadrature::gauss_legendre;
use crate::circuit::{Circuit, CircuitBuilder, Layer};
use crate::domain::{Domain, Variable};
use crate::linalg::{Complex64, Matrix};

use super::CodecError;

/// The minimum number of bins of a continuous variable, and the number of bins per input function.
const BINS: usize = 256;
const BINS_PER_FUNCTION: usize = 8;

/// A circuit with finite variables only.
#[derive(Debug)]
pub(super) struct Discrete {
    pub(super) circuit: Circuit,
    /// For every variable that was continuous, the edges of its bins, from 0 to 1.
    pub(super) edges: Vec<Option<Vec<f64>>>,
}

/// Replaces every continuous variable by one with n bins, and its functions f by √wᵦ f(xᵦ) at bin b.
///
/// The nodes x and weights w are those of the Gauss rule with n nodes on an interval, and of the uniform rule on a
/// circle; for step functions, every step is a bin. The weights are the lengths of the bins, which contain their nodes.
/// All of these rules are exact for products of the input functions, so the new functions are orthonormal too. Within a bin, the density
/// is that of its node. An atom is a bin of length 0, which splits the bin that contains it.
///
/// Uses only operations whose bits are the same on every machine.
pub(super) fn discretize(circuit: &Circuit) -> Result<Discrete, CodecError> {
    let mut bases: Vec<Option<Basis>> = vec![None; circuit.num_variables()];
    let mut edges = vec![None; circuit.num_variables()];
    for layer in circuit.layers() {
        let Layer::Input { variable, basis } = layer else { continue };
        let Variable { name, domain } = circuit.variable(*variable);
        if domain.num_values().is_some() {
            continue;
        }
        let functions = basis.width() - domain.atoms().len();
        let bins = BINS.max(BINS_PER_FUNCTION * functions);
        let Some((rule, ends)) = steps(basis).or_else(|| rule(domain.rest(), bins)) else {
            return Err(CodecError::NotFinite { variable: name.clone(), domain: domain.clone() });
        };
        let atoms = with_atoms(rule, ends, domain);
        bases[variable.index()] = Some(at_nodes(basis, &atoms.0)?);
        edges[variable.index()] = Some(atoms.1);
    }
    let variables: Vec<Variable> = circuit
        .variables()
        .iter()
        .zip(&edges)
        .map(|(Variable { name, domain }, ends)| {
            let bins = ends.as_ref().map(|e: &Vec<f64>| Domain::Finite(e.len() - 1));
            Variable::new(name.clone(), bins.unwrap_or_else(|| domain.clone()))
        })
        .collect();
    let mut builder = CircuitBuilder::over(&variables);
    for weight in circuit.weights() {
        builder.weight(weight.clone());
    }
    for layer in circuit.layers() {
        match layer {
            Layer::Input { variable, .. } if bases[variable.index()].is_some() => {
                if let Some(basis) = bases[variable.index()].take() {
                    builder.input(*variable, basis);
                }
            }
            Layer::Input { .. }
            | Layer::Hadamard { .. }
            | Layer::Kronecker { .. }
            | Layer::Sum { .. } => {
                builder.push(layer.clone());
            }
        }
    }
    Ok(Discrete { circuit: builder.build(circuit.output())?, edges })
}

/// Nodes and their weights.
type Nodes = Vec<(f64, f64)>;

/// The middles and the edges of steps; `None` for functions that are not step functions.
fn steps(basis: &Basis) -> Option<(Nodes, Vec<f64>)> {
    let edges = basis.rest().as_steps()?.edges();
    let (low, high) = (edges[0], edges[edges.len() - 1]);
    let nodes = edges.windows(2).map(|e| (0.5 * e[0] + 0.5 * e[1], e[1] - e[0]));
    Some((nodes.collect(), edges.iter().map(|x| (x - low) / (high - low)).collect()))
}

/// Quadrature nodes, and the edges of bins whose lengths are the weights.
fn rule(domain: &Domain, bins: usize) -> Option<(Nodes, Vec<f64>)> {
    match *domain {
        Domain::Interval(low, high) => {
            let length = high - low;
            let gauss = gauss_legendre(bins);
            let node = |&(t, w): &(f64, f64)| (low + length * (0.5 + 0.5 * t), 0.5 * w * length);
            let mut sum = 0.0;
            let mut ends = vec![0.0];
            for (_, w) in &gauss {
                sum += 0.5 * w;
                ends.push(sum);
            }
            ends[bins] = 1.0;
            Some((gauss.iter().map(node).collect(), ends))
        }
        Domain::Circle(period) => {
            let n = bins as f64;
            let node = |b: usize| ((b as f64 + 0.5) / n * period, period / n);
            Some(((0..bins).map(node).collect(), (0..=bins).map(|b| b as f64 / n).collect()))
        }
        Domain::Finite(_) | Domain::Real | Domain::HalfLine(_) | Domain::Atoms(_) => None,
    }
}

/// Adds a bin of length 0 for every atom; its node is the atom, with weight 1.
///
/// The bin that contains an atom is split there. Both pieces keep its node, with weights proportional to their lengths.
fn with_atoms(rule: Nodes, ends: Vec<f64>, domain: &Domain) -> (Nodes, Vec<f64>) {
    if domain.atoms().is_empty() {
        return (rule, ends);
    }
    let (low, high) = domain.rest().bounds();
    let mut atoms = domain.atoms().iter().map(|&x| (x, (x - low) / (high - low))).peekable();
    let (mut nodes, mut edges) = (Vec::new(), vec![]);
    for (b, &(x, weight)) in rule.iter().enumerate() {
        let (mut from, to) = (ends[b], ends[b + 1]);
        let is_last = b + 1 == rule.len();
        while let Some((atom, at)) = atoms.next_if(|(_, at)| *at < to || is_last) {
            // Stay below 1, which is the same point as 0 on a circle.
            let at = at.clamp(from, to.min(1.0_f64.next_down()).max(from));
            if at > from {
                nodes.push((x, weight * ((at - from) / (to - ends[b]))));
                edges.push(from);
            }
            nodes.push((atom, 1.0));
            edges.push(at);
            from = at;
        }
        if to > from {
            nodes.push((x, weight * ((to - from) / (to - ends[b]))));
            edges.push(from);
        }
    }
    edges.push(1.0);
    (nodes, edges)
}

fn at_nodes(basis: &Basis, rule: &[(f64, f64)]) -> Result<Basis, CodecError> {
    let mut values = Matrix::zeros(basis.width(), rule.len());
    let mut f = vec![Complex64::ZERO; basis.width()];
    for (b, &(x, w)) in rule.iter().enumerate() {
        basis.evaluate(x, &mut f);
        for (k, z) in f.iter().enumerate() {
            values[(k, b)] = z * w.sqrt();
        }
    }
    Ok(Basis::table(values)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basis::FourierForm;
    use crate::circuit::{Orthonormal, Weights};
    use crate::ops::orthonormalize;
    use crate::structure::{RegionTree, Structure};
    use rand::SeedableRng;

    const ATOMS: [f64; 3] = [0.0, 0.3, 1.0];

    #[test]
    fn the_circuit_over_bins_is_orthonormal_and_as_probable() {
        let leaf = |v: usize| match v {
            0 => (Domain::Interval(0.0, 1.0), Basis::legendre(16, 0.0, 1.0).unwrap()),
            1 => (Domain::Circle(1.0), Basis::fourier(9, 0.0, 1.0, FourierForm::Real).unwrap()),
            2 => (Domain::Finite(3), Basis::indicator(3)),
            _ => {
                let basis = Basis::legendre(5, 0.0, 1.0).unwrap().with_atoms(&ATOMS[..]);
                (Domain::with_atoms(&ATOMS[..], Domain::Interval(0.0, 1.0)), basis.unwrap())
            }
        };
        let rng = &mut rand_chacha::ChaCha8Rng::seed_from_u64(3);
        let structure = Structure::new(RegionTree::balanced(4), |v| {
            (Variable::new(format!("x{v}"), leaf(v).0), leaf(v).1)
        });
        let circuit = structure.width(4).build(Weights::Gaussian, rng).unwrap();
        let circuit = orthonormalize(&circuit).unwrap().circuit;
        let discrete = discretize(&circuit).unwrap();
        let edges: Vec<&[f64]> = discrete.edges.iter().flatten().map(Vec::as_slice).collect();
        assert_eq!((edges.len(), edges[0].len()), (3, 257));
        let increase = |e: &&[f64]| e.is_sorted_by(|a, b| a < b) && e[0] == 0.0 && e[256] == 1.0;
        assert!(edges[..2].iter().all(increase));
        // Of the three atoms, two are at the ends and one splits a bin.
        assert!(edges[2].len() == 257 + 5 && edges[2].is_sorted());
        let atom = edges[2].windows(2).position(|e| e == [0.3, 0.3]).unwrap();
        assert_eq!(edges[2][1], 0.0);
        assert_eq!(edges[2][edges[2].len() - 2], 1.0_f64.next_down());
        // The density at a node, times the length of its bins.
        let finite = Orthonormal::verify(discrete.circuit).unwrap();
        let density = |c: &Circuit, row: [f64; 4]| {
            crate::ops::evaluate(c, &row).unwrap().log_abs_squared().exp()
        };
        let (rule, _) = rule(&Domain::Interval(0.0, 1.0), 256).unwrap();
        for (b, &(x, w)) in rule.iter().enumerate().step_by(50) {
            assert!((edges[0][b]..edges[0][b + 1]).contains(&x), "{b}");
            let exact = density(&circuit, [x, 100.5 / 256.0, 1.0, 0.3]) * w / 256.0;
            let found = density(&finite, [b as f64, 100.0, 1.0, atom as f64]);
            assert!((found / exact - 1.0).abs() < 1e-9, "{found} of {exact}");
        }
    }
}
