use super::options::FitOptions;
use crate::structure::Widths;

/// Default settings, from the number n of rows and the number d of variables.
///
/// | setting | value |
/// |---|---|
/// | widths | 8, then 16 (or else 12), 24, 32 as long as validation gets better, or else 4 and 2; none of more than 2.5 10¹⁰ / n d for its cube, or with missing values for 2.5 times its fourth power. From 20 million cells n d on, only 16, with missing values 8. Over 6 to 48 variables, circuits of 24 and more may be wider towards the middle instead, at about the same cost, see [`tapered`](Self::tapered) |
/// | squares | twice the width, which are also the components of the mixture that a fit starts from |
/// | batch | n / 150, from 32 to 256; 512 from 20 million cells on |
/// | rate | 0.01 / width at a batch of 128, scaled with the square root of the batch; 2.5 times that for up to 24 variables with at least 8 values on average (see [`with_values`](Self::with_values)); 0.16 / width from 20 million cells on |
/// | epochs | 400,000 rows in all, 2,400,000 from 20 million cells on; from 10 to 150 epochs |
/// | patience | an eighth of the epochs, at least 6 |
/// | averaging | over about one epoch, at most 500 steps |
/// | smoothing | of images: 150 / n below 20,000 rows; of ordered columns: 500 / n, at most 0.1 |
/// | functions | of a continuous variable: √n, from 12 to 48, then twice as many if validation gets better, or else a third; 48 if it is the only one |
/// | roughness | 0.3 / n |
///
/// Images of 20 million cells and more, without missing values, have settings of their own, see [`images`](Self::images).
///
/// With [`Effort::Fast`], only the largest of the widths up to 8 and the fewest functions are fitted; from 8,000 rows on up to 12, and from
/// 16,000 on up to 16, where an epoch takes a second at most. With [`Effort::Best`], widths up
/// to 64 and four times the functions are tried, whatever an epoch takes, with three times the epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    rows: usize,
    variables: usize,
    /// Values of all variables together.
    values: usize,
    has_holes: bool,
    effort: Effort,
}

/// How much a fit tries if settings are not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Effort {
    /// One small circuit: a usable model in seconds.
    Fast,
    /// Several circuits, as long as they improve and an epoch takes at most a few seconds.
    #[default]
    Balanced,
    /// Larger circuits and longer fits, until nothing improves; best combined with a time limit.
    Best,
}

/// Widths to try, from the narrowest, with all effort.
const ALL_WIDTHS: [usize; 9] = [2, 4, 8, 12, 16, 24, 32, 48, 64];
/// Those to try by default.
const WIDTHS: &[usize] = ALL_WIDTHS.split_at(7).0;
/// The number of widths of which a fast fit takes the last, the rows from which on, and twice which, it is one more, and the part of the work
/// that it may then take.
const FAST_WIDTHS: usize = 3;
const FAST_ROWS: usize = 8_000;
const FAST_PART: f64 = 0.125;
/// How many times the epochs a fit takes with all effort.
const BEST_EPOCHS: usize = 3;
/// How many times the cube of a width an epoch may take, for all cells together: some seconds on two cores.
const WORK: f64 = 2.5e10;
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
/// Rows of a teacher, how often they are learned from, and how many of the widths may be.
pub(crate) const LESSON_ROWS: usize = 40_000;
const LESSON_EPOCHS: usize = 3;
const LESSON_WIDTHS: usize = 6;
/// The last width that is always one of all regions, and the numbers of variables for which wider circuits may be tapered.
const LAST_UNIFORM: usize = 16;
const TAPERED: std::ops::RangeInclusive<usize> = 6..=48;
/// How much wider their widest regions are than single variables.
const WIDEST: f64 = 2.5;
/// Cells of a table from which on one fit is all that there is time for.
const MANY: usize = 20_000_000;

/// Passes over many images.
const IMAGE_EPOCHS: usize = 16;
/// Widths by the size of regions, squares, the size of the codebook, and the pixels of regions that share weights.
type Rung = (&'static [(usize, usize)], usize, Option<usize>, usize);
/// Circuits for many images, from the cheapest.
const IMAGES: [Rung; 4] = [
    (&[(1, 8), (2, 12), (4, 16), (32, 24), (64, 32)], 64, Some(24), 0),
    (&[(1, 12), (2, 16), (32, 24), (64, 32)], 64, Some(24), 0),
    (&[(1, 16), (2, 20), (4, 24), (32, 32)], 64, None, 4),
    (&[(1, 24), (2, 28), (4, 32), (32, 48)], 96, None, 4),
];

impl Defaults {
    /// The settings for this many rows and variables.
    pub fn of(rows: usize, variables: usize) -> Self {
        let effort = Effort::default();
        Self { rows: rows.max(1), variables, values: 0, has_holes: false, effort }
    }

    /// The same for variables that have this many values together, where a continuous variable counts with its number of
    /// [functions](Self::first_functions). Steps are longer for few variables with many values.
    #[must_use]
    pub fn with_values(self, values: usize) -> Self {
        Self { values, ..self }
    }

    /// The same with more or less effort.
    #[must_use]
    pub fn with_effort(self, effort: Effort) -> Self {
        Self { effort, ..self }
    }

    /// The same for rows with missing values, which take far longer at large widths.
    #[must_use]
    pub fn with_holes(self, has_holes: bool) -> Self {
        Self { has_holes, ..self }
    }

    fn is_large(&self) -> bool {
        self.rows.saturating_mul(self.variables) >= MANY
    }

    /// The widths to try, from the narrowest, for [`fit_best`](super::fit_best).
    pub fn widths(&self) -> &'static [usize] {
        match self.effort {
            Effort::Fast => {
                let (all, most) = (self.affordable_widths(WORK), (self.rows / FAST_ROWS).min(2));
                let quick = self.affordable_widths(FAST_PART * WORK).len();
                let count = quick.clamp(FAST_WIDTHS, FAST_WIDTHS + most).min(all.len());
                &all[count - 1..count]
            }
            Effort::Balanced => self.affordable_widths(WORK),
            Effort::Best => &ALL_WIDTHS,
        }
    }

    fn affordable_widths(&self, work: f64) -> &'static [usize] {
        if self.is_large() {
            return if self.has_holes { &WIDTHS[2..3] } else { &WIDTHS[4..5] };
        }
        let fits = |&&width: &&usize| {
            let one =
                if self.has_holes { 2.5 * width as f64 } else { 1.0 } * (width as f64).powi(3);
            one * (self.rows as f64) * (self.variables as f64) <= work
        };
        &WIDTHS[..WIDTHS.iter().take_while(fits).count().max(1)]
    }

    /// The number of input functions of a continuous variable to begin with.
    pub fn first_functions(&self) -> usize {
        if self.variables == 1 {
            return MAX_FUNCTIONS;
        }
        ((self.rows as f64).sqrt() as usize).clamp(MIN_FUNCTIONS, MAX_FUNCTIONS)
    }

    /// The numbers of input functions of a continuous variable to try, from the fewest, for [`fit_best`](super::fit_best).
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

    /// How strongly the input weights of images are drawn towards smooth ones, of [`FitOptions::smoothing`].
    ///
    /// As a prior of fixed strength is: less, the more rows there are, and nothing from 20,000 rows on, where it was not tried.
    pub fn image_smoothing(&self) -> f64 {
        if self.rows < 20_000 { 150.0 / self.rows.max(150) as f64 } else { 0.0 }
    }

    /// The same of the columns of other tables whose values have an order: such as 500 rows have, and never more than a tenth of a row.
    pub fn table_smoothing(&self) -> f64 {
        500.0 / self.rows.max(5000) as f64
    }

    /// The settings for many images without missing values, from the cheapest to the dearest circuit; empty for others.
    ///
    /// Regions are wider the larger they are. Cheap circuits have a codebook of gray levels and a weight of its own for each
    /// region; dear ones share the weights of small regions, which leaves little to overfit. Steps are short, 0.03 over the root of a
    /// weight's columns at a batch of 512, so that the mixture that a fit starts from is not forgotten.
    pub fn images(&self) -> Vec<FitOptions> {
        if !self.is_large() || self.has_holes {
            return Vec::new();
        }
        let options = |&(widths, squares, codebook, share): &Rung| FitOptions {
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

    /// Rows to a step.
    pub(crate) fn batch(&self) -> usize {
        if self.is_large() { 512 } else { (self.rows / 150).clamp(32, 256) }
    }

    /// The settings of a fit with inner layers of this width.
    pub fn options(&self, width: usize) -> FitOptions {
        let batch = self.batch();
        let total = if self.is_large() { 2_400_000 } else { 400_000 };
        let longer = if self.effort == Effort::Best { BEST_EPOCHS } else { 1 };
        let epochs = (total / self.rows).clamp(10, 150) * longer;
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

    /// The settings of a fit at about the cost of this width in which regions are not of one width, where that comes into question: beyond
    /// 16, over 6 to 48 variables.
    ///
    /// Single variables have the next smaller width, and a region has √s times that, where s is the number of variables inside it or
    /// outside, whichever are fewer, at most 2.5 times: what two parts of a row know of each other grows with the smaller part.
    pub fn tapered(&self, width: usize) -> Option<FitOptions> {
        let single = *ALL_WIDTHS.iter().rev().find(|w| **w < width)?;
        let is_wide = width > LAST_UNIFORM && TAPERED.contains(&self.variables) && !self.is_large();
        is_wide.then(|| {
            let widths = Some(tapered(single, self.variables));
            FitOptions { widths, squares: 2 * single, ..self.options(width) }
        })
    }

    /// The settings of a fit to rows of a teacher, and of the fit to the table's own rows after it.
    pub fn lessons(&self) -> [FitOptions; 2] {
        let cells = (LESSON_EPOCHS * LESSON_ROWS * self.variables) as f64;
        let is_affordable = |width: &&usize| cells * (**width as f64).powi(3) <= WORK;
        let width = WIDTHS[..LESSON_WIDTHS].iter().rev().find(is_affordable).unwrap_or(&WIDTHS[0]);
        let own = self.options(*width);
        let functions = (2 * self.first_functions()).clamp(32, 64);
        let lesson = Self { rows: LESSON_ROWS, ..*self }.options(*width);
        let lesson = FitOptions { epochs: LESSON_EPOCHS, patience: 1, functions, ..lesson };
        [lesson, FitOptions { rate: 0.3 * own.rate, functions, ..own }]
    }

    /// Entries of a semi-unitary weight have a size of about 1 / width, and so have good steps: short ones where a fit starts near
    /// a good mixture and has few rows to learn more from.
    fn rate(&self, width: usize, batch: usize) -> f64 {
        let is_far = self.variables <= FEW_VARIABLES && self.values >= MANY_VALUES * self.variables;
        let longer = if is_far { LONGER_STEPS } else { 1.0 };
        let step =
            if self.is_large() { 0.16 } else { longer * 0.01 * (batch as f64 / 128.0).sqrt() };
        step / width.max(1) as f64
    }
}

/// Widths that grow towards regions of half of the variables, in steps of 4.
fn tapered(single: usize, variables: usize) -> Widths {
    let width = |size: usize| {
        let factor = (size.min(variables - size) as f64).sqrt().min(WIDEST);
        (factor * single as f64 / 4.0).round() as usize * 4
    };
    let mut steps: Vec<(usize, usize)> = (1..variables).map(|size| (size, width(size))).collect();
    steps.dedup_by_key(|(_, width)| *width);
    Widths::from(&steps[..])
}
