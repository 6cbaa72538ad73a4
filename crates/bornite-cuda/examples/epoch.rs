//! Seconds per epoch and the share of the device's peak, for circuits over images of 28 × 28 bytes.
#![allow(clippy::print_stdout, reason = "its output")]

use std::time::Instant;

use bornite_cuda::{
    CudaError, Device, Factors, Learner, Part, Plan, Settings, Step, Table, Update, Weight,
};

const SIDE: usize = 28;
const ROWS: usize = 55_000;

/// Widths by the size of regions, such as "1:32,2:48,4:64".
fn width(widths: &str, size: usize) -> usize {
    let pairs = widths.split(',').filter_map(|pair| pair.split_once(':'));
    let numbers =
        pairs.filter_map(|(a, b)| Some((a.parse::<usize>().ok()?, b.parse::<usize>().ok()?)));
    numbers.take_while(|&(least, _)| least <= size).last().map_or(1, |(_, width)| width)
}

struct Builder<'a> {
    widths: &'a str,
    share: usize,
    plan: Plan,
    shared: Vec<([usize; 2], usize)>,
}

impl Builder<'_> {
    fn weight(&mut self, rows: usize, columns: usize, shape: Option<[usize; 2]>) -> usize {
        if let Some(&(_, weight)) = self.shared.iter().find(|(s, _)| Some(*s) == shape) {
            return weight;
        }
        let rate = (columns as f32).sqrt().recip();
        let (smoothing, roughness) = (0.0, Vec::new());
        self.plan.weights.push(Weight {
            rows,
            columns,
            is_output: false,
            rate,
            smoothing,
            roughness,
        });
        let weight = self.plan.weights.len() - 1;
        self.shared.extend(shape.map(|shape| (shape, weight)));
        weight
    }

    /// The region of these rows and columns of a square of side 32, split into halves, rows first,
    /// without pixels outside the image.
    fn region(&mut self, [top, left, height, across]: [usize; 4]) -> Option<(usize, usize)> {
        let inside = |from: usize, len: usize| (from.max(2)..(from + len).min(2 + SIDE)).len();
        let size = inside(top, height) * inside(left, across);
        if size == 0 {
            return None;
        }
        let k = width(self.widths, size);
        if height * across == 1 {
            let is_shared = self.share > 0;
            let weight = self.weight(k, 256, is_shared.then_some([1, 1]));
            self.plan.steps.push(Step::Codes { variable: (top - 2) * SIDE + left - 2, weight });
            return Some((self.plan.steps.len() - 1, k));
        }
        let halves = if height >= across {
            [[top, left, height / 2, across], [top + height / 2, left, height / 2, across]]
        } else {
            [[top, left, height, across / 2], [top, left + across / 2, height, across / 2]]
        };
        let [a, b] = halves.map(|half| self.region(half));
        let (Some((a, ka)), Some((b, kb))) = (a, b) else { return a.or(b) };
        let is_root = height == 32;
        let k = if is_root && across == 32 { 1 } else { k };
        let shape = (size <= self.share && size == height * across).then_some([height, across]);
        let weight = self.weight(k, ka * kb, shape);
        self.plan.weights[weight].is_output |= is_root && across == 32;
        self.plan.steps.push(Step::Kronecker { inputs: [a, b], weight });
        Some((self.plan.steps.len() - 1, k))
    }
}

fn time(
    device: &Device,
    name: &str,
    widths: &str,
    share: usize,
    factors: Factors,
) -> Result<(), CudaError> {
    let plan = Plan { complex: true, steps: Vec::new(), weights: Vec::new() };
    let mut builder = Builder { widths, share, plan, shared: Vec::new() };
    builder.region([0, 0, 32, 32]);
    let plan = builder.plan;
    let macs: usize = plan
        .steps
        .iter()
        .map(|step| match *step {
            Step::Kronecker { weight, .. } | Step::Sum { weight, .. } => {
                plan.weights[weight].rows * plan.weights[weight].columns
            }
            Step::Codes { .. } | Step::Functions { .. } | Step::Hadamard { .. } => 0,
        })
        .sum();
    let mut state = 1_u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let codes = (0..SIDE * SIDE * ROWS)
        .map(|_| if random() % 5 > 0 { 0 } else { random() as u8 })
        .collect();
    let train = Table { len: ROWS, bytes: 1, codes, functions: Vec::new() };
    let valid = Table { len: 1, bytes: 1, codes: vec![0; SIDE * SIDE], functions: Vec::new() };
    let batch = 256;
    let sources = vec![(0..(SIDE * SIDE) as u32).collect()];
    let settings =
        Settings { batch, is_stiefel: false, momentum: false, clip: None, factors, sources };
    let free = device.free_memory()?;
    let mut learner = Learner::new(device, &plan, &settings, [&train, &valid])?;
    let mut number = || (random() % 20001) as f32 / 10000.0 - 1.0;
    let weights: Vec<Vec<f32>> = plan
        .weights
        .iter()
        .map(|w| (0..w.rows * w.columns * 2).map(|_| number()).collect())
        .collect();
    learner.write(Part::Weight, &weights.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
    let rows: Vec<u32> = (0..batch as u32).map(|n| n * 97).collect();
    let update = Update { rate: 1e-3, epsilon: 1e-12, keep: 0.99 };
    // The first two normalize and warm up.
    for _ in 0..3 {
        learner.step(&rows, &[], update)?;
    }
    let (steps, mut last) = (60, 0.0);
    let begin = Instant::now();
    for _ in 0..steps {
        last = learner.step(&rows, &[], update)?;
    }
    let seconds = begin.elapsed().as_secs_f64() / f64::from(steps);
    // A complex multiply-add takes eight operations, and a forward and reverse pass needs three of
    // them.
    let flops = 24.0 * macs as f64 * batch as f64 / seconds;
    println!(
        "{name:10} {} {:6.1} Mmac/row {:7.3} ms/step {:6.3} s/epoch {:6.1} TFLOP/s {:5.1} % of FP32 peak, {:.1} GiB, log p {last:.1}, residual {:.0e}",
        match factors {
            Factors::Single => "f32 ",
            Factors::Tf32 => "tf32",
            Factors::Bfloat16 => "bf16",
        },
        macs as f64 / 1e6,
        seconds * 1e3,
        seconds * (ROWS as f64 / batch as f64).ceil(),
        flops / 1e12,
        100.0 * flops / device.peak()?,
        free.saturating_sub(device.free_memory()?) as f64 / f64::from(1 << 30),
        learner.residual()?,
    );
    Ok(())
}

/// Times all circuits, or those named by an argument, with all kinds of factors, or those named by a
/// second argument.
fn main() -> Result<(), CudaError> {
    let device = Device::open()?;
    let (only, kind) = (std::env::args().nth(1), std::env::args().nth(2));
    println!("{}, {:.1} TFLOP/s at most", device.name(), device.peak()? / 1e12);
    let circuits = [
        ("K = 16", "1:16", 0),
        ("K = 32", "1:32", 0),
        ("K = 64", "1:32,2:64", 0),
        ("D1", "1:12,2:16,32:24,64:32", 0),
        ("H1", "1:32,2:48,4:64", 4),
    ];
    for factors in [Factors::Single, Factors::Tf32, Factors::Bfloat16] {
        for (name, widths, share) in circuits {
            let is_asked = kind.as_ref().is_none_or(|kind| *kind == format!("{factors:?}"));
            if is_asked && only.as_ref().is_none_or(|only| only == name) {
                time(&device, name, widths, share, factors)?;
            }
        }
    }
    Ok(())
}
