//! Tests of teachers.

use super::normal::MAX_SCORE;
use super::*;
use crate::basis::Basis;
use crate::circuit::{Circuit, Weights};
use crate::structure::{RegionTree, Structure};

/// x and y with a correlation of 0.95, where y is an atom in a fifth of the rows, and the sign of x
/// as a label.
fn rows(count: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let mut values = Vec::new();
    for _ in 0..count {
        let (a, b) = (normal(rng), normal(rng));
        let y = distribution(0.95 * a + 0.312_25 * b);
        let y = if rng.random_bool(0.2) { 0.5 } else { y };
        values.extend([distribution(a), y, f64::from(u8::from(a > 0.0))]);
    }
    values
}

fn circuit() -> Circuit {
    let leaf = |v: usize| {
        let basis = Basis::legendre(4, 0.0, 1.0).unwrap();
        let unit = Domain::Interval(0.0, 1.0);
        match v {
            0 => (Variable::new("x", unit), basis),
            1 => (
                Variable::new("y", Domain::with_atoms([0.5], unit)),
                basis.with_atoms([0.5]).unwrap(),
            ),
            _ => (Variable::new("z", Domain::Finite(2)), Basis::indicator(2)),
        }
    };
    let structure = Structure::new(RegionTree::balanced(3), leaf).width(2);
    structure.build(Weights::Haar, &mut ChaCha8Rng::seed_from_u64(1)).unwrap()
}

#[test]
fn teachers_learn_correlations_atoms_and_labels() {
    let rng = &mut ChaCha8Rng::seed_from_u64(7);
    let circuit = circuit();
    let mut values = rows(2000, rng);
    values[3] = f64::NAN;
    values[10] = f64::NAN;
    let train = Batch::from_rows(circuit.variables(), &values).unwrap();
    let valid = Batch::from_rows(circuit.variables(), &rows(1000, rng)).unwrap();
    let (teacher, value) =
        Teacher::fit(&circuit, &[None, None, None], [&train, &valid], 1, &Quota::default())
            .unwrap();
    // The entropy of the atom, a label that two components represent, and ½ ln(1 / (1 − ρ²)) if y
    // is not an atom.
    let atom = 0.2 * 0.2_f64.ln() + 0.8 * 0.8_f64.ln();
    let best = atom + 0.8 * -0.5 * (1.0 - 0.95_f64 * 0.95).ln();
    assert!(value < best + 0.1 && value > best - 0.75, "{value} for {best}");

    // The label given the numbers, and all columns given nothing.
    let of_label = teacher.mean_of_target(&valid, &[2], value);
    assert!(of_label > -0.2 && of_label < 0.0, "{of_label}");
    let whole = teacher.mean_of_target(&valid, &[0, 1, 2], value);
    assert!((whole - value).abs() < 1e-9, "{whole} for {value}");

    let made = teacher.sample(4000, 2).unwrap();
    let number = |row, v| made.value(row, v);
    let atoms = (0..4000).filter(|&row| number(row, 1) == 0.5).count() as f64 / 4000.0;
    assert!((atoms - 0.2).abs() < 0.03, "{atoms}");
    let scores: Vec<[f64; 2]> = (0..4000)
        .filter(|&row| number(row, 1) != 0.5)
        .map(|row| [quantile(number(row, 0)), quantile(number(row, 1))])
        .collect();
    let n = scores.len() as f64;
    let moment = |f: &dyn Fn(&[f64; 2]) -> f64| scores.iter().map(f).sum::<f64>() / n;
    let (x, y) = (moment(&|s| s[0]), moment(&|s| s[1]));
    let covariance = moment(&|s| s[0] * s[1]) - x * y;
    let spread = |i: usize, m: f64| (moment(&|s| s[i] * s[i]) - m * m).sqrt();
    let correlation = covariance / (spread(0, x) * spread(1, y));
    assert!((correlation - 0.95).abs() < 0.02, "{correlation}");
}

#[test]
fn missing_scores_follow_the_joint_distribution() {
    let factor = Matrix::from_fn(3, 3, |i, j| match (i, j) {
        (i, j) if j > i => 0.0,
        (i, j) if i == j => 1.0 + i as f64,
        (i, j) => 0.5 - 0.3 * (i + j) as f64,
    });
    let component = Component { weight: 1.0, mean: vec![0.3, -1.0, 2.0], factor };
    let density =
        |z: [f64; 3]| Marginal::new(&z, &component).log_density(&z, &mut Vec::new()).exp();
    // Integrate over the second score.
    let (known, step) = ([0.9, f64::NAN, 1.0], 1e-2);
    let at = |n: i32| f64::from(n) * step;
    let moment = |power: i32| -> f64 {
        (-3000..3000).map(|n| at(n).powi(power) * density([0.9, at(n), 1.0]) * step).sum()
    };
    let (total, first, second) = (moment(0), moment(1), moment(2));
    let log = Marginal::new(&known, &component).log_density(&known, &mut Vec::new());
    assert!((log - total.ln()).abs() < 1e-9, "{log}, {}", total.ln());
    let conditional = Conditional::new(&known, Some(&component));
    let (mut mean, mut covariance) = ([0.0; 3], Matrix::<f64>::zeros(3, 3));
    conditional.mean(&known, &mut mean, &mut Vec::new());
    conditional.add_covariance(2.0, &mut covariance);
    assert_eq!([mean[0], mean[2]], [0.9, 1.0]);
    assert!((mean[1] - first / total).abs() < 1e-9, "{mean:?}");
    let variance = second / total - mean[1] * mean[1];
    assert!((covariance[(1, 1)] - 2.0 * variance).abs() < 1e-9, "{covariance:?}");
    assert_eq!(covariance.data().iter().filter(|x| **x != 0.0).count(), 1);
}

#[test]
fn a_used_up_budget_ends_a_teacher() {
    let rng = &mut ChaCha8Rng::seed_from_u64(7);
    let circuit = circuit();
    let rows = Batch::from_rows(circuit.variables(), &rows(500, rng)).unwrap();
    let spent = Quota::new(|| 2.0);
    let (teacher, value) =
        Teacher::fit(&circuit, &[None, None, None], [&rows, &rows], 1, &spent).unwrap();
    assert!(teacher.components.len() == 1 && value.is_finite());
}

#[test]
fn only_labels_or_other_domains_have_no_teacher() {
    let finite =
        |v: usize| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    let real = |v: usize| {
        let basis = Basis::hermite(3, 0.0, 1.0).unwrap();
        (Variable::new(format!("x{v}"), Domain::Real), basis)
    };
    let leaves: [&dyn Fn(usize) -> (Variable, Basis); 2] = [&finite, &real];
    for leaf in leaves {
        let structure = Structure::new(RegionTree::balanced(2), leaf).width(2);
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        let circuit = structure.build(Weights::Haar, rng).unwrap();
        let rows = Batch::from_rows(circuit.variables(), &[0.0, 1.0, 1.0, 0.0]).unwrap();
        assert!(
            Teacher::fit(&circuit, &[None, None, None], [&rows, &rows], 1, &Quota::default())
                .is_none()
        );
    }
}

#[test]
fn quantiles_invert_the_distribution() {
    for z in [-5.5, -2.0, -0.1, 0.0, 0.7, 3.0, 5.9] {
        assert!((quantile(distribution(z)) - z).abs() < 1e-6 * (1.0 + z.exp()), "{z}");
    }
    assert_eq!([quantile(0.0), quantile(1.0)], [-MAX_SCORE, MAX_SCORE]);
}

/// x + y = z in the table, where x and y are log-normal: a straight line in the units of the columns
/// only.
#[test]
fn units_straighten_sums() {
    let rng = &mut ChaCha8Rng::seed_from_u64(3);
    let number = |u: f64| (0.8 * quantile(u)).exp();
    let of = |x: f64| distribution(x.ln() / 0.8);
    let mut rows = |count: usize| {
        let mut values = Vec::new();
        for _ in 0..count {
            let (a, b) = (normal(rng), normal(rng));
            let (x, y) = ((0.8 * a).exp(), (0.8 * b).exp());
            values.extend([distribution(a), distribution(b), of(x + y + 0.02 * normal(rng))]);
        }
        values
    };
    let leaf = |v: usize| {
        let unit = Domain::Interval(0.0, 1.0);
        (Variable::new(format!("x{v}"), unit), Basis::legendre(4, 0.0, 1.0).unwrap())
    };
    let structure = Structure::new(RegionTree::balanced(3), leaf).width(2);
    let circuit = structure.build(Weights::Haar, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
    let [train, valid] =
        [600, 600].map(|n| Batch::from_rows(circuit.variables(), &rows(n)).unwrap());
    let units = vec![Some(Unit::new(number).unwrap()); 3];
    let fit =
        |units| Teacher::fit(&circuit, units, [&train, &valid], 1, &Quota::default()).unwrap();
    let ((_, normal), (teacher, own)) = (fit(&[None, None, None]), fit(&units));
    assert!(own > normal + 0.3, "{own} and {normal}");
    // Samples have the same distribution as rows.
    let samples = teacher.sample(600, 5).unwrap();
    let both = [&samples, &valid].map(|batch| {
        let ratio = |row| {
            let [x, y, z] = [0, 1, 2].map(|v| number(batch.value(row, v)));
            ((x + y) / z - 1.0).abs()
        };
        let mut ratios: Vec<f64> = (0..600).map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios[300]
    });
    assert!(both[0] < 3.0 * both[1], "{both:?}");
}
