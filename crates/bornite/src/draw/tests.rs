use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::circuit_svg;
use crate::basis::Basis;
use crate::circuit::{Circuit, Weights};
use crate::domain::{Domain, Variable};
use crate::query::{Evidence, Query};
use crate::structure::{Product, RegionTree, Structure};

fn circuit(tree: RegionTree, product: Product) -> Circuit {
    let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
    let structure = Structure::new(tree, leaf).product(product).width(3);
    structure.build(Weights::RealHaar, &mut ChaCha8Rng::seed_from_u64(3)).unwrap()
}

fn first_half_known(circuit: &Circuit) -> Query {
    let mut query = Query::unknown(circuit.num_variables());
    for v in 0..circuit.num_variables() / 2 {
        query.set(circuit.variables(), v, Evidence::Value(1.0)).unwrap();
    }
    query
}

/// Every tag is closed in order, every `&` starts an entity, and no attribute contains NaN.
fn check_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    for piece in svg.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap();
        assert!(!text.contains('>') && !tag.contains("NaN") && !tag.contains("inf"), "{piece}");
        for entity in text.split('&').skip(1) {
            let name = entity.split(';').next().unwrap();
            assert!(["lt", "gt", "amp", "quot", "#39"].contains(&name), "{entity}");
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
    }
    assert!(open.is_empty());
}

#[test]
fn all_sizes_and_trees_give_well_formed_pictures() {
    for d in [1, 2, 4, 13, 64, 200, 784] {
        for tree in [RegionTree::balanced(d), RegionTree::linear(d)] {
            let c = circuit(tree, Product::Kronecker);
            for query in [None, Some(first_half_known(&c))] {
                let svg = circuit_svg(&c, query.as_ref()).unwrap();
                check_well_formed(&svg);
                assert_eq!(svg, circuit_svg(&c, query.as_ref()).unwrap());
                if d <= 500 {
                    assert!(svg.contains("<rect class=\"n\""));
                    for v in c.variables() {
                        assert!(svg.contains(&v.name), "{d} {}", v.name);
                    }
                }
            }
        }
    }
}

#[test]
fn the_papers_example_counts_its_layers() {
    let c = circuit(RegionTree::balanced(4), Product::Hadamard);
    let svg = circuit_svg(&c, Some(&first_half_known(&c))).unwrap();
    for words in ["kept: 6 layers", "marginalized: 6 layers", "mixed: 2 layers", "x0 = 1", "x3 = ?"]
    {
        assert!(svg.contains(words), "{words}");
    }
    // One dotted outline for each of φ_Y, φ_Z and φ_YZ.
    assert_eq!(svg.matches("<rect class=\"o ").count(), 3);
}

#[test]
fn names_are_escaped() {
    let leaf = |v| {
        let name = ["<script>alert('1')</script>", "a & \"b\"\u{1}"][v];
        (Variable::new(name, Domain::Finite(2)), Basis::indicator(2))
    };
    let structure = Structure::new(RegionTree::balanced(2), leaf);
    let c = structure.build(Weights::Haar, &mut ChaCha8Rng::seed_from_u64(3)).unwrap();
    let svg = circuit_svg(&c, None).unwrap();
    check_well_formed(&svg);
    assert!(!svg.contains("<script") && svg.contains("a &amp; &quot;b&quot;"));
}

#[test]
fn a_very_deep_tree_is_drawn_without_recursion() {
    let c = circuit(RegionTree::linear(20_000), Product::Kronecker);
    check_well_formed(&circuit_svg(&c, Some(&first_half_known(&c))).unwrap());
}

#[test]
fn a_query_for_other_variables_is_refused() {
    let c = circuit(RegionTree::balanced(4), Product::Hadamard);
    assert!(circuit_svg(&c, Some(&Query::unknown(3))).is_err());
}
