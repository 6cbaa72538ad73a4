//! A tree tensor network is a circuit: `cargo run --release --example tree_tensor_network`.
//!
//! Each tensor T[k, i, j] has a bond k to the tensor above it and bonds i and j to those below. As a circuit it is a sum
//! layer of weight T over the Kronecker product of the two layers below. At the bottom i and j are values of variables.

#![allow(clippy::print_stdout, reason = "a program")]

use bornite::circuit::{Weights, random_weight};
use bornite::linalg::{Complex64, Matrix};
use bornite::ops::{Environments, evaluate, marginalize, orthonormalize};
use bornite::{Basis, CircuitBuilder, Domain, Error, LayerId, Query, VariableId};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

const VARIABLES: usize = 8;
const VALUES: usize = 2;
const BOND: usize = 3;

/// A balanced binary network.
enum Network {
    Variable(usize),
    Tensor { left: Box<Network>, right: Box<Network>, t: Matrix<Complex64> },
}

fn random_network(first: usize, end: usize, rng: &mut ChaCha8Rng) -> Network {
    if end - first == 1 {
        return Network::Variable(first);
    }
    let middle = usize::midpoint(first, end);
    let left = Box::new(random_network(first, middle, rng));
    let right = Box::new(random_network(middle, end, rng));
    let below = |size: usize| if size == 1 { VALUES } else { BOND };
    let above = if end - first == VARIABLES { 1 } else { BOND };
    let cols = below(middle - first) * below(end - middle);
    let t = random_weight(above, cols, Weights::Gaussian, rng).to_matrix().into_owned();
    Network::Tensor { left, right, t }
}

fn add_layers(network: &Network, b: &mut CircuitBuilder) -> LayerId {
    match network {
        Network::Variable(n) => {
            let x = b.variable(format!("x{n}"), Domain::Finite(VALUES));
            b.input(x, Basis::indicator(VALUES))
        }
        Network::Tensor { left, right, t } => {
            let inputs = [add_layers(left, b), add_layers(right, b)];
            let product = b.kronecker(inputs);
            b.sum(product, t.clone())
        }
    }
}

/// The network contracted by its definition: Σ T[k, i, j] left[i] right[j].
fn contract(network: &Network, x: &[f64]) -> Vec<Complex64> {
    match network {
        Network::Variable(n) => {
            (0..VALUES).map(|v| Complex64::from(f64::from(u8::from(v as f64 == x[*n])))).collect()
        }
        Network::Tensor { left, right, t } => {
            let (a, b) = (contract(left, x), contract(right, x));
            let term = |k: usize, n: usize| t[(k, n)] * a[n / b.len()] * b[n % b.len()];
            (0..t.rows()).map(|k| (0..t.cols()).map(|n| term(k, n)).sum()).collect()
        }
    }
}

/// All rows of values.
fn rows() -> impl Iterator<Item = Vec<f64>> {
    let value = |row: usize, n: usize| (row / VALUES.pow(n as u32) % VALUES) as f64;
    (0..VALUES.pow(VARIABLES as u32))
        .map(move |row| (0..VARIABLES).map(|n| value(row, n)).collect())
}

fn check(what: &str, difference: f64) {
    println!("{what}: off by {difference:.1e}");
    assert!(difference < 1e-12, "{what}");
}

fn main() -> Result<(), Error> {
    let network = random_network(0, VARIABLES, &mut ChaCha8Rng::seed_from_u64(1));
    let mut b = CircuitBuilder::new();
    let output = add_layers(&network, &mut b);
    let c = b.build(output)?;
    println!(
        "{VARIABLES} variables, bond {BOND}: {} layers, {} parameters",
        c.num_layers(),
        c.num_parameters()
    );

    // The same amplitudes. Along the way, what the answers below should be.
    let (mut z, mut half, mut both, mut means) = (0.0, 0.0, 0.0, [0.0; 2]);
    let mut worst: f64 = 0.0;
    for x in rows() {
        let expected = contract(&network, &x)[0];
        worst = worst.max((evaluate(&c, &x)?.to_values()[0] - expected).norm() / expected.norm());
        let weight = expected.norm_sqr();
        z += weight;
        half += if x[..4] == [1.0, 0.0, 0.0, 1.0] { weight } else { 0.0 };
        both += weight * x[0] * x[7];
        means[0] += weight * x[0];
        means[1] += weight * x[7];
    }
    check("amplitudes, relative", worst);

    // In canonical form every tensor is an isometry towards the top.
    let canonical = orthonormalize(&c)?;
    check("log of the squared norm", (canonical.log_partition - z.ln()).abs());
    let p = canonical.circuit;

    // A marginal of the left half skips every tensor of the right half.
    let query = Query::parse(p.variables(), "x0=1, x1=0, x2=0, x3=1")?;
    let answer = marginalize(&p, &query)?;
    check("log marginal of the left half", (answer.log_marginal - (half / z).ln()).abs());
    println!("layers: {:?}", answer.layers);
    assert_eq!(answer.layers.mixed, 2);

    // Correlations of the first and the last variable, from one pass up and one pass down.
    let covariance = Environments::new(&p).covariance(VariableId::new(0), VariableId::new(7));
    let expected = both / z - means[0] / z * (means[1] / z);
    println!("covariance of x0 and x7: {covariance:.6}");
    check("it", (covariance - expected).abs());
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_tree_tensor_network_is_a_circuit() {
        super::main().unwrap();
    }
}
