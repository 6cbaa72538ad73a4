//! Each operation against the truth, for every combination of evidence.

use bornite::circuit::check_orthonormality;
use bornite::ops::{
    evaluate, log_partition, log_unnormalized_marginal, marginalize, orthonormalize, square,
};

use crate::world::{Domains, Knowledge, Recipe, Tally, Truth, World, all_knowledge, layer_steps};

/// The largest grid that a test visits.
const MAX_POINTS: usize = 60_000;

struct Tallies {
    evaluate: Tally,
    partition: Tally,
    gram: Tally,
    square: Tally,
    marginalize: Tally,
    pointwise: Tally,
}

impl Tallies {
    fn new(names: [&'static str; 6]) -> Self {
        let [evaluate, partition, gram, square, marginalize, pointwise] = names.map(Tally::new);
        Self { evaluate, partition, gram, square, marginalize, pointwise }
    }
}

#[test]
fn finite_domains_by_enumeration() {
    let mut tallies = Tallies::new([
        "finite, evaluate",
        "finite, log_partition",
        "finite, log_unnormalized_marginal",
        "finite, square",
        "finite, marginalize",
        "finite, orthonormalize pointwise",
    ]);
    for variables in 1..=6 {
        for seed in 0..[100, 200, 200, 100, 30, 10][variables - 1] {
            check(&Recipe::finite(seed, variables).make(), &mut tallies);
        }
    }
}

#[test]
fn continuous_domains_by_quadrature() {
    let mut tallies = Tallies::new([
        "continuous, evaluate",
        "continuous, log_partition",
        "continuous, log_unnormalized_marginal",
        "continuous, square",
        "continuous, marginalize",
        "continuous, orthonormalize pointwise",
    ]);
    for (variables, count) in [(1, 200), (2, 150), (3, 40)] {
        let worlds = (0..).map(|seed| Recipe::continuous(seed, variables).make());
        for world in worlds.filter(|w| Truth::cost(w) <= MAX_POINTS).take(count) {
            check(&world, &mut tallies);
        }
    }
    for seed in 0..100 {
        let world = Recipe { domains: Domains::Any, ..Recipe::finite(seed, 3) }.make();
        if Truth::cost(&world) <= MAX_POINTS {
            check(&world, &mut tallies);
        }
    }
}

fn check(world: &World, tallies: &mut Tallies) {
    let circuit = world.circuit();
    let steps = layer_steps(&circuit);
    let truth = Truth::new(world);
    let about = |what: &dyn std::fmt::Debug| format!("{world}\nquery: {what:?}\ntruth: {truth:?}");
    let z = truth.partition();
    if z == 0.0 {
        assert!(orthonormalize(&circuit).is_err(), "{world}");
        return;
    }
    let unknown = vec![Knowledge::Unknown; circuit.num_variables()];
    let scale = truth.magnitude(&unknown);
    let log_z = log_partition(&circuit).unwrap();
    tallies.partition.check_log((log_z, z), (steps, scale), || about(&"Z"));
    let squared = square(&circuit).unwrap();
    tallies.square.check_log((squared.log_partition(), z), (steps, scale), || about(&"Z"));
    let orthonormal = orthonormalize(&circuit).unwrap();
    tallies.partition.check_log((orthonormal.log_partition, z), (steps, scale), || about(&"Z"));
    let report = check_orthonormality(&orthonormal.circuit);
    assert!(report.holds(), "{report:?}\n{world}");

    pointwise(world, &truth, tallies);

    for knowledge in all_knowledge(circuit.num_variables()) {
        let query = truth.query(&circuit, &knowledge);
        let expected = truth.marginal(&knowledge);
        let tolerance = (steps, truth.magnitude(&knowledge));
        let gram = log_unnormalized_marginal(&circuit, &query).unwrap();
        tallies.gram.check_log((gram, expected), tolerance, || about(&query));
        let literal = squared.log_unnormalized_marginal(&query).unwrap();
        tallies.square.check_log((literal, expected), tolerance, || about(&query));
        let ours = marginalize(&orthonormal.circuit, &query).unwrap().log_marginal;
        let ours = ours + orthonormal.log_partition;
        let overall = (steps, truth.overall_magnitude(&knowledge));
        tallies.marginalize.check_log((ours, expected), overall, || about(&query));
    }
}

/// c(x) is what the definition says, and c′ = Z^(−½) c.
fn pointwise(world: &World, truth: &Truth, tallies: &mut Tallies) {
    let circuit = world.circuit();
    let orthonormal = orthonormalize(&circuit).unwrap();
    let steps = layer_steps(&circuit);
    let values = vec![Knowledge::Value; circuit.num_variables()];
    let x = truth.point();
    let expected = world.at(&x);
    let actual = evaluate(&circuit, &x).unwrap().to_values();
    let normalized = evaluate(&orthonormal.circuit, &x).unwrap().to_values();
    assert_eq!(actual.len(), expected.len());
    let scale = truth.magnitude(&values).sqrt();
    let overall = truth.overall_magnitude(&values).sqrt();
    let root = (orthonormal.log_partition / 2.0).exp();
    for (n, e) in expected.iter().enumerate() {
        let about = || format!("{world}\nx = {x:?}, entry {n}: {e} and {}", actual[n]);
        tallies.evaluate.check(((actual[n] - e).norm(), 0.0), (steps, scale), about);
        let error = (normalized[n] * root - e).norm();
        tallies.pointwise.check((error, 0.0), (steps, overall), about);
    }
}

/// What the random circuits of the tests above are made of. A generator that stops to make something fails here.
#[test]
fn the_random_circuits_are_of_every_kind() {
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    let mut note = |what: String| *seen.entry(what).or_default() += 1;
    let finite = (0..400).map(|seed| Recipe::finite(seed / 4, 1 + seed as usize % 4).make());
    let continuous = (0..150).map(|seed| Recipe::continuous(seed, 2).make());
    for world in finite.chain(continuous) {
        for functions in &world.functions {
            let text = format!("{functions:?}");
            note(text.split([' ', '(']).next().unwrap().to_owned());
            for part in ["form: Real", "form: Complex", "circle: true", "circle: false"] {
                if text.contains(part) {
                    note(part.to_owned());
                }
            }
        }
        let c = world.circuit();
        note(format!("real: {}", c.is_real()));
        note(format!("output {}", c.layer(c.output()).kind()));
        note(format!("r > 1: {}", c.width(c.output()) > 1));
        let sums = c.layers().iter().filter(|l| l.kind() == "sum").count();
        note(format!("shared: {}", sums > c.weights().len()));
        for id in c.layer_ids() {
            let layer = c.layer(id);
            for input in layer.inputs() {
                note(format!("{} under {}", c.layer(*input).kind(), layer.kind()));
            }
            match layer.kind() {
                "sum" => note(format!("expands: {}", c.width(id) > c.width(layer.inputs()[0]))),
                "input" => {}
                kind => note(format!("{kind} of {}", layer.inputs().len())),
            }
        }
        let Ok(orthonormal) = orthonormalize(&c) else { continue };
        let o = &orthonormal.circuit;
        note(format!("hadamard kept: {}", o.layers().iter().any(|l| l.kind() == "hadamard")));
    }
    let yes_and_no = ["real", "r > 1", "shared", "expands", "hadamard kept", "circle"];
    let products = ["hadamard", "kronecker"];
    let kinds = ["input", "sum", "hadamard", "kronecker"];
    let expected = (yes_and_no.iter().flat_map(|w| [format!("{w}: true"), format!("{w}: false")]))
        .chain(products.iter().flat_map(|p| (2..=4).map(move |n| format!("{p} of {n}"))))
        .chain(kinds.iter().flat_map(|a| {
            ["sum", "hadamard", "kronecker"].iter().map(move |b| format!("{a} under {b}"))
        }))
        .chain(kinds.map(|k| format!("output {k}")))
        .chain(
            [
                "Indicator",
                "Table",
                "Fourier",
                "Legendre",
                "Laguerre",
                "Hermite",
                "Gaussian",
                "BSpline",
                "Atoms",
            ]
            .map(str::to_owned),
        )
        .chain(["form: Real", "form: Complex"].map(str::to_owned));
    for what in expected {
        assert!(seen.get(&what).is_some_and(|&n| n >= 3), "too few: {what} in {seen:#?}");
    }
}
