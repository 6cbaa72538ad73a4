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
