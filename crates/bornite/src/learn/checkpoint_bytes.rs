//! The bytes of a checkpoint: lists of numbers, each preceded by its length.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::error::LearnError;

/// The first bytes of the checkpoint of a search.
const SEARCH: &[u8; 8] = b"BORNFIT2";
/// The first bytes of the checkpoint of several fits in a row: see [`Folds`](super::folds::Folds).
pub(super) const FOLDS: &[u8; 8] = b"BORNFLD1";

/// Writes lists of numbers.
#[derive(Debug)]
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self::with(SEARCH)
    }

    pub(super) fn with(magic: &[u8; 8]) -> Self {
        Self { bytes: magic.to_vec() }
    }

    /// The bytes written, followed by their checksum.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let sum = crc32fast::hash(&self.bytes);
        self.bytes.extend(sum.to_le_bytes());
        self.bytes
    }

    pub(super) fn numbers(&mut self, list: &[usize]) {
        self.list(list, |n| (*n as u64).to_le_bytes());
    }

    pub(super) fn reals(&mut self, list: &[f64]) {
        self.list(list, |x| x.to_le_bytes());
    }

    pub(super) fn singles(&mut self, list: &[f32]) {
        self.list(list, |x| x.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, list: &[u8]) {
        self.list(list, |&b| [b]);
    }

    pub(super) fn rng(&mut self, rng: &ChaCha8Rng) {
        self.bytes.extend(rng.get_seed());
        self.bytes.extend(rng.get_stream().to_le_bytes());
        self.bytes.extend(rng.get_word_pos().to_le_bytes());
    }

    fn list<X, const N: usize>(&mut self, list: &[X], bytes: impl Fn(&X) -> [u8; N]) {
        self.bytes.extend((list.len() as u64).to_le_bytes());
        self.bytes.extend(list.iter().flat_map(bytes));
    }
}

/// Reads the lists of a [`Writer`].
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, LearnError> {
        Self::with(SEARCH, bytes)
    }

    pub(super) fn with(magic: &[u8; 8], bytes: &'a [u8]) -> Result<Self, LearnError> {
        let content = bytes.strip_prefix(magic).ok_or(LearnError::NoCheckpoint)?;
        let (rest, sum) = content.split_last_chunk::<4>().ok_or(LearnError::Damaged)?;
        let hash = crc32fast::hash(&bytes[..bytes.len() - 4]);
        if hash != u32::from_le_bytes(*sum) {
            return Err(LearnError::Damaged);
        }
        Ok(Self { rest })
    }

    /// Whether everything has been read.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn numbers(&mut self) -> Result<Vec<usize>, LearnError> {
        self.list(|b| u64::from_le_bytes(b) as usize)
    }

    pub(super) fn reals(&mut self) -> Result<Vec<f64>, LearnError> {
        self.list(f64::from_le_bytes)
    }

    /// Single-precision numbers such as weights, all of which must be finite.
    pub(super) fn finite_singles(&mut self) -> Result<Vec<f32>, LearnError> {
        let list = self.list(f32::from_le_bytes)?;
        if list.iter().all(|x| x.is_finite()) { Ok(list) } else { Err(LearnError::Damaged) }
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, LearnError> {
        self.list(u8::from_le_bytes)
    }

    pub(super) fn rng(&mut self) -> Result<ChaCha8Rng, LearnError> {
        let mut rng = ChaCha8Rng::from_seed(self.take()?);
        rng.set_stream(u64::from_le_bytes(self.take()?));
        rng.set_word_pos(u128::from_le_bytes(self.take()?));
        Ok(rng)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], LearnError> {
        let (first, rest) = self.rest.split_first_chunk::<N>().ok_or(LearnError::Damaged)?;
        self.rest = rest;
        Ok(*first)
    }

    fn list<X, const N: usize>(
        &mut self,
        number: impl Fn([u8; N]) -> X,
    ) -> Result<Vec<X>, LearnError> {
        let count = usize::try_from(u64::from_le_bytes(self.take()?)).ok();
        let length = count.and_then(|n| n.checked_mul(N)).filter(|&n| n <= self.rest.len());
        let (list, rest) = self.rest.split_at(length.ok_or(LearnError::Damaged)?);
        self.rest = rest;
        let chunks = list.chunks_exact(N).filter_map(|b| b.first_chunk::<N>());
        Ok(chunks.map(|b| number(*b)).collect())
    }
}
