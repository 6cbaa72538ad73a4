//! `Fit`, the builder that sets up and runs the fit of a model.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::folds;
use super::rows::{FitInput, Fold};
use super::{Model, ModelError, ModelOptions, StructureKind};
use crate::data::{Sample, Schema, Table};
use crate::learn::{Control, Effort, Progress, Quota, Snapshot, Workers, used_budget};

/// Fits a [`Model`] to a table.
///
/// Unset options depend on the size of the table: `Fit::new().run(&table)` is a good start.
///
/// ```
/// use bornite::Fit;
/// use bornite::data::{Column, Table};
/// use std::time::Duration;
///
/// let sky = ["sun", "rain", "rain", "sun"].repeat(30);
/// let umbrella = sky.iter().map(|&s| Some(if s == "rain" { "yes" } else { "no" }));
/// let table = Table::new(vec![
///     Column::labels("sky", sky.iter().copied().map(Some)),
///     Column::labels("umbrella", umbrella),
/// ])?;
/// let model = Fit::new().time(Duration::from_secs(60)).seed(1).run(&table)?;
/// assert!(model.ask("P(umbrella='yes' | sky='rain')")?.number().unwrap() > 0.9);
/// # Ok::<(), bornite::Error>(())
/// ```
#[must_use = "a fit does nothing until it is run"]
#[derive(Default)]
pub struct Fit<'a> {
    options: ModelOptions,
    start: Option<&'a Model>,
    validation: Option<&'a Table>,
    time: Option<Duration>,
    checkpoint: Option<&'a [u8]>,
    quota: Quota,
    workers: Option<&'a dyn Workers>,
    on_step: Option<OnStep<'a>>,
    on_rows: Option<OnRows<'a>>,
}

type OnRows<'a> = Box<dyn FnMut(&Path, usize, Option<f64>) + 'a>;
type OnStep<'a> = Box<dyn FnMut(&Progress, &Snapshot<'_>) -> Control + 'a>;

impl<'a> Fit<'a> {
    /// A fit with default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// A fit with these options, for settings without a method here.
    pub fn with(options: ModelOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Continues from a model with the rows of another table, such as those of a new day. The fit keeps the model's
    /// columns, circuits and target, and starts from its weights. Cells outside a column's domain are treated as in
    /// [`Model::score`](super::Model::score). No circuit gets worse on the validation rows, which are taken from the
    /// new rows.
    ///
    /// # Errors
    /// [`run`](Self::run) fails if settings require other columns or another circuit, or if the model is conditional.
    pub fn start(mut self, model: impl Into<Option<&'a Model>>) -> Self {
        self.start = model.into();
        self
    }

    /// Limits the duration of the fit. The learning rate decays over it.
    ///
    /// This is the only place where the library reads a clock. A fit without a limit is reproducible bit for bit.
    pub fn time(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.time = limit.into();
        self
    }

    /// Chooses the best epoch by this table, instead of by a tenth of the rows. Labels and numbers outside the schema's
    /// domain count as missing in it.
    pub fn validation(mut self, table: impl Into<Option<&'a Table>>) -> Self {
        self.validation = table.into();
        self
    }

    /// Sets the meaning of the columns, instead of inferring it.
    pub fn schema(mut self, schema: Schema) -> Self {
        self.options.schema = Some(schema);
        self
    }

    /// Treats missing cells in these columns as a value that is scored, sampled and can be asked about, as in `P(age is
    /// missing | …)`. In other columns, missing cells are integrated out.
    pub fn missing_as_value<S: Into<String>>(
        mut self,
        columns: impl IntoIterator<Item = S>,
    ) -> Self {
        self.options.infer.missing_as_value.extend(columns.into_iter().map(Into::into));
        self
    }

    /// Gives numbers in a column their own probability, in addition to those that the fit finds.
    pub fn atoms(
        mut self,
        column: impl Into<String>,
        numbers: impl IntoIterator<Item = f64>,
    ) -> Self {
        self.options.infer.named_atoms.entry(column.into()).or_default().extend(numbers);
        self
    }

    /// Weights the rows by a column: see [`ModelOptions::weights`].
    pub fn weights(mut self, column: impl Into<String>) -> Self {
        self.options.weights = Some(column.into());
        self
    }

    /// Sets how much to try: a usable model in seconds, a good one in about a minute, or the best that can be found.
    pub fn effort(mut self, effort: Effort) -> Self {
        self.options.effort = effort;
        self
    }

    /// Sets how the columns are split into regions.
    pub fn structure(mut self, structure: StructureKind) -> Self {
        self.options.structure = structure;
        self
    }

    /// Sets the width K of inner layers, instead of trying several on small tables.
    pub fn width(mut self, width: usize) -> Self {
        self.options.width = Some(width);
        self
    }

    /// Sets the maximum number of circuits in the model: see [`ModelOptions::circuits`].
    pub fn circuits(mut self, circuits: usize) -> Self {
        self.options.circuits = Some(circuits);
        self
    }

    /// Limits the passes over the rows.
    pub fn epochs(mut self, epochs: usize) -> Self {
        self.options.epochs = Some(epochs);
        self
    }

    /// Names a column to predict from the others. The fit gives more weight to log p(target | the rest), which improves
    /// predictions. The result is still a model of all columns and answers every other question.
    ///
    /// # Errors
    /// [`run`](Self::run) fails if the table does not have the column or it cannot be learned.
    pub fn target(mut self, column: impl Into<Option<String>>) -> Self {
        self.options.target = column.into();
        self
    }

    /// Fits all rows and columns. By default, columns that cannot be learned, such as identifiers, are dropped: see
    /// [`Schema::findings`] and [`Info::left_out`](super::Info::left_out).
    pub fn as_is(mut self) -> Self {
        self.options.as_is = true;
        self
    }

    /// Rejects a table with rows or columns that cannot be learned, instead of dropping those columns.
    pub fn strict(mut self) -> Self {
        self.options.strict = true;
        self
    }

    /// Sets the random seed; 0 by default.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = seed;
        self
    }

    /// Limits the fit to a budget of the caller. Computations without training steps, such as the initial mixture,
    /// check it too.
    pub fn quota(mut self, quota: Quota) -> Self {
        self.quota = quota;
        self
    }

    /// Trains on rows that workers hold: those of the table that a sample was drawn from, in
    /// [`run_sample`](Self::run_sample). The model is the same as on one machine, bit for bit, for any number of
    /// workers. Such a fit has no checkpoints.
    pub fn workers(mut self, workers: impl Into<Option<&'a dyn Workers>>) -> Self {
        self.workers = workers.into();
        self
    }

    /// Calls a function after every step. It can end the fit, which keeps the best model so far, and take a
    /// [`Snapshot`] to resume from. Log-likelihoods are in nats per row and the units of the data, as in [`Info`](super::Info).
    pub fn on_step(mut self, f: impl FnMut(&Progress, &Snapshot<'_>) -> Control + 'a) -> Self {
        self.on_step = Some(Box::new(f));
        self
    }

    /// Calls a function for every piece of a file that is read before the first step (see
    /// [`run_sample`](Self::run_sample)), with the file, the rows of the piece, and the fraction of the file that has
    /// been read.
    pub fn on_rows(mut self, f: impl FnMut(&Path, usize, Option<f64>) + 'a) -> Self {
        self.on_rows = Some(Box::new(f));
        self
    }

    /// Continues from the bytes of a [`Snapshot`] of the same table and settings: without a time limit, to the same model
    /// bit for bit as if the fit had never been interrupted.
    pub fn resume(mut self, checkpoint: impl Into<Option<&'a [u8]>>) -> Self {
        self.checkpoint = checkpoint.into();
        self
    }

    /// Fits the model.
    ///
    /// The likelihood of a row with missing values is the exact marginal likelihood of the values that it has.
    ///
    /// # Errors
    /// The table has no rows or does not match a given schema; none of its columns can be learned (see
    /// [`Schema::findings`]), or, with [`strict`](Self::strict), not all of them; a setting is out of range; or the
    /// checkpoint is damaged, or belongs to another table or other settings.
    pub fn run(self, table: &Table) -> Result<Model, ModelError> {
        self.run_on(table, None)
    }

    /// Fits the model to all rows of the files that a sample was drawn from, in an amount of memory that does not grow
    /// with the files.
    ///
    /// The column types, their dependencies and the initial weights are inferred from the sample, and some of its rows
    /// are held out to choose the best epoch, unless there is a validation table. All other rows of the files are
    /// encoded into a temporary file and used in random order: at any time, the fit holds random pieces with as many
    /// rows as the sample. A sample that contains the whole table is fitted like a table.
    ///
    /// ```
    /// use bornite::Fit;
    /// use bornite::data::{Sample, SampleOptions};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let files = ["a", "b"].map(|name| folder.path().join(name).with_extension("csv"));
    /// std::fs::write(&files[0], "x,y\n1,2\n2,1\n2,2\n")?;
    /// std::fs::write(&files[1], format!("x,y\n{}", "1,1\n2,1\n".repeat(500)))?;
    /// let options = SampleOptions { memory: 4000, ..SampleOptions::default() };
    /// let sample = Sample::draw(&files, &options, &mut |_, _, _| {})?;
    /// assert!(sample.num_rows() == 1003 && !sample.is_whole());
    /// let model = Fit::new().epochs(2).run_sample(&sample)?;
    /// assert_eq!(model.info().rows + model.info().valid_rows, 1003);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`run`](Self::run). Also, a file cannot be read, a row does not match the schema, the temporary file
    /// cannot be written, or the rows have weights.
    pub fn run_sample(self, sample: &Sample) -> Result<Model, ModelError> {
        self.run_on(sample.table(), Some(sample).filter(|sample| !sample.is_whole()))
    }

    fn run_on(self, table: &Table, sample: Option<&Sample>) -> Result<Model, ModelError> {
        let Self {
            mut options,
            start,
            validation,
            time,
            checkpoint,
            quota,
            workers,
            mut on_step,
            mut on_rows,
        } = self;
        options.time = options.time.or(time);
        let used_before = checkpoint.map(used_budget).transpose()?.unwrap_or(0.0);
        let quota = match time {
            None => quota,
            Some(limit) => {
                let (start, limit) = (Instant::now(), limit.as_secs_f64().max(f64::MIN_POSITIVE));
                let used = move || used_before + start.elapsed().as_secs_f64() / limit;
                Quota::new(move || quota.used().max(used()))
            }
        };
        let mut step = |progress: &Progress, snapshot: &Snapshot<'_>| {
            let answer = on_step.as_mut().map_or(Control::Continue, |f| f(progress, snapshot));
            match (answer, quota.used()) {
                (Control::Stop, _) => Control::Stop,
                (Control::Continue, used) if used > 0.0 => Control::Used(used),
                (Control::Continue, _) => Control::Continue,
                (Control::Used(share), used) => Control::Used(share.max(used)),
            }
        };
        if let Some(model) = start {
            options = model.options_to_continue(options, table)?;
        }
        let fold = Fold { index: 0, count: 1, seed: options.seed, is_taught: false };
        let input = FitInput { table, sample, workers, validation, start, checkpoint, fold };
        let mut read = |file: &Path, rows, share| {
            if let Some(f) = &mut on_rows {
                f(file, rows, share);
            }
        };
        folds::fit(&input, &options, &quota, &mut read, &mut step)
    }
}

impl fmt::Debug for Fit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fit")
            .field("options", &self.options)
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}
