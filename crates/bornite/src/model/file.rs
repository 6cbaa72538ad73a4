//! Model files: the circuit's safetensors file, with the schema and the rest in its metadata. See `docs/FORMAT.md`.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Info, Model, ModelError};
use crate::circuit::Orthonormal;
use crate::data::{ColumnKind, ColumnSchema, Schema};
use crate::file::{self, FileError};

/// The version of the text beside the circuit: 2 with columns of numbers that have atoms or lie on grids, and 1 without.
const VERSION: u32 = 2;

/// What a model file holds beside the circuit.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    schema: Schema,
    info: Info,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    given: Vec<String>,
}

/// The version alone, which is read first.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Model {
    /// Writes the model to a file, whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), ModelError> {
        Ok(file::save_model(&self.circuit, self.text()?, path.as_ref())?)
    }

    /// Reads a model from a file, and checks that all of it is there, that its parts belong together and that the circuit is
    /// orthonormal.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or holds no model.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let bytes = file::read_bytes(path).map_err(file::in_file(path))?;
        Self::from_bytes(&bytes).map_err(|e| match e {
            ModelError::File(e) => file::in_file(path)(e).into(),
            other => file::in_file(path)(damaged(other)).into(),
        })
    }

    /// The bytes of the model's file, the same on every machine.
    ///
    /// # Errors
    /// A circuit of so many layers that the header is too long.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ModelError> {
        Ok(file::model_to_bytes(&self.circuit, self.text()?)?)
    }

    /// Reads a model from the bytes of its file.
    ///
    /// # Errors
    /// They are cut short, damaged, or no model.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ModelError> {
        let (circuit, text) = file::model_from_bytes(bytes)?;
        let Version { version } = serde_json::from_str(&text).map_err(damaged)?;
        if !(1..=VERSION).contains(&version) {
            let place = "the model".to_owned();
            return Err(
                FileError::Version { place, found: version.into(), known: VERSION.into() }.into()
            );
        }
        let stored: Stored = serde_json::from_str(&text).map_err(damaged)?;
        if circuit.variables() != stored.schema.variables() {
            return Err(damaged("its schema has other variables than its circuit").into());
        }
        let circuit = Orthonormal::verify(circuit).map_err(damaged)?;
        Self::new(stored.schema, circuit, stored.info).with_given(stored.given)
    }

    fn text(&self) -> Result<String, ModelError> {
        let is_number = |c: &ColumnSchema| matches!(c.kind, ColumnKind::Number(_));
        let has_numbers = self.schema.columns().iter().any(is_number);
        let stored = Stored {
            version: if has_numbers { VERSION } else { 1 },
            schema: self.schema.clone(),
            info: self.info.clone(),
            given: self.given_texts.clone(),
        };
        Ok(serde_json::to_string(&stored).map_err(damaged)?)
    }
}

fn damaged(problem: impl std::fmt::Display) -> FileError {
    FileError::Model { problem: problem.to_string() }
}
