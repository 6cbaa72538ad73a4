//! Digests that identify the model of a stream.

use std::fmt;

use crate::basis::Basis;
use crate::circuit::{Circuit, Layer, Weight};
use crate::digest::Words;
use crate::linalg::{Complex64, Matrix};

/// A 128-bit digest of everything in a circuit that the codec computes with: the numbers of values, the layers and
/// every bit of the weights, but not the names of the variables.
///
/// Two circuits that differ in a single number never share a digest. Other circuits collide with a probability of
/// 2⁻¹²⁸, unless constructed on purpose. `docs/FORMAT.md` defines the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(pub(super) [u8; 16]);

impl Digest {
    /// The digest of a circuit over finite variables.
    pub(super) fn of(circuit: &Circuit) -> Self {
        let mut hash = Hash(Words::new());
        hash.count(circuit.num_variables());
        for variable in circuit.variables() {
            hash.count(variable.domain.num_values().unwrap_or(0));
        }
        hash.count(circuit.num_layers());
        for layer in circuit.layers() {
            hash.layer(layer);
        }
        hash.count(circuit.output().index());
        hash.count(circuit.weights().len());
        for weight in circuit.weights() {
            match weight {
                Weight::Real(m) => hash.real_matrix(m),
                Weight::Complex(m) => hash.complex_matrix(m),
            }
        }
        Self(hash.0.to_bytes())
    }

    /// Adds a text that describes the meaning of the variables.
    pub(super) fn with_text(self, text: &str) -> Self {
        let mut hash = Hash(Words::continued(self.0));
        hash.count(text.len());
        for piece in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            hash.word(u64::from_le_bytes(word));
        }
        Self(hash.0.to_bytes())
    }

    /// The bytes, as in a stream.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes circuits.
struct Hash(Words);

impl Hash {
    fn word(&mut self, word: u64) {
        self.0.add(word);
    }

    fn count(&mut self, n: usize) {
        self.word(n as u64);
    }

    fn layer(&mut self, layer: &Layer) {
        let kind = match layer {
            Layer::Input { .. } => 0,
            Layer::Hadamard { .. } => 1,
            Layer::Kronecker { .. } => 2,
            Layer::Sum { .. } => 3,
        };
        self.count(kind);
        match layer {
            Layer::Input { variable, basis } => {
                self.count(variable.index());
                self.basis(basis);
            }
            Layer::Hadamard { inputs } | Layer::Kronecker { inputs } => {
                self.count(inputs.len());
                for input in inputs {
                    self.count(input.index());
                }
            }
            Layer::Sum { input, weight } => {
                self.count(input.index());
                self.count(weight.index());
            }
        }
    }

    fn basis(&mut self, basis: &Basis) {
        match basis {
            Basis::Indicator(_) => self.count(0),
            Basis::Table(table) => {
                self.count(1);
                self.complex_matrix(table.values());
            }
            Basis::Transformed(transformed) => {
                self.count(2);
                self.complex_matrix(transformed.transform());
                self.basis(transformed.base());
            }
            // No other basis has a finite domain.
            Basis::Fourier(_)
            | Basis::Legendre(_)
            | Basis::Laguerre(_)
            | Basis::Hermite(_)
            | Basis::Gaussian(_)
            | Basis::BSpline(_)
            | Basis::Squared(_)
            | Basis::Atoms(_)
            | Basis::Steps(_) => self.count(3),
        }
    }

    fn real_matrix(&mut self, m: &Matrix<f64>) {
        for n in [0, m.rows(), m.cols()] {
            self.count(n);
        }
        for x in m.data() {
            self.word(x.to_bits());
        }
    }

    fn complex_matrix(&mut self, m: &Matrix<Complex64>) {
        for n in [1, m.rows(), m.cols()] {
            self.count(n);
        }
        for z in m.data() {
            self.word(z.re.to_bits());
            self.word(z.im.to_bits());
        }
    }
}
