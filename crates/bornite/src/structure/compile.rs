use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::Rng;

use super::{Region, RegionTree};
use crate::basis::Basis;
use crate::circuit::{
    Circuit, CircuitBuilder, CircuitError, Layer, LayerId, Skeleton, WeightId, Weights,
    random_weight,
};
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

/// A region tree with input functions, widths and product kinds: everything about a circuit except
/// its weights.
///
/// Every region gets a product and a sum with at most `width` outputs. Widths are capped as the
/// paper's conditions require: a sum has no more outputs than inputs, and the inputs of a Hadamard
/// product have the same width. The input functions of a variable get their own sum, unless they
/// feed a Kronecker product and there are no more of them than the width. Every sum has its own
/// weight, unless weights are [shared](Self::share) or values have a [codebook](Self::codebook).
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
    /// The maximum width of each region.
    widths: Vec<usize>,
    output_width: usize,
    products: Vec<Product>,
    codebook: Option<usize>,
    share: usize,
}

impl Structure {
    /// A structure over a tree. `leaf` returns the variable and the input functions for each
    /// position.
    pub fn new<B: Into<Arc<Basis>>>(
        tree: RegionTree,
        leaf: impl FnMut(usize) -> (Variable, B),
    ) -> Self {
        let leaves = (0..tree.num_variables()).map(leaf);
        let (variables, bases) = leaves.map(|(v, b)| (v, b.into())).unzip();
        let products = vec![Product::default(); tree.regions().len()];
        let widths = vec![8; tree.regions().len()];
        let (output_width, codebook, share) = (1, None, 0);
        Self { tree, variables, bases, widths, output_width, products, codebook, share }
    }

    /// Sets the maximum width K of inner sums; 8 by default.
    #[must_use]
    pub fn width(mut self, width: usize) -> Self {
        self.widths.fill(width);
        self
    }

    /// Sets the maximum width of each region's sum, given the number of its variables.
    #[must_use]
    pub fn widths(mut self, mut choose: impl FnMut(usize) -> usize) -> Self {
        self.widths = self.tree.sizes().into_iter().map(&mut choose).collect();
        self
    }

    /// Sets the width r of the output, which is the number of squares that are summed; 1 by
    /// default.
    #[must_use]
    pub fn output_width(mut self, r: usize) -> Self {
        self.output_width = r;
        self
    }

    /// Sets the kind of all products; Kronecker by default.
    #[must_use]
    pub fn product(mut self, product: Product) -> Self {
        self.products.fill(product);
        self
    }

    /// Sets the kind of each region's product, given the region's position in the tree.
    #[must_use]
    pub fn products(mut self, choose: impl FnMut(usize) -> Product) -> Self {
        self.products = (0..self.products.len()).map(choose).collect();
        self
    }

    /// Adds a codebook below the weight of each variable with more than `size` values: a sum with
    /// `size` outputs, whose weight is shared by all variables with the same domain. What is
    /// learned about a value at one pixel then applies to all pixels.
    #[must_use]
    pub fn codebook(mut self, size: Option<usize>) -> Self {
        self.codebook = size;
        self
    }

    /// Lets regions of the [same kind](RegionTree::kinds) share a weight if they have at most
    /// `most` variables. Single variables share a weight if they have the same finite domain.
    #[must_use]
    pub fn share(mut self, most: usize) -> Self {
        self.share = most;
        self
    }

    /// The region tree.
    pub fn tree(&self) -> &RegionTree {
        &self.tree
    }

    /// The number of weight entries of the circuit, which is what [`build`](Self::build) draws.
    pub fn num_parameters(&self) -> u128 {
        let mut seen = BTreeSet::new();
        let sums = self.sums().into_iter().flatten();
        let distinct = sums.filter(|s| s.tie.as_ref().is_none_or(|tie| seen.insert(tie.clone())));
        distinct.fold(0, |all, s| all.saturating_add(s.rows as u128 * s.cols as u128))
    }

    /// The multiply-adds of one evaluation of the circuit: the weight entries of all sums over
    /// products. A shared weight counts every time.
    pub fn multiply_adds(&self) -> u128 {
        let regions = self.tree.regions().iter().zip(self.sums());
        let products = regions.filter(|(r, _)| matches!(r, Region::Split(_)));
        let sums = products.flat_map(|(_, sums)| sums);
        sums.fold(0, |all, s| all.saturating_add(s.rows as u128 * s.cols as u128))
    }

    /// Builds the circuit with random weights. With semi-unitary weights and orthonormal functions,
    /// it is orthonormal.
    ///
    /// # Errors
    /// A width is 0, a weight is too large, or functions are not defined on their variable's
    /// domain.
    pub fn build(&self, weights: Weights, rng: &mut impl Rng) -> Result<Circuit, CircuitError> {
        let skeleton = self.skeleton()?;
        let output = match skeleton.layer(skeleton.output()) {
            Layer::Sum { weight, .. } => Some(weight.index()),
            Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Kronecker { .. } => None,
        };
        let shapes = skeleton.weight_shapes().iter().enumerate();
        let drawn: Vec<_> = shapes
            .map(|(n, &[rows, cols])| {
                let weight = random_weight(rows, cols, weights, rng);
                if output == Some(n) && weights.is_semi_unitary() {
                    // The output's weight has unit norm instead of orthonormal rows.
                    weight.scaled((rows.min(cols) as f64).sqrt().recip())
                } else {
                    weight
                }
            })
            .collect();
        skeleton.with_weights(drawn)
    }

    /// Builds the circuit without the entries of its weights, as the starting point of learning.
    ///
    /// # Errors
    /// The same as for [`build`](Self::build).
    pub fn skeleton(&self) -> Result<Skeleton, CircuitError> {
        let mut b = CircuitBuilder::new();
        let ids: Vec<_> =
            self.variables.iter().map(|v| b.variable(v.name.clone(), v.domain.clone())).collect();
        let last = self.tree.regions().len() - 1;
        let mut tied: BTreeMap<Tie, WeightId> = BTreeMap::new();
        let mut layers: Vec<LayerId> = Vec::with_capacity(last + 1);
        for (index, (region, sums)) in self.tree.regions().iter().zip(self.sums()).enumerate() {
            let mut layer = match region {
                Region::Variable(v) => b.input(ids[*v], self.bases[*v].clone()),
                Region::Split(parts) => {
                    let inputs: Vec<LayerId> = parts.iter().map(|&p| layers[p]).collect();
                    match self.products[index] {
                        Product::Kronecker => b.kronecker(inputs),
                        Product::Hadamard => b.hadamard(inputs),
                    }
                }
            };
            for Sum { rows, cols, tie } in sums {
                if rows as u128 * cols as u128 > MAX_ENTRIES {
                    let layer = LayerId::new(layer.index() + 1);
                    return Err(CircuitError::TooLarge { layer, what: "its weight" });
                }
                let mut add = || b.weight_shape([rows, cols]);
                let weight = match tie {
                    Some(tie) => *tied.entry(tie).or_insert_with(add),
                    None => add(),
                };
                layer = b.shared_sum(layer, weight);
            }
            layers.push(layer);
        }
        b.skeleton(layers[last])
    }

    /// The sums of each region, starting above its functions or its product.
    fn sums(&self) -> Vec<Vec<Sum>> {
        let widths = self.widths_of_sums();
        let (sizes, kinds) = (self.tree.sizes(), self.tree.kinds());
        let last = widths.len() - 1;
        let mut sums: Vec<Vec<Sum>> = Vec::with_capacity(widths.len());
        for (index, region) in self.tree.regions().iter().enumerate() {
            let Widths { inputs, outputs, is_bare } = widths[index];
            let rows = if index == last { self.output_width } else { outputs };
            let is_shared = index != last && sizes[index] <= self.share;
            let mut cols = inputs;
            let mut of_region = Vec::new();
            let tie = match region {
                Region::Variable(v) => {
                    if is_bare && index != last {
                        sums.push(of_region);
                        continue;
                    }
                    let is_finite = matches!(*self.bases[*v], Basis::Indicator(_));
                    if let Some(size) = self.codebook.filter(|&m| is_finite && m < inputs) {
                        let tie = Some(Tie::Codebook(inputs));
                        of_region.push(Sum { rows: size, cols, tie });
                        cols = size;
                        if rows == size && index != last {
                            sums.push(of_region);
                            continue;
                        }
                    }
                    (is_finite && is_shared).then(|| Tie::Kind(kinds[index], vec![rows, cols]))
                }
                Region::Split(parts) => is_shared.then(|| {
                    let below = parts.iter().map(|&p| widths[p].outputs);
                    Tie::Kind(kinds[index], std::iter::once(rows).chain(below).collect())
                }),
            };
            of_region.push(Sum { rows, cols, tie });
            sums.push(of_region);
        }
        sums
    }

    /// The widths of every region: from the bottom up, what each can have; from the top down, what
    /// a Hadamard product above it allows.
    fn widths_of_sums(&self) -> Vec<Widths> {
        let regions = self.tree.regions();
        let mut widths: Vec<Widths> = Vec::with_capacity(regions.len());
        for (index, region) in regions.iter().enumerate() {
            let mut most = self.widths[index];
            let inputs = match region {
                Region::Variable(v) => {
                    if let (Some(size), Basis::Indicator(_)) = (self.codebook, &*self.bases[*v]) {
                        most = most.min(size);
                    }
                    self.bases[*v].width()
                }
                Region::Split(parts) => {
                    self.combine(index, parts.iter().map(|&p| widths[p].outputs))
                }
            };
            widths.push(Widths { inputs, outputs: inputs.min(most), is_bare: inputs <= most });
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

    /// The width of a region's product, given the widths of its parts.
    fn combine(&self, index: usize, parts: impl Iterator<Item = usize>) -> usize {
        match self.products[index] {
            Product::Kronecker => parts.fold(1, usize::saturating_mul),
            Product::Hadamard => parts.min().unwrap_or(0),
        }
    }
}

/// A sum layer, given by the shape of its weight.
struct Sum {
    rows: usize,
    cols: usize,
    /// The sums that share this weight; `None` if it belongs to this sum only.
    tie: Option<Tie>,
}

/// What sums that share a weight have in common.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Tie {
    /// The number of values of their variables.
    Codebook(usize),
    /// The kind of their regions, and the widths above and below them.
    Kind(usize, Vec<usize>),
}

/// The widths of the input and the output of a region's sum layer.
struct Widths {
    inputs: usize,
    outputs: usize,
    /// Whether the functions of a variable need no sum layer.
    is_bare: bool,
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::Orthonormal;
    use crate::circuit::{Layer, Weight};
    use crate::domain::Domain;

    fn images(levels: usize) -> Structure {
        let leaf = |v: usize| {
            (Variable::new(format!("x{v}"), Domain::Finite(levels)), Basis::indicator(levels))
        };
        Structure::new(RegionTree::aligned_image(4, 4, 1), leaf).width(3)
    }

    #[test]
    fn shared_weights_are_counted_once() {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        for (structure, weights) in [
            (images(5), 31),
            (images(5).share(1), 16),
            // One weight each for pixels, 1 × 2 and 2 × 2 pixels, and 3 above.
            (images(5).share(4), 6),
            (images(5).share(16), 5),
            (images(5).codebook(Some(4)), 32),
            (images(5).codebook(Some(3)), 16),
            (images(5).codebook(Some(2)).share(1), 16),
            (images(3).codebook(Some(3)), 15),
        ] {
            let circuit = structure.build(Weights::Haar, rng).unwrap();
            assert_eq!(circuit.weights().len(), weights);
            assert_eq!(circuit.num_parameters() as u128, structure.num_parameters());
            let kron = |l: &Layer| match l {
                Layer::Sum { input, weight }
                    if matches!(circuit.layer(*input), Layer::Kronecker { .. }) =>
                {
                    circuit.weight(*weight).rows() * circuit.weight(*weight).cols()
                }
                _ => 0,
            };
            let all: usize = circuit.layer_ids().map(|id| kron(circuit.layer(id))).sum();
            assert_eq!(all as u128, structure.multiply_adds());
            Orthonormal::verify(circuit).unwrap();
        }
    }

    #[test]
    fn widths_grow_with_regions() {
        let rng = &mut ChaCha8Rng::seed_from_u64(1);
        let structure = images(5).widths(|size| if size < 4 { 2 } else { 6 });
        let circuit = structure.build(Weights::Haar, rng).unwrap();
        let mut widths: Vec<usize> = circuit.weights().iter().map(Weight::rows).collect();
        widths.sort_unstable();
        // 16 pixels and 8 pairs have width 2; 2 × 2 pixels have width 4, the most that two pairs
        // allow; larger regions have width 6; one output.
        assert_eq!(widths, [vec![1], vec![2; 24], vec![4; 4], vec![6; 2]].concat());
    }
}
