//! A circuit that is wider where a fitted one uses its whole width.

use crate::circuit::{CircuitBuilder, Layer, LayerId, Orthonormal, Skeleton};
use crate::ops::{Environments, MAX_ENTRIES};

/// A layer is full if this fraction of its directions, those with the least probability, ...
const LAST_DIRECTIONS: f64 = 0.25;
/// ... has at least this probability, ...
const FULL: f64 = 0.01;
/// ... and at least this fraction of that of the fullest layer.
const OF_FULLEST: f64 = 0.8;
/// Full layers become wider by this factor.
const FACTOR: usize = 2;

/// The circuit with more outputs at the inner sums that are full; `None` if there are none, or if
/// the circuit shares weights or has Hadamard products, which do not grow.
///
/// The reduced density of a layer is what the rest of the circuit knows about it. Its eigenvalues
/// say how much probability would be lost with fewer outputs (see
/// [`truncate`](crate::ops::truncate())). So they also tell where more outputs would be used: where
/// even the last ones have much of the probability.
pub(super) fn widened(circuit: &Orthonormal) -> Option<Skeleton> {
    let environments = Environments::new(circuit);
    let share = |id: LayerId| {
        let Layer::Sum { input, .. } = circuit.layer(id) else { return 0.0 };
        if id == circuit.output() || circuit.width(id) >= circuit.width(*input) {
            return 0.0;
        }
        let spectrum = environments.spectrum(id).unwrap_or_default();
        let last = (LAST_DIRECTIONS * spectrum.len() as f64).ceil() as usize;
        let of_last: f64 = spectrum[spectrum.len() - last..].iter().sum();
        of_last / spectrum.iter().sum::<f64>()
    };
    let shares: Vec<f64> = circuit.layer_ids().map(share).collect();
    let fullest = shares.iter().copied().fold(0.0, f64::max);
    let is_full = |id: LayerId| shares[id.index()] >= FULL.max(OF_FULLEST * fullest);
    let widths = circuit.layer_ids().map(|id| {
        let width = circuit.width(id);
        if is_full(id) { FACTOR * width } else { width }
    });
    let wide = with_widths(circuit, &widths.collect::<Vec<_>>())?;
    wide.layer_ids().any(|id| wide.width(id) > circuit.width(id)).then_some(wide)
}

/// The circuit with these widths of its sums, or fewer if they have fewer inputs; `None` if it
/// shares weights, has Hadamard products, or a weight would be too large.
pub(super) fn with_widths(circuit: &Skeleton, widths: &[usize]) -> Option<Skeleton> {
    let mut new: Vec<usize> = Vec::with_capacity(circuit.num_layers());
    let mut shapes = vec![None; circuit.weight_shapes().len()];
    for (id, &width) in circuit.layer_ids().zip(widths) {
        let width = match circuit.layer(id) {
            Layer::Input { .. } => circuit.width(id),
            Layer::Hadamard { .. } => return None,
            Layer::Kronecker { inputs } => {
                inputs.iter().try_fold(1_usize, |all, input| all.checked_mul(new[input.index()]))?
            }
            Layer::Sum { input, weight } => {
                let cols = new[input.index()];
                let rows = width.clamp(1, cols);
                let is_large = rows as u128 * cols as u128 > MAX_ENTRIES;
                if is_large || shapes[weight.index()].replace([rows, cols]).is_some() {
                    return None;
                }
                rows
            }
        };
        new.push(width);
    }
    let mut b = CircuitBuilder::over(circuit.variables());
    for shape in shapes {
        b.weight_shape(shape?);
    }
    for layer in circuit.layers() {
        b.push(layer.clone());
    }
    b.skeleton(circuit.output()).ok()
}

/// The width of a circuit whose layers all have the same width and that costs about as much as this
/// one.
pub(super) fn mean_width(circuit: &Skeleton) -> usize {
    let products = circuit.layers().iter().filter_map(|layer| match layer {
        Layer::Sum { input, weight } => {
            let is_product = matches!(circuit.layer(*input), Layer::Kronecker { .. });
            let [rows, cols] = circuit.weight_shapes()[weight.index()];
            is_product.then_some((rows * cols) as f64)
        }
        Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Kronecker { .. } => None,
    });
    let (count, sum) = products.fold((0.0, 0.0), |(n, sum), entries| (n + 1.0, sum + entries));
    (sum / f64::max(count, 1.0)).cbrt().round() as usize
}

/// The largest width of the inner sums.
pub(crate) fn largest_width(circuit: &Skeleton) -> usize {
    let is_inner =
        |id: &LayerId| *id != circuit.output() && matches!(circuit.layer(*id), Layer::Sum { .. });
    circuit.layer_ids().filter(is_inner).map(|id| circuit.width(id)).max().unwrap_or(1)
}
