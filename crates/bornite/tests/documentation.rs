//! What the documentation says is there: the items and tests of docs/PAPER.md, the files of ARCHITECTURE.md, the links, and
//! the examples.

use std::fs;
use std::path::{Path, PathBuf};

use bornite::linalg::{Complex64, Matrix};
use bornite::ops::{evaluate, face_splitting, orthonormalize};
use bornite::{Basis, CircuitBuilder, Domain};

#[path = "../examples/mps.rs"]
mod mps;
#[path = "../examples/tree_tensor_network.rs"]
mod tree_tensor_network;

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn repository() -> PathBuf {
    package().join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What stands between backticks outside of fenced blocks.
fn code_spans(text: &str) -> Vec<String> {
    let mut prose = String::new();
    for (n, piece) in text.split("\n```").enumerate() {
        if n % 2 == 0 {
            prose.push_str(piece);
        }
    }
    prose.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Whether a file defines an item of this name.
fn defines(source: &str, name: &str) -> bool {
    ["fn", "struct", "enum", "trait", "const", "type", "mod"].iter().any(|keyword| {
        source.match_indices(&format!("{keyword} {name}")).any(|(at, found)| {
            !source[at + found.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    })
}

#[test]
fn every_item_and_test_of_the_paper_map_exists() {
    let mut checked = 0;
    for span in code_spans(&read(&repository().join("docs/PAPER.md"))) {
        let Some((file, name)) = span.split_once(".rs::") else { continue };
        let source = read(&package().join(format!("{file}.rs")));
        assert!(defines(&source, name), "{file}.rs does not define {name}");
        checked += 1;
    }
    assert!(checked > 80, "{checked}");
}

#[test]
fn every_label_of_the_paper_is_mapped() {
    let map = read(&repository().join("docs/PAPER.md"));
    for label in [
        "defn:tensorized-circuit",
        "defn:smoothness-decomposability",
        "defn:orthonormal-circuit",
        "defn:face-splitting-product",
        "prop:orthonormal-circuits-normalization",
        "thm:marginalization-complexity",
        "thm:orthogonalization-algorithm",
        "alg:orthonormalization",
        "alg:marginalization",
        "alg:tensorized-square",
        "fig:tighter-marginalization",
        "fig:orthonormalization-transformation",
    ] {
        assert!(map.contains(&format!("`{label}`")), "{label}");
    }
}

#[test]
fn every_file_of_the_architecture_exists() {
    let mut checked = 0;
    for span in code_spans(&read(&repository().join("ARCHITECTURE.md"))) {
        let is_path = |start: &str| span.starts_with(start) && !span.contains(' ');
        if is_path("src/") || is_path("tests/") {
            let own = package().join(&span);
            let command = repository().join("crates/bornite-cli").join(&span);
            assert!(own.exists() || command.exists(), "{span}");
            checked += 1;
        } else if ["crates/", "python/", "docs/"].into_iter().any(is_path) {
            assert!(repository().join(&span).exists(), "{span}");
            checked += 1;
        }
    }
    assert!(checked > 15, "{checked}");
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut pages: Vec<PathBuf> = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/PAPER.md",
        "docs/FORMAT.md",
    ]
    .iter()
    .map(|page| repository().join(page))
    .collect();
    let guide = fs::read_dir(repository().join("docs/guide")).unwrap();
    let guide = guide.map(|entry| entry.unwrap().path());
    pages.extend(guide.filter(|path| path.extension().is_some_and(|e| e == "md")));
    for page in pages {
        let text = read(&page);
        for (at, _) in text.match_indices("](") {
            let target = &text[at + 2..];
            let target = &target[..target.find(')').unwrap()];
            let path = target.split('#').next().unwrap();
            if !path.is_empty() && !path.contains("://") {
                let there = page.parent().unwrap().join(path).exists();
                assert!(there, "{} links to {target}", page.display());
            }
        }
    }
}

#[test]
fn the_face_splitting_product_by_hand() {
    let a = Matrix::from_rows(&[[1.0, 2.0], [3.0, 4.0]]);
    let b = Matrix::from_rows(&[[5.0, 6.0, 7.0], [0.0, 1.0, -1.0]]);
    let expected =
        Matrix::from_rows(&[[5.0, 6.0, 7.0, 10.0, 12.0, 14.0], [0.0, 3.0, -3.0, 0.0, 4.0, -4.0]]);
    assert_eq!(face_splitting(&a, &b), expected);
}

/// The paper's `fig:orthonormalization-transformation`: V₁ and V₂ below a Hadamard layer become semi-unitary, what is left of
/// them moves up through the face-splitting product, and the product becomes a Kronecker product.
#[test]
fn hadamard_layers_become_kronecker_layers_only_where_they_must() {
    let build = |v: &Matrix<f64>| {
        let mut b = CircuitBuilder::new();
        let (x, y) = (b.variable("x", Domain::Finite(3)), b.variable("y", Domain::Finite(3)));
        let (f, g) = (b.input(x, Basis::indicator(3)), b.input(y, Basis::indicator(3)));
        let (s, t) = (b.sum(f, v.clone()), b.sum(g, v.clone()));
        let product = b.hadamard([s, t]);
        let output = b.sum(product, Matrix::from_rows(&[[0.6, 0.8]]));
        (b.build(output).unwrap(), product)
    };
    let (semi_unitary, product) = build(&Matrix::from_rows(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]));
    let kept = orthonormalize(&semi_unitary).unwrap();
    assert_eq!(kept.circuit.layer(product).kind(), "hadamard");
    let (other, product) = build(&Matrix::from_rows(&[[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]));
    let changed = orthonormalize(&other).unwrap();
    assert_eq!(changed.circuit.layer(product).kind(), "kronecker");
    let root = (changed.log_partition / 2.0).exp();
    for n in 0..9 {
        let x = [f64::from(n / 3), f64::from(n % 3)];
        let [before, after] =
            [&other, &*changed.circuit].map(|c| evaluate(c, &x).unwrap().to_values()[0]);
        // A dozen operations of numbers up to 4; no phase appears.
        assert!((before - after * Complex64::from(root)).norm() < 100.0 * f64::EPSILON, "{x:?}");
    }
}
