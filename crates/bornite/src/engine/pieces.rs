//! The domain of a continuous variable, divided into atoms and panels, with one table of integrals
//! for all rows.
//!
//! The probability of a piece is a quadratic form in the functions of the variable, which is the
//! same for every row. So the probabilities of a tile of rows are one product of a weight and the
//! rows' environments. Within a panel, the density is a polynomial, up to rounding, determined by
//! its values at a few nodes; for step functions, one node is enough.

use std::f64::consts::PI;
use std::sync::OnceLock;

use super::lanes::{Real, get, planes, tile_len};
use super::leaf::{add_form, triangle_numbers, upper_triangle};
use super::message::Message;
use super::plan::Leaf;
use super::workspace::Workspace;
use super::{Kernels, PackedWeight, Uses, dense};
use crate::algebra::Kind;
use crate::basis::quadrature::gauss_legendre;
use crate::basis::{Basis, Part};
use crate::linalg::{Complex64, Matrix};
use crate::root::increasing_root;

/// The number of nodes per panel, except for step functions. It makes the interpolation of the
/// density exact up to rounding on the panels of [`panels`].
const NODES: usize = 20;
/// The highest degree of splines whose squares the nodes determine.
const MAX_DEGREE: usize = (NODES - 1) / 2;
/// The maximum number of steps to invert the integral within a panel.
const MAX_STEPS: usize = 100;
/// The error of that inverse, relative to the total probability.
const TOLERANCE: f64 = 1e-15;

/// The evidence about the variable in a row.
pub(crate) type RowPart<'a> = &'a dyn Fn(u32) -> Option<&'a Part>;

/// A sum of values of the density, Σ wᵢ p(xᵢ), as pairs (xᵢ, wᵢ).
pub(crate) type Functional = Vec<(f64, f64)>;

/// The pieces of one variable, and the quadratic forms of their probabilities.
#[derive(Debug)]
pub(super) struct Pieces<F> {
    /// The pieces, in order.
    list: Vec<Piece>,
    /// The nodes of a panel.
    rule: &'static Rule,
    /// The outputs ℓ at the nodes of the panels, panel by panel.
    values: Vec<f64>,
    /// The forms of the pieces, followed by those of the functionals.
    forms: PackedWeight<F>,
}

#[derive(Clone, Copy, Debug)]
enum Piece {
    Atom(f64),
    /// An interval, and its position among the panels.
    Panel(f64, f64, usize),
}

impl Piece {
    /// The lower end.
    fn low(self) -> f64 {
        match self {
            Piece::Atom(x) | Piece::Panel(x, ..) => x,
        }
    }
}

/// The ends of panels, and the nodes that determine the square of every function on a panel; `None`
/// for an unbounded domain, and for functions that are not smooth enough.
fn panels(basis: &Basis) -> Option<(Vec<f64>, &'static Rule)> {
    let (low, high) = basis.natural_domain().rest().bounds();
    let at = |share: f64| low + (high - low) * share;
    let n = basis.width();
    match basis {
        // Polynomials of degree 2n vary about as fast as cos 2nθ, with x = cos θ.
        Basis::Legendre(_) => {
            let edge = |k: usize| at(0.5 - 0.5 * libm::cos(PI * k as f64 / n as f64));
            Some(((0..=n).map(edge).collect(), Rule::smooth()))
        }
        Basis::Fourier(_) => {
            Some(((0..=n).map(|k| at(k as f64 / n as f64)).collect(), Rule::smooth()))
        }
        Basis::Steps(b) => Some((b.edges().to_vec(), Rule::constant())),
        Basis::BSpline(b) if b.degree() <= MAX_DEGREE => {
            let mut knots: Vec<f64> =
                b.knots().iter().copied().filter(|x| (low..=high).contains(x)).collect();
            knots.dedup();
            Some((knots, Rule::smooth()))
        }
        Basis::Transformed(b) => panels(b.base()),
        Basis::Atoms(b) => panels(b.rest()),
        Basis::BSpline(_)
        | Basis::Hermite(_)
        | Basis::Laguerre(_)
        | Basis::Gaussian(_)
        | Basis::Indicator(_)
        | Basis::Table(_)
        | Basis::Squared(_) => None,
    }
}

/// ℓ(x), if x is not an atom.
fn rest_values(basis: &Basis, weight: Option<&Matrix<Complex64>>, x: f64) -> Vec<Complex64> {
    let mut f = vec![Complex64::ZERO; basis.width()];
    if let Basis::Atoms(b) = basis {
        b.rest().evaluate(x, &mut f[b.points().len()..]);
    } else {
        basis.evaluate(x, &mut f);
    }
    weight.map_or(f.clone(), |w| w.times_vector(&f))
}

impl<F: Real> Pieces<F> {
    /// The pieces of a leaf, with these functionals of its density; `None` if [`panels`] returns
    /// `None`.
    pub(super) fn new<const C: bool>(leaf: &Leaf<F>, functionals: &[Functional]) -> Option<Self> {
        let (mut cuts, rule) = panels(&leaf.basis)?;
        let (low, high) = (cuts[0], cuts[cuts.len() - 1]);
        let domain = leaf.basis.natural_domain();
        let atoms = domain.atoms();
        cuts.extend(atoms.iter().copied().filter(|x| *x > low && *x < high));
        cuts.sort_by(f64::total_cmp);
        cuts.dedup();
        let panels = cuts.windows(2).enumerate().map(|(n, c)| Piece::Panel(c[0], c[1], n));
        let mut pieces: Vec<Piece> = atoms.iter().map(|&x| Piece::Atom(x)).chain(panels).collect();
        // An atom comes before the panel that starts at it.
        pieces.sort_by(|a, b| a.low().total_cmp(&b.low()));
        let weight = leaf.weight.as_ref();
        let numbers = triangle_numbers(leaf.width(), C);
        let mut forms = vec![0.0; (pieces.len() + functionals.len()) * numbers];
        let (piece_forms, functional_forms) = forms.split_at_mut(pieces.len() * numbers);
        let mut values =
            Vec::with_capacity(cuts.len() * rule.nodes.len() * leaf.width() * planes(C));
        for (piece, form) in pieces.iter().zip(piece_forms.chunks_exact_mut(numbers)) {
            match *piece {
                Piece::Atom(x) => {
                    let l = super::plan::leaf_values(&leaf.basis, weight, x);
                    add_form(form, C, 1.0, &l);
                }
                Piece::Panel(low, high, _) => {
                    let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
                    for &(t, w) in &rule.nodes {
                        let l = rest_values(&leaf.basis, weight, middle + half * t);
                        add_form(form, C, half * w, &l);
                        for z in l {
                            values.push(z.re);
                            values.extend(C.then_some(z.im));
                        }
                    }
                }
            }
        }
        for (sum, form) in functionals.iter().zip(functional_forms.chunks_exact_mut(numbers)) {
            for &(x, w) in sum {
                add_form(form, C, w, &rest_values(&leaf.basis, weight, x));
            }
        }
        let forms = Matrix::new(pieces.len() + functionals.len(), numbers, forms);
        let forms = PackedWeight::plain(dense(&forms), Uses::PURE);
        Some(Self { list: pieces, rule, values, forms })
    }

    /// Calls `each` with the distribution of every row. Evidence about the variable must not
    /// exclude anything but atoms.
    pub(super) fn distributions<'a, const C: bool>(
        &'a self,
        kernels: &Kernels<F, C>,
        leaf: &'a Leaf<F>,
        environment: &Message<F>,
        (rows, part): (&[u32], RowPart<'_>),
        ws: &mut Workspace<F>,
        each: &mut impl FnMut(u32, PiecewiseDensity<'a>),
    ) {
        let width = leaf.width();
        let [count, numbers, _] = self.forms.shape();
        let real = Kernels::<F, false>::new(kernels.simd());
        ws.grow_scratch(tile_len::<F>(C, (width * width).max(numbers).max(count)));
        let [s0, s1, s2, ..] = &mut ws.scratch;
        for kind in Kind::ALL {
            let of_kind: Vec<u32> =
                rows.iter().copied().filter(|&r| environment.kind(r as usize) == kind).collect();
            for rows in of_kind.chunks(F::LANES) {
                let triangle = &mut s1[..tile_len::<F>(false, numbers)];
                let tile = environment.tile(C, kind, rows, s0);
                match kind {
                    Kind::Identity => identity_triangle::<F, C>(width, triangle),
                    Kind::Pure => pure_triangle::<F, C>(width, tile, triangle),
                    Kind::Mixed => upper_triangle::<F, C>(width, tile, triangle),
                }
                let values = &mut s2[..tile_len::<F>(false, count)];
                real.sum(&self.forms, triangle, values);
                for (lane, &row) in rows.iter().enumerate() {
                    let forms =
                        values.chunks_exact(F::LANES).map(|lanes| lanes[lane].to_f64()).collect();
                    let e = row_environment::<F, C>(kind, width, tile, lane);
                    if let Some(density) = self.posterior(leaf, e, forms, part(row)) {
                        each(row, density);
                    }
                }
            }
        }
    }

    /// The distribution of a row, given its environment and the values of all forms.
    fn posterior<'a>(
        &'a self,
        leaf: &'a Leaf<F>,
        environment: RowEnvironment,
        forms: Vec<f64>,
        part: Option<&Part>,
    ) -> Option<PiecewiseDensity<'a>> {
        let mut masses = forms;
        let mut functionals = masses.split_off(self.list.len());
        for (mass, piece) in masses.iter_mut().zip(&self.list) {
            let is_left_out = match (piece, part) {
                (Piece::Atom(x), Some(Part::Interval { low, high })) => !(*low..*high).contains(x),
                (Piece::Atom(_), Some(Part::Values(_)) | None) | (Piece::Panel(..), _) => false,
            };
            *mass = if is_left_out { 0.0 } else { mass.max(0.0) };
        }
        let total: f64 = masses.iter().sum();
        if total.is_nan() || total <= 0.0 {
            return None;
        }
        for sum in &mut functionals {
            *sum /= total;
        }
        let (basis, weight) = (&*leaf.basis, leaf.weight.as_ref());
        let term = Term { scale: 1.0, values: &self.values, basis, weight, environment };
        let (pieces, rule) = (&self.list, self.rule);
        Some(PiecewiseDensity { pieces, rule, terms: vec![term], masses, functionals, total })
    }
}

/// The environment of one row as reals, which are interleaved pairs in a complex circuit.
#[derive(Clone, Debug)]
enum RowEnvironment {
    /// v with E = v vᴴ.
    Vector(Vec<f64>, bool),
    /// E, row by row.
    Matrix(Vec<f64>, bool),
}

impl RowEnvironment {
    /// Σ E[k, l] ℓₖ ℓₗ*.
    fn density(&self, l: &[f64]) -> f64 {
        match self {
            RowEnvironment::Vector(v, false) => {
                v.iter().zip(l).map(|(v, l)| v * l).sum::<f64>().powi(2)
            }
            RowEnvironment::Vector(v, true) => {
                let (mut re, mut im) = (0.0, 0.0);
                for (v, l) in v.chunks_exact(2).zip(l.chunks_exact(2)) {
                    re += v[0] * l[0] - v[1] * l[1];
                    im += v[0] * l[1] + v[1] * l[0];
                }
                re * re + im * im
            }
            RowEnvironment::Matrix(e, false) => {
                let dot = |row: &[f64]| row.iter().zip(l).map(|(e, l)| e * l).sum::<f64>();
                e.chunks_exact(l.len()).zip(l).map(|(row, l)| l * dot(row)).sum()
            }
            RowEnvironment::Matrix(e, true) => {
                let mut sum = 0.0;
                for (row, a) in e.chunks_exact(l.len()).zip(l.chunks_exact(2)) {
                    let (mut re, mut im) = (0.0, 0.0);
                    for (e, b) in row.chunks_exact(2).zip(l.chunks_exact(2)) {
                        re += e[0] * b[0] + e[1] * b[1];
                        im += e[1] * b[0] - e[0] * b[1];
                    }
                    sum += a[0] * re - a[1] * im;
                }
                sum
            }
        }
    }

    fn is_complex(&self) -> bool {
        match self {
            RowEnvironment::Vector(_, complex) | RowEnvironment::Matrix(_, complex) => *complex,
        }
    }
}

/// The distribution of a continuous variable in one row, over pieces that all rows share.
#[derive(Debug)]
pub(crate) struct PiecewiseDensity<'a> {
    pieces: &'a [Piece],
    rule: &'static Rule,
    /// The density is the sum of these terms, divided by the total.
    terms: Vec<Term<'a>>,
    masses: Vec<f64>,
    functionals: Vec<f64>,
    total: f64,
}

/// The contribution of one circuit.
#[derive(Debug)]
struct Term<'a> {
    scale: f64,
    values: &'a [f64],
    basis: &'a Basis,
    weight: Option<&'a Matrix<Complex64>>,
    environment: RowEnvironment,
}

impl Term<'_> {
    /// The density at a point that is not an atom.
    fn density(&self, x: f64) -> f64 {
        let mut l = Vec::new();
        for z in rest_values(self.basis, self.weight, x) {
            l.push(z.re);
            l.extend(self.environment.is_complex().then_some(z.im));
        }
        self.scale * self.environment.density(&l)
    }

    /// Adds the density at the nodes of a panel.
    fn add_panel(&self, n: usize, at: &mut [f64]) {
        let width = self.weight.map_or_else(|| self.basis.width(), Matrix::rows);
        let numbers = width * planes(self.environment.is_complex());
        let panel = at.len() * numbers;
        let nodes = self.values[n * panel..][..panel].chunks_exact(numbers);
        for (at, l) in at.iter_mut().zip(nodes) {
            *at += self.scale * self.environment.density(l);
        }
    }
}

impl PiecewiseDensity<'_> {
    /// The mixture of densities over the same pieces, with weights that sum to 1.
    pub(super) fn mixture(parts: Vec<(f64, Self)>) -> Option<Self> {
        let mut parts = parts.into_iter();
        let (share, mut sum) = parts.next()?;
        sum.scale(share);
        for (share, mut part) in parts {
            part.scale(share);
            let add = |(sum, x): (&mut f64, f64)| *sum += x;
            sum.masses.iter_mut().zip(part.masses).for_each(add);
            sum.functionals.iter_mut().zip(part.functionals).for_each(add);
            sum.terms.append(&mut part.terms);
        }
        Some(sum)
    }

    /// Normalizes the distribution and multiplies it by a weight. The total counts as 1, because
    /// the weights of a mixture sum to 1.
    fn scale(&mut self, share: f64) {
        self.terms.iter_mut().for_each(|term| term.scale *= share / self.total);
        self.masses.iter_mut().for_each(|mass| *mass *= share / self.total);
        self.functionals.iter_mut().for_each(|sum| *sum *= share);
        self.total = 1.0;
    }

    /// The sums Σ wᵢ p(xᵢ) that were requested.
    pub(crate) fn functionals(&self) -> &[f64] {
        &self.functionals
    }

    /// The atoms with their probabilities, in increasing order.
    pub(crate) fn atoms(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let pairs = self.pieces.iter().zip(&self.masses);
        pairs.filter_map(|(piece, mass)| match piece {
            Piece::Atom(x) => Some((*x, mass / self.total)),
            Piece::Panel(..) => None,
        })
    }

    /// The density of everything but the atoms.
    pub(crate) fn density(&self, x: f64) -> f64 {
        self.terms.iter().map(|term| term.density(x)).sum::<f64>().max(0.0) / self.total
    }

    /// The probability of all values up to and including x.
    pub(crate) fn cdf(&self, x: f64) -> f64 {
        let mut sum = 0.0;
        for (piece, mass) in self.pieces.iter().zip(&self.masses) {
            match *piece {
                Piece::Atom(atom) if atom > x => break,
                Piece::Panel(low, high, n) if high > x => {
                    if low < x {
                        let t = (2.0 * x - low - high) / (high - low);
                        let half = 0.5 * (high - low);
                        sum += (half * self.panel(n).integral(t).0).clamp(0.0, *mass);
                    }
                    break;
                }
                Piece::Atom(_) | Piece::Panel(..) => sum += mass,
            }
        }
        (sum / self.total).min(1.0)
    }

    /// The inverse of the cdf for a level in [0, 1]: the x with this cdf, or the atom at which the
    /// cdf passes the level.
    pub(crate) fn quantile(&self, level: f64) -> f64 {
        let possible = || self.pieces.iter().zip(&self.masses).filter(|(_, mass)| **mass > 0.0);
        let (target, mut below) = (level * self.total, 0.0);
        if let (true, Some((piece, _))) = (level == 0.0, possible().next()) {
            return piece.low();
        }
        for (piece, mass) in possible() {
            if level < 1.0 && below + mass >= target {
                return match *piece {
                    Piece::Atom(x) => x,
                    Piece::Panel(low, high, n) => {
                        self.quantile_in_panel(low, high, n, target - below)
                    }
                };
            }
            below += mass;
        }
        possible().next_back().map_or(f64::NAN, |(piece, _)| match *piece {
            Piece::Atom(x) | Piece::Panel(_, x, _) => x,
        })
    }

    /// Maps a uniform number in [0, 1] to a sample. The atoms come first, then the rest, from which
    /// no atom is drawn.
    pub(super) fn draw(&self, u: f64) -> f64 {
        let (mut rest, mut last) = (u, None);
        for (x, p) in self.atoms().filter(|(_, p)| *p > 0.0) {
            if rest < p {
                return x;
            }
            rest -= p;
            last = Some(x);
        }
        let panels = || self.pieces.iter().zip(&self.masses).filter(|(_, mass)| **mass > 0.0);
        let (mut below, mut found) = (0.0, None);
        for (piece, mass) in panels() {
            if let Piece::Panel(low, high, n) = *piece {
                found = Some((low, high, n, rest * self.total - below));
                below += mass;
                if below >= rest * self.total {
                    break;
                }
            }
        }
        let Some((low, high, n, target)) = found else { return last.unwrap_or(f64::NAN) };
        let x = self.quantile_in_panel(low, high, n, target);
        let is_atom = |x: f64| self.atoms().any(|(atom, _)| atom == x);
        if is_atom(x) { x.next_up().min(high) } else { x }
    }

    /// The point of a panel below which the panel has this mass.
    fn quantile_in_panel(&self, low: f64, high: f64, n: usize, target: f64) -> f64 {
        let half = 0.5 * (high - low);
        let t = self.panel(n).inverse(target / half, TOLERANCE * self.total / half);
        (0.5 * (low + high) + half * t).clamp(low, high)
    }

    /// The density on a panel, mapped to [−1, 1].
    fn panel(&self, n: usize) -> Panel {
        let (mut at, nodes) = ([0.0; NODES], self.rule.nodes.len());
        let at = &mut at[..nodes];
        self.terms.iter().for_each(|term| term.add_panel(n, at));
        let mut series = [0.0; NODES];
        for (c, row) in series.iter_mut().zip(&self.rule.transform) {
            *c = row.iter().zip(&*at).map(|(a, b)| a * b).sum();
        }
        Panel { series, terms: nodes }
    }
}

/// A polynomial on [−1, 1], as a sum of Legendre polynomials.
struct Panel {
    series: [f64; NODES],
    /// The number of terms that may not be zero.
    terms: usize,
}

impl Panel {
    /// The integral from −1 to t, and the value at t.
    fn integral(&self, t: f64) -> (f64, f64) {
        // ∫ Pₖ = (Pₖ₊₁ − Pₖ₋₁) / (2 k + 1), which is 0 at −1, and ∫ P₀ = t + 1.
        let (mut before, mut p) = (1.0, t);
        let (mut integral, mut value) = (self.series[0] * (t + 1.0), self.series[0]);
        for (k, c) in self.series[..self.terms].iter().enumerate().skip(1) {
            let n = k as f64;
            let next = ((2.0 * n + 1.0) * t * p - n * before) / (n + 1.0);
            integral += c * (next - before) / (2.0 * n + 1.0);
            value += c * p;
            (before, p) = (p, next);
        }
        (integral, value)
    }

    /// The t at which the integral has this value, within the tolerance.
    fn inverse(&self, integral: f64, tolerance: f64) -> f64 {
        increasing_root((-1.0, 1.0), tolerance, MAX_STEPS, |t| {
            let (found, slope) = self.integral(t);
            (found - integral, slope)
        })
    }
}

/// The nodes and weights of a panel on [−1, 1], and the matrix from values at the nodes to a
/// Legendre series.
#[derive(Debug)]
struct Rule {
    nodes: Vec<(f64, f64)>,
    transform: Vec<[f64; NODES]>,
}

impl Rule {
    /// The rule for smooth functions.
    fn smooth() -> &'static Self {
        static RULE: OnceLock<Rule> = OnceLock::new();
        RULE.get_or_init(|| Self::new(NODES))
    }

    /// The rule for constant functions.
    fn constant() -> &'static Self {
        static RULE: OnceLock<Rule> = OnceLock::new();
        RULE.get_or_init(|| Self::new(1))
    }

    fn new(count: usize) -> Self {
        let nodes = gauss_legendre(count);
        let mut transform = vec![[0.0; NODES]; count];
        for (j, &(t, w)) in nodes.iter().enumerate() {
            let (mut before, mut p) = (0.0, 1.0);
            for (k, row) in transform.iter_mut().enumerate() {
                let k = k as f64;
                row[j] = (k + 0.5) * w * p;
                (before, p) = (p, ((2.0 * k + 1.0) * t * p - k * before) / (k + 1.0));
            }
        }
        Self { nodes, transform }
    }
}

/// The environment in one lane of a tile.
fn row_environment<F: Real, const C: bool>(
    kind: Kind,
    width: usize,
    tile: &[F],
    lane: usize,
) -> RowEnvironment {
    let numbers = |count: usize| {
        let mut out = Vec::with_capacity(count * planes(C));
        for n in 0..count {
            let z = get(C, tile, n, lane);
            out.push(z.re);
            out.extend(C.then_some(z.im));
        }
        out
    };
    match kind {
        Kind::Identity => {
            let mut e = vec![0.0; width * width * planes(C)];
            e.iter_mut().step_by((width + 1) * planes(C)).for_each(|x| *x = 1.0);
            RowEnvironment::Matrix(e, C)
        }
        Kind::Pure => RowEnvironment::Vector(numbers(width), C),
        Kind::Mixed => RowEnvironment::Matrix(numbers(width * width), C),
    }
}

/// Writes the upper triangle of the identity into every lane.
fn identity_triangle<F: Real, const C: bool>(width: usize, out: &mut [F]) {
    debug_assert_eq!(out.len(), tile_len::<F>(false, triangle_numbers(width, C)));
    out.fill(F::ZERO);
    let mut at = 0;
    for i in 0..width {
        out[at * F::LANES..(at + 1) * F::LANES].fill(F::ONE);
        at += 1 + (width - i - 1) * planes(C);
    }
}

/// Writes the upper triangle of v vᴴ as a real tile. Each row starts with its real diagonal entry.
fn pure_triangle<F: Real, const C: bool>(width: usize, v: &[F], out: &mut [F]) {
    let part =
        |n: usize, plane: usize, lane: usize| v[(n * planes(C) + plane) * F::LANES + lane].to_f64();
    let mut targets = out.chunks_exact_mut(F::LANES);
    for i in 0..width {
        for j in i..width {
            let parts = if i == j { 1 } else { planes(C) };
            for plane in 0..parts {
                let Some(target) = targets.next() else { return };
                for (lane, x) in target.iter_mut().enumerate() {
                    let [a, b] = [i, j].map(|n| part(n, 0, lane));
                    *x = F::from_f64(match (C, plane) {
                        (false, _) => a * b,
                        (true, 0) => a * b + part(i, 1, lane) * part(j, 1, lane),
                        (true, _) => part(i, 1, lane) * b - a * part(j, 1, lane),
                    });
                }
            }
        }
    }
}
