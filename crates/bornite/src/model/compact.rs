//! Compact models: weights are stored as small integers and orthonormalized again when read.
//!
//! Reading uses a fixed order of IEEE 754 operations, so that every reader gets the same bits.

use serde::{Deserialize, Serialize};

use super::{Info, Model, ModelError};
use crate::basis::{Basis, MAX_STEP_FUNCTIONS};
use crate::circuit::{Circuit, CircuitBuilder, Layer, LayerId, Orthonormal, VariableId, Weight};
use crate::codec::{CodecError, Numbers, pack, unpack};
use crate::data::Schema;
use crate::linalg::{Complex64, Matrix};
use crate::memory;
use crate::mixture::Mixture;

/// The number of weight distributions: weights over input functions, and weights over products.
const DISTRIBUTIONS: usize = 2;
/// The maximum number of weight entries of a model that is read.
const MAX_ENTRIES: usize = 1 << 26;
/// The number of entries that any model may have, and how many more each byte of coded weights allows. Genuine weights
/// take several bits each; an exhausted decoder would produce zeros forever.
const FREE_ENTRIES: usize = 1 << 12;
const ENTRIES_PER_BYTE: usize = 1 << 9;
/// The corresponding limits for the multiply-adds that orthonormalize the weights.
const FREE_WORK: usize = 1 << 28;
const WORK_PER_BYTE: usize = 1 << 12;
/// The multiply-adds that step functions may take in any model, and the approximate number of steps of a column.
const FREE_STEP_WORK: u128 = 1 << 32;
const STEPS: u128 = 320;

/// The maximum number of bytes of a decompressed frame.
const MAX_FRAME: u64 = 1 << 28;

/// Everything in a model except its weights.
#[derive(Debug, Serialize, Deserialize)]
struct Frame {
    schema: Schema,
    /// The number of input functions of continuous variables.
    functions: usize,
    /// Whether the input functions of numbers on a grid are steps; in earlier files, they are polynomials.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    steps: bool,
    layers: Vec<CompactLayer>,
    is_complex: bool,
    /// Weights are integers times 2^−bits.
    bits: u8,
}

/// A layer, by the indices of its inputs.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum CompactLayer {
    /// An input layer over this variable.
    #[serde(rename = "i")]
    Input(usize),
    #[serde(rename = "h")]
    Hadamard(Vec<usize>),
    #[serde(rename = "k")]
    Kronecker(Vec<usize>),
    /// A sum over this input, with this many rows in its weight.
    #[serde(rename = "s")]
    Sum(usize, usize),
}

/// A compact model: its bytes, and the model that a reader of them gets.
#[derive(Debug)]
pub(super) struct Compact {
    pub(super) bytes: Vec<u8>,
    pub(super) model: Model,
}

impl Compact {
    /// Rounds the weights of a model to multiples of 2^−bits. `None` if the model has several circuits, or a circuit
    /// that this format cannot represent.
    pub(super) fn new(model: &Model, bits: u8) -> Result<Option<Self>, ModelError> {
        let circuit: &Circuit = model.circuit();
        let is_one = model.mixture.circuits().len() == 1;
        let Some(frame) = Frame::of(model, bits).filter(|_| is_one) else { return Ok(None) };
        let scale = f64::from(1_u32 << bits);
        let mut numbers = Vec::new();
        for layer in circuit.layers() {
            let Layer::Sum { input, weight } = layer else { continue };
            let kind = kind(circuit, *input);
            let weight = circuit.weight(*weight).to_matrix::<Complex64>();
            let round = |x: f64| (kind, (x * scale).round_ties_even() as i32);
            for z in weight.data() {
                numbers.push(round(z.re));
                if frame.is_complex {
                    numbers.push(round(z.im));
                }
            }
        }
        let frame = pack(&serde_json::to_vec(&frame).map_err(|_| damaged())?);
        let mut bytes = (frame.len() as u64).to_le_bytes().to_vec();
        bytes.extend(frame);
        bytes.extend(Numbers::encode(numbers.iter().map(|(m, x)| (*m, x)), DISTRIBUTIONS));
        // Readers reject weights that round to almost nothing but zeros, and such weights are useless anyway.
        Ok(Self::read(&bytes).ok().map(|model| Self { bytes, model }))
    }

    /// Reads a model.
    pub(super) fn read(bytes: &[u8]) -> Result<Model, ModelError> {
        let length = bytes.first_chunk().map(|&b| u64::from_le_bytes(b)).ok_or_else(damaged)?;
        let (frame, numbers) = usize::try_from(length)
            .ok()
            .and_then(|n| bytes[8..].split_at_checked(n))
            .ok_or_else(damaged)?;
        let frame: Frame =
            serde_json::from_slice(&unpack(frame, MAX_FRAME)?).map_err(|_| damaged())?;
        let circuit = frame.circuit(numbers)?;
        let circuit = Orthonormal::verify(circuit).map_err(|_| damaged())?;
        super::file::check(&circuit, bytes.len())?;
        Ok(Model::new(frame.schema, Mixture::from(circuit), Info::unknown()))
    }
}

fn damaged() -> CodecError {
    CodecError::Damaged { what: "its model was altered" }
}

/// The distribution that codes a weight, by the layer below it.
fn kind(circuit: &Circuit, input: LayerId) -> usize {
    usize::from(!matches!(circuit.layer(input), Layer::Input { .. }))
}

/// The atoms of a basis of step functions; `None` if it is another one.
fn atoms_beside_steps(basis: &Basis) -> Option<&[f64]> {
    matches!(basis.rest(), Basis::Steps(_)).then(|| basis.atoms())
}

impl Frame {
    fn of(model: &Model, bits: u8) -> Option<Self> {
        let circuit: &Circuit = model.circuit();
        let mut functions = 1;
        let mut layers = Vec::with_capacity(circuit.num_layers());
        let indices = |inputs: &[LayerId]| inputs.iter().map(|i| i.index()).collect();
        for layer in circuit.layers() {
            layers.push(match layer {
                Layer::Input { variable, basis } => {
                    if circuit.variable(*variable).domain.num_values().is_none() {
                        // There are fewer where a grid has fewer cells.
                        let atoms = circuit.variable(*variable).domain.atoms().len();
                        functions = functions.max(basis.width() - atoms);
                    }
                    CompactLayer::Input(variable.index())
                }
                Layer::Hadamard { inputs } => CompactLayer::Hadamard(indices(inputs)),
                Layer::Kronecker { inputs } => CompactLayer::Kronecker(indices(inputs)),
                Layer::Sum { input, weight } => {
                    CompactLayer::Sum(input.index(), circuit.weight(*weight).rows())
                }
            });
        }
        let is_complex = circuit.weights().iter().any(|w| matches!(w, Weight::Complex(_)));
        let has_steps = |layer: &Layer| matches!(layer, Layer::Input { basis, .. } if atoms_beside_steps(basis).is_some());
        let steps = circuit.layers().iter().any(has_steps);
        let schema = model.schema.clone();
        let frame = Self { schema, functions, steps, layers, is_complex, bits };
        // This format only represents the schema's own bases, and outputs at the end.
        let bases = frame.bases(usize::MAX).ok()?;
        let fits = |layer: &Layer| match layer {
            Layer::Input { variable, basis } => **basis == bases[variable.index()],
            Layer::Hadamard { .. } | Layer::Kronecker { .. } | Layer::Sum { .. } => true,
        };
        let is_last = circuit.output().index() + 1 == circuit.num_layers();
        (is_last && circuit.layers().iter().all(fits)).then_some(frame)
    }

    /// The input functions of all variables. Rejects more than a file of this many bytes may ask for.
    fn bases(&self, bytes: usize) -> Result<Vec<Basis>, ModelError> {
        let functions = self.functions.min(MAX_STEP_FUNCTIONS) as u128;
        let entries = self.schema.num_grids() as u128 * STEPS * functions;
        let needed = entries.saturating_mul(size_of::<f64>() as u128);
        memory::check("the input functions of a model", needed, bytes as u64)?;
        let work = entries.saturating_mul(functions);
        if work > FREE_STEP_WORK + bytes as u128 * WORK_PER_BYTE as u128 {
            return Err(damaged().into());
        }
        let mut bases = self.schema.bases(self.functions)?;
        if !self.steps {
            for basis in &mut bases {
                if let Some(points) = atoms_beside_steps(basis) {
                    let polynomials = Basis::legendre(self.functions, 0.0, 1.0)?;
                    *basis = match points {
                        [] => polynomials,
                        points => polynomials.with_atoms(points)?,
                    };
                }
            }
        }
        Ok(bases)
    }

    /// Builds the circuit from the coded integers of its weights.
    fn circuit(&self, numbers: &[u8]) -> Result<Circuit, ModelError> {
        let bases = self.bases(numbers.len())?;
        let shapes = self.shapes(&bases, numbers.len())?;
        let parts = 1 + usize::from(self.is_complex);
        let kinds = shapes
            .iter()
            .flat_map(|&(kind, rows, cols)| std::iter::repeat_n(kind, rows * cols * parts));
        let numbers = Numbers::decode(numbers, kinds, DISTRIBUTIONS)?;
        let scale = f64::from(1_u32.checked_shl(self.bits.into()).ok_or_else(damaged)?);
        let mut numbers = numbers.iter().map(|&n| f64::from(n) / scale);
        let mut next = || numbers.next().unwrap_or(0.0);
        let mut builder = CircuitBuilder::over(&self.schema.variables());
        let ids = |inputs: &[usize]| inputs.iter().map(|&i| LayerId::new(i)).collect::<Vec<_>>();
        let mut sums = shapes.iter();
        let mut output = LayerId::new(0);
        for (index, layer) in self.layers.iter().enumerate() {
            output = match layer {
                CompactLayer::Input(v) => {
                    builder.input(VariableId::new(*v), bases.get(*v).ok_or_else(damaged)?.clone())
                }
                CompactLayer::Hadamard(inputs) => builder.hadamard(ids(inputs)),
                CompactLayer::Kronecker(inputs) => builder.kronecker(ids(inputs)),
                CompactLayer::Sum(input, _) => {
                    let &(_, rows, cols) = sums.next().ok_or_else(damaged)?;
                    let entry =
                        |_, _| Complex64::new(next(), if parts == 2 { next() } else { 0.0 });
                    let mut weight = Matrix::from_fn(rows, cols, entry);
                    let is_output = index + 1 == self.layers.len();
                    normalize(&mut weight, is_output);
                    let input = LayerId::new(*input);
                    if self.is_complex {
                        builder.sum(input, weight)
                    } else {
                        builder.sum(input, weight.map(|z| z.re))
                    }
                }
            };
        }
        Ok(builder.build(output)?)
    }

    /// The distribution, rows and columns of every sum's weight. Rejects sizes that this many coded bytes cannot
    /// plausibly hold.
    fn shapes(
        &self,
        bases: &[Basis],
        coded: usize,
    ) -> Result<Vec<(usize, usize, usize)>, ModelError> {
        let limit = |free: usize, per_byte| coded.saturating_mul(per_byte).saturating_add(free);
        let max_entries = limit(FREE_ENTRIES, ENTRIES_PER_BYTE).min(MAX_ENTRIES);
        let (max_work, mut work) = (limit(FREE_WORK, WORK_PER_BYTE), 0_usize);
        let mut widths: Vec<usize> = Vec::with_capacity(self.layers.len());
        let (mut shapes, mut total) = (Vec::new(), 0_usize);
        for layer in &self.layers {
            let width = |i: &usize| widths.get(*i).copied().ok_or_else(damaged);
            let of_product = |inputs: &[usize]| -> Result<usize, CodecError> {
                inputs.iter().try_fold(1_usize, |n, i| n.checked_mul(width(i)?).ok_or_else(damaged))
            };
            let own = match layer {
                CompactLayer::Input(v) => bases.get(*v).ok_or_else(damaged)?.width(),
                CompactLayer::Hadamard(inputs) => width(inputs.first().ok_or_else(damaged)?)?,
                CompactLayer::Kronecker(inputs) => of_product(inputs)?,
                CompactLayer::Sum(input, rows) => {
                    let cols = width(input)?;
                    let is_output = widths.len() + 1 == self.layers.len();
                    // More rows than columns cannot be orthonormal.
                    if *rows == 0 || cols == 0 || (*rows > cols && !is_output) {
                        return Err(damaged().into());
                    }
                    let entries = rows.checked_mul(cols).and_then(|n| total.checked_add(n));
                    total = entries.filter(|&n| n <= max_entries).ok_or_else(damaged)?;
                    work = (rows * cols).saturating_mul(*rows).saturating_add(work);
                    if work > max_work && !is_output {
                        return Err(damaged().into());
                    }
                    let kind = usize::from(!matches!(self.layers[*input], CompactLayer::Input(_)));
                    shapes.push((kind, *rows, cols));
                    *rows
                }
            };
            widths.push(own);
        }
        Ok(shapes)
    }
}

/// A bound on the squared norm of a unit vector's remainder below which [`normalize`] would certainly reject it: half
/// of the bound there.
const HOPELESS: f64 = 5e-13;

/// Orthonormalizes the rows one after another, twice to cancel rounding errors. The weight of the output gets Frobenius
/// norm 1 instead.
fn normalize(weight: &mut Matrix<Complex64>, is_output: bool) {
    let cols = weight.cols();
    if is_output {
        let norm = norm(weight.data());
        return divide(weight.data_mut(), norm);
    }
    for i in 0..weight.rows() {
        // Replace a linearly dependent row by the first unit vector that is independent of the rows before it.
        for attempt in 0..=cols {
            let (before, rest) = weight.data_mut().split_at_mut(i * cols);
            let row = &mut rest[..cols];
            if let Some(unit) = attempt.checked_sub(1) {
                // The norm of the remainder follows from the entries of the rows before, so most attempts can be
                // skipped.
                let along = before.chunks_exact(cols).map(|other| other[unit].norm_sqr());
                if 1.0 - along.sum::<f64>() < HOPELESS {
                    continue;
                }
                row.fill(Complex64::ZERO);
                row[unit] = Complex64::ONE;
            }
            let size = norm(row);
            for _ in 0..2 {
                for other in before.chunks_exact(cols) {
                    subtract(row, other);
                }
            }
            let left = norm(row);
            if left > 1e-6 * size && left > 0.0 {
                divide(row, left);
                break;
            }
        }
    }
}

fn norm(row: &[Complex64]) -> f64 {
    row.iter().fold(0.0, |sum, z| sum + (z.re * z.re + z.im * z.im)).sqrt()
}

fn divide(row: &mut [Complex64], by: f64) {
    for z in row {
        *z = Complex64::new(z.re / by, z.im / by);
    }
}

/// Subtracts the projection of a row onto a unit vector.
fn subtract(row: &mut [Complex64], other: &[Complex64]) {
    let pairs = row.iter().zip(other);
    let along = pairs.fold(Complex64::ZERO, |sum, (z, o)| sum + z * o.conj());
    for (z, o) in row.iter_mut().zip(other) {
        *z -= along * o;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{CsvOptions, InferOptions, Table};

    /// A frame of columns of numbers on a grid, the last of which has few cells.
    fn frame(steps: bool, functions: usize, columns: usize) -> Frame {
        let names: Vec<String> = (0..columns).map(|n| format!("c{n}")).collect();
        let mut text = names.join(",");
        for row in 0..80 {
            let cell = |n| {
                if n + 1 == columns {
                    format!("{}", 100 * (row * row % 7))
                } else {
                    format!("{:.2}", 1.37 * f64::from(row * row % 61))
                }
            };
            text += &("\n".to_owned() + &(0..columns).map(cell).collect::<Vec<_>>().join(","));
        }
        let table = Table::from_csv_bytes(text.as_bytes(), "t", &CsvOptions::default()).unwrap();
        let schema = Schema::infer(&table, &InferOptions::default()).unwrap();
        Frame { schema, functions, steps, layers: Vec::new(), is_complex: false, bits: 4 }
    }

    #[test]
    fn earlier_files_have_polynomials_on_grids() {
        let bases = frame(true, 12, 2).bases(0).unwrap();
        assert!(atoms_beside_steps(&bases[0]).is_some(), "{:?}", bases[0]);
        let earlier = frame(false, 12, 2);
        let text = serde_json::to_string(&earlier).unwrap();
        assert!(!text.contains("steps"), "{text}");
        let read: Frame = serde_json::from_str(&text).unwrap();
        let bases = read.bases(0).unwrap();
        assert_eq!(bases[0], Basis::legendre(12, 0.0, 1.0).unwrap());
        assert!(bases.iter().all(|basis| atoms_beside_steps(basis).is_none()));
    }

    #[test]
    fn a_few_bytes_do_not_ask_for_many_step_functions() {
        assert!(frame(true, 96, 20).bases(0).is_ok());
        let error = frame(true, 256, 300).bases(0).unwrap_err();
        assert!(matches!(error, ModelError::Codec(_)), "{error}");
    }
}
