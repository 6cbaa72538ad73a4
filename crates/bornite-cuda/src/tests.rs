//! Log densities of rows with any evidence, compared with messages formed in full, row by row.
//! Scripts are run here, and on the device if there is one.

mod learner;

use std::borrow::Cow;

use bornite_kernels::Kind;

use crate::plan::widths;
use crate::samples::Samples;
use crate::script::{Op, Script, Shape};
use crate::tasks::{Codes, Draw, Elementwise, Messages, Product};
use crate::{Block, Cells, CudaError, Dense, Device, Evaluator, Group, Step, StepRows};

type Complex = [f64; 2];
type Matrix = Vec<Vec<Complex>>;

/// A generator of numbers in [0, 1).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1_u64 << 31) as f64
    }

    fn number(&mut self, complex: bool) -> Complex {
        [self.next() - 0.5, if complex { self.next() - 0.5 } else { 0.0 }]
    }
}

fn times(a: Complex, b: Complex) -> Complex {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

fn add(a: Complex, b: Complex) -> Complex {
    [a[0] + b[0], a[1] + b[1]]
}

fn conj(a: Complex) -> Complex {
    [a[0], -a[1]]
}

/// M N, or M Nᴴ.
fn multiply(m: &Matrix, n: &Matrix, adjoint: bool) -> Matrix {
    let entry = |row: &Vec<Complex>, j: usize| {
        let term =
            |(q, &x): (usize, &Complex)| times(x, if adjoint { conj(n[j][q]) } else { n[q][j] });
        row.iter().enumerate().map(term).fold([0.0; 2], add)
    };
    let columns = if adjoint { n.len() } else { n[0].len() };
    m.iter().map(|row| (0..columns).map(|j| entry(row, j)).collect()).collect()
}

fn norm2(a: Complex) -> f64 {
    a[0] * a[0] + a[1] * a[1]
}

/// The position at which the running sum exceeds u times the total.
fn pick(p: &[f64], u: f64) -> usize {
    let mut rest = u * p.iter().sum::<f64>();
    for (x, p) in p.iter().enumerate() {
        if rest < *p {
            return x;
        }
        rest -= p;
    }
    p.len() - 1
}

fn outer(v: &[Complex]) -> Matrix {
    v.iter().map(|&x| v.iter().map(|&y| times(x, conj(y))).collect()).collect()
}

const CODES: usize = 5;
const ROWS: usize = 30;

#[derive(Clone)]
struct Case {
    name: String,
    complex: bool,
    steps: Vec<Step>,
    weights: Vec<Matrix>,
    /// For every leaf and row: a code, a vector of functions, a matrix, or nothing.
    leaves: Vec<Vec<Evidence>>,
}

#[derive(Clone)]
enum Evidence {
    Nothing,
    Code(usize),
    Vector(Vec<Complex>),
    Matrix(Matrix),
}

impl Evidence {
    fn kind(&self) -> Kind {
        match self {
            Self::Nothing => Kind::Identity,
            Self::Code(_) | Self::Vector(_) => Kind::Pure,
            Self::Matrix(_) => Kind::Mixed,
        }
    }
}

/// Leaves over six variables, with separate and shared weights; functions; sums, both kinds of
/// products, and shared weights.
fn steps() -> Vec<Step> {
    let mut steps: Vec<Step> =
        (0..6).map(|v| Step::Codes { variable: v, weight: usize::from(v % 3 > 0) }).collect();
    steps.extend([
        Step::Functions { width: 4 },
        Step::Kronecker { inputs: [0, 1], weight: 2 },
        Step::Kronecker { inputs: [2, 3], weight: 2 },
        Step::Kronecker { inputs: [4, 5], weight: 2 },
        Step::Sum { input: 6, weight: 3 },
        Step::Sum { input: 9, weight: 4 },
        Step::Kronecker { inputs: [7, 8], weight: 5 },
        Step::Hadamard { inputs: [10, 11] },
        Step::Kronecker { inputs: [12, 13], weight: 6 },
    ]);
    steps
}

/// These steps with random weights, and rows.
fn case(complex: bool, k: usize, shares: [f64; 2], random: &mut Random) -> Case {
    let second = (k * k).min(k + 3).min(20);
    let shapes = [
        [k, CODES],
        [k, CODES],
        [second, k * k],
        [6, 4],
        [6, second],
        [k, second * second],
        [2, 6 * k],
    ];
    let mut weight = |[rows, columns]: [usize; 2]| -> Matrix {
        let scale = 3.0 / (columns as f64).sqrt();
        let mut row =
            || (0..columns).map(|_| times([scale, 0.0], random.number(complex))).collect();
        (0..rows).map(|_| row()).collect()
    };
    let weights: Vec<Matrix> = shapes.into_iter().map(&mut weight).collect();
    let width = |leaf: usize| if leaf == 6 { 4 } else { k };
    let mut leaf = |leaf: usize, row: usize| {
        let mut vector = || (0..width(leaf)).map(|_| random.number(complex)).collect::<Vec<_>>();
        let (first, second) = (vector(), vector());
        let u = random.next();
        // The first rows are complete, and without evidence.
        if row == 0 || row > 1 && u < shares[0] {
            if leaf == 6 { Evidence::Vector(first) } else { Evidence::Code(row % CODES) }
        } else if row == 1 || u > shares[0] + shares[1] {
            Evidence::Nothing
        } else {
            let sum = |(a, b): (&Vec<Complex>, &Vec<Complex>)| -> Vec<Complex> {
                a.iter().zip(b).map(|(&a, &b)| add(a, b)).collect()
            };
            Evidence::Matrix(outer(&first).iter().zip(&outer(&second)).map(sum).collect())
        }
    };
    let leaves = (0..7).map(|n| (0..ROWS).map(|row| leaf(n, row)).collect()).collect();
    Case { name: format!("{complex} {k} {shares:?}"), complex, steps: steps(), weights, leaves }
}

fn cases() -> Vec<Case> {
    let random = &mut Random(1);
    let mut cases = Vec::new();
    for (complex, k) in [(true, 3), (false, 5), (true, 17), (false, 20), (true, 35), (false, 70)] {
        for shares in [[1.0, 0.0], [0.5, 0.0], [0.4, 0.3], [0.0, 0.3]] {
            cases.push(case(complex, k, shares, random));
        }
    }
    cases
}

impl Case {
    fn parts(&self, numbers: impl IntoIterator<Item = Complex>) -> Vec<f64> {
        let parts = if self.complex { 2 } else { 1 };
        numbers.into_iter().flat_map(|x| x.into_iter().take(parts)).collect()
    }

    fn dense(&self) -> Vec<Dense<'static>> {
        let dense = |w: &Matrix| Dense {
            shape: [w.len(), w[0].len()],
            parts: Cow::Owned(self.parts(w.iter().flatten().copied())),
        };
        self.weights.iter().map(dense).collect()
    }

    /// log p of a row, with every message in full; `None` is an identity.
    fn log_density(&self, row: usize) -> f64 {
        let identity = |k: usize| -> Matrix {
            (0..k).map(|i| (0..k).map(|j| [f64::from(u8::from(i == j)), 0.0]).collect()).collect()
        };
        let through = |w: &Matrix, m: &Matrix| multiply(&multiply(w, m, false), w, true);
        let mut messages: Vec<Option<Matrix>> = Vec::new();
        let widths = widths(&self.steps, |w| self.weights[w].len());
        for (n, step) in self.steps.iter().enumerate() {
            let full = |n: usize, messages: &[Option<Matrix>]| {
                messages[n].clone().unwrap_or_else(|| identity(widths[n]))
            };
            let known = step.inputs().iter().any(|&input| messages[input].is_some());
            let message = match *step {
                Step::Codes { weight, .. } => match &self.leaves[n][row] {
                    Evidence::Nothing => None,
                    Evidence::Code(code) => {
                        let w = &self.weights[weight];
                        Some(outer(&w.iter().map(|row| row[*code]).collect::<Vec<_>>()))
                    }
                    Evidence::Vector(_) => unreachable!(),
                    Evidence::Matrix(m) => Some(m.clone()),
                },
                Step::Functions { .. } => match &self.leaves[n][row] {
                    Evidence::Nothing => None,
                    Evidence::Vector(v) => Some(outer(v)),
                    Evidence::Code(_) => unreachable!(),
                    Evidence::Matrix(m) => Some(m.clone()),
                },
                _ if !known => None,
                Step::Kronecker { inputs: [a, b], weight } => {
                    let (a, b) = (full(a, &messages), full(b, &messages));
                    let (w, k2) = (&self.weights[weight], b.len());
                    // One mode after another.
                    let mut half = w.clone();
                    for (from, to) in w.iter().zip(&mut half) {
                        for (q, x) in to.iter_mut().enumerate() {
                            let term = |i: usize| times(from[i * k2 + q % k2], a[i][q / k2]);
                            *x = (0..a.len()).map(term).fold([0.0; 2], add);
                        }
                    }
                    let mut whole = half.clone();
                    for (from, to) in half.iter().zip(&mut whole) {
                        for (q, x) in to.iter_mut().enumerate() {
                            let term = |j: usize| times(from[q / k2 * k2 + j], b[j][q % k2]);
                            *x = (0..k2).map(term).fold([0.0; 2], add);
                        }
                    }
                    Some(multiply(&whole, w, true))
                }
                Step::Hadamard { inputs: [a, b] } => {
                    let (a, b) = (full(a, &messages), full(b, &messages));
                    let row = |(a, b): (&Vec<Complex>, &Vec<Complex>)| -> Vec<Complex> {
                        a.iter().zip(b).map(|(&a, &b)| times(a, b)).collect()
                    };
                    Some(a.iter().zip(&b).map(row).collect())
                }
                Step::Sum { input, weight } => {
                    Some(through(&self.weights[weight], &full(input, &messages)))
                }
            };
            messages.push(message);
        }
        let trace = |m: &Matrix| (0..m.len()).map(|k| m[k][k][0]).sum::<f64>();
        messages.last().and_then(Option::as_ref).map_or(0.0, |m| trace(m).ln())
    }

    fn log_densities(&self) -> Vec<f64> {
        (0..ROWS).map(|row| self.log_density(row)).collect()
    }

    /// The kinds of the messages of every step.
    fn kinds(&self) -> Vec<Vec<Kind>> {
        let mut kinds: Vec<Vec<Kind>> = Vec::new();
        for (n, step) in self.steps.iter().enumerate() {
            kinds.push(match step.inputs() {
                [] => self.leaves[n].iter().map(Evidence::kind).collect(),
                [a] => kinds[*a].clone(),
                [a, b, ..] => {
                    let pairs = kinds[*a].iter().zip(&kinds[*b]);
                    pairs.map(|(&a, &b)| if a == b { a } else { Kind::Mixed }).collect()
                }
            });
        }
        kinds
    }

    /// For every step, the rows of every pair of kinds.
    fn groups(&self) -> Vec<Vec<([Kind; 2], Vec<u32>)>> {
        let kinds = self.kinds();
        let all = [Kind::Identity, Kind::Pure, Kind::Mixed];
        let of = |(n, step): (usize, &Step)| {
            let pair = |row: usize| match step.inputs() {
                [] => [kinds[n][row]; 2],
                [a] => [kinds[*a][row]; 2],
                [a, b, ..] => [kinds[*a][row], kinds[*b][row]],
            };
            let pairs = all.into_iter().flat_map(|a| all.map(|b| [a, b])).skip(1);
            let rows = pairs.map(|kinds| {
                (kinds, (0..ROWS as u32).filter(|&row| pair(row as usize) == kinds).collect())
            });
            rows.filter(|(_, rows): &(_, Vec<u32>)| !rows.is_empty()).collect()
        };
        self.steps.iter().enumerate().map(of).collect()
    }

    fn block<'a>(&self, groups: &'a [Vec<([Kind; 2], Vec<u32>)>]) -> Block<'a> {
        let mut block = Block { len: ROWS, steps: Vec::new() };
        for (n, groups) in groups.iter().enumerate() {
            let mut sends = StepRows::default();
            let (mut codes, mut functions) = (Vec::new(), Vec::new());
            for (kinds, rows) in groups {
                sends.groups.push(Group { kinds: *kinds, rows });
                for &row in rows {
                    match self.leaves.get(n).map(|rows| &rows[row as usize]) {
                        None | Some(Evidence::Nothing) => {}
                        Some(Evidence::Code(code)) => codes.push(*code as u32),
                        Some(Evidence::Vector(v)) => {
                            functions.extend(self.parts(v.iter().copied()));
                        }
                        Some(Evidence::Matrix(m)) => {
                            sends.grams.extend(self.parts(m.iter().flatten().copied()));
                        }
                    }
                }
            }
            sends.cells = match self.steps[n] {
                Step::Codes { .. } => Cells::Codes(codes),
                Step::Functions { .. } => Cells::Functions(functions),
                _ => Cells::None,
            };
            block.steps.push(sends);
        }
        block
    }
}

/// Runs a script, one number after another.
struct Machine<'a> {
    case: &'a Case,
    index: Vec<u32>,
    draws: &'a [f64],
    weights: Vec<Complex>,
    memory: Vec<Complex>,
    log2: Vec<i32>,
    logs: Vec<f64>,
}

impl Machine<'_> {
    fn run(&mut self, op: &Op<'_>) {
        match op {
            Op::Upload { at, numbers } => {
                let parts = if self.case.complex { 2 } else { 1 };
                for (n, x) in numbers.chunks(parts).enumerate() {
                    self.memory[at + n] = [x[0], x.get(1).copied().unwrap_or(0.0)];
                }
            }
            Op::Codes(t) => self.codes(t),
            Op::Product(t, outer) => self.product(t, *outer),
            Op::Hadamard(t) => self.hadamard(t),
            Op::Settle(t) => self.settle(t),
            Op::Close(t) => self.close(t),
            Op::Draw(t) => self.draw(t),
        }
    }

    fn draw(&mut self, t: &Draw) {
        let [width, values] = [t.width, t.values].map(|n| n as usize);
        for row in 0..t.count as usize {
            let of = |n: usize| self.memory[t.from as usize + n];
            let p = |x: usize| match t.kind {
                0 => unreachable!("the circuit has one output"),
                1 => norm2(of(row * values + x)),
                _ => (0..width)
                    .map(|k| {
                        let f = self.weights[t.table as usize + k * values + x];
                        times(f, of((row * width + k) * values + x))[0]
                    })
                    .sum(),
            };
            let p: Vec<f64> = (0..values).map(p).collect();
            self.index[t.at as usize + row] = pick(&p, self.draws[t.draws as usize + row]) as u32;
        }
    }

    fn listed(&self, list: i32, n: usize) -> usize {
        if list < 0 { n } else { self.index[list as usize + n] as usize }
    }

    fn codes(&mut self, t: &Codes) {
        for e in 0..(t.count * t.width) as usize {
            let (row, k) = (e / t.width as usize, e % t.width as usize);
            let code = self.index[t.at as usize + row] as usize;
            self.memory[t.out as usize + e] =
                self.weights[t.w as usize + k * t.columns as usize + code];
        }
    }

    fn product(&mut self, t: &Product, outer: usize) {
        let [am, aq, a1, a2, bq, bn, b1, b2, cm, c1, c2] =
            [t.am, t.aq, t.a1, t.a2, t.bq, t.bn, t.b1, t.b2, t.cm, t.c1, t.c2].map(|n| n as usize);
        for z in 0..outer * t.inner as usize {
            let (o, i) = (z / t.inner as usize, z % t.inner as usize);
            let a0 = t.a as usize + self.listed(t.a_each, o) * a1 + i * a2;
            let b0 = t.b as usize + self.listed(t.b_each, o) * b1 + i * b2;
            for (m, n) in (0..t.m as usize).flat_map(|m| (0..t.n as usize).map(move |n| (m, n))) {
                let mut sum = [0.0; 2];
                for q in 0..t.q as usize {
                    let row = a0 + self.listed(t.a_rows, m) * am;
                    let a = if t.width > 0 {
                        let width = t.width as usize;
                        let second = t.second as usize + self.listed(t.second_rows, m) * width;
                        times(self.memory[row + q / width], self.memory[second + q % width])
                    } else if t.a_is_weight > 0 {
                        self.weights[row + q * aq]
                    } else {
                        self.memory[row + q * aq]
                    };
                    let from = if t.b_is_weight > 0 { &self.weights } else { &self.memory };
                    let b = from[b0 + q * bq + n * bn];
                    sum = add(sum, times(a, if t.conjugates > 0 { conj(b) } else { b }));
                }
                self.memory[t.c as usize + o * c1 + i * c2 + m * cm + n] = sum;
            }
        }
    }

    fn hadamard(&mut self, t: &Elementwise) {
        let width = t.width as usize;
        let is_pure = t.a_kind == 1 && t.b_kind == 1;
        let entry = |at: i64, kind: i32, slot: usize, i: usize, j: usize| {
            let of = |n: usize| self.memory[at as usize + n];
            match kind {
                0 => [f64::from(u8::from(i == j)), 0.0],
                1 if is_pure => of(slot * width + i),
                1 => times(of(slot * width + i), conj(of(slot * width + j))),
                _ => of((slot * width + i) * width + j),
            }
        };
        let columns = if is_pure { 1 } else { width };
        let mut out = Vec::new();
        for row in 0..t.count as usize {
            let [a, b] = [t.a_slots, t.b_slots].map(|list| self.listed(list, row));
            for (i, j) in (0..width).flat_map(|i| (0..columns).map(move |j| (i, j))) {
                out.push(times(entry(t.a, t.a_kind, a, i, j), entry(t.b, t.b_kind, b, i, j)));
            }
        }
        self.memory[t.out as usize..t.out as usize + out.len()].copy_from_slice(&out);
    }

    fn settle(&mut self, t: &Messages) {
        let len = (t.width * if t.is_pure > 0 { 1 } else { t.width }) as usize;
        for row in 0..t.count as usize {
            let own = &mut self.memory[t.at as usize + row * len..][..len];
            let most = own.iter().flatten().fold(0.0_f64, |most, x| most.max(x.abs()));
            let exponent = if most > 0.0 { most.log2().floor() as i32 } else { 0 };
            own.iter_mut().flatten().for_each(|x| *x *= 2_f64.powi(-exponent));
            let place = self.index[t.rows as usize + row] as usize;
            self.log2[place] += if t.is_pure > 0 { 2 } else { 1 } * exponent;
        }
    }

    fn close(&mut self, t: &Messages) {
        let width = t.width as usize;
        for row in 0..t.count as usize {
            let at = |n: usize| self.memory[t.at as usize + n];
            let p: f64 = if t.is_pure > 0 {
                (0..width).map(|k| at(row * width + k)).map(|x| x[0] * x[0] + x[1] * x[1]).sum()
            } else {
                (0..width).map(|k| at((row * width + k) * width + k)[0]).sum()
            };
            let place = self.index[t.rows as usize + row] as usize;
            self.logs[place] = p.ln() + f64::from(self.log2[place]) * std::f64::consts::LN_2;
        }
    }
}

fn check(case: &Case, found: &[f64], expected: &[f64], digits: f64) {
    for (row, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let apart = (found - expected).abs();
        assert!(apart < digits, "{}, row {row}: {found} for {expected}", case.name);
    }
}

#[test]
fn a_script_is_the_message_table() {
    for case in cases().into_iter().filter(|case| case.weights[0].len() < 20) {
        let expected = case.log_densities();
        let groups = case.groups();
        let block = case.block(&groups);
        let dense = case.dense();
        let (mut weights, mut all) = (Vec::new(), Vec::new());
        for (w, m) in dense.iter().zip(&case.weights) {
            weights.push([all.len(), w.shape[0], w.shape[1]]);
            all.extend(m.iter().flatten().copied());
        }
        let widths = widths(&case.steps, |w| case.weights[w].len());
        let steps = case.steps.clone();
        let shape = Shape { complex: case.complex, steps, widths, weights };
        // With tensors of all rows, of a few rows and of one row at a time.
        for scratch in [1 << 26, 30_000, 1] {
            let script = Script::new(&shape, &block, scratch).unwrap();
            let mut machine = Machine {
                case: &case,
                index: script.index.clone(),
                draws: &[],
                weights: all.clone(),
                memory: vec![[f64::NAN; 2]; script.memory],
                log2: vec![0; ROWS],
                logs: vec![0.0; ROWS],
            };
            script.ops.iter().for_each(|op| machine.run(op));
            check(&case, &machine.logs, &expected, 1e-9);
        }
    }
}

type Damage = fn(&mut Block<'_>);

#[test]
fn mismatched_blocks_are_rejected() {
    let case = case(true, 3, [0.4, 0.3], &mut Random(7));
    let weights = case.dense().iter().map(|w| [0, w.shape[0], w.shape[1]]).collect();
    let widths = widths(&case.steps, |w| case.weights[w].len());
    let shape = Shape { complex: true, steps: case.steps.clone(), widths, weights };
    let groups = case.groups();
    let block = case.block(&groups);
    assert!(Script::new(&shape, &block, 1 << 20).is_ok());
    let damages: [Damage; 7] = [
        |block| block.len = ROWS - 1,
        |block| drop(block.steps.pop()),
        |block| block.steps[0].cells = Cells::Codes(vec![CODES as u32; ROWS]),
        |block| block.steps[0].cells = Cells::None,
        |block| block.steps[1].grams.truncate(1),
        |block| block.steps[7].groups[0].kinds = [Kind::Identity; 2],
        |block| {
            let first = block.steps[8].groups[0];
            block.steps[8].groups.push(first);
        },
    ];
    for (n, damage) in damages.into_iter().enumerate() {
        let mut damaged = block.clone();
        damage(&mut damaged);
        assert_eq!(Script::new(&shape, &damaged, 1 << 20).err(), Some(CudaError::Shape), "{n}");
    }
}

#[test]
fn the_device_evaluates() {
    let device = match Device::open() {
        Ok(device) => device,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    for case in cases() {
        let expected = case.log_densities();
        let groups = case.groups();
        let block = case.block(&groups);
        for (double, digits) in [(true, 1e-9), (false, 1e-3)] {
            let mut evaluator =
                Evaluator::new(&device, case.complex, double, case.steps.clone(), &case.dense())
                    .unwrap();
            let logs = evaluator.log_densities(&block).unwrap();
            check(&case, &logs, &expected, digits);
            let again = evaluator.log_densities(&block).unwrap();
            assert!(logs.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
        println!("{}", case.name);
    }
}

/// A circuit over codes with this many outputs.
fn finite(complex: bool, k: usize, outputs: usize, random: &mut Random) -> Case {
    let mut case = case(complex, k, [0.0, 0.0], random);
    let second = case.weights[2].len();
    case.steps = (0..6)
        .map(|v| Step::Codes { variable: [3, 0, 5, 1, 4, 2][v], weight: usize::from(v % 3 > 0) })
        .collect();
    case.steps.extend([
        Step::Kronecker { inputs: [0, 1], weight: 2 },
        Step::Kronecker { inputs: [2, 3], weight: 2 },
        Step::Sum { input: 7, weight: 3 },
        Step::Hadamard { inputs: [6, 8] },
        Step::Kronecker { inputs: [4, 9], weight: 4 },
        Step::Kronecker { inputs: [10, 5], weight: 5 },
    ]);
    let shapes = [[second, second], [k + 1, k * second], [outputs, (k + 1) * k]];
    case.weights.truncate(3);
    for [rows, columns] in shapes {
        let mut row = || (0..columns).map(|_| random.number(complex)).collect();
        case.weights.push((0..rows).map(|_| row()).collect());
    }
    case.leaves = vec![vec![Evidence::Nothing; ROWS]; 6];
    case
}

/// The sample of a row from the probabilities of all values, leaf by leaf: the step of each leaf,
/// and its code.
fn draw(case: &Case, order: &[usize], draws: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut case = Case { leaves: vec![vec![Evidence::Nothing]; 6], ..case.clone() };
    for (visit, &leaf) in order.iter().enumerate() {
        let p = |x: usize| {
            let mut with = case.clone();
            with.leaves[leaf][0] = Evidence::Code(x);
            with.log_density(0).exp()
        };
        let x = pick(&(0..CODES).map(p).collect::<Vec<_>>(), draws(visit));
        case.leaves[leaf][0] = Evidence::Code(x);
    }
    let code = |evidence: &Vec<Evidence>| match evidence[0] {
        Evidence::Code(x) => x,
        _ => unreachable!("all have been visited"),
    };
    case.leaves.iter().map(code).collect()
}

#[test]
fn samples_are_drawn_leaf_by_leaf() {
    let random = &mut Random(11);
    let device = Device::open();
    // The smaller side comes first.
    let order = [5, 4, 0, 1, 2, 3];
    for (complex, k, outputs) in [(true, 3, 1), (false, 4, 2), (true, 6, 3), (false, 9, 1)] {
        let case = finite(complex, k, outputs, random);
        let draws: Vec<f64> = (0..6 * ROWS).map(|_| random.next()).collect();
        let mut expected = Vec::new();
        for row in 0..ROWS {
            let codes = draw(&case, &order, |visit| draws[visit * ROWS + row]);
            let mut by_variable = [0; 6];
            for (leaf, code) in codes.into_iter().enumerate() {
                by_variable[[3, 0, 5, 1, 4, 2][leaf]] = code as u32;
            }
            expected.extend(by_variable);
        }

        let (mut weights, mut all) = (Vec::new(), Vec::new());
        for m in &case.weights {
            weights.push([all.len(), m.len(), m[0].len()]);
            all.extend(m.iter().flatten().copied());
        }
        let widths = widths(&case.steps, |w| case.weights[w].len());
        let shape = Shape { complex, steps: case.steps.clone(), widths, weights };
        let (tasks, down, total) = shape.permuted();
        all.resize(total, [f64::NAN; 2]);
        for t in tasks {
            let [k, k1, k2] = [t.k, t.k1, t.k2].map(|n| n as usize);
            for e in 0..k * k1 * k2 {
                let (j, i, own) = (e % k2, e / k2 % k1, e / k2 / k1);
                let to = if t.side == 0 { (i * k + own) * k2 + j } else { (j * k + own) * k1 + i };
                all[t.to as usize + to] = all[t.from as usize + e];
            }
        }
        for scratch in [1 << 26, 200] {
            let samples = Samples::new(&shape, &down, ROWS, scratch);
            let mut machine = Machine {
                case: &case,
                index: samples.script.index.clone(),
                draws: &draws,
                weights: all.clone(),
                memory: vec![[f64::NAN; 2]; samples.script.memory],
                log2: vec![0; ROWS],
                logs: vec![0.0; ROWS],
            };
            samples.script.ops.iter().for_each(|op| machine.run(op));
            assert_eq!(samples.variables, order.map(|leaf| [3, 0, 5, 1, 4, 2][leaf]));
            for (visit, variable) in samples.variables.iter().enumerate() {
                for row in 0..ROWS {
                    let code = machine.index[samples.codes + visit * ROWS + row];
                    assert_eq!(code, expected[row * 6 + variable], "{} row {row}", case.name);
                }
            }
        }

        match &device {
            Ok(device) => {
                let steps = case.steps.clone();
                let mut evaluator =
                    Evaluator::new(device, complex, true, steps, &case.dense()).unwrap();
                assert!(evaluator.samples_at_once().unwrap() > ROWS);
                assert_eq!(evaluator.sample(ROWS, &draws).unwrap(), expected, "{}", case.name);
                assert_eq!(evaluator.sample(ROWS, &draws[1..]), Err(CudaError::Shape));
            }
            Err(error) => eprintln!("skipped: {error}"),
        }
    }
}
