use super::support::{Folder, keys};

#[test]
fn demo_shows_the_claim_a_table_and_images() {
    let folder = Folder::new();
    let run = folder.run(&["demo", "--time", "1s"]);
    let parts = ["log Z", "by squaring c", "φ_YZ", "Algorithm 1", "circuit.svg"];
    let of_models = ["P(rain=yes | umbrella=yes)", "truth", "[", "bits per pixel", "images.svg"];
    for part in parts.into_iter().chain(of_models) {
        assert!(run.text().contains(part), "no '{part}' in: {}", run.stdout);
    }
    assert!(folder.read("bornite-demo/circuit.svg").starts_with("<svg"));
    assert!(folder.read("bornite-demo/images.svg").starts_with("<svg"));
    for page in ["report.html", "images.html"] {
        assert!(folder.read(&format!("bornite-demo/{page}")).contains("bn-circuit"), "{page}");
        assert!(run.text().contains(page), "{page}");
    }
    assert_eq!(folder.read("bornite-demo/weather-samples.csv").lines().count(), 1001);
    let model = "bornite-demo/weather.model";
    assert_eq!(
        folder.run(&["query", model, "P(rain='yes')", "--json"]).json()["kind"],
        "probability"
    );
}

#[test]
fn bench_paper_reports_every_width() {
    let folder = Folder::new();
    let small = ["bench", "paper", "--image", "4x4", "--max-width", "8"];
    let report = folder.run(&[&small[..], &["--json"]].concat()).json();
    assert_eq!(keys(&report), ["image", "machine", "rows", "seed", "variables"]);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["layers"]["mixed"], 2, "{row}");
        assert_eq!(row["layers"]["kept"], row["layers"]["marginalized"], "{row}");
        let (ours, bound) = (&row["multiply_adds"]["ours"], &row["multiply_adds"]["paper_bound"]);
        assert!(ours.as_u64() <= bound.as_u64(), "{row}");
        assert!(row["difference"].as_f64().unwrap() < 1e-10, "{row}");
    }
    let markdown = folder.run(&[&small[..], &["--markdown"]].concat());
    assert!(markdown.text().contains("| Kronecker |   8 |"), "{}", markdown.stdout);
    let text = folder.run(&small);
    assert!(text.text().contains("Kronecker   8"), "{}", text.stdout);
}

#[test]
fn bench_engine_reports_its_ratios_by_name() {
    let folder = Folder::new();
    let small = ["bench", "engine", "--quick", "--image", "4x4", "--max-width", "8"];
    let report = folder.run(&[&small[..], &["--json"]].concat()).json();
    let ratios = [
        "evaluate_over_peak",
        "half_marginal_over_evaluate",
        "scattered_over_bound",
        "prefix_over_bound",
        "sample_over_bound",
    ];
    for name in ratios {
        assert!(report[name].as_f64().is_some_and(|x| x > 0.0), "{name}: {report}");
    }
    assert!(report["rows_per_second"]["8"]["evaluate"].as_f64().unwrap() > 0.0, "{report}");
    for point in report["scaling"]["variables"].as_array().unwrap() {
        assert!(point["log_p"].as_f64().is_some(), "{point}");
    }
    let markdown = folder.run(&[&small[..], &["--markdown"]].concat());
    assert!(markdown.text().contains("| prefix_over_bound"), "{}", markdown.stdout);
}

#[test]
fn bench_case_times_every_operation() {
    let folder = Folder::new();
    for (tree, product) in [("image", "hadamard"), ("linear", "kronecker")] {
        for operation in ["evaluate", "partition", "marginal", "prefix", "sample"] {
            let shape = ["--image", "4x4", "--variables", "6", "--states", "5", "-k", "3"];
            let run = ["--tree", tree, "--product", product, "--operation", operation];
            let rest = ["--batch", "9", "--seconds", "0"];
            let words = [&["bench", "case"][..], &shape, &run, &rest].concat();
            let answer = folder.run(&words).json();
            assert_eq!(answer["operation"], operation);
            assert!(answer["seconds"].as_f64().unwrap() > 0.0, "{answer}");
        }
    }
}
