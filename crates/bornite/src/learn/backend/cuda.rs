//! Learning from complete rows on an NVIDIA GPU: see [`bornite_cuda`].

use bornite_cuda::{
    CudaError, Device, Factors, Learner, Part, Plan, Settings, Step, Table, Weight,
};

use super::{Backend, Numbers, Selection, Shifts, output_weight};
use crate::basis::Basis;
use crate::circuit::Circuit;
use crate::domain::Domain;
use crate::engine::{Batch, device};
use crate::learn::error::{LearnError, program_of};
use crate::learn::objective::is_orthonormal;
use crate::learn::optimizer::{Optimizer, Update};
use crate::learn::options::{self, FitOptions};
use crate::learn::parameter::{Parameterization, normalized};
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::program::{Operand, Program, StepKind};

/// The number of rows whose basis functions are evaluated at once.
const ROWS: usize = 1024;

#[derive(Debug)]
pub(super) struct Cuda {
    learner: Learner,
    is_momentum: bool,
}

impl From<CudaError> for LearnError {
    fn from(error: CudaError) -> Self {
        match error {
            CudaError::Shape => Self::Damaged,
            other => Self::Device { reason: other.to_string() },
        }
    }
}

/// The reason why the device does not support a fit, if it does not.
fn unsupported(circuit: &Circuit, rows: [&Batch; 2], options: &FitOptions) -> Option<&'static str> {
    if rows.iter().any(|rows| rows.has_missing()) {
        return Some("it does not support rows with missing values");
    }
    if !is_orthonormal(options.parameterization) {
        return Some("it supports only orthonormal weights");
    }
    if !options.target.is_empty() {
        return Some("it does not support a target");
    }
    let is_finite = |d: &Domain| matches!(d, Domain::Finite(_));
    if options.shifts.is_some() && !circuit.variables().iter().all(|v| is_finite(&v.domain)) {
        return Some("it shifts only images with finite variables");
    }
    None
}

impl Cuda {
    pub(super) fn start(
        circuit: &Circuit,
        rows: [&Batch; 2],
        options: &FitOptions,
    ) -> Result<Self, LearnError> {
        let device = device()?;
        if let Some(reason) = unsupported(circuit, rows, options) {
            return Err(LearnError::Device { reason: reason.to_owned() });
        }
        if circuit.is_real() {
            Self::new::<f64>(device, circuit, rows, options)
        } else {
            Self::new::<Complex64>(device, circuit, rows, options)
        }
    }

    fn new<T: Scalar>(
        device: &Device,
        circuit: &Circuit,
        [train, valid]: [&Batch; 2],
        options: &FitOptions,
    ) -> Result<Self, LearnError> {
        let program = program_of(circuit)?;
        let (plan, leaves) = plan::<T>(circuit, &program, options);
        let variables = circuit.variables().len();
        let identity = (0..variables as u32).collect();
        let source = |image, place| {
            (0..variables).map(|v| Shifts::source(image, place, v) as u32).collect::<Vec<_>>()
        };
        let is_momentum = options.optimizer == Optimizer::Momentum;
        let settings = Settings {
            batch: options.batch.min(train.len()).max(1),
            is_stiefel: options.parameterization == Parameterization::Stiefel,
            momentum: is_momentum,
            clip: options.clip.map(|c| c as f32),
            factors: match options.device {
                options::Device::CudaTf32 => Factors::Tf32,
                options::Device::CudaBf16 => Factors::Bfloat16,
                options::Device::Cuda | options::Device::Auto | options::Device::Cpu => {
                    Factors::Single
                }
            },
            sources: std::iter::once(identity)
                .chain(
                    options
                        .shifts
                        .into_iter()
                        .flat_map(|image| (0..9).map(move |place| source(image, place))),
                )
                .collect(),
        };
        let tables = [train, valid].map(|rows| table::<T>(circuit, rows, &leaves));
        let mut learner = Learner::new(device, &plan, &settings, [&tables[0], &tables[1]])?;
        let output = output_weight(circuit);
        let first: Vec<Vec<f32>> = circuit
            .weights()
            .iter()
            .enumerate()
            .map(|(n, w)| {
                singles(T::parts(
                    normalized(w.to_matrix::<T>().into_owned(), output == Some(n)).data(),
                ))
            })
            .collect();
        for part in [Part::Weight, Part::Average, Part::Kept] {
            learner.write(part, &slices(&first))?;
        }
        Ok(Self { learner, is_momentum })
    }
}

impl Backend for Cuda {
    fn step(&mut self, selection: &Selection<'_>, update: Update) -> Result<f64, LearnError> {
        let rows: Vec<u32> = selection.rows.iter().map(|&n| n as u32).collect();
        let places = selection.shifts.map_or(&[][..], |s| &s.places);
        let places: Vec<u32> = places.iter().map(|&place| place as u32 + 1).collect();
        let (rate, epsilon) = update.corrected();
        let update = bornite_cuda::Update { rate, epsilon, keep: update.keep as f32 };
        Ok(self.learner.step(&rows, &places, update)?)
    }

    fn score(&mut self) -> Result<f64, LearnError> {
        Ok(self.learner.score()?)
    }

    fn residual(&mut self) -> Result<f64, LearnError> {
        Ok(self.learner.residual()?)
    }

    fn keep(&mut self) -> Result<(), LearnError> {
        Ok(self.learner.keep()?)
    }

    fn kept(&self) -> Result<Vec<Vec<f32>>, LearnError> {
        Ok(self.learner.read(Part::Kept)?)
    }

    fn set_kept(&mut self, weights: Vec<Vec<f32>>) -> Result<(), LearnError> {
        Ok(self.learner.write(Part::Kept, &slices(&weights))?)
    }

    fn parameters(&self) -> Result<Vec<Numbers>, LearnError> {
        let [weights, means, averages] =
            [Part::Weight, Part::Mean, Part::Average].map(|part| self.learner.read(part));
        let [weights, means, averages] = [weights?, means?, averages?];
        let squares = if self.is_momentum {
            vec![Vec::new(); weights.len()]
        } else {
            self.learner.read(Part::Square)?
        };
        let moments = means.into_iter().zip(squares).zip(averages);
        let numbers = |(weight, ((mean, square), average)): (Vec<f32>, _)| Numbers {
            weight: weight.into_iter().map(f64::from).collect(),
            mean,
            square,
            average,
        };
        Ok(weights.into_iter().zip(moments).map(numbers).collect())
    }

    fn set_parameters(&mut self, parameters: &[Numbers]) -> Result<(), LearnError> {
        let weights: Vec<Vec<f32>> = parameters.iter().map(|p| singles(&p.weight)).collect();
        self.learner.write(Part::Weight, &slices(&weights))?;
        self.learner.write(Part::Mean, &all(parameters, |p| &p.mean))?;
        if !self.is_momentum {
            self.learner.write(Part::Square, &all(parameters, |p| &p.square))?;
        }
        Ok(self.learner.write(Part::Average, &all(parameters, |p| &p.average))?)
    }
}

fn all(parameters: &[Numbers], part: impl Fn(&Numbers) -> &[f32]) -> Vec<&[f32]> {
    parameters.iter().map(part).collect()
}

fn slices(lists: &[Vec<f32>]) -> Vec<&[f32]> {
    lists.iter().map(Vec::as_slice).collect()
}

fn singles(list: &[f64]) -> Vec<f32> {
    list.iter().map(|&x| x as f32).collect()
}

/// The steps of a program for the device, and the leaves whose functions it reads from a table.
fn plan<'a, T: Scalar>(
    circuit: &Circuit,
    program: &'a Program,
    options: &FitOptions,
) -> (Plan, Vec<(usize, &'a Basis)>) {
    let (mut steps, mut places, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
    for (index, step) in program.steps().iter().enumerate() {
        let place = |n: usize| places[n];
        let step = match &step.kind {
            StepKind::Leaf { variable, weight: Some(weight), .. }
                if program.operand(index) == Some(Operand::Indicators) =>
            {
                Step::Codes { variable: *variable, weight: *weight }
            }
            StepKind::Leaf { variable, basis, weight } => {
                leaves.push((*variable, &**basis));
                let functions = Step::Functions { width: basis.width() };
                match *weight {
                    None => functions,
                    Some(weight) => {
                        steps.push(functions);
                        Step::Sum { input: steps.len() - 1, weight }
                    }
                }
            }
            StepKind::Kronecker { inputs, weight } => {
                Step::Kronecker { inputs: inputs.map(place), weight: *weight }
            }
            StepKind::Hadamard { inputs } => Step::Hadamard { inputs: inputs.map(place) },
            StepKind::Sum { input, weight } => Step::Sum { input: place(*input), weight: *weight },
        };
        steps.push(step);
        places.push(steps.len() - 1);
    }
    let output = output_weight(circuit);
    let weights = circuit.weights().iter().enumerate();
    let weights = weights
        .map(|(n, w)| {
            let leaf = program.users(n).first().map(|&step| &program.steps()[step].kind);
            let (mut smoothing, mut roughness) = (0.0, Vec::new());
            if let Some(StepKind::Leaf { variable, basis, .. }) = leaf {
                if program.operand_of(n) == Operand::Indicators {
                    smoothing = options.smoothing.get(*variable).copied().unwrap_or(0.0).max(0.0);
                } else if options.roughness > 0.0 {
                    roughness =
                        basis.roughness().iter().map(|r| (r * options.roughness) as f32).collect();
                }
            }
            let columns = if options.by_columns { w.cols().max(1) as f64 } else { 1.0 };
            Weight {
                rows: w.rows(),
                columns: w.cols(),
                is_output: output == Some(n),
                rate: columns.sqrt().recip() as f32,
                smoothing: smoothing as f32,
                roughness,
            }
        })
        .collect();
    (Plan { complex: T::IS_COMPLEX, steps, weights }, leaves)
}

/// The codes of finite variables, and the functions of the given leaves.
fn table<T: Scalar>(circuit: &Circuit, rows: &Batch, leaves: &[(usize, &Basis)]) -> Table {
    let size = |d: &Domain| if let Domain::Finite(n) = d { *n } else { 1 };
    let most = circuit.variables().iter().map(|v| size(&v.domain)).max().unwrap_or(1);
    let bytes = if most <= 1 << 8 {
        1
    } else if most <= 1 << 16 {
        2
    } else {
        4
    };
    let mut values = vec![0.0; rows.len()];
    let mut codes = Vec::with_capacity(rows.len() * rows.num_variables() * bytes);
    for (n, variable) in circuit.variables().iter().enumerate() {
        if let Domain::Finite(_) = variable.domain {
            rows.read(n, 0..rows.len(), &mut values);
        } else {
            values.fill(0.0);
        }
        codes.extend(values.iter().flat_map(|&x| (x as u32).to_le_bytes().into_iter().take(bytes)));
    }
    let parts = if T::IS_COMPLEX { 2 } else { 1 };
    let mut functions = Vec::new();
    for &(variable, basis) in leaves {
        rows.read(variable, 0..rows.len(), &mut values);
        let begin = functions.len();
        functions.resize(begin + basis.width() * rows.len() * parts, 0.0);
        for (chunk, xs) in values.chunks(ROWS).enumerate() {
            let found: Matrix<T> = basis.evaluate_batch(xs);
            for (row, k) in (0..xs.len()).flat_map(|row| (0..basis.width()).map(move |k| (row, k)))
            {
                let at = begin + (k * rows.len() + chunk * ROWS + row) * parts;
                for (to, &part) in
                    functions[at..at + parts].iter_mut().zip(T::parts(&[found[(row, k)]]))
                {
                    *to = part as f32;
                }
            }
        }
    }
    Table { len: rows.len(), bytes, codes, functions }
}
