//! Log densities of rows with any evidence.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bornite_kernels::Kind;
use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};

use crate::device::{Device, Source};
use crate::error::CudaError;
use crate::kernels::tiles;
use crate::launch::launch;
use crate::plan::{Step, widths};
use crate::samples::Samples;
use crate::script::{Block, Op, Script, Shape};
use crate::tasks::Product;

/// The maximum number of numbers of a tensor between two products, if there is enough memory.
const TENSOR: usize = 1 << 26;
/// The maximum number of rows that are processed together.
const ROWS: usize = 1 << 14;
/// The maximum number of entries of a weight.
const ENTRIES: usize = 1 << 28;
/// The sizes of the tiles of products, and the number of threads of each.
const TILES: [(usize, usize, u32); 5] =
    [(64, 64, 256), (64, 32, 128), (64, 16, 128), (32, 32, 64), (16, 16, 64)];

/// A weight with its numbers.
#[derive(Clone, Debug)]
pub struct Dense<'a> {
    /// The numbers of rows and columns.
    pub shape: [usize; 2],
    /// The real parts of the entries, row by row.
    pub parts: Cow<'a, [f64]>,
}

/// A circuit on a device, for the log densities of rows with any evidence.
///
/// The circuit must be orthonormal: steps without observed variables send the identity.
pub struct Evaluator {
    stream: Arc<CudaStream>,
    product: [CudaFunction; 5],
    codes: CudaFunction,
    hadamard: CudaFunction,
    settle: CudaFunction,
    close: CudaFunction,
    draw: CudaFunction,
    permute: CudaFunction,
    shape: Shape,
    double: bool,
    weights: CudaSlice<u8>,
    /// For every step, the positions of the copies of its weight with permuted modes; set by the
    /// first samples.
    down: Option<Vec<[usize; 2]>>,
    memory: CudaSlice<u8>,
    /// The amount of device memory that may be used, in numbers.
    room: usize,
}

impl fmt::Debug for Evaluator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evaluator").field("steps", &self.shape.steps.len()).finish_non_exhaustive()
    }
}

impl Evaluator {
    /// Copies a circuit with these steps and weights to a device, in single or double precision.
    /// The variables of steps do not matter for log densities, because the values come with the
    /// rows.
    ///
    /// # Errors
    /// A weight is too large or does not match its shape, or the device reports an error, for
    /// example because it has too little memory.
    pub fn new(
        device: &Device,
        complex: bool,
        double: bool,
        steps: Vec<Step>,
        weights: &[Dense<'_>],
    ) -> Result<Self, CudaError> {
        let (mut places, mut total) = (Vec::with_capacity(weights.len()), 0);
        for Dense { shape: [rows, columns], parts } in weights {
            let len = rows * columns;
            if len > ENTRIES {
                return Err(CudaError::TooWide { width: *rows, most: ENTRIES / columns.max(&1) });
            }
            if parts.len() != len * parts_of(complex) {
                return Err(CudaError::Shape);
            }
            places.push([total, *rows, *columns]);
            total += len;
        }
        for (n, step) in steps.iter().enumerate() {
            let has_weight = step.weight().is_none_or(|weight| weight < weights.len());
            if !has_weight || step.inputs().iter().any(|&input| input >= n) {
                return Err(CudaError::Shape);
            }
        }
        let widths = widths(&steps, |weight| weights[weight].shape[0]);
        if let Some(&width) = widths.iter().find(|&&width| width * width > ENTRIES) {
            return Err(CudaError::TooWide { width, most: ENTRIES.isqrt() });
        }
        let shape = Shape { complex, steps, widths, weights: places };
        let bytes = bytes_of(complex, double);

        let stream = device.stream()?;
        let module = device.compile(Source::Queries { complex, double })?;
        let get = |name: &str| module.load_function(name);
        let mut buffer = stream.alloc_zeros::<u8>(total.max(1) * bytes)?;
        for (Dense { parts, .. }, [at, rows, columns]) in weights.iter().zip(&shape.weights) {
            if rows * columns > 0 {
                let mut to = buffer.slice_mut(at * bytes..(at + rows * columns) * bytes);
                stream.memcpy_htod(&*bytes_in(parts, double), &mut to)?;
            }
        }
        stream.synchronize()?;
        let room = device.free_memory()? / 2 / bytes;
        let memory = stream.alloc_zeros::<u8>(bytes)?;
        let [a, b, c, d, e] = TILES.map(|(m, n, _)| get(&format!("product_{m}_{n}")));
        Ok(Self {
            product: [a?, b?, c?, d?, e?],
            codes: get("codes")?,
            hadamard: get("hadamard")?,
            settle: get("settle")?,
            close: get("close")?,
            draw: get("draw")?,
            permute: get("permute")?,
            stream,
            shape,
            double,
            weights: buffer,
            down: None,
            memory,
            room,
        })
    }

    /// The number of rows that can be processed together, if all of them are complete or not.
    ///
    /// # Errors
    /// The device has too little memory for one row.
    pub fn rows_at_once(&self, complete: bool) -> Result<usize, CudaError> {
        let kind = if complete { Kind::Pure } else { Kind::Mixed };
        self.fitting(self.shape.numbers_of_a_row(kind).max(1))
    }

    /// The number of rows that fit into memory, given the numbers per row.
    fn fitting(&self, row: usize) -> Result<usize, CudaError> {
        // Half of the memory is for tensors.
        match self.room / 2 / row {
            0 => {
                let bytes = bytes_of(self.shape.complex, self.double);
                Err(CudaError::Memory { needed: 2 * row * bytes, free: self.room * bytes })
            }
            rows => Ok(rows.min(ROWS)),
        }
    }

    /// Computes log p(evidence) of every row of a block; −∞ if it is impossible.
    ///
    /// # Errors
    /// The block does not match the circuit, or the device reports an error.
    pub fn log_densities(&mut self, block: &Block<'_>) -> Result<Vec<f64>, CudaError> {
        if block.len == 0 {
            return Ok(Vec::new());
        }
        // There are at most two tensors at a time.
        let script = Script::new(&self.shape, block, TENSOR.min(self.room / 4))?;
        let logs = self.stream.alloc_zeros::<f64>(block.len)?;
        self.run(&script, block.len, &logs)?;
        let logs = self.stream.clone_dtoh(&logs)?;
        self.stream.synchronize()?;
        Ok(logs)
    }

    /// Draws one sample for every row without evidence: for each row, a code for every leaf, in the
    /// order of the leaves' variables. `draws` contains a number in [0, 1) for every row at every
    /// leaf, in the order in which leaves are visited; all numbers of the first leaf come first.
    ///
    /// # Errors
    /// There are leaves without codes, `draws` has the wrong length, or the device reports an
    /// error.
    pub fn sample(&mut self, rows: usize, draws: &[f64]) -> Result<Vec<u32>, CudaError> {
        let leaves = self.shape.leaves()?;
        if draws.len() != rows * leaves.len() {
            return Err(CudaError::Shape);
        }
        if rows == 0 {
            return Ok(Vec::new());
        }
        self.prepare_samples()?;
        let down = self.down.as_deref().unwrap_or_default();
        let samples = Samples::new(&self.shape, down, rows, TENSOR.min(self.room / 4));
        let draws = self.stream.clone_htod(draws)?;
        let index = self.run(&samples.script, rows, &draws)?;
        let index = self.stream.clone_dtoh(&index)?;
        self.stream.synchronize()?;
        let mut out = vec![0; rows * leaves.len()];
        for (visit, &variable) in samples.variables.iter().enumerate() {
            let codes = &index[samples.codes + visit * rows..][..rows];
            for (row, &code) in codes.iter().enumerate() {
                out[row * leaves.len() + variable] = code;
            }
        }
        Ok(out)
    }

    /// The number of samples that can be drawn together.
    ///
    /// # Errors
    /// There are leaves without codes, or the device reports an error or has too little memory for
    /// one sample.
    pub fn samples_at_once(&mut self) -> Result<usize, CudaError> {
        self.shape.leaves()?;
        self.prepare_samples()?;
        let down = self.down.as_deref().unwrap_or_default();
        let row = Samples::new(&self.shape, down, 1, 1).script.memory.max(1);
        self.fitting(row)
    }

    /// Makes copies of the weights with permuted modes.
    fn prepare_samples(&mut self) -> Result<(), CudaError> {
        if self.down.is_some() {
            return Ok(());
        }
        let bytes = bytes_of(self.shape.complex, self.double);
        let (tasks, down, total) = self.shape.permuted();
        let mut weights = self.stream.alloc_zeros::<u8>(total.max(1) * bytes)?;
        let len = self.weights.len();
        self.stream.memcpy_dtod(&self.weights, &mut weights.slice_mut(..len))?;
        for task in &tasks {
            let entries = task.k as usize * task.k1 as usize * task.k2 as usize;
            launch! {
                self.stream, &self.permute, (tiles(entries, 256), 1, 1), (256, 1, 1), 0, task,
                &weights
            }
        }
        self.weights = weights;
        self.down = Some(down);
        Ok(())
    }

    /// Runs a script. `numbers` receives log densities, or contains random numbers for samples.
    /// Returns the lists, which include the codes of samples.
    fn run(
        &mut self,
        script: &Script<'_>,
        rows: usize,
        numbers: &CudaSlice<f64>,
    ) -> Result<CudaSlice<u32>, CudaError> {
        let (stream, bytes) = (self.stream.clone(), bytes_of(self.shape.complex, self.double));
        if script.memory * bytes > self.memory.len() {
            // Free the old memory first.
            self.memory = stream.alloc_zeros::<u8>(bytes)?;
            self.memory = stream.alloc_zeros::<u8>(script.memory * bytes)?;
        }
        let index = stream.clone_htod(&script.index)?;
        let log2 = stream.alloc_zeros::<i32>(rows)?;
        for op in &script.ops {
            match op {
                Op::Upload { at, numbers } => {
                    let source = bytes_in(numbers, self.double);
                    let at = at * bytes;
                    let mut to = self.memory.slice_mut(at..at + source.len());
                    stream.memcpy_htod(&*source, &mut to)?;
                }
                Op::Codes(task) => {
                    let grid = (tiles((task.count * task.width) as usize, 256), 1, 1);
                    launch! {
                        stream, &self.codes, grid, (256, 1, 1), 0, task, &index, &self.weights,
                        &self.memory
                    }
                }
                Op::Product(task, outer) => self.multiply(task, *outer, &index)?,
                Op::Hadamard(task) => {
                    let is_pure = task.a_kind == 1 && task.b_kind == 1;
                    let len = task.width * if is_pure { 1 } else { task.width };
                    let grid = (tiles(task.count as usize * len as usize, 256), 1, 1);
                    launch! {
                        stream, &self.hadamard, grid, (256, 1, 1), 0, task, &index, &self.memory
                    }
                }
                Op::Settle(task) => {
                    let grid = (tiles(task.count as usize, 4), 1, 1);
                    launch! {
                        stream, &self.settle, grid, (32, 4, 1), 0, task, &index, &self.memory, &log2
                    }
                }
                Op::Close(task) => {
                    let grid = (tiles(task.count as usize, 256), 1, 1);
                    launch! {
                        stream, &self.close, grid, (256, 1, 1), 0, task, &index, &self.memory,
                        &log2, numbers
                    }
                }
                Op::Draw(task) => {
                    let grid = (tiles(task.count as usize, 4), 1, 1);
                    launch! {
                        stream, &self.draw, grid, (32, 4, 1), 0, task, &index, numbers,
                        &self.weights, &self.memory
                    }
                }
            }
        }
        Ok(index)
    }

    fn multiply(
        &self,
        task: &Product,
        outer: usize,
        index: &CudaSlice<u32>,
    ) -> Result<(), CudaError> {
        let (m, n) = (task.m as usize, task.n as usize);
        let kernel = match (m, n) {
            (0..=16, 0..=16) => 4,
            (0..=32, 0..=32) => 3,
            (_, 0..=16) => 2,
            (_, 0..=32) => 1,
            _ => 0,
        };
        let (high, wide, threads) = TILES[kernel];
        let products = outer * task.inner as usize;
        let grid = ((products * m.div_ceil(high)) as u32, tiles(n, wide), 1);
        launch! {
            self.stream, &self.product[kernel], grid, (threads, 1, 1), 0, task, index,
            &self.weights, &self.memory
        }
        Ok(())
    }
}

fn parts_of(complex: bool) -> usize {
    if complex { 2 } else { 1 }
}

/// The number of bytes of a number.
fn bytes_of(complex: bool, double: bool) -> usize {
    parts_of(complex) * if double { 8 } else { 4 }
}

/// Real parts in the precision of the device.
fn bytes_in(numbers: &[f64], double: bool) -> Cow<'_, [u8]> {
    if double {
        return Cow::Borrowed(bytemuck::cast_slice(numbers));
    }
    let singles: Vec<f32> = numbers.iter().map(|&x| x as f32).collect();
    Cow::Owned(bytemuck::cast_slice(&singles).to_vec())
}
