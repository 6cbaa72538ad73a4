//! The benchmark files, if present: `../shared/data` beside the workspace.

use super::*;
use crate::structure::{
    InformationOptions, average_linkage, chow_liu_tree, mutual_information, root_edges,
};
use std::path::PathBuf;

/// A file of the benchmark data; prints a note if it does not exist.
fn find(name: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let near = [root.join("shared/data"), root.join("../shared/data")];
    let found = near.iter().map(|folder| folder.join(name)).find(|p| p.exists());
    if found.is_none() {
        println!("skipped: {name} is not there");
    }
    found
}

#[test]
fn csv_files_are_written_back_as_they_are() {
    for name in ["wine_red", "iris", "power_head", "energy", "miniboone_head"] {
        let Some(path) = find(&format!("uci/{name}.csv.gz")) else { continue };
        let table = Table::read_csv(&path, &CsvOptions::default()).unwrap();
        assert!(table.to_csv() == crate::data::file::read(&path).unwrap().bytes, "{name}");
    }
}

/// Only marginals, on the columns and in the units of the reference: below a full Gaussian, but not by much.
#[test]
fn continuous_columns_are_fitted_as_well_as_their_marginals_can_be() {
    for (name, gauss) in [("ccpp", -4.672), ("kin8nm", -12.509), ("wine_red", -15.554)] {
        let Some(path) = find(&format!("uci/{name}.csv.gz")) else { continue };
        let table = Table::read_csv(&path, &CsvOptions::default()).unwrap();
        let split = table.column("split").unwrap();
        let rows = |wanted: f64| -> Vec<usize> {
            (0..table.num_rows()).filter(|&r| split.number(r) == Some(wanted)).collect()
        };
        let data = table.without_column("split").unwrap();
        let (train, test) = (data.select_rows(&rows(0.0)), data.select_rows(&rows(2.0)));
        let mut options = InferOptions::default();
        for c in data.columns() {
            options.kinds.insert(c.name().to_owned(), KindHint::Continuous(Support::REAL));
        }
        let schema = Schema::infer(&train, &options).unwrap();
        let mut total = 0.0;
        for (n, column) in schema.columns().iter().enumerate() {
            let values: Vec<f64> =
                (0..train.num_rows()).filter_map(|r| train.columns()[n].number(r)).collect();
            let mut distinct = values.clone();
            distinct.sort_by(f64::total_cmp);
            distinct.dedup();
            if distinct.len() <= 30 {
                continue;
            }
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let variance =
                values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / values.len() as f64;
            let ColumnKind::Continuous(Continuous { warp }) = &column.kind else { panic!() };
            let slopes = (0..test.num_rows()).filter_map(|r| test.columns()[n].number(r));
            let mean_slope =
                slopes.map(|x| warp.log_slope(x)).sum::<f64>() / test.num_rows() as f64;
            total += mean_slope + 0.5 * variance.ln();
        }
        println!("{name}: marginals {total:.3}, one full Gaussian {gauss}");
        assert!(total > gauss - 2.0 && total < 0.0, "{name}: {total}");
        let encoded = schema.encode(&train).unwrap();
        let back = schema.decode(&encoded.to_rows()).unwrap();
        for (a, b) in train.columns().iter().zip(back.columns()) {
            for row in 0..train.num_rows() {
                let (x, y) = (a.number(row).unwrap(), b.number(row).unwrap());
                assert!((x - y).abs() <= 1e-9 * x.abs().max(1e-3), "{name}, {}: {x} {y}", a.name());
            }
        }
    }
}

/// The mean log-likelihood of test rows under the Chow–Liu tree of the training rows.
fn chow_liu_score(name: &str) -> Option<(f64, f64)> {
    let splits = read_bits(find(&format!("debd/{name}.bits.gz"))?).unwrap();
    let schema = Schema::infer(&splits.train, &InferOptions::default()).unwrap();
    let (train, test) =
        (schema.encode(&splits.train).unwrap(), schema.encode(&splits.test).unwrap());
    let width = train.num_variables();
    let options = InformationOptions { max_rows: usize::MAX, ..InformationOptions::default() };
    let information = mutual_information(train.batch(), &schema.variables(), &options).unwrap();
    let edges = chow_liu_tree(&information);
    assert_eq!(root_edges(width, &edges).num_variables(), width);
    assert_eq!(average_linkage(&information).num_variables(), width);
    let joint = |i: usize, j: usize| {
        let mut counts = [[0.25; 2]; 2];
        for row in 0..train.num_rows() {
            counts[train.row(row)[i] as usize][train.row(row)[j] as usize] += 1.0;
        }
        let total: f64 = counts.iter().flatten().sum();
        counts.map(|r| r.map(|n: f64| n / total))
    };
    let (mut tree, mut independent) = (0.0, 0.0);
    let single = |i: usize| {
        let p = joint(i, i);
        let one = (p[1][1] + p[1][0]).clamp(0.0, 1.0);
        [1.0 - one, one]
    };
    let singles: Vec<[f64; 2]> = (0..width).map(single).collect();
    let pairs: Vec<[[f64; 2]; 2]> = edges.iter().map(|e| joint(e.parent, e.child)).collect();
    for row in 0..test.num_rows() {
        let x = test.row(row);
        tree += singles[0][x[0] as usize].ln();
        for (edge, p) in edges.iter().zip(&pairs) {
            let (a, b) = (x[edge.parent] as usize, x[edge.child] as usize);
            tree += (p[a][b] / (p[a][0] + p[a][1])).ln();
        }
        independent += (0..width).map(|i| singles[i][x[i] as usize].ln()).sum::<f64>();
    }
    let rows = test.num_rows() as f64;
    Some((tree / rows, independent / rows))
}

#[test]
fn chow_liu_trees_score_as_published() {
    for (name, published, alone) in [
        ("nltcs", -6.759, -9.234),
        ("plants", -16.524, -31.266),
        ("jester", -58.230, -63.883),
        ("dna", -87.680, -100.386),
    ] {
        let Some((tree, independent)) = chow_liu_score(name) else { continue };
        assert!((tree - published).abs() < 0.005, "{name}: {tree} of {published}");
        assert!((independent - alone).abs() < 0.01, "{name}: {independent} of {alone}");
    }
}

#[test]
fn images_are_read() {
    let Some(path) = find("digits8x8/digits-images-idx3-ubyte.gz") else { return };
    let table = Table::read_idx(path).unwrap();
    assert_eq!((table.num_rows(), table.image()), (1797, Some([8, 8, 1])));
    let schema = Schema::infer(&table, &InferOptions::default()).unwrap();
    assert!(schema.columns().iter().all(|c| c.kind == Integer { min: 0, max: 16 }.into()));
    assert_eq!(schema.decode(&schema.encode(&table).unwrap().to_rows()).unwrap(), table);
    let Some(path) = find("kodak/kodak24_crop96-idx4-ubyte.gz") else { return };
    let table = Table::read_idx(path).unwrap();
    assert_eq!((table.num_rows(), table.image()), (24, Some([96, 96, 3])));
}
