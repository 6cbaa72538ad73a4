//! Plots of models, and an HTML page with all of them.
//!
//! Plots are SVG, or PNG for pixel grids, and the page is self-contained. The same model, table and seed give the same
//! bytes.

mod anomalies;
mod axis;
mod bins;
mod calibration;
mod canvas;
mod images;
mod live;
mod marginals;
mod page;
mod pairs;
mod raster;
mod structure;
#[cfg(test)]
mod tests;
mod training;

use canvas::Canvas;

use crate::circuit::Orthonormal;
use crate::data::{Encoded, Table};
use crate::model::{Model, ModelError};
use crate::structure::{InformationOptions, MutualInformation, mutual_information};

/// The number of columns per plot of marginals on a page.
const PAGE: usize = 24;
/// The maximum number of columns in one picture.
const MAX_COLUMNS: usize = 60;
/// The number of rows sampled to compare columns without a table.
const DRAWN_ROWS: usize = 4000;
/// The maximum number of variables for which all pairs are compared.
const MAX_COMPARED: usize = 1024;
/// The number of pairs and of rows to show.
const PAIRS: usize = 8;
const UNLIKELY: usize = 10;

/// A picture of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// The region tree, with the mutual information at every merge.
    Structure,
    /// Log-likelihoods and the orthonormality residual by epoch.
    Training,
    /// The marginals of columns over histograms of the data, or the mean image for images.
    Marginals,
    /// Heat maps of the pairs of columns with the most mutual information.
    Pairs,
    /// The calibration of conditional distributions on the rows of the table.
    Calibration,
    /// The least likely rows of the table and their most surprising cells.
    Anomalies,
    /// Samples and completions of images.
    Samples,
}

/// Plots of a model, from the model, an optional table, and a seed.
///
/// ```
/// use bornite::Fit;
/// use bornite::data::{CsvOptions, Table};
/// use bornite::report::{Picture, Report};
///
/// let rows = "sky,umbrella\n".to_owned() + &"rain,yes\nrain,no\nsun,no\n".repeat(20);
/// let table = Table::from_csv_bytes(rows.as_bytes(), "sky.csv", &CsvOptions::default())?;
/// let model = Fit::new().epochs(2).run(&table)?;
/// let report = Report::new(&model, Some(&table), 0)?;
/// assert!(report.svg(Picture::Training)?.starts_with("<svg"));
/// assert!(report.html("Umbrellas")?.starts_with("<!doctype html>"));
/// # Ok::<(), bornite::Error>(())
/// ```
#[derive(Debug)]
pub struct Report<'a> {
    model: &'a Model,
    data: Option<&'a Table>,
    rows: Option<Encoded>,
    seed: u64,
    columns: Option<Vec<usize>>,
}

impl<'a> Report<'a> {
    /// Prepares plots of a model, compared with a table if one is given.
    ///
    /// # Errors
    /// The table lacks a column of the model, or a cell has another type.
    pub fn new(model: &'a Model, data: Option<&'a Table>, seed: u64) -> Result<Self, ModelError> {
        let rows = match data {
            Some(table) => Some(model.schema().encode(table)?),
            None => None,
        };
        Ok(Self { model, data, rows, seed, columns: None })
    }

    /// Shows only these columns in plots of columns.
    ///
    /// # Errors
    /// A column does not exist.
    pub fn columns(mut self, names: &[impl AsRef<str>]) -> Result<Self, ModelError> {
        let find = |name: &_| self.model.schema().find(AsRef::as_ref(name));
        let columns: Result<Vec<usize>, _> = names.iter().map(find).collect();
        self.columns = Some(columns?);
        Ok(self)
    }

    /// Draws a picture as SVG.
    ///
    /// # Errors
    /// The picture requires a table or a model of images.
    pub fn svg(&self, picture: Picture) -> Result<String, ModelError> {
        Ok(self.canvas(picture)?.finish())
    }

    fn canvas(&self, picture: Picture) -> Result<Canvas, ModelError> {
        let model = self.model;
        let table = || self.rows.as_ref().ok_or(ModelError::NeedsTable);
        match picture {
            Picture::Structure => {
                let information = self.information()?;
                Ok(structure::draw(model.circuit(), information.as_ref(), model.schema().image()))
            }
            Picture::Training => Ok(training::draw(model.info())),
            Picture::Marginals => match images::draw_means(self)? {
                Some(canvas) if self.columns.is_none() => Ok(canvas),
                _ => marginals::draw(self, &self.shown_columns()),
            },
            Picture::Pairs => pairs::draw(self, &self.pairs(PAIRS)?),
            Picture::Calibration => match calibration::transforms(model, table()?, self.seed)? {
                Some(found) => Ok(calibration::draw(model, &found)),
                None => Err(ModelError::TooManyParts { limit: 1 }),
            },
            Picture::Anomalies => self.anomaly_canvas(table()?),
            Picture::Samples => Ok(images::draw(model, &self.strips()?)),
        }
    }

    /// Samples and completions of images as the bytes of a PNG file.
    ///
    /// # Errors
    /// The model is not a model of images.
    pub fn samples_png(&self) -> Result<Vec<u8>, ModelError> {
        let raster = images::raster(self.model, &self.strips()?);
        let times = (900 / raster.width.max(1)).clamp(1, 8);
        Ok(raster.enlarged(times).png())
    }

    /// Writes one self-contained HTML page with all pictures and the interactive circuit.
    ///
    /// # Errors
    /// Fails only if the model is corrupt.
    pub fn html(&self, title: &str) -> Result<String, ModelError> {
        page::of_model(self, title)
    }

    fn strips(&self) -> Result<Vec<images::Strip>, ModelError> {
        images::strips(self)?.ok_or(ModelError::NoPixels)
    }

    fn shown_columns(&self) -> Vec<usize> {
        let all = || (0..self.model.schema().columns().len().min(MAX_COLUMNS)).collect();
        self.columns.clone().unwrap_or_else(all)
    }

    /// Whether a column contains text without an order.
    fn is_words(&self, column: usize) -> bool {
        let column = &self.model.schema().columns()[column];
        column.kind.coding().is_words(column.storage)
    }

    /// The mutual information of all variables, from the rows of the table or from exact samples; `None` if there are
    /// too many variables.
    fn information(&self) -> Result<Option<MutualInformation>, ModelError> {
        let schema = self.model.schema();
        if schema.num_variables() > MAX_COMPARED {
            return Ok(None);
        }
        let options = InformationOptions {
            ordered: schema.ordered(),
            max_rows: DRAWN_ROWS,
            ..InformationOptions::default()
        };
        let drawn;
        let rows = match &self.rows {
            Some(rows) if rows.num_rows() >= 2 => rows.batch(),
            _ => {
                drawn = schema.encode(&self.model.sample(DRAWN_ROWS, self.seed)?)?;
                drawn.batch()
            }
        };
        Ok(Some(mutual_information(rows, &schema.variables(), &options)?))
    }

    /// The pairs of columns with the most mutual information; none for images, in which all neighbors are dependent.
    fn pairs(&self, most: usize) -> Result<Vec<pairs::Pair>, ModelError> {
        let schema = self.model.schema();
        if schema.image().is_some() && self.columns.is_none() {
            return Ok(Vec::new());
        }
        let Some(information) = self.information()? else { return Ok(Vec::new()) };
        let columns = self.columns.clone().unwrap_or_else(|| (0..schema.columns().len()).collect());
        let mut found = Vec::new();
        for (n, &a) in columns.iter().enumerate() {
            for &b in &columns[n + 1..] {
                // For digits, use the pair of variables with the most.
                let values = schema.variables_of(a).flat_map(|x| {
                    let information = &information;
                    schema.variables_of(b).map(move |y| information.get(x, y))
                });
                let information = values.fold(0.0, f64::max);
                found.push(pairs::Pair { columns: [a, b], information });
            }
        }
        found.sort_by(|x, y| {
            y.information.total_cmp(&x.information).then(x.columns.cmp(&y.columns))
        });
        found.truncate(most.min(PAIRS));
        Ok(found)
    }

    fn anomaly_canvas(&self, rows: &Encoded) -> Result<Canvas, ModelError> {
        let (model, Some(table)) = (self.model, self.data) else {
            return Err(ModelError::NeedsTable);
        };
        if model.schema().image().is_some() {
            return images::draw_unlikely(model, rows, &model.least_likely(rows, UNLIKELY)?);
        }
        Ok(anomalies::draw(&model.anomalies_encoded(table, rows, UNLIKELY)?))
    }
}

/// A page with only the interactive circuit, for a circuit that is not a model.
pub fn circuit_html(circuit: &Orthonormal, title: &str) -> String {
    page::of_circuit(circuit, title)
}

/// Draws the region tree of a circuit that is not a model.
pub fn structure_svg(circuit: &Orthonormal) -> String {
    structure::draw(circuit, None, None).finish()
}
