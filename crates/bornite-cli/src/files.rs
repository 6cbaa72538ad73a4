//! Circuits and pictures, in from files and out to them.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use bornite::circuit::Layer;
use bornite::ops::orthonormalize;
use bornite::{Basis, Circuit, Model, Orthonormal, Query, file};

/// Reads a circuit file.
pub(crate) fn load(path: &Path) -> Result<Circuit> {
    Ok(file::load(path)?)
}

/// Writes a circuit file, whole or not at all.
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

/// The circuit as it is where it is orthonormal, and orthonormalized otherwise.
pub(crate) fn into_orthonormal(circuit: Circuit) -> Result<Orthonormal> {
    if is_squared(&circuit) {
        return Ok(orthonormalize(&circuit)?.circuit);
    }
    match Orthonormal::verify(circuit) {
        Ok(orthonormal) => Ok(orthonormal),
        Err(not) => Ok(orthonormalize(&not.circuit)?.circuit),
    }
}

/// What a file holds.
#[derive(Debug)]
pub(crate) enum Loaded {
    Model(Box<Model>),
    Circuit(Circuit),
}

/// Reads a model file, or a circuit file that is none.
pub(crate) fn load_any(path: &Path) -> Result<Loaded> {
    match Model::load(path) {
        Ok(model) => Ok(Loaded::Model(Box::new(model))),
        Err(e) if e.is_not_a_model() => Ok(Loaded::Circuit(load(path)?)),
        Err(e) => Err(e.into()),
    }
}

/// Writes a text file, whole or not at all.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<()> {
    write_bytes(path, text.as_bytes())
}

/// Writes a file, whole or not at all: under another name in the same folder first. A device is written to as it is.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |e: std::io::Error| {
        anyhow!(
            "{}: cannot write the file: {e}; is the folder there, and may you write to it?",
            path.display()
        )
    };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            return Err(anyhow!("{}: this is a folder; give the name of a file", path.display()));
        }
        Ok(found) if !found.is_file() => return fs::write(path, bytes).map_err(failed),
        _ => {}
    }
    let temporary = temporary_name(path);
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // It may not even be there.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(failed)
}

fn temporary_name(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}
