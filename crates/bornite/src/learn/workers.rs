//! Training rows that are held by other processes, each of which has some shards of a table: weights
//! go out, and sums of gradients come back.
//!
//! The rows of a step depend on the [layout](super::layout) and the seed. A worker sums the chunks
//! of its shards, and the fit adds up these sums in the order of [`total`]. Therefore, the weights
//! are the same bit for bit as on one machine, for any number of workers. An answer depends only on
//! the question, so a lost answer can be requested again.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::backend::{Chunk, Sum, SumContext, fill, total};
use super::checkpoint_bytes::{Reader, Writer};
use super::error::{LearnError, program_of};
use super::layout::{Layout, Splitter};
use super::options::FitOptions;
use super::pass::{Memory, Workspace};
use crate::circuit::Circuit;
use crate::domain::Variable;
use crate::engine::Batch;
use crate::file;
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::program::Program;

/// Processes that hold the rows of a table. Each has a [`Worker`](crate::model::Worker) with some of
/// the shards, and all workers have the same plan.
///
/// All answers are in the order of the workers. They depend only on the arguments, so a lost worker
/// can be replaced and asked again.
pub trait Workers: fmt::Debug + Send + Sync {
    /// Creates the workers of a plan and gives them their rows. Returns the results of
    /// [`Worker::held`](crate::model::Worker::held).
    ///
    /// # Errors
    /// A readable reason.
    fn hold(&self, plan: &[u8]) -> Result<Vec<Vec<u8>>, String>;

    /// Asks all workers about a step of a fit. Returns the results of
    /// [`Worker::answer`](crate::model::Worker::answer).
    ///
    /// # Errors
    /// A readable reason.
    fn ask(&self, fit: &[u8], step: &[u8]) -> Result<Vec<Vec<u8>>, String>;
}

fn failed(reason: impl fmt::Display) -> LearnError {
    LearnError::Workers { reason: reason.to_string() }
}

/// The error for bytes that are not a valid message.
fn invalid(_: LearnError) -> LearnError {
    failed("a message is damaged, or from another version of the library")
}

/// The rows of a round, which consists of some pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadedPieces {
    pieces: Vec<usize>,
    /// The number of rows up to the end of each piece.
    ends: Vec<usize>,
}

impl LoadedPieces {
    pub(super) fn new(layout: &Layout, pieces: &[usize]) -> Self {
        let mut end = 0;
        let ends = pieces.iter().map(|&piece| {
            end += layout.rows_of(piece);
            end
        });
        Self { ends: ends.collect(), pieces: pieces.to_vec() }
    }

    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The piece of a row, and its position in the piece.
    fn find(&self, row: usize) -> (usize, usize) {
        let at = self.ends.partition_point(|&end| end <= row);
        (self.pieces[at], row - if at > 0 { self.ends[at - 1] } else { 0 })
    }

    /// Groups some of the rows, and the positions that images move to, by shard.
    pub(super) fn chunks(&self, layout: &Layout, rows: &[usize], places: &[usize]) -> Vec<Chunk> {
        let mut chunks = vec![Chunk::default(); layout.num_shards()];
        for (n, &row) in rows.iter().enumerate() {
            let chunk = &mut chunks[layout.shard_of(self.find(row).0)];
            chunk.rows.push(row);
            chunk.places.extend(places.get(n));
        }
        chunks
    }
}

/// The message that tells workers about a fit.
pub(super) fn fit_message(circuit: &Circuit, options: &FitOptions) -> Result<Vec<u8>, LearnError> {
    let mut to = Writer::new();
    to.bytes(&serde_json::to_vec(options).map_err(failed)?);
    to.bytes(&file::to_bytes(circuit).map_err(failed)?);
    Ok(to.finish())
}

/// The sum over all rows of a step, computed by the workers.
pub(super) fn ask<T: Scalar>(
    (workers, fit): (&dyn Workers, &[u8]),
    layout: &Layout,
    loaded: &LoadedPieces,
    chunks: &[Chunk],
    weights: &[&Matrix<T>],
) -> Result<Option<Sum<T>>, LearnError> {
    let mut to = Writer::new();
    to.numbers(&loaded.pieces);
    to.numbers(&loaded.ends);
    for chunk in chunks {
        to.numbers(&chunk.rows);
        to.numbers(&chunk.places);
    }
    for w in weights {
        to.reals(T::parts(w.data()));
    }
    let answers = workers.ask(fit, &to.finish()).map_err(failed)?;
    let (mut sums, mut next) = (BTreeMap::new(), 0);
    for answer in &answers {
        let from = &mut Reader::new(answer).map_err(invalid)?;
        while !from.is_empty() {
            let (shards, sum) = read_sum(from, weights).map_err(invalid)?;
            if shards.start != next || shards.is_empty() {
                return Err(failed("their answers do not cover all shards"));
            }
            next = shards.end;
            sums.insert((shards.start, shards.end), sum);
        }
    }
    if next != layout.num_shards() {
        return Err(failed("their answers do not cover all shards"));
    }
    let sums = Mutex::new(sums);
    let known = |shards: &Range<usize>| {
        let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = sums.remove(&(shards.start, shards.end));
        // Ranges that are not nodes of the tree are never requested.
        if sum.is_none() && shards.len() < 2 { Some(None) } else { sum }
    };
    Ok(total(0..layout.num_shards(), &known))
}

fn write_sum<T: Scalar>(shards: &Range<usize>, sum: Option<&Sum<T>>, to: &mut Writer) {
    to.numbers(&[shards.start, shards.end]);
    to.reals(sum.map(|sum| sum.mean).as_slice());
    for gradient in sum.into_iter().flat_map(|sum| &sum.gradients) {
        to.reals(T::parts(gradient.data()));
    }
}

fn read_sum<T: Scalar>(
    from: &mut Reader<'_>,
    weights: &[&Matrix<T>],
) -> Result<(Range<usize>, Option<Sum<T>>), LearnError> {
    let &[start, end] = &from.numbers()?[..] else { return Err(LearnError::Damaged) };
    let sum = match from.reals()?[..] {
        [] => None,
        [mean] => {
            let mut gradients = Vec::with_capacity(weights.len());
            for w in weights {
                let mut gradient = Matrix::zeros(w.rows(), w.cols());
                fill(T::parts_mut(gradient.data_mut()), &from.reals()?)?;
                gradients.push(gradient);
            }
            Some(Sum { mean, gradients })
        }
        _ => return Err(LearnError::Damaged),
    };
    Ok((start..end, sum))
}

/// What is known about rows once they are all held.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldRows {
    /// For every piece, the sum of the log slopes of its rows, with their repetitions.
    pub(crate) slopes: Vec<f64>,
    /// For every piece, the number of its rows, with their repetitions.
    pub(crate) counts: Vec<usize>,
    /// The number of rows that are used at least once.
    pub(crate) used: usize,
}

impl HeldRows {
    /// No rows yet, of this many pieces.
    pub(crate) fn new(pieces: usize) -> Self {
        Self { slopes: vec![0.0; pieces], counts: vec![0; pieces], used: 0 }
    }

    /// Adds rows of a piece, given in increasing order, with their repetitions.
    pub(crate) fn add(&mut self, piece: usize, rows: &[usize], slopes: &[f64]) {
        for &row in rows {
            self.slopes[piece] += slopes[row];
        }
        self.counts[piece] += rows.len();
        self.used += rows.chunk_by(|a, b| a == b).count();
    }

    /// The rows of all workers, from their [answers](WorkerRows::held).
    pub(crate) fn of_workers(answers: &[Vec<u8>], layout: &Layout) -> Result<Self, LearnError> {
        let mut all = Self::default();
        for answer in answers {
            let from = &mut Reader::new(answer).map_err(invalid)?;
            all.slopes.extend(from.reals().map_err(invalid)?);
            all.counts.extend(from.numbers().map_err(invalid)?);
            all.used += from.numbers().map_err(invalid)?.iter().sum::<usize>();
        }
        if all.slopes.len() != layout.len() || all.counts.len() != layout.len() {
            return Err(failed("their answers do not cover all shards"));
        }
        Ok(all)
    }
}

/// The rows of a worker.
#[derive(Debug)]
pub(crate) struct WorkerRows {
    layout: Layout,
    shards: Range<usize>,
    pieces: Range<usize>,
    rows: Batch,
    held: HeldRows,
    splitter: Splitter,
    /// The position of the next row in the table.
    next: u64,
    fit: Option<(Vec<u8>, Box<dyn Learner>)>,
}

impl WorkerRows {
    /// Creates one of this many workers, without rows.
    pub(crate) fn new(variables: &[Variable], layout: Layout, worker: usize, of: usize) -> Self {
        let shards = layout.shards_of(worker, of);
        let pieces = layout.pieces_of(shards.clone());
        let (held, splitter) = (HeldRows::new(pieces.len()), Splitter::default());
        let next = layout.places(pieces.clone()).start;
        let rows = Batch::empty(variables.iter().map(|v| &v.domain));
        Self { layout, shards, pieces, rows, held, splitter, next, fit: None }
    }

    /// The positions of the rows that the worker still needs.
    pub(crate) fn wanted(&self) -> Range<u64> {
        self.next..self.layout.places(self.pieces.clone()).end
    }

    /// Adds the next rows, with their log slopes and their weights, if they have any.
    pub(crate) fn add(&mut self, rows: &Batch, slopes: &[f64], weights: &[f64]) {
        let count = rows.len().min((self.wanted().end - self.next) as usize);
        let mut bytes = Vec::new();
        for (piece, own) in self.splitter.split(&self.layout, self.next, count, weights) {
            self.held.add(piece - self.pieces.start, &own, slopes);
            bytes.clear();
            rows.select(&own).write_bytes(&mut bytes);
            let added = self.rows.add_bytes(own.len(), &bytes);
            debug_assert!(added.is_some(), "rows of the same variables");
        }
        self.next += count as u64;
    }

    /// The message about the worker's rows: see [`HeldRows::of_workers`].
    pub(crate) fn held(&self) -> Vec<u8> {
        let mut to = Writer::new();
        to.reals(&self.held.slopes);
        to.numbers(&self.held.counts);
        to.numbers(&[self.held.used]);
        to.finish()
    }

    /// For every piece of the worker, the number of rows before it.
    fn starts(&self) -> Vec<usize> {
        let mut sum = 0;
        let start = |count: &usize| {
            sum += count;
            sum - count
        };
        self.held.counts.iter().map(start).collect()
    }

    /// The message with the sums over the worker's rows in a step: see [`ask`].
    pub(crate) fn answer(&mut self, fit: &[u8], step: &[u8]) -> Result<Vec<u8>, LearnError> {
        if self.fit.as_ref().is_none_or(|(known, _)| known != fit) {
            self.fit = Some((fit.to_vec(), learner(fit, &self.rows).map_err(invalid)?));
        }
        let from = &mut Reader::new(step).map_err(invalid)?;
        let (chunks, weight) = self.chunks(from).map_err(invalid)?;
        let Some((_, learner)) = &mut self.fit else { unreachable!("it was created above") };
        learner.sums(from, &self.rows, (&chunks, weight), self.shards.clone()).map_err(invalid)
    }

    /// The rows of a step by shard, and the weight of a row. The worker's own rows are converted to
    /// positions in its batch.
    fn chunks(&self, from: &mut Reader<'_>) -> Result<(Vec<Chunk>, f64), LearnError> {
        let (pieces, ends) = (from.numbers()?, from.numbers()?);
        let is_known = pieces.iter().all(|&piece| piece < self.layout.len());
        if !is_known || ends.len() != pieces.len() || !ends.is_sorted() {
            return Err(LearnError::Damaged);
        }
        let starts = self.starts();
        let (loaded, mut count) = (LoadedPieces { pieces, ends }, 0);
        let mut chunks = Vec::with_capacity(self.layout.num_shards());
        for shard in 0..self.layout.num_shards() {
            let mut chunk = Chunk { rows: from.numbers()?, places: from.numbers()? };
            count += chunk.rows.len();
            for row in chunk.rows.iter_mut().filter(|_| self.shards.contains(&shard)) {
                if *row >= loaded.len() {
                    return Err(LearnError::Damaged);
                }
                let (piece, place) = loaded.find(*row);
                let own = piece.checked_sub(self.pieces.start).filter(|_| self.pieces.end > piece);
                let Some(own) = own.filter(|&own| place < self.held.counts[own]) else {
                    return Err(LearnError::Damaged);
                };
                *row = starts[own] + place;
            }
            chunks.push(chunk);
        }
        Ok((chunks, 1.0 / count as f64))
    }
}

/// Splits these shards into the largest ranges that are nodes of the tree of [`total`].
fn nodes(shards: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = shards.start;
    std::iter::from_fn(move || {
        let left = shards.end.checked_sub(start).filter(|&left| left > 0)?;
        let largest = 1 << left.ilog2();
        let len = if start == 0 { largest } else { largest.min(1 << start.trailing_zeros()) };
        start += len;
        Some(start - len..start)
    })
}

/// The circuit of a fit, in a worker.
trait Learner: fmt::Debug + Send + Sync {
    /// The sums over the chunks of some shards, with the weights of a step.
    fn sums(
        &mut self,
        weights: &mut Reader<'_>,
        rows: &Batch,
        step: (&[Chunk], f64),
        shards: Range<usize>,
    ) -> Result<Vec<u8>, LearnError>;
}

#[derive(Debug)]
struct CircuitLearner<T, const C: bool> {
    program: Program,
    weights: Vec<Matrix<T>>,
    workspace: Workspace<f32>,
    memories: Mutex<Vec<Memory<f32>>>,
    options: FitOptions,
}

fn learner(fit: &[u8], rows: &Batch) -> Result<Box<dyn Learner>, LearnError> {
    let mut from = Reader::new(fit)?;
    let options = serde_json::from_slice(&from.bytes()?).map_err(failed)?;
    let circuit = file::from_bytes(&from.bytes()?).map_err(failed)?;
    Ok(if circuit.is_real() {
        Box::new(CircuitLearner::<f64, false>::new(&circuit, rows, options)?)
    } else {
        Box::new(CircuitLearner::<Complex64, true>::new(&circuit, rows, options)?)
    })
}

impl<T: Scalar, const C: bool> CircuitLearner<T, C> {
    fn new(circuit: &Circuit, rows: &Batch, options: FitOptions) -> Result<Self, LearnError> {
        let program = program_of(circuit)?;
        let weights: Vec<Matrix<T>> =
            circuit.weights().iter().map(|w| w.to_matrix::<T>().into_owned()).collect();
        let workspace = super::backend::workspace(&program, &refs(&weights), rows, &options);
        Ok(Self { program, weights, workspace, memories: Mutex::default(), options })
    }
}

impl<T: Scalar, const C: bool> Learner for CircuitLearner<T, C> {
    fn sums(
        &mut self,
        from: &mut Reader<'_>,
        rows: &Batch,
        (chunks, weight): (&[Chunk], f64),
        shards: Range<usize>,
    ) -> Result<Vec<u8>, LearnError> {
        for w in &mut self.weights {
            fill(T::parts_mut(w.data_mut()), &from.reals()?)?;
        }
        let has_places = |chunk: &Chunk| chunk.places.len() == chunk.rows.len();
        if self.options.shifts.is_some() && !chunks.iter().all(has_places) {
            return Err(LearnError::Damaged);
        }
        let weights = refs(&self.weights);
        self.workspace.refill(&self.program, &weights);
        let context = SumContext {
            program: &self.program,
            weights: &weights,
            workspace: &self.workspace,
            memories: &self.memories,
            options: &self.options,
            weight,
        };
        let known = |shards: &Range<usize>| {
            (shards.len() == 1).then(|| context.sum::<C>(rows, &chunks[shards.start]))
        };
        let mut to = Writer::new();
        for node in nodes(shards) {
            let sum = total(node.clone(), &known);
            write_sum(&node, sum.as_ref(), &mut to);
        }
        Ok(to.finish())
    }
}

fn refs<T>(weights: &[Matrix<T>]) -> Vec<&Matrix<T>> {
    weights.iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_those_of_one_tree() {
        fn all(node: Range<usize>, to: &mut Vec<Range<usize>>) {
            if node.len() > 1 {
                let middle = node.start + node.len() / 2;
                all(node.start..middle, to);
                all(middle..node.end, to);
            }
            to.push(node);
        }
        for shards in [1, 2, 8, 64] {
            let mut tree = Vec::new();
            all(0..shards, &mut tree);
            for start in 0..shards {
                for end in start..=shards {
                    let found: Vec<_> = nodes(start..end).collect();
                    assert!(found.iter().all(|node| tree.contains(node)), "{found:?}");
                    assert!(found.into_iter().flatten().eq(start..end));
                }
            }
        }
    }
}
