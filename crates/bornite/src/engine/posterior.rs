//! The distributions of many cells of many rows: one pass up, which stores its messages, and one
//! pass down.

use std::sync::OnceLock;

use rayon::prelude::*;

use super::Engine;
use super::batch::Batch;
use super::lanes::{Real, planes};
use super::message::Message;
use super::pieces::{Functional, Pieces, RowPart};
use super::plan::{Leaf, Plan};
use super::upward::{BLOCK, block_len};
use super::workspace::Workspace;
use crate::algebra::Kind;
use crate::basis::Part;
use crate::circuit::VariableId;
use crate::ops::Univariate;
use crate::program::StepKind;
use crate::query::QueryError;

pub(crate) use super::pieces::PiecewiseDensity;

/// The maximum number of bytes of messages per block, unless the block has [`MIN_BLOCK`] rows.
const BLOCK_BYTES: usize = 1 << 26;
/// The minimum number of rows in a block, whatever its memory.
const MIN_BLOCK: usize = 32;

/// The cells that a caller asks about, and the functionals of their densities.
pub(crate) struct CellRequest<'a> {
    /// Whether the cell of a row and variable is requested.
    pub(crate) cells: &'a (dyn Fn(usize, usize) -> bool + Sync),
    /// For a continuous variable, the sums of values of its density to compute: see
    /// [`PiecewiseDensity::functionals`].
    pub(crate) functionals: &'a (dyn Fn(usize) -> Vec<Functional> + Sync),
}

/// The distribution of one cell, given the evidence of its row.
#[derive(Debug)]
pub(crate) enum CellDistribution<'a> {
    /// The probabilities of all values, which sum to 1.
    Finite(Vec<f64>),
    /// The density of a continuous variable without further evidence about the cell.
    Piecewise(PiecewiseDensity<'a>),
    /// Any other continuous distribution, as a mixture whose weights sum to 1.
    Exact(Vec<(f64, Univariate)>),
}

impl CellDistribution<'_> {
    /// Mixes the distributions of one cell by several circuits, with weights that sum to 1; `None`
    /// if there are none, or if they have different forms.
    pub(crate) fn mixture(parts: Vec<(f64, Self)>) -> Option<Self> {
        let (mut finite, mut piecewise, mut exact) = (Vec::new(), Vec::new(), Vec::new());
        let count = parts.len();
        for (share, part) in parts {
            match part {
                Self::Finite(p) => {
                    finite.resize(p.len(), 0.0);
                    finite.iter_mut().zip(p).for_each(|(sum, p)| *sum += share * p);
                }
                Self::Piecewise(p) => piecewise.push((share, p)),
                Self::Exact(p) => {
                    exact.extend(p.into_iter().map(|(weight, p)| (share * weight, p)));
                }
            }
        }
        if !finite.is_empty() {
            Some(Self::Finite(finite))
        } else if piecewise.len() == count {
            PiecewiseDensity::mixture(piecewise).map(Self::Piecewise)
        } else {
            Some(Self::Exact(exact)).filter(|_| piecewise.is_empty())
        }
    }
}

/// The pieces of continuous variables, which all rows of a call share.
#[derive(Debug)]
pub(crate) struct CellTables<F>(Vec<OnceLock<Option<Pieces<F>>>>);

/// The answer about one cell.
#[derive(Clone, Debug)]
pub(crate) struct CellAnswer<T> {
    pub(crate) row: usize,
    pub(crate) variable: usize,
    pub(crate) answer: T,
}

/// The answers about many cells.
type Answers<T> = Vec<CellAnswer<T>>;

/// The answers, sorted by row and then variable, and log p(evidence) of every row.
pub(crate) type CellAnswers<T> = (Answers<T>, Vec<f64>);

/// The function that turns the distribution of a cell, given by row and variable, into an answer.
type Answer<'a, 't, T> = &'a (dyn Fn(usize, usize, CellDistribution<'t>) -> T + Sync);

/// The distributions of some variables for every row of a batch.
///
/// Created by [`Engine::posteriors`].
#[derive(Clone, Debug)]
pub struct Posteriors {
    num_variables: usize,
    log_evidence: Vec<f64>,
    marginals: Vec<Option<Univariate>>,
}

impl Posteriors {
    /// log p of the evidence of a row; −∞ if it is impossible.
    ///
    /// # Panics
    /// If the row does not exist.
    pub fn log_evidence(&self, row: usize) -> f64 {
        self.log_evidence[row]
    }

    /// The distribution of the nth requested variable, given the evidence about the *other*
    /// variables of the row; `None` if that evidence is impossible.
    ///
    /// # Panics
    /// If the row or the variable does not exist.
    pub fn marginal(&self, row: usize, n: usize) -> Option<&Univariate> {
        assert!(n < self.num_variables, "variable {n} of {}", self.num_variables);
        self.marginals[row * self.num_variables + n].as_ref()
    }
}

impl<F: Real> Engine<F> {
    /// Computes the posterior marginals of these variables for every row. For one row, this is the
    /// same as [`Environments::marginal`](crate::ops::Environments::marginal).
    ///
    /// The distribution of a variable is conditioned on the evidence about the others, but not on
    /// the evidence about itself; [`Univariate::within`] adds that.
    ///
    /// Cost: one pass up the circuit, and one pass down along the paths to the variables. Memory:
    /// one matrix for each cell of a continuous variable.
    ///
    /// # Errors
    /// The rows were created for a different number of variables, or a variable does not exist.
    pub fn posteriors(
        &self,
        rows: &Batch,
        variables: &[VariableId],
    ) -> Result<Posteriors, QueryError> {
        let mut place = vec![None; self.variables().len()];
        for (n, variable) in variables.iter().enumerate() {
            let (expected, found) = (place.len(), variable.index());
            *place.get_mut(found).ok_or(QueryError::Count { expected, found })? = Some(n);
        }
        self.check(rows)?;
        let cells = |_, variable: usize| place[variable].is_some();
        let (answers, log_evidence) = match &self.plan {
            super::AnyPlan::Real(plan) => plan.marginals(rows, &cells),
            super::AnyPlan::Complex(plan) => plan.marginals(rows, &cells),
        };
        let mut marginals = vec![None; rows.len() * variables.len()];
        for CellAnswer { row, variable, answer } in answers {
            for (n, _) in variables.iter().enumerate().filter(|(_, v)| v.index() == variable) {
                marginals[row * variables.len() + n] = Some(answer.clone());
            }
        }
        Ok(Posteriors { num_variables: variables.len(), log_evidence, marginals })
    }

    /// Calls `answer` for every requested cell of every row that is possible. The distribution of a
    /// cell is given the evidence about the other cells and, if the cell has no value, about
    /// itself.
    pub(crate) fn answer_cells<T: Send>(
        &self,
        rows: &Batch,
        wanted: &CellRequest<'_>,
        answer: &(dyn Fn(usize, usize, CellDistribution<'_>) -> T + Sync),
    ) -> Result<CellAnswers<T>, QueryError> {
        self.answer_cells_by(rows, wanted, &self.cell_tables(true), answer)
    }

    /// Empty tables. Without `is_piecewise`, all distributions will be exact ones.
    pub(crate) fn cell_tables(&self, is_piecewise: bool) -> CellTables<F> {
        let count = if is_piecewise { self.variables().len() } else { 0 };
        CellTables((0..count).map(|_| OnceLock::new()).collect())
    }

    /// Like [`answer_cells`](Self::answer_cells), with tables that calls with the same
    /// [`CellRequest::functionals`] can share.
    pub(crate) fn answer_cells_by<'t, T: Send>(
        &'t self,
        rows: &Batch,
        wanted: &CellRequest<'_>,
        tables: &'t CellTables<F>,
        answer: Answer<'_, 't, T>,
    ) -> Result<CellAnswers<T>, QueryError> {
        self.check(rows)?;
        Ok(match &self.plan {
            super::AnyPlan::Real(plan) => plan.answer_cells(rows, wanted, tables, answer),
            super::AnyPlan::Complex(plan) => plan.answer_cells(rows, wanted, tables, answer),
        })
    }
}

/// What to do at the leaf of a variable.
type Visit<'a, 't, T, F> =
    dyn Fn(&LeafVisit<'t, F>, &Message<F>, &[u32], &mut Workspace<F>, &mut Answers<T>) + Sync + 'a;

/// The leaf that is visited, its position among all leaves, and the first row of the block.
struct LeafVisit<'a, F> {
    leaf: &'a Leaf<F>,
    place: usize,
    variable: usize,
    first: usize,
}

impl<F: Real, const C: bool> Plan<F, C> {
    /// The distributions of cells.
    fn marginals(
        &self,
        rows: &Batch,
        cells: &(dyn Fn(usize, usize) -> bool + Sync),
    ) -> CellAnswers<Univariate> {
        self.visit_cells(rows, cells, &|at, environment, chosen, ws, out| {
            let mut push = |row: u32, answer| {
                out.push(CellAnswer {
                    row: at.first + row as usize,
                    variable: at.variable,
                    answer,
                });
            };
            if at.leaf.columns.is_some() {
                let domain = at.leaf.basis.natural_domain();
                at.leaf.probabilities(&self.kernels, environment, chosen, ws, |row, p| {
                    push(row, Univariate::finite(domain.clone(), p.to_vec()));
                });
            } else {
                for &row in chosen {
                    push(row, at.leaf.distribution::<C>(environment, row as usize));
                }
            }
        })
    }

    fn answer_cells<'t, T: Send>(
        &'t self,
        rows: &Batch,
        wanted: &CellRequest<'_>,
        tables: &'t CellTables<F>,
        answer: Answer<'_, 't, T>,
    ) -> CellAnswers<T> {
        self.visit_cells(rows, wanted.cells, &|at, environment, chosen, ws, out| {
            let part = |row: u32| rows.part(at.first + row as usize, at.variable);
            let mut push = |row: u32, distribution: CellDistribution<'t>| {
                let (row, variable) = (at.first + row as usize, at.variable);
                let answer = answer(row, variable, distribution);
                out.push(CellAnswer { row, variable, answer });
            };
            if at.leaf.columns.is_some() {
                at.leaf.probabilities(&self.kernels, environment, chosen, ws, |row, p| {
                    if let Some(p) = normalized(p, part(row)) {
                        push(row, CellDistribution::Finite(p));
                    }
                });
                return;
            }
            let new = || Pieces::new::<C>(at.leaf, &(wanted.functionals)(at.variable));
            let table = tables.0.get(at.place).and_then(|table| table.get_or_init(new).as_ref());
            // The evidence about a cell may exclude atoms and nothing else.
            let domain = at.leaf.basis.natural_domain();
            let is_whole = |row: u32| part(row).is_none_or(|p| p.covers_rest(&domain));
            let (piecewise, exact): (Vec<u32>, Vec<u32>) =
                chosen.iter().partition(|&&row| table.is_some() && is_whole(row));
            for row in exact {
                let all = at.leaf.distribution::<C>(environment, row as usize);
                let within = match part(row) {
                    Some(part) => all.within(part).ok(),
                    None => Some(all),
                };
                if let Some(distribution) = within {
                    push(row, CellDistribution::Exact(vec![(1.0, distribution)]));
                }
            }
            if let Some(table) = table {
                table.distributions(
                    &self.kernels,
                    at.leaf,
                    environment,
                    (&piecewise, &part as RowPart<'_>),
                    ws,
                    &mut |row, density| push(row, CellDistribution::Piecewise(density)),
                );
            }
        })
    }

    /// Visits the requested cells of all rows. Threads share blocks of rows.
    fn visit_cells<'t, T: Send>(
        &'t self,
        rows: &Batch,
        cells: &(dyn Fn(usize, usize) -> bool + Sync),
        visit: &Visit<'_, 't, T, F>,
    ) -> CellAnswers<T> {
        let block = self.kept_block_len(rows.len());
        let starts: Vec<usize> = (0..rows.len()).step_by(block).collect();
        let blocks: Vec<CellAnswers<T>> = starts
            .par_iter()
            .map_init(
                || self.pool.lend(),
                |ws, &first| {
                    let range = (first, block.min(rows.len() - first));
                    self.visit_block(rows, range, cells, visit, ws)
                },
            )
            .collect();
        let (mut answers, mut logs) = (Vec::new(), Vec::with_capacity(rows.len()));
        for (more, log) in blocks {
            answers.extend(more);
            logs.extend(log);
        }
        (answers, logs)
    }

    /// The number of rows in a block all of whose messages are stored.
    fn kept_block_len(&self, rows: usize) -> usize {
        let numbers = |width: usize| Kind::Mixed.numbers(width) * planes(C);
        let kept: usize = self.program.steps().iter().map(|step| numbers(step.width)).sum();
        let most = (BLOCK_BYTES / (kept * size_of::<F>()).max(1)).next_multiple_of(F::LANES);
        block_len::<F>(rows).min(most.clamp(MIN_BLOCK.next_multiple_of(F::LANES), BLOCK))
    }

    fn visit_block<'t, T>(
        &'t self,
        rows: &Batch,
        (first, count): (usize, usize),
        cells: &(dyn Fn(usize, usize) -> bool + Sync),
        visit: &Visit<'_, 't, T, F>,
        ws: &mut Workspace<F>,
    ) -> CellAnswers<T> {
        let steps = self.program.steps();
        let mut messages = self.evidence_messages(Some(rows), (first, count), ws);
        let mut logs = vec![0.0; count];
        if let Some(Some(root)) = messages.get(self.program.root()) {
            Self::log_traces(root, &mut logs, &ws.log2);
        }
        // For each step, the rows with a requested cell below it.
        let mut wanted: Vec<Vec<bool>> = Vec::with_capacity(steps.len());
        for step in steps {
            let below = match &step.kind {
                StepKind::Leaf { variable, .. } => logs
                    .iter()
                    .enumerate()
                    .map(|(row, log)| *log > f64::NEG_INFINITY && cells(first + row, *variable))
                    .collect(),
                StepKind::Sum { input, .. } => wanted[*input].clone(),
                StepKind::Kronecker { inputs: [a, b], .. }
                | StepKind::Hadamard { inputs: [a, b] } => {
                    wanted[*a].iter().zip(&wanted[*b]).map(|(a, b)| *a || *b).collect()
                }
            };
            wanted.push(below);
        }
        let mut answers = Vec::new();
        let mut environments: Vec<Option<Message<F>>> = steps.iter().map(|_| None).collect();
        environments[self.program.root()] = Some(self.output_environment(ws));
        for (index, step) in steps.iter().enumerate().rev() {
            let Some(environment) = environments[index].take() else { continue };
            match &step.kind {
                StepKind::Leaf { variable, .. } => {
                    let place = step.leaves.start;
                    let leaf = self.leaf(place);
                    let chosen: Vec<u32> =
                        (0..count as u32).filter(|&row| wanted[index][row as usize]).collect();
                    let at = LeafVisit { leaf, place, variable: *variable, first };
                    visit(&at, &environment, &chosen, ws, &mut answers);
                }
                StepKind::Sum { input, .. } if wanted[*input].contains(&true) => {
                    let (above, wanted) = ((&environment, None), Some(&wanted[*input][..]));
                    environments[*input] = Some(self.environment_of(index, 0, above, wanted, ws));
                }
                StepKind::Sum { .. } => {}
                StepKind::Kronecker { inputs, .. } | StepKind::Hadamard { inputs } => {
                    for side in [0, 1] {
                        let (input, other) = (inputs[side], inputs[1 - side]);
                        if wanted[input].contains(&true) {
                            let above = (&environment, messages[other].as_ref());
                            let wanted = Some(&wanted[input][..]);
                            environments[input] =
                                Some(self.environment_of(index, side, above, wanted, ws));
                        }
                    }
                }
            }
            ws.give(environment);
            for &input in step.inputs() {
                if let Some(message) = messages[input].take() {
                    ws.give(message);
                }
            }
        }
        for message in messages.into_iter().flatten() {
            ws.give(message);
        }
        answers.sort_by_key(|cell| (cell.row, cell.variable));
        (answers, logs)
    }
}

/// Normalizes weights to probabilities of the values in a part; `None` if all of them are 0.
fn normalized(weights: &[f64], part: Option<&Part>) -> Option<Vec<f64>> {
    let mut p = match part {
        None => weights.to_vec(),
        Some(part) => {
            let mut kept = vec![0.0; weights.len()];
            part.values(weights.len()).into_iter().for_each(|x| kept[x] = weights[x]);
            kept
        }
    };
    let total: f64 = p.iter().sum();
    for p in &mut p {
        *p /= total;
    }
    (total > 0.0).then_some(p)
}
