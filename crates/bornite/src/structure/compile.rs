use std::sync::Arc;

use rand::Rng;

use super::{Region, RegionTree};
use crate::basis::Basis;
use crate::circuit::{Circuit, CircuitBuilder, CircuitError, LayerId, Weights, random_weight};
use crate::domain::Variable;
use crate::ops::MAX_ENTRIES;

/// The kind of a product layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Product {
    /// ℓ₁ ⊗ ℓ₂.
    #[default]
    Kronecker,
    /// ℓ₁ ⊙ ℓ₂.
    Hadamard,
}

/// A region tree with input functions, widths and product kinds: everything about a circuit but its weights.
///
/// Every region gets a product and a sum of at most `width` outputs. Widths are capped where the paper's conditions
/// need it: a sum has no more outputs than inputs, and the inputs of a Hadamard product have one width. A variable's
/// input functions get a sum of their own unless a Kronecker product with no more functions than the width makes it
/// redundant.
///
/// ```
/// use bornite::{Basis, Domain, Variable, circuit::Weights, structure::{RegionTree, Structure}};
/// use rand::SeedableRng;
///
/// let pixel = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
/// let structure = Structure::new(RegionTree::image(4, 4, 1), pixel).width(8);
/// let rng = &mut rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let circuit = structure.build(Weights::Haar, rng)?;
/// assert_eq!(circuit.num_variables(), 16);
/// # Ok::<(), bornite::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Structure {
    tree: RegionTree,
    variables: Vec<Variable>,
    bases: Vec<Arc<Basis>>,
    width: usize,
    output_width: usize,
    products: Vec<Product>,
}

impl Structure {
    /// The structure over a tree, with the variable and input functions that `leaf` gives for each position.
    pub fn new<B: Into<Arc<Basis>>>(
        tree: RegionTree,
        leaf: impl FnMut(usize) -> (Variable, B),
    ) -> Self {
        let leaves = (0..tree.num_variables()).map(leaf);
        let (variables, bases) = leaves.map(|(v, b)| (v, b.into())).unzip();
        let products = vec![Product::default(); tree.regions().len()];
        Self { tree, variables, bases, width: 8, output_width: 1, products }
    }

    /// Sets the largest width K of inner sums; 8 where it is not set.
    #[must_use]
    pub fn width(mut self, width: usize) -> Self {
        self.width = width;
        self
    }

    /// Sets the width r of the output: the number of squares that are summed; 1 where it is not set.
    #[must_use]
    pub fn output_width(mut self, r: usize) -> Self {
        self.output_width = r;
        self
    }

    /// Makes all products of one kind; Kronecker where it is not set.
    #[must_use]
    pub fn product(mut self, product: Product) -> Self {
        self.products.fill(product);
        self
    }

    /// Chooses the kind of each region's product, by the region's position in the tree.
    #[must_use]
    pub fn products(mut self, choose: impl FnMut(usize) -> Product) -> Self {
        self.products = (0..self.products.len()).map(choose).collect();
        self
    }

    /// The region tree.
    pub fn tree(&self) -> &RegionTree {
        &self.tree
    }

    /// The number of weight entries of the circuit: what [`build`](Self::build) will draw.
    pub fn num_parameters(&self) -> u128 {
        let widths = self.widths();
        let last = widths.len() - 1;
        let regions = self.tree.regions().iter().zip(&widths).enumerate();
        let entries = regions.map(|(index, (region, w))| {
            let rows = if index == last { self.output_width } else { w.outputs };
            let is_bare = matches!(region, Region::Variable(_)) && w.is_bare && index != last;
            if is_bare { 0 } else { rows as u128 * w.inputs as u128 }
        });
        entries.fold(0, u128::saturating_add)
    }

    /// Makes the circuit with random weights. With semi-unitary weights over orthonormal functions it is orthonormal.
    ///
    /// # Errors
    /// A width of 0, a weight beyond what an operation allows, or functions that do not live on their variable's domain.
    pub fn build(&self, weights: Weights, rng: &mut impl Rng) -> Result<Circuit, CircuitError> {
        let mut b = CircuitBuilder::new();
        let ids: Vec<_> =
            self.variables.iter().map(|v| b.variable(v.name.clone(), v.domain)).collect();
        let widths = self.widths();
        let last = widths.len() - 1;
        let mut layers: Vec<LayerId> = Vec::with_capacity(widths.len());
        for (index, region) in self.tree.regions().iter().enumerate() {
            let rows = if index == last { self.output_width } else { widths[index].outputs };
            let cols = widths[index].inputs;
            let layer = match region {
                Region::Variable(v) => b.input(ids[*v], self.bases[*v].clone()),
                Region::Split(parts) => {
                    let inputs: Vec<LayerId> = parts.iter().map(|&p| layers[p]).collect();
                    match self.products[index] {
                        Product::Kronecker => b.kronecker(inputs),
                        Product::Hadamard => b.hadamard(inputs),
                    }
                }
            };
            let bare =
                matches!(region, Region::Variable(_)) && widths[index].is_bare && index != last;
            if bare {
                layers.push(layer);
                continue;
            }
            if rows as u128 * cols as u128 > MAX_ENTRIES {
                let layer = LayerId::new(layer.index() + 1);
                return Err(CircuitError::TooLarge { layer, what: "its weight" });
            }
            let weight = random_weight(rows, cols, weights, rng);
            layers.push(if index == last && weights.is_semi_unitary() {
                // The output's weight has unit norm, not orthonormal rows.
                b.sum(layer, weight.scaled((rows.min(cols) as f64).sqrt().recip()))
            } else {
                b.sum(layer, weight)
            });
        }
        b.build(layers[last])
    }

    /// The widths of every region: bottom up what each can have, top down what its Hadamard consumer lets it have.
    fn widths(&self) -> Vec<Widths> {
        let regions = self.tree.regions();
        let mut widths: Vec<Widths> = Vec::with_capacity(regions.len());
        for (index, region) in regions.iter().enumerate() {
            let inputs = match region {
                Region::Variable(v) => self.bases[*v].width(),
                Region::Split(parts) => {
                    self.combine(index, parts.iter().map(|&p| widths[p].outputs))
                }
            };
            let is_bare = inputs <= self.width;
            widths.push(Widths { inputs, outputs: inputs.min(self.width), is_bare });
        }
        for (index, region) in regions.iter().enumerate().rev() {
            if let Region::Split(parts) = region
                && self.products[index] == Product::Hadamard
            {
                for &part in parts {
                    widths[part].outputs = widths[index].inputs;
                    widths[part].is_bare = false;
                }
            }
        }
        widths
    }

    fn combine(&self, index: usize, parts: impl Iterator<Item = usize>) -> usize {
        match self.products[index] {
            Product::Kronecker => parts.fold(1, usize::saturating_mul),
            Product::Hadamard => parts.min().unwrap_or(0),
        }
    }
}

/// The widths of a region's sum layer: of what it receives and of what it gives.
struct Widths {
    inputs: usize,
    outputs: usize,
    /// Whether a variable's functions need no sum layer.
    is_bare: bool,
}
