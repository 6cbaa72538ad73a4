use super::options::FitOptions;

/// Settings that need no tuning, from the number n of rows and d of variables.
///
/// | setting | value |
/// |---|---|
/// | widths | 4, then 6, 8, 12, 16, 24, 32 as long as validation gets better, or else 3 and 2: narrow circuits are quick to try, and on small tables often the best. From 20 million cells n d on, only 16 |
/// | squares | as many as the width |
/// | batch | n / 300, from 32 to 128; 512 from 20 million cells on |
/// | rate | 0.04 / width at a batch of 128, less as the root of smaller batches, more in proportion to larger ones |
/// | epochs | 400,000 rows in all, from 10 to 150 epochs; early stopping ends most fits before |
/// | patience | half of the epochs: much is gained at the end of the cosine |
/// | averaging | over about one epoch, at most 500 steps |
/// | functions | of a continuous variable: 8, 12 from 1,000 and 16 from 10,000 rows on |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    rows: usize,
    variables: usize,
}

/// Widths to try, from the narrowest: each costs about three times the one before it.
const WIDTHS: [usize; 9] = [2, 3, 4, 6, 8, 12, 16, 24, 32];
/// Cells of a table from which on one fit is all that there is time for.
const MANY: usize = 20_000_000;

impl Defaults {
    /// The settings for so many rows of so many variables.
    pub fn of(rows: usize, variables: usize) -> Self {
        Self { rows: rows.max(1), variables }
    }

    fn is_large(&self) -> bool {
        self.rows.saturating_mul(self.variables) >= MANY
    }

    /// The widths to try, from the narrowest, for [`fit_best`](super::fit_best).
    pub fn widths(&self) -> &'static [usize] {
        if self.is_large() { &WIDTHS[6..7] } else { &WIDTHS }
    }

    /// The number of input functions of a continuous variable.
    pub fn functions(&self) -> usize {
        if self.rows < 1_000 { 8 } else { 12 + 4 * usize::from(self.rows >= 10_000) }
    }

    /// The settings of a fit with inner layers of this width.
    pub fn options(&self, width: usize) -> FitOptions {
        let batch = if self.is_large() { 512 } else { (self.rows / 300).clamp(32, 128) };
        let epochs = (400_000 / self.rows).clamp(10, 150);
        let steps = self.rows.div_ceil(batch);
        FitOptions {
            width,
            squares: width,
            epochs,
            batch,
            rate: rate(width, batch),
            patience: epochs.div_ceil(2),
            averaging: (1.0 - 1.0 / steps as f64).clamp(0.95, 0.998),
            ..FitOptions::default()
        }
    }
}

/// Entries of a semi-unitary weight have a size of about 1 / width, and so have good steps.
fn rate(width: usize, batch: usize) -> f64 {
    let ratio = batch as f64 / 128.0;
    0.04 / width.max(1) as f64 * if ratio < 1.0 { ratio.sqrt() } else { ratio }
}
