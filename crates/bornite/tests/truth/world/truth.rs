//! The truth about a world: sums of ‖c(x)‖² over all of its points.

use bornite::basis::Part;
use bornite::linalg::Complex64;
use bornite::{Circuit, Domain, Evidence, Query};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Functions, World};

/// What a query knows of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Knowledge {
    Value,
    Part,
    Unknown,
}

/// Every combination of knowledge of d variables.
pub(crate) fn all_knowledge(variables: usize) -> Vec<Vec<Knowledge>> {
    let kinds = [Knowledge::Value, Knowledge::Part, Knowledge::Unknown];
    let mut all = vec![Vec::new()];
    for _ in 0..variables {
        all = all
            .into_iter()
            .flat_map(|known: Vec<Knowledge>| {
                kinds.iter().map(move |&k| [known.clone(), vec![k]].concat())
            })
            .collect();
    }
    all
}

/// One variable's value, part of the domain, and grid.
#[derive(Clone, Debug)]
struct Axis {
    value: f64,
    part: Part,
    nodes: Vec<GridNode>,
    /// max(1, Σ |fₖ(value)|²): by how much a value can magnify an error that is small on average.
    peak: f64,
}

#[derive(Clone, Debug)]
struct GridNode {
    values: Vec<Complex64>,
    /// What the errors of the values are relative to.
    magnitudes: Vec<Complex64>,
    weight: f64,
    cell: usize,
}

/// The cells of a variable: its value, its part, and the rest of the domain.
const CELLS: usize = 3;

/// Sums of ‖c‖² over every combination of cells.
#[derive(Debug)]
pub(crate) struct Truth {
    axes: Vec<Axis>,
    sums: Vec<Sum>,
    magnitudes: Vec<Sum>,
}

/// A number and the rounding that it has lost so far.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    total: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, x: f64) {
        let next = self.total + x;
        self.lost += if self.total >= x { self.total - next + x } else { x - next + self.total };
        self.total = next;
    }

    fn value(self) -> f64 {
        self.total + self.lost
    }
}

impl Truth {
    /// The number of points that the truth about a world takes.
    pub(crate) fn cost(world: &World) -> usize {
        axes(world).iter().map(|a| a.nodes.len()).product()
    }

    /// Visits every point.
    pub(crate) fn new(world: &World) -> Self {
        let axes = axes(world);
        let cells = CELLS.pow(axes.len() as u32);
        let mut truth = Self {
            sums: vec![Sum::default(); cells],
            magnitudes: vec![Sum::default(); cells],
            axes,
        };
        let mut at = vec![0; truth.axes.len()];
        'points: loop {
            let nodes: Vec<&GridNode> =
                at.iter().zip(&truth.axes).map(|(&n, a)| &a.nodes[n]).collect();
            let inputs: Vec<&[Complex64]> = nodes.iter().map(|n| n.values.as_slice()).collect();
            let weight: f64 = nodes.iter().map(|n| n.weight).product();
            let cell = nodes.iter().fold(0, |cell, n| CELLS * cell + n.cell);
            let norm2 = |c: Vec<Complex64>| c.iter().map(Complex64::norm_sqr).sum::<f64>();
            truth.sums[cell].add(weight * norm2(world.evaluate(&inputs)));
            let inputs: Vec<&[Complex64]> = nodes.iter().map(|n| n.magnitudes.as_slice()).collect();
            truth.magnitudes[cell].add(weight * norm2(world.magnitude(&inputs)));
            for n in 0..at.len() {
                at[n] += 1;
                if at[n] < truth.axes[n].nodes.len() {
                    continue 'points;
                }
                at[n] = 0;
            }
            return truth;
        }
    }

    /// ∫ ‖c‖² over what is known.
    pub(crate) fn marginal(&self, knowledge: &[Knowledge]) -> f64 {
        total(&self.sums, knowledge)
    }

    /// The same integral with absolute values all the way: what rounding errors are relative to. An interval counts as the
    /// whole domain, since the rounding of its ends does not shrink with its length.
    pub(crate) fn magnitude(&self, knowledge: &[Knowledge]) -> f64 {
        let whole = |(axis, &k): (&Axis, &Knowledge)| match (&axis.part, k) {
            (Part::Interval { .. }, Knowledge::Part) => Knowledge::Unknown,
            _ => k,
        };
        let knowledge: Vec<Knowledge> = self.axes.iter().zip(knowledge).map(whole).collect();
        total(&self.magnitudes, &knowledge)
    }

    /// Z.
    pub(crate) fn partition(&self) -> f64 {
        self.marginal(&vec![Knowledge::Unknown; self.axes.len()])
    }

    /// The magnitude of Z, times the peaks at the known values: what errors of an orthonormalized circuit, which are small
    /// on average over the domain, are relative to.
    pub(crate) fn overall_magnitude(&self, knowledge: &[Knowledge]) -> f64 {
        let peaks = self.axes.iter().zip(knowledge);
        let peak = |(a, k): (&Axis, &Knowledge)| if *k == Knowledge::Value { a.peak } else { 1.0 };
        self.magnitude(&vec![Knowledge::Unknown; self.axes.len()])
            * peaks.map(peak).product::<f64>()
    }

    /// The point of all values.
    pub(crate) fn point(&self) -> Vec<f64> {
        self.axes.iter().map(|a| a.value).collect()
    }

    /// The query of this knowledge.
    pub(crate) fn query(&self, circuit: &Circuit, knowledge: &[Knowledge]) -> Query {
        let mut query = Query::unknown(self.axes.len());
        for (n, (axis, knowledge)) in self.axes.iter().zip(knowledge).enumerate() {
            let evidence = match knowledge {
                Knowledge::Value => Evidence::Value(axis.value),
                Knowledge::Part => Evidence::In(axis.part.clone()),
                Knowledge::Unknown => Evidence::Unknown,
            };
            query.set(circuit.variables(), n, evidence).unwrap();
        }
        query
    }
}

/// The sum over all cells that this knowledge allows.
fn total(sums: &[Sum], knowledge: &[Knowledge]) -> f64 {
    let mut sum = Sum::default();
    for (index, cell) in sums.iter().enumerate() {
        let mut rest = index;
        let is_in = knowledge.iter().rev().all(|k| {
            let cell = rest % CELLS;
            rest /= CELLS;
            match k {
                Knowledge::Value => cell == 0,
                Knowledge::Part => cell == 1,
                Knowledge::Unknown => cell != 0,
            }
        });
        if is_in {
            sum.add(cell.value());
        }
    }
    sum.value()
}

fn axes(world: &World) -> Vec<Axis> {
    let mut rng = ChaCha8Rng::seed_from_u64(world.recipe.seed ^ 0x5eed);
    (0..world.functions.len()).map(|n| axis(world, n, &mut rng)).collect()
}

fn axis(world: &World, variable: usize, rng: &mut ChaCha8Rng) -> Axis {
    let functions = &world.functions[variable];
    let (value, part, grid) = match functions.domain() {
        Domain::Finite(v) => finite(v, rng),
        _ => continuous(functions, rng),
    };
    let absolute = |f: &[Complex64]| f.iter().map(|z| z.norm().into()).collect();
    let mut nodes: Vec<GridNode> = (grid.into_iter())
        .map(|(x, weight, cell)| {
            let values = functions.at(x);
            GridNode { magnitudes: absolute(&values), values, weight, cell }
        })
        .collect();
    let values = functions.at(value);
    let peak = values.iter().map(Complex64::norm_sqr).sum::<f64>().max(1.0);
    let magnitudes = match functions.domain() {
        Domain::Finite(_) => absolute(&values),
        // A function near one of its zeros is only as accurate as elsewhere.
        _ => (0..functions.width())
            .map(|k| nodes.iter().fold(0.0, |m: f64, n| m.max(n.values[k].norm())).into())
            .collect(),
    };
    nodes.push(GridNode { values, magnitudes, weight: 1.0, cell: 0 });
    Axis { value, part, nodes, peak }
}

/// A point, its weight and its cell.
type Point = (f64, f64, usize);

fn finite(v: usize, rng: &mut ChaCha8Rng) -> (f64, Part, Vec<Point>) {
    let value = rng.random_range(0..v) as f64;
    let is_in: Vec<bool> = (0..v).map(|_| rng.random::<bool>()).collect();
    let values: Vec<usize> = (0..v).filter(|&x| is_in[x]).collect();
    let grid = (0..v).map(|x| (x as f64, 1.0, if is_in[x] { 1 } else { 2 })).collect();
    (value, Part::Values(values), grid)
}

fn continuous(functions: &Functions, rng: &mut ChaCha8Rng) -> (f64, Part, Vec<Point>) {
    let domain = functions.domain();
    let (first, last) = functions.reach();
    // Not so far out that every function is zero there.
    let (a, b) = match *domain.rest() {
        Domain::HalfLine(a) => (a, a + (last - a) / 10.0),
        Domain::Real => (first * 0.75 + last * 0.25, first * 0.25 + last * 0.75),
        _ => (first, last),
    };
    // Atoms, and intervals that begin or end at one, as often as all else.
    let atoms = domain.atoms();
    let mut draw = || match atoms.len() {
        n @ 1.. if rng.random::<bool>() => atoms[rng.random_range(0..n)],
        _ => {
            let x = a + rng.random::<f64>() * (b - a);
            if domain.contains(x) { x } else { atoms[0] }
        }
    };
    let (value, mut low, mut high) = (draw(), draw(), draw());
    if low > high {
        (low, high) = (high, low);
    }
    if !atoms.is_empty() && rng.random::<bool>() {
        // With its upper end.
        high = high.next_up();
    }
    if !atoms.is_empty() && rng.random_range(0..4) == 0 {
        let is_in: Vec<bool> = atoms.iter().map(|_| rng.random::<bool>()).collect();
        let cell = |x: f64| match domain.atom(x) {
            Some(n) if is_in[n] => 1,
            _ => 2,
        };
        let grid = functions.grid(f64::NEG_INFINITY, f64::INFINITY).into_iter();
        let grid = grid.map(|(x, weight)| (x, weight, cell(x))).collect();
        let values = (0..atoms.len()).filter(|&n| is_in[n]).collect();
        return (value, Part::Values(values), grid);
    }
    match rng.random_range(0..6) {
        0 => low = f64::NEG_INFINITY,
        1 => high = f64::INFINITY,
        2 => low = domain.bounds().0,
        3 => high = domain.bounds().1,
        _ => {}
    }
    let cells = [(f64::NEG_INFINITY, low, 2), (low, high, 1), (high, f64::INFINITY, 2)];
    let grid = cells.into_iter().flat_map(|(from, to, cell)| {
        functions.grid(from, to).into_iter().map(move |(x, weight)| (x, weight, cell))
    });
    (value, Part::Interval { low, high }, grid.collect())
}
