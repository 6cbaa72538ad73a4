use super::EXAMPLE;
use crate::file::from_json;

fn refused(text: &str, part: &str) {
    let message = match from_json(text) {
        Err(e) => e.to_string(),
        Ok(_) => panic!("accepted, though expected {part:?}:\n{text}"),
    };
    assert!(message.contains(part), "expected {part:?}\n   found {message:?}\n{text}");
}

/// The cases of a table: N lines each, identified by their first character.
fn cases<const N: usize>(table: &str) -> Vec<[&str; N]> {
    let lines: Vec<&str> = table.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    let (cases, rest) = lines.as_chunks::<N>();
    assert!(rest.is_empty() && cases.iter().all(|c| c[N - 1].starts_with("! ")));
    cases.iter().map(|c| c.map(|l| l.get(2..).unwrap_or_default())).collect()
}

/// The example with one change, and the place that the message must name.
#[test]
fn examples_with_one_thing_wrong() {
    for [from, to, part] in cases(include_str!("../../../testdata/bad_circuits.txt")) {
        assert!(EXAMPLE.contains(from), "{from}");
        refused(&EXAMPLE.replacen(from, to, 1), part);
    }
}

/// A file with one variable, its domain and its basis.
fn one_basis(domain: &str, basis: &str) -> String {
    format!(
        r#"{{"variables": [{{"name": "x", "domain": {domain}}}],
            "layers": [{{"kind": "input", "variable": "x", "basis": {basis}}}], "output": 0}}"#
    )
}

#[test]
fn bases_that_do_not_exist() {
    for [domain, basis, part] in cases(include_str!("../../../testdata/bad_bases.txt")) {
        refused(&one_basis(domain, basis), part);
    }
}

#[test]
fn bases_within_bases_without_end() {
    let mut basis = r#"{"kind": "indicator"}"#.to_owned();
    for _ in 0..60 {
        basis = format!(r#"{{"kind": "squared", "of": {basis}}}"#);
    }
    refused(&one_basis(r#"{"finite": 1}"#, &basis), "layers[0].basis.of.of.of.of: a depth");
}

/// A file with four variables and this structure.
fn structure(structure: &str) -> String {
    format!(
        r#"{{"variables": [{{"count": 4, "name": "x{{}}", "domain": {{"finite": 2}}}}], "structure": {structure}}}"#
    )
}

#[test]
fn structures_that_do_not_exist() {
    assert!(from_json(&structure(r#"{"tree": "linear"}"#)).is_ok());
    for [text, part] in cases(include_str!("../../../testdata/bad_structures.txt")) {
        refused(&structure(text), part);
    }
    let none = r#"{"variables": [], "structure": {"tree": "linear"}}"#;
    refused(none, "structure.tree: a region tree needs at least one variable");
    let real =
        r#"{"variables": [{"name": "x", "domain": "real"}], "structure": {"tree": "linear"}}"#;
    refused(real, "structure.basis: the field 'basis' is missing");
}

#[test]
fn small_files_do_not_ask_for_much() {
    let many = r#"{"variables": [{"count": 1000, "name": "x{}", "domain": {"finite": 60000}}],
                   "structure": {"tree": "linear", "width": 60000}}"#;
    refused(many, "structure: a number of random entries of");
    let long = format!(
        r#"{{"variables": [{{"count": 1000000, "name": "{}{{}}", "domain": "real"}}], "layers": [], "output": 0}}"#,
        "x".repeat(1000)
    );
    refused(&long, "variables[0].name: a length of 1002");
    let wide: Vec<String> = (0..64).map(|n| n.to_string()).collect();
    let flat = format!(
        r#"{{"variables": [{{"count": 64, "name": "x{{}}", "domain": {{"finite": 100}}}}],
             "structure": {{"tree": [{}], "width": 100}}}}"#,
        wide.join(", ")
    );
    refused(&flat, "structure: a number of random entries of");
    let inputs: Vec<String> =
        (0..64).map(|n| format!(r#"{{"kind": "input", "variable": "x{n}"}}"#)).collect();
    let flat = format!(
        r#"{{"variables": [{{"count": 64, "name": "x{{}}", "domain": {{"finite": 100}}}}],
             "layers": [{}, {{"kind": "kronecker", "inputs": [{}]}}], "output": 64}}"#,
        inputs.join(", "),
        wide.join(", ")
    );
    refused(&flat, "layers[64]: a width of");
}

#[test]
fn deep_files_are_refused_and_deep_trees_read() {
    refused(&"[".repeat(100_000), "nest too deep");
    refused(&format!("{{\"variables\": {}", "{\"a\":".repeat(100_000)), "nest too deep");
    let tree = crate::structure::RegionTree::linear(5000).to_string();
    let text = |tree: &str| {
        format!(
            r#"{{"variables": [{{"count": 5000, "name": "x{{}}", "domain": {{"finite": 2}}}}],
                 "structure": {{"tree": {tree}, "width": 2}}}}"#
        )
    };
    refused(&text(&tree), "write a deep tree as a string");
    assert_eq!(from_json(&text(&format!("\"{tree}\""))).unwrap().num_variables(), 5000);
}

#[test]
fn a_deep_overlap_is_found_in_little_memory() {
    let mut layers = String::from(r#"{"kind": "input", "variable": "x0"}"#);
    let mut whole = 0;
    for n in 1..20_000 {
        let product = 2 * n - 1;
        let more = format!(
            r#", {{"kind": "input", "variable": "x{n}"}}, {{"kind": "kronecker", "inputs": [{whole}, {product}]}}"#
        );
        layers.push_str(&more);
        whole = 2 * n;
    }
    let (again, output) = (whole + 1, whole + 2);
    let more = format!(
        r#", {{"kind": "input", "variable": "x7"}}, {{"kind": "kronecker", "inputs": [{whole}, {again}]}}"#
    );
    layers.push_str(&more);
    let text = format!(
        r#"{{"variables": [{{"count": 20000, "name": "x{{}}", "domain": {{"finite": 1}}}}],
             "layers": [{layers}], "output": {output}}}"#
    );
    refused(&text, &format!("layer {output}: two of its inputs depend on variable 'x7'"));
}
