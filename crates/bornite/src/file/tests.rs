mod bad_files;
mod damaged;
mod documentation;
mod round_trip;

/// The example of the format documentation, with all weights listed.
const EXAMPLE: &str = r#"
{"variables": [{"name": "x0", "domain": {"finite": 3}}, {"name": "x1", "domain": "real"}],
 "layers": [{"kind": "input", "variable": "x0", "basis": {"kind": "indicator"}},
            {"kind": "input", "variable": "x1", "basis": {"kind": "hermite", "functions": 4, "location": 0.5, "scale": 2}},
            {"kind": "sum", "input": 0, "weight": [[1, [0, 1], 0.5], [0, 2, [1, -1]]]},
            {"kind": "sum", "input": 1, "weight": [[1, 0, 0, 0.25], [0, 1, -2e-3, 0]]},
            {"kind": "kronecker", "inputs": [2, 3]},
            {"kind": "sum", "input": 4, "weight": [[1, 0, 0.5, [0, 1]]]}],
 "output": 5}"#;

/// A circuit as text that differs if any bit of a number does.
fn bits(circuit: &crate::Circuit) -> String {
    format!("{circuit:?}")
}
