//! A temporary folder, and the command run in it.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// c(0,0) = 1, c(0,1) = i, c(1,0) = 2, c(1,1) = 0: Z = 6, p(x0=1) = 4/6, p(x1=0) = 5/6.
pub(crate) const TWO_BITS: &str = r#"{
  "variables": [{"name": "x0", "domain": {"finite": 2}}, {"name": "x1", "domain": {"finite": 2}}],
  "layers": [{"kind": "input", "variable": "x0", "basis": {"kind": "indicator"}},
             {"kind": "input", "variable": "x1", "basis": {"kind": "indicator"}},
             {"kind": "kronecker", "inputs": [0, 1]},
             {"kind": "sum", "input": 2, "weight": [[1, [0, 1], 2, 0]]}],
  "output": 3}"#;

/// A product of two layers that both depend on x0.
pub(crate) const OVERLAPPING: &str = r#"{
  "variables": [{"name": "x0", "domain": {"finite": 2}}],
  "layers": [{"kind": "input", "variable": "x0", "basis": {"kind": "indicator"}},
             {"kind": "input", "variable": "x0", "basis": {"kind": "indicator"}},
             {"kind": "hadamard", "inputs": [0, 1]},
             {"kind": "sum", "input": 2, "weight": [[1, 1]]}],
  "output": 3}"#;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// The JSON object on standard output of a successful run.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        self.any_json()
    }

    pub(crate) fn any_json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.stdout).expect("one JSON object")
    }

    /// The output of a successful run.
    pub(crate) fn text(&self) -> &str {
        assert_eq!(self.code, 0, "{self:?}");
        &self.stdout
    }
}

/// A folder that contains `c.json`.
#[derive(Debug)]
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = Self(TempDir::new().expect("a temporary folder"));
        folder.write("c.json", TWO_BITS);
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file in a temporary folder");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("a file in a temporary folder")
    }

    /// The names of all files, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("a temporary folder");
        let mut names: Vec<String> = entries
            .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bornite"));
        command.args(args).current_dir(self.0.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        let output = self.command(args).output().expect("the command runs");
        Run {
            code: output.status.code().expect("an exit code"),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// `bornite circuit` with these arguments.
    pub(crate) fn circuit(&self, args: &[&str]) -> Run {
        self.run(&[&["circuit"], args].concat())
    }
}

/// The names of an object's fields, in order.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Whether two numbers agree up to rounding: the answers here take a few dozen operations.
pub(crate) fn assert_close(value: &Value, expected: f64) {
    let found = value.as_f64().expect("a number");
    assert!((found - expected).abs() < 1e3 * f64::EPSILON, "{found} is not {expected}");
}
