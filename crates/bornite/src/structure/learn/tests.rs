use super::*;
use crate::domain::{Domain, Variable};
use crate::engine::Batch;
use crate::structure::RegionTree;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn variables(domains: &[Domain]) -> Vec<Variable> {
    domains.iter().enumerate().map(|(n, d)| Variable::new(format!("x{n}"), d.clone())).collect()
}

/// Rows of dependent variables of all kinds, with missing values.
fn rows(domains: &[Domain], rows: usize, holes: f64, seed: u64) -> Vec<f64> {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let mut values = Vec::new();
    for _ in 0..rows {
        let cause: f64 = rng.random();
        for domain in domains {
            let u = if rng.random::<f64>() < 0.5 { cause } else { rng.random() };
            values.push(match domain {
                _ if rng.random::<f64>() < holes => f64::NAN,
                Domain::Finite(v) => (u * *v as f64).floor(),
                _ => u,
            });
        }
    }
    values
}

/// By definition, from a table of counts over the rows that have both values.
fn brute_force(values: &[f64], width: usize, i: usize, j: usize, bins: (usize, usize)) -> f64 {
    let mut counts = vec![vec![1.0 / (bins.0 * bins.1) as f64; bins.1]; bins.0];
    for row in values.chunks_exact(width).filter(|r| !r[i].is_nan() && !r[j].is_nan()) {
        counts[row[i] as usize][row[j] as usize] += 1.0;
    }
    let total: f64 = counts.iter().flatten().sum();
    let side = |a: usize| counts[a].iter().sum::<f64>() / total;
    let below = |b: usize| counts.iter().map(|r| r[b]).sum::<f64>() / total;
    let term = |a: usize, b: usize| {
        let p = counts[a][b] / total;
        p * (p / (side(a) * below(b))).ln()
    };
    (0..bins.0).flat_map(|a| (0..bins.1).map(move |b| (a, b))).map(|(a, b)| term(a, b)).sum()
}

fn information(
    values: &[f64],
    domains: &[Domain],
    options: &InformationOptions,
) -> MutualInformation {
    let variables = variables(domains);
    let rows = Batch::from_rows(&variables, values).unwrap();
    mutual_information(&rows, &variables, options).unwrap()
}

#[test]
fn information_is_that_of_counts() {
    for (holes, count) in [(0.0, 1000), (0.3, 1000), (0.0, 64), (0.9, 130)] {
        let sizes = [2, 2, 3, 1, 2, 5];
        let domains = sizes.map(Domain::Finite);
        let values = rows(&domains, count, holes, 1);
        let found = information(&values, &domains, &InformationOptions::default());
        for i in 0..6 {
            for j in (0..6).filter(|&j| j != i) {
                // Five values are kept only if there are enough rows for five bins.
                if holes == 0.9 && (sizes[i] > 2 || sizes[j] > 2)
                    || count == 64 && sizes[i].max(sizes[j]) > 3
                {
                    continue;
                }
                let expected = brute_force(&values, 6, i, j, (sizes[i], sizes[j]));
                assert!(
                    (found.get(i, j) - expected).abs() < 1e-12,
                    "{i}, {j} with {holes} of {count}: {} of {expected}",
                    found.get(i, j)
                );
            }
        }
    }
}

#[test]
fn many_variables_in_tiles_agree_with_a_few() {
    let domains = vec![Domain::Finite(2); 150];
    let values = rows(&domains, 300, 0.1, 2);
    let all = information(&values, &domains, &InformationOptions::default());
    for (i, j) in [(0, 149), (31, 32), (63, 64), (148, 149), (5, 100)] {
        let expected = brute_force(&values, 150, i, j, (2, 2));
        assert!((all.get(i, j) - expected).abs() < 1e-12);
        assert_eq!(all.get(i, j), all.get(j, i));
    }
}

#[test]
fn continuous_variables_are_compared_by_quantiles() {
    let domains = [Domain::Interval(0.0, 1.0), Domain::Interval(0.0, 1.0), Domain::Finite(1000)];
    let rng = &mut ChaCha8Rng::seed_from_u64(3);
    let mut values = Vec::new();
    for _ in 0..5000 {
        let (x, y): (f64, f64) = (rng.random(), rng.random());
        // The third variable equals the first, the second is independent. A monotone map does not
        // change quantiles.
        values.extend([x * x, y, (x * 1000.0).floor()]);
    }
    let options = InformationOptions::default();
    let found = information(&values, &domains, &options);
    assert!(found.get(0, 1) < 0.05 && found.get(1, 2) < 0.05);
    // Up to cells that are shifted by rounding to 1000 values.
    assert!(found.get(0, 2) > 0.95 * 16f64.ln(), "{}", found.get(0, 2));
    assert!((found.get(0, 0) - 16f64.ln()).abs() < 1e-3);
    let few = InformationOptions { max_rows: 500, ..options.clone() };
    assert!(information(&values, &domains, &few).get(0, 2) > 2.0);
    let unordered = InformationOptions { ordered: vec![true, true, false], ..options };
    // Fifteen out of a thousand labels say little.
    assert!(information(&values, &domains, &unordered).get(0, 2) < 0.2);
}

#[test]
fn columns_that_say_nothing_are_allowed() {
    let domains = [Domain::Finite(1), Domain::Finite(2), Domain::Interval(0.0, 1.0)];
    let nan = f64::NAN;
    for values in [vec![], vec![0.0, nan, nan], vec![nan; 30], [0.0, 1.0, 0.5].repeat(100)] {
        let found = information(&values, &domains, &InformationOptions::default());
        assert!((0..3).all(|i| (0..3).all(|j| found.get(i, j).is_finite())));
        assert!(found.get(0, 2) < 1e-12);
        let sharp = InformationOptions { smoothing: 0.0, ..InformationOptions::default() };
        let sharp = information(&values, &domains, &sharp);
        assert!((0..3).all(|i| sharp.get(i, (i + 1) % 3) == 0.0));
    }
}

#[test]
fn batches_with_other_variables_are_rejected() {
    let variables = variables(&[Domain::Finite(2), Domain::Finite(2)]);
    let message = |n: usize| {
        let rows = Batch::from_rows(&variables[..1], &[1.0]).unwrap();
        let options = InformationOptions::default();
        mutual_information(&rows, &variables[..n], &options).unwrap_err().to_string()
    };
    assert!(message(2).contains("has 1 variables, not 2"));
    assert!(message(0).contains("no variables"));
}

fn random_information(size: usize, seed: u64) -> MutualInformation {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    MutualInformation::from_fn(size, |_, _| rng.random())
}

/// Joins the best of all pairs repeatedly, computing averages from all pairs of variables each
/// time.
fn naive_linkage(information: &MutualInformation) -> String {
    let mut clusters: Vec<(Vec<usize>, String)> =
        (0..information.size()).map(|v| (vec![v], v.to_string())).collect();
    while clusters.len() > 1 {
        let mut best = (f64::NEG_INFINITY, 0, 0);
        for a in 0..clusters.len() {
            for b in a + 1..clusters.len() {
                let (x, y) = (&clusters[a].0, &clusters[b].0);
                let pairs = x.iter().flat_map(|i| y.iter().map(move |j| information.get(*i, *j)));
                let average = pairs.sum::<f64>() / (x.len() * y.len()) as f64;
                if average > best.0 {
                    best = (average, a, b);
                }
            }
        }
        let (members, name) = clusters.remove(best.2);
        let first = &mut clusters[best.1];
        first.0.extend(members);
        first.1 = format!("[{}, {name}]", first.1);
    }
    clusters.remove(0).1
}

#[test]
fn chains_give_the_tree_of_the_search_for_the_best_pair() {
    for size in 1..30 {
        for seed in 0..4 {
            let information = random_information(size, 100 * size as u64 + seed);
            let tree = average_linkage(&information);
            assert_eq!(tree.to_string(), naive_linkage(&information));
            assert!(RegionTree::new(tree.regions().to_vec()).is_ok());
        }
    }
}

#[test]
fn equal_information_gives_a_balanced_tree() {
    let tree = average_linkage(&MutualInformation::from_fn(8, |_, _| 0.25));
    assert_eq!(tree.to_string(), "[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]");
}

/// The total information of a tree's edges.
fn total(edges: &[Edge]) -> f64 {
    edges.iter().map(|e| e.information).sum()
}

#[test]
fn the_best_tree_of_pairs_is_found() {
    // All trees over 6 variables, given by their Prüfer sequences.
    let information = random_information(6, 7);
    let mut best = f64::NEG_INFINITY;
    for code in 0..6_usize.pow(4) {
        let sequence: Vec<usize> = (0..4).map(|n| code / 6_usize.pow(n) % 6).collect();
        let mut degree = [1; 6];
        for &v in &sequence {
            degree[v] += 1;
        }
        let mut sum = 0.0;
        for &v in &sequence {
            let leaf = (0..6).find(|&u| degree[u] == 1).unwrap();
            degree[leaf] = 0;
            degree[v] -= 1;
            sum += information.get(leaf, v);
        }
        let left: Vec<usize> = (0..6).filter(|&u| degree[u] == 1).collect();
        best = f64::max(best, sum + information.get(left[0], left[1]));
    }
    let edges = chow_liu_tree(&information);
    assert!((total(&edges) - best).abs() < 1e-12);
    let mut children: Vec<usize> = edges.iter().map(|e| e.child).collect();
    children.sort_unstable();
    assert_eq!(children, [1, 2, 3, 4, 5]);
    assert!(chow_liu_tree(&random_information(1, 1)).is_empty());
}

#[test]
fn a_rooted_tree_speaks_of_one_variable_at_a_time() {
    let chain = |i: usize, j: usize| if j == i + 1 { 1.0 } else { 0.0 };
    let edges = chow_liu_tree(&MutualInformation::from_fn(8, chain));
    assert_eq!(root_edges(8, &edges).to_string(), "[[3, [2, [1, 0]]], [4, [5, [6, 7]]]]");
    assert_eq!(root_edges(1, &[]).to_string(), "0");
    let information = random_information(200, 8);
    let edges = chow_liu_tree(&information);
    let tree = root_edges(200, &edges);
    assert!(RegionTree::new(tree.regions().to_vec()).is_ok());
    // A connected part of a tree has one edge fewer than variables.
    let mut members: Vec<Vec<usize>> = Vec::new();
    for region in tree.regions() {
        members.push(match region {
            crate::structure::Region::Variable(v) => vec![*v],
            crate::structure::Region::Split(parts) => {
                parts.iter().flat_map(|&p| members[p].clone()).collect()
            }
        });
        let set = &members[members.len() - 1];
        let inside = |e: &&Edge| set.contains(&e.parent) && set.contains(&e.child);
        assert_eq!(edges.iter().filter(inside).count() + 1, set.len());
        let leaving = |e: &&Edge| set.contains(&e.parent) != set.contains(&e.child);
        let mut ends: Vec<usize> = edges
            .iter()
            .filter(leaving)
            .map(|e| if set.contains(&e.parent) { e.parent } else { e.child })
            .collect();
        ends.dedup();
        assert!(ends.windows(2).all(|w| w[0] == w[1]), "{set:?}: {ends:?}");
    }
    // The rays of a star come one after another.
    let star = |i: usize, _: usize| if i == 0 { 1.0 } else { 0.0 };
    let edges = chow_liu_tree(&MutualInformation::from_fn(3000, star));
    assert_eq!(root_edges(3000, &edges).num_variables(), 3000);
}
