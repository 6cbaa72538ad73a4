//! A search among several circuits: candidates one after another, wider ones, a lesson and partners.

mod state;

use std::cell::OnceCell;

use super::checkpoint_bytes::{Reader, Writer};
use super::defaults::MAX_GROWN_VARIABLES;
use super::error::LearnError;
use super::fit::run;
use super::initial::{Start, Starts};
use super::options::FitOptions;
use super::partners::{Ensemble, Partners};
use super::pieces::Rows;
use super::progress::{Control, Fitted, Progress, Snapshot};
use super::trainer::Outcome;
use super::widen::{largest_width, mean_width, widened};
use crate::circuit::{Layer, Skeleton};
use crate::engine::Batch;
use state::State;

pub(crate) use state::has_candidates;
pub use state::used_budget;

/// The best of several fits.
#[derive(Clone, Debug)]
pub struct BestFit {
    /// The index of the best candidate.
    pub index: usize,
    /// Its fit.
    pub fit: Fitted,
    /// The candidates that were fitted and their validation likelihoods, in order.
    pub tried: Vec<(usize, f64)>,
}

/// The best of several fits, with its partners and the weights of all.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) best: BestFit,
    pub(crate) partners: Vec<Fitted>,
    pub(crate) weights: Vec<f64>,
    /// The mean objective of the validation rows under the teacher, if there is one.
    pub(crate) teacher: Option<f64>,
}

/// The cost of scoring a row, relative to learning from it.
const SCORING_COST: f64 = 0.4;
/// The cost of a sum for a row, in addition to its multiply-adds, and in their unit. Without it, the
/// times of narrow circuits would predict that wide ones take hundreds of times as long as they do.
const LAYER_COST: usize = 500;

/// A wider circuit is skipped if there is no time for this fraction of the previous one's epochs.
const MIN_EPOCHS: f64 = 0.5;
/// A fit that grows from a smaller one takes the usual epochs and patience divided by this.
const GROWN_DIVISOR: usize = 2;
/// A mean log-likelihood is better if it is higher by this fraction of √(variables / validation
/// rows). That is about half of the standard error of the difference between two similar circuits.
const MARGIN: f64 = 0.05;
/// A search ends after this many partners that do not improve the mixture. The first has another
/// kind of tree, which may not suit the rows, and the second does not.
const MAX_REJECTED: usize = 2;
/// On tables with at most this many cells, a lesson comes before wider circuits if the teacher is better than the best
/// candidate by this many nats: they would hardly get there, and take longer.
const MAX_EARLY_CELLS: usize = 50_000;
const EARLY_GAIN: f64 = 1.0;
/// A partner of a circuit that has become wider ends after this fraction of its epochs if it is worse
/// by this many nats. It starts from scratch and does not grow, so it would hardly catch up, and would
/// get little weight.
const TRIED: f64 = 0.25;
const HOPELESS: f64 = 0.5;

/// Fits several candidates, one after another, and keeps the one with the best validation
/// likelihood.
///
/// Candidates differ in their widths and numbers of input functions. The first one has the third
/// width and the second number of functions, or the last if there are fewer. Then come more
/// functions, or fewer if more are not better; then wider circuits as long as each is better, and
/// narrower ones if the first wider ones are not. Differences that chance in the validation rows can
/// explain do not count. Each candidate grows from the best one so far if that is smaller, and starts
/// with the same density; circuits over many variables do not.
///
/// On tables with a few thousand rows, wide circuits overfit, and by how much depends on the data.
/// Trying is cheap: a narrow circuit learns much faster than a wide one, which then continues where
/// the narrow one ended. [`Control::Stop`] ends the search. [`Control::Used`] refers to the budget of
/// the whole search, and each candidate may use what is left.
///
/// With the bytes of a [`Snapshot`], the search continues where it was, and finds the same circuit
/// bit for bit as without the interruption, provided that `progress` returns the same values.
///
/// Returns `None` if there are no candidates.
///
/// # Errors
/// A candidate cannot be learned (see [`fit`](super::fit)), or the checkpoint is damaged or from
/// different rows, circuits or options.
pub fn fit_best(
    candidates: &[(Skeleton, FitOptions)],
    train: &Batch,
    valid: &Batch,
    checkpoint: Option<&[u8]>,
    starts: &mut Starts,
    progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
) -> Result<Option<BestFit>, LearnError> {
    let rows = Rows::new(train, valid);
    let found = search(candidates, rows, &Further::default(), checkpoint, starts, progress)?;
    Ok(found.map(|found| found.best))
}

/// The smallest difference between mean log-likelihoods of the validation rows that counts.
fn margin(valid: &Batch) -> f64 {
    MARGIN * (valid.num_variables() as f64 / valid.len().max(1) as f64).sqrt()
}

/// Rows of a [`Teacher`](super::Teacher), for the last two candidates.
#[derive(Debug)]
pub(crate) struct Lesson {
    /// Samples of the teacher.
    pub(crate) rows: Batch,
    /// The mean objective of the validation rows under the teacher.
    pub(crate) valid: f64,
}

/// What a search may try besides its candidates.
#[derive(Default)]
pub(crate) struct Further<'a> {
    /// Whether a circuit that is wider than its candidate is affordable.
    pub(crate) is_affordable: Option<&'a dyn Fn(&Skeleton) -> bool>,
    /// Creates a lesson, for which the last two candidates are.
    pub(crate) teach: Option<&'a dyn Fn() -> Option<Lesson>>,
    pub(crate) partners: Option<Partners<'a>>,
}

/// [`fit_best`], with further circuits.
///
/// Before narrower candidates are tried, the best circuit becomes wider where it is full, as long as
/// that is better. With a budget, a wider circuit over many variables is skipped if the budget seems
/// too small for half as many epochs as the previous candidate took, and partners use the time.
/// If a teacher is better than the best candidate, the second-to-last candidate
/// learns from the lesson's rows. If it is then the best, the last candidate continues from there
/// with the training rows. On small tables, this comes first if the teacher is much better. Finally, partners of the best candidate are fitted until two of them have
/// not improved the mixture. If the best circuit became wider and a partner is much worse after a
/// quarter of its epochs, the partner ends there. A candidate that learned from a lesson has no partners.
pub(crate) fn search(
    candidates: &[(Skeleton, FitOptions)],
    all: Rows<'_>,
    further: &Further<'_>,
    checkpoint: Option<&[u8]>,
    starts: &mut Starts,
    progress: &mut dyn FnMut(&Progress, &Snapshot<'_>) -> Control,
) -> Result<Option<Found>, LearnError> {
    let lessons = if further.teach.is_some() { 2 } else { 0 };
    let (ordinary, _) = candidates.split_at(candidates.len() - lessons);
    let mut reader = checkpoint.map(Reader::new).transpose()?.filter(|from| !from.is_empty());
    let mut state = State::default();
    if let Some(from) = &mut reader {
        state = State::read(from, [ordinary, candidates], all)?;
    }
    reader = reader.filter(|from| !from.is_empty());
    let (mut lesson_starts, lesson) = (Starts::within(&starts.quota), OnceCell::new());
    let (mut pace, mut last_epochs) = (Pace::default(), 0.0);
    let valid = all.valid;
    let is_small = all.train.len().saturating_mul(valid.num_variables()) <= MAX_EARLY_CELLS;
    let mut search = Search { candidates, ordinary, valid, is_small, further, state, mixing: None };
    while let Some(next) = search.next(&lesson)? {
        let num_fitted = search.state.num_fitted;
        let (place, index, (circuit, options)) = match &next {
            Next::Candidate(index) => (0, *index, &candidates[*index]),
            Next::Widened(index, widened) => (0, *index, &**widened),
            Next::Partner(partner) => (1 + num_fitted, candidates.len() + num_fitted, &**partner),
        };
        let is_lesson = index == ordinary.len() && lessons > 0;
        let (rows, starts) = match lesson.get().and_then(Option::as_ref) {
            Some(lesson) if is_lesson => (Rows::new(&lesson.rows, valid), &mut lesson_starts),
            _ => (all, &mut *starts),
        };
        let epoch = work_of(circuit, rows.num_train() as f64 + SCORING_COST * valid.len() as f64);
        let used = search.state.used[0].max(starts.quota.used());
        let would_finish = used + pace.share_of(MIN_EPOCHS * last_epochs * epoch) <= 1.0;
        if let (Next::Candidate(index), None, false) = (&next, &reader, would_finish)
            && search.may_skip(*index)
        {
            search.state.tried.push((*index, f64::NEG_INFINITY));
            continue;
        }
        if search.state.best.is_some() && used + pace.share_of(epoch) > 1.0 {
            break;
        }
        let least = search.least(&next);
        let state = &mut search.state;
        let may_grow = !is_lesson && !state.is_mixing;
        let grown = may_grow.then(|| state.grown(candidates, circuit)).flatten();
        let shorter = shorter(options);
        let options = if grown.is_some() { &shorter } else { options };
        let (mut ended, mut epochs) = (false, 0.0);
        let begun = state.used[0];
        let mut now = state.used;
        let outcome = {
            let (from, start) = (reader.as_mut(), Start { starts, grown, place });
            run(circuit, rows, options, from, start, &mut |p, s| {
                epochs = p.epochs_done();
                let write = |to: &mut Writer| {
                    state.write(now, ordinary, all, to);
                    s.write(to);
                };
                let at = Progress { candidate: index, ..*p };
                let control = progress(&at, &Snapshot::new(&write));
                ended |= control.is_end();
                let is_tried = epochs >= TRIED * options.epochs as f64;
                if is_tried && p.best.is_some_and(|best| best < least) {
                    return Control::Stop;
                }
                let Control::Used(share) = control else { return control };
                now[1] = share;
                Control::Used((share - begun) / (1.0 - begun).max(f64::MIN_POSITIVE))
            })?
        };
        state.used = [now[1]; 2];
        if reader.take().is_none() {
            pace.add(epochs * epoch, state.used[0] - used);
        }
        last_epochs = epochs;
        search.keep(next, outcome)?;
        if ended {
            break;
        }
    }
    search.finish(lesson.into_inner().flatten().as_ref())
}

/// The settings of a fit that grows from a smaller one.
fn shorter(options: &FitOptions) -> FitOptions {
    let [epochs, patience] = [options.epochs, options.patience].map(|n| n.div_ceil(GROWN_DIVISOR));
    FitOptions { epochs, patience, ..options.clone() }
}

/// The settings of a fit of a circuit that is wider than a candidate with these settings.
fn settings_of(options: &FitOptions, circuit: &Skeleton) -> FitOptions {
    with_width(options, largest_width(circuit))
}

/// The settings of the partners of a circuit: those of its candidate, or of the same cost as the
/// wider circuit that took its place.
fn settings_of_partners(options: &FitOptions, widened: Option<&Skeleton>) -> FitOptions {
    let wide = widened.map(mean_width).filter(|width| *width > options.width);
    wide.map_or_else(|| options.clone(), |width| with_width(options, width))
}

/// The settings for another width: good steps are proportional to its inverse.
fn with_width(options: &FitOptions, width: usize) -> FitOptions {
    let rate = options.rate * options.width as f64 / width as f64;
    FitOptions { width, rate, ..options.clone() }
}

/// A running search.
struct Search<'a> {
    candidates: &'a [(Skeleton, FitOptions)],
    /// The candidates that do not learn from a lesson.
    ordinary: &'a [(Skeleton, FitOptions)],
    valid: &'a Batch,
    is_small: bool,
    further: &'a Further<'a>,
    state: State,
    mixing: Option<Mixing<'a>>,
}

/// The next circuit to fit.
enum Next {
    Candidate(usize),
    /// A candidate, and the wider circuit that takes its place.
    Widened(usize, Box<(Skeleton, FitOptions)>),
    Partner(Box<(Skeleton, FitOptions)>),
}

impl<'a> Search<'a> {
    /// The next circuit to fit, if there is one.
    fn next(&mut self, lesson: &OnceCell<Option<Lesson>>) -> Result<Option<Next>, LearnError> {
        let known = self.state.best.as_ref().map(|(n, outcome)| (*n, outcome.best.valid));
        if !self.state.is_mixing {
            let sizes: Vec<[usize; 2]> =
                self.ordinary.iter().map(|(_, o)| [o.width, o.functions]).collect();
            if let Some(index) =
                self.next_lesson(known, lesson, self.is_small.then_some(EARLY_GAIN))
            {
                return Ok(Some(Next::Candidate(index)));
            }
            let mut index = next(&self.state.tried, &sizes, margin(self.valid));
            let is_narrower =
                |n: usize| known.is_some_and(|(best, _)| sizes[n][0] < sizes[best][0]);
            if index.is_none_or(is_narrower) {
                if let Some(widened) = self.widened()? {
                    return Ok(Some(widened));
                }
                index = index.filter(|_| self.state.widened.is_none());
            }
            // If all others have been tried.
            index = index.or_else(|| self.next_lesson(known, lesson, Some(0.0)));
            if let Some(index) = index {
                return Ok(Some(Next::Candidate(index)));
            }
        }
        let state = &mut self.state;
        let (Some((best, _)), Some(partners)) = (known, &self.further.partners) else {
            return Ok(None);
        };
        let kept = state.partners.len();
        let is_open = best < self.ordinary.len()
            && kept < partners.most
            && state.num_fitted < kept + MAX_REJECTED.min(partners.most);
        state.is_mixing |= is_open;
        let settings = settings_of_partners(&self.candidates[best].1, state.widened.as_ref());
        let next = || (partners.of)(&settings, state.num_fitted);
        let partner = is_open.then(next).flatten();
        Ok(partner.map(|partner| Next::Partner(Box::new(partner))))
    }

    /// The next candidate that learns from a lesson, given the best candidate and its value: see [`search`]. The teacher
    /// must be better by this much.
    fn next_lesson(
        &self,
        known: Option<(usize, f64)>,
        lesson: &OnceCell<Option<Lesson>>,
        gain: Option<f64>,
    ) -> Option<usize> {
        let (teach, (best, value), gain) = (self.further.teach?, known?, gain?);
        let (first, tried) = (self.ordinary.len(), &self.state.tried);
        if tried.iter().any(|(n, _)| *n == first) {
            return (best == first && tried.last()?.0 == first).then_some(first + 1);
        }
        let lesson = lesson.get_or_init(teach).as_ref()?;
        (lesson.valid > value + gain).then_some(first)
    }

    /// Whether a candidate need not be tried if there is little time for it: if it is wider than the
    /// best one and would start anew, and partners of the best one can use the time.
    fn may_skip(&self, index: usize) -> bool {
        let Some((best, _)) = &self.state.best else { return false };
        let is_wider = self.candidates[index].1.width > self.candidates[*best].1.width;
        let may_grow = self.valid.num_variables() <= MAX_GROWN_VARIABLES;
        let has_partners = self.further.partners.as_ref().is_some_and(|p| p.most > 0);
        index < self.ordinary.len() && is_wider && !may_grow && has_partners
    }

    /// The log-likelihood of the validation rows that a fit has to reach soon, if it is of a partner.
    fn least(&self, next: &Next) -> f64 {
        match (next, &self.state.widened, &self.state.best) {
            (Next::Partner(partner), Some(_), Some((_, best))) => {
                let (_, options) = &**partner;
                let emphasis = if options.target.is_empty() { 0.0 } else { options.emphasis };
                best.best.valid - HOPELESS * (1.0 + emphasis)
            }
            _ => f64::NEG_INFINITY,
        }
    }

    /// The best circuit, wider where it is full; `None` if that cannot be or was not better.
    fn widened(&mut self) -> Result<Option<Next>, LearnError> {
        let (Some(is_affordable), Some((n, outcome)), false) =
            (self.further.is_affordable, &self.state.best, self.state.is_wide_enough)
        else {
            return Ok(None);
        };
        if *n >= self.ordinary.len() || self.valid.num_variables() > MAX_GROWN_VARIABLES {
            return Ok(None);
        }
        let (circuit, options) = self.best_settings(*n);
        let mut found = None;
        // Otherwise a wider one is not affordable either, and the spectra are not needed.
        if is_affordable(circuit) {
            let fit = outcome.clone().into_fit(circuit, &options)?;
            found = widened(&fit.circuit).filter(|wide| is_affordable(wide));
        }
        let next = found.map(|wide| {
            let options = settings_of(&self.candidates[*n].1, &wide);
            Next::Widened(*n, Box::new((wide, options)))
        });
        self.state.is_wide_enough = next.is_none();
        Ok(next)
    }

    /// The circuit and the settings of the best fit, which is that of the nth candidate.
    fn best_settings(&self, n: usize) -> (&Skeleton, FitOptions) {
        let (circuit, options) = &self.candidates[n];
        match &self.state.widened {
            Some(wide) => (wide, settings_of(options, wide)),
            None => (circuit, options.clone()),
        }
    }

    /// Keeps a candidate if it is the best, and a partner if it improves the mixture.
    fn keep(&mut self, fitted: Next, outcome: Outcome) -> Result<(), LearnError> {
        match fitted {
            Next::Candidate(index) => {
                let state = &mut self.state;
                state.tried.push((index, outcome.best.valid));
                let best = state.best.as_ref().map(|(_, best)| best.best.valid);
                if best.is_none_or(|best| outcome.best.valid > best) {
                    state.best = Some((index, outcome));
                    state.widened = None;
                }
            }
            Next::Widened(index, widened) => {
                let state = &mut self.state;
                let best =
                    state.best.as_ref().map_or(f64::NEG_INFINITY, |(_, best)| best.best.valid);
                state.is_wide_enough = outcome.best.valid <= best + margin(self.valid);
                if outcome.best.valid > best {
                    state.best = Some((index, outcome));
                    state.widened = Some(widened.0);
                }
            }
            Next::Partner(partner) => {
                let (circuit, options) = *partner;
                let fit = outcome.clone().into_fit(&circuit, &options)?;
                let is_better = self.mixing()?.is_some_and(|mixing| mixing.add_if_better(fit));
                if is_better {
                    self.state.partners.push((self.state.num_fitted, outcome));
                }
                self.state.num_fitted += 1;
            }
        }
        Ok(())
    }

    /// The mixture so far, if there is a circuit that may have partners.
    fn mixing(&mut self) -> Result<Option<&mut Mixing<'a>>, LearnError> {
        if let (None, Some((n, best)), Some(partners)) =
            (&self.mixing, &self.state.best, &self.further.partners)
        {
            let (circuit, options) = self.best_settings(*n);
            let best = best.clone().into_fit(circuit, &options)?;
            let settings =
                settings_of_partners(&self.candidates[*n].1, self.state.widened.as_ref());
            let fitted = &self.state.partners;
            self.mixing = Some(Mixing::new(&best, &settings, fitted, partners, self.valid)?);
        }
        Ok(self.mixing.as_mut())
    }

    fn finish(mut self, lesson: Option<&Lesson>) -> Result<Option<Found>, LearnError> {
        let (mut partners, mut weights) = (Vec::new(), vec![1.0]);
        if !self.state.partners.is_empty()
            && let Some(mixing) = self.mixing()?
        {
            partners = std::mem::take(&mut mixing.partners);
            weights = std::mem::take(&mut mixing.ensemble.weights);
        }
        let Some((index, outcome)) = self.state.best.take() else { return Ok(None) };
        let (circuit, options) = self.best_settings(index);
        let fit = outcome.into_fit(circuit, &options)?;
        // Skipped candidates have no likelihood.
        let tried = self.state.tried.into_iter().filter(|(_, valid)| valid.is_finite()).collect();
        let best = BestFit { index, fit, tried };
        Ok(Some(Found { best, partners, weights, teacher: lesson.map(|lesson| lesson.valid) }))
    }
}

/// The best fit and its partners, as a mixture.
#[derive(Debug)]
struct Mixing<'a> {
    partners: Vec<Fitted>,
    ensemble: Ensemble<'a>,
}

impl<'a> Mixing<'a> {
    fn new(
        best: &Fitted,
        options: &FitOptions,
        fitted: &[(usize, Outcome)],
        partners: &Partners<'_>,
        valid: &'a Batch,
    ) -> Result<Self, LearnError> {
        let ensemble = Ensemble::new(&best.circuit, valid, options);
        let mut mixing = Self { partners: Vec::new(), ensemble };
        for (place, outcome) in fitted {
            let (circuit, options) = (partners.of)(options, *place).ok_or(LearnError::Damaged)?;
            mixing.add_if_better(outcome.clone().into_fit(&circuit, &options)?);
        }
        Ok(mixing)
    }

    /// Adds a partner if it improves the mixture, and returns whether it does.
    fn add_if_better(&mut self, fit: Fitted) -> bool {
        let is_better = self.ensemble.add_if_better(&fit.circuit);
        if is_better {
            self.partners.push(fit);
        }
        is_better
    }
}

/// The work of finished candidates, and the fraction of the budget that it has taken.
#[derive(Debug, Default)]
struct Pace {
    work: f64,
    share: f64,
}

impl Pace {
    fn add(&mut self, work: f64, share: f64) {
        self.work += work;
        self.share += share;
    }

    /// The expected fraction of the budget for this much work; 0 if nothing is known.
    fn share_of(&self, work: f64) -> f64 {
        if self.work > 0.0 { self.share / self.work * work } else { 0.0 }
    }
}

/// The number of multiply-adds for this many rows, including what takes the time of some of them.
fn work_of(circuit: &Skeleton, rows: f64) -> f64 {
    let entries = circuit.layers().iter().map(|layer| match layer {
        Layer::Sum { weight, .. } => {
            let entries: usize = circuit.weight_shapes()[weight.index()].iter().product();
            entries + LAYER_COST
        }
        Layer::Input { .. } | Layer::Hadamard { .. } | Layer::Kronecker { .. } => 0,
    });
    rows * entries.sum::<usize>() as f64
}

/// The index of the first width to try, among all widths.
const FIRST_WIDTH: usize = 2;
/// The index of the first number of functions to try, among all numbers.
const FIRST_FUNCTIONS: usize = 1;

/// The next candidate to try. A value is better if it is higher by more than the margin.
///
/// Starting from the best one, these are tried in order: the next number of functions, unless more
/// functions have not been better before; fewer functions; the second-next and the next width; and,
/// if no width above the first was better, the one below.
pub(super) fn next(
    tried: &[(usize, f64)],
    candidates: &[[usize; 2]],
    margin: f64,
) -> Option<usize> {
    let is_best = |value: f64| tried.iter().all(|(_, other)| *other <= value);
    if tried.iter().any(|(n, value)| *n >= candidates.len() && is_best(*value)) {
        return None;
    }
    let tried: Vec<(usize, f64)> =
        tried.iter().filter(|(n, _)| *n < candidates.len()).copied().collect();
    let tried = &tried[..];
    let axis = |n: usize| {
        let mut values: Vec<usize> = candidates.iter().map(|c| c[n]).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    let (widths, functions) = (axis(0), axis(1));
    let place = |n: usize| {
        let at = |values: &[usize], x| values.partition_point(|v| *v < x);
        [at(&widths, candidates[n][0]), at(&functions, candidates[n][1])]
    };
    let first = [
        FIRST_WIDTH.min(widths.len().checked_sub(1)?),
        FIRST_FUNCTIONS.min(functions.len().checked_sub(1)?),
    ];
    let untried = |width: Option<usize>, number: Option<usize>| {
        let wanted = [*widths.get(width?)?, *functions.get(number?)?];
        let found = candidates.iter().position(|c| *c == wanted)?;
        tried.iter().all(|(n, _)| candidates[*n] != wanted).then_some(found)
    };
    let better = |best: (usize, f64), &(n, value): &(usize, f64)| {
        if value > best.1 + margin { (n, value) } else { best }
    };
    let Some((&start, rest)) = tried.split_first() else {
        return untried(Some(first[0]), Some(first[1]));
    };
    let (best, _) = rest.iter().fold(start, better);
    let [width, number] = place(best);
    let numbers = || tried.iter().map(|(n, _)| place(*n)[1]);
    let more = || {
        let is_open = numbers().all(|n| n <= number);
        untried(Some(width), is_open.then_some(number + 1))
    };
    let fewer = || {
        let is_open = number <= first[1] && numbers().all(|n| n >= number);
        untried(Some(width), number.checked_sub(1).filter(|_| is_open))
    };
    let wider = |by: usize| untried((width >= first[0]).then_some(width + by), Some(number));
    let twice = || if width == first[0] { wider(2) } else { None };
    let narrower = || untried(width.checked_sub(1).filter(|_| width <= first[0]), Some(number));
    more().or_else(fewer).or_else(twice).or_else(|| wider(1)).or_else(narrower)
}
