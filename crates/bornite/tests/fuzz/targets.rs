//! What is fuzzed: how an input is made, and what is done with it.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use bornite::data::{CsvOptions, DataError, Table, write_file};
use bornite::learn::{Control, Snapshot};
use bornite::model::{CompressOptions, Event, Imputation, compress_file, decompress_file};
use bornite::{Fit, Model, file};
use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::formats::{Compressed, Safetensors, checkpoint};
use crate::laws;
use crate::mutate::{self, pick};

/// One thing that is fuzzed.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Makes an input.
    pub(crate) make: fn(&mut ChaCha8Rng) -> Vec<u8>,
    /// Uses it; whether it was accepted, or the law that it breaks.
    pub(crate) check: fn(&[u8]) -> Result<bool, String>,
}

pub(crate) static TARGETS: [Target; 7] = [
    Target { name: "circuit", make: make_circuit, check: check_circuit },
    Target { name: "model", make: make_model, check: check_model },
    Target { name: "compressed", make: make_compressed, check: check_compressed },
    Target { name: "checkpoint", make: make_checkpoint, check: check_checkpoint },
    Target { name: "file", make: make_file, check: check_file },
    Target { name: "table", make: make_table, check: check_table },
    Target { name: "question", make: make_question, check: check_question },
];

/// Circuits of all kinds of layers, bases and weights, small.
const CIRCUITS: [&str; 5] = [
    r#"{"version": 1, "variables": [{"name": "x", "domain": {"finite": 3}}, {"name": "y", "domain": "real"}],
        "bases": {"h": {"kind": "hermite", "functions": 3}},
        "layers": [{"kind": "input", "variable": "x"}, {"kind": "input", "variable": "y", "basis": "h"},
                   {"kind": "sum", "input": 0, "weight": [[1, 0, 0], [0, [0, 1], 0]]},
                   {"kind": "sum", "input": 1, "weight": {"random": "haar", "rows": 2, "seed": 4}},
                   {"kind": "kronecker", "inputs": [2, 3]},
                   {"kind": "sum", "input": 4, "weight": [[0.5, 0.5, 0.5, 0.5]]}], "output": 5}"#,
    r#"{"variables": [{"name": "v{}", "count": 5, "first": 1, "domain": {"finite": 2}}],
        "structure": {"tree": "balanced", "width": 3, "weights": "haar", "seed": 2}}"#,
    r#"{"variables": [{"name": "a", "domain": {"interval": [0, 2]}, "basis": {"kind": "legendre", "functions": 4}},
                      {"name": "b", "domain": {"circle": 1}, "basis": {"kind": "fourier", "functions": 3}},
                      {"name": "c", "domain": {"half_line": 0}, "basis": {"kind": "laguerre", "functions": 2}}],
        "structure": {"tree": [[0, 1], 2], "width": 2, "product": "hadamard", "weights": "real_haar"}}"#,
    r#"{"variables": [{"name": "p{}", "count": 4, "domain": {"finite": 4}}],
        "weights": {"w": [[1, 0, 0, 0], [0, 1, 0, 0]]},
        "layers": [{"kind": "input", "variable": "p0"}, {"kind": "input", "variable": "p1"},
                   {"kind": "input", "variable": "p2"}, {"kind": "input", "variable": "p3"},
                   {"kind": "sum", "input": 0, "weight": "w"}, {"kind": "sum", "input": 1, "weight": "w"},
                   {"kind": "sum", "input": 2, "weight": "w"}, {"kind": "sum", "input": 3, "weight": "w"},
                   {"kind": "hadamard", "inputs": [4, 5, 6, 7]},
                   {"kind": "sum", "input": 8, "weight": [[0.6, 0.8]]}], "output": 9}"#,
    r#"{"variables": [{"name": "s", "domain": {"interval": [0, 2]},
                       "basis": {"kind": "steps", "functions": 3, "edges": [0, 0.25, 0.5, 0.75, 1.5, 2]}},
                      {"name": "t", "domain": {"atoms": [0.5, 3], "rest": {"interval": [0, 1]}},
                       "basis": {"kind": "atoms",
                                 "of": {"kind": "steps", "functions": 2, "edges": [0, 0.125, 0.875, 1]}}}],
        "structure": {"tree": [0, 1], "width": 3, "weights": "haar", "seed": 3}}"#,
];

fn make_circuit(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut value: Value = serde_json::from_str(pick(rng, &CIRCUITS)).expect("JSON");
    mutate::json(rng, &mut value);
    let mut bytes = value.to_string().into_bytes();
    if rng.random_ratio(1, 10) {
        mutate::bytes(rng, &mut bytes);
    }
    bytes
}

fn check_circuit(input: &[u8]) -> Result<bool, String> {
    let Ok(circuit) = file::from_bytes(input) else { return Ok(false) };
    laws::circuit(circuit).map(|()| true)
}

/// A table of all kinds of columns.
fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut text = "city,flag,count,wide,real\n".to_owned();
        for n in 0..60_u32 {
            let city = ["Bonn", "Ulm", "Köln"][n as usize % 3];
            let real = f64::from(n * n % 37) / 7.0;
            let (even, wide) = (n % 2 == 0, 1000 + n * 977);
            let _ = writeln!(text, "{city},{even},{},{wide},{real:.3}", n % 5);
        }
        Table::from_csv_bytes(text.as_bytes(), "seed.csv", &CsvOptions::default()).expect("a table")
    })
}

fn small<'a>() -> Fit<'a> {
    Fit::new().width(2).epochs(1).as_is()
}

fn seed_model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| small().run(table()).expect("a model"))
}

fn make_model(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let bytes = seed_model().to_bytes().expect("bytes");
    let mut file = Safetensors::read(&bytes).expect("a model file");
    match rng.random_range(0..4) {
        0 => mutate::bytes(rng, &mut file.data),
        1 => mutate::json(rng, &mut file.header),
        choice => {
            let name = if choice == 2 { "bornite" } else { "bornite.model" };
            let mut text = file.text(name).expect("a text");
            mutate::json(rng, &mut text);
            file.set_text(name, &text);
        }
    }
    file.write()
}

fn check_model(input: &[u8]) -> Result<bool, String> {
    let Ok(model) = Model::from_bytes(input) else { return Ok(false) };
    laws::model(&model).map(|()| true)
}

/// Compressed files with a model of their own, and packed without one.
fn seed_compressed() -> &'static [Vec<u8>] {
    static FILES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    FILES.get_or_init(|| {
        let rows = (0..3000_u32).map(|n| format!("{},{}\n", n * 7919 % 13, n * 104_729 % 11));
        let prices = (0..3000_u32).map(|n| {
            let price = f64::from(n * n % 997) / 100.0;
            format!("{price:.2},{}\n", u32::from(price > 5.0) + n % 2)
        });
        let texts = [
            format!("a,b\n{}", rows.collect::<String>()),
            format!("price,size\n{}", prices.collect::<String>()),
            "no table\n".repeat(50),
        ];
        let pack = |text: &String| {
            let options = CompressOptions { epochs: Some(1), width: Some(2), ..Default::default() };
            let mut out = Vec::new();
            let next = &mut |_: &_| Control::Continue;
            compress_file(text.as_bytes(), &mut out, "t.csv", None, &options, next).expect("bytes");
            out
        };
        texts.iter().map(pack).collect()
    })
}

fn make_compressed(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut file = Compressed::read(&pick(rng, seed_compressed())).expect("a compressed file");
    let choice = rng.random_range(0..4);
    if choice == 0 && !file.model.is_empty() {
        change_frame(rng, &mut file.model);
    } else if choice == 1 {
        mutate::bytes(rng, &mut file.model);
    } else if let Some(segment) = file.segments.first_mut() {
        if choice == 2 {
            mutate::bytes(rng, &mut segment.2);
        } else {
            segment.1 = pick(rng, &[0, 1, segment.1 + 1, 1 << 28, u64::MAX]);
        }
    }
    file.write()
}

/// Changes the JSON of the model in a compressed file.
fn change_frame(rng: &mut impl Rng, model: &mut Vec<u8>) {
    let length = model.first_chunk().map_or(0, |&b| u64::from_le_bytes(b)) as usize;
    let frame = zstd::decode_all(&model[8..8 + length]).expect("a frame");
    let mut value: Value = serde_json::from_slice(&frame).expect("JSON");
    mutate::json(rng, &mut value);
    let frame = zstd::encode_all(value.to_string().as_bytes(), 1).expect("bytes");
    let numbers = model.split_off(8 + length);
    *model = (frame.len() as u64).to_le_bytes().to_vec();
    model.extend(frame);
    model.extend(numbers);
}

#[expect(clippy::unnecessary_wraps, reason = "all targets have one type")]
fn check_compressed(input: &[u8]) -> Result<bool, String> {
    let mut out = Vec::new();
    Ok(decompress_file(input, &mut out, None).is_ok())
}

fn hostile(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/hostile").join(name)
}

fn checkpoint_table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        Table::read_csv(hostile("p3.csv"), &CsvOptions::default()).expect("a table")
    })
}

fn make_checkpoint(rng: &mut ChaCha8Rng) -> Vec<u8> {
    static SEED: OnceLock<Vec<u8>> = OnceLock::new();
    let seed = SEED.get_or_init(|| {
        let mut bytes = Vec::new();
        let keep = |_: &_, snapshot: &Snapshot<'_>| {
            bytes = snapshot.to_bytes();
            Control::Continue
        };
        small().on_step(keep).run(checkpoint_table()).expect("a model");
        bytes
    });
    let mut content = seed[..seed.len() - 4].to_vec();
    mutate::bytes(rng, &mut content);
    checkpoint(content)
}

fn check_checkpoint(input: &[u8]) -> Result<bool, String> {
    match small().resume(input).run(checkpoint_table()) {
        Ok(model) => laws::model(&model).map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Files of tables and arrays: Parquet, NPY, IDX, and CSV compressed with gzip. The first byte says which.
fn seed_files() -> &'static [Vec<u8>; 4] {
    static FILES: OnceLock<[Vec<u8>; 4]> = OnceLock::new();
    FILES.get_or_init(|| {
        let numbers = ["count", "wide"].map(|name| table().column(name).expect("a column").clone());
        let numbers = table().with_columns(numbers.to_vec()).expect("a table");
        let path = scratch(".npy");
        numbers.write_npy(&path).expect("a file");
        let npy = fs::read(&path).expect("bytes");
        let path = scratch(".gz");
        let written = write_file(&path, |out| {
            out.write_all(&table().to_csv()).map_err(|_| DataError::NoColumns)
        });
        written.expect("a file");
        let gzip = fs::read(&path).expect("bytes");
        let mut idx = vec![0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 3];
        idx.extend(0..30);
        [table().to_parquet_bytes().expect("bytes"), npy, idx, gzip]
    })
}

/// A file of this process and thread.
fn scratch(end: &str) -> PathBuf {
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    std::env::temp_dir().join(format!("bornite-fuzz-{}-{thread}{end}", std::process::id()))
}

fn make_file(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let which = rng.random_range(0..4_u8);
    let mut bytes = seed_files()[usize::from(which)].clone();
    for _ in 0..rng.random_range(1..4) {
        mutate::bytes(rng, &mut bytes);
    }
    bytes.insert(0, which);
    bytes
}

/// What is read is written and read again as it is.
fn check_file(input: &[u8]) -> Result<bool, String> {
    let Some((which, bytes)) = input.split_first() else { return Ok(false) };
    let from_disk = |read: fn(&PathBuf) -> Result<Table, DataError>| {
        let path = scratch("");
        fs::write(&path, bytes).map_err(|e| e.to_string())?;
        let found = read(&path);
        let _gone = fs::remove_file(&path);
        Ok::<_, String>(found)
    };
    let found = match which % 4 {
        0 => Table::from_parquet_bytes(bytes.to_vec(), "t.parquet"),
        1 => from_disk(|path| Table::read_npy(path))?,
        2 => from_disk(|path| Table::read_idx(path))?,
        _ => from_disk(|path| Table::read_csv(path, &CsvOptions::default()))?,
    };
    let Ok(table) = found else { return Ok(false) };
    if which % 4 == 0 {
        let again = table.to_parquet_bytes().map_err(|e| format!("not written: {e}"))?;
        let again = Table::from_parquet_bytes(again, "t.parquet");
        let again = again.map_err(|e| format!("not read back: {e}"))?;
        if again.to_csv() != table.to_csv() {
            return Err("another table came back".to_owned());
        }
    }
    Ok(true)
}

/// A small table as CSV: odd cells among plain ones.
fn make_table(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let cells = [
        "",
        "0",
        "1",
        "-1",
        "1e300",
        "-1.7e308",
        "1e-310",
        "1000000000000000128",
        "0.1",
        "27.0",
        "NaN",
        "inf",
        "true",
        "no",
        "a",
        "\"b,c\"",
        "é",
        "9007199254740993",
        "18446744073709551615",
        "2024-02-30",
        "?",
        "NULL",
        " 7 ",
    ];
    let (rows, columns) = (rng.random_range(1..30), rng.random_range(1..5));
    let names: Vec<String> = (0..columns).map(|c| format!("c{c}")).collect();
    let mut text = names.join(",");
    text.push('\n');
    let kinds: Vec<u32> = (0..columns).map(|_| rng.random_range(0..9)).collect();
    for _ in 0..rows {
        for (c, kind) in kinds.iter().enumerate() {
            if c > 0 {
                text.push(',');
            }
            match kind {
                _ if rng.random_ratio(1, 12) => text.push_str(pick(rng, &cells)),
                0 => text += &rng.random_range(0..5).to_string(),
                1 => {
                    let _ = write!(text, "{:.2}", rng.random_range(-3.0..3.0));
                }
                2 => text.push_str(pick(rng, &["x", "y", "z"])),
                3 => text += &rng.random_range(-1_000_000..1_000_000).to_string(),
                4 => {
                    let (month, day) = (rng.random_range(1..=3), rng.random_range(25..=28));
                    let _ = write!(text, "2019-{month:02}-{day}");
                }
                5 => {
                    let (day, hour) = (rng.random_range(1..=30), rng.random_range(0..24));
                    let _ = write!(text, "{day:02}/04/2020 {hour:02}:{:02}", 7 * day % 60);
                }
                // Grids with an offset, and numbers that floats can barely tell apart.
                6 => {
                    let _ = write!(text, "{}.5", rng.random_range(0..40));
                }
                7 => text += &(10 * rng.random_range(-9..90) + 7).to_string(),
                _ => text += &(9_007_199_254_740_000_i64 + rng.random_range(0..300)).to_string(),
            }
        }
        text.push('\n');
    }
    let mut bytes = text.into_bytes();
    if rng.random_ratio(1, 5) {
        mutate::bytes(rng, &mut bytes);
    }
    bytes
}

/// All operations on a table: fit, laws, fill, compress and back.
fn check_table(input: &[u8]) -> Result<bool, String> {
    let Ok(table) = Table::from_csv_bytes(input, "t.csv", &CsvOptions::default()) else {
        return Ok(false);
    };
    let Ok(model) = small().run(&table) else { return Ok(false) };
    laws::model(&model)?;
    for how in [Imputation::Mean, Imputation::Mode, Imputation::Sample] {
        if let Ok(filled) = model.impute(&table, how, 1)
            && filled.num_rows() != table.num_rows()
        {
            return Err("rows were lost".to_owned());
        }
    }
    let bytes = model.compress(&table).map_err(|e| format!("not compressed: {e}"))?;
    let back = model.decompress(&bytes).map_err(|e| format!("not decompressed: {e}"))?;
    if back.to_csv() != table.to_csv() {
        return Err("another table came back".to_owned());
    }
    Ok(true)
}

fn make_question(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut text = format!("P({})", evidence(rng));
    match rng.random_range(0..12) {
        5 => text = format!("P({} or {})", condition(rng), evidence(rng)),
        6 => text = format!("P(not ({}) and {})", evidence(rng), condition(rng)),
        7 => text = format!("std({} | {})", column(rng), evidence(rng)),
        8 => text = format!("corr({}, {} | {})", column(rng), column(rng), evidence(rng)),
        9 => text = format!("argmax(city, flag | {})", evidence(rng)),
        10 => text = format!("MI(city; flag | {})", evidence(rng)),
        0 => text = format!("P({} | {})", evidence(rng), evidence(rng)),
        1 => text = format!("E[{} | {}]", column(rng), evidence(rng)),
        2 => text = format!("quantile({}, 0.3 | {})", column(rng), evidence(rng)),
        3 => text = format!("argmax({} | {})", column(rng), evidence(rng)),
        _ => {}
    }
    let mut bytes = text.into_bytes();
    if rng.random_ratio(1, 6) {
        mutate::bytes(rng, &mut bytes);
    }
    bytes
}

fn column(rng: &mut impl Rng) -> &'static str {
    pick(rng, &["city", "flag", "count", "wide", "real"])
}

fn evidence(rng: &mut impl Rng) -> String {
    let count = rng.random_range(1..3);
    (0..count).map(|_| condition(rng)).collect::<Vec<_>>().join(", ")
}

fn condition(rng: &mut impl Rng) -> String {
    match column(rng) {
        "city" => format!("city = '{}'", pick(rng, &["Bonn", "Ulm", "Köln", "Essen"])),
        "flag" => format!("flag = {}", pick(rng, &["true", "false"])),
        name => {
            let (a, b) = (rng.random_range(-2..70_000), rng.random_range(-2..70_000));
            match rng.random_range(0..4) {
                0 => format!("{name} < {a}"),
                1 => format!("{name} in [{}, {})", a.min(b), a.max(b)),
                2 => format!("{name} >= {}", f64::from(a) / 7.0),
                _ => format!("{name} in {{{}, {}}}", a % 7, b % 7),
            }
        }
    }
}

/// Answers are numbers, what holds and what does not have probabilities of sum 1, and P(a | b) P(b) = P(a, b).
fn check_question(input: &[u8]) -> Result<bool, String> {
    let model = seed_model();
    let text = String::from_utf8_lossy(input);
    let Ok(answer) = model.ask(&text) else { return Ok(false) };
    if let Some(x) = answer.number()
        && x.is_nan()
    {
        return Err(format!("{text} is NaN"));
    }
    let of = |text: &str| -> Option<f64> {
        Some(model.log_probability(&Event::parse(model.schema(), text).ok()?).ok()?.exp())
    };
    let event = text.strip_prefix("P(").and_then(|t| t.strip_suffix(')'));
    if let Some(event) = event.filter(|e| !e.contains('|'))
        && let (Some(p), Some(first), Some(last)) =
            (of(event), of(&format!("{event}, real < 2.5")), of(&format!("{event}, real >= 2.5")))
        && !Event::parse(model.schema(), event).is_ok_and(|known| known.is_density())
        && (p - first - last).abs() > 1e-6
    {
        return Err(format!("P({event}) = {p} is not {first} + {last}"));
    }
    if let Some((event, given)) = event.and_then(|e| e.split_once(" | "))
        && let (Some(joint), Some(below), Some(p)) =
            (of(&format!("({event}), ({given})")), of(given), answer.number())
        && let (Ok(event), Ok(given)) =
            (Event::parse(model.schema(), event), Event::parse(model.schema(), given))
        && !event.is_density()
        && !given.is_density()
        && (p * below - joint).abs() > 1e-9
    {
        return Err(format!("{text} = {p}, times {below} is not {joint}"));
    }
    if let Some(event) = event.filter(|e| !e.contains('|'))
        && let (Some(p), Some(other)) = (of(event), of(&format!("not ({event})")))
        && (p + other - 1.0).abs() > 1e-9
    {
        return Err(format!("P({event}) = {p} and {other} are not all"));
    }
    Ok(true)
}
