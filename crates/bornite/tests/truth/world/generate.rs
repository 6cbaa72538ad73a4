//! Random structured-decomposable circuits.

use bornite::basis::FourierForm;
use bornite::linalg::Complex64;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Entries, Functions, Node, World};

/// The widest product that a sum contracts, and the widest that none does: small enough to be squared literally.
const MAX_PRODUCT: usize = 32;
const MAX_BARE_PRODUCT: usize = 9;

/// Which domains the variables have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domains {
    Finite,
    Continuous,
    Any,
}

/// Everything that a random circuit is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    pub(crate) seed: u64,
    pub(crate) variables: usize,
    /// The largest number of values of a finite domain and of functions of an input.
    pub(crate) functions: usize,
    /// The largest width of inner sums.
    pub(crate) width: usize,
    /// The width r of the output; 0 leaves the output layer without a sum of its own.
    pub(crate) output: usize,
    pub(crate) is_complex: bool,
    pub(crate) domains: Domains,
}

impl Recipe {
    pub(crate) fn finite(seed: u64, variables: usize) -> Self {
        let output = [1, 1, 2, 3, 0][seed as usize % 5];
        let is_complex = !seed.is_multiple_of(3);
        let (functions, width) = (4, 1 + seed as usize % 4);
        Self { seed, variables, functions, width, output, is_complex, domains: Domains::Finite }
    }

    pub(crate) fn continuous(seed: u64, variables: usize) -> Self {
        Self { domains: Domains::Continuous, ..Self::finite(seed, variables) }
    }

    pub(crate) fn make(self) -> World {
        let mut g = Generator {
            recipe: self,
            rng: ChaCha8Rng::seed_from_u64(self.seed),
            functions: Vec::new(),
            weights: Vec::new(),
        };
        for _ in 0..self.variables {
            let functions = g.functions();
            g.functions.push(functions);
        }
        let mut order: Vec<usize> = (0..self.variables).collect();
        order.shuffle(&mut g.rng);
        let (mut root, mut width) = g.region(&order);
        if self.output > 0 {
            (root, width) = g.sum(root, width, self.output);
        }
        // A circuit that is zero by chance, as through a zero row, is of no use here.
        assert!(width > 0);
        World { recipe: self, functions: g.functions, weights: g.weights, root }
    }
}

struct Generator {
    recipe: Recipe,
    rng: ChaCha8Rng,
    functions: Vec<Functions>,
    weights: Vec<Entries>,
}

impl Generator {
    fn chance(&mut self, probability: f64) -> bool {
        self.rng.random::<f64>() < probability
    }

    fn below(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n)
    }

    /// Roughly normal: the sum of twelve uniform numbers.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.rng.random::<f64>() - 0.5).sum()
    }

    fn number(&mut self, is_real: bool) -> Complex64 {
        let (re, im) = (self.normal(), self.normal());
        Complex64::new(re, if is_real { 0.0 } else { im })
    }

    fn functions(&mut self) -> Functions {
        let is_finite = match self.recipe.domains {
            Domains::Finite => true,
            Domains::Continuous => false,
            Domains::Any => self.chance(0.5),
        };
        let count = 1 + self.below(self.recipe.functions);
        if is_finite { self.finite(count) } else { self.continuous(count) }
    }

    fn finite(&mut self, v: usize) -> Functions {
        if self.chance(0.5) {
            return Functions::Indicator(v);
        }
        let count = 1 + self.below(self.recipe.functions);
        let is_real = !self.recipe.is_complex || self.chance(0.3);
        let mut rows: Vec<Vec<Complex64>> =
            (0..count).map(|_| (0..v).map(|_| self.number(is_real)).collect()).collect();
        if count > 1 && self.chance(0.2) {
            rows[count - 1] = rows[0].iter().map(|z| z * 0.75).collect();
        }
        Functions::Table(rows)
    }

    fn continuous(&mut self, count: usize) -> Functions {
        let a = self.normal();
        let b = a + 0.5 + self.rng.random::<f64>() * 3.0;
        let scale = 0.6 + self.rng.random::<f64>();
        match self.below(9) {
            7 | 8 => self.with_atoms(count),
            0 | 1 => {
                let circle = self.chance(0.5);
                let is_complex = self.recipe.is_complex && self.chance(0.6);
                let form = if is_complex { FourierForm::Complex } else { FourierForm::Real };
                let (a, b) = if circle { (0.0, b - a) } else { (a, b) };
                Functions::Fourier { count, a, b, form, circle }
            }
            2 => Functions::Legendre { count, a, b },
            3 => Functions::Laguerre { count, a, scale },
            4 => Functions::Hermite { count, location: a, scale },
            5 => Functions::Gaussian(
                (0..count)
                    .map(|n| (1.5 * n as f64 - 2.0 + 0.3 * a, 0.8 + 0.3 * self.normal().abs()))
                    .collect(),
            ),
            _ => {
                let degree = self.below(4);
                let mut knots = vec![a; 1 + self.below(degree + 1)];
                while knots.len() < count + degree + 1 {
                    let step = 0.3 + self.rng.random::<f64>();
                    knots.push(knots[knots.len() - 1] + step);
                }
                Functions::BSpline { degree, knots }
            }
        }
    }

    /// One to three atoms, within the rest's domain or, but on a circle, beyond it.
    fn with_atoms(&mut self, count: usize) -> Functions {
        let rest = loop {
            let rest = self.continuous(count);
            if !matches!(rest, Functions::Atoms(..)) {
                break rest;
            }
        };
        let (low, high) = rest.reach();
        let beyond = match rest {
            Functions::Fourier { circle: true, .. } => 0.0,
            _ => 0.5,
        };
        let mut points: Vec<f64> = (0..=self.below(3))
            .map(|_| low + (high - low) * (self.rng.random::<f64>() * (1.0 + beyond)))
            .collect();
        points.sort_by(f64::total_cmp);
        points.dedup();
        Functions::Atoms(points, Box::new(rest))
    }

    /// The circuit over these variables, with its width.
    fn region(&mut self, variables: &[usize]) -> (Node, usize) {
        if let [variable] = *variables {
            let width = self.functions[variable].width();
            let input = (Node::Input { variable }, width);
            return if self.chance(0.6) { self.any_sum(input) } else { input };
        }
        let count = 2 + self.below(variables.len().min(4) - 1);
        let mut inputs: Vec<(Node, usize)> = Vec::new();
        let mut rest = variables;
        for n in 0..count {
            let left = count - n - 1;
            let take = if left == 0 { rest.len() } else { 1 + self.below(rest.len() - left) };
            inputs.push(self.region(&rest[..take]));
            rest = &rest[take..];
        }
        let product =
            if self.chance(0.45) { self.hadamard(inputs) } else { self.kronecker(inputs) };
        if product.1 > MAX_BARE_PRODUCT || self.chance(0.65) {
            let sum = self.any_sum(product);
            return if self.chance(0.15) { self.any_sum(sum) } else { sum };
        }
        product
    }

    fn hadamard(&mut self, inputs: Vec<(Node, usize)>) -> (Node, usize) {
        let any = self.below(inputs.len());
        let width = inputs[any].1;
        let inputs = inputs
            .into_iter()
            .map(|(n, w)| if w == width { n } else { self.sum(n, w, width).0 })
            .collect();
        (Node::Hadamard(inputs), width)
    }

    fn kronecker(&mut self, mut inputs: Vec<(Node, usize)>) -> (Node, usize) {
        while inputs.iter().map(|i| i.1).product::<usize>() > MAX_PRODUCT {
            let widest = (0..inputs.len()).max_by_key(|&n| inputs[n].1).unwrap();
            let (node, width) = inputs[widest].clone();
            inputs[widest] = self.sum(node, width, width - 1);
        }
        let width = inputs.iter().map(|i| i.1).product();
        (Node::Kronecker(inputs.into_iter().map(|i| i.0).collect()), width)
    }

    /// A sum of any width, which may be larger than its input's.
    fn any_sum(&mut self, (node, cols): (Node, usize)) -> (Node, usize) {
        let rows = 1 + self.below(self.recipe.width);
        self.sum(node, cols, rows)
    }

    fn sum(&mut self, node: Node, cols: usize, rows: usize) -> (Node, usize) {
        let fits = |w: &Entries| w.rows == rows && w.cols == cols;
        let weight = match self.weights.iter().position(fits) {
            Some(shared) if self.chance(0.5) => shared,
            _ => {
                let weight = self.entries(rows, cols);
                self.weights.push(weight);
                self.weights.len() - 1
            }
        };
        (Node::Sum { weight, input: Box::new(node) }, rows)
    }

    fn entries(&mut self, rows: usize, cols: usize) -> Entries {
        let is_real = !self.recipe.is_complex || self.chance(0.3);
        if rows <= cols && self.chance(0.25) {
            return self.selection(rows, cols, is_real);
        }
        let mut data: Vec<Complex64> = (0..rows * cols).map(|_| self.number(is_real)).collect();
        if rows > 1 && self.chance(0.25) {
            // The last row is a multiple of the first: the rank is too small.
            let factor = self.number(is_real);
            for j in 0..cols {
                data[(rows - 1) * cols + j] = data[j] * factor;
            }
        }
        if cols > 1 && self.chance(0.1) {
            for i in 0..rows {
                data[i * cols] = Complex64::ZERO;
            }
        }
        Entries { rows, cols, data, is_real }
    }
    /// Rows of a permutation matrix, with signs or phases: exactly semi-unitary.
    fn selection(&mut self, rows: usize, cols: usize, is_real: bool) -> Entries {
        let mut order: Vec<usize> = (0..cols).collect();
        order.shuffle(&mut self.rng);
        let mut data = vec![Complex64::ZERO; rows * cols];
        for i in 0..rows {
            let sign = if self.chance(0.5) { 1.0 } else { -1.0 };
            data[i * cols + order[i]] =
                if is_real { Complex64::new(sign, 0.0) } else { Complex64::new(0.0, sign) };
        }
        Entries { rows, cols, data, is_real }
    }
}
