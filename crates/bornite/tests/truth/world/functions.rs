//! Input functions, each written from its definition alone, and grids that integrate their products.

use std::f64::consts::{PI, TAU};

use bornite::basis::FourierForm;
use bornite::linalg::{Complex64, Matrix};
use bornite::{Basis, Domain};

/// K functions of one variable.
#[derive(Clone, Debug)]
pub(crate) enum Functions {
    Indicator(usize),
    /// K rows of v values.
    Table(Vec<Vec<Complex64>>),
    Fourier {
        count: usize,
        a: f64,
        b: f64,
        form: FourierForm,
        circle: bool,
    },
    Legendre {
        count: usize,
        a: f64,
        b: f64,
    },
    Laguerre {
        count: usize,
        a: f64,
        scale: f64,
    },
    Hermite {
        count: usize,
        location: f64,
        scale: f64,
    },
    Gaussian(Vec<(f64, f64)>),
    BSpline {
        degree: usize,
        knots: Vec<f64>,
    },
    /// The indicators of points, and functions that are 0 there.
    Atoms(Vec<f64>, Box<Functions>),
}

impl Functions {
    pub(crate) fn width(&self) -> usize {
        match self {
            Functions::Indicator(v) => *v,
            Functions::Table(rows) => rows.len(),
            Functions::Fourier { count, .. }
            | Functions::Legendre { count, .. }
            | Functions::Laguerre { count, .. }
            | Functions::Hermite { count, .. } => *count,
            Functions::Gaussian(components) => components.len(),
            Functions::BSpline { degree, knots } => knots.len() - degree - 1,
            Functions::Atoms(points, rest) => points.len() + rest.width(),
        }
    }

    pub(crate) fn domain(&self) -> Domain {
        match self {
            Functions::Indicator(v) => Domain::Finite(*v),
            Functions::Table(rows) => Domain::Finite(rows[0].len()),
            Functions::Fourier { b, circle: true, .. } => Domain::Circle(*b),
            Functions::Fourier { a, b, .. } | Functions::Legendre { a, b, .. } => {
                Domain::Interval(*a, *b)
            }
            Functions::Laguerre { a, .. } => Domain::HalfLine(*a),
            Functions::Hermite { .. } | Functions::Gaussian(_) => Domain::Real,
            Functions::BSpline { knots, .. } => Domain::Interval(knots[0], knots[knots.len() - 1]),
            Functions::Atoms(points, rest) => Domain::with_atoms(points.clone(), rest.domain()),
        }
    }

    /// The same functions in the library.
    pub(crate) fn basis(&self) -> Basis {
        match self.clone() {
            Functions::Indicator(v) => Ok(Basis::indicator(v)),
            Functions::Table(rows) => {
                Basis::table(Matrix::new(rows.len(), rows[0].len(), rows.concat()))
            }
            Functions::Fourier { count, a, b, form, .. } => Basis::fourier(count, a, b, form),
            Functions::Legendre { count, a, b } => Basis::legendre(count, a, b),
            Functions::Laguerre { count, a, scale } => Basis::laguerre(count, a, scale),
            Functions::Hermite { count, location, scale } => Basis::hermite(count, location, scale),
            Functions::Gaussian(components) => Basis::gaussian(components),
            Functions::BSpline { degree, knots } => Basis::bspline(degree, knots),
            Functions::Atoms(points, rest) => rest.basis().with_atoms(points),
        }
        .unwrap()
    }

    /// f(x).
    pub(crate) fn at(&self, x: f64) -> Vec<Complex64> {
        let k = self.width();
        let real = |f: &dyn Fn(usize) -> f64| (0..k).map(|n| f(n).into()).collect();
        match self {
            Functions::Indicator(_) => real(&|n| if x == n as f64 { 1.0 } else { 0.0 }),
            Functions::Table(rows) => rows.iter().map(|row| row[x as usize]).collect(),
            Functions::Fourier { a, b, form, .. } => {
                (0..k).map(|n| fourier(n, (x - a) / (b - a), *form) / (b - a).sqrt()).collect()
            }
            Functions::Legendre { a, b, .. } => {
                let t = (2.0 * x - a - b) / (b - a);
                real(&|n| legendre(n, t) * ((2 * n + 1) as f64 / (b - a)).sqrt())
            }
            Functions::Laguerre { a, scale, .. } => {
                let t = (x - a) / scale;
                real(&|n| laguerre(n, t) * (-t / 2.0).exp() / scale.sqrt())
            }
            Functions::Hermite { location, scale, .. } => {
                let t = (x - location) / scale;
                let norm = |n: usize| (power(2.0, n) * factorial(n) * PI.sqrt()).sqrt();
                real(&|n| hermite(n, t) * (-t * t / 2.0).exp() / norm(n) / scale.sqrt())
            }
            Functions::Gaussian(components) => real(&|n| {
                let (location, scale) = components[n];
                let t = (x - location) / scale;
                (-t * t / 2.0).exp() / (scale * TAU.sqrt())
            }),
            Functions::BSpline { degree, knots } => real(&|n| bspline(*degree, n, knots, x)),
            Functions::Atoms(points, rest) => {
                let atoms = points.iter().map(|p| Complex64::from(f64::from(u8::from(*p == x))));
                let is_atom = points.contains(&x);
                let rest = rest.at(x).into_iter();
                atoms.chain(rest.map(|z| if is_atom { Complex64::ZERO } else { z })).collect()
            }
        }
    }

    /// Nodes and weights whose sum is the integral of any two functions' product over [low, high] within the domain, to
    /// rounding; for a finite domain its values in [low, high], and of atoms those in [low, high).
    pub(crate) fn grid(&self, low: f64, high: f64) -> Vec<(f64, f64)> {
        if let Functions::Atoms(points, rest) = self {
            let atoms = points.iter().copied().filter(|x| (low..high).contains(x));
            return atoms.map(|x| (x, 1.0)).chain(rest.grid(low, high)).collect();
        }
        let (first, last) = self.reach();
        let (low, high) = (low.max(first), high.min(last));
        match self {
            Functions::Indicator(_) | Functions::Table(_) => {
                ((low.max(0.0) as usize)..=high as usize).map(|x| (x as f64, 1.0)).collect()
            }
            // Exact for polynomials of degree 15.
            Functions::Legendre { .. } => panels(&[low, high], f64::INFINITY, 8),
            Functions::BSpline { knots, .. } => {
                let inner = knots.iter().copied().filter(|&t| t > low && t < high);
                let cuts: Vec<f64> = [low].into_iter().chain(inner).chain([high]).collect();
                panels(&cuts, f64::INFINITY, 8)
            }
            Functions::Fourier { a, b, .. } => panels(&[low, high], (b - a) / 4.0, 12),
            Functions::Laguerre { scale, .. } => panels(&[low, high], 4.0 * scale, 12),
            Functions::Hermite { scale, .. } => panels(&[low, high], 1.5 * scale, 12),
            Functions::Gaussian(components) => {
                let narrowest = components.iter().fold(f64::INFINITY, |m, c| m.min(c.1));
                panels(&[low, high], 1.5 * narrowest, 12)
            }
            Functions::Atoms(..) => unreachable!("returned above"),
        }
    }

    /// Where the products of two functions are not negligible.
    pub(crate) fn reach(&self) -> (f64, f64) {
        let (first, last) = self.domain().bounds();
        match self {
            Functions::Laguerre { a, scale, .. } => (first, a + 56.0 * scale),
            Functions::Hermite { location, scale, .. } => {
                (location - 8.5 * scale, location + 8.5 * scale)
            }
            Functions::Gaussian(components) => {
                let end = |side: f64| components.iter().map(move |c| c.0 + side * 7.0 * c.1);
                (end(-1.0).fold(0.0, f64::min), end(1.0).fold(0.0, f64::max))
            }
            Functions::Atoms(points, rest) => {
                let hull = |(a, b): (f64, f64), x: &f64| (a.min(*x), b.max(*x));
                points.iter().fold(rest.reach(), hull)
            }
            _ => (first, last),
        }
    }
}

fn power(t: f64, n: usize) -> f64 {
    std::iter::repeat_n(t, n).product()
}

fn factorial(n: usize) -> f64 {
    (1..=n).map(|k| k as f64).product()
}

fn binomial(n: usize, k: usize) -> f64 {
    factorial(n) / (factorial(k) * factorial(n - k))
}

fn fourier(n: usize, turns: f64, form: FourierForm) -> Complex64 {
    let frequency = n.div_ceil(2) as f64;
    let angle = TAU * frequency * turns;
    match form {
        _ if n == 0 => Complex64::ONE,
        FourierForm::Real if n % 2 == 1 => (2_f64.sqrt() * angle.cos()).into(),
        FourierForm::Real => (2_f64.sqrt() * angle.sin()).into(),
        FourierForm::Complex => Complex64::from_polar(1.0, if n % 2 == 1 { angle } else { -angle }),
    }
}

/// Pₙ(t) = 2⁻ⁿ Σ C(n, k)² (t − 1)^(n−k) (t + 1)^k.
fn legendre(n: usize, t: f64) -> f64 {
    let term = |k: usize| binomial(n, k).powi(2) * power(t - 1.0, n - k) * power(t + 1.0, k);
    (0..=n).map(term).sum::<f64>() / power(2.0, n)
}

/// Lₙ(t) = Σ C(n, k) (−t)^k / k!.
fn laguerre(n: usize, t: f64) -> f64 {
    (0..=n).map(|k| binomial(n, k) * power(-t, k) / factorial(k)).sum()
}

/// Hₙ(t) = n! Σ (−1)^m (2t)^(n−2m) / (m! (n − 2m)!).
fn hermite(n: usize, t: f64) -> f64 {
    let term = |m: usize| {
        let sign = if m.is_multiple_of(2) { 1.0 } else { -1.0 };
        sign * power(2.0 * t, n - 2 * m) / (factorial(m) * factorial(n - 2 * m))
    };
    factorial(n) * (0..=n / 2).map(term).sum::<f64>()
}

/// The recursion of Cox and de Boor.
fn bspline(degree: usize, n: usize, knots: &[f64], x: f64) -> f64 {
    if degree == 0 {
        return if knots[n] <= x && x < knots[n + 1] { 1.0 } else { 0.0 };
    }
    // A quotient by a span of no length counts as zero.
    let part = |length: f64, span: f64| if span > 0.0 { length / span } else { 0.0 };
    let rise = part(x - knots[n], knots[n + degree] - knots[n]);
    let fall = part(knots[n + degree + 1] - x, knots[n + degree + 1] - knots[n + 1]);
    rise * bspline(degree - 1, n, knots, x) + fall * bspline(degree - 1, n + 1, knots, x)
}

/// A Gauss rule of n points in panels of at most `step` between consecutive cuts.
fn panels(cuts: &[f64], step: f64, n: usize) -> Vec<(f64, f64)> {
    let rule = gauss(n);
    let mut nodes = Vec::new();
    for pair in cuts.windows(2).filter(|w| w[0] < w[1]) {
        let count = ((pair[1] - pair[0]) / step).ceil().max(1.0);
        let width = (pair[1] - pair[0]) / count;
        for p in 0..count as usize {
            let middle = pair[0] + (p as f64 + 0.5) * width;
            nodes.extend(rule.iter().map(|(t, w)| (middle + t * width / 2.0, w * width / 2.0)));
        }
    }
    nodes
}

/// The n nodes and weights of Gauss on [−1, 1]: Newton's iteration on Pₙ.
fn gauss(n: usize) -> Vec<(f64, f64)> {
    let derivative = |t: f64| {
        n as f64 * (t * legendre_recursive(n, t) - legendre_recursive(n - 1, t)) / (t * t - 1.0)
    };
    (0..n)
        .map(|i| {
            let mut t = (PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
            for _ in 0..20 {
                t -= legendre_recursive(n, t) / derivative(t);
            }
            (t, 2.0 / ((1.0 - t * t) * derivative(t).powi(2)))
        })
        .collect()
}

fn legendre_recursive(n: usize, t: f64) -> f64 {
    let (mut before, mut p) = (1.0, t);
    for k in 1..n {
        (before, p) = (p, ((2 * k + 1) as f64 * t * p - k as f64 * before) / (k + 1) as f64);
    }
    if n == 0 { 1.0 } else { p }
}
