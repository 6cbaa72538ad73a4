//! Laws that hold for every family, checked against a composite quadrature that does not use the
//! closed forms.

use num_complex::Complex64;

use super::quadrature::gauss_legendre;
use super::*;

/// The accuracy promised for up to 64 functions.
const TOLERANCE: f64 = 1e-12;

/// A basis, and an interval outside which its functions vanish up to rounding.
struct Case {
    name: &'static str,
    basis: Basis,
    low: f64,
    high: f64,
    /// The points where the functions are not smooth.
    breaks: Vec<f64>,
    atoms: Vec<f64>,
}

fn case(name: &'static str, basis: Result<Basis, BasisError>, low: f64, high: f64) -> Case {
    Case { name, basis: basis.unwrap(), low, high, breaks: Vec::new(), atoms: Vec::new() }
}

fn orthonormal(k: usize) -> Vec<Case> {
    let (real, complex) = (FourierForm::Real, FourierForm::Complex);
    vec![
        case("real Fourier", Basis::fourier(k, -1.5, 2.0, real), -1.5, 2.0),
        case("complex Fourier", Basis::fourier(k, 0.0, 7.0, complex), 0.0, 7.0),
        case("Legendre", Basis::legendre(k, -3.0, 0.5), -3.0, 0.5),
        case("Laguerre", Basis::laguerre(k, 2.0, 0.5), 2.0, 240.0),
        case("Hermite", Basis::hermite(k, -1.0, 2.0), -45.0, 43.0),
    ]
}

fn spline_knots() -> Vec<f64> {
    vec![-1.0, -1.0, -1.0, -1.0, -0.2, 0.3, 0.3, 0.9, 1.7, 2.0, 2.0, 2.0, 2.0]
}

fn step_edges() -> Vec<f64> {
    vec![-1.0, -0.9, -0.2, 0.1, 0.5, 0.6, 1.1, 1.9, 2.0]
}

fn others() -> Vec<Case> {
    let components = vec![(-4.0, 1.0), (-3.0, 1.5), (0.0, 0.4), (0.3, 0.5), (6.0, 2.0)];
    let gaussian = Basis::gaussian(components).unwrap();
    let spline = Basis::bspline(3, spline_knots()).unwrap();
    let loose = Basis::bspline(2, vec![0.0, 1.0, 1.5, 3.0, 4.0, 4.5]).unwrap();
    let (white_gaussian, white_spline) = (gaussian.orthonormalized().0, spline.orthonormalized().0);
    let rotation = Matrix::from_rows(&[[0.6, 0.8], [0.8, -0.6]]).map(|x| Complex64::new(0.0, x));
    let rotated = Basis::transformed(Basis::hermite(2, 1.0, 1.0).unwrap(), rotation);
    let legendre = Basis::legendre(9, -1.0, 1.5).unwrap();
    let laguerre = Basis::laguerre(5, 2.0, 0.5).unwrap();
    let hermite = Basis::hermite(6, -1.0, 2.0).unwrap();
    let spline_again = Basis::bspline(3, spline_knots()).unwrap();
    let steps = |functions| Basis::steps(functions, step_edges());
    let steps_with_atoms = steps(4).unwrap().with_atoms(vec![0.05, 0.5, 3.0]);
    let rotation_of_steps = Matrix::from_rows(&[[0.6, 0.8], [0.8, -0.6]]).map(Complex64::from);
    let rotated_steps = Basis::transformed(steps(2).unwrap(), rotation_of_steps);
    let mut cases = vec![
        case("Gaussian", Ok(gaussian), -24.0, 28.0),
        case("B-spline", Ok(spline), -1.0, 2.0),
        case("loose B-spline", Ok(loose), 0.0, 4.5),
        case("transformed Gaussian", Ok(white_gaussian), -24.0, 28.0),
        case("transformed B-spline", Ok(white_spline), -1.0, 2.0),
        case("rotated Hermite", rotated, -15.0, 15.0),
        case("atoms, Legendre", legendre.with_atoms(vec![-1.0, 0.25, 2.0]), -1.0, 2.5),
        case("atoms, Laguerre", laguerre.with_atoms(vec![-3.0, 2.0, 2.5]), -3.0, 240.0),
        case("atoms, Hermite", hermite.with_atoms(vec![0.5]), -45.0, 43.0),
        case("atoms, B-spline", spline_again.with_atoms(vec![0.0, 0.3, 7.0]), -1.0, 8.0),
        case("atoms, steps", steps_with_atoms, -1.0, 4.0),
        case("steps", steps(5), -1.0, 2.0),
        case("all step functions", steps(8), -1.0, 2.0),
        case("rotated steps", rotated_steps, -1.0, 2.0),
    ];
    for n in [1, 4] {
        cases[n].breaks = spline_knots();
    }
    for case in &mut cases[10..] {
        case.breaks = step_edges();
    }
    for case in &mut cases[6..] {
        case.atoms = case.basis.natural_domain().atoms().to_vec();
    }
    cases[9].breaks = spline_knots();
    cases[2].breaks = vec![1.0, 1.5, 3.0, 4.0];
    cases
}

fn all(k: usize) -> Vec<Case> {
    orthonormal(k).into_iter().chain(others()).collect()
}

/// ∫ xᵖ f fᴴ from low to high, with 20 nodes in each of a few hundred panels.
fn by_quadrature(case: &Case, low: f64, high: f64, power: i32) -> Matrix<Complex64> {
    let inside = case.atoms.iter().copied().filter(|x| (low..high).contains(x));
    let inside: Vec<f64> = inside.collect();
    let rest = case.basis.natural_domain().rest().bounds();
    let (low, high) = (low.max(case.low).max(rest.0), high.min(case.high).min(rest.1));
    let inner = case.breaks.iter().copied().filter(|&x| x > low && x < high);
    let mut edges: Vec<f64> = [low].into_iter().chain(inner).chain([high]).collect();
    edges.dedup();
    let rule = gauss_legendre(20);
    let (mut xs, mut weights) = (Vec::new(), Vec::new());
    for edge in edges.windows(2).filter(|edge| edge[0] < edge[1]) {
        let panels = 1 + (300.0 * (edge[1] - edge[0]) / (case.high - case.low)) as usize;
        let half = 0.5 * (edge[1] - edge[0]) / panels as f64;
        for panel in 0..panels {
            let middle = edge[0] + half * (2.0 * panel as f64 + 1.0);
            xs.extend(rule.iter().map(|&(x, _)| middle + half * x));
            weights.extend(rule.iter().map(|&(_, w)| half * w));
        }
    }
    weights.extend(inside.iter().map(|_| 1.0));
    xs.extend(inside);
    let f = case.basis.evaluate_batch::<Complex64>(&xs).transpose();
    let weighted =
        Matrix::from_fn(f.rows(), f.cols(), |i, n| f[(i, n)] * (weights[n] * xs[n].powi(power)));
    weighted.times_adjoint(&f)
}

fn distance(a: &Matrix<Complex64>, b: &Matrix<Complex64>) -> f64 {
    assert_eq!((a.rows(), a.cols()), (b.rows(), b.cols()));
    // The distance is NaN if any entry is.
    let parts = a.data().iter().zip(b.data()).map(|(x, y)| (x - y).norm());
    parts.fold(0.0, |max, d| if d <= max { max } else { d })
}

fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Short and long intervals, at the ends of the domain, and with infinite ends.
fn intervals(case: &Case) -> Vec<(f64, f64)> {
    let mut next = noise(17);
    let mut point = || case.low + (case.high - case.low) * next();
    let (infinity, length) = (f64::INFINITY, case.high - case.low);
    let mut intervals =
        vec![(-infinity, point()), (point(), infinity), (case.low, case.low + 1e-3)];
    for _ in 0..6 {
        let (a, b) = (point(), point());
        intervals.push((a.min(b), a.max(b)));
    }
    for fraction in [1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-6, 1e-12] {
        let start = point();
        intervals.push((start, start + fraction * length));
    }
    // Around the middle, where Hermite and Laguerre functions are not small.
    let middle = case.low + 0.1 * length;
    intervals.extend([(middle, middle + 0.05 * length), (case.low, middle)]);
    intervals
}

fn gram_over(basis: &Basis, low: f64, high: f64) -> Matrix<Complex64> {
    basis.gram_over(&Part::Interval { low, high })
}

#[test]
fn families_are_orthonormal() {
    for k in [1, 2, 7, 64] {
        for case in orthonormal(k) {
            let error = distance(
                &by_quadrature(&case, case.low, case.high, 0),
                &Matrix::identity(case.basis.width()),
            );
            println!("{} {k}: {error:e}", case.name);
            assert!(error < TOLERANCE, "{} of {k}: {error:e}", case.name);
            assert!(case.basis.is_orthonormal());
        }
    }
}

#[test]
fn gram_matches_quadrature() {
    for case in all(64) {
        let error = distance(&by_quadrature(&case, case.low, case.high, 0), &case.basis.gram());
        println!("{}: {error:e}", case.name);
        assert!(error < TOLERANCE, "{}: {error:e}", case.name);
        let whole = gram_over(&case.basis, f64::NEG_INFINITY, f64::INFINITY);
        assert_eq!(whole, case.basis.gram());
    }
}

#[test]
fn integrals_over_intervals_match_quadrature() {
    for case in [1, 2, 5, 20, 64].into_iter().flat_map(orthonormal).chain(others()) {
        let mut worst: f64 = 0.0;
        for (low, high) in intervals(&case) {
            let found = gram_over(&case.basis, low, high);
            let error = distance(&found, &by_quadrature(&case, low, high, 0));
            worst = worst.max(error);
            let width = case.basis.width();
            assert!(error < TOLERANCE, "{} of {width} on [{low}, {high}]: {error:e}", case.name);
            assert_eq!(found, found.adjoint(), "{} on [{low}, {high}]", case.name);
            assert!((0..width).all(|i| found[(i, i)].re >= 0.0 && found[(i, i)].im == 0.0));
        }
        println!("{} {}: {worst:e}", case.name, case.basis.width());
    }
}

#[test]
fn short_intervals_keep_their_digits() {
    for case in all(64) {
        let middle = case.low + 0.2 * (case.high - case.low);
        let length = 1e-9 * (case.high - case.low);
        let found = gram_over(&case.basis, middle, middle + length);
        let f = case.basis.evaluate_batch::<Complex64>(&[middle]).transpose();
        let error = distance(&found.scaled(1.0 / length), &f.times_adjoint(&f));
        assert!(error < 1e-5 * f.norm2(), "{}: {error:e} of {:e}", case.name, f.norm2());
    }
}

/// These lengths include the one at which closed forms replace quadrature.
#[test]
fn integrals_of_every_length_match_quadrature() {
    for case in [3, 24].into_iter().flat_map(orthonormal) {
        let mut next = noise(29);
        for step in 0..48 {
            let length = (case.high - case.low) * 10f64.powf(-f64::from(step) / 16.0);
            let low = case.low + 0.3 * next() * (case.high - case.low - length);
            let found = gram_over(&case.basis, low, low + length);
            let error = distance(&found, &by_quadrature(&case, low, low + length, 0));
            assert!(error < 1e-13, "{} on {length} from {low}: {error:e}", case.name);
            let smallest = *crate::linalg::eigh(&found).unwrap().values.last().unwrap();
            assert!(smallest > -1e-13, "{} on {length} from {low}: {smallest:e}", case.name);
        }
    }
}

#[test]
fn tails_keep_relative_accuracy() {
    let hermite = case("Hermite", Basis::hermite(64, 0.0, 1.0), 18.0, 28.0);
    let laguerre = case("Laguerre", Basis::laguerre(64, 0.0, 1.0), 500.0, 900.0);
    for case in [hermite, laguerre] {
        let found = gram_over(&case.basis, case.low, f64::INFINITY);
        let expected = by_quadrature(&case, case.low, case.high, 0);
        for i in 0..64 {
            let ratio = found[(i, i)].re / expected[(i, i)].re;
            assert!((ratio - 1.0).abs() < 1e-10, "{} {i}: {ratio}", case.name);
        }
        assert!(expected[(63, 63)].re < 1e-30);
    }
}

#[test]
fn integrals_add_up() {
    for case in all(64) {
        let mut next = noise(5);
        for _ in 0..20 {
            let mut cuts = [0; 3].map(|_| case.low + (case.high - case.low) * next());
            cuts.sort_by(f64::total_cmp);
            let [a, b, c] = cuts;
            let mut sum = gram_over(&case.basis, a, b);
            for (x, y) in sum.data_mut().iter_mut().zip(gram_over(&case.basis, b, c).data()) {
                *x += y;
            }
            let error = distance(&sum, &gram_over(&case.basis, a, c));
            assert!(error < TOLERANCE, "{} at {a}, {b}, {c}: {error:e}", case.name);
        }
    }
}

#[test]
fn moments_match_quadrature() {
    for case in [1, 3, 64].into_iter().flat_map(orthonormal).chain(others()) {
        for power in 0..3 {
            let found = case.basis.moments::<Complex64>(power).unwrap();
            let expected = by_quadrature(&case, case.low, case.high, power.cast_signed());
            let error = distance(&found, &expected) / expected.max_part().max(1.0);
            println!("{} x^{power}: {error:e}", case.name);
            assert!(error < TOLERANCE, "{} of x^{power}: {error:e}", case.name);
        }
        assert_eq!(case.basis.moments::<Complex64>(3), None);
    }
}

/// Checks T G Tᴴ = I by quadrature, f = L f′ at points, and that a file with the transform would
/// load.
fn check_orthonormalized(basis: &Basis, points: &[f64], tolerance: f64) -> usize {
    let (white, l) = basis.orthonormalized();
    assert!(white.is_orthonormal() && white.is_real());
    assert_eq!((l.rows(), l.cols()), (basis.width(), white.width()));
    let (low, high) = basis.natural_domain().bounds();
    let nodes = basis.nodes_over(low, high).unwrap();
    let points: Vec<f64> = points.iter().copied().chain(nodes.iter().map(|n| n.0)).collect();
    let f = basis.evaluate_batch::<Complex64>(&points);
    let back = white.evaluate_batch::<Complex64>(&points).times(&l.transpose());
    // The error of every function is relative to its peak.
    let mut error: f64 = 0.0;
    for i in 0..basis.width() {
        let column = || (0..points.len()).map(|n| (f[(n, i)], back[(n, i)]));
        let peak = column().fold(0.0, |max: f64, (x, _)| max.max(x.norm()));
        error = column().fold(error, |max: f64, (x, y)| max.max((x - y).norm() / peak));
    }
    assert!(back.data().iter().all(|z| z.is_finite()));
    let Basis::Transformed(inner) = &white else { panic!("{white:?}") };
    println!(
        "width {} -> {}: f - L f' {error:e}, residual {:e}",
        l.rows(),
        l.cols(),
        inner.residual()
    );
    assert!(error < tolerance, "f - L f': {error:e}");
    assert!(inner.residual() < tolerance.min(TRANSFORM_TOLERANCE), "{:e}", inner.residual());
    let loaded = Basis::transformed(inner.base().clone(), inner.transform().clone()).unwrap();
    assert_eq!(loaded, white);
    white.width()
}

#[test]
fn gaussians_and_splines_become_orthonormal() {
    let points: Vec<f64> = (0..200).map(|n| -8.0 + 0.08 * f64::from(n)).collect();
    let spread =
        |step: f64| Basis::gaussian((0..20).map(|n| (step * f64::from(n) - 5.0, 1.0)).collect());
    assert_eq!(check_orthonormalized(&spread(2.0).unwrap(), &points, 1e-13), 20);
    assert_eq!(check_orthonormalized(&spread(1.0).unwrap(), &points, 1e-12), 20);
    assert_eq!(check_orthonormalized(&spread(0.7).unwrap(), &points, 1e-10), 20);
    // Numerically dependent functions: f′ has fewer functions, and f is still reproduced.
    assert!(check_orthonormalized(&spread(0.3).unwrap(), &points, 1e-6) < 20);
    let twins = Basis::gaussian(vec![(0.0, 1.0), (0.0, 1.0), (1.0, 2.0)]).unwrap();
    assert_eq!(check_orthonormalized(&twins, &points, 1e-13), 2);
    let widths = (0..12).map(|n| (0.1 * f64::from(n), 10f64.powi(n - 6))).collect();
    assert_eq!(check_orthonormalized(&Basis::gaussian(widths).unwrap(), &points, 1e-12), 12);

    let inside: Vec<f64> = (0..=100).map(|n| -1.0 + 0.03 * f64::from(n)).collect();
    for (degree, ends) in [(0, 1), (1, 2), (3, 4), (8, 9)] {
        let knots: Vec<f64> = std::iter::repeat_n(-1.0, ends - 1)
            .chain((0..=50).map(|n| -1.0 + 0.06 * f64::from(n)))
            .chain(std::iter::repeat_n(2.0, ends - 1))
            .collect();
        let spline = Basis::bspline(degree, knots).unwrap();
        assert_eq!(check_orthonormalized(&spline, &inside, 1e-10), spline.width());
    }
}

#[test]
fn tables_become_orthonormal() {
    let mut next = noise(3);
    let mut random =
        |rows, cols| Matrix::from_fn(rows, cols, |_, _| Complex64::new(next(), next()));
    let deficient = random(6, 2).times(&random(2, 9));
    for (values, rank) in [(random(3, 8), 3), (random(8, 3), 3), (deficient, 2)] {
        let basis = Basis::table(values.clone()).unwrap();
        assert!(!basis.is_orthonormal() && !basis.is_real());
        let (white, l) = basis.orthonormalized();
        assert_eq!(white.width(), rank);
        assert!(white.is_orthonormal());
        let Basis::Table(table) = &white else { panic!("{white:?}") };
        assert!(distance(&l.times(table.values()), &values) < 1e-13);
        let gram = values.times_adjoint(&values);
        assert!(distance(&basis.gram(), &gram) < 1e-13);
        assert_eq!(basis.gram_over::<Complex64>(&Part::Values(Vec::new())).norm2(), 0.0);
        let some: Vec<usize> = (0..values.cols()).filter(|x| x % 2 == 0).collect();
        let part = basis.gram_over::<Complex64>(&Part::Values(some.clone()));
        let entry: Complex64 = some.iter().map(|&x| values[(1, x)] * values[(0, x)].conj()).sum();
        assert!((part[(1, 0)] - entry).norm() < 1e-13);
        let mean = basis.moments::<Complex64>(1).unwrap();
        let entry: Complex64 =
            (0..values.cols()).map(|x| x as f64 * values[(1, x)] * values[(0, x)].conj()).sum();
        assert!((mean[(1, 0)] - entry).norm() < 1e-12);
    }
    let real =
        Basis::table(Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0]]).map(Scalar::to_complex)).unwrap();
    assert!(real.is_real() && real.orthonormalized().0.is_real());
    assert_eq!(real.evaluate_batch::<f64>(&[1.0]).data(), [2.0, 4.0]);
}

#[test]
fn extreme_values_stay_finite() {
    for case in all(64) {
        let mut out = vec![Complex64::ZERO; case.basis.width()];
        for x in [0.0, 1e-300, 39.0, 40.0, 1e3, 1e6, 1e300, f64::MAX] {
            for x in [x, -x] {
                if !case.basis.natural_domain().contains(x) {
                    continue;
                }
                case.basis.evaluate(x, &mut out);
                assert!(out.iter().all(|z| z.is_finite()), "{} at {x}: {out:?}", case.name);
                let vanishing = case.basis.natural_domain().bounds().1.is_infinite();
                if vanishing && x.abs() >= 1e6 {
                    assert!(out.iter().all(|z| *z == Complex64::ZERO), "{} at {x}", case.name);
                }
                let m = gram_over(&case.basis, x, f64::INFINITY);
                assert!(m.data().iter().all(|z| z.is_finite()), "{} from {x}", case.name);
            }
        }
    }
    let hermite = Basis::hermite(64, 0.0, 1.0).unwrap();
    let high = hermite.evaluate_batch::<f64>(&[40.0]);
    // e^(−800) underflows, but h₆₃(40) does not.
    assert!(high[(0, 0)] == 0.0 && high[(0, 63)] > 8e-282);
    let mass = hermite.gram_over::<f64>(&Part::Interval { low: -1e6, high: 1e6 });
    assert!(mass.semi_unitary_residual() < 1e-13);
}

#[test]
fn indicators_do_not_need_matrices() {
    let basis = Basis::indicator(1_000_000);
    let diagonal = basis.gram_diagonal_over(&Part::Values(vec![3, 999_999])).unwrap();
    assert_eq!(diagonal.iter().sum::<f64>(), 2.0);
    assert!(diagonal[3] == 1.0 && diagonal[999_999] == 1.0);
    assert_eq!(basis.moments::<f64>(1), None);
    let small = Basis::indicator(4);
    assert_eq!(small.evaluate_batch::<f64>(&[2.0]).data(), [0.0, 0.0, 1.0, 0.0]);
    let gram = small.gram_over::<f64>(&Part::Values(vec![1, 2]));
    assert_eq!([0, 1, 2, 3].map(|i| gram[(i, i)]), [0.0, 1.0, 1.0, 0.0]);
    assert_eq!(small.moments::<f64>(2).unwrap()[(3, 3)], 9.0);
    assert_eq!(
        Basis::hermite(2, 0.0, 1.0).unwrap().gram_diagonal_over(&Part::Values(vec![])),
        None
    );
}

#[test]
fn the_ends_of_intervals_matter_at_atoms() {
    let basis = Basis::legendre(3, 0.0, 1.0).unwrap().with_atoms(vec![0.0, 0.5, 3.0]).unwrap();
    let atoms = |low: f64, high: f64| {
        let gram = basis.gram_over::<f64>(&Part::Interval { low, high });
        [0, 1, 2].map(|n| gram[(n, n)])
    };
    assert_eq!(atoms(0.0, 0.5), [1.0, 0.0, 0.0]);
    assert_eq!(atoms(0.0_f64.next_up(), 0.5_f64.next_up()), [0.0, 1.0, 0.0]);
    assert_eq!(atoms(f64::NEG_INFINITY, 3.0), [1.0, 1.0, 0.0]);
    assert_eq!(atoms(2.0, f64::INFINITY), [0.0, 0.0, 1.0]);
    let all = Part::Interval { low: 0.0, high: 3.0_f64.next_up() };
    assert_eq!(basis.gram_over::<f64>(&all), Matrix::identity(6));
    let two = basis.gram_over::<f64>(&Part::Values(vec![0, 2]));
    assert_eq!([0, 1, 2, 3, 4, 5].map(|n| two[(n, n)]), [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    let mut f = [0.0; 6];
    basis.evaluate(0.5, &mut f);
    assert_eq!(f, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    let whole = Domain::with_atoms(vec![0.0, 0.5, 3.0], Domain::Interval(0.0, 1.0));
    assert!(basis.accepts(&whole) && !basis.accepts(&Domain::Interval(0.0, 1.0)));
    let nested = Domain::with_atoms(vec![0.0], whole);
    assert!(!nested.is_valid());
}

#[test]
fn bases_accept_their_own_domains_only() {
    let fourier = Basis::fourier(3, 0.0, 2.0, FourierForm::Real).unwrap();
    assert!(fourier.accepts(&Domain::Circle(2.0)) && fourier.accepts(&Domain::Interval(0.0, 2.0)));
    assert!(!fourier.accepts(&Domain::Circle(2.1)) && !fourier.accepts(&Domain::Real));
    let shifted = Basis::fourier(3, 1.0, 3.0, FourierForm::Complex).unwrap();
    assert!(shifted.accepts(&Domain::Interval(1.0, 3.0)) && !shifted.accepts(&Domain::Circle(2.0)));
    assert!(!shifted.is_real() && fourier.is_real());
    let laguerre = Basis::laguerre(3, 1.0, 1.0).unwrap();
    assert!(laguerre.accepts(&Domain::HalfLine(1.0)) && !laguerre.accepts(&Domain::HalfLine(0.0)));
    assert!(Basis::indicator(3).accepts(&Domain::Finite(3)));
    assert!(!Basis::indicator(3).accepts(&Domain::Finite(4)));
    assert!(!Basis::indicator(0).accepts(&Domain::Finite(0)));
    for case in all(3) {
        assert!(case.basis.accepts(&case.basis.natural_domain()), "{}", case.name);
        assert!(!case.basis.accepts(&Domain::Finite(case.basis.width())), "{}", case.name);
    }
}

#[test]
fn bad_parameters_are_named() {
    let message = |basis: Result<Basis, BasisError>| basis.unwrap_err().to_string();
    let complex = Complex64::new;
    let hermite = || Basis::hermite(2, 0.0, 1.0).unwrap();
    for (found, words) in [
        (message(Basis::hermite(0, 0.0, 1.0)), "0 functions"),
        (message(Basis::legendre(5000, 0.0, 1.0)), "5000 functions"),
        (message(Basis::laguerre(usize::MAX, 0.0, 1.0)), "at most 4096"),
        (message(Basis::legendre(3, 1.0, 1.0)), "high = 1"),
        (message(Basis::legendre(3, f64::NAN, 1.0)), "low = NaN"),
        (message(Basis::fourier(3, 0.0, f64::INFINITY, FourierForm::Real)), "high = inf"),
        (message(Basis::hermite(3, f64::INFINITY, 1.0)), "location inf"),
        (message(Basis::hermite(3, 0.0, 0.0)), "scale 0"),
        (message(Basis::laguerre(3, 0.0, -1.0)), "scale -1"),
        (message(Basis::laguerre(3, 0.0, f64::NAN)), "scale NaN"),
        (message(Basis::gaussian(vec![])), "0 functions"),
        (message(Basis::gaussian(vec![(0.0, 1.0), (1e9, 1e-9)])), "component 1"),
        (message(Basis::gaussian(vec![(f64::NAN, 1.0)])), "location NaN"),
        (message(Basis::table(Matrix::new(0, 3, vec![]))), "0 functions"),
        (message(Basis::table(Matrix::new(3, 0, vec![]))), "0 values"),
        (message(Basis::table(Matrix::zeros(2, 2))), "every entry"),
        (
            message(Basis::table(Matrix::new(
                1,
                2,
                vec![complex(1.0, 0.0), complex(0.0, f64::NAN)],
            ))),
            "at value 1",
        ),
        (message(Basis::bspline(40, vec![0.0; 50])), "degree 40"),
        (message(Basis::bspline(usize::MAX, vec![0.0])), "degree"),
        (message(Basis::bspline(2, vec![0.0, 1.0])), "at least 4"),
        (message(Basis::bspline(0, vec![0.0, f64::NAN])), "knot 1 is NaN"),
        (message(Basis::bspline(1, vec![0.0, 2.0, 1.0])), "knot 2 is 1"),
        (message(Basis::bspline(1, vec![0.0, 0.0, 0.0, 1.0])), "B-spline 0"),
        (message(Basis::transformed(hermite(), Matrix::identity(3))), "3x3"),
        (message(Basis::transformed(hermite(), Matrix::new(0, 2, vec![]))), "0x2"),
        (message(Basis::transformed(hermite(), Matrix::identity(2).scaled(1.001))), "orthonormal"),
        (message(Basis::transformed(hermite(), Matrix::identity(2).scaled(f64::NAN))), "(0, 0)"),
        (message(Basis::transformed(hermite(), Matrix::identity(2).scaled(1e200))), "orthonormal"),
        (message(Basis::transformed(Basis::indicator(2), Matrix::identity(2))), "indicator"),
        (message(hermite().with_atoms(vec![])), "0 functions"),
        (message(hermite().with_atoms(vec![1.0, f64::NAN])), "location NaN"),
        (message(hermite().with_atoms(vec![1.0, 1.0])), "atom 1 is 1"),
        (message(Basis::indicator(2).with_atoms(vec![0.0])), "indicator"),
        (message(hermite().with_atoms(vec![0.0]).unwrap().with_atoms(vec![1.0])), "atoms basis"),
    ] {
        assert!(found.contains(words), "{found:?} does not say {words:?}");
    }
}
