//! The page of a model: all pictures with a few words each, in one file without anything from outside.

use std::fmt::Write;

use super::canvas::{Canvas, STYLE};
use super::{PAGE, Report, calibration, images, live, marginals, pairs, structure, training};
use crate::circuit::Circuit;
use crate::draw::escape;
use crate::model::ModelError;

/// A page in the making.
struct Page {
    title: String,
    contents: Vec<(&'static str, &'static str)>,
    body: String,
}

impl Page {
    fn section(&mut self, id: &'static str, heading: &'static str, words: &str, content: &str) {
        self.contents.push((id, heading));
        let _ = write!(
            self.body,
            "<section id=\"{id}\"><h2>{heading}</h2>\n<p class=\"hint\">{words}</p>\n{content}</section>\n"
        );
    }

    fn finish(self, lead: &str, facts: &str) -> String {
        let link = |(id, heading): &(&str, &str)| format!("<a href=\"#{id}\">{heading}</a>");
        let links: Vec<String> = self.contents.iter().map(link).collect();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <h1>{title}</h1>\n<p class=\"sub\">{lead}</p>\n<nav aria-label=\"Contents\">{}</nav>\n{facts}{}\
             <footer>Made by Bornite {}. Everything here is exact for the model, unless it says otherwise.</footer>\n\
             </main>\n</body>\n</html>\n",
            links.join("\n"),
            self.body,
            env!("CARGO_PKG_VERSION"),
            title = escape(&self.title),
        )
    }
}

const PAGE_STYLE: &str = include_str!("page.css");
const LIVE_WORDS: &str = "Click on a variable to keep it or to marginalize it, on any other layer to do so with all variables \
     below it. Layers over kept variables alone send a vector (red), layers over marginalized variables alone are skipped \
     (blue), because an orthonormal layer integrates to the identity, and only layers over both send a matrix (green). \
     The counts are those of the library.";

/// The page of a circuit that is no model: the live circuit alone.
pub(super) fn of_circuit(circuit: &Circuit, title: &str) -> String {
    let mut page = Page { title: title.to_owned(), contents: Vec::new(), body: String::new() };
    page.section("circuit", "The circuit, live", LIVE_WORDS, &live::section(circuit, None));
    let facts = facts(&[
        ("variables", circuit.num_variables().to_string()),
        ("layers", circuit.num_layers().to_string()),
        ("parameters", circuit.num_parameters().to_string()),
    ]);
    page.finish("A squared orthonormal circuit.", &facts)
}

/// The page of a model.
pub(super) fn of_model(report: &Report<'_>, title: &str) -> Result<String, ModelError> {
    let model = report.model;
    let mut page = Page { title: title.to_owned(), contents: Vec::new(), body: String::new() };
    let inline = |canvas: Canvas| format!("<div class=\"scroll\">{}</div>\n", canvas.inline());
    let circuit = live::section(model.circuit(), model.schema().image());
    page.section("circuit", "The circuit, live", LIVE_WORDS, &circuit);
    if let Some(strips) = images::strips(report)? {
        let words = "Exact samples, and images of which the left half is known: the mean of each pixel given that half, and \
             exact samples of all unknown pixels together.";
        page.section(
            "images",
            "Samples and completions",
            words,
            &inline(images::draw(model, &strips)),
        );
    }
    let information = report.information()?;
    let canvas = structure::draw(model.circuit(), information.as_ref(), model.schema().image());
    let words = "Which columns meet first. Columns that know much of each other should meet early, since the width of a layer \
         limits what its columns can tell the others.";
    page.section("structure", "Structure", words, &inline(canvas));
    let words = "Log-likelihood in the units of the data, epoch by epoch, and the largest entry of W Wᴴ − I of any weight: how \
         far the circuit was from normalized, which is rounding. The dot is the epoch that was kept.";
    page.section("training", "Training", words, &inline(training::draw(model.info())));
    let words = "The exact marginal of every column over the histogram of the data.";
    page.section("marginals", "Marginals", words, &marginal_pages(report)?);
    let chosen = report.pairs(usize::MAX)?;
    if !chosen.is_empty() {
        let words = "The pairs that know most of each other: probabilities of rectangles, exact for the model; darker is more, \
             by the square root.";
        page.section("pairs", "Pairs", words, &inline(pairs::draw(report, &chosen)?));
    }
    if let Some(rows) = &report.rows {
        if let Some(found) = calibration::transforms(model, rows, report.seed)? {
            let words = "For every cell, the probability of a smaller one given all other cells of its row. If the model is right, \
                 and the rows are not those it learned from, these are even between 0 and 1; the band holds 95 of 100 bars. A \
                 hill in the middle: the model is too wide; a valley: too narrow. Finite columns are spread within their steps by \
                 a seeded generator.";
            page.section(
                "calibration",
                "Calibration",
                words,
                &inline(calibration::draw(model, &found)),
            );
        }
        let words = "The rows of the lowest density, and their cells by how surprising they are given the rest of the row.";
        page.section(
            "anomalies",
            "Least likely rows",
            words,
            &inline(report.anomaly_canvas(rows)?),
        );
    }
    page.section("columns", "Columns", "What the model knows of each column.", &columns(report));
    Ok(page.finish(&lead(report), &model_facts(report)?))
}

fn lead(report: &Report<'_>) -> String {
    let given = report.model.given();
    if given.is_empty() {
        "A density model: a squared orthonormal circuit over the columns of a table.".to_owned()
    } else {
        format!("Conditioned on {}.", escape(&given.join(", ")))
    }
}

/// Columns of many in pages, the first open.
fn marginal_pages(report: &Report<'_>) -> Result<String, ModelError> {
    if let Some(canvas) = images::draw_means(report)? {
        return Ok(canvas.inline());
    }
    let columns: Vec<usize> = (0..report.model.schema().columns().len()).collect();
    let mut out = String::new();
    for (n, page) in columns.chunks(PAGE).enumerate() {
        let picture = marginals::draw(report, page)?.inline();
        if n == 0 {
            let _ = writeln!(out, "<div class=\"scroll\">{picture}</div>");
        } else if n < 10 {
            let (first, last) = (page[0] + 1, page[page.len() - 1] + 1);
            let _ = writeln!(
                out,
                "<details><summary>Columns {first} to {last}</summary><div class=\"scroll\">{picture}</div></details>"
            );
        } else {
            let _ = writeln!(
                out,
                "<p class=\"hint\">{} more columns: bornite plot --what marginals --columns …</p>",
                columns.len() - PAGE * n
            );
            break;
        }
    }
    Ok(out)
}

fn facts(list: &[(&str, String)]) -> String {
    let fact =
        |(name, value): &(&str, String)| format!("<div><dt>{name}</dt><dd>{value}</dd></div>");
    format!("<dl class=\"facts\">{}</dl>\n", list.iter().map(fact).collect::<Vec<_>>().join("\n"))
}

fn model_facts(report: &Report<'_>) -> Result<String, ModelError> {
    let (model, info) = (report.model, report.model.info());
    let nats = |x: f64| format!("{x:.4} <small>nats a row</small>").replace('-', "−");
    let bits = |x: f64| {
        format!("{:.4} <small>bits</small>", model.bits_per_dimension(x)).replace('-', "−")
    };
    let mut list = vec![
        ("rows learned from", group(info.rows)),
        ("rows of validation", group(info.valid_rows)),
        ("columns", group(model.schema().columns().len())),
        ("structure and width", format!("{}, K = {}", escape(&info.structure), info.width)),
        (
            "layers and parameters",
            format!(
                "{}, {}",
                group(model.circuit().num_layers()),
                group(model.circuit().num_parameters())
            ),
        ),
        ("log-likelihood, validation", nats(info.valid)),
        ("the same, independent columns", nats(info.baseline)),
        (
            "bits per dimension",
            format!("{} <small>independent {}</small>", bits(info.valid), bits(info.baseline)),
        ),
        ("epochs and seed", format!("{}, seed {}", info.history.len(), info.seed)),
    ];
    if let (Some(table), Some(rows)) = (report.data, &report.rows) {
        let scores = model.score_encoded(rows)?;
        let mean = scores.iter().sum::<f64>() / scores.len().max(1) as f64;
        let holes: usize = rows.batch().num_missing();
        let share = 100.0 * holes as f64 / (rows.num_rows() * rows.num_variables()).max(1) as f64;
        list.push(("rows of the table shown here", group(table.num_rows())));
        list.push((
            "their holes",
            format!("{} <small>{share:.1}% of all cells</small>", group(holes)),
        ));
        list.push(("their log-likelihood", nats(mean)));
    }
    Ok(facts(&list))
}

/// A count with a narrow space before every three digits.
fn group(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Columns that are listed at once.
const LISTED: usize = 60;

fn columns(report: &Report<'_>) -> String {
    let schema = report.model.schema();
    let holes = |name: &str| {
        report
            .data
            .and_then(|t| t.column(name).ok())
            .map_or(String::new(), |c| group(c.num_missing()))
    };
    let row = |c: &crate::data::ColumnSchema| {
        let (kind, values) = (c.kind.name(), c.kind.summary());
        let holes = holes(&c.name);
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{holes}</td></tr>\n",
            escape(&c.name),
            kind.trim_start_matches("an "),
            escape(&values)
        )
    };
    let rows: Vec<String> = schema.columns().iter().take(LISTED).map(row).collect();
    let more = schema.columns().len().saturating_sub(LISTED);
    let rest =
        if more > 0 { format!("<p class=\"hint\">and {more} more</p>\n") } else { String::new() };
    format!(
        "<table class=\"columns\"><thead><tr><th>column</th><th>kind</th><th>values</th><th>holes</th></tr></thead>\n\
         <tbody>{}</tbody></table>\n{rest}",
        rows.concat()
    )
}
