//! The rows of a fit: in memory, in a temporary file that is read in pieces, or on workers.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use super::error::LearnError;
use super::layout::Layout;
use super::workers::Workers;
use crate::domain::{Domain, Variable};
use crate::engine::Batch;

/// The training rows, and the validation rows, which determine the best epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    /// All training rows, or a sample of them if there are pieces.
    pub(crate) train: &'a Batch,
    pub(crate) valid: &'a Batch,
    /// All training rows, if they are not in memory.
    pub(crate) pieces: Option<Pieces<'a>>,
}

impl<'a> Rows<'a> {
    /// Rows in memory.
    pub(crate) fn new(train: &'a Batch, valid: &'a Batch) -> Self {
        Self { train, valid, pieces: None }
    }

    /// The number of training rows.
    pub(super) fn num_train(&self) -> usize {
        self.pieces.map_or(self.train.len(), |pieces| pieces.layout().num_rows())
    }
}

/// Training rows that are not in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pieces<'a> {
    File(&'a PieceFile),
    Workers(&'a Layout, &'a dyn Workers),
}

impl<'a> Pieces<'a> {
    pub(crate) fn layout(self) -> &'a Layout {
        match self {
            Self::File(file) => &file.layout,
            Self::Workers(layout, _) => layout,
        }
    }

    /// A checksum of the rows; 0 if workers hold them.
    pub(super) fn digest(self) -> usize {
        match self {
            Self::File(file) => file.digest.clone().finalize() as usize,
            Self::Workers(..) => 0,
        }
    }
}

/// Pieces in an unnamed temporary file, which is deleted when the process ends for any reason.
#[derive(Debug)]
pub(crate) struct PieceFile {
    layout: Layout,
    file: File,
    domains: Vec<Domain>,
    /// The parts of each piece.
    index: Vec<Vec<Part>>,
    /// The number of bytes in the file.
    bytes: u64,
    digest: crc32fast::Hasher,
}

/// Consecutive rows of a piece in the file.
#[derive(Debug)]
struct Part {
    start: u64,
    bytes: usize,
    rows: usize,
}

impl PieceFile {
    /// An empty file.
    pub(crate) fn new(variables: &[Variable], layout: Layout) -> io::Result<Self> {
        Ok(Self {
            file: tempfile::tempfile()?,
            domains: variables.iter().map(|v| v.domain.clone()).collect(),
            index: (0..layout.len()).map(|_| Vec::new()).collect(),
            bytes: 0,
            digest: crc32fast::Hasher::new(),
            layout,
        })
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn layout_mut(&mut self) -> &mut Layout {
        &mut self.layout
    }

    /// Adds rows to a piece.
    pub(crate) fn add(&mut self, piece: usize, rows: &Batch) -> io::Result<()> {
        let mut bytes = Vec::new();
        rows.write_bytes(&mut bytes);
        self.file.write_all(&bytes)?;
        self.digest.update(&bytes);
        self.index[piece].push(Part { start: self.bytes, bytes: bytes.len(), rows: rows.len() });
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// The rows of these pieces.
    pub(super) fn read(&self, pieces: &[usize]) -> Result<Batch, LearnError> {
        let failed = |reason: String| LearnError::Pieces { reason };
        let mut rows = Batch::empty(&self.domains);
        let (mut file, mut bytes) = (&self.file, Vec::new());
        for part in pieces.iter().flat_map(|&piece| &self.index[piece]) {
            bytes.resize(part.bytes, 0);
            let found = file.seek(SeekFrom::Start(part.start));
            found.and_then(|_| file.read_exact(&mut bytes)).map_err(|e| failed(e.to_string()))?;
            let added = rows.add_bytes(part.rows, &bytes);
            added.ok_or_else(|| failed("its bytes have changed".to_owned()))?;
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::layout::Splitter;

    #[test]
    fn a_file_gives_back_all_rows() {
        let variables = [Variable::new("x", Domain::Finite(400)), Variable::new("y", Domain::Real)];
        let row = |n: usize| [if n % 9 == 4 { f64::NAN } else { n as f64 }, n as f64 / 7.0];
        let batch = |rows: std::ops::Range<usize>| {
            Batch::from_rows(&variables, &rows.flat_map(row).collect::<Vec<_>>()).unwrap()
        };
        let held = vec![5, 6, 99, 388];
        let layout = Layout::new(390, held.clone(), 640, 512);
        let mut file = PieceFile::new(&variables, layout.clone()).unwrap();
        for rows in [0..100, 100..101, 101..390] {
            let all = batch(rows.clone());
            let mut splitter = Splitter::default();
            for (piece, own) in splitter.split(&layout, rows.start as u64, rows.len(), &[]) {
                file.add(piece, &all.select(&own)).unwrap();
            }
        }
        let order: Vec<usize> = (0..layout.len()).rev().collect();
        let mut seen = Vec::new();
        for pieces in order.chunks(3) {
            let rows = file.read(pieces).unwrap();
            assert_eq!(rows.len(), pieces.iter().map(|&n| layout.rows_of(n)).sum::<usize>());
            for n in 0..rows.len() {
                let place = (rows.value(n, 1) * 7.0).round() as usize;
                assert_eq!(rows.value(n, 0).to_bits(), row(place)[0].to_bits());
                seen.push(place as u64);
            }
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq((0..390).filter(|n| !held.contains(n))));
    }
}
