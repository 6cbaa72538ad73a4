//! Circuits as safetensors files: JSON in the header, followed by the matrices as tensors.
//!
//! The `safetensors` crate writes the header, but this module reads it: the crate adds lengths from the file without
//! checking for overflow, and its errors do not name the tensor.

use std::collections::BTreeMap;
use std::io::{self, Write};

use safetensors::tensor::{Dtype, Metadata, TensorInfo};

use super::FileError;
use super::json::{self, Data, Fields, Node, Place, Written, named, objects, text, wholes};
use super::limits::MAX_HEADER;
use crate::circuit::{Circuit, Weight};
use crate::digest::Checksum;
use crate::linalg::{Complex64, Matrix};

/// The metadata entry with the JSON of the circuit.
const ENTRY: &str = "bornite";

const HEADER: Place<'static> = Place::Top("header");

/// The metadata entry with everything else in a model.
const MODEL: &str = "bornite.model";
/// The metadata entry with the digest of both texts and all tensors.
const DIGEST: &str = "bornite.digest";
/// The metadata entry with the list of further circuits of a model. The tensor names of the nth start with n.
const FURTHER: &str = "bornite.circuits";

/// Writes a circuit. The bytes are the same on every machine.
pub(super) fn write(circuit: &Circuit, out: &mut (impl Write + ?Sized)) -> Result<(), FileError> {
    let Written { text, tensors } = json::write(circuit, Some(""));
    write_texts(&[(ENTRY, text)], &tensors, out)
}

/// Writes the circuits and the metadata of a model.
pub(super) fn write_model(
    circuits: &[&Circuit],
    model: String,
    out: &mut (impl Write + ?Sized),
) -> Result<(), FileError> {
    let prefix = |n: usize| if n == 0 { String::new() } else { format!("{n}.") };
    let prefixes: Vec<String> = (0..circuits.len()).map(prefix).collect();
    let (mut written, mut tensors) = (Vec::new(), Vec::new());
    for (circuit, prefix) in circuits.iter().zip(&prefixes) {
        let one = json::write(circuit, Some(prefix));
        written.push(one.text);
        tensors.extend(one.tensors);
    }
    let further = written.split_off(1);
    let mut texts = vec![(ENTRY, written.concat())];
    if !further.is_empty() {
        texts.push((FURTHER, format!("[{}]", further.join(", "))));
    }
    let circuits = texts.iter().map(|(_, text)| &text[..]);
    let mut digest = Checksum::of_texts(circuits.chain([&model[..]]));
    // Updating a digest cannot fail.
    let _ = write_tensors(&tensors, &mut digest);
    texts.extend([(MODEL, model), (DIGEST, digest.to_string())]);
    write_texts(&texts, &tensors, out)
}

/// Writes texts as metadata, followed by tensors.
fn write_texts(
    texts: &[(&str, String)],
    tensors: &[(String, Data<'_>)],
    out: &mut (impl Write + ?Sized),
) -> Result<(), FileError> {
    let header = header(texts, tensors)?;
    HEADER.check_size("a length in bytes", header.len() as u128, MAX_HEADER)?;
    let written = write_all(&header, tensors, out);
    written.map_err(|source| FileError::Io {
        action: "write the file",
        source,
        remedy: "is there enough disk space?",
    })
}

fn header(texts: &[(&str, String)], tensors: &[(String, Data<'_>)]) -> Result<Vec<u8>, FileError> {
    let mut end = 0;
    let info = |(name, data): &(String, Data<'_>)| {
        let shape = data.shape();
        let start = end;
        end += 8 * shape.iter().product::<usize>();
        (name.clone(), TensorInfo { dtype: Dtype::F64, shape, data_offsets: (start, end) })
    };
    let infos = tensors.iter().map(info).collect();
    let metadata =
        Some(texts.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect());
    let failed = |source| FileError::Io {
        action: "write the header",
        source,
        remedy: "use fewer or smaller weights",
    };
    let metadata = Metadata::new(metadata, infos).map_err(|e| failed(io::Error::other(e)))?;
    let mut header = match texts.len() {
        1 => serde_json::to_vec(&metadata),
        // Sort the texts, which the crate stores in a hash map.
        _ => serde_json::to_value(&metadata).and_then(|value| serde_json::to_vec(&value)),
    }
    .map_err(|e| failed(e.into()))?;
    // Align the tensors to 8 bytes.
    header.resize(header.len().next_multiple_of(8), b' ');
    Ok(header)
}

fn write_all(
    header: &[u8],
    tensors: &[(String, Data<'_>)],
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header)?;
    write_tensors(tensors, out)
}

fn write_tensors(
    tensors: &[(String, Data<'_>)],
    out: &mut (impl Write + ?Sized),
) -> io::Result<()> {
    for (_, data) in tensors {
        let mut put = |x: f64| out.write_all(&x.to_le_bytes());
        match data {
            Data::Real(m) => m.data().iter().try_for_each(|&x| put(x))?,
            Data::RealPart(m) => m.data().iter().try_for_each(|z| put(z.re))?,
            Data::Complex(m) => {
                m.data().iter().try_for_each(|z| put(z.re).and_then(|()| put(z.im)))?;
            }
        }
    }
    Ok(())
}

impl Data<'_> {
    fn shape(&self) -> Vec<usize> {
        match self {
            Data::Real(m) => vec![m.rows(), m.cols()],
            Data::RealPart(m) => vec![m.rows(), m.cols()],
            Data::Complex(m) => vec![m.rows(), m.cols(), 2],
        }
    }
}

/// Reads a circuit, or that of a model.
pub(super) fn read(bytes: &[u8]) -> Result<Circuit, FileError> {
    let (mut circuits, _) = read_model(bytes)?;
    let count = circuits.len();
    circuits.pop().filter(|_| count == 1).ok_or(FileError::Mixture { count })
}

/// Reads circuits, and the metadata of the model if there is any. Its digest must match.
pub(super) fn read_model(bytes: &[u8]) -> Result<(Vec<Circuit>, Option<String>), FileError> {
    let (header, data) = split(bytes)?;
    let header = Node::parse(header).map_err(|source| match source {
        FileError::Syntax { source } => FileError::HeaderSyntax { source },
        other => other,
    })?;
    let entries = named(&header, &HEADER)?;
    let mut tensors = Tensors { tensors: BTreeMap::new() };
    let (mut texts, mut model, mut digest) = (Vec::new(), None, None);
    for (name, node) in entries {
        let place = HEADER.field(name);
        if name == "__metadata__" {
            let fields = Fields::of(node, &place, &[ENTRY, FURTHER, MODEL, DIGEST, "format"])?;
            texts.push(text(fields.require(ENTRY, &place)?, &place.field(ENTRY))?);
            if let Some(node) = fields.get(FURTHER) {
                texts.push(text(node, &place.field(FURTHER))?);
            }
            if let Some(node) = fields.get(MODEL) {
                model = Some(text(node, &place.field(MODEL))?);
                digest = Some(text(fields.require(DIGEST, &place)?, &place.field(DIGEST))?);
            }
        } else {
            tensors.tensors.insert(name.clone(), Tensor::read(node, &place)?);
        }
    }
    let missing = || FileError::MissingField { place: HEADER.to_string(), field: "__metadata__" };
    if texts.is_empty() {
        return Err(missing());
    }
    tensors.place(data)?;
    if let (Some(model), Some(expected)) = (&model, digest) {
        let mut digest = Checksum::of_texts(texts.iter().copied().chain([&model[..]]));
        digest.add(data);
        let found = digest.to_string();
        if found != *expected {
            return Err(FileError::Digest { expected: expected.to_owned(), found });
        }
    }
    let further = texts.get(1).map(|text| Node::parse(text)).transpose()?;
    let place = HEADER.field(FURTHER);
    let further = further.as_ref().map_or(Ok(&[][..]), |node| objects(node, &place))?;
    let own: Vec<Tensors<'_>> =
        (1..=further.len()).map(|n| tensors.split(&format!("{n}."))).collect();
    let mut circuits = vec![json::read(&Node::parse(texts[0])?, Some(tensors))?];
    for (node, tensors) in further.iter().zip(own) {
        circuits.push(json::read(node, Some(tensors))?);
    }
    Ok((circuits, model.map(str::to_owned)))
}

/// Splits the header from the data.
fn split(bytes: &[u8]) -> Result<(&str, &[u8]), FileError> {
    let (length, rest) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
    let announced = u64::from_le_bytes(*length);
    let fits = usize::try_from(announced).ok().filter(|&n| (2..=MAX_HEADER).contains(&n));
    let Some((header, data)) = fits.and_then(|n| rest.split_at_checked(n)) else {
        let (available, limit) = (rest.len(), MAX_HEADER);
        return Err(FileError::HeaderLength { announced, available, limit });
    };
    match std::str::from_utf8(header) {
        Ok(header) => Ok((header, data)),
        Err(e) => Err(FileError::HeaderText { position: e.valid_up_to() }),
    }
}

/// The tensors of a file, each of which must be used once.
pub(super) struct Tensors<'b> {
    tensors: BTreeMap<String, Tensor<'b>>,
}

struct Tensor<'b> {
    shape: Vec<usize>,
    start: usize,
    end: usize,
    bytes: &'b [u8],
    used: bool,
}

impl<'b> Tensors<'b> {
    /// The tensor with this name as a matrix, with the shape rows × columns, or rows × columns × 2 if it is complex.
    pub(super) fn take(&mut self, name: &str, place: &Place<'_>) -> Result<Weight, FileError> {
        if !self.tensors.contains_key(name) {
            let known = self.tensors.keys().map(String::as_str);
            return Err(place.unknown_name("tensor", name, known));
        }
        let Some(tensor) = self.tensors.get_mut(name).filter(|t| !t.used) else {
            let (place, tensor) = (place.to_string(), name.to_owned());
            return Err(FileError::TensorReused { place, tensor });
        };
        tensor.used = true;
        let number = |b: &[u8; 8]| f64::from_le_bytes(*b);
        let (numbers, _) = tensor.bytes.as_chunks::<8>();
        match tensor.shape[..] {
            [rows, cols, 2] if rows > 0 && cols > 0 => {
                let (pairs, _) = numbers.as_chunks::<2>();
                let data = pairs.iter().map(|[re, im]| Complex64::new(number(re), number(im)));
                Ok(Weight::Complex(Matrix::new(rows, cols, data.collect())))
            }
            [rows, cols] if rows > 0 && cols > 0 => {
                Ok(Weight::Real(Matrix::new(rows, cols, numbers.iter().map(number).collect())))
            }
            _ => Err(FileError::Expected {
                place: HEADER.field(name).field("shape").to_string(),
                expected: "[rows, columns] for a real or [rows, columns, 2] for a complex matrix",
                found: format!("{:?}", tensor.shape),
            }),
        }
    }

    /// Splits off the tensors whose names start with a prefix.
    fn split(&mut self, prefix: &str) -> Self {
        let all = std::mem::take(&mut self.tensors).into_iter();
        let (own, rest) = all.partition(|(name, _)| name.starts_with(prefix));
        self.tensors = rest;
        Self { tensors: own }
    }

    /// Rejects tensors that are not used.
    pub(super) fn finish(&self) -> Result<(), FileError> {
        match self.tensors.iter().find(|(_, tensor)| !tensor.used) {
            Some((name, _)) => Err(FileError::Unused { place: HEADER.field(name).to_string() }),
            None => Ok(()),
        }
    }

    /// Assigns every tensor its bytes. Together, the tensors must cover the data exactly once.
    fn place(&mut self, data: &'b [u8]) -> Result<(), FileError> {
        let mut order: Vec<(&String, &mut Tensor<'b>)> = self.tensors.iter_mut().collect();
        order.sort_by_key(|(_, tensor)| (tensor.start, tensor.end));
        let mut position = 0;
        for (name, tensor) in order {
            let place = HEADER.field(name);
            if tensor.start != position {
                return Err(FileError::TensorOffset {
                    place: place.to_string(),
                    expected: position as u64,
                    found: tensor.start as u64,
                });
            }
            position = tensor.end;
            // A tensor beyond the end is reported below, by the total size.
            tensor.bytes = data.get(tensor.start..tensor.end).unwrap_or_default();
        }
        if position != data.len() {
            let (expected, found) = (position as u64, data.len() as u64);
            return Err(FileError::DataLength { expected, found });
        }
        Ok(())
    }
}

impl Tensor<'_> {
    fn read(node: &Node, place: &Place<'_>) -> Result<Self, FileError> {
        let fields = Fields::of(node, place, &["dtype", "shape", "data_offsets"])?;
        let dtype = fields.require("dtype", place)?;
        if text(dtype, &place.field("dtype"))? != "F64" {
            return Err(place.field("dtype").expected("\"F64\"", dtype));
        }
        let shape = wholes(fields.require("shape", place)?, &place.field("shape"))?;
        let offsets = fields.require("data_offsets", place)?;
        let place_of_offsets = place.field("data_offsets");
        let [start, end] = wholes(offsets, &place_of_offsets)?[..] else {
            return Err(place_of_offsets.expected("a pair [begin, end]", offsets));
        };
        let length = end.checked_sub(start);
        let length = length
            .ok_or_else(|| place_of_offsets.expected("an end after the beginning", offsets))?;
        let size = shape.iter().try_fold(8_usize, |size, &n| size.checked_mul(n));
        if size != Some(length) {
            let shape = shape.iter().map(|&n| n as u64).collect();
            return Err(FileError::TensorShape {
                place: place.to_string(),
                shape,
                bytes: length as u64,
            });
        }
        Ok(Self { shape, start, end, bytes: &[], used: false })
    }
}
