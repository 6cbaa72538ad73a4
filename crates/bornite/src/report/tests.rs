//! Plots are well-formed, without overlapping text, and correct.

use std::ops::Bound;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::bins::Bins;
use super::calibration::{distance, transforms};
use super::{Picture, Report, circuit_html, structure};
use crate::basis::Basis;
use crate::circuit::Weights;
use crate::data::{Column, Table};
use crate::domain::{Domain, Variable};
use crate::draw::ems;
use crate::mixture::Mixture;
use crate::model::{Event, Fit, Model, ModelError};
use crate::ops::orthonormalize;
use crate::structure::{RegionTree, Structure};

/// Columns of all kinds, each dependent on the previous one, with a few missing cells.
fn table(columns: usize, rows: usize, seed: u64) -> Table {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let mut cells = vec![Vec::new(); columns];
    for _ in 0..rows {
        let mut x: f64 = rng.random();
        for column in &mut cells {
            x = 0.6 * x + 0.4 * rng.random::<f64>();
            column.push(if rng.random::<f64>() < 0.05 { f64::NAN } else { x });
        }
    }
    let column = |(n, x): (usize, Vec<f64>)| {
        let whole = |x: &f64| (!x.is_nan()).then_some(*x);
        match n % 4 {
            0 => Column::numbers(format!("a rather long name {n}"), x),
            1 => {
                let label =
                    |x: f64| ["first", "second", "a third label", "4th"][(4.0 * x) as usize % 4];
                Column::labels(format!("label{n}"), x.iter().map(|x| whole(x).map(label)))
            }
            2 => Column::integers(
                format!("small{n}"),
                x.iter().map(|x| whole(x).map(|x| (9.0 * x) as i64)),
            ),
            _ => Column::integers(
                format!("wide{n}"),
                x.iter().map(|x| whole(x).map(|x| (90_000.0 * x) as i64)),
            ),
        }
    };
    Table::new(cells.into_iter().enumerate().map(column).collect()).unwrap()
}

fn model(columns: usize) -> Model {
    Fit::new().epochs(2).width(3).as_is().run(&table(columns, 240, 1)).unwrap()
}

fn images() -> Model {
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    let pixel = |n: usize| {
        let values: Vec<Option<i64>> = (0..80).map(|_| Some(rng.random_range(0..3))).collect();
        Column::integers(format!("p{n}"), values)
    };
    let table = Table::new((0..16).map(pixel).collect()).unwrap().with_image([4, 4, 1]).unwrap();
    Fit::new().epochs(1).width(2).run(&table).unwrap()
}

const OF_TABLES: [Picture; 6] = [
    Picture::Structure,
    Picture::Training,
    Picture::Marginals,
    Picture::Pairs,
    Picture::Calibration,
    Picture::Anomalies,
];

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    tag[start..].split('"').next()
}

/// The approximate left, right, top and bottom of every text, and the text.
fn texts(svg: &str) -> Vec<([f64; 4], &str)> {
    svg.split("<text")
        .skip(1)
        .map(|piece| {
            let (tag, rest) = piece.split_once('>').unwrap();
            let words = rest.split('<').next().unwrap();
            let number = |name| attribute(tag, name).unwrap().parse::<f64>().unwrap();
            let (x, y, size) = (number("x"), number("y"), number("font-size"));
            // The estimate is generous.
            let width = 0.9 * size * ems(words);
            let left = match attribute(tag, "text-anchor") {
                Some("end") => x - width,
                Some("middle") => x - width / 2.0,
                _ => x,
            };
            ([left, left + width, y - 0.7 * size, y], words)
        })
        .collect()
}

#[test]
fn pictures_of_few_and_many_columns_are_whole_and_do_not_overlap() {
    for columns in [1, 5, 60] {
        let model = model(columns);
        let fresh = table(columns, 60, 2);
        let report = Report::new(&model, Some(&fresh), 3).unwrap();
        for picture in OF_TABLES {
            let svg = report.svg(picture).unwrap();
            assert_eq!(svg, report.svg(picture).unwrap(), "{picture:?}");
            // Encoded images may contain any letters.
            let mut words = svg.split("base64,");
            let first = words.next().into_iter();
            for part in first.chain(words.filter_map(|w| Some(w.split_once('"')?.1))) {
                let has_nan = part.contains("NaN");
                let has_inf = part.contains("\"inf") || part.contains("-inf");
                assert!(!has_nan && !has_inf, "{columns} {picture:?}");
            }
            let width: f64 = attribute(&svg, "width").unwrap().parse().unwrap();
            let height: f64 = attribute(&svg, "height").unwrap().parse().unwrap();
            let texts = texts(&svg);
            for (n, (a, words)) in texts.iter().enumerate() {
                let inside = a[0] >= -1.0 && a[1] <= width + 1.0 && a[2] >= 0.0 && a[3] <= height;
                assert!(inside, "{columns} {picture:?}: '{words}' at {a:?} of {width} × {height}");
                for (b, other) in &texts[n + 1..] {
                    let apart = a[1] <= b[0] || b[1] <= a[0] || a[3] <= b[2] || b[3] <= a[2];
                    assert!(apart, "{columns} {picture:?}: '{words}' {a:?} and '{other}' {b:?}");
                }
            }
        }
    }
}

#[test]
fn a_page_has_everything_and_nothing_from_outside() {
    let model = model(6);
    let fresh = table(6, 60, 2);
    let page = Report::new(&model, Some(&fresh), 3).unwrap().html("a <title> & more").unwrap();
    for id in ["circuit", "structure", "training", "marginals", "pairs", "calibration", "anomalies"]
    {
        assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    assert!(page.contains("<title>a &lt;title&gt; &amp; more</title>"));
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    assert!(
        !outside.contains("http:") && !outside.contains("https:") && !outside.contains("@import")
    );
    let alone = Report::new(&model, None, 3).unwrap().html("m").unwrap();
    assert!(!alone.contains("<section id=\"calibration\">"));
    let images = images();
    let page = Report::new(&images, None, 3).unwrap().html("images").unwrap();
    assert!(page.contains("<section id=\"images\">") && page.contains("bn-board"));
    assert!(circuit_html(model.circuit(), "c").contains("bn-circuit"));
}

#[test]
fn what_is_missing_is_said() {
    let model = model(2);
    let report = Report::new(&model, None, 0).unwrap();
    for picture in [Picture::Calibration, Picture::Anomalies] {
        assert!(matches!(report.svg(picture), Err(ModelError::NeedsTable)));
    }
    assert!(matches!(report.svg(Picture::Samples), Err(ModelError::NoPixels)));
    assert!(report.columns(&["nothing"]).is_err());
    let png = Report::new(&images(), None, 0).unwrap().samples_png().unwrap();
    assert_eq!(&png[..4], b"\x89PNG");
}

#[test]
fn bins_have_the_probabilities_that_the_model_says() {
    let model = model(4);
    let columns = [0, 1, 2, 3];
    for (distribution, column) in model.distributions(&columns).unwrap().iter().zip(columns) {
        for count in [3, 12] {
            let bins = Bins::new(&model, column, distribution, count).unwrap();
            assert!(bins.len() <= count);
            let masses = bins.masses(distribution).unwrap();
            assert!(masses.iter().sum::<f64>() > 0.99, "{column}: {masses:?}");
            let events: Vec<Event> =
                (0..bins.len()).map(|b| bins.known(&model, b).unwrap()).collect();
            let together = model.log_probabilities(&events).unwrap();
            for ((mass, event), log) in masses.iter().zip(&events).zip(together) {
                let asked = model.log_probability(event).unwrap();
                assert!((mass - asked.exp()).abs() < 1e-9, "{column}: {mass}, not {}", asked.exp());
                assert!((asked - log).abs() < 1e-12);
            }
            // Every row is in the bin whose event holds.
            let rows = model.schema().encode(&model.sample(50, 1).unwrap()).unwrap();
            for row in 0..rows.num_rows() {
                let Some(bin) = bins.of_row(&model, &rows.row(row)) else { continue };
                let query =
                    crate::query::Query::row(&model.schema().variables(), &rows.row(row)).unwrap();
                let holds = |e: &Event| e.holds(&model.schema().variables(), &query);
                assert!(holds(&events[bin]), "{column}: row {row} is not in {}", bins.label(bin));
            }
        }
    }
}

#[test]
fn transforms_of_the_models_own_rows_are_even_and_exact() {
    let model = model(4);
    let rows = model.schema().encode(&model.sample(600, 9).unwrap()).unwrap();
    let found = transforms(&model, &rows, 4).unwrap().unwrap();
    assert_eq!(found, transforms(&model, &rows, 4).unwrap().unwrap());
    for (column, u) in found.columns.iter().enumerate() {
        assert_eq!(u.len(), 600);
        // The distance of uniform values exceeds 1.95 / √n once in a thousand times.
        assert!(distance(u) < 1.95 / (600f64).sqrt(), "{column}: {}", distance(u));
    }
    // Rows from another distribution are not uniform.
    let other = table(4, 600, 77);
    let shifted = Column::numbers("a rather long name 0", vec![0.05; 600]);
    let mut columns = other.columns().to_vec();
    columns[0] = shifted;
    let other = other.with_columns(columns).unwrap();
    let report = Report::new(&model, Some(&other), 0).unwrap();
    let found = transforms(&model, report.rows.as_ref().unwrap(), 4).unwrap().unwrap();
    assert!(distance(&found.columns[0]) > 0.3);
    // F of a number, as the probability of being at most that number given the rest of the row.
    let name = "a rather long name 0";
    let sample = model.sample(1, 3).unwrap();
    let row = model.schema().encode(&sample).unwrap();
    let u = transforms(&model, &row, 0).unwrap().unwrap().columns[0][0];
    let x = sample.column(name).unwrap().number(0).unwrap();
    let schema = model.schema();
    let mut given = Event::parse(schema, "").unwrap();
    for column in &sample.columns()[1..] {
        let cell = column.text(0);
        let value = Event::value(schema, column.name(), crate::data::Cell::Text(&cell)).unwrap();
        given = given.and(schema, &value).unwrap();
    }
    let below = Event::interval(schema, name, Bound::Unbounded, Bound::Included(x)).unwrap();
    let joint = model.log_probability(&below.and(schema, &given).unwrap()).unwrap();
    let expected = (joint - model.log_probability(&given).unwrap()).exp();
    assert!((u - expected).abs() < 1e-9, "{u}, not {expected}");
}

/// Trees that differ only in the order of inputs are the same.
#[test]
fn the_trees_of_a_mixture_are_drawn_once() {
    let bit = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    let rng = &mut ChaCha8Rng::seed_from_u64(1);
    let trees = ["[[0, 1], [2, 3]]", "[[[0, 1], 2], 3]", "[[3, 2], [1, 0]]"];
    let circuits = trees.map(|tree| {
        let tree = RegionTree::parse(tree).unwrap();
        let circuit = Structure::new(tree, bit).build(Weights::Gaussian, rng).unwrap();
        orthonormalize(&circuit).unwrap().circuit
    });
    let mixture = Mixture::new(circuits.into(), &[0.25, 0.5, 0.35]).unwrap();
    let found = structure::trees(&mixture);
    let found: Vec<(usize, f64)> = found.iter().map(|tree| (tree.count, tree.weight)).collect();
    assert_eq!(found.len(), 2);
    assert_eq!([found[0].0, found[1].0], [2, 1]);
    assert!((found[0].1 - 6.0 / 11.0).abs() < 1e-12 && (found[1].1 - 5.0 / 11.0).abs() < 1e-12);
}
