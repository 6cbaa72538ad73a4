use super::EXAMPLE;
use crate::file::from_json;

fn refused(text: &str, part: &str) {
    let message = match from_json(text) {
        Err(e) => e.to_string(),
        Ok(_) => panic!("accepted, though expected {part:?}:\n{text}"),
    };
    assert!(message.contains(part), "expected {part:?}\n   found {message:?}\n{text}");
}

/// The example with one thing changed, and where the message must say it is.
#[test]
fn examples_with_one_thing_wrong() {
    let cases = [
        // The text.
        ("\"output\": 5}", "\"output\": 5", "no JSON: EOF while parsing an object at line 9"),
        ("\"output\": 5", "\"output\": 5,", "no JSON: trailing comma at line 9"),
        ("\"output\": 5}", "\"output\": 5} {}", "trailing characters at line 9"),
        ("0.25", "NaN", "no JSON: expected value at line 6"),
        ("0.25", "1e999", "number out of range at line 6"),
        // Fields.
        (
            "\"output\": 5",
            "\"ouput\": 5",
            "the circuit: there is no field 'ouput'; did you mean 'output'?",
        ),
        ("\"output\"", "\"version\"", "version: this is version 5"),
        ("\"output\": 5", "\"version\": 1", "the circuit: the field 'output' is missing"),
        ("\"output\": 5", "\"output\": 5, \"output\": 4", "the circuit: 'output' is there twice"),
        ("\"output\": 5", "\"output\": 5, \"structure\": {}", "'structure' and 'layers' exclude"),
        (
            "\"output\": 5",
            "\"output\": 5, \"weights\": {\"a\": [[1]]}",
            "weights.a: nothing refers",
        ),
        (
            "\"output\": 5",
            "\"output\": 5, \"weights\": {\"a\": [[1]], \"a\": [[1]]}",
            "weights: 'a' is there twice",
        ),
        (
            "\"output\": 5",
            "\"output\": 5, \"bases\": {\"b\": {\"kind\": \"indicator\"}}",
            "bases.b: nothing refers",
        ),
        ("\"output\": 5", "\"output\": 6", "output: the output 6 is no layer"),
        ("\"output\": 5", "\"output\": -1", "output: expected a whole number"),
        ("\"output\": 5", "\"output\": 1e300", "output: expected a whole number"),
        ("\"output\": 5", "\"output\": \"last\"", "output: expected a whole number"),
        ("\"output\": 5", "\"output\": 4", "layer 5: the output does not depend on it"),
        // Variables.
        ("{\"finite\": 3}", "{\"finite\": 0}", "variables[0].domain: variable 'x0'"),
        (
            "{\"finite\": 3}",
            "{\"finite\": 2.5}",
            "variables[0].domain.finite: expected a whole number",
        ),
        (
            "{\"finite\": 3}",
            "{\"finite\": 1e15}",
            "variables[0].domain.finite: a number of values of 1000000000000000",
        ),
        (
            "{\"finite\": 3}",
            "{\"finit\": 3}",
            "variables[0].domain: there is no field 'finit'; did you mean 'finite'?",
        ),
        ("{\"finite\": 3}", "\"integer\"", "variables[0].domain: expected \"real\""),
        ("{\"finite\": 3}", "{\"interval\": [1, 0]}", "variables[0].domain: variable 'x0'"),
        ("{\"finite\": 3}", "{\"interval\": 1}", "variables[0].domain.interval: expected a pair"),
        ("{\"finite\": 3}", "{\"circle\": \"a\"}", "variables[0].domain.circle: expected a number"),
        (
            "{\"finite\": 3}",
            "{\"half_line\": 0}",
            "layers[0].basis: the basis 'indicator' needs a finite domain",
        ),
        (
            "{\"finite\": 3}",
            "{\"finite\": 4}",
            "layer 2: its weight is 2x3, but its input 0 has width 4",
        ),
        ("\"name\": \"x1\"", "\"name\": \"x0\"", "variables[1]: two variables are named 'x0'"),
        (
            "\"name\": \"x1\"",
            "\"name\": 7",
            "variables[1].name: expected a string, found the number 7",
        ),
        (
            "\"name\": \"x1\"",
            "\"name\": \"x1\", \"first\": 2",
            "variables[1]: the field 'count' is missing",
        ),
        (
            "\"name\": \"x1\"",
            "\"name\": \"x1\", \"count\": 2",
            "variables[1].name: expected a name with one {}",
        ),
        (
            "\"name\": \"x1\"",
            "\"name\": \"x{}\", \"count\": 1e12",
            "variables[1].count: a count of 1000000000000",
        ),
        (
            "\"name\": \"x1\"",
            "\"name\": \"x{}\", \"count\": 1",
            "variables[1]: two variables are named 'x0'",
        ),
        (
            "\"name\": \"x1\"",
            "\"name\": \"x{}\", \"first\": 1, \"count\": 2",
            "variable 'x2' is in no layer",
        ),
        // Layers.
        (
            "\"variable\": \"x1\"",
            "\"variable\": \"x7\"",
            "layers[1].variable: there is no variable 'x7'",
        ),
        (
            "\"variable\": \"x1\"",
            "\"variable\": \"x0\"",
            "layer 1: its basis lives on the finite real numbers",
        ),
        (
            "\"kind\": \"kronecker\"",
            "\"kind\": \"kroneker\"",
            "layers[4].kind: there is no kind 'kroneker'; did you mean 'kronecker'?",
        ),
        ("\"kind\": \"kronecker\", ", "", "layers[4]: the field 'kind' is missing"),
        (
            "\"inputs\": [2, 3]",
            "\"inputs\": [2]",
            "layer 4: a product layer needs at least 2 inputs",
        ),
        (
            "\"inputs\": [2, 3]",
            "\"inputs\": [2, 9]",
            "layers[4].inputs[1]: layer 4: its input 9 is not an earlier layer",
        ),
        ("\"inputs\": [2, 3]", "\"inputs\": [2, 4]", "layers[4].inputs[1]: layer 4: its input 4"),
        ("\"inputs\": [2, 3]", "\"inputs\": [2, \"3\"]", "layers[4].inputs[1]: expected a number"),
        (
            "\"inputs\": [2, 3]",
            "\"inputs\": [2, 1.5]",
            "layers[4].inputs[1]: expected a whole number",
        ),
        (
            "\"inputs\": [2, 3]",
            "\"inputs\": [2, 2]",
            "layer 4: two of its inputs depend on variable 'x0'",
        ),
        (
            "\"inputs\": [2, 3]",
            "\"input\": [2, 3]",
            "layers[4]: there is no field 'input'; did you mean 'inputs'?",
        ),
        ("\"input\": 4", "\"input\": 5", "layers[5].input: layer 5: its input 5"),
        ("\"input\": 4", "\"input\": 4294967296", "layers[5].input: layer 5: its input 4294967296"),
        ("\"layers\": [", "\"layers\": [3, ", "layers[0]: expected an object"),
        // Weights.
        (
            "[[1, 0, 0.5, [0, 1]]]",
            "\"...\"",
            "layers[5].weight: there is no weight in \"weights\" '...'",
        ),
        ("[[1, 0, 0.5, [0, 1]]]", "[[1, 0, 0.5]]", "layer 5: its weight is 1x3"),
        ("[[1, 0, 0.5, [0, 1]]]", "[]", "layers[5].weight: expected a list of rows"),
        (
            "[[1, 0, 0.5, [0, 1]]]",
            "[[]]",
            "layers[5].weight[0]: expected a row of at least one entry",
        ),
        ("[[1, 0, 0.5, [0, 1]]]", "[1, 0, 0.5, 0]", "layers[5].weight[0]: expected a row"),
        (
            "[[1, 0, 0.5, [0, 1]]]",
            "[[1, 0, 0.5, [0, 1, 2]]]",
            "layers[5].weight[0][3]: expected a number or a pair",
        ),
        (
            "[[1, 0, 0.5, [0, 1]]]",
            "[[1, 0, 0.5, null]]",
            "layers[5].weight[0][3]: expected a number or a pair [re, im], found null",
        ),
        ("[[1, 0, 0.5, [0, 1]]]", "[[1, 0, 0.5, 1], 3]", "layers[5].weight[1]: expected a row"),
        ("-2e-3, 0]", "-2e-3]", "layers[3].weight[1]: this row has 3 entries and the first has 4"),
        (
            "[[1, 0, 0.5, [0, 1]]]",
            "{\"tensor\": \"w\"}",
            "layers[5].weight: a JSON file has no tensors",
        ),
        (
            "[[1, 0, 0.5, [0, 1]]]",
            "{\"random\": \"haar\"}",
            "layers[5].weight: the field 'rows' is missing",
        ),
        (
            "[[1, 0, 0.5, [0, 1]]]",
            "{\"random\": \"har\", \"rows\": 1}",
            "layers[5].weight.random: there is no way to draw weights 'har'; did you mean 'haar'?",
        ),
        (
            "[[1, 0, 0.5, [0, 1]]]",
            "{\"random\": \"haar\", \"rows\": 1, \"columns\": 5}",
            "layers[5].weight.columns: 5 columns where 4 are needed",
        ),
        (
            "[[1, 0, 0.5, [0, 1]]]",
            "{\"random\": \"haar\", \"rows\": 1e15}",
            "layers[5].weight: a number of random entries of 4000000000000000",
        ),
        ("[[1, 0, 0.5, [0, 1]]]", "{\"random\": \"haar\", \"rows\": 0}", "layer 5: it has width 0"),
        (
            "[[1, 0, 0.5, [0, 1]]]",
            "{\"random\": \"haar\", \"rows\": 1, \"seed\": -1}",
            "layers[5].weight.seed: expected a whole number",
        ),
        // Bases.
        ("\"functions\": 4", "\"functions\": 0", "layers[1].basis: a Hermite basis of 0 functions"),
        (
            "\"functions\": 4",
            "\"functions\": 1e9",
            "layers[1].basis: a Hermite basis of 1000000000 functions",
        ),
        ("\"functions\": 4, ", "", "layers[1].basis: the field 'functions' is missing"),
        ("\"scale\": 2", "\"scale\": 0", "layers[1].basis: scale 0"),
        (
            "\"scale\": 2",
            "\"scael\": 2",
            "layers[1].basis: there is no field 'scael'; did you mean 'scale'?",
        ),
        (
            "\"kind\": \"hermite\"",
            "\"kind\": \"legendre\"",
            "layers[1].basis: there is no field 'location'",
        ),
    ];
    for (from, to, part) in cases {
        refused(&EXAMPLE.replacen(from, to, 1), part);
    }
}

/// A file of one variable, its domain and its basis.
fn one_basis(domain: &str, basis: &str) -> String {
    format!(
        r#"{{"variables": [{{"name": "x", "domain": {domain}}}],
            "layers": [{{"kind": "input", "variable": "x", "basis": {basis}}}], "output": 0}}"#
    )
}

#[test]
fn bases_that_do_not_exist() {
    let interval = r#"{"interval": [0, 1]}"#;
    for (domain, basis, part) in [
        (
            interval,
            r#"{"kind": "fourier", "functions": 3, "form": "cos"}"#,
            "layers[0].basis.form: there is no form 'cos'",
        ),
        (
            "\"real\"",
            r#"{"kind": "fourier", "functions": 3}"#,
            "the basis 'fourier' needs a circle or an interval",
        ),
        (
            "\"real\"",
            r#"{"kind": "legendre", "functions": 3}"#,
            "layers[0].basis: the basis 'legendre' needs an interval",
        ),
        (
            "\"real\"",
            r#"{"kind": "laguerre", "functions": 3}"#,
            "the basis 'laguerre' needs a half-line",
        ),
        (
            "\"real\"",
            r#"{"kind": "gaussian", "components": []}"#,
            "layers[0].basis: a Gaussian basis of 0",
        ),
        (
            "\"real\"",
            r#"{"kind": "gaussian", "components": [[0, 1], [0]]}"#,
            "layers[0].basis.components[1]: expected a pair",
        ),
        (
            "\"real\"",
            r#"{"kind": "gaussian", "components": [[0, 1], [0, -1]]}"#,
            "layers[0].basis: scale -1",
        ),
        ("\"real\"", r#"{"kind": "gaussian"}"#, "the field 'components' is missing"),
        (
            interval,
            r#"{"kind": "bspline", "degree": 1, "knots": [0, 1]}"#,
            "layers[0].basis: 2 knots",
        ),
        (
            interval,
            r#"{"kind": "bspline", "degree": 1, "knots": [0, 1, 0.5]}"#,
            "knot 2 is 0.5, below the 1",
        ),
        (
            interval,
            r#"{"kind": "bspline", "degree": 1, "knots": [0, 1, 2]}"#,
            "layer 0: its basis lives on the interval [0, 2]",
        ),
        (
            interval,
            r#"{"kind": "bspline", "degree": 3, "functions": 3}"#,
            "layers[0].basis.functions: 3 functions where 4",
        ),
        (
            interval,
            r#"{"kind": "bspline", "degree": 3, "functions": 1e15}"#,
            "layers[0].basis: a B-spline basis of 1000000000000000",
        ),
        (
            interval,
            r#"{"kind": "bspline", "degree": 1e15, "functions": 4}"#,
            "B-spline degree 1000000000000000",
        ),
        (
            interval,
            r#"{"kind": "bspline", "degree": 1, "functions": 3, "knots": [0]}"#,
            "'knots' and 'functions' exclude",
        ),
        (
            "\"real\"",
            r#"{"kind": "bspline", "degree": 1, "functions": 3}"#,
            "the basis 'bspline' needs an interval",
        ),
        (
            r#"{"finite": 2}"#,
            r#"{"kind": "table", "values": [[1, 2, 3]]}"#,
            "layer 0: its basis lives on",
        ),
        (
            r#"{"finite": 2}"#,
            r#"{"kind": "table", "values": [[0, 0]]}"#,
            "layers[0].basis: every entry of the table is 0",
        ),
        (
            r#"{"finite": 2}"#,
            r#"{"kind": "table", "values": [[0, "a"]]}"#,
            "layers[0].basis.values[0][1]: expected a number",
        ),
        (
            interval,
            r#"{"kind": "transformed", "of": {"kind": "legendre", "functions": 2}, "matrix": [[1, 1]]}"#,
            "layers[0].basis: the transformed functions are",
        ),
        (
            interval,
            r#"{"kind": "transformed", "of": {"kind": "legendre"}, "matrix": [[1]]}"#,
            "layers[0].basis.of: the field 'functions' is missing",
        ),
        (interval, r#"{"kind": "squared"}"#, "layers[0].basis: the field 'of' is missing"),
        (
            r#"{"finite": 67108864}"#,
            r#"{"kind": "squared", "of": {"kind": "indicator"}}"#,
            "layers[0].basis: a width of 4503599627370496",
        ),
        (interval, r#""smooth""#, "layers[0].basis: there is no basis in \"bases\" 'smooth'"),
        (interval, "3", "layers[0].basis: expected an object with a \"kind\", found the number 3"),
    ] {
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

/// A file of four variables and this structure.
fn structure(structure: &str) -> String {
    format!(
        r#"{{"variables": [{{"count": 4, "name": "x{{}}", "domain": {{"finite": 2}}}}], "structure": {structure}}}"#
    )
}

#[test]
fn structures_that_do_not_exist() {
    assert!(from_json(&structure(r#"{"tree": "linear"}"#)).is_ok());
    for (text, part) in [
        ("[]", "structure: expected an object"),
        ("{}", "structure: the field 'tree' is missing"),
        (r#"{"tree": "triangular"}"#, "structure.tree: expected \"linear\""),
        (
            r#"{"tree": "linear", "widht": 3}"#,
            "structure: there is no field 'widht'; did you mean 'width'?",
        ),
        (r#"{"tree": "linear", "width": 0}"#, "structure: layer"),
        (r#"{"tree": "linear", "output_width": 0}"#, "structure: layer"),
        (r#"{"tree": "linear", "width": 0, "weights": "haar"}"#, "structure: layer"),
        (r#"{"tree": "linear", "width": 1e15}"#, "structure.width: a width of 1000000000000000"),
        (
            r#"{"tree": "linear", "output_width": 67108864}"#,
            "structure: a number of random entries",
        ),
        (r#"{"tree": "linear", "product": "sum"}"#, "structure.product: there is no product 'sum'"),
        (
            r#"{"tree": "linear", "product": ["hadamard"]}"#,
            "structure.product: 1 kinds of products where 3",
        ),
        (
            r#"{"tree": "linear", "product": ["hadamard", "a", "b"]}"#,
            "structure.product[1]: there is no product 'a'",
        ),
        (
            r#"{"tree": "linear", "weights": "uniform"}"#,
            "structure.weights: there is no way to draw weights",
        ),
        (r#"{"tree": "linear", "seed": 1.5}"#, "structure.seed: expected a whole number"),
        (r#"{"tree": {"image": [2, 3]}}"#, "structure.tree.image: 6 variables where 4 are needed"),
        (
            r#"{"tree": {"image": [9007199254740992, 9007199254740992, 4]}}"#,
            "structure.tree.image: 18446744073709551615 variables",
        ),
        (r#"{"tree": {"image": [0, 0, 0]}}"#, "structure.tree.image: 0 variables where 4"),
        (r#"{"tree": {"image": [4]}}"#, "structure.tree.image: expected [height, width]"),
        (r#"{"tree": {"random": "x"}}"#, "structure.tree.random: expected a whole number"),
        (r#"{"tree": {}}"#, "structure.tree: the field 'random' is missing"),
        (r#"{"tree": [[0, 1], 2]}"#, "structure.tree: 3 variables where 4 are needed"),
        (r#"{"tree": [[0, 1], [2, 2]]}"#, "structure.tree: variable 2 is in the tree 2 times"),
        (
            r#"{"tree": [[0, 1], [2, "x3"]]}"#,
            "structure.tree[1][1]: expected a variable's position",
        ),
        (r#"{"tree": "[[0, 1], [2, 3]"}"#, "structure.tree: expected ']' or a number"),
        (
            r#"{"tree": "linear", "basis": {"kind": "legendre", "functions": 2}}"#,
            "structure.basis: the basis 'legendre' needs",
        ),
        (
            r#"{"tree": "linear", "basis": "b"}"#,
            "structure.basis: there is no basis in \"bases\" 'b'",
        ),
    ] {
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
        layers += &format!(r#", {{"kind": "input", "variable": "x{n}"}}"#);
        layers += &format!(r#", {{"kind": "kronecker", "inputs": [{whole}, {}]}}"#, 2 * n - 1);
        whole = 2 * n;
    }
    layers += r#", {"kind": "input", "variable": "x7"}"#;
    layers += &format!(r#", {{"kind": "kronecker", "inputs": [{whole}, {}]}}"#, whole + 1);
    let output = whole + 2;
    let text = format!(
        r#"{{"variables": [{{"count": 20000, "name": "x{{}}", "domain": {{"finite": 1}}}}],
             "layers": [{layers}], "output": {output}}}"#
    );
    refused(&text, &format!("layer {output}: two of its inputs depend on variable 'x7'"));
}
