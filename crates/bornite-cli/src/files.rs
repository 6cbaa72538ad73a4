//! Reading and writing circuits and plots.

use std::path::Path;

use anyhow::Result;
use bornite::circuit::Layer;
use bornite::data::{self, DataError};
use bornite::ops::orthonormalize;
use bornite::{Basis, Circuit, Model, Orthonormal, Query, file};

/// Reads a circuit file.
pub(crate) fn load(path: &Path) -> Result<Circuit> {
    Ok(file::load(path)?)
}

/// Writes a circuit file, completely or not at all.
pub(crate) fn save(circuit: &Circuit, path: &Path) -> Result<()> {
    Ok(file::save(circuit, path)?)
}

/// Reads a query about the circuit's variables.
pub(crate) fn parse_query(circuit: &Circuit, text: &str) -> Result<Query> {
    Ok(Query::parse(circuit.variables(), text)?)
}

/// Whether the circuit is a square, whose own square is not defined.
pub(crate) fn is_squared(circuit: &Circuit) -> bool {
    circuit.layers().iter().any(
        |layer| matches!(layer, Layer::Input { basis, .. } if matches!(**basis, Basis::Squared(_))),
    )
}

/// The circuit itself if it is orthonormal, otherwise its orthonormalized form.
pub(crate) fn into_orthonormal(circuit: Circuit) -> Result<Orthonormal> {
    if is_squared(&circuit) {
        return Ok(orthonormalize(&circuit)?.circuit);
    }
    match Orthonormal::verify(circuit) {
        Ok(orthonormal) => Ok(orthonormal),
        Err(not) => Ok(orthonormalize(&not.circuit)?.circuit),
    }
}

/// The content of a file.
#[derive(Debug)]
pub(crate) enum Loaded {
    Model(Box<Model>),
    Circuit(Circuit),
}

/// Reads a model file, or a circuit file that is not a model.
pub(crate) fn load_any(path: &Path) -> Result<Loaded> {
    match Model::load(path) {
        Ok(model) => Ok(Loaded::Model(Box::new(model))),
        Err(e) if e.is_not_a_model() => Ok(Loaded::Circuit(load(path)?)),
        Err(e) => Err(e.into()),
    }
}

/// Writes a text file, completely or not at all.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<()> {
    write_bytes(path, text.as_bytes())
}

/// Writes a file, completely or not at all.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = data::write_file(path, |out| {
        out.write_all(bytes).map_err(|source| DataError::Io {
            file: path.display().to_string(),
            action: "write",
            source,
        })
    });
    Ok(written?)
}
