//! Laws that hold for every circuit, on random ones.

use bornite::basis::Part;
use bornite::circuit::{Layer, check_orthonormality};
use bornite::linalg::Complex64;
use bornite::ops::{
    LayerCounts, dependences, evaluate, log_partition, log_unnormalized_marginal, marginalize,
    orthonormalize, square,
};
use bornite::query::Dependence;
use bornite::{Circuit, Domain, Evidence, Orthonormal, Query};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::world::{Domains, Functions, Recipe, Tally, World, layer_steps, scopes};

/// Laws compare the library with itself, so the circuits may be larger than an oracle could visit.
fn recipes() -> impl Strategy<Value = Recipe> {
    let domains = prop_oneof![Just(Domains::Finite), Just(Domains::Any), Just(Domains::Continuous)];
    (any::<u64>(), 1..9_usize, 1..5_usize, 1..5_usize, 0..4_usize, any::<bool>(), domains).prop_map(
        |(seed, variables, functions, width, output, is_complex, domains)| Recipe {
            seed,
            variables,
            functions,
            width,
            output,
            is_complex,
            domains,
        },
    )
}

/// Every run draws the same circuits. `PROPTEST_CASES=5000` draws more of them, `PROPTEST_RNG_SEED=7` others.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { 400 };
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        fixed @ RngSeed::Fixed(_) => fixed,
    };
    ProptestConfig { cases, rng_seed, max_shrink_iters: 2000, ..default }
}

/// The circuit with its orthonormal form, or `None` for the few that are zero.
struct Case {
    world: World,
    circuit: Circuit,
    orthonormal: Orthonormal,
    log_partition: f64,
    rng: ChaCha8Rng,
}

impl Case {
    fn new(recipe: Recipe) -> Option<Self> {
        let world = recipe.make();
        let circuit = world.circuit();
        let result = orthonormalize(&circuit).ok()?;
        let rng = ChaCha8Rng::seed_from_u64(!recipe.seed);
        let (orthonormal, log_partition) = (result.circuit, result.log_partition);
        Some(Self { world, circuit, orthonormal, log_partition, rng })
    }

    /// A value of the domain, where the functions are not negligible.
    fn value(&mut self, variable: usize) -> f64 {
        let mut functions = &self.world.functions[variable];
        if let Functions::Atoms(points, rest) = functions {
            if self.rng.random::<bool>() {
                return points[self.rng.random_range(0..points.len())];
            }
            functions = rest;
        }
        let (first, last) = functions.reach();
        match functions.domain() {
            Domain::Finite(v) => self.rng.random_range(0..v) as f64,
            Domain::HalfLine(a) => a + self.rng.random::<f64>() * (last - a) / 10.0,
            _ => first + (last - first) * (0.3 + 0.4 * self.rng.random::<f64>()),
        }
    }

    fn part(&mut self, variable: usize) -> Part {
        if let Domain::Finite(v) = self.world.functions[variable].domain() {
            return Part::Values((0..v).filter(|_| self.rng.random::<bool>()).collect());
        }
        let (a, b) = (self.value(variable), self.value(variable));
        Part::Interval { low: a.min(b), high: a.max(b) }
    }

    fn query(&mut self) -> Query {
        let mut query = Query::unknown(self.circuit.num_variables());
        for n in 0..self.circuit.num_variables() {
            let evidence = match self.rng.random_range(0..3) {
                0 => Evidence::Value(self.value(n)),
                1 => Evidence::In(self.part(n)),
                _ => Evidence::Unknown,
            };
            query.set(self.circuit.variables(), n, evidence).unwrap();
        }
        query
    }

    fn marginal(&self, query: &Query) -> f64 {
        marginalize(&self.orthonormal, query).unwrap().log_marginal.exp()
    }

    fn steps(&self) -> f64 {
        layer_steps(&self.circuit)
    }

    /// How much larger than 1 the density can be at a query's values: the scale of its errors.
    fn peak(&self, query: &Query) -> f64 {
        let each = query.evidence().iter().zip(&self.world.functions);
        each.map(|(evidence, functions)| match evidence {
            // The orthonormal functions may be larger than the given ones.
            Evidence::Value(x) => {
                10.0 * functions.at(*x).iter().map(Complex64::norm_sqr).sum::<f64>().max(1.0)
            }
            _ => 1.0,
        })
        .product()
    }

    fn condition(&self) -> f64 {
        self.world.condition(self.log_partition)
    }
}

/// Runs a law on random circuits, and reports its largest error.
fn law(family: &'static str, mut test: impl FnMut(&mut Case, &mut Tally)) {
    let tally = std::cell::RefCell::new(Tally::new(family));
    let test = std::cell::RefCell::new(&mut test);
    let mut runner = TestRunner::new(ProptestConfig {
        source_file: Some(file!()),
        test_name: Some(family),
        ..config()
    });
    let result = runner.run(&recipes(), |recipe| {
        if let Some(mut case) = Case::new(recipe) {
            (test.borrow_mut())(&mut case, &mut tally.borrow_mut());
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn an_orthonormalized_circuit_is_orthonormal_and_has_z_1() {
    law("Z = 1 after orthonormalization", |case, tally| {
        let report = check_orthonormality(&case.orthonormal);
        assert!(report.holds(), "{report:?}\n{}", case.world);
        let log = log_partition(&case.orthonormal).unwrap();
        tally.check((log, 0.0), (case.steps(), 1.0), || case.world.to_string());
        let log = log_partition(&case.circuit).unwrap();
        // The logs themselves are rounded.
        let tolerance = (case.steps(), case.condition() + log.abs());
        tally.check((log, case.log_partition), tolerance, || case.world.to_string());
    });
}

#[test]
fn orthonormalizing_twice_changes_nothing() {
    law("orthonormalize twice", |case, tally| {
        let twice = orthonormalize(&case.orthonormal).unwrap();
        let about = || case.world.to_string();
        tally.check((twice.log_partition, 0.0), (case.steps(), 1.0), about);
        assert_eq!(twice.circuit.num_layers(), case.orthonormal.num_layers(), "{}", case.world);
        for id in twice.circuit.layer_ids() {
            assert_eq!(twice.circuit.width(id), case.orthonormal.width(id), "{}", case.world);
            assert_eq!(twice.circuit.layer(id).kind(), case.orthonormal.layer(id).kind());
        }
        let x: Vec<f64> = (0..case.circuit.num_variables()).map(|n| case.value(n)).collect();
        let query = Query::row(case.circuit.variables(), &x).unwrap();
        let scale = case.peak(&query).sqrt();
        let once = evaluate(&case.orthonormal, &x).unwrap().to_values();
        for (a, b) in evaluate(&twice.circuit, &x).unwrap().to_values().iter().zip(&once) {
            tally.check(((a - b).norm(), 0.0), (case.steps(), scale), || case.world.to_string());
        }
    });
}

#[test]
fn the_marginal_of_everything_is_1_and_of_nothing_is_the_density() {
    law("marginal of all and of nothing", |case, tally| {
        let d = case.circuit.num_variables();
        let all = marginalize(&case.orthonormal, &Query::unknown(d)).unwrap();
        assert_eq!(all.log_marginal, 0.0);
        assert_eq!(all.multiply_adds.ours, 0);
        let x: Vec<f64> = (0..d).map(|n| case.value(n)).collect();
        let query = Query::row(case.circuit.variables(), &x).unwrap();
        let density = evaluate(&case.orthonormal, &x).unwrap().log_abs_squared();
        let marginal = marginalize(&case.orthonormal, &query).unwrap();
        // The same numbers in the same order.
        assert_eq!(marginal.log_marginal, density, "{}", case.world);
        let unnormalized = evaluate(&case.circuit, &x).unwrap().log_abs_squared();
        let expected = (unnormalized - case.log_partition).exp();
        let tolerance = (case.steps(), case.peak(&query) * case.condition());
        tally.check((density.exp(), expected), tolerance, || format!("{}\n{x:?}", case.world));
    });
}

#[test]
fn summing_a_marginal_over_a_variable_gives_the_smaller_marginal() {
    law("sum over a variable", |case, tally| {
        let mut query = case.query();
        for n in 0..case.circuit.num_variables() {
            let Domain::Finite(v) = case.circuit.variables()[n].domain else { continue };
            let before = query.evidence()[n].clone();
            let mut with = |evidence: Evidence| {
                query.set(case.circuit.variables(), n, evidence).unwrap();
                (case.marginal(&query), case.peak(&query))
            };
            let values: Vec<(f64, f64)> = (0..v).map(|x| with(Evidence::Value(x as f64))).collect();
            let (whole, peak) = with(Evidence::Unknown);
            let sum: f64 = values.iter().map(|p| p.0).sum();
            let scale = peak + values.iter().map(|p| p.1).sum::<f64>();
            tally.check((sum, whole), (case.steps(), scale), || {
                format!("{}\n{query:?}", case.world)
            });
            query.set(case.circuit.variables(), n, before).unwrap();
        }
    });
}

#[test]
fn parts_add_up() {
    law("parts add up", |case, tally| {
        let mut query = case.query();
        for n in 0..case.circuit.num_variables() {
            let variables = case.circuit.variables();
            let (low, high) = variables[n].domain.bounds();
            let is_finite = variables[n].domain.num_values().is_some();
            let has_atoms = !variables[n].domain.atoms().is_empty();
            let mut cuts = [case.value(n), case.value(n)];
            if is_finite && case.rng.random::<bool>() {
                cuts[0] = (cuts[0] - 0.5).max(low);
            }
            cuts.sort_by(f64::total_cmp);
            // An interval ends before its upper end, where a value or an atom may be.
            let end = if is_finite || has_atoms { high + 1.0 } else { high };
            let ends = [low, cuts[0], cuts[1], end];
            let before = query.evidence()[n].clone();
            let variables = case.circuit.variables();
            let mut over = |low: f64, high: f64| {
                query.set(variables, n, Evidence::In(Part::Interval { low, high })).unwrap();
                case.marginal(&query)
            };
            let parts: f64 = ends.windows(2).map(|w| over(w[0], w[1])).sum();
            let whole = over(low, f64::INFINITY);
            assert_eq!(over(cuts[0], cuts[0]), 0.0);
            let scale = 4.0 * case.peak(&query);
            let about = || format!("{}\n{query:?} {ends:?}", case.world);
            tally.check((parts, whole), (case.steps(), scale), about);
            query.set(variables, n, before).unwrap();
        }
    });
}

#[test]
fn square_and_marginalize_agree() {
    law("square and marginalize", |case, tally| {
        let squared = square(&case.circuit).unwrap();
        assert_eq!(squared.circuit().width(squared.circuit().output()), 1);
        for _ in 0..4 {
            let query = case.query();
            let literal = squared.log_unnormalized_marginal(&query).unwrap() - case.log_partition;
            let gram =
                log_unnormalized_marginal(&case.circuit, &query).unwrap() - case.log_partition;
            let ours = case.marginal(&query);
            let tolerance = (case.steps(), case.peak(&query) * case.condition());
            let about = || format!("{}\n{query:?}", case.world);
            tally.check((literal.exp(), ours), tolerance, about);
            tally.check((gram.exp(), ours), tolerance, about);
        }
    });
}

/// The three sets of the paper, by their definition.
fn dependence(scope: &std::collections::BTreeSet<usize>, query: &Query) -> Dependence {
    let evidence = |v: &usize| &query.evidence()[*v];
    if scope.iter().all(|v| matches!(evidence(v), Evidence::Value(_))) {
        Dependence::Kept
    } else if scope.iter().all(|v| matches!(evidence(v), Evidence::Unknown)) {
        Dependence::Marginalized
    } else {
        Dependence::Mixed
    }
}

#[test]
fn layers_are_counted_by_their_scopes() {
    law("layer counts", |case, _| {
        let circuit = &case.orthonormal.clone();
        let scopes = scopes(circuit);
        for (id, scope) in circuit.layer_ids().zip(&scopes) {
            let own: std::collections::BTreeSet<usize> =
                circuit.scope(id).iter().map(|v| v.index()).collect();
            assert_eq!(own, *scope);
        }
        for _ in 0..4 {
            let query = case.query();
            let expected: Vec<Dependence> = scopes.iter().map(|s| dependence(s, &query)).collect();
            assert_eq!(dependences(circuit, &query), expected);
            let count = |d: Dependence| expected.iter().filter(|e| **e == d).count();
            let answer = marginalize(circuit, &query).unwrap();
            assert_eq!(
                answer.layers,
                LayerCounts {
                    kept: count(Dependence::Kept),
                    marginalized: count(Dependence::Marginalized),
                    mixed: count(Dependence::Mixed),
                }
            );
            check_multiply_adds(circuit, &expected, &query, &answer.multiply_adds);
        }
    });
}

/// The documented cost of a layer: a sum over N inputs contracts each at no more than the product of all widths, times
/// the input's own width where it is a matrix, and closes with K of them; N + 1 times the squared layer's size at most.
fn check_multiply_adds(
    circuit: &Circuit,
    dependences: &[Dependence],
    query: &Query,
    counted: &bornite::ops::MultiplyAdds,
) {
    let (mut bound, mut squaring, mut paper) = (0, 0, 0);
    let width = |id: &bornite::LayerId| circuit.width(*id) as u128;
    for (id, dependence) in circuit.layer_ids().zip(dependences) {
        let k = width(&id);
        let (size, squared) = match circuit.layer(id) {
            Layer::Input { .. } => (k, k * k),
            layer @ (Layer::Hadamard { inputs } | Layer::Kronecker { inputs }) => {
                let n = inputs.len() as u128;
                let widths = inputs.iter().map(width);
                let product = if layer.kind() == "hadamard" { k } else { widths.product::<u128>() };
                assert_eq!(product, k);
                (n * k, n * k * k)
            }
            Layer::Sum { input, .. } => (k * width(input), (k * width(input)).pow(2)),
        };
        assert_eq!((circuit.size(id), circuit.squared_size(id)), (size, squared));
        squaring += squared;
        match dependence {
            Dependence::Kept => paper += size,
            Dependence::Mixed => paper += squared,
            Dependence::Marginalized => {}
        }
        bound += layer_bound(circuit, id, *dependence);
    }
    assert_eq!((counted.squaring, counted.paper_bound), (squaring, paper), "{query:?}");
    assert!(counted.ours <= bound, "{} > {bound}: {query:?}\n{circuit:?}", counted.ours);
}

fn layer_bound(circuit: &Circuit, id: bornite::LayerId, dependence: Dependence) -> u128 {
    let width = |id: &bornite::LayerId| circuit.width(*id) as u128;
    let k = width(&id);
    match (circuit.layer(id), dependence) {
        (_, Dependence::Marginalized) => 0,
        (Layer::Input { .. }, _) => k,
        (Layer::Sum { input, .. }, _) => {
            let below = match circuit.layer(*input) {
                Layer::Kronecker { inputs } => inputs.as_slice(),
                _ => std::slice::from_ref(input),
            };
            let product: u128 = below.iter().map(width).product();
            if dependence == Dependence::Kept {
                k * product * below.len() as u128
            } else {
                k * product * (k + below.iter().map(width).sum::<u128>())
            }
        }
        (layer, _) => {
            let entries = if dependence == Dependence::Kept { k } else { k * k };
            // A Kronecker product starts from 1.
            let first = u128::from(layer.kind() == "kronecker");
            (layer.inputs().len() as u128 - 1 + first) * entries
        }
    }
}

/// The table of costs: a sum of K outputs over ℓ₁ ⊗ ℓ₂ of widths K, for every pair of messages.
#[test]
fn multiply_adds_are_those_of_the_table() {
    let k = 4_u128;
    let mut b = bornite::CircuitBuilder::new();
    let inputs: Vec<bornite::LayerId> = (0..2)
        .map(|n| {
            let x = b.variable(format!("x{n}"), Domain::Interval(0.0, 1.0));
            b.input(x, bornite::Basis::legendre(4, 0.0, 1.0).unwrap())
        })
        .collect();
    let product = b.kronecker(inputs);
    let weight = bornite::linalg::Matrix::from_fn(4, 16, |i, j| f64::from(u8::from(j == 5 * i)));
    let output = b.sum(product, weight);
    let circuit = orthonormalize(&b.build(output).unwrap()).unwrap().circuit;
    for (query, inputs, sum) in [
        ("x0=0.3, x1=0.4", 2, k.pow(3) + k.pow(2)),
        ("x0=0.3", 1, 2 * k.pow(3)),
        ("x0=0.3, x1 in [0, 0.5)", 2, 3 * k.pow(3)),
        ("x0 in [0, 0.5)", 1, 2 * k.pow(4)),
        ("x0 in [0, 0.5), x1 in [0, 0.5)", 2, 3 * k.pow(4)),
        ("", 0, 0),
    ] {
        for query in
            [query.to_owned(), query.replace("x0", "y").replace("x1", "x0").replace('y', "x1")]
        {
            let parsed = Query::parse(circuit.variables(), &query).unwrap();
            let counted = marginalize(&circuit, &parsed).unwrap().multiply_adds;
            assert_eq!(counted.ours, inputs * k + sum, "{query}");
            // An input is 4 squared, the product 2 · 16 squared, the sum 64 squared.
            assert_eq!(counted.squaring, 2 * 16 + 2 * 256 + 64 * 64);
        }
    }
}
