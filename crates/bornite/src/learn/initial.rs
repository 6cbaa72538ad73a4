//! The circuit that learning starts from, near what single columns and clusters of rows tell.

use rand::Rng;

use super::mixture::Mixture;
use super::parameter::normalized;
use crate::basis::Basis;
use crate::circuit::{Circuit, Layer, Weight, Weights, random_weight};
use crate::engine::Batch;
use crate::linalg::{Complex64, Matrix, eigh};

/// How far the first weights are from a mixture of products.
const MIXTURE_NOISE: f64 = 0.02;
/// How far they are from a single product.
const PRODUCT_NOISE: f64 = 0.3;

/// A circuit of the same layers with weights to start from, see [`near_mixture`] and [`near_product`].
pub(crate) fn first_circuit(
    circuit: &Circuit,
    rows: &Batch,
    complex: bool,
    rng: &mut impl Rng,
) -> Circuit {
    let weights = near_mixture(circuit, rows, complex, MIXTURE_NOISE, rng)
        .unwrap_or_else(|| near_product(circuit, rows, complex, rng));
    let weights = weights
        .into_iter()
        .map(|w| if complex { Weight::Complex(w) } else { Weight::Real(w.map(|z| z.re)) });
    match circuit.with_weights(weights) {
        Ok(circuit) => circuit,
        Err(error) => unreachable!("only the weights are new: {error}"),
    }
}

/// Weights near a mixture of products that fits the rows, of as many components as there are squares: clusters of rows are
/// there from the start, and learning has to find only what they do not tell.
///
/// The root of each component's density is a product of functions of single variables. A layer keeps the K directions in
/// which the components, by their weights, are largest; the output has a square for each. The result is the mixture itself where the widths
/// suffice, up to noise of this norm. `None` for products that are not of Kronecker, since a Hadamard
/// product of sums is no sum of products, and for values too large to square.
fn near_mixture(
    circuit: &Circuit,
    rows: &Batch,
    complex: bool,
    norm: f64,
    rng: &mut impl Rng,
) -> Option<Vec<Matrix<Complex64>>> {
    let mut bases: Vec<Option<&Basis>> = vec![None; circuit.variables().len()];
    for id in circuit.layer_ids() {
        match circuit.layer(id) {
            Layer::Input { variable, basis } => bases[variable.index()] = Some(basis),
            Layer::Hadamard { .. } => return None,
            Layer::Kronecker { .. } | Layer::Sum { .. } => {}
        }
    }
    let bases: Vec<&Basis> = bases.into_iter().collect::<Option<_>>()?;
    let components = circuit.width(circuit.output());
    let mixture = Mixture::fit(components, &bases, rows, rng)?;
    let mut weights: Vec<Option<Matrix<Complex64>>> = vec![None; circuit.weights().len()];
    // Of every layer the components in its functions, one a row.
    let mut inside: Vec<Matrix<Complex64>> = Vec::with_capacity(circuit.num_layers());
    for id in circuit.layer_ids() {
        inside.push(match circuit.layer(id) {
            Layer::Input { variable, basis } => mixture.roots(variable.index(), basis),
            Layer::Kronecker { inputs } => {
                let mut inputs = inputs.iter().map(|i| &inside[i.index()]);
                let first = inputs.next()?.clone();
                inputs.fold(first, |a, b| row_products(&a, b))
            }
            Layer::Hadamard { .. } => return None,
            Layer::Sum { input, weight } => {
                let below = &inside[input.index()];
                let is_output = id == circuit.output();
                let slot = &mut weights[weight.index()];
                if slot.is_none() {
                    let root = |k: usize| mixture.weights()[k].sqrt();
                    let weighted =
                        Matrix::from_fn(components, below.cols(), |k, n| below[(k, n)] * root(k));
                    let [k, cols] = [circuit.weight(*weight).rows(), below.cols()];
                    let main = if is_output { weighted } else { directions(&weighted, k)? };
                    let noise = noise([k, cols], complex, norm, rng);
                    *slot = Some(normalized(with_rows(noise, &main), is_output));
                }
                below.times_adjoint(slot.as_ref()?)
            }
        });
    }
    weights.into_iter().collect()
}

/// The Kronecker product of each row of one matrix with the same row of another.
fn row_products(a: &Matrix<Complex64>, b: &Matrix<Complex64>) -> Matrix<Complex64> {
    let right = b.cols();
    Matrix::from_fn(a.rows(), a.cols() * right, |k, n| a[(k, n / right)] * b[(k, n % right)])
}

/// The orthonormal directions in which the rows of a matrix are largest, at most so many, one a row.
fn directions(m: &Matrix<Complex64>, most: usize) -> Option<Matrix<Complex64>> {
    let eigen = eigh(&m.times_adjoint(m))?;
    let least = 1e-12 * eigen.values.first().copied().unwrap_or(0.0);
    let rank = eigen.values.iter().take(most).take_while(|&&value| value > least).count();
    let projected = eigen.vectors.adjoint().times(m);
    Some(Matrix::from_fn(rank, m.cols(), |k, n| projected[(k, n)] / eigen.values[k].sqrt()))
}

/// Weights near the product of the rows' marginals: the first output of every layer is the product of the first outputs below
/// it, and at a variable of finite domain the root of its frequencies. The rest is random.
fn near_product(
    circuit: &Circuit,
    rows: &Batch,
    complex: bool,
    rng: &mut impl Rng,
) -> Vec<Matrix<Complex64>> {
    let mut weights: Vec<Option<Matrix<Complex64>>> = vec![None; circuit.weights().len()];
    for id in circuit.layer_ids() {
        let Layer::Sum { input, weight } = circuit.layer(id) else { continue };
        let slot = &mut weights[weight.index()];
        if slot.is_some() {
            continue;
        }
        let [k, cols] = [circuit.weight(*weight).rows(), circuit.weight(*weight).cols()];
        let first: Vec<f64> = match circuit.layer(*input) {
            Layer::Input { variable, basis } if matches!(**basis, Basis::Indicator(_)) => {
                let p = frequencies(rows, variable.index(), basis.width());
                p.into_iter().map(f64::sqrt).collect()
            }
            _ => (0..cols).map(|n| f64::from(u8::from(n == 0))).collect(),
        };
        let first = Matrix::from_fn(1, cols, |_, n| Complex64::from(first[n]));
        let noise = noise([k, cols], complex, PRODUCT_NOISE, rng);
        *slot = Some(normalized(with_rows(noise, &first), id == circuit.output()));
    }
    weights.into_iter().flatten().collect()
}

/// A random matrix with rows of about this norm.
fn noise(
    [rows, cols]: [usize; 2],
    complex: bool,
    norm: f64,
    rng: &mut impl Rng,
) -> Matrix<Complex64> {
    let kind = if complex { Weights::Gaussian } else { Weights::RealGaussian };
    random_weight(rows, cols, kind, rng).to_matrix::<Complex64>().scaled(norm)
}

/// Adds the rows of one matrix to the first rows of another, as far as it has them.
fn with_rows(mut w: Matrix<Complex64>, rows: &Matrix<Complex64>) -> Matrix<Complex64> {
    for k in 0..w.rows().min(rows.rows()) {
        w.row_mut(k).iter_mut().zip(rows.row(k)).for_each(|(w, x)| *w += x);
    }
    w
}

/// p of each value, with half a row added to each.
pub(super) fn frequencies(rows: &Batch, variable: usize, values: usize) -> Vec<f64> {
    let mut counts = vec![0.5; values];
    for x in rows.known(variable) {
        counts[x as usize] += 1.0;
    }
    let total: f64 = counts.iter().sum();
    counts.into_iter().map(|c| c / total).collect()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::engine::Engine;
    use crate::learn::mean_log_likelihood;
    use crate::structure::{Product, RegionTree, Structure};
    use crate::{Domain, Orthonormal, Variable};

    const COMPONENTS: usize = 3;

    /// Rows of six columns in two clusters: labels of two and of four values, and numbers; a few cells are unknown.
    fn clusters(rng: &mut impl Rng) -> (Vec<(Variable, Basis)>, Vec<f64>) {
        let finite =
            |v, n| (Variable::new(format!("x{v}"), Domain::Finite(n)), Basis::indicator(n));
        let real = |v| {
            (Variable::new(format!("x{v}"), Domain::Real), Basis::hermite(16, 0.0, 1.0).unwrap())
        };
        let columns =
            vec![finite(0, 2), finite(1, 4), real(2), finite(3, 4), real(4), finite(5, 2)];
        let mut values = Vec::new();
        for _ in 0..600 {
            let cluster = f64::from(rng.random_range(0..2_u8));
            for v in 0..6 {
                let flipped = if rng.random_bool(0.1) { 1.0 - cluster } else { cluster };
                values.push(match v {
                    _ if rng.random_bool(0.05) => f64::NAN,
                    0 | 5 => flipped,
                    1 | 3 => 2.0 * flipped + f64::from(rng.random_range(0..2_u8)),
                    _ => 3.0 * flipped - 1.5 + rng.random_range(-1.0..1.0),
                });
            }
        }
        (columns, values)
    }

    fn circuit(columns: &[(Variable, Basis)], width: usize, product: Product) -> Circuit {
        let leaf = |v: usize| columns[v].clone();
        let structure = Structure::new(RegionTree::balanced(columns.len()), leaf)
            .product(product)
            .width(width)
            .output_width(COMPONENTS);
        structure.build(Weights::Gaussian, &mut ChaCha8Rng::seed_from_u64(1)).unwrap()
    }

    fn start(circuit: &Circuit, rows: &Batch, norm: f64) -> Orthonormal {
        let rng = &mut ChaCha8Rng::seed_from_u64(2);
        let weights = near_mixture(circuit, rows, true, norm, rng).unwrap();
        let weights = weights.into_iter().map(Weight::Complex);
        Orthonormal::verify(circuit.with_weights(weights).unwrap()).unwrap()
    }

    #[test]
    fn without_noise_it_is_the_mixture() {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let (columns, values) = clusters(rng);
        // Roots of normal densities are cut off by the functions, so that only labels are exact.
        let finite: Vec<_> = [0, 1, 3, 5].map(|v: usize| columns[v].clone()).into();
        let labels: Vec<f64> =
            values.chunks_exact(6).flat_map(|x| [x[0], x[1], x[3], x[5]]).collect();
        let circuit = circuit(&finite, COMPONENTS, Product::Kronecker);
        let rows = Batch::from_rows(circuit.variables(), &labels).unwrap();
        let exact = start(&circuit, &rows, 0.0);
        let bases: Vec<&Basis> = finite.iter().map(|(_, basis)| basis).collect();
        let rng = &mut ChaCha8Rng::seed_from_u64(2);
        let mixture = Mixture::fit(COMPONENTS, &bases, &rows, rng).unwrap();
        let engine = Engine::new(&exact);
        for (row, log) in engine.log_marginals(&rows).unwrap().into_iter().enumerate() {
            let expected = mixture.log_likelihood(&rows, row);
            assert!((log - expected).abs() < 1e-9, "row {row}: {log} for {expected}");
        }
    }

    #[test]
    fn clusters_are_there_from_the_start() {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let (columns, values) = clusters(rng);
        let circuit = circuit(&columns, 4, Product::Kronecker);
        let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
        let mixture = mean_log_likelihood(&start(&circuit, &rows, MIXTURE_NOISE), &rows);
        let product = near_product(&circuit, &rows, true, rng).into_iter().map(Weight::Complex);
        let product = Orthonormal::verify(circuit.with_weights(product).unwrap()).unwrap();
        let product = mean_log_likelihood(&product, &rows);
        assert!(mixture > product + 1.0, "{mixture}, {product}");
    }

    #[test]
    fn other_products_start_near_a_single_one() {
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        let (columns, values) = clusters(rng);
        let four: Vec<_> = [1, 3].map(|v: usize| columns[v].clone()).into();
        let values: Vec<f64> = values.chunks_exact(6).flat_map(|x| [x[1], x[3]]).collect();
        let circuit = circuit(&four, 4, Product::Hadamard);
        let rows = Batch::from_rows(circuit.variables(), &values).unwrap();
        assert!(near_mixture(&circuit, &rows, true, 0.0, rng).is_none());
        let first = first_circuit(&circuit, &rows, false, rng);
        assert!(first.is_real() && Orthonormal::verify(first).is_ok());
    }
}
