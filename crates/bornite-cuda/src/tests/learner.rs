//! Learning on the device, compared with plain sums in double precision, and its invariants.
//! Skipped without a device.

use super::{CODES, Complex, Random, add, norm2, steps, times};
use crate::{Device, Factors, Learner, Part, Plan, Settings, Step, Table, Update, Weight};

const VARIABLES: usize = 6;
const ROWS: usize = 150;

/// Leaves over codes, with separate and shared weights; functions; sums, both kinds of products,
/// and shared weights.
fn plan(complex: bool, k: usize) -> Plan {
    let weight = |rows, columns| Weight {
        rows,
        columns,
        is_output: false,
        rate: 1.0,
        smoothing: 0.0,
        roughness: Vec::new(),
    };
    // A semi-unitary weight has no more rows than columns.
    let leaf = k.min(CODES);
    let second = (leaf * leaf).min(k);
    let weights = vec![
        weight(leaf, CODES),
        weight(leaf, CODES),
        weight(second, leaf * leaf),
        weight(second.min(4), 4),
        weight(second.min(4), second),
        weight(k.min(second * second), second * second),
        weight(2, k.min(second * second) * second.min(4)),
    ];
    let mut plan = Plan { complex, steps: steps(), weights };
    plan.weights[6].is_output = true;
    plan
}

fn table(complex: bool, random: &mut Random) -> Table {
    let parts = if complex { 2 } else { 1 };
    let codes = (0..VARIABLES * ROWS).map(|_| (random.next() * CODES as f64) as u8).collect();
    let functions = (0..4 * ROWS * parts).map(|_| random.next() as f32 - 0.5).collect();
    Table { len: ROWS, bytes: 1, codes, functions }
}

fn settings(batch: usize, momentum: bool) -> Settings {
    let sources = vec![(0..VARIABLES as u32).collect(), (0..VARIABLES as u32).rev().collect()];
    Settings { batch, is_stiefel: false, momentum, clip: None, factors: Factors::Single, sources }
}

/// log ‖c(x)‖² of a row whose codes come from these variables.
fn log_density(
    plan: &Plan,
    weights: &[Vec<f32>],
    table: &Table,
    row: usize,
    sources: &[u32],
) -> f64 {
    let parts = if plan.complex { 2 } else { 1 };
    let number = |list: &[f32], n: usize| -> Complex {
        [f64::from(list[n * parts]), if parts == 2 { f64::from(list[n * 2 + 1]) } else { 0.0 }]
    };
    let product = |weight: usize, input: &[Complex]| -> Vec<Complex> {
        let w = &plan.weights[weight];
        (0..w.rows)
            .map(|k| {
                input.iter().enumerate().fold([0.0; 2], |sum, (n, &x)| {
                    add(sum, times(number(&weights[weight], k * w.columns + n), x))
                })
            })
            .collect()
    };
    let mut values: Vec<Vec<Complex>> = Vec::new();
    for step in &plan.steps {
        values.push(match *step {
            Step::Codes { variable, weight } => {
                let code = table.codes[sources[variable] as usize * ROWS + row] as usize;
                let w = &plan.weights[weight];
                (0..w.rows).map(|k| number(&weights[weight], k * w.columns + code)).collect()
            }
            Step::Functions { width } => {
                (0..width).map(|k| number(&table.functions, k * ROWS + row)).collect()
            }
            Step::Kronecker { inputs: [a, b], weight } => {
                let pairs: Vec<Complex> = values[a]
                    .iter()
                    .flat_map(|&x| values[b].iter().map(move |&y| times(x, y)))
                    .collect();
                product(weight, &pairs)
            }
            Step::Hadamard { inputs: [a, b] } => {
                values[a].iter().zip(&values[b]).map(|(&x, &y)| times(x, y)).collect()
            }
            Step::Sum { input, weight } => product(weight, &values[input]),
        });
    }
    values[plan.steps.len() - 1].iter().map(|&x| norm2(x)).sum::<f64>().ln()
}

fn random_weights(plan: &Plan, random: &mut Random) -> Vec<Vec<f32>> {
    let parts = if plan.complex { 2 } else { 1 };
    let len = |w: &Weight| w.rows * w.columns * parts;
    plan.weights.iter().map(|w| (0..len(w)).map(|_| random.next() as f32 - 0.5).collect()).collect()
}

fn start(
    device: &Device,
    plan: &Plan,
    settings: &Settings,
    table: &Table,
    weights: &[Vec<f32>],
) -> Learner {
    let mut learner = Learner::new(device, plan, settings, [table, table]).expect("room for it");
    let weights: Vec<&[f32]> = weights.iter().map(Vec::as_slice).collect();
    learner.write(Part::Weight, &weights).expect("they fit");
    learner.write(Part::Average, &weights).expect("they fit");
    learner
}

/// Takes the same steps twice, with fewer rows than there is room for, and returns the score and the
/// residual.
fn the_same_bits(begin: &dyn Fn() -> Learner) -> [f64; 2] {
    let run = || {
        let mut learner = begin();
        for n in 0..4 {
            let rows: Vec<u32> = (n * 20..n * 20 + 40).collect();
            learner.step(&rows, &[], Update { rate: 0.01, epsilon: 1e-12, keep: 0.5 }).unwrap();
        }
        let results = [learner.score().unwrap(), learner.residual().unwrap()];
        learner.keep().unwrap();
        assert_eq!(learner.read(Part::Kept).unwrap(), learner.read(Part::Average).unwrap());
        (results, learner.read(Part::Average).unwrap())
    };
    let (first, second) = (run(), run());
    assert_eq!(first, second);
    first.0
}

#[test]
fn the_device_learns() {
    let device = match Device::open() {
        Ok(device) => device,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    let random = &mut Random(1);
    let cases = [(true, 3), (false, 17), (true, 24), (true, 40), (true, 100), (false, 70)];
    let kinds = [Factors::Single, Factors::Tf32, Factors::Bfloat16];
    for ((complex, k), factors) in cases.into_iter().flat_map(|case| kinds.map(|kind| (case, kind)))
    {
        let digits = match factors {
            Factors::Single => [1e-4, 1e-5, 0.1, 1e-4],
            Factors::Tf32 => [2e-2, 1e-5, 0.3, 1e-4],
            // Weights are normalized with factors of 11 bits.
            Factors::Bfloat16 => [5e-2, 1e-3, 0.5, 1e-2],
        };
        let plan = plan(complex, k);
        let table = table(complex, random);
        let all: Vec<u32> = (0..ROWS as u32).collect();
        let places: Vec<u32> = (0..ROWS as u32).map(|n| n % 2).collect();
        let settings = Settings { factors, ..settings(ROWS, true) };
        let mut learner = start(&device, &plan, &settings, &table, &random_weights(&plan, random));
        // A step of length 0 normalizes.
        let still = Update { rate: 0.0, epsilon: 1.0, keep: 0.0 };
        for _ in 0..2 {
            learner.step(&all, &places, still).unwrap();
        }
        let residual = learner.residual().unwrap();
        assert!(residual < digits[1], "{k}: {residual}");
        let weights = learner.read(Part::Weight).unwrap();
        let truth = |places: &[u32]| {
            let log = |row: usize| {
                let place = places.get(row).map_or(0, |&n| n as usize);
                log_density(&plan, &weights, &table, row, &settings.sources[place])
            };
            (0..ROWS).map(log).sum::<f64>() / ROWS as f64
        };
        let mean = learner.step(&all, &places, still).unwrap();
        assert!((mean - truth(&places)).abs() < digits[0], "{k}: {mean} for {}", truth(&places));
        let before = learner.score().unwrap();
        assert!((before - truth(&[])).abs() < digits[3], "{k}: {before} for {}", truth(&[]));

        // After the first step, the gradient is the first moment. A short step along it gains its
        // squared length.
        let mut learner = start(&device, &plan, &settings, &table, &weights);
        learner.step(&all, &[], still).unwrap();
        let norm2: f64 =
            learner.read(Part::Mean).unwrap().iter().flatten().map(|&g| f64::from(g).powi(2)).sum();
        let mut learner = start(&device, &plan, &settings, &table, &weights);
        learner.step(&all, &[], Update { rate: (3e-3 / norm2) as f32, ..still }).unwrap();
        let gain = learner.score().unwrap() - before;
        let ratio = gain / 3e-3;
        assert!((ratio - 1.0).abs() < digits[2], "{k}: {ratio}");

        // Clipping limits the norm of all gradients together.
        let clip = 0.5 * norm2.sqrt() as f32;
        let bounded = Settings { clip: Some(clip), ..settings.clone() };
        let mut learner = start(&device, &plan, &bounded, &table, &weights);
        learner.step(&all, &[], still).unwrap();
        let clipped: f64 =
            learner.read(Part::Mean).unwrap().iter().flatten().map(|&g| f64::from(g).powi(2)).sum();
        assert!((clipped.sqrt() / f64::from(clip) - 1.0).abs() < 1e-3, "{k}: {clipped} for {clip}");

        let begin = |settings: &Settings| start(&device, &plan, settings, &table, &weights);
        let settings = Settings { momentum: false, ..settings.clone() };
        let [score, residual] = the_same_bits(&|| begin(&settings));
        assert!(score > before && residual < digits[1], "{k}: {score} from {before}, {residual}");
        println!(
            "width {k}, {factors:?}: log p {mean:.4}, residual {residual:.1e}, gain {ratio:.3}"
        );
    }
}
