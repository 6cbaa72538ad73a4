//! A matrix-product state is a circuit over a linear tree: `cargo run --release --example mps`.
//!
//! Each site has a tensor A[l, x, r], and the amplitude of x is the product of the matrices A[:, xₙ, :] from left to
//! right. As a circuit every site is a sum layer over the Kronecker product of the layer to its left and the indicators
//! of its variable. Its weight has a row for each r and a column for each pair (l, x).

#![allow(clippy::print_stdout, reason = "a program")]

use bornite::engine::Engine;
use bornite::linalg::{Complex64, Matrix};
use bornite::ops::{Budget, Environments, evaluate, orthonormalize, overlap, truncate};
use bornite::{Basis, Circuit, CircuitBuilder, Domain, Error, VariableId};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SITES: usize = 10;
const VALUES: usize = 2;
const BOND: usize = 4;

/// The matrices A[:, x, :] of one site, one for each value x.
type Site = Vec<Matrix<Complex64>>;

fn random_state(rng: &mut ChaCha8Rng) -> Vec<Site> {
    let bond = |n: usize| if n == 0 || n == SITES { 1 } else { BOND };
    let mut entry = || Complex64::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0));
    (0..SITES)
        .map(|n| {
            let matrix = |_| Matrix::from_fn(bond(n), bond(n + 1), |_, _| entry());
            (0..VALUES).map(matrix).collect()
        })
        .collect()
}

fn to_circuit(state: &[Site]) -> Result<Circuit, Error> {
    let mut b = CircuitBuilder::new();
    let mut left = None;
    for (n, site) in state.iter().enumerate() {
        let x = b.variable(format!("x{n}"), Domain::Finite(VALUES));
        let f = b.input(x, Basis::indicator(VALUES));
        let input = left.map_or(f, |left| b.kronecker([left, f]));
        let (l, r) = (site[0].rows(), site[0].cols());
        // The first input of a Kronecker product varies slowest: column l · VALUES + x.
        let weight = Matrix::from_fn(r, l * VALUES, |k, j| site[j % VALUES][(j / VALUES, k)]);
        left = Some(b.sum(input, weight));
    }
    let Some(output) = left else { unreachable!("the state has sites") };
    Ok(b.build(output)?)
}

/// The amplitude by its definition.
fn amplitude(state: &[Site], x: &[f64]) -> Complex64 {
    let first = Matrix::identity(1);
    let product = state.iter().zip(x).fold(first, |left, (site, &x)| left.times(&site[x as usize]));
    product[(0, 0)]
}

/// All rows of values.
fn rows() -> impl Iterator<Item = Vec<f64>> {
    let value = |row: usize, n: usize| (row / VALUES.pow(n as u32) % VALUES) as f64;
    (0..VALUES.pow(SITES as u32)).map(move |row| (0..SITES).map(|n| value(row, n)).collect())
}

fn check(what: &str, difference: f64) {
    println!("{what}: off by {difference:.1e}");
    assert!(difference < 1e-12, "{what}");
}

fn main() -> Result<(), Error> {
    let state = random_state(&mut ChaCha8Rng::seed_from_u64(1));
    let c = to_circuit(&state)?;
    println!(
        "{SITES} sites, bond {BOND}: {} layers, {} parameters",
        c.num_layers(),
        c.num_parameters()
    );

    // The same amplitudes, and Z is the squared norm of the state.
    let mut norm2 = 0.0;
    let mut worst: f64 = 0.0;
    for x in rows() {
        let expected = amplitude(&state, &x);
        norm2 += expected.norm_sqr();
        worst = worst.max((evaluate(&c, &x)?.to_values()[0] - expected).norm() / expected.norm());
    }
    check("amplitudes, relative", worst);

    // Algorithm 1 brings the state into canonical form: every site an isometry, the norm at the end.
    let canonical = orthonormalize(&c)?;
    check("log of the squared norm", (canonical.log_partition - norm2.ln()).abs());
    let p = canonical.circuit;

    // The spectrum of a site is that of the cut to its right: the Schmidt coefficients squared.
    let all = Environments::new(&p);
    let Some(middle) = p.layer_ids().filter(|&id| p.layer(id).kind() == "sum").nth(SITES / 2 - 1)
    else {
        unreachable!("every site has a sum")
    };
    let spectrum = all.spectrum(middle)?;
    println!("spectrum of the middle cut: {spectrum:.4?}");
    check("its sum", (spectrum.iter().sum::<f64>() - 1.0).abs());

    // Rounding with a guarantee, and how much of the state is left.
    let rounded = truncate(&p, Budget::Width(3))?;
    let fidelity = overlap(&p, &rounded.circuit)?.fidelity();
    println!(
        "rounded to bond 3: fidelity {fidelity:.4}, Hellinger distance at most {:.4}",
        rounded.bound
    );
    assert!((1.0 - fidelity.sqrt()).sqrt() <= rounded.bound);

    // Exact samples; the mean of the first site's is near its exact mean.
    let count = 10_000;
    let samples = Engine::new(&p).sample(count, 7);
    let mean = samples.iter().step_by(SITES).sum::<f64>() / count as f64;
    let exact = all.mean(VariableId::new(0));
    println!("mean of x0: {exact:.4}, of {count} samples {mean:.4}");
    assert!((mean - exact).abs() < 5.0 * (0.25 / count as f64).sqrt());
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_matrix_product_state_is_a_circuit() {
        super::main().unwrap();
    }
}
