use super::options::FitOptions;
use crate::circuit::Skeleton;
use crate::structure::Widths;

/// Default settings for a table with n rows and d variables.
///
/// | setting | value |
/// |---|---|
/// | widths | 8, then 16, 24 and 32 as long as the validation likelihood improves, or else 12, or else 4 and 2. A width w is tried only if n d w³ is at most 2.5 10¹⁰, or 2.5 n d w⁴ if all rows have missing values. With 20 million cells n d or more, only 16, or 8 with missing values. In a fit of a table without a time limit, only while the epochs of all its circuits cost at most 2.5 10¹¹, updates included. With up to 48 variables, 8 and 16; after that, a circuit becomes wider only where it is full, as long as that improves it and at the same limit of its cost |
/// | squares | twice the width; this is also the number of components of the initial mixture, unless they share parameters: then there are 256 |
/// | batch | n / 150, between 32 and 256; 512 with 20 million cells or more |
/// | rate | 0.01 / width at a batch of 128, proportional to the square root of the batch; 2.5 times that for up to 24 variables with at least 8 values on average (see [`with_values`](Self::with_values)); 0.16 / width with 20 million cells or more |
/// | epochs | 400,000 rows in total, or 2,400,000 with 20 million cells or more; between 10 and 150 epochs |
/// | patience | an eighth of the epochs, at least 6 |
/// | averaging | over about one epoch, at most 500 steps |
/// | smoothing | of images: 150 / n below 20,000 rows; of ordered columns: 500 / n, at most 0.1 |
/// | functions | of a continuous variable: √n, from 12 to 48, then twice as many if validation gets better, or else a third; 48 if it is the only one |
/// | roughness | 0.3 / n |
///
/// Images with 20 million cells or more and without missing values have separate settings: see
/// [`images`](Self::images).
///
/// With [`Effort::Fast`], only one width and one number of functions are fitted. The width is at most
/// 8; with 8,000 rows or more, it is at most 12, and with 16,000 at most 16, if an epoch takes about
/// a second or less. With [`Effort::Best`], widths up to 64, any circuit that is wider where it was full, and up
/// to four times the functions are tried, however long an epoch takes, with three times the epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    rows: usize,
    variables: usize,
    /// The total number of values of all variables.
    values: usize,
    /// The number of rows with missing values.
    incomplete: usize,
    effort: Effort,
}

/// How much a fit tries by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Effort {
    /// Small circuits: a usable model in seconds.
    Fast,
    /// Several circuits, as long as they improve and an epoch takes at most a few seconds.
    #[default]
    Balanced,
    /// Larger circuits and longer fits, until nothing improves; best combined with a time limit.
    Best,
}

/// The widths to try with [`Effort::Best`].
const ALL_WIDTHS: [usize; 9] = [2, 4, 8, 12, 16, 24, 32, 48, 64];
/// The widths to try by default.
const WIDTHS: &[usize] = ALL_WIDTHS.split_at(7).0;
/// A fast fit takes the last of this many widths, one more per `FAST_ROWS` rows, up to two more, if
/// the work is at most this fraction of `WORK`.
const FAST_WIDTHS: usize = 3;
const FAST_ROWS: usize = 8_000;
const FAST_PART: f64 = 0.125;
/// The factor of the epochs with [`Effort::Best`].
const BEST_EPOCHS: usize = 3;
/// The maximum work of an epoch, the number of cells times the cube of the width: a few seconds on
/// two cores.
const WORK: f64 = 2.5e10;
/// The same for all epochs of circuits that have become wider, for all circuits of a model together.
const TOTAL_WORK: f64 = 10.0 * WORK;
/// The minimum and maximum number of epochs.
const MIN_EPOCHS: usize = 10;
const MAX_EPOCHS: usize = 150;
/// The cost of missing values, relative to the width.
const MISSING_COST: f64 = 2.5;
/// Input functions of a continuous variable.
const FEWEST_FUNCTIONS: usize = 6;
const MIN_FUNCTIONS: usize = 12;
const MAX_FUNCTIONS: usize = 48;
/// The strength of a prior against functions that change fast. Rows determine an amplitude up to a variance of 1 / 4 n, so the
/// prior outweighs them for Legendre polynomials whose degree k has 0.3 k² > 4 n: beyond degree 44 with 150 rows, and 365 with
/// 10,000.
const ROUGHNESS: f64 = 0.3;
/// How much longer steps are for few variables with many values. A mixture of products captures less of what such variables
/// have in common, so a fit has further to go from it.
const LONGER_STEPS: f64 = 2.5;
/// The maximum number of variables, and the minimum mean number of their values, for longer steps.
const FEW_VARIABLES: usize = 24;
const MANY_VALUES: usize = 8;
/// The number of samples of a teacher, the number of epochs over them, and the number of widths to
/// choose from.
pub(crate) const LESSON_ROWS: usize = 40_000;
const LESSON_EPOCHS: usize = 3;
const LESSON_WIDTHS: usize = 6;
/// The maximum number of variables of circuits that grow from others. With more variables, the
/// clusters of rows matter most: a wider circuit has more squares, and learns better from a start
/// with as many clusters than from a narrower circuit with fewer.
pub(super) const MAX_GROWN_VARIABLES: usize = 48;
/// The widths of circuits that can then grow where they are full.
const FIRST_WIDTHS: [usize; 4] = [2, 4, 8, 16];
/// With this many cells, there is only time for one fit.
const MANY_CELLS: usize = 20_000_000;

/// The number of epochs for many images.
const IMAGE_EPOCHS: usize = 16;
/// The widths by the size of regions, the number of squares, the size of the codebook, and the
/// maximum number of pixels of regions that share weights.
type ImageCircuit = (&'static [(usize, usize)], usize, Option<usize>, usize);
/// The circuits for many images, the cheapest first.
const IMAGES: [ImageCircuit; 4] = [
    (&[(1, 8), (2, 12), (4, 16), (32, 24), (64, 32)], 64, Some(24), 0),
    (&[(1, 12), (2, 16), (32, 24), (64, 32)], 64, Some(24), 0),
    (&[(1, 16), (2, 20), (4, 24), (32, 32)], 64, None, 4),
    (&[(1, 24), (2, 28), (4, 32), (32, 48)], 96, None, 4),
];

impl Defaults {
    /// The settings for this many rows and variables.
    pub fn of(rows: usize, variables: usize) -> Self {
        let effort = Effort::default();
        Self { rows: rows.max(1), variables, values: 0, incomplete: 0, effort }
    }

    /// Sets the total number of values of all variables. A continuous variable counts with its number
    /// of [functions](Self::first_functions). The learning rate is higher for few variables with many
    /// values.
    #[must_use]
    pub fn with_values(self, values: usize) -> Self {
        Self { values, ..self }
    }

    /// Sets the effort.
    #[must_use]
    pub fn with_effort(self, effort: Effort) -> Self {
        Self { effort, ..self }
    }

    /// Sets the number of rows with missing values, which take much longer at large widths.
    #[must_use]
    pub fn with_missing(self, rows: usize) -> Self {
        Self { incomplete: rows.min(self.rows), ..self }
    }

    /// The cost of a layer of this width, relative to that without missing values.
    fn cost_of_missing(&self, width: usize) -> f64 {
        let share = self.incomplete as f64 / self.rows as f64;
        (1.0 - share) + share * MISSING_COST * width as f64
    }

    fn is_large(&self) -> bool {
        self.rows.saturating_mul(self.variables) >= MANY_CELLS
    }

    /// The widths to try, in increasing order, for [`fit_best`](super::fit_best).
    pub fn widths(&self) -> &'static [usize] {
        match self.effort {
            Effort::Fast => {
                let (all, most) = (self.affordable_widths(WORK), (self.rows / FAST_ROWS).min(2));
                let quick = self.affordable_widths(FAST_PART * WORK).len();
                let count = quick.clamp(FAST_WIDTHS, FAST_WIDTHS + most).min(all.len());
                &all[count - 1..count]
            }
            Effort::Balanced if self.grows() => {
                let most = self.affordable_widths(WORK).last().copied().unwrap_or(1);
                &FIRST_WIDTHS[..FIRST_WIDTHS.partition_point(|w| *w <= most).max(1)]
            }
            Effort::Balanced => self.affordable_widths(WORK),
            Effort::Best if self.grows() => &FIRST_WIDTHS,
            Effort::Best => &ALL_WIDTHS,
        }
    }

    /// Whether circuits start narrow and then grow where they are full.
    fn grows(&self) -> bool {
        self.variables <= MAX_GROWN_VARIABLES && !self.is_large()
    }

    fn affordable_widths(&self, work: f64) -> &'static [usize] {
        if self.is_large() {
            return if self.incomplete > 0 { &WIDTHS[2..3] } else { &WIDTHS[4..5] };
        }
        let fits = |&&width: &&usize| {
            let one = self.cost_of_missing(width) * (width as f64).powi(3);
            one * (self.rows as f64) * (self.variables as f64) <= work
        };
        &WIDTHS[..WIDTHS.iter().take_while(fits).count().max(1)]
    }

    /// The number of input functions of a continuous variable to try first.
    pub fn first_functions(&self) -> usize {
        if self.variables == 1 {
            return MAX_FUNCTIONS;
        }
        ((self.rows as f64).sqrt() as usize).clamp(MIN_FUNCTIONS, MAX_FUNCTIONS)
    }

    /// The numbers of input functions of a continuous variable to try, in increasing order, for
    /// [`fit_best`](super::fit_best).
    pub fn functions(&self) -> Vec<usize> {
        let first = self.first_functions();
        let fewer = (first / 3).max(FEWEST_FUNCTIONS);
        match self.effort {
            _ if self.variables == 1 => vec![first],
            Effort::Fast => vec![first],
            Effort::Balanced => vec![fewer, first, 2 * first],
            Effort::Best => vec![fewer, first, 2 * first, 4 * first],
        }
    }

    /// The strength of [`FitOptions::smoothing`] for images.
    ///
    /// It is that of a fixed prior, so it decreases with the number of rows. It is 0 with 20,000 rows
    /// or more, for which it has not been tested.
    pub fn image_smoothing(&self) -> f64 {
        if self.rows < 20_000 { 150.0 / self.rows.max(150) as f64 } else { 0.0 }
    }

    /// The strength of [`FitOptions::smoothing`] for columns of other tables with ordered values.
    pub fn table_smoothing(&self) -> f64 {
        500.0 / self.rows.max(5000) as f64
    }

    /// The settings for many images without missing values, the cheapest circuit first; empty for
    /// other tables.
    ///
    /// Larger regions are wider. Cheap circuits have a codebook of gray levels and separate weights
    /// for all regions; expensive ones share the weights of small regions, which reduces overfitting.
    /// The learning rate is low, 0.03 divided by the root of a weight's number of columns at a batch
    /// of 512, so that the fit stays close to its initial mixture.
    pub fn images(&self) -> Vec<FitOptions> {
        if !self.is_large() || self.incomplete > 0 {
            return Vec::new();
        }
        let options = |&(widths, squares, codebook, share): &ImageCircuit| FitOptions {
            width: widths.iter().map(|w| w.1).max().unwrap_or(1),
            widths: Some(Widths::from(widths)),
            codebook,
            share,
            squares,
            epochs: IMAGE_EPOCHS,
            batch: self.batch(),
            rate: 0.03,
            by_columns: true,
            warm_up: 0.02,
            patience: IMAGE_EPOCHS,
            averaging: 0.998,
            ..FitOptions::default()
        };
        IMAGES.iter().map(options).collect()
    }

    /// The number of rows per step.
    pub(crate) fn batch(&self) -> usize {
        if self.is_large() { 512 } else { (self.rows / 150).clamp(32, 256) }
    }

    /// The maximum number of epochs without more effort.
    fn epochs(&self) -> usize {
        let total = if self.is_large() { 2_400_000 } else { 400_000 };
        (total / self.rows).clamp(MIN_EPOCHS, MAX_EPOCHS)
    }

    /// The settings of a fit with inner layers of this width.
    pub fn options(&self, width: usize) -> FitOptions {
        let batch = self.batch();
        let longer = if self.effort == Effort::Best { BEST_EPOCHS } else { 1 };
        let epochs = self.epochs() * longer;
        let steps = self.rows.div_ceil(batch);
        FitOptions {
            width,
            squares: 2 * width,
            epochs,
            batch,
            rate: self.rate(width, batch),
            patience: epochs.div_ceil(8).max(6),
            averaging: (1.0 - 1.0 / steps as f64).clamp(0.95, 0.998),
            roughness: ROUGHNESS / self.rows as f64,
            ..FitOptions::default()
        }
    }

    /// Whether fits of several circuits of this width, as many as `count`, end after about a minute. Circuits over few
    /// variables start narrow, and [`is_affordable`](Self::is_affordable) limits how they grow.
    pub(crate) fn is_quick(&self, width: usize, count: usize) -> bool {
        if self.effort != Effort::Balanced || self.grows() || self.is_large() {
            return true;
        }
        let shapes = std::iter::repeat_n([width, width * width], self.variables);
        self.total_work(shapes, count) <= TOTAL_WORK
    }

    /// Whether a circuit that has grown where its best version was full is affordable, as one of several
    /// that are fitted.
    pub(crate) fn is_affordable(&self, circuit: &Skeleton, count: usize) -> bool {
        let shapes = circuit.weight_shapes().iter().copied();
        match self.effort {
            Effort::Fast => false,
            Effort::Balanced => self.total_work(shapes, count) <= TOTAL_WORK,
            Effort::Best => true,
        }
    }

    /// The work of all epochs of this many fits of a circuit whose weights have these shapes.
    fn total_work(&self, shapes: impl Iterator<Item = [usize; 2]>, count: usize) -> f64 {
        // The update of a weight costs about as much as a row for each of its outputs.
        let updates = self.rows.div_ceil(self.batch()) as f64;
        let work = shapes.map(|[rows, cols]| {
            let all_rows = self.cost_of_missing(rows) * self.rows as f64 + updates * rows as f64;
            all_rows * (rows * cols) as f64
        });
        work.sum::<f64>() * (count * self.epochs()) as f64
    }

    /// The settings of a fit to samples of a teacher, and of the following fit to the table's own
    /// rows.
    pub fn lessons(&self) -> [FitOptions; 2] {
        let cells = (LESSON_EPOCHS * LESSON_ROWS * self.variables) as f64;
        let is_affordable = |width: &&usize| cells * (**width as f64).powi(3) <= WORK;
        let width = WIDTHS[..LESSON_WIDTHS].iter().rev().find(is_affordable).unwrap_or(&WIDTHS[0]);
        let own = self.options(*width);
        let functions = (2 * self.first_functions()).clamp(64, 96);
        let lesson = Self { rows: LESSON_ROWS, ..*self }.options(*width);
        let lesson = FitOptions { epochs: LESSON_EPOCHS, patience: 1, functions, ..lesson };
        [lesson, FitOptions { rate: 0.3 * own.rate, functions, ..own }]
    }

    /// The learning rate. The entries of a semi-unitary weight are about 1 / width, and good steps are
    /// proportional to that. Steps are short if a fit starts near a good mixture.
    fn rate(&self, width: usize, batch: usize) -> f64 {
        let is_far_from_mixture =
            self.variables <= FEW_VARIABLES && self.values >= MANY_VALUES * self.variables;
        let longer = if is_far_from_mixture { LONGER_STEPS } else { 1.0 };
        let step =
            if self.is_large() { 0.16 } else { longer * 0.01 * (batch as f64 / 128.0).sqrt() };
        step / width.max(1) as f64
    }
}
