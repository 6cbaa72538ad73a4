use serde_json::json;

use super::support::{Folder, OVERLAPPING, assert_close, keys};

#[test]
fn check_prints_the_papers_properties() {
    let folder = Folder::new();
    let answer = folder.circuit(&["check", "c.json", "--json"]).json();
    assert_eq!(
        keys(&answer),
        ["decomposable", "log_partition", "orthonormal", "smooth", "structured_decomposable"]
    );
    assert_eq!(answer["smooth"], true);
    assert_eq!(answer["decomposable"], true);
    assert_eq!(answer["structured_decomposable"], true);
    assert_eq!(answer["orthonormal"], false);
    assert_close(&answer["log_partition"], 6_f64.ln());
    let run = folder.circuit(&["check", "c.json"]);
    for part in ["structured-decomposable  yes", "orthonormal              no", "layer 3"] {
        assert!(run.text().contains(part), "{}", run.stdout);
    }
}

#[test]
fn check_of_overlapping_scopes_answers_no() {
    let folder = Folder::new();
    folder.write("o.json", OVERLAPPING);
    let run = folder.circuit(&["check", "o.json", "--json"]);
    assert_eq!(run.code, 1);
    assert_eq!(
        run.any_json(),
        json!({"smooth": true, "decomposable": false, "structured_decomposable": false,
               "orthonormal": false, "log_partition": null})
    );
    assert!(run.stderr.contains("layer 2") && run.stderr.contains("'x0'"), "{}", run.stderr);
    // No other operation accepts it.
    assert_eq!(folder.circuit(&["info", "o.json"]).code, 2);
}

#[test]
fn evaluate_gives_amplitude_and_log() {
    let folder = Folder::new();
    let answer = folder.circuit(&["evaluate", "c.json", "x0=0, x1=1", "--json"]).json();
    assert_eq!(answer, json!({"amplitude": [[0.0, 1.0]], "log_abs_squared": 0.0}));
    let answer = folder.circuit(&["evaluate", "c.json", "x1=0, x0=1", "--json"]).json();
    assert_eq!(answer["amplitude"], json!([[2.0, 0.0]]));
    assert_close(&answer["log_abs_squared"], 4_f64.ln());
    // JSON has no number for log 0.
    let answer = folder.circuit(&["evaluate", "c.json", "x0=1, x1=1", "--json"]).json();
    assert_eq!(answer, json!({"amplitude": [[0.0, 0.0]], "log_abs_squared": null}));
    let run = folder.circuit(&["evaluate", "c.json", "x0=1, x1=0"]);
    assert!(run.text().starts_with("c(x)         2\nlog ‖c(x)‖²  1.38"), "{}", run.stdout);
}

#[test]
fn marginal_is_of_the_normalized_distribution() {
    let folder = Folder::new();
    for (query, p) in [
        ("", 1.0),
        ("x0=1", 4.0 / 6.0),
        ("x0=?, x1=0", 5.0 / 6.0),
        ("x1 in {0}", 5.0 / 6.0),
        ("x0 in {0,1}, x1 in [1, 2)", 1.0 / 6.0),
        ("x0=0, x1=1", 1.0 / 6.0),
    ] {
        for flags in [&["--json"][..], &["--json", "--square"]] {
            let answer = folder.circuit(&[&["marginal", "c.json", query], flags].concat()).json();
            assert_eq!(keys(&answer), ["layers", "log_marginal", "multiply_adds"]);
            assert_close(&answer["log_marginal"], f64::ln(p));
        }
    }
    let answer = folder.circuit(&["marginal", "c.json", "x0=1", "--json"]).json();
    assert_eq!(answer["layers"], json!({"kept": 1, "marginalized": 1, "mixed": 2}));
    let work = &answer["multiply_adds"];
    assert_eq!(keys(work), ["ours", "paper_bound", "squaring"]);
    // Sizes: 2 for each input, 2·4 for the product, 4 for the sum; squared 4, 2·16 and 16.
    assert_eq!(work["paper_bound"], 2 + 32 + 16);
    assert_eq!(work["squaring"], 4 + 4 + 32 + 16);
    assert!(work["ours"].as_u64().is_some_and(|n| 0 < n && n < 50), "{work}");
    let answer = folder.circuit(&["marginal", "c.json", "x0=1, x1=1", "--json"]).json();
    assert_eq!(answer["log_marginal"], json!(null));
    assert!(folder.circuit(&["marginal", "c.json", "x0=1"]).text().contains("log p"));
}

#[test]
fn orthonormalize_writes_a_circuit_of_unit_partition() {
    let folder = Folder::new();
    let run = folder.circuit(&["orthonormalize", "c.json", "-o", "o.safetensors", "--json"]);
    let answer = run.json();
    assert_eq!(keys(&answer), ["log_partition"]);
    assert_close(&answer["log_partition"], 6_f64.ln());
    let check = folder.circuit(&["check", "o.safetensors", "--json"]).json();
    assert_eq!(check["orthonormal"], true);
    assert_close(&check["log_partition"], 0.0);
    let marginal = folder.circuit(&["marginal", "o.safetensors", "x0=1", "--json"]).json();
    assert_close(&marginal["log_marginal"], f64::ln(4.0 / 6.0));
    let run = folder.circuit(&["orthonormalize", "c.json", "-o", "o.json"]);
    assert!(run.text().starts_with("log Z  1.79"), "{}", run.stdout);
}

#[test]
fn square_writes_a_circuit_of_squares() {
    let folder = Folder::new();
    let answer = folder.circuit(&["square", "c.json", "-o", "s.json", "--json"]).json();
    assert_eq!(answer, json!({"output": "s.json", "variables": 2, "layers": 4, "parameters": 16}));
    let answer = folder.circuit(&["evaluate", "s.json", "x0=1, x1=0", "--json"]).json();
    assert_eq!(answer["amplitude"], json!([[4.0, 0.0]]));
    // A square cannot be squared again.
    let check = folder.circuit(&["check", "s.json", "--json"]).json();
    assert_eq!(check["log_partition"], json!(null));
    assert_eq!(check["orthonormal"], false);
    for args in [&["marginal", "s.json", "x0=1"][..], &["square", "s.json", "-o", "t.json"]] {
        let run = folder.circuit(args);
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains("already a square"), "{}", run.stderr);
    }
}

#[test]
fn info_counts_everything() {
    let folder = Folder::new();
    let answer = folder.circuit(&["info", "c.json", "--json"]).json();
    assert_eq!(answer["num_layers"], 4);
    assert_eq!(answer["parameters"], 4);
    assert_eq!(answer["max_size"], 8);
    assert_eq!(answer["real"], false);
    assert_eq!(
        answer["layers"]["input"],
        json!({"count": 2, "min_width": 2, "max_width": 2, "size": 4})
    );
    assert_eq!(answer["variables"][1]["basis"], "indicator");
    let run = folder.circuit(&["info", "c.json"]);
    assert!(run.text().contains("x0, x1") && run.stdout.contains("kronecker"), "{}", run.stdout);
}

#[test]
fn plot_draws_the_sets_of_a_query() {
    let folder = Folder::new();
    let run = folder.circuit(&["plot", "c.json", "x0=1", "-o", "c.svg", "--json"]);
    assert_eq!(run.json(), json!({"output": "c.svg"}));
    let svg = folder.read("c.svg");
    assert!(svg.starts_with("<svg") && svg.contains("mixed: 2 layers") && svg.contains("x0 = 1"));
    assert_eq!(folder.circuit(&["plot", "c.json", "-o", "c.svg"]).text(), "drew c.svg\n");
    assert!(!folder.read("c.svg").contains("mixed"));
}

#[test]
fn new_makes_every_tree_and_domain_and_can_be_repeated() {
    let folder = Folder::new();
    for (n, (flags, variables)) in [
        ("--tree linear --variables 5", 5),
        ("--tree balanced --variables 5 --product hadamard --weights real-haar", 5),
        ("--tree random --variables 5 --seed 3 --weights haar --output-width 3", 5),
        ("--tree image:2x3x3 --domain finite:4", 18),
        ("--tree [[0,2],1] --domain real --functions 3 --location -1 --scale 2", 3),
        ("--variables 2 --domain interval:-1,1 --weights real-gaussian", 2),
        ("--variables 2 --domain interval:0,1 --basis fourier-complex", 2),
        ("--variables 2 --domain half-line:-2 --scale 3", 2),
        ("--variables 1 --domain circle:6.28 --width 1", 1),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("n{n}.json");
        let args: Vec<&str> =
            ["new", "-o", &name, "--json"].into_iter().chain(flags.split(' ')).collect();
        assert_eq!(folder.circuit(&args).json()["variables"], variables, "{flags}");
        let first = folder.read(&name);
        assert_eq!(folder.circuit(&args).code, 0);
        assert_eq!(folder.read(&name), first, "{flags}");
        let check = folder.circuit(&["check", &name, "--json"]).json();
        assert_eq!(check["decomposable"], true, "{flags}");
    }
    let check = folder.circuit(&["check", "n1.json", "--json"]).json();
    assert_eq!(check["orthonormal"], true);
}

#[test]
fn every_command_has_an_example_in_its_help() {
    let folder = Folder::new();
    for command in
        ["new", "check", "info", "square", "orthonormalize", "evaluate", "marginal", "plot"]
    {
        let run = folder.circuit(&[command, "--help"]);
        assert!(run.text().contains(&format!("bornite circuit {command} ")), "{command}");
        assert!(run.stdout.contains("Example"), "{command}");
    }
    for args in [&["--help"][..], &["demo", "--help"], &["bench", "paper", "--help"]] {
        assert!(folder.run(args).text().contains("Example"), "{args:?}");
    }
}
