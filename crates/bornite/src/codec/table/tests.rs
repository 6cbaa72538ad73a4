//! Any table is restored exactly.

use std::fmt::Write;

use proptest::prelude::*;
use rand::SeedableRng;

use super::*;
use crate::circuit::{Circuit, Weights};
use crate::data::{CsvOptions, InferOptions, KindHint, Support};
use crate::ops::orthonormalize;
use crate::structure::{RegionTree, Structure};

fn table(text: &str) -> Table {
    Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default()).unwrap()
}

/// A random circuit over the variables of a schema: nothing has to be learned.
fn circuit(schema: &Schema) -> Circuit {
    let (variables, bases) = (schema.variables(), schema.bases(7).unwrap());
    let leaf = |v: usize| (variables[v].clone(), bases[v].clone());
    let structure = Structure::new(RegionTree::balanced(variables.len()), leaf).width(3);
    let rng = &mut rand_chacha::ChaCha8Rng::seed_from_u64(8);
    orthonormalize(&structure.build(Weights::Gaussian, rng).unwrap())
        .unwrap()
        .circuit
        .into_circuit()
}

fn infer(table: &Table) -> Schema {
    let mut options = InferOptions { max_labels: 3, ..InferOptions::default() };
    for (name, kind) in [
        ("angle", KindHint::Periodic { period: 24.0 }),
        ("real", KindHint::Continuous(Support::REAL)),
    ] {
        if table.column(name).is_ok() {
            options.kinds.insert(name.to_owned(), kind);
        }
    }
    Schema::infer(table, &options).unwrap()
}

fn round_trip(schema: &Schema, circuit: &Circuit, table: &Table) -> Vec<u8> {
    let codec = TableCodec::new(schema, circuit).unwrap();
    let segment = codec.compress(table, FileForm::Csv, 0).unwrap();
    let (back, form) = codec.decompress(&segment).unwrap();
    assert_eq!(form, FileForm::Csv);
    assert_eq!(String::from_utf8(back.to_csv()), String::from_utf8(table.to_csv()));
    for (a, b) in back.columns().iter().zip(table.columns()) {
        assert_eq!(a.form(), b.form());
        for row in 0..table.num_rows() {
            assert_eq!(a.number(row).map(f64::to_bits), b.number(row).map(f64::to_bits));
        }
    }
    segment.body
}

const MIXED: &str = "city,flag,count,wide,real,angle,name,id\n\
    Bonn,no,1,100000,0.25,23.5,a,001\n\
    Essen,yes,2,,-7.5,0.25,b,002\n\
    Bonn,?,300,-5000000,1e-300,12,c d,003\n\
    Köln,no,17,9223372036854775807,-0.0,11.75,\"e,f\",004\n\
    Bonn, yes,2,-9223372036854775808,3.14159,NA,,005\n\
    ,no,2,5,0.1,3,a,006\n";

#[test]
fn every_kind_of_column_comes_back() {
    let table = table(&MIXED.replace("Bonn,no", "Bonn,no "));
    let schema = infer(&table);
    round_trip(&schema, &circuit(&schema), &table);
}

#[test]
fn what_the_model_does_not_know_is_escaped() {
    let known = table(
        "city,n,x,gone
Bonn,1,0.5,1
Essen,2,0.75,2
Bonn,3,0.25,1
Essen,2,0.5,2
",
    );
    let schema = infer(&known);
    let circuit = circuit(&schema);
    for text in [
        "city,n,x,gone\nParis,9,17.125,1\n(other),-400,1e300,9\n",
        "x,new,city\nBonn,0.5,3\nwords,,\n",
        "n,x\n1.5,3\n2.25,4\n",
        "other\n1\n2\n",
        "city\n1\n2\n",
        "n;x\r\n1;NaN\r\n2;-0.0\r\n",
    ] {
        round_trip(&schema, &circuit, &table(text));
    }
}

#[test]
fn the_bytes_depend_on_no_machine_and_no_block_is_needed_whole() {
    let mut text = "x,y,label\n".to_owned();
    for n in 0..700_u32 {
        let (a, b) = (n.wrapping_mul(2_654_435_761) % 10_000, n * n % 97);
        let label = ["a", "b", ""][n as usize % 3];
        writeln!(text, "{}.{:03},{b},{label}", a / 1000, a % 1000).unwrap();
    }
    let table = table(&text);
    let schema = infer(&table);
    let circuit = circuit(&schema);
    let codec = |level, rows| TableCodec::new(&schema, &circuit).unwrap().with(level, rows);
    for rows in [None, Some(1), Some(1000)] {
        let segment = codec(SimdLevel::Best, rows).compress(&table, FileForm::Csv, 0).unwrap();
        for level in [SimdLevel::Scalar, SimdLevel::Avx2, SimdLevel::Avx512] {
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let own = codec(level, rows);
                    assert!(own.compress(&table, FileForm::Csv, 0).unwrap() == segment);
                    // The reader gets the block size from the stream.
                    let (back, _) = codec(level, None).decompress(&segment).unwrap();
                    assert!(back.to_csv() == text.as_bytes());
                });
            }
        }
    }
}

#[test]
fn another_schema_is_another_model() {
    let (one, other) = (table("a\nx\ny\nx\n"), table("a\nx\nz\nx\n"));
    let (one_schema, other_schema) = (infer(&one), infer(&other));
    let circuit = circuit(&one_schema);
    let body = round_trip(&one_schema, &circuit, &one);
    let segment = Segment { kind: SegmentKind::Table, content: 0, body };
    let error = TableCodec::new(&other_schema, &circuit).unwrap().decompress(&segment).unwrap_err();
    assert!(matches!(error, CodecError::WrongModel { .. }), "{error}");
}

/// The cost of real numbers is that of the density of their cells.
#[test]
fn real_numbers_cost_what_their_density_says() {
    let mut text = "real\n".to_owned();
    for n in 0..3000_u32 {
        // The mean of 12 sums of decimals is nearly normal.
        let sum: u32 = (0..4).map(|k| (n * 4 + k).wrapping_mul(2_654_435_761) >> 12 & 0xffff).sum();
        writeln!(text, "{:.2}", f64::from(sum) / 1000.0).unwrap();
    }
    let table = table(&text);
    let schema = infer(&table);
    let circuit = circuit(&schema);
    let encoded = schema.encode(&table).unwrap();
    let mut bits = 0.0;
    for row in 0..table.num_rows() {
        let nats = crate::ops::evaluate(&circuit, &encoded.row(row)).unwrap().log_abs_squared();
        bits -= (nats + encoded.log_jacobian()[row] + 0.01_f64.ln()) / std::f64::consts::LN_2;
    }
    let codec = TableCodec::new(&schema, &circuit).unwrap();
    let body = codec.compress(&table, FileForm::Csv, 0).unwrap().body;
    let mut rows = Reader(&body);
    rows.sized().and_then(|_| rows.sized()).unwrap();
    let found = 8.0 * rows.0.len() as f64;
    assert!((found / bits - 1.0).abs() < 0.02, "{found} bits for {bits}");
}

fn cell(kind: usize) -> BoxedStrategy<String> {
    match kind {
        0 => "[a-c]{0,2}".boxed(),
        1 => prop_oneof![Just("yes"), Just("no"), Just("")].prop_map(str::to_owned).boxed(),
        2 => (-3_i64..200).prop_map(|n| n.to_string()).boxed(),
        3 => any::<i64>().prop_map(|n| n.to_string()).boxed(),
        4 => (any::<i16>(), 0..4_usize)
            .prop_map(|(n, k)| format!("{:.k$}", f64::from(n) / 8.0))
            .boxed(),
        5 => any::<f64>()
            .prop_filter("finite", |x| x.is_finite())
            .prop_map(|x| x.to_string())
            .boxed(),
        _ => prop_oneof![Just("-0.0"), Just("NaN"), Just("1e5"), Just("+3"), Just(" 7"), Just("")]
            .prop_map(str::to_owned)
            .boxed(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_table_comes_back_under_any_model(
        columns in prop::collection::vec(
            (0..7_usize).prop_flat_map(|kind| prop::collection::vec(cell(kind), 12)), 1..5),
        other in prop::collection::vec(
            (0..7_usize).prop_flat_map(|kind| prop::collection::vec(cell(kind), 12)), 1..5),
    ) {
        let make = |columns: &[Vec<String>]| {
            let mut text = (0..columns.len()).map(|c| format!("c{c}")).collect::<Vec<_>>().join(",") + "\n";
            for row in 0..12 {
                let cells: Vec<&str> = columns.iter().map(|c| c[row].as_str()).collect();
                text += &(cells.join(",") + "\n");
            }
            Table::from_csv_bytes(text.as_bytes(), "t.csv", &CsvOptions::default())
        };
        let (Ok(one), Ok(other)) = (make(&columns), make(&other)) else { return Ok(()) };
        let Ok(schema) = Schema::infer(&one, &InferOptions::default()) else { return Ok(()) };
        let circuit = circuit(&schema);
        round_trip(&schema, &circuit, &one);
        round_trip(&schema, &circuit, &other);
    }
}
