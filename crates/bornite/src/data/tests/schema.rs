use std::fmt::Write;
use std::ops::Bound::{Excluded, Included, Unbounded};

use super::*;
use crate::basis::Part;
use crate::domain::Domain;
use crate::query::{Evidence, Query};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A table with a column of every kind, and with missing cells.
fn mixed() -> Table {
    let rng = &mut ChaCha8Rng::seed_from_u64(1);
    let mut text = "city,member,age,salary,height,grade,const,empty,flag\n".to_owned();
    for row in 0..400 {
        let mut cells = vec![
            ["Bonn", "Essen", "Köln, Süd"][rng.random_range(0..3)].to_owned(),
            ["no", "yes"][rng.random_range(0..2)].to_owned(),
            rng.random_range(17..90).to_string(),
            rng.random_range(-5_000..1_000_000).to_string(),
            format!("{:.4}", 1.7 + 0.1 * (rng.random::<f64>() + rng.random::<f64>())),
            ["1.0", "1.3", "1.7", "2.0"][rng.random_range(0..4)].to_owned(),
            "7.5".to_owned(),
            String::new(),
            rng.random_range(0..2).to_string(),
        ];
        if row > 0 {
            for cell in &mut cells {
                if rng.random::<f64>() < 0.1 {
                    cell.clear();
                }
            }
        }
        cells[0] = format!("\"{}\"", cells[0]).replace("\"\"", "");
        text += &(cells.join(",") + "\n");
    }
    table(&text)
}

#[test]
fn whole_numbers_are_counted_where_there_are_rows_to_count() {
    let kind = |rows: i64, range: i64| {
        let cells = (0..rows).map(|i| Some(3 + i * i % (range + 1)).filter(|_| i > 1));
        let ends = [Some(3), Some(3 + range)];
        let column = Column::integers("n", ends.into_iter().chain(cells));
        let table = Table::new(vec![column]).unwrap();
        Schema::infer(&table, &InferOptions::default()).unwrap().columns()[0].kind.name()
    };
    assert_eq!(kind(2000, 60), "an integer");
    assert_eq!(kind(100, 60), "a number");
    assert_eq!(kind(100, 9), "an integer");
    assert_eq!(kind(20, 250), "a number");
}

/// Regression: the widths of petals, of which 25 are possible in 100 rows, were categories without order.
#[test]
fn decimals_are_counted_where_there_are_rows_to_count() {
    let kind = |rows: i32, values: i32| {
        let cells = (0..rows).map(|i| f64::from(1 + i * 7 % values) / 10.0);
        let table = Table::new(vec![Column::numbers("x", cells.collect())]).unwrap();
        Schema::infer(&table, &InferOptions::default()).unwrap().columns()[0].kind.name()
    };
    assert_eq!(kind(130, 25), "a number");
    assert_eq!(kind(1000, 25), "categorical");
    assert_eq!(kind(130, 11), "categorical");
}

#[test]
fn numbers_chosen_from_a_few_are_labels_and_long_tails_are_numbers() {
    let kind = |cells: Vec<i64>| {
        let column = Column::integers("n", cells.into_iter().map(Some));
        let table = Table::new(vec![column]).unwrap();
        Schema::infer(&table, &InferOptions::default()).unwrap().columns()[0].kind.clone()
    };
    // Sizes of memory: nothing is between them.
    let sizes = || (0..400).map(|i| [2, 4, 8, 16, 32][i % 5]);
    let ColumnKind::Categorical(chosen) = kind(sizes().collect()) else { panic!() };
    assert_eq!(chosen.labels, ["2", "4", "8", "16", "32"]);
    // One more that is there once: others may follow.
    assert_eq!(kind(sizes().chain([17]).collect()).name(), "a number");
    // Visits, of which most are 0 to 3 and a few up to 198: no row tells what 150 is like.
    let visits = (0..4000).map(|i| if i % 40 == 0 { i / 20 } else { i % 4 });
    assert_eq!(kind(visits.collect()).name(), "a number");
    // Every number has its rows.
    assert_eq!(kind((0..4000).map(|i| i % 200).collect()).name(), "an integer");
}

#[test]
fn every_kind_is_inferred() {
    let inferred = Schema::infer(&mixed(), &InferOptions::default()).unwrap();
    let numbers: Vec<&str> = inferred.columns()[3..5].iter().map(|c| c.kind.name()).collect();
    assert_eq!(numbers, ["a number", "a number"]);
    let schema = Schema::infer(&mixed(), &plain()).unwrap();
    let kinds: Vec<&str> = schema.columns().iter().map(|c| c.kind.name()).collect();
    assert_eq!(
        kinds,
        [
            "categorical",
            "Boolean",
            "an integer",
            "an integer in digits",
            "continuous",
            "categorical",
            "categorical",
            "categorical",
            "Boolean"
        ]
    );
    let domains: Vec<Domain> = schema.variables().iter().map(|v| v.domain.clone()).collect();
    assert_eq!(domains[0], Domain::Finite(3));
    assert_eq!(domains[2], Domain::Finite(73));
    // Up to 1,005,000 numbers as four digits with radix 32.
    assert_eq!(schema.variables_of(3), 3..7);
    assert_eq!(schema.variables()[4].name, "salary[1]");
    assert_eq!(domains[7], Domain::Interval(0.0, 1.0));
    // A constant and the catch-all value; a column without cells has only the latter.
    assert_eq!(domains[9], Domain::Finite(2));
    assert_eq!(domains[10], Domain::Finite(1));
    assert_eq!(schema.ordered().iter().filter(|o| !**o).count(), 2);
    for (variable, basis) in schema.variables().iter().zip(schema.bases(6).unwrap()) {
        assert!(basis.accepts(&variable.domain), "{}", variable.name);
    }
    assert!(schema.bases(0).is_err());
}

/// Without atoms and grids.
fn plain() -> InferOptions {
    let wide_integers = WideIntegers::Digits;
    InferOptions { atoms: false, wide_integers, ..InferOptions::default() }
}

#[test]
fn decoding_undoes_encoding() {
    let table = mixed();
    let schema = Schema::infer(&table, &InferOptions::default()).unwrap();
    let encoded = schema.encode(&table).unwrap();
    assert_eq!(encoded.num_rows(), 400);
    for row in 0..400 {
        assert!(Query::row(&schema.variables(), &encoded.row(row)).is_ok());
    }
    let back = schema.decode(&encoded.to_rows()).unwrap();
    for (a, b) in table.columns().iter().zip(back.columns()) {
        for row in 0..400 {
            assert_eq!(a.is_missing(row), b.is_missing(row));
            match (a.number(row), b.number(row)) {
                (Some(x), Some(y)) => assert!((x - y).abs() <= 1e-9 * x.abs(), "{x} {y}"),
                _ => assert_eq!(a.text(row), b.text(row)),
            }
        }
    }
    assert_eq!(back.to_csv(), table.to_csv());
    let json = serde_json::to_string_pretty(&schema).unwrap();
    let read: Schema = serde_json::from_str(&json).unwrap();
    assert_eq!(read, schema);
    assert_eq!(read.encode(&table).unwrap().log_jacobian(), encoded.log_jacobian());
}

#[test]
fn the_jacobian_is_that_of_known_continuous_cells() {
    let table = mixed();
    let schema = Schema::infer(&table, &plain()).unwrap();
    let encoded = schema.encode(&table).unwrap();
    let ColumnKind::Continuous(Continuous { warp }) = &schema.columns()[4].kind else { panic!() };
    for row in 0..400 {
        let expected = table.columns()[4].number(row).map_or(0.0, |x| {
            let h = 1e-6;
            ((warp.distribution(x + h) - warp.distribution(x - h)) / (2.0 * h)).ln()
        });
        assert!((encoded.log_jacobian()[row] - expected).abs() < 1e-5);
    }
    let column = schema.find("height").unwrap();
    let (u, slope) = schema.encode_value(column, Cell::Text("1.8")).unwrap();
    assert_eq!((u[0], slope), (warp.forward(1.8), warp.log_slope(1.8)));
}

#[test]
fn labels_without_a_place_become_other_or_are_outside() {
    let text = |rare: &str| format!("c\n{}{rare}\n", "a\nb\nb\na\n".repeat(5));
    let options = InferOptions { other: Other::Always, ..InferOptions::default() };
    let schema = Schema::infer(&table(&text("c")), &options).unwrap();
    assert_eq!(schema.encode(&table("c\nz\n")).unwrap().row(0), [3.0]);
    assert_eq!(schema.decode(&[3.0]).unwrap().columns()[0].text(0), OTHER);
    // The text of the catch-all value is read as the catch-all value.
    assert_eq!(schema.encode(&table("c\n(other)\n")).unwrap().row(0), [3.0]);
    // Unseen labels are as likely as labels seen once.
    let open = infer(&text("c"));
    assert!((open.columns()[0].outside - 1.0 / 22.0).abs() < 1e-12);
    let closed = infer(&text("b"));
    assert!((closed.columns()[0].outside - 0.5 / 22.0).abs() < 1e-12);
    let encoded = closed.encode(&table("c\na\nB\n")).unwrap();
    assert_eq!(encoded.outside().collect::<Vec<_>>(), [(1, 0)]);
    assert!(encoded.row(1)[0].is_nan());
    assert_eq!(encoded.log_jacobian()[0], 0.0);
    assert!((encoded.log_jacobian()[1] - (0.5 / 21.5f64).ln()).abs() < 1e-12);
    let strict = EncodeOptions { unseen: Unseen::Refuse, ..EncodeOptions::default() };
    let message = closed.encode_with(&table("c\na\nB\n"), strict).unwrap_err().to_string();
    assert!(message.contains("row 2, column 'c': the label 'B'"), "{message}");
    assert!(message.contains("did you mean 'b'?"), "{message}");
    let lenient = EncodeOptions { unseen: Unseen::Missing, ..EncodeOptions::default() };
    assert!(closed.encode_with(&table("c\nB\n"), lenient).unwrap().row(0)[0].is_nan());
    let options = InferOptions { min_count: 2, other: Other::Never, ..InferOptions::default() };
    let merged = Schema::infer(&table(&text("c")), &options).unwrap();
    let found = &merged.columns()[0].kind;
    assert_eq!(
        *found,
        Categorical { labels: vec!["a".into(), "b".into()], has_other: true }.into()
    );
}

#[test]
fn a_column_of_names_has_nothing_but_other() {
    let names: Vec<String> = (0..1000).map(|i| format!("name{i}\n")).collect();
    let text = names.concat();
    let schema = infer(&format!("who\n{text}"));
    assert_eq!(schema.variables()[0].domain, Domain::Finite(1));
    let common = format!("who\n{text}{}", "ann\nbob\n".repeat(3));
    assert_eq!(infer(&common).variables()[0].domain, Domain::Finite(3));
}

#[test]
fn numbers_find_their_label_whatever_their_form() {
    let schema = infer(&format!("g\n{}", "1.0\n1.5\n2.0\n".repeat(10)));
    assert_eq!(schema.columns()[0].kind.name(), "categorical");
    let rows = Table::new(vec![Column::numbers("g", vec![1.0, 1.5, 2.0])]).unwrap();
    assert_eq!(schema.encode(&rows).unwrap().to_rows(), [0.0, 1.0, 2.0]);
    let rows = Table::new(vec![Column::integers("g", [Some(2), None])]).unwrap();
    let encoded = schema.encode(&rows).unwrap();
    assert!(encoded.to_rows()[0] == 2.0 && encoded.to_rows()[1].is_nan());
    assert_eq!(schema.decode(&[1.0]).unwrap().to_csv(), b"g\n1.5\n");
    let flags = Table::from_rows(&["f"], &[0.0, 1.0, f64::NAN]).unwrap();
    let schema = Schema::infer(&flags, &InferOptions::default()).unwrap();
    assert_eq!(schema.columns()[0].kind.name(), "Boolean");
    assert_eq!(schema.decode(&[1.0, 0.0]).unwrap().columns()[0].number(0), Some(1.0));
}

#[test]
fn wide_integers_are_exact() {
    for (min, max) in [
        (0, 300),
        (-5, 100_000),
        (i64::MIN, 0),
        (0, i64::MAX),
        (i64::MAX - 999, i64::MAX),
        (i64::MIN, i64::MAX),
    ] {
        let values: Vec<i64> = vec![min, max, min / 3 + max / 3 + (max % 3), max - 1];
        let t = Table::new(vec![Column::integers("n", values.iter().map(|&x| Some(x)))]).unwrap();
        let schema = Schema::infer(&t, &plain()).unwrap();
        let ColumnKind::Digits(Digits { radices, .. }) = &schema.columns()[0].kind else {
            panic!()
        };
        assert!(radices.iter().all(|&r| r <= 65), "{radices:?}");
        let encoded = schema.encode(&t).unwrap();
        assert_eq!(schema.decode(&encoded.to_rows()).unwrap(), t, "{min} to {max}");
    }
}

/// The numbers in a union of blocks, each with its multiplicity.
fn members(blocks: &[Block], radices: &[usize]) -> Vec<usize> {
    let total: usize = radices.iter().product();
    let digit = |n: usize, at: usize| n / radices[at + 1..].iter().product::<usize>() % radices[at];
    let holds = |n: usize, (v, e): &(usize, Evidence)| match e {
        Evidence::Unknown => true,
        Evidence::Value(x) => digit(n, *v) as f64 == *x,
        Evidence::In(Part::Values(set)) => set.contains(&digit(n, *v)),
        Evidence::In(Part::Interval { .. }) => false,
    };
    (0..total)
        .flat_map(|n| blocks.iter().filter(move |b| b.iter().all(|e| holds(n, e))).map(move |_| n))
        .collect()
}

#[test]
fn intervals_of_digits_are_disjoint_boxes() {
    let values = [100_i64, 219].map(Some);
    let t = Table::new(vec![Column::integers("n", values)]).unwrap();
    let options = with_kind("n", KindHint::Digits);
    let mut schema = Schema::infer(&t, &options).unwrap();
    schema = Schema::new(
        schema
            .columns()
            .iter()
            .cloned()
            .map(|c| ColumnSchema { kind: Digits { min: 100, radices: vec![4, 5, 6] }.into(), ..c })
            .collect(),
    )
    .unwrap();
    for a in 100..220_u32 {
        for b in a..220 {
            let (low, high) = (Included(f64::from(a)), Included(f64::from(b)));
            let blocks = schema.evidence_interval("n", low, high).unwrap();
            let expected: Vec<usize> = (a as usize - 100..=b as usize - 100).collect();
            assert_eq!(members(&blocks, &[4, 5, 6]), expected, "{a} to {b}: {blocks:?}");
            assert!(blocks.len() <= 5);
        }
    }
    let all = schema.evidence_interval("n", Unbounded, Unbounded).unwrap();
    assert_eq!(all, [Vec::new()]);
    assert!(schema.evidence_interval("n", Included(500.0), Unbounded).unwrap().is_empty());
    let open = schema.evidence_interval("n", Excluded(100.0), Excluded(103.0)).unwrap();
    assert_eq!(members(&open, &[4, 5, 6]), [1, 2]);
    let set = schema
        .evidence_set("n", &[Cell::Integer(105), Cell::Text("100"), Cell::Integer(105)])
        .unwrap();
    assert_eq!(members(&set, &[4, 5, 6]), [0, 5]);
}

#[test]
fn evidence_is_in_the_variables_own_values() {
    let table = mixed();
    let schema = Schema::infer(&table, &plain()).unwrap();
    let variables = schema.variables();
    let set = |column: &str, cells: &[Cell<'_>]| schema.evidence_set(column, cells).unwrap();
    let values = |v: usize, set: Vec<usize>| vec![vec![(v, Evidence::In(Part::Values(set)))]];
    assert_eq!(set("city", &[Cell::Text("Essen"), Cell::Text("Bonn")]), values(0, vec![0, 1]));
    let interval = |column: &str, a: f64, b: f64| {
        schema.evidence_interval(column, Included(a), Excluded(b)).unwrap()
    };
    assert_eq!(interval("age", 20.0, 22.0), values(2, vec![3, 4]));
    assert_eq!(interval("age", 0.0, 18.5), values(2, vec![0, 1]));
    assert_eq!(interval("grade", 1.2, 2.0), values(8, vec![1, 2]));
    assert_eq!(interval("flag", 0.5, 9.0), values(11, vec![1]));
    assert!(interval("age", 200.0, 300.0).is_empty());
    let ColumnKind::Continuous(Continuous { warp }) = &schema.columns()[4].kind else { panic!() };
    let expected = Evidence::In(Part::Interval { low: 0.0, high: warp.distribution(1.8) });
    assert_eq!(interval("height", f64::NEG_INFINITY, 1.8), [vec![(7, expected)]]);
    let value = schema.evidence_value("member", Cell::Text("yes")).unwrap();
    assert_eq!(value, [(1, Evidence::Value(1.0))]);
    // All of it can be used in a query.
    let mut query = Query::unknown(variables.len());
    for block in
        [value, interval("age", 20.0, 22.0).remove(0), interval("height", 1.7, 1.8).remove(0)]
    {
        for (v, evidence) in block {
            query.set(&variables, v, evidence).unwrap();
        }
    }
    assert!(query.check(&variables).is_ok());
}

#[test]
fn declared_kinds_are_kept() {
    let t = table(&format!("x,y,m\n{}", "1,0.5,30\n2,0.25,90\n400,1,1439\n".repeat(20)));
    let kind = |column: &str, hint| {
        let schema = Schema::infer(&t, &with_kind(column, hint)).unwrap();
        let n = schema.find(column).unwrap();
        (schema.columns()[n].kind.clone(), schema)
    };
    assert_eq!(kind("x", KindHint::Integer).0, Integer { min: 1, max: 400 }.into());
    assert_eq!(kind("x", KindHint::Categorical).0.name(), "categorical");
    let unit = Support { low: Some(0.0), high: Some(1.0) };
    let (continuous, schema) = kind("y", KindHint::Continuous(unit));
    assert_eq!(continuous.name(), "continuous");
    let back = schema.decode(&schema.encode(&t).unwrap().to_rows()).unwrap();
    assert!((back.column("y").unwrap().number(1).unwrap() - 0.25).abs() < 1e-12);
    let (periodic, schema) = kind("m", KindHint::Periodic { period: 1440.0 });
    assert_eq!(periodic, Periodic { origin: 0.0, period: 1440.0 }.into());
    let encoded = schema.encode(&t).unwrap();
    let at = schema.variables_of(2).start;
    assert_eq!(encoded.row(1)[at], 90.0 / 1440.0);
    assert_eq!(schema.decode(&encoded.to_rows()).unwrap().column("m").unwrap().text(2), "1439");
    let night = schema.evidence_interval("m", Included(1380.0), Excluded(1500.0)).unwrap();
    assert_eq!(night.len(), 2);
    let (_, Evidence::In(Part::Interval { low, high })) = &night[1][0] else { panic!() };
    assert!(*low == 0.0 && (high - 60.0 / 1440.0).abs() < 1e-15);
    assert!(schema.bases(5).is_ok());
    // Whole numbers stored as floats decode to whole numbers.
    let (_, schema) = kind("m", KindHint::Continuous(Support::REAL));
    let back = schema.decode(&schema.encode(&t).unwrap().to_rows()).unwrap();
    assert_eq!(back.column("m").unwrap().text(2), "1439");
}

#[test]
fn pixels_have_one_range() {
    let columns = (0..4).map(|j| Column::bytes(format!("p{j}"), vec![0, j * 60]));
    let t = Table::new(columns.collect()).unwrap().with_image([2, 2, 1]).unwrap();
    let schema = Schema::infer(&t, &InferOptions::default()).unwrap();
    assert!(schema.columns().iter().all(|c| c.kind == Integer { min: 0, max: 255 }.into()));
    assert_eq!(schema.image(), Some([2, 2, 1]));
    assert_eq!(schema.decode(&schema.encode(&t).unwrap().to_rows()).unwrap(), t);
    let json = serde_json::to_string(&schema).unwrap();
    assert_eq!(serde_json::from_str::<Schema>(&json).unwrap(), schema);
}

#[test]
fn columns_are_found_by_name() {
    let schema = infer("a,b\n1,x\n2,y\n3,x\n");
    let swapped = schema.encode(&table("b,more,a\ny,0,3\n")).unwrap();
    assert_eq!(swapped.row(0), [2.0, 1.0]);
    let absent = EncodeOptions { absent: Mismatch::Unknown, ..EncodeOptions::default() };
    let some = schema.encode_with(&table("b\ny\n"), absent).unwrap();
    assert!(some.row(0)[0].is_nan() && some.row(0)[1] == 1.0);
}

#[test]
fn small_tables_have_schemas() {
    for text in ["a\n1\n", "a\nx\n", "a\n1.5\n", "a,b\n1.5,\n", "a,b\n\"\",x\n"] {
        let t = table(text);
        let schema = Schema::infer(&t, &InferOptions::default()).unwrap();
        let encoded = schema.encode(&t).unwrap();
        assert_eq!(schema.decode(&encoded.to_rows()).unwrap().to_csv(), t.to_csv(), "{text}");
    }
}

/// A repeated number is looked up. A table of one row has none.
#[test]
fn repeated_numbers_are_encoded_as_in_a_table_of_their_own() {
    let rng = &mut ChaCha8Rng::seed_from_u64(2);
    let mut text = "grid,whole,smooth,day\n".to_owned();
    for _ in 0..300 {
        let number = rng.random_range(-400..400);
        let (grid, smooth) = (f64::from(number) / 100.0, rng.random::<f64>());
        let (whole, day) = (number * 3, rng.random_range(1..29));
        writeln!(text, "{grid:.2},{whole},{smooth},2024-03-{day:02}").unwrap();
    }
    let schema = Schema::infer(&table(&text), &InferOptions::default()).unwrap();
    // Between grid points, out of range, and missing.
    text += "0.015,1,0.5,2024-03-01\n1e9,100000000,-7,2030-03-01\n,,,\n";
    let rows = table(&text);
    let count = rows.num_rows();
    // All rows three times.
    let order: Vec<usize> = (0..3 * count).map(|row| row * 7 % count).collect();
    let all = rows.select_rows(&order);
    for unseen in [Unseen::Score, Unseen::Missing] {
        let options = EncodeOptions { unseen, ..EncodeOptions::default() };
        let encoded = schema.encode_with(&all, options).unwrap();
        for (row, &source) in order.iter().enumerate() {
            let alone = schema.encode_with(&rows.select_rows(&[source]), options).unwrap();
            let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(encoded.row(row)), bits(alone.row(0)), "row {row}");
            assert_eq!(encoded.log_jacobian()[row], alone.log_jacobian()[0], "row {row}");
            let outside = encoded.outside().filter(|cell| cell.0 == row).count();
            assert_eq!(outside, alone.outside().count(), "row {row}");
        }
    }
}
