//! Growing a wider circuit from a narrower one, with the same density.

use crate::circuit::{Layer, LayerId, Skeleton};
use crate::linalg::{Complex64, Matrix};

/// The first rows of the weights of a wider circuit, so that it starts with the density of a learned
/// narrower one: everything new has weight zero. `None` if the circuits do not have the same layers,
/// or have Hadamard products.
///
/// The additional functions of an input must come after the common ones, as with polynomials.
pub(super) fn grown(
    narrow: &Skeleton,
    weights: &[Vec<f32>],
    wide: &Skeleton,
) -> Option<Vec<Matrix<Complex64>>> {
    if narrow.num_layers() != wide.num_layers()
        || narrow.weight_shapes().len() != wide.weight_shapes().len()
    {
        return None;
    }
    let mut found: Vec<Option<Matrix<Complex64>>> = vec![None; weights.len()];
    for id in wide.layer_ids() {
        if narrow.width(id) > wide.width(id) || !is_same_layer(narrow.layer(id), wide.layer(id)) {
            return None;
        }
        let (Layer::Sum { input, weight }, Layer::Sum { .. }) = (wide.layer(id), narrow.layer(id))
        else {
            continue;
        };
        let places = places(narrow, wide, *input);
        let (own, parts) = (narrow.weight_shapes()[weight.index()], &weights[weight.index()]);
        let rows = entries(own, parts)?;
        let mut w = Matrix::zeros(rows.rows(), wide.width(*input));
        for k in 0..rows.rows() {
            for (n, &place) in places.iter().enumerate() {
                w[(k, place)] = rows[(k, n)];
            }
        }
        found[weight.index()] = Some(w);
    }
    found.into_iter().collect()
}

fn is_same_layer(a: &Layer, b: &Layer) -> bool {
    match (a, b) {
        (Layer::Input { variable: a, .. }, Layer::Input { variable: b, .. }) => a == b,
        (Layer::Kronecker { inputs: a }, Layer::Kronecker { inputs: b }) => a == b,
        (Layer::Sum { input: a, weight: v }, Layer::Sum { input: b, weight: w }) => {
            a == b && v == w
        }
        (
            Layer::Input { .. }
            | Layer::Hadamard { .. }
            | Layer::Kronecker { .. }
            | Layer::Sum { .. },
            _,
        ) => false,
    }
}

/// The positions of a narrow layer's functions among those of the wide layer.
fn places(narrow: &Skeleton, wide: &Skeleton, id: LayerId) -> Vec<usize> {
    let Layer::Kronecker { inputs } = wide.layer(id) else {
        return (0..narrow.width(id)).collect();
    };
    inputs.iter().fold(vec![0], |places, input| {
        let (own, size) = (narrow.width(*input), wide.width(*input));
        places.iter().flat_map(|place| (0..own).map(move |n| place * size + n)).collect()
    })
}

/// A weight from its real or complex parts.
fn entries([rows, cols]: [usize; 2], parts: &[f32]) -> Option<Matrix<Complex64>> {
    let part = |n: usize| parts.get(n).map_or(0.0, |x| f64::from(*x));
    if parts.len() == rows * cols {
        return Some(Matrix::from_fn(rows, cols, |k, n| Complex64::from(part(k * cols + n))));
    }
    (parts.len() == 2 * rows * cols).then(|| {
        Matrix::from_fn(rows, cols, |k, n| {
            let n = 2 * (k * cols + n);
            Complex64::new(part(n), part(n + 1))
        })
    })
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::basis::Basis;
    use crate::circuit::{Circuit, Orthonormal, Weight, Weights, random_weight};
    use crate::engine::Batch;
    use crate::learn::mean_log_likelihood;
    use crate::learn::parameter::normalized;
    use crate::structure::{RegionTree, Structure};
    use crate::{Domain, Variable};

    fn circuit(width: usize, functions: usize, squares: usize) -> Circuit {
        let leaf = |v: usize| {
            let name = format!("x{v}");
            if v.is_multiple_of(2) {
                return (Variable::new(name, Domain::Finite(3)), Basis::indicator(3));
            }
            let basis = Basis::legendre(functions, 0.0, 1.0).unwrap();
            (Variable::new(name, Domain::Interval(0.0, 1.0)), basis)
        };
        let tree = RegionTree::parse("[[[0, 1], [2, 3]], 4]").unwrap();
        let structure = Structure::new(tree, leaf).width(width).output_width(squares);
        structure.build(Weights::Haar, &mut ChaCha8Rng::seed_from_u64(1)).unwrap()
    }

    #[test]
    fn a_wider_circuit_has_the_density_of_the_narrower_one() {
        let (narrow, wide) = (circuit(3, 4, 2), circuit(5, 9, 4));
        let output = wide.weights().len() - 1;
        let unit = narrow.weights().iter().enumerate().map(|(n, w)| {
            Weight::Complex(normalized(w.to_matrix::<Complex64>().into_owned(), n == output))
        });
        let narrow = narrow.with_weights(unit).unwrap();
        let parts = |w: &Weight| -> Vec<f32> {
            let w = w.to_matrix::<Complex64>().into_owned();
            w.data().iter().flat_map(|z| [z.re as f32, z.im as f32]).collect()
        };
        let learned: Vec<Vec<f32>> = narrow.weights().iter().map(parts).collect();
        let grown = grown(&narrow, &learned, &wide).unwrap();
        let rng = &mut ChaCha8Rng::seed_from_u64(2);
        let weights = wide.weights().iter().zip(grown).enumerate().map(|(n, (shape, first))| {
            let (rows, cols) = (shape.rows(), shape.cols());
            let mut w = random_weight(rows, cols, Weights::Gaussian, rng)
                .to_matrix::<Complex64>()
                .scaled(if n == output { 0.0 } else { 1.0 });
            for k in 0..first.rows() {
                w.row_mut(k).copy_from_slice(first.row(k));
            }
            Weight::Complex(normalized(w, n == output))
        });
        let wide = Orthonormal::verify(wide.with_weights(weights).unwrap()).unwrap();
        let narrow = Orthonormal::verify(narrow).unwrap();
        let rows = [0.0, 0.3, 2.0, 0.9, 1.0, f64::NAN, 0.1, 1.0, 0.5, f64::NAN];
        let rows = Batch::from_rows(wide.variables(), &rows).unwrap();
        let [a, b] = [&narrow, &wide].map(|c| mean_log_likelihood(c, &rows));
        assert!((a - b).abs() < 1e-5, "{a}, {b}");
    }

    #[test]
    fn circuits_with_other_layers_are_rejected() {
        let (narrow, wide) = (circuit(3, 4, 2), circuit(5, 9, 4));
        let weights: Vec<Vec<f32>> =
            wide.weights().iter().map(|w| vec![0.0; w.rows() * w.cols()]).collect();
        assert!(grown(&wide, &weights, &narrow).is_none());
        assert!(grown(&narrow, &weights, &wide).is_none());
    }
}
