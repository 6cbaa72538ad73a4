//! Model files: safetensors files of circuits, with the schema and the rest of the model as metadata. See
//! `docs/FORMAT.md`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Info, Model, ModelError};
use crate::circuit::{Circuit, Layer, Orthonormal};
use crate::data::{ColumnSchema, Schema};
use crate::file::{self, FileError};
use crate::linalg::Complex64;
use crate::memory::{self, OverLimit};
use crate::mixture::Mixture;
use crate::ops::log_partition;

/// The newest version of the metadata: 9 if a column has a grid with an offset, 8 if the scale of a transform has a range,
/// 7 if numbers have separators between thousands, 6 if they have decimal commas, 5 if a column has a grid with a step, 4
/// if missing is a value in a column, 3 if there are several circuits, 2 if columns of numbers have atoms or grids, and 1
/// otherwise.
const VERSION: u32 = 9;

/// The maximum number of multiply-adds of a partition function that is computed only to check a model: a fraction of a
/// second.
const MAX_PARTITION_WORK: u128 = 1 << 27;
/// The largest acceptable |log Z|: far above what rounding adds up to, far below any deviation that matters.
const MAX_LOG_PARTITION: f64 = 1e-4;

/// The metadata of a model file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    schema: Schema,
    info: Info,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    given: Vec<String>,
    /// The weights of the circuits, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    weights: Vec<f64>,
}

/// The version, which is read before the rest.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Model {
    /// Writes the model to a file, completely or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), ModelError> {
        Ok(file::save_model(&self.circuits(), self.text()?, path.as_ref())?)
    }

    /// Reads a model from a file. Checks that the file is complete, that its parts are consistent, and that its
    /// circuits are orthonormal.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or is not a model.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let bytes = file::read_bytes(path).map_err(file::in_file(path))?;
        Self::from_bytes(&bytes).map_err(|e| match e {
            ModelError::File(e) => file::in_file(path)(e).into(),
            ModelError::Memory(source) => {
                let place = "the model".to_owned();
                file::in_file(path)(FileError::Memory { place, source }).into()
            }
            other => file::in_file(path)(damaged(other)).into(),
        })
    }

    /// The content of the model's file, the same on every machine.
    ///
    /// # Errors
    /// The circuit has so many layers that the header is too long.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ModelError> {
        Ok(file::model_to_bytes(&self.circuits(), self.text()?)?)
    }

    /// Reads a model from the bytes of its file.
    ///
    /// # Errors
    /// The bytes are truncated, damaged, or not a model.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        let (circuits, text) = file::model_from_bytes(bytes)?;
        let Version { version } = serde_json::from_str(&text).map_err(damaged)?;
        if !(1..=VERSION).contains(&version) {
            let place = "the model".to_owned();
            return Err(
                FileError::Version { place, found: version.into(), known: VERSION.into() }.into()
            );
        }
        let stored: Stored = serde_json::from_str(&text).map_err(damaged)?;
        let mut verified = Vec::with_capacity(circuits.len());
        for circuit in circuits {
            if circuit.variables() != stored.schema.variables() {
                return Err(damaged("the variables of its schema and of its circuit differ").into());
            }
            let circuit = Orthonormal::verify(circuit).map_err(damaged)?;
            check(&circuit, bytes.len())?;
            verified.push(circuit);
        }
        let weights = if version < 3 { vec![1.0] } else { stored.weights };
        let mixture = Mixture::new(verified, &weights).map_err(damaged)?;
        Self::new(stored.schema, mixture, stored.info).with_given(stored.given)
    }

    fn circuits(&self) -> Vec<&Circuit> {
        self.mixture.circuits().map(|circuit| &**circuit).collect()
    }

    fn text(&self) -> Result<String, ModelError> {
        let version_of =
            |c: &ColumnSchema| c.kind.coding().format_version().max(c.storage.format_version());
        let weights = self.mixture.weights();
        let of_circuits = if weights.len() > 1 { 3 } else { 1 };
        let of_columns = self.schema.columns().iter().map(version_of).max();
        let version = of_columns.unwrap_or(1).max(of_circuits);
        let stored = Stored {
            version,
            schema: self.schema.clone(),
            info: self.info.clone(),
            given: self.given_texts.clone(),
            weights: if version < 3 { Vec::new() } else { weights },
        };
        Ok(serde_json::to_string(&stored).map_err(damaged)?)
    }
}

/// Checks a circuit from a file of this size: its engine must not take more memory than the size allows.
pub(super) fn check(circuit: &Circuit, file_bytes: usize) -> Result<(), ModelError> {
    check_columns(circuit, file_bytes)?;
    check_partition(circuit)
}

/// Checks the memory for the tables of all input functions at all values, which the engine builds.
fn check_columns(circuit: &Circuit, file_bytes: usize) -> Result<(), OverLimit> {
    let entries = circuit.layer_ids().map(|id| {
        let Layer::Input { variable, basis } = circuit.layer(id) else { return 0 };
        let values = circuit.variable(*variable).domain.num_values().unwrap_or(0);
        let consumer = circuit.consumer(id).map(|c| (c, circuit.layer(c)));
        let width = match consumer {
            Some((sum, Layer::Sum { .. })) => circuit.width(sum),
            Some((_, Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Kronecker { .. }))
            | None => basis.width(),
        };
        values as u128 * width as u128
    });
    let bytes = entries.sum::<u128>() * size_of::<Complex64>() as u128;
    memory::check("a table of all values of the variables", bytes, file_bytes as u64)
}

/// Compares the partition function of a model of moderate size with 1. This check is independent of the residuals that
/// show orthonormality; for larger models, it would take longer than reading the file.
fn check_partition(circuit: &Circuit) -> Result<(), ModelError> {
    let work = circuit.layers().iter().map(|layer| {
        let Layer::Sum { input, weight } = layer else { return 0 };
        let rows = circuit.weight(*weight).rows();
        let inputs = circuit.layer(*input).inputs().iter().map(|&i| circuit.width(i) as u128);
        rows as u128 * circuit.width(*input) as u128 * (rows as u128 + inputs.sum::<u128>())
    });
    if work.sum::<u128>() > MAX_PARTITION_WORK {
        return Ok(());
    }
    let log_partition = log_partition(circuit)?;
    // Written this way, NaN is an error too.
    if log_partition.abs() <= MAX_LOG_PARTITION {
        return Ok(());
    }
    Err(damaged(format!("its probabilities sum to exp({log_partition})")).into())
}

fn damaged(problem: impl std::fmt::Display) -> FileError {
    FileError::Model { problem: problem.to_string() }
}
