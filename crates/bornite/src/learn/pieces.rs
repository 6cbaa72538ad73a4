//! The rows of a fit: at hand, or in pieces of a temporary file of which some are at hand at a time.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use super::error::LearnError;
use crate::domain::{Domain, Variable};
use crate::engine::Batch;

/// The rows to learn from, and those to choose the best epoch by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    /// All of them, or some that stand for all where there are pieces.
    pub(crate) train: &'a Batch,
    pub(crate) valid: &'a Batch,
    /// All of them, where they are more than memory holds.
    pub(crate) pieces: Option<&'a Pieces>,
}

impl<'a> Rows<'a> {
    /// Rows that are at hand.
    pub(crate) fn new(train: &'a Batch, valid: &'a Batch) -> Self {
        Self { train, valid, pieces: None }
    }

    /// The number of rows to learn from.
    pub(super) fn num_train(&self) -> usize {
        self.pieces.map_or(self.train.len(), Pieces::num_rows)
    }
}

/// The pieces that are at hand at a time are at least so many, so that rows that stand together in a table do not learn together.
const AT_HAND: usize = 16;

/// Rows in a temporary file that has no name, and is gone when this is, however the process ends.
///
/// A piece is some rows that follow each other. An epoch goes through all pieces in a random order: as many of them at a time as have
/// [`at_hand`](Self::new) rows, and through the rows of these in a random order too.
#[derive(Debug)]
pub(crate) struct Pieces {
    file: File,
    domains: Vec<Domain>,
    index: Vec<Piece>,
    at_hand: usize,
    rows: usize,
    /// The bytes of all pieces, and what they are known by.
    bytes: u64,
    digest: crc32fast::Hasher,
}

/// Where the rows of a piece are.
#[derive(Debug)]
struct Piece {
    start: u64,
    bytes: usize,
    rows: usize,
}

impl Pieces {
    /// No rows yet, of which so many are going to be at hand at a time.
    pub(crate) fn new(variables: &[Variable], at_hand: usize) -> io::Result<Self> {
        Ok(Self {
            file: tempfile::tempfile()?,
            domains: variables.iter().map(|v| v.domain.clone()).collect(),
            index: Vec::new(),
            at_hand: at_hand.max(1),
            rows: 0,
            bytes: 0,
            digest: crc32fast::Hasher::new(),
        })
    }

    /// Adds rows.
    pub(crate) fn add(&mut self, rows: &Batch) -> io::Result<()> {
        let most = self.at_hand.div_ceil(AT_HAND);
        for start in (0..rows.len()).step_by(most) {
            let own: Vec<usize> = (start..rows.len().min(start + most)).collect();
            let mut bytes = Vec::new();
            rows.select(&own).write_bytes(&mut bytes);
            self.file.write_all(&bytes)?;
            self.digest.update(&bytes);
            self.index.push(Piece { start: self.bytes, bytes: bytes.len(), rows: own.len() });
            self.rows += own.len();
            self.bytes += bytes.len() as u64;
        }
        Ok(())
    }

    /// The number of rows.
    pub(crate) fn num_rows(&self) -> usize {
        self.rows
    }

    /// The number of pieces.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// What the rows are known by.
    pub(super) fn digest(&self) -> usize {
        self.digest.clone().finalize() as usize
    }

    /// How many of these pieces, one or more, are at hand together.
    pub(super) fn together(&self, pieces: &[usize]) -> usize {
        let mut rows = 0;
        let fits = |piece: &&usize| {
            rows += self.index[**piece].rows;
            rows <= self.at_hand
        };
        pieces.iter().take_while(fits).count().max(1).min(pieces.len())
    }

    /// The rows of these pieces.
    pub(super) fn read(&self, pieces: &[usize]) -> Result<Batch, LearnError> {
        let failed = |reason: String| LearnError::Pieces { reason };
        let mut rows = Batch::empty(&self.domains);
        let (mut file, mut bytes) = (&self.file, Vec::new());
        for &piece in pieces {
            let piece = &self.index[piece];
            bytes.resize(piece.bytes, 0);
            let found = file.seek(SeekFrom::Start(piece.start));
            found.and_then(|_| file.read_exact(&mut bytes)).map_err(|e| failed(e.to_string()))?;
            let added = rows.add_bytes(piece.rows, &bytes);
            added.ok_or_else(|| failed("its bytes have changed".to_owned()))?;
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_hold_all_rows_and_some_at_a_time() {
        let variables = [Variable::new("x", Domain::Finite(400)), Variable::new("y", Domain::Real)];
        let row = |n: usize| [if n % 9 == 4 { f64::NAN } else { n as f64 }, n as f64 / 7.0];
        let batch = |rows: std::ops::Range<usize>| {
            Batch::from_rows(&variables, &rows.flat_map(row).collect::<Vec<_>>()).unwrap()
        };
        let mut pieces = Pieces::new(&variables, 64).unwrap();
        for rows in [0..100, 100..101, 101..390] {
            pieces.add(&batch(rows)).unwrap();
        }
        // At most a sixteenth of 64 rows each.
        assert_eq!((pieces.num_rows(), pieces.len()), (390, 25 + 1 + 73));
        let order: Vec<usize> = (0..pieces.len()).rev().collect();
        let (mut at, mut seen) = (0, Vec::new());
        while at < order.len() {
            let count = pieces.together(&order[at..]);
            let rows = pieces.read(&order[at..at + count]).unwrap();
            assert!(rows.len() <= 64 && (rows.len() > 60 || at + count == order.len()));
            seen.extend((0..rows.len()).map(|n| (rows.value(n, 1) * 7.0).round() as usize));
            let same = (0..rows.len()).all(|n| {
                let expected = row((rows.value(n, 1) * 7.0).round() as usize)[0];
                rows.value(n, 0).to_bits() == expected.to_bits()
            });
            assert!(same);
            at += count;
        }
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..390));
        // A piece that is larger than what is at hand is still read.
        assert_eq!(Pieces { at_hand: 1, ..pieces }.together(&[0, 1]), 1);
    }
}
