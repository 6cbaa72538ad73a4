//! Files that were made to break the library: each is refused at once, with a line that says what is wrong.
//!
//! `testdata/hostile` holds them; every one broke some version. A file that is found later goes there too.

use std::fs;
use std::path::{Path, PathBuf};

use bornite::data::{CsvOptions, Table};
use bornite::model::decompress_file;
use bornite::{Error, Fit, Model, Orthonormal, file};

fn hostile(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/hostile").join(name)
}

fn refusal<T>(result: Result<T, impl Into<Error>>, file: &str) -> String {
    match result {
        Ok(_) => panic!("{file} was accepted"),
        Err(error) => error.into().to_string(),
    }
}

#[test]
fn a_circuit_that_only_looks_orthonormal_is_found_out() {
    let circuit = file::load(hostile("lying.json")).unwrap();
    let refused = Orthonormal::verify(circuit).unwrap_err();
    assert!(!refused.report.holds(), "{refused}");
    let text = refusal(Model::load(hostile("lying.model")), "lying.model");
    assert!(text.contains("not orthonormal"), "{text}");
}

#[test]
fn short_circuit_files_do_not_become_large() {
    let text = refusal(file::load(hostile("gauss.json")), "gauss.json");
    assert!(text.contains("memory limit"), "{text}");
    let text = refusal(file::load(hostile("haar.json")), "haar.json");
    assert!(text.contains("multiply-adds"), "{text}");
    // Neither the variables nor their weights would be too much, but both together are.
    let many = br#"{"variables": [{"name": "v{}", "count": 1048576, "domain": {"finite": 16}}],
                    "structure": {"tree": "balanced", "width": 3}}"#;
    let text = refusal(file::from_bytes(many), "many variables");
    assert!(text.contains("memory limit"), "{text}");
}

#[test]
fn a_column_of_a_million_values_loads_in_linear_time() {
    // Quadratic in the values it took minutes; this test would not end.
    let model = Model::load(hostile("slow.model")).unwrap();
    let p = model.ask("P(a < 524288)").unwrap().number().unwrap();
    assert!(p > 0.0 && p < 1.0, "{p}");
}

#[test]
fn compressed_files_that_lie_are_refused() {
    for name in ["hang.brz", "panic.brz", "rows.brz", "mem.brz", "stored.brz", "steps.brz"] {
        let bytes = fs::read(hostile(name)).unwrap();
        let mut out = Vec::new();
        let text = refusal(decompress_file(&bytes[..], &mut out, None), name);
        assert!(text.contains("damaged") || text.contains("memory limit"), "{name}: {text}");
        assert!(out.is_empty(), "{name}");
    }
}

#[test]
fn a_checkpoint_with_a_weight_that_is_not_finite_is_refused() {
    let table = Table::read_csv(hostile("p3.csv"), &CsvOptions::default()).unwrap();
    let checkpoint = fs::read(hostile("bad.ck")).unwrap();
    let fit = Fit::new().width(4).epochs(4).as_is().resume(&checkpoint[..]).run(&table);
    let text = refusal(fit, "bad.ck");
    assert!(text.contains("checkpoint"), "{text}");
}

/// What all of the above took, as far as this process has come.
#[cfg(target_os = "linux")]
#[test]
fn hostile_files_take_little_memory() {
    for name in ["hang.brz", "panic.brz", "rows.brz", "mem.brz", "stored.brz", "steps.brz"] {
        let bytes = fs::read(hostile(name)).unwrap();
        assert!(decompress_file(&bytes[..], &mut Vec::new(), None).is_err(), "{name}");
    }
    for name in ["gauss.json", "haar.json"] {
        assert!(file::load(hostile(name)).is_err(), "{name}");
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 400_000, "{kilobytes} kB");
}
