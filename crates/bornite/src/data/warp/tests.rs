use std::f64::consts::PI;

use super::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn normals(n: usize, seed: u64) -> Vec<f64> {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    (0..n)
        .map(|_| {
            let (a, b): (f64, f64) = (rng.random(), rng.random());
            (-2.0 * (1.0 - a).ln()).sqrt() * (2.0 * PI * b).cos()
        })
        .collect()
}

fn fit(values: &[f64], support: Support) -> Warp {
    Warp::fit(values, support, &WarpOptions::default()).unwrap()
}

/// Columns of every shape, with their support.
fn columns() -> Vec<(&'static str, Vec<f64>, Support)> {
    let z = normals(3000, 1);
    let bounded = |low, high| Support { low: Some(low), high };
    let map = |f: &dyn Fn(f64) -> f64| z.iter().map(|&x| f(x)).collect::<Vec<_>>();
    vec![
        ("normal", z.clone(), Support::REAL),
        ("far off", map(&|x| 1e9 + x), Support::REAL),
        ("tiny", map(&|x| 1e-200 * x), Support::REAL),
        ("huge", map(&|x| 1e300 * x), Support::REAL),
        ("log-normal", map(&|x| (2.0 * x).exp()), Support::REAL),
        ("two clusters", map(&|x| if x < 0.3 { x } else { 40.0 + 0.1 * x }), Support::REAL),
        ("heavy tails", map(&|x| (1.5 * x).sinh()), Support::REAL),
        ("outlier", map(&|x| if x > 3.2 { 1e8 } else { x }), Support::REAL),
        ("zeros", map(&|x| x.max(0.0)), Support::REAL),
        ("grid", map(&|x| (x * 2.0).round() / 2.0), Support::REAL),
        ("half-line", map(&|x| x.abs()), bounded(0.0, None)),
        ("positive", map(&|x| x.exp()), bounded(0.0, None)),
        ("unit", map(&|x| 1.0 / (1.0 + (-2.0 * x).exp())), bounded(0.0, Some(1.0))),
        ("ends", map(&|x| x.clamp(-1.0, 1.0)), bounded(-1.0, Some(1.0))),
        ("constant", vec![7.0; 10], Support::REAL),
        ("zero", vec![0.0], Support::REAL),
        ("two", vec![1.0, 2.0], Support::REAL),
    ]
}

#[test]
fn the_inverse_undoes_the_transform() {
    for (name, values, support) in columns() {
        let warp = fit(&values, support);
        let size = values.iter().fold(f64::MIN_POSITIVE, |m: f64, x| m.max(x.abs()));
        for &x in &values {
            let u = warp.forward(x);
            assert!(u > 0.0 && u < 1.0, "{name}: {x} to {u}");
            let back = warp.inverse(u);
            // u carries 53 bits, so the resolution is 2⁻⁵³ / F′.
            let tolerance =
                1e-9 * x.abs() + 4.0 * f64::EPSILON * (size + (-warp.log_slope(x)).exp());
            assert!((back - x).abs() <= tolerance, "{name}: {x} to {u} to {back}\n{warp:?}");
        }
        for u in [1e-300, 1e-15, 0.001, 0.3, 0.5, 0.77, 0.9999, 1.0 - 1e-12] {
            let x = warp.inverse(u);
            let again = warp.forward(x);
            let resolution = (warp.log_slope(x) + (x.abs() * f64::EPSILON).ln()).exp();
            assert!(
                (again - u).abs() <= 1e-13 * u + 4.0 * (EDGE + resolution),
                "{name}: {u} to {x} to {again}"
            );
        }
    }
}

/// Every sample is finite and has a density, and no part of the numbers is lost.
fn assert_lawful(warp: &Warp, what: &str) {
    let mut before = f64::NEG_INFINITY;
    for n in 0..=2000 {
        let u = f64::from(n) / 2000.0;
        let x = warp.inverse(u);
        assert!(x.is_finite() && x >= before, "{what}: {u} to {x} after {before}");
        assert!(warp.log_slope(x).is_finite(), "{what}: {u} to {x}");
        let share = warp.distribution(x);
        assert!(share >= u.min(1.0 - EDGE) - 1e-9, "{what}: {u} to {x} to {share}");
        before = x;
    }
}

#[test]
fn numbers_at_the_end_of_floats_are_finite() {
    for values in [
        vec![55143.0, 1e300],
        vec![1.0, 2.0, 3.0, 1.0, 1e300],
        vec![-1.23, 1e300, 1.2, 0.06, -1.22],
        vec![-1e300, 0.5, 1e300, 0.25],
        vec![4e307, 1.0, 3.0, -1.0],
        vec![0.0, 1e-307, 3e-308],
        // Neighboring floats.
        vec![1e18, 1e18 + 128.0, 1e18 + 256.0],
    ] {
        let warp = fit(&values, Support::REAL);
        assert_lawful(&warp, &format!("{values:?}"));
        let text = serde_json::to_string(&warp).unwrap();
        assert_eq!(serde_json::from_str::<Warp>(&text).unwrap(), warp);
    }
    let close =
        fit(&[1000.0 + 1e-9, 1000.0 + 1e-3, 1000.5], Support { low: Some(1000.0), high: None });
    assert_lawful(&close, "close to a bound");
}

#[test]
fn altered_transforms_keep_the_laws_or_are_refused() {
    let parts = |scale: &str, mean: f64, sigma: f64| {
        let other = r#"{"weight": 0.5, "mean": 1.0, "sigma": 2.0}"#;
        let text = format!(
            r#"{{"scale": {scale}, "support": {{"low": null, "high": null}}, "components": [{other},
                {{"weight": 0.5, "mean": {mean:e}, "sigma": {sigma:e}}}]}}"#
        );
        serde_json::from_str::<Warp>(&text)
    };
    let scales = [
        "\"linear\"",
        r#"{"asinh": {"center": 0, "unit": 1}}"#,
        r#"{"asinh": {"center": 1e18, "unit": 1e-3}}"#,
    ];
    let (mut kept, mut refused) = (0, 0);
    for scale in scales {
        for mean in [0.0, -3.0, 1e3, 9.007e15, 1e18, -1e300, f64::MAX] {
            for sigma in [5e-324, 1e-200, 1e-9, 0.6, 1e18, 1e300, f64::MAX] {
                match parts(scale, mean, sigma) {
                    Ok(warp) => {
                        assert_lawful(&warp, &format!("{scale}, {mean:e}, {sigma:e}"));
                        kept += 1;
                    }
                    Err(error) => {
                        assert!(error.to_string().contains("transform"), "{error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(kept > 20 && refused > 20, "{kept} and {refused}");
}

#[test]
fn the_slope_is_the_derivative() {
    for (name, values, support) in columns() {
        let warp = fit(&values, support);
        for &x in values.iter().step_by(97) {
            let slope = warp.log_slope(x).exp();
            let h = 1e-4 / slope;
            let (low, high) = support.bounds();
            if x - h <= low || x + h >= high || h < 1e-9 * x.abs() {
                continue;
            }
            // Richardson extrapolation of two central differences.
            let central = |h: f64| {
                let (a, b) = (x - h, x + h);
                (warp.distribution(b) - warp.distribution(a)) / (b - a)
            };
            let numeric = (4.0 * central(0.5 * h) - central(h)) / 3.0;
            assert!((numeric / slope - 1.0).abs() < 1e-4, "{name} at {x}: {numeric} of {slope}");
        }
    }
}

#[test]
fn the_transform_is_increasing_and_its_slope_a_density() {
    for (name, values, support) in columns() {
        let warp = fit(&values, support);
        let us: Vec<f64> = (1..4000).map(|i| f64::from(i) / 4000.0).collect();
        let xs: Vec<f64> = us.iter().map(|&u| warp.inverse(u)).collect();
        assert!(xs.windows(2).all(|w| w[0] <= w[1]), "{name}");
        // ∫ F′ dx between two quantiles is their difference, by the trapezoidal rule.
        let area: f64 = xs
            .windows(2)
            .map(|w| {
                0.5 * (w[1] - w[0]) * (warp.log_slope(w[0]).exp() + warp.log_slope(w[1]).exp())
            })
            .sum();
        let expected = us[us.len() - 1] - us[0];
        assert!((area - expected).abs() < 0.03, "{name}: {area} of {expected}");
    }
}

#[test]
fn ends_are_exact() {
    let warp = fit(&normals(100, 2), Support::REAL);
    assert_eq!(warp.distribution(f64::NEG_INFINITY), 0.0);
    assert_eq!(warp.distribution(f64::INFINITY), 1.0);
    assert_eq!(warp.forward(-1e300), EDGE);
    assert_eq!(warp.forward(1e300), 1.0 - EDGE);
    assert!(warp.inverse(0.0).is_finite() && warp.inverse(1.0).is_finite());
    let unit = fit(&[0.2, 0.4, 0.9, 0.3], Support { low: Some(0.0), high: Some(1.0) });
    assert_eq!((unit.distribution(0.0), unit.distribution(1.0)), (0.0, 1.0));
    assert!(!unit.contains(1.5) && !unit.contains(f64::NAN) && !unit.contains(f64::INFINITY));
}

#[test]
fn the_mixture_finds_clusters_and_scales() {
    let mean = |warp: &Warp, values: &[f64]| {
        values.iter().map(|&x| warp.log_slope(x)).sum::<f64>() / values.len() as f64
    };
    // The entropies of a normal, of a log-normal with σ = 2, and of two narrow clusters.
    let z = normals(20_000, 3);
    let entropy = 0.5 * (2.0 * PI * std::f64::consts::E).ln();
    assert!((mean(&fit(&z, Support::REAL), &z) + entropy).abs() < 0.02);
    let skewed: Vec<f64> = z.iter().map(|x| (2.0 * x).exp()).collect();
    assert!((mean(&fit(&skewed, Support::REAL), &skewed) + entropy + 2f64.ln()).abs() < 0.03);
    let clusters: Vec<f64> =
        z.iter().enumerate().map(|(i, x)| x + if i % 2 == 0 { 10.0 } else { -10.0 }).collect();
    assert!((mean(&fit(&clusters, Support::REAL), &clusters) + entropy + 2f64.ln()).abs() < 0.02);
}

#[test]
fn repeated_values_gain_no_more_than_the_floor_allows() {
    let values: Vec<f64> = normals(2000, 4).iter().map(|x| x.max(0.0)).collect();
    let deviation = 0.583; // of the positive part of a normal, with its atom of one half
    for min_sigma in [0.03, 0.1, 0.3] {
        let options = WarpOptions { min_sigma, ..WarpOptions::default() };
        let warp = Warp::fit(&values, Support::REAL, &options).unwrap();
        let limit = 1.0 / (min_sigma * deviation * (2.0 * PI).sqrt());
        assert!(warp.log_slope(0.0) < limit.ln() + 0.05, "{min_sigma}: {warp:?}");
    }
    // On a grid with spacing δ, the density times δ is a probability.
    let grid: Vec<f64> = normals(5000, 5).iter().map(|x| (x * 0.3).round()).collect();
    let options = WarpOptions { min_sigma: 0.0, ..WarpOptions::default() };
    let warp = Warp::fit(&grid, Support::REAL, &options).unwrap();
    assert!(warp.log_slope(0.0) <= 0.01);
}

#[test]
fn one_outlier_costs_the_others_nothing() {
    let mut values = normals(1000, 6);
    let before = fit(&values, Support::REAL);
    values.push(1e9);
    let after = fit(&values, Support::REAL);
    for x in [-1.0, 0.0, 1.0] {
        assert!((before.log_slope(x) - after.log_slope(x)).abs() < 0.3);
    }
    assert!(after.log_slope(1e9) > -40.0);
    // Unseen values are improbable, not impossible.
    assert!(before.log_slope(30.0) > -100.0);
}

#[test]
fn stored_transforms_come_back_the_same_and_checked() {
    for (name, values, support) in columns() {
        let warp = fit(&values, support);
        let text = serde_json::to_string(&warp).unwrap();
        assert_eq!(serde_json::from_str::<Warp>(&text).unwrap(), warp, "{name}: {text}");
    }
    let text = serde_json::to_string(&fit(&[1.0, 2.0, 4.0], Support::REAL)).unwrap();
    for (from, to) in
        [("\"sigma\":", "\"sigma\":-"), ("\"weight\":", "\"weight\":1"), ("null", "1e300")]
    {
        assert!(serde_json::from_str::<Warp>(&text.replacen(from, to, 1)).is_err(), "{from}");
    }
}

#[test]
fn values_without_a_transform_are_refused() {
    let options = WarpOptions::default();
    let message = |values: &[f64], low, high| {
        Warp::fit(values, Support { low, high }, &options).unwrap_err().to_string()
    };
    assert!(message(&[], None, None).contains("no observed value"));
    assert!(message(&[1.0, f64::INFINITY], None, None).contains("inf is not finite"));
    assert!(message(&[1.0, -2.0], Some(0.0), None).contains("-2 is outside"));
    assert!(message(&[1.0], Some(2.0), Some(0.0)).contains("not in order"));
    assert!(message(&[-1.7e308, 1.7e308], None, None).contains("too wide"));
}

#[test]
fn few_rows_of_any_size_have_their_moments() {
    // Concentrations from a thousandth to hundreds, some of them equal.
    let values =
        [0.001, 0.001, 0.005, 0.005, 0.007, 1.0, 1.0, 1.0, 10.0, 100.0, 800.0, 850.0, 870.0];
    let warp = fit(&values, Support { low: Some(0.0), high: None });
    let count = |x: f64| values.iter().filter(|v| **v <= x).count() as f64 / 13.0;
    for x in [0.5, 50.0, 500.0] {
        let (found, expected) = (warp.distribution(x), count(x));
        assert!((found - expected).abs() < 0.2, "{found} of {expected} up to {x}");
    }
}

#[test]
fn tails_beyond_the_rows_are_not_log_normal() {
    // A zero makes the range of the logarithms, and with it the broad component, wide in both directions.
    let mut values: Vec<f64> = normals(300, 5).iter().map(|z| (5.0 + 0.8 * z).exp()).collect();
    values.push(0.0);
    let last = values.iter().copied().fold(0.0, f64::max);
    let warp = fit(&values, Support { low: Some(-5e-7), high: None });
    assert!(matches!(warp.scale(), Scale::Log { .. }), "{warp:?}");
    assert_eq!(warp.range(), Support { low: None, high: Some(last) });
    let far = warp.inverse(1.0 - EDGE);
    assert!(far < 20.0 * last, "{far} of {last}");
    assert_lawful(&warp, "log-normal");

    // Without bounds, on both sides.
    let values: Vec<f64> = normals(300, 6).iter().map(|z| (2.0 * z).sinh()).collect();
    let warp = fit(&values, Support::REAL);
    assert!(matches!(warp.scale(), Scale::Asinh { .. }), "{warp:?}");
    let Support { low: Some(first), high: Some(last) } = warp.range() else {
        panic!("no range: {warp:?}")
    };
    assert!(warp.inverse(EDGE) > 20.0 * first && warp.inverse(1.0 - EDGE) < 20.0 * last);
    assert_lawful(&warp, "heavy tails");

    // F and its slope are continuous at the ends of the range.
    for end in [first, last] {
        let step = 1e-7 * end.abs();
        let [before, after] = [end - step, end + step];
        let slope = (warp.distribution(after) - warp.distribution(before)) / (2.0 * step);
        assert!((slope.ln() - warp.log_slope(end)).abs() < 1e-4, "{slope} at {end}");
        assert!((warp.log_slope(before) - warp.log_slope(after)).abs() < 1e-4);
        let beyond = 1.7 * end;
        assert!((warp.inverse(warp.forward(beyond)) - beyond).abs() < 1e-9 * beyond.abs());
    }
    let text = serde_json::to_string(&warp).unwrap();
    assert_eq!(serde_json::from_str::<Warp>(&text).unwrap(), warp);
}

#[test]
fn ranges_that_no_scale_has_are_refused() {
    let one = vec![Component { weight: 1.0, mean: 0.0, sigma: 1.0 }];
    let with = |scale, support, range| Warp::with_range(scale, support, range, one.clone());
    let asinh = Scale::Asinh { center: 0.0, unit: 1.0 };
    let from = |low, high| Support { low, high };
    assert!(with(asinh, Support::REAL, from(Some(-1.0), Some(2.0))).is_ok());
    assert!(with(asinh, Support::REAL, from(Some(2.0), Some(-1.0))).is_err());
    assert!(with(asinh, Support::REAL, from(None, Some(f64::NAN))).is_err());
    assert!(with(asinh, from(Some(0.0), None), from(Some(-1.0), None)).is_err());
    assert!(with(Scale::Linear, Support::REAL, from(None, Some(1.0))).is_err());
    let log = Scale::Log { low: 0.0 };
    assert!(with(log, from(Some(0.0), None), from(None, Some(0.0))).is_err());
}

/// Regression: on a logarithmic scale, floats could not tell whole numbers near 10¹⁵ apart, so the model could be written
/// but not read.
#[test]
fn whatever_is_fitted_can_be_read() {
    let floors = [Support::REAL, Support { low: Some(-0.5), high: None }];
    for base in [0.0, 1e9, 1e12, 909_727_124_728_740.0, 4e15, -4e15, 1e17] {
        for step in [1.0, 2.0, 50.0, 1e6] {
            for modulus in [7, 157, 599] {
                let value = |i: u32| base + step * f64::from((i * 37) % modulus);
                let values: Vec<f64> = (0..600).map(value).collect();
                for support in floors.iter().filter(|s| base >= 0.0 || s.low.is_none()) {
                    let warp = Warp::fit(&values, *support, &WarpOptions::default()).unwrap();
                    let text = serde_json::to_string(&warp).unwrap();
                    let read = serde_json::from_str::<Warp>(&text);
                    assert_eq!(read.ok(), Some(warp), "{base} in steps of {step}, {modulus}");
                }
            }
        }
    }
}
