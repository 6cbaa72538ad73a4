//! Plots and pages: their contents, and whether the interactive circuit counts like the library.

use std::path::PathBuf;
use std::process::Command;

use super::model::fitted;
use super::support::Folder;

#[test]
fn a_model_is_truncated_drawn_and_reported() {
    let folder = fitted();
    let report =
        folder.run(&["truncate", "m.model", "--error", "0.2", "-o", "t.model", "--json"]).json();
    assert!(report["bound"].as_f64().expect("it is there") <= 0.2, "{report}");
    assert!(report["parameters"].as_u64() <= report["before"]["parameters"].as_u64(), "{report}");
    let text = folder.run(&["truncate", "m.model", "--width", "1", "-o", "t.model"]);
    assert!(text.text().contains("Hellinger distance, at most"), "{text:?}");
    assert_eq!(
        folder.run(&["query", "t.model", "P(tall=yes)", "--json"]).json()["kind"],
        "probability"
    );

    for what in
        ["circuit", "structure", "training", "marginals", "pairs", "calibration", "anomalies"]
    {
        let args = ["plot", "m.model", "--what", what, "--data", "people.csv", "-o", "p.svg"];
        assert_eq!(folder.run(&args).text(), "drew p.svg\n", "{what}");
        let svg = folder.read("p.svg");
        assert!(
            svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("<title>"),
            "{what}"
        );
    }
    let args = ["plot", "c.json", "--what", "structure", "-o", "p.svg", "--json"];
    assert_eq!(folder.run(&args).json()["what"], "structure");
    let args = ["plot", "c.json", "--what", "circuit", "--query", "x0=1", "-o", "p.svg"];
    assert_eq!(folder.run(&args).code, 0);
    assert!(folder.read("p.svg").contains("x0 = 1"));

    let args = ["report", "m.model", "--data", "people.csv", "--title", "People", "-o", "r.html"];
    assert!(folder.run(&args).text().starts_with("wrote r.html: "));
    let page = folder.read("r.html");
    assert!(page.contains("<h1>People</h1>") && page.contains("<section id=\"calibration\">"));
    assert!(page.len() < 1_000_000, "{}", page.len());
    folder.run(&args);
    assert_eq!(page, folder.read("r.html"));
}

#[test]
fn samples_go_to_the_standard_output() {
    let folder = fitted();
    folder.run(&["sample", "m.model", "-n", "4", "--seed", "3", "-o", "s.csv"]).text();
    for args in [
        &["sample", "m.model", "-n", "4", "--seed", "3"][..],
        &["sample", "m.model", "-n", "4", "--seed", "3", "-o", "-"],
    ] {
        assert_eq!(folder.run(args).text(), folder.read("s.csv"));
    }
}

#[test]
fn images_are_completed_and_drawn() {
    let folder = Folder::new();
    let names: Vec<String> = (0..784).map(|n| format!("p{n}")).collect();
    let mut text = names.join(",") + "\n";
    for row in 0..40 {
        let pixel = |n: usize| usize::from((n % 28 + n / 28 + row) % 9 < 4).to_string();
        text += &(0..784).map(pixel).collect::<Vec<_>>().join(",");
        text.push('\n');
    }
    folder.write("i.csv", &text);
    let fit =
        ["fit", "i.csv", "--image", "28x28", "--width", "2", "--epochs", "1", "-o", "i.model"];
    folder.run(&fit).text();
    folder.run(&["plot", "i.model", "--what", "samples", "-o", "s.png"]).text();
    assert!(std::fs::read(folder.path("s.png")).expect("it is there").starts_with(b"\x89PNG"));
    folder.run(&["plot", "i.model", "--what", "samples", "--data", "i.csv", "-o", "s.svg"]).text();
    assert!(folder.read("s.svg").contains("data:image/png;base64,"));
    let bytes =
        folder.run(&["report", "i.model", "--data", "i.csv", "-o", "r.html", "--json"]).json();
    assert!(bytes["bytes"].as_u64().expect("it is there") < 2_000_000, "{bytes}");
    check_live(&folder, "i.model", &["", "0,1,2,3", "0,28,56,84,400,783"], &|_| "0");
}

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path).flat_map(|p| names.map(|n| p.join(n))).find(|p| p.is_file())
}

/// The page after its script has run, with these variables kept.
fn page(folder: &Folder, chromium: &PathBuf, keep: &str) -> String {
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--dump-dom"])
        .arg("--disable-background-networking")
        .arg(format!("--user-data-dir={}", folder.path("chromium").display()))
        .arg(format!("file://{}#keep={keep}", folder.path("r.html").display()))
        .output()
        .expect("it is there");
    String::from_utf8(output.stdout).expect("it is there")
}

/// Compares the counters and colors of the page with `circuit marginal` and `circuit plot`.
fn check_live(folder: &Folder, file: &str, sets: &[&str], value: &dyn Fn(usize) -> &'static str) {
    let Some(chromium) = chromium() else { return };
    folder.run(&["report", file, "-o", "r.html"]).text();
    let info = folder.circuit(&["info", file, "--json"]).json();
    let names: Vec<&str> = info["variables"]
        .as_array()
        .expect("it is there")
        .iter()
        .map(|v| v["name"].as_str().expect("it is there"))
        .collect();
    for keep in sets {
        let kept: Vec<usize> = keep
            .split(',')
            .filter(|k| !k.is_empty())
            .map(|k| k.parse().expect("it is there"))
            .collect();
        let query: Vec<String> =
            kept.iter().map(|&v| format!("'{}'={}", names[v], value(v))).collect();
        let query = query.join(", ");
        let expected = folder.circuit(&["marginal", file, &query, "--json"]).json();
        let page = page(folder, &chromium, keep);
        let counter = |id: &str| {
            let tag = page
                .split(&format!("id=\"bn-{id}\""))
                .nth(1)
                .unwrap_or_else(|| panic!("no {id}: {page}"));
            let value = tag.split("data-value=\"").nth(1).expect("it is there");
            value.split('"').next().expect("it is there").parse::<u64>().expect("it is there")
        };
        for (id, field) in [("kept", "kept"), ("marginalized", "marginalized"), ("mixed", "mixed")]
        {
            assert_eq!(
                Some(counter(id)),
                expected["layers"][field].as_u64(),
                "{file} {keep}: {id}"
            );
        }
        for (id, field) in [("ours", "ours"), ("bound", "paper_bound"), ("squaring", "squaring")] {
            assert_eq!(
                Some(counter(id)),
                expected["multiply_adds"][field].as_u64(),
                "{file} {keep}: {id}"
            );
        }
        if names.len() <= 12 {
            folder.circuit(&["plot", file, &query, "-o", "c.svg"]).text();
            let colors = |text: &str| -> Vec<String> {
                let layers = text.split("<g class=\"b\" data-l=\"").skip(1);
                let color = |layer: &str| {
                    let id = layer.split('"').next().expect("it is there");
                    let class = layer
                        .split("<rect class=\"")
                        .nth(1)
                        .expect("it is there")
                        .split('"')
                        .next()
                        .expect("it is there");
                    format!("{id} {class}")
                };
                layers.map(color).collect()
            };
            assert_eq!(colors(&page), colors(&folder.read("c.svg")), "{file} {keep}");
        }
    }
}

#[test]
fn the_live_circuit_counts_as_the_library_does() {
    let folder = fitted();
    check_live(&folder, "m.model", &["", "0", "1,3", "0,1,2,3"], &|v| {
        if v == 3 { "0.5" } else { "1" }
    });
    let new = ["circuit", "new", "--domain", "finite:3", "--seed", "2"];
    let hadamard =
        ["--variables", "6", "--product", "hadamard", "--width", "3", "--weights", "haar"];
    for (name, rest) in [
        ("hadamard.json", &hadamard[..]),
        ("linear.json", &["--tree", "linear", "--variables", "7", "--output-width", "2"]),
        ("nested.json", &["--tree", "[[0,1,2],[3,[4,5,6]],7]", "--width", "4"]),
    ] {
        folder.run(&[&new[..], rest, &["-o", "raw.json"]].concat()).text();
        if name == "hadamard.json" {
            // Already orthonormal, so its products are unchanged.
            std::fs::copy(folder.path("raw.json"), folder.path(name)).expect("a copy");
            assert!(folder.read(name).contains("hadamard"));
        } else {
            folder.circuit(&["orthonormalize", "raw.json", "-o", name]).text();
        }
        check_live(&folder, name, &["0,1,2", "0,2,4,5"], &|_| "1");
    }
}
