use std::sync::Arc;

use super::OperationError;
use super::message::Message;
use super::pass::{Environment, close};
use super::scaled::Scaled;
use crate::basis::{Atoms, Basis, Part, Steps};
use crate::domain::Domain;
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::root::increasing_root;

/// The error of a quantile's probability, apart from rounding.
const QUANTILE_TOLERANCE: f64 = 1e-14;

/// The maximum number of bisection and Newton steps of a quantile.
const MAX_STEPS: usize = 400;

/// The distribution of one variable: a table of probabilities on a finite domain, otherwise a
/// density
///
/// ```math
/// p(x) = \sum_{k,k'} E_{kk'} f_k(x) f_{k'}^*(x)
/// ```
///
/// with orthonormal functions f and a Hermitian matrix E of trace 1. All of its integrals are
/// exact. A domain with atoms has both: probabilities of the atoms, and a density of the rest.
///
/// Created by [`Environments::marginal`](super::Environments::marginal).
///
/// ```
/// use bornite::{Basis, CircuitBuilder, Domain, Orthonormal, basis::Part};
/// use bornite::{linalg::Matrix, ops::Environments};
///
/// // p(x) = 1/2 on [0, 2].
/// let mut b = CircuitBuilder::new();
/// let x = b.variable("x", Domain::Interval(0.0, 2.0));
/// let output = b.input(x, Basis::legendre(1, 0.0, 2.0)?);
/// let circuit = Orthonormal::verify(b.build(output)?)?;
/// let p = Environments::new(&circuit).marginal(x);
/// assert!((p.density(0.3) - 0.5).abs() < 1e-15);
/// assert!((p.mean() - 1.0).abs() < 1e-15);
/// assert!((p.variance() - 1.0 / 3.0).abs() < 1e-15);
/// assert!((p.quantile(0.25)? - 0.5).abs() < 1e-12);
/// let upper = p.within(&Part::Interval { low: 1.0, high: 2.0 })?;
/// assert!((upper.mean() - 1.5).abs() < 1e-14);
/// # Ok::<(), bornite::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Univariate {
    domain: Domain,
    shape: Shape,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// The probabilities of all values, which sum to 1.
    Finite(Vec<f64>),
    Continuous(Continuous),
    Atoms(AtomsAndDensity),
}

/// Atoms next to a density.
#[derive(Clone, Debug, PartialEq)]
struct AtomsAndDensity {
    /// The points in increasing order, with their probabilities.
    atoms: Vec<(f64, f64)>,
    /// The probability of the rest, and its normalized density; `None` if the rest is impossible.
    rest: Option<(f64, Continuous)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Continuous {
    basis: Arc<Basis>,
    matrix: Matrix<Complex64>,
    /// The density on every step, if the functions are step functions.
    steps: Option<Arc<StepDensity>>,
    /// The interval that the variable is restricted to, and its probability without the
    /// restriction.
    low: f64,
    high: f64,
    mass: f64,
}

impl Univariate {
    pub(super) fn from_environment<T: Scalar>(
        domain: Domain,
        basis: &Arc<Basis>,
        environment: &Environment<T>,
    ) -> Self {
        if domain.num_values().is_some() {
            let shape = Shape::Finite(probabilities(value_weights(basis, environment).value));
            return Self { domain, shape };
        }
        let e = environment.full().to_matrix(basis.width()).value.map(Scalar::to_complex);
        let Basis::Atoms(b) = &**basis else { return Self::continuous(domain, basis, &e) };
        let m = b.points().len();
        let masses: Vec<f64> = (0..m).map(|n| e[(n, n)].re).collect();
        let k = b.rest().width();
        let rest = Matrix::from_fn(k, k, |i, j| e[(m + i, m + j)]);
        Self::with_atoms(domain, b, &masses, &rest)
    }

    /// The distribution of a finite variable whose values have these weights.
    pub(crate) fn finite(domain: Domain, weights: Vec<f64>) -> Self {
        Self { domain, shape: Shape::Finite(probabilities(weights)) }
    }

    /// The density ∝ Σ E[k, k′] fₖ(x) fₖ′(x)* of a continuous variable.
    pub(crate) fn continuous(domain: Domain, basis: &Arc<Basis>, e: &Matrix<Complex64>) -> Self {
        let shape = Shape::Continuous(Continuous::new(&domain, basis, e, trace(e)));
        Self { domain, shape }
    }

    /// The distribution of atoms with these weights and a density ∝ Σ E[k, k′] fₖ(x) fₖ′(x)* of the
    /// rest.
    pub(crate) fn with_atoms(
        domain: Domain,
        basis: &Atoms,
        masses: &[f64],
        e: &Matrix<Complex64>,
    ) -> Self {
        let rest = trace(e).max(0.0);
        let total = rest + masses.iter().map(|m| m.max(0.0)).sum::<f64>();
        let atoms = basis.points().iter().zip(masses).map(|(&x, m)| (x, m.max(0.0) / total));
        let atoms = atoms.collect();
        let continuous = || Continuous::new(domain.rest(), basis.rest(), e, rest);
        let rest = (rest > 0.0).then(|| (rest / total, continuous()));
        Self { shape: Shape::Atoms(AtomsAndDensity { atoms, rest }), domain }
    }

    /// The domain of the variable.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The bounds of the variable given its evidence; infinite on the real line without evidence.
    pub fn support(&self) -> (f64, f64) {
        match &self.shape {
            Shape::Finite(p) => (0.0, p.len().saturating_sub(1) as f64),
            Shape::Continuous(c) => (c.low, c.high),
            Shape::Atoms(m) => m.support(),
        }
    }

    /// The bounds of everything but the atoms; `None` if the rest is impossible.
    pub(crate) fn rest_support(&self) -> Option<(f64, f64)> {
        match &self.shape {
            Shape::Finite(_) | Shape::Continuous(_) => Some(self.support()),
            Shape::Atoms(m) => m.rest.as_ref().map(|(_, c)| (c.low, c.high)),
        }
    }

    /// p(x): the probability of a value of a finite domain or of an atom, otherwise the density; 0
    /// outside the domain.
    pub fn density(&self, x: f64) -> f64 {
        match &self.shape {
            _ if !self.domain.contains(x) => 0.0,
            Shape::Finite(p) => p[x as usize],
            Shape::Continuous(c) => c.density(x),
            Shape::Atoms(m) => m.density(x),
        }
    }

    /// The probability of a part of the domain. As in queries, an interval includes its lower end
    /// and excludes its upper end.
    ///
    /// Cost: K² for K functions and the integral of the basis.
    pub fn probability(&self, part: &Part) -> f64 {
        match &self.shape {
            Shape::Finite(p) => {
                let sum: f64 = part.values(p.len()).into_iter().map(|x| p[x]).sum();
                sum.min(1.0)
            }
            Shape::Continuous(c) => match part.clip(&self.domain) {
                Some((low, high)) => c.between(low, high),
                None => 0.0,
            },
            Shape::Atoms(m) => m.probability(&self.domain, part),
        }
    }

    /// The probability of all values up to and including x.
    pub fn cdf(&self, x: f64) -> f64 {
        let high = match &self.shape {
            Shape::Finite(_) => x.floor() + 1.0,
            Shape::Continuous(_) => x,
            Shape::Atoms(_) => x.next_up(),
        };
        self.probability(&Part::Interval { low: f64::NEG_INFINITY, high })
    }

    /// The inverse of the distribution function.
    ///
    /// On a finite domain, this is the smallest value whose [`cdf`](Self::cdf) is at least p.
    /// Otherwise, it is the x with cdf(x) = p, up to 10⁻¹² in probability, or the atom at which the
    /// cdf passes p. For 0 and 1, it is the end of the support, which may be infinite.
    ///
    /// Cost: a few integrals of the basis; up to a few hundred where the density is 0.
    ///
    /// # Errors
    /// p is not between 0 and 1.
    pub fn quantile(&self, p: f64) -> Result<f64, OperationError> {
        if !(0.0..=1.0).contains(&p) {
            return Err(OperationError::Level { level: p });
        }
        Ok(match &self.shape {
            Shape::Finite(probabilities) => finite_quantile(probabilities, p).0 as f64,
            Shape::Continuous(c) => c.quantile(p),
            Shape::Atoms(m) => m.quantile(p),
        })
    }

    /// Maps a uniform number in [0, 1] to a sample. Without atoms this is the quantile; with atoms
    /// it is cheaper.
    pub(crate) fn draw(&self, u: f64) -> f64 {
        match &self.shape {
            Shape::Finite(p) => finite_quantile(p, u).0 as f64,
            Shape::Continuous(c) => c.quantile(u),
            Shape::Atoms(m) => m.draw(u),
        }
    }

    /// The central interval with this probability: both tails are equally likely.
    ///
    /// # Errors
    /// The level is not between 0 and 1.
    pub fn interval(&self, level: f64) -> Result<(f64, f64), OperationError> {
        if !(0.0..=1.0).contains(&level) {
            return Err(OperationError::Level { level });
        }
        Ok((self.quantile(0.5 * (1.0 - level))?, self.quantile(0.5 * (1.0 + level))?))
    }

    /// The mean μ = ∫ x p(x) dx.
    ///
    /// Cost: K², or the number of values.
    pub fn mean(&self) -> f64 {
        match &self.shape {
            Shape::Finite(p) => p.iter().enumerate().map(|(x, p)| x as f64 * p).sum(),
            Shape::Continuous(c) => c.moment(0.0, 1),
            Shape::Atoms(m) => m.moment(0.0, 1),
        }
    }

    /// The variance ∫ (x − μ)² p(x) dx.
    ///
    /// Cost: K², or the number of values.
    pub fn variance(&self) -> f64 {
        let mean = self.mean();
        match &self.shape {
            Shape::Finite(p) => {
                p.iter().enumerate().map(|(x, p)| (x as f64 - mean).powi(2) * p).sum()
            }
            Shape::Continuous(c) => c.moment(mean, 2).max(0.0),
            Shape::Atoms(m) => m.moment(mean, 2).max(0.0),
        }
    }

    /// The most likely value of a finite domain, the smallest one in case of a tie; `None` for
    /// other domains.
    pub fn mode(&self) -> Option<f64> {
        let p = self.probabilities()?;
        let best = (0..p.len()).fold(0, |best, x| if p[x] > p[best] { x } else { best });
        Some(best as f64)
    }

    /// The probabilities of the values 0, 1, … of a finite domain; `None` for other domains.
    pub fn probabilities(&self) -> Option<&[f64]> {
        match &self.shape {
            Shape::Finite(p) => Some(p),
            Shape::Continuous(_) | Shape::Atoms(_) => None,
        }
    }

    /// The atoms with their probabilities; empty if the domain has none.
    pub fn atoms(&self) -> &[(f64, f64)] {
        match &self.shape {
            Shape::Finite(_) | Shape::Continuous(_) => &[],
            Shape::Atoms(m) => &m.atoms,
        }
    }

    /// The functions and the matrix E of the density, or of the density of the rest if there are
    /// atoms; `None` on a finite domain, and if the rest is impossible.
    pub fn matrix(&self) -> Option<(&Basis, &Matrix<Complex64>)> {
        match &self.shape {
            Shape::Finite(_) => None,
            Shape::Continuous(c) => Some((&*c.basis, &c.matrix)),
            Shape::Atoms(m) => m.rest.as_ref().map(|(_, c)| (&*c.basis, &c.matrix)),
        }
    }

    /// The distribution of the variable restricted to a part of its domain.
    ///
    /// # Errors
    /// The part has probability 0.
    pub fn within(&self, part: &Part) -> Result<Self, OperationError> {
        let shape = match &self.shape {
            Shape::Finite(p) => {
                let mut kept = vec![0.0; p.len()];
                for x in part.values(p.len()) {
                    kept[x] = p[x];
                }
                if kept.iter().all(|&x| x == 0.0) {
                    return Err(OperationError::ImpossibleEvidence);
                }
                Shape::Finite(probabilities(kept))
            }
            Shape::Continuous(c) => {
                let (low, high) =
                    part.clip(&self.domain).ok_or(OperationError::ImpossibleEvidence)?;
                let kept = c.within(low, high).ok_or(OperationError::ImpossibleEvidence)?;
                Shape::Continuous(kept)
            }
            Shape::Atoms(m) => {
                let kept = m.within(&self.domain, part);
                Shape::Atoms(kept.ok_or(OperationError::ImpossibleEvidence)?)
            }
        };
        Ok(Self { domain: self.domain.clone(), shape })
    }
}

/// The trace of a Hermitian matrix.
fn trace(e: &Matrix<Complex64>) -> f64 {
    (0..e.rows()).map(|k| e[(k, k)].re).sum()
}

impl AtomsAndDensity {
    fn support(&self) -> (f64, f64) {
        let rest = self.rest.as_ref().map(|(_, c)| (c.low, c.high));
        let atoms = self.atoms.iter().filter(|(_, p)| *p > 0.0).map(|&(x, _)| (x, x));
        let hull = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
        atoms.chain(rest).reduce(hull).unwrap_or((f64::NAN, f64::NAN))
    }

    fn density(&self, x: f64) -> f64 {
        match (self.atoms.iter().find(|(a, _)| *a == x), &self.rest) {
            (Some((_, p)), _) => *p,
            (None, Some((share, c))) => share * c.density(x),
            (None, None) => 0.0,
        }
    }

    /// The probability of the part of the rest below x.
    fn rest_below(&self, x: f64) -> f64 {
        self.rest.as_ref().map_or(0.0, |(share, c)| share * c.between(c.low, x))
    }

    fn probability(&self, domain: &Domain, part: &Part) -> f64 {
        let inside = |(x, _): &&(f64, f64)| is_within(domain, part, *x);
        let atoms: f64 = self.atoms.iter().filter(inside).map(|(_, p)| p).sum();
        let rest = match (&self.rest, part.clip(domain.rest())) {
            (Some((share, c)), Some((low, high))) => share * c.between(low, high),
            _ => 0.0,
        };
        (atoms + rest).min(1.0)
    }

    fn moment(&self, center: f64, power: u32) -> f64 {
        let at = |(x, p): &(f64, f64)| p * (x - center).powi(power.cast_signed());
        let rest = self.rest.as_ref().map_or(0.0, |(share, c)| share * c.moment(center, power));
        self.atoms.iter().map(at).sum::<f64>() + rest
    }

    fn quantile(&self, p: f64) -> f64 {
        let (first, last) = self.support();
        if p == 0.0 {
            return first;
        }
        if p == 1.0 {
            return last;
        }
        // The first atom at which the probability of everything up to it reaches p.
        let mut sums = vec![0.0];
        for (_, mass) in &self.atoms {
            sums.push(sums[sums.len() - 1] + mass);
        }
        let (mut from, mut to) = (0, self.atoms.len());
        while from < to {
            let middle = from + (to - from) / 2;
            if sums[middle + 1] + self.rest_below(self.atoms[middle].0) < p {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        let reached = |n: usize| sums[n] + self.rest_below(self.atoms[n].0);
        match (&self.rest, self.atoms.get(from)) {
            (_, Some(&(x, mass))) if mass > 0.0 && reached(from) < p => x,
            (Some((share, c)), next) => {
                let x = c.quantile(((p - sums[from]) / share).clamp(0.0, 1.0));
                // Rounding must not move the result past the neighboring atoms.
                let before = from.checked_sub(1).map_or(first, |n| self.atoms[n].0);
                x.clamp(before.max(c.low).min(c.high), next.map_or(last, |a| a.0).max(before))
            }
            (None, Some(&(x, _))) => x,
            (None, None) => last,
        }
    }

    /// Tries the atoms first, then the rest. The result is not monotone in u, but no search is
    /// needed.
    fn draw(&self, u: f64) -> f64 {
        let mut rest = u;
        let mut last = None;
        for &(x, p) in self.atoms.iter().filter(|(_, p)| *p > 0.0) {
            if rest < p {
                return x;
            }
            rest -= p;
            last = Some(x);
        }
        match (&self.rest, last) {
            (Some((share, c)), _) => {
                let x = c.quantile((rest / share).clamp(0.0, 1.0));
                // A draw from the rest must not be an atom.
                if self.atoms.iter().any(|(a, _)| *a == x) { x.next_up().min(c.high) } else { x }
            }
            (None, last) => last.unwrap_or(f64::NAN),
        }
    }

    fn within(&self, domain: &Domain, part: &Part) -> Option<Self> {
        let inside = |(x, _): &&(f64, f64)| is_within(domain, part, *x);
        let mut atoms: Vec<(f64, f64)> = self.atoms.iter().filter(inside).copied().collect();
        let rest = self.rest.as_ref().and_then(|(share, c)| {
            let (low, high) = part.clip(domain.rest())?;
            let kept = c.within(low, high)?;
            Some((share * kept.mass / c.mass, kept))
        });
        let total = atoms.iter().map(|a| a.1).sum::<f64>() + rest.as_ref().map_or(0.0, |r| r.0);
        if total <= 0.0 {
            return None;
        }
        for (_, p) in &mut atoms {
            *p /= total;
        }
        Some(Self { atoms, rest: rest.map(|(share, c)| (share / total, c)) })
    }
}

/// Whether an atom is in a part of the domain.
fn is_within(domain: &Domain, part: &Part, x: f64) -> bool {
    match part {
        Part::Values(values) => domain.atom(x).is_some_and(|n| values.contains(&n)),
        Part::Interval { low, high } => (*low..*high).contains(&x),
    }
}

/// Σ E[k, k′] fₖ(x) fₖ′(x)* for every value x of a finite domain.
pub(super) fn value_weights<T: Scalar>(
    basis: &Basis,
    environment: &Environment<T>,
) -> Scaled<Vec<f64>> {
    let e = match environment {
        Environment::Diagonal(e) => return e.clone(),
        Environment::Full(e) => e,
    };
    let (width, v) = (basis.width(), basis.natural_domain().num_values().unwrap_or(0));
    let mut exponent = 0;
    let mut at = |x: usize| {
        let mut f = vec![T::ZERO; width];
        basis.evaluate(x as f64, &mut f);
        let weight = close(e, &Message::Pure(Scaled { value: f, exponent: 0 }), width);
        // The exponent of the environment, which is the same for every value.
        exponent = weight.exponent;
        weight.value.max(0.0)
    };
    let value = (0..v).map(&mut at).collect();
    Scaled { value, exponent }
}

/// Normalizes weights to probabilities. Negative weights count as 0.
fn probabilities(weights: Vec<f64>) -> Vec<f64> {
    let total: f64 = weights.iter().map(|w| w.max(0.0)).sum();
    weights.into_iter().map(|w| w.max(0.0) / total).collect()
}

/// A density that is constant on every step.
#[derive(Clone, Debug, PartialEq)]
struct StepDensity {
    steps: Steps,
    density: Vec<f64>,
    /// The probability of everything below each edge.
    sums: Vec<f64>,
}

impl StepDensity {
    /// Σ E[k, k′] fₖ fₖ′ for step functions f.
    fn new(steps: &Steps, e: &Matrix<Complex64>) -> Self {
        let at = |step: usize| -> f64 {
            let f = steps.on_step(step);
            let dot = |k: usize| e.row(k).iter().zip(f).map(|(e, f)| e.re * f).sum::<f64>();
            f.iter().enumerate().map(|(k, x)| x * dot(k)).sum::<f64>().max(0.0)
        };
        let edges = steps.edges();
        let density: Vec<f64> = (0..edges.len() - 1).map(at).collect();
        let mut sums = vec![0.0];
        for (edge, p) in edges.windows(2).zip(&density) {
            sums.push(sums[sums.len() - 1] + (edge[1] - edge[0]) * p);
        }
        Self { steps: steps.clone(), density, sums }
    }

    /// The probability of an interval within the domain.
    fn between(&self, low: f64, high: f64) -> f64 {
        let (edges, density) = (self.steps.edges(), &self.density);
        let (from, to) = (self.steps.step(low), self.steps.step(high));
        if from == to {
            return (high - low) * density[from];
        }
        let first = (edges[from + 1] - low) * density[from];
        first + (self.sums[to] - self.sums[from + 1]) + (high - edges[to]) * density[to]
    }
}

/// The first possible value whose cumulative probability reaches the level, and the remaining level
/// within that value.
pub(crate) fn finite_quantile(p: &[f64], level: f64) -> (usize, f64) {
    let (mut sum, mut last) = (0.0, (0, 1.0));
    for (x, &q) in p.iter().enumerate().filter(|(_, q)| **q > 0.0) {
        last = (x, ((level - sum) / q).clamp(0.0, 1.0));
        sum += q;
        if sum >= level {
            break;
        }
    }
    last
}

impl Continuous {
    /// The density ∝ Σ E[k, k′] fₖ(x) fₖ′(x)*, for an E with this trace.
    fn new(domain: &Domain, basis: &Arc<Basis>, e: &Matrix<Complex64>, trace: f64) -> Self {
        let (low, high) = domain.bounds();
        let matrix = e.scaled(trace.recip());
        let steps = basis.as_steps().map(|steps| Arc::new(StepDensity::new(steps, &matrix)));
        Self { basis: basis.clone(), matrix, steps, low, high, mass: 1.0 }
    }

    /// The density restricted to an interval; `None` if the interval is impossible.
    fn within(&self, low: f64, high: f64) -> Option<Self> {
        let (low, high) = (low.max(self.low), high.min(self.high));
        let mass = self.raw_between(low, high);
        (mass > 0.0).then(|| Self { low, high, mass, ..self.clone() })
    }

    fn density(&self, x: f64) -> f64 {
        if x < self.low || x > self.high {
            return 0.0;
        }
        let mut f = vec![Complex64::ZERO; self.basis.width()];
        self.basis.evaluate(x, &mut f);
        let rows = self.matrix.times_vector(&f.iter().map(Complex64::conj).collect::<Vec<_>>());
        let sum: Complex64 = rows.iter().zip(&f).map(|(r, x)| r * x).sum();
        sum.re.max(0.0) / self.mass
    }

    /// Σ E[k, k′] M[k, k′].
    fn close(&self, m: &Matrix<Complex64>) -> f64 {
        self.matrix.data().iter().zip(m.data()).map(|(a, b)| (a * b).re).sum()
    }

    /// The probability of an interval without the restriction.
    fn raw_between(&self, low: f64, high: f64) -> f64 {
        match &self.steps {
            _ if low >= high => 0.0,
            Some(steps) => steps.between(low, high),
            None => self.close(&self.basis.gram_over(&Part::Interval { low, high })),
        }
    }

    fn between(&self, low: f64, high: f64) -> f64 {
        let (low, high) = (low.max(self.low), high.min(self.high));
        (self.raw_between(low, high) / self.mass).clamp(0.0, 1.0)
    }

    /// The mean of (x − center)ᵖ.
    fn moment(&self, center: f64, power: u32) -> f64 {
        let part = Part::Interval { low: self.low, high: self.high };
        match self.basis.moments_about(center, power, &part) {
            Some(moments) => self.close(&moments) / self.mass,
            None => unreachable!("every basis of a continuous variable has its first two moments"),
        }
    }

    fn quantile(&self, p: f64) -> f64 {
        if p == 0.0 {
            return self.low;
        }
        if p == 1.0 {
            return self.high;
        }
        increasing_root(self.bracket(p), QUANTILE_TOLERANCE, MAX_STEPS, |x| {
            (self.between(self.low, x) - p, self.density(x))
        })
    }

    /// Finite numbers with cdf(low) ≤ p ≤ cdf(high).
    ///
    /// By Cantelli's inequality, a quantile is at most σ √(p / (1 − p)) above the mean and σ √((1 −
    /// p) / p) below it.
    fn bracket(&self, p: f64) -> (f64, f64) {
        if self.low.is_finite() && self.high.is_finite() {
            return (self.low, self.high);
        }
        let mean = self.moment(0.0, 1);
        let deviation = self.moment(mean, 2).max(0.0).sqrt() + f64::EPSILON * mean.abs();
        let mut below = deviation * ((1.0 - p) / p).sqrt();
        let mut above = deviation * (p / (1.0 - p)).sqrt();
        // The bounds hold only up to rounding.
        for _ in 0..64 {
            if mean - below <= self.low || self.between(self.low, mean - below) <= p {
                break;
            }
            below = 2.0 * below + deviation;
        }
        for _ in 0..64 {
            if mean + above >= self.high || self.between(self.low, mean + above) >= p {
                break;
            }
            above = 2.0 * above + deviation;
        }
        ((mean - below).max(self.low), (mean + above).min(self.high))
    }
}
