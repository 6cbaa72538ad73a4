//! Circuit files: JSON for writing by hand, safetensors for large circuits. `docs/FORMAT.md` is the reference.
//!
//! Both formats preserve every bit of a circuit, and loading performs the same checks as
//! [`CircuitBuilder`](crate::CircuitBuilder). Truncated, damaged or inconsistent files are rejected with an error that
//! gives the location.
//!
//! ```
//! let circuit = bornite::file::from_json(
//!     r#"{"variables": [{"name": "x", "domain": {"finite": 2}}],
//!         "layers": [{"kind": "input", "variable": "x", "basis": {"kind": "indicator"}},
//!                    {"kind": "sum", "input": 0, "weight": [[0.6, [0, 0.8]]]}],
//!         "output": 1}"#,
//! )?;
//! let bytes = bornite::file::to_bytes(&circuit)?;
//! assert_eq!(bornite::file::from_bytes(&bytes)?, circuit);
//! # Ok::<(), bornite::Error>(())
//! ```

mod disk;
mod error;
mod json;
pub mod limits;
mod safetensors;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use error::FileError;

pub use crate::disk::remove_unfinished;

use crate::circuit::Circuit;

/// Reads a circuit from a file of either format, which is detected from the content.
///
/// # Errors
/// The file cannot be read, or does not contain a circuit.
pub fn load(path: impl AsRef<Path>) -> Result<Circuit, FileError> {
    let path = path.as_ref();
    disk::read(path).and_then(|bytes| from_bytes(&bytes)).map_err(in_file(path))
}

/// Writes a circuit to a file: JSON if the name ends in `.json`, safetensors otherwise.
///
/// The file is written completely or not at all: an existing file is replaced only once the new one is on disk.
///
/// # Errors
/// The file cannot be written.
pub fn save(circuit: &Circuit, path: impl AsRef<Path>) -> Result<(), FileError> {
    let path = path.as_ref();
    let is_json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let written = disk::write(path, |out| {
        if !is_json {
            return safetensors::write(circuit, out);
        }
        out.write_all(to_json(circuit).as_bytes()).map_err(|source| FileError::Io {
            action: "write the file",
            source,
            remedy: "is there enough disk space?",
        })
    });
    written.map_err(in_file(path))
}

/// Writes a model: its circuits as safetensors, and a text as metadata.
pub(crate) fn save_model(
    circuits: &[&Circuit],
    model: String,
    path: &Path,
) -> Result<(), FileError> {
    let written = disk::write(path, |out| safetensors::write_model(circuits, model, out));
    written.map_err(in_file(path))
}

/// The bytes that [`save_model`] writes.
pub(crate) fn model_to_bytes(circuits: &[&Circuit], model: String) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    safetensors::write_model(circuits, model, &mut bytes)?;
    Ok(bytes)
}

/// The content of a file, for [`model_from_bytes`].
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    disk::read(path)
}

/// The circuits of a model, and its metadata.
pub(crate) fn model_from_bytes(bytes: &[u8]) -> Result<(Vec<Circuit>, String), FileError> {
    // JSON files contain only circuits, and do not start with a zero byte.
    if !bytes[..bytes.len().min(8)].contains(&0) {
        from_bytes(bytes)?;
        return Err(FileError::NotAModel);
    }
    let (circuits, model) = safetensors::read_model(bytes)?;
    Ok((circuits, model.ok_or(FileError::NotAModel)?))
}

/// Writes a circuit as JSON, with the smallest number of digits that preserve every bit.
pub fn to_json(circuit: &Circuit) -> String {
    json::write(circuit, None).text
}

/// Reads a circuit from JSON.
///
/// # Errors
/// The text is not JSON, or does not describe a circuit.
pub fn from_json(text: &str) -> Result<Circuit, FileError> {
    json::read(&json::Node::parse(text)?, None)
}

/// Writes a circuit as the bytes of a safetensors file.
///
/// # Errors
/// The circuit has so many layers that the header is too long.
pub fn to_bytes(circuit: &Circuit) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    safetensors::write(circuit, &mut bytes)?;
    Ok(bytes)
}

/// Reads a circuit from the bytes of a file of either format.
///
/// # Errors
/// The bytes have neither format, or do not describe a circuit.
pub fn from_bytes(bytes: &[u8]) -> Result<Circuit, FileError> {
    // The length of an acceptable header ends in zeros, which JSON does not contain.
    let start = &bytes[..bytes.len().min(8)];
    if start.contains(&0) {
        return safetensors::read(bytes);
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let found = match text.trim_ascii_start().first() {
        None => "is empty",
        Some(b'{') => match std::str::from_utf8(text) {
            Ok(text) => return from_json(text),
            Err(_) => "is not UTF-8 text",
        },
        Some(_) => "begins with something else",
    };
    Err(FileError::NotACircuit { found })
}

pub(crate) fn in_file(path: &Path) -> impl FnOnce(FileError) -> FileError {
    let path = path.to_owned();
    |source| FileError::InFile { path, source: Box::new(source) }
}
