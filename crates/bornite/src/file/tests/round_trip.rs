use std::sync::Arc;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{EXAMPLE, bits};
use crate::basis::FourierForm;
use crate::circuit::{Layer, Weight, Weights, random_weight};
use crate::file::{from_bytes, from_json, load, save, to_bytes, to_json};
use crate::linalg::{Complex64, Matrix};
use crate::ops::{orthonormalize, square};
use crate::structure::{Product, RegionTree, Structure};
use crate::{Basis, Circuit, CircuitBuilder, Domain, Variable};

/// A basis of every kind, with a matching domain.
fn bases() -> Vec<(Domain, Basis)> {
    let i = Complex64::I;
    let table = Matrix::from_rows(&[[i, 1.0 + i, -i], [0.1.into(), (-0.0).into(), 3.0.into()]]);
    let real_table = table.map(|z| Complex64::new(z.re, 0.0));
    let gaussian = Basis::gaussian(vec![(0.1, 1.0 / 3.0), (-2.5e-7, 7.0)]).unwrap();
    let bspline = Basis::bspline(2, vec![0.0, 0.0, 0.0, 0.1, 0.7, 1.0, 1.0, 1.0]).unwrap();
    let legendre = Basis::legendre(3, -0.1, 1e3).unwrap();
    let circle = Domain::Circle(std::f64::consts::TAU);
    let fourier = |n, a, b, form| Basis::fourier(n, a, b, form).unwrap();
    vec![
        (Domain::Finite(4), Basis::indicator(4)),
        (circle, fourier(5, 0.0, std::f64::consts::TAU, FourierForm::Real)),
        (Domain::Interval(-1.0, 0.3), fourier(4, -1.0, 0.3, FourierForm::Complex)),
        (Domain::Interval(0.0, 2.0), fourier(3, 0.0, 2.0, FourierForm::Complex)),
        (Domain::Interval(-0.1, 1e3), legendre.clone()),
        (Domain::HalfLine(0.1), Basis::laguerre(3, 0.1, 1.0 / 7.0).unwrap()),
        (Domain::Real, Basis::hermite(4, 0.1, 2e-5).unwrap()),
        (Domain::Finite(3), Basis::table(table.clone()).unwrap()),
        (Domain::Finite(3), Basis::table(real_table).unwrap()),
        (Domain::Real, gaussian.clone()),
        (Domain::Real, gaussian.orthonormalized().0),
        (Domain::Interval(0.0, 1.0), bspline.clone()),
        (Domain::Interval(0.0, 1.0), bspline.orthonormalized().0),
        (
            Domain::with_atoms(vec![-1.0 / 3.0, 0.0], Domain::HalfLine(0.0)),
            Basis::laguerre(2, 0.0, 0.3).unwrap().with_atoms(vec![-1.0 / 3.0, 0.0]).unwrap(),
        ),
        (
            Domain::with_atoms(vec![0.1], Domain::Interval(0.0, 1.0)),
            bspline.orthonormalized().0.with_atoms(vec![0.1]).unwrap(),
        ),
        (Domain::Finite(2), Basis::squared(Arc::new(Basis::indicator(2)))),
        (Domain::Finite(3), Basis::squared(Arc::new(Basis::table(table).unwrap()))),
        (Domain::Interval(-0.1, 1e3), Basis::squared(Arc::new(legendre))),
    ]
}

fn check(circuit: &Circuit) {
    let text = to_json(circuit);
    let read = from_json(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(bits(&read), bits(circuit), "{text}");
    assert_eq!(to_json(&read), text);
    let bytes = to_bytes(circuit).unwrap();
    let read = from_bytes(&bytes).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(bits(&read), bits(circuit), "{text}");
    assert_eq!(to_bytes(&read).unwrap(), bytes);
    safetensors::SafeTensors::deserialize(&bytes).unwrap();
}

#[test]
fn the_example_of_the_description() {
    let circuit = from_json(EXAMPLE).unwrap();
    let output = circuit.output();
    assert_eq!((circuit.width(output), circuit.num_layers()), (1, 6));
    let Layer::Sum { weight, .. } = circuit.layers()[2] else { panic!("not a sum") };
    let Weight::Complex(w) = circuit.weight(weight) else { panic!("not complex") };
    assert_eq!(w[(0, 1)], Complex64::I);
    assert_eq!(w[(1, 2)], Complex64::new(1.0, -1.0));
    let Layer::Sum { weight, .. } = circuit.layers()[3] else { panic!("not a sum") };
    assert!(matches!(circuit.weight(weight), Weight::Real(_)));
    check(&circuit);
}

#[test]
fn random_circuits_of_every_kind() {
    let kinds = [Weights::Gaussian, Weights::RealGaussian, Weights::Haar, Weights::RealHaar];
    for seed in 0..60 {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let all = bases();
        let count = rng.random_range(1..7);
        let pick: Vec<_> = (0..count).map(|_| rng.random_range(0..all.len())).collect();
        let leaf = |v: usize| {
            let (domain, basis) = &all[pick[v]];
            (Variable::new(format!("x {v} \"é\\\n"), domain.clone()), basis.clone())
        };
        let products: Vec<bool> = (0..2 * count).map(|_| rng.random()).collect();
        let kind = |r: usize| if products[r] { Product::Hadamard } else { Product::Kronecker };
        let structure = Structure::new(RegionTree::random(count, rng), leaf)
            .width(rng.random_range(1..5))
            .output_width(rng.random_range(1..4))
            .products(kind);
        let weights = kinds[rng.random_range(0..4)];
        let parameters = structure.num_parameters();
        let circuit = structure.build(weights, rng).unwrap();
        assert_eq!(parameters, circuit.num_parameters() as u128);
        check(&circuit);
    }
}

#[test]
fn every_basis_alone() {
    for (domain, basis) in bases() {
        let mut b = CircuitBuilder::new();
        let x = b.variable("x", domain);
        let input = b.input(x, basis);
        check(&b.build(input).unwrap());
    }
}

#[test]
fn numbers_at_the_ends_of_their_range() {
    let values = [-0.0, 5e-324, f64::MAX, -f64::MIN_POSITIVE, 0.1, 1e16, 123_456_789.0, 1e-7];
    let real = Matrix::new(2, 4, values.to_vec());
    for weight in [
        Weight::Real(real.clone()),
        Weight::Complex(real.map(|x| Complex64::new(x, 0.0))),
        Weight::Complex(real.map(|x| Complex64::new(1.0, x))),
        Weight::Complex(real.map(|_| Complex64::new(0.0, -0.0))),
    ] {
        let mut b = CircuitBuilder::new();
        let x = b.variable("x", Domain::Finite(4));
        let input = b.input(x, Basis::indicator(4));
        let output = b.sum(input, weight);
        check(&b.build(output).unwrap());
    }
}

#[test]
fn shared_weights_and_bases_stay_shared() {
    let rng = &mut ChaCha8Rng::seed_from_u64(3);
    let mut b = CircuitBuilder::new();
    let variables: Vec<_> = (0..4).map(|v| b.variable(format!("x{v}"), Domain::Real)).collect();
    // The output's weight comes first, so the ids are not in the order of the layers.
    let last = b.weight(random_weight(2, 16, Weights::RealHaar, rng));
    let shared = b.weight(random_weight(2, 3, Weights::Gaussian, rng));
    let basis = Arc::new(Basis::hermite(3, 0.0, 1.0).unwrap());
    let inputs: Vec<_> = variables.iter().map(|&v| b.input(v, basis.clone())).collect();
    let sums: Vec<_> = inputs.iter().map(|&i| b.shared_sum(i, shared)).collect();
    let product = b.kronecker(sums);
    let output = b.shared_sum(product, last);
    let circuit = b.build(output).unwrap();
    check(&circuit);
    let text = to_json(&circuit);
    assert_eq!(text.matches("hermite").count(), 1, "{text}");
    let read = from_json(&text).unwrap();
    assert_eq!(read.weights().len(), 2);
    let bases: Vec<_> = read.layers()[..4]
        .iter()
        .map(|l| match l {
            Layer::Input { basis, .. } => Arc::as_ptr(basis),
            _ => panic!("not an input"),
        })
        .collect();
    assert!(bases.windows(2).all(|w| w[0] == w[1]));
}

#[test]
fn what_the_operations_make() {
    let circuit = from_json(EXAMPLE).unwrap();
    check(square(&circuit).unwrap().circuit());
    let orthonormal = orthonormalize(&circuit).unwrap();
    check(&orthonormal.circuit);
}

#[test]
fn files_of_either_kind_replace_older_ones() {
    let folder = tempfile::tempdir().unwrap();
    let circuit = from_json(EXAMPLE).unwrap();
    for name in ["a.json", "a.safetensors", "a", "b.JSON"] {
        let path = folder.path().join(name);
        std::fs::write(&path, "old").unwrap();
        save(&circuit, &path).unwrap();
        assert_eq!(bits(&load(&path).unwrap()), bits(&circuit));
        let is_json = std::fs::read(&path).unwrap()[0] == b'{';
        assert_eq!(is_json, name.to_lowercase().ends_with("json"), "{name}");
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 4, "no temporary file stays behind");
}

#[test]
fn errors_of_the_file_system_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let circuit = from_json(EXAMPLE).unwrap();
    let missing = folder.path().join("no folder").join("c.json");
    for message in
        [load(&missing).unwrap_err().to_string(), save(&circuit, &missing).unwrap_err().to_string()]
    {
        assert!(message.contains("c.json: cannot"), "{message}");
    }
    let message = save(&circuit, folder.path()).unwrap_err().to_string();
    assert!(message.contains("give a file name"), "{message}");
    assert!(load(folder.path()).is_err());
    let broken = folder.path().join("broken.json");
    std::fs::write(&broken, "{\"variables\": 3}").unwrap();
    let message = load(&broken).unwrap_err().to_string();
    assert!(message.contains("broken.json: variables: expected a list"), "{message}");
}

#[cfg(unix)]
#[test]
fn saving_follows_links_and_keeps_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("c.json"), folder.path().join("link.json"));
    let circuit = from_json(EXAMPLE).unwrap();
    save(&circuit, &file).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&file, &link).unwrap();
    save(&circuit, &link).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
}
