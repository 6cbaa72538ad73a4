//! The state of a fit on the device, and its steps.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaFunction, CudaGraph, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};

use crate::device::{Device, Source};
use crate::error::CudaError;
use crate::kernels::{
    Kernels, ROWS, WIDEST, class_of, columns_memory, contraction_memory, descent_memory,
    quads_memory, tile, tiles,
};
use crate::launch::launch;
use crate::layout::{Descents, Group, Layout, Tasks, splits};
use crate::plan::{Factors, Plan, Settings, Step, Table};
use crate::tasks::{
    Contraction, Gram, Leaf, Packing, Pair, Settle, StepTask, Sum, User, WeightInfo, WeightTask,
};

/// Weights start at multiples of this many numbers.
const ALIGNMENT: usize = 1024;
/// The number of blocks over which the sum over a weight's users is spread.
const BLOCKS: usize = 1024;
/// The maximum number of parts that a product of weights is split into.
const PARTS: usize = 8;
/// A class with fewer tasks than this is merged with the next wider one.
const FEW: usize = 8;

/// An update of all weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// The step length, which includes the bias corrections of Adam's moments.
    pub rate: f32,
    /// The number that is added to the root of Adam's second moment.
    pub epsilon: f32,
    /// The share of the averages that is kept.
    pub keep: f32,
}

/// One of the buffers with numbers for every weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The weights.
    Weight,
    /// The first moments of the gradients.
    Mean,
    /// The second moments of the gradients.
    Square,
    /// The averages of the weights.
    Average,
    /// The averages that were kept last.
    Kept,
}

/// The tasks of one level of the tree.
struct Level {
    descents: Vec<Descents>,
    forward: Vec<Group>,
    reverse: Vec<Group>,
    hadamard: Tasks<Pair>,
    hadamard_settles: Tasks<Settle>,
}

/// The dimensions of a grid of blocks, or of a block of threads.
type Dimensions = (u32, u32, u32);

/// Sums over the users of weights, or products of weights, for one class of widths.
struct Launch<T> {
    class: usize,
    tasks: Tasks<T>,
    tiles: [u32; 2],
    /// The number of parts that sums are split into.
    parts: i32,
}

impl<T> Launch<T> {
    /// The grid, with a block for each tile of each part of each task, and the block.
    fn shape(&self) -> (Dimensions, Dimensions) {
        let grid = (self.tiles[0], self.tiles[1], self.tasks.len as u32 * self.parts as u32);
        (grid, (4 * tile(self.class) as u32, 1, 1))
    }
}

struct Rows {
    len: i64,
    bytes: i32,
    codes: CudaSlice<u8>,
    functions: CudaSlice<f32>,
}

/// The weights with factors of fewer bits, for passes over rows.
enum Rounded {
    /// The weights themselves.
    Single,
    Tf32(CudaSlice<f32>),
    /// Quads along columns and along rows.
    Bfloat16 {
        packings: Tasks<Packing>,
        blocks: u32,
        quads: [CudaSlice<f32>; 2],
    },
}

/// Rows, weights and their moments on a device, and the steps of a fit.
pub struct Learner {
    stream: Arc<CudaStream>,
    /// What may run beside the stream.
    branch: Arc<CudaStream>,
    kernels: Kernels,
    settings: Settings,
    /// The number of real parts of a number.
    parts: usize,
    /// The number of rows that the buffers have room for.
    stride: usize,
    variables: usize,
    root: (usize, usize, usize),
    /// The position and length of every weight, in numbers.
    places: Vec<(usize, usize)>,
    total: usize,

    train: Rows,
    valid: Rows,
    rows: CudaSlice<i32>,
    moves: CudaSlice<i32>,
    sources: CudaSlice<i32>,
    step: CudaSlice<StepTask>,
    codes: CudaSlice<i32>,

    values: CudaSlice<f32>,
    environments: CudaSlice<f32>,
    scratch: CudaSlice<f32>,
    factors: CudaSlice<f32>,
    log2: CudaSlice<i32>,
    logs: CudaSlice<f64>,

    weights: CudaSlice<f32>,
    gradients: CudaSlice<f32>,
    means: CudaSlice<f32>,
    squares: CudaSlice<f32>,
    averages: CudaSlice<f32>,
    kept: CudaSlice<f32>,
    rounded: Rounded,
    /// The products of weights, in parts.
    small: CudaSlice<f32>,
    part_stride: i64,
    norm_parts: CudaSlice<f64>,
    clip_by: CudaSlice<f32>,
    roughness: CudaSlice<f32>,

    leaf_tasks: Tasks<Leaf>,
    function_tasks: Tasks<Leaf>,
    levels: Vec<Level>,
    users: Tasks<User>,
    weight_tasks: Vec<Launch<WeightTask>>,
    column_tasks: Tasks<WeightTask>,
    column_tiles: [u32; 2],
    sums: Tasks<Sum>,
    grams: Vec<Launch<Gram>>,
    updates: Vec<Launch<Contraction>>,
    infos: Tasks<WeightInfo>,
    owners: CudaSlice<i32>,
    penalized: Tasks<i32>,
    outputs: Vec<WeightInfo>,
    widest: usize,
    graph: Option<CudaGraph>,
}

impl fmt::Debug for Learner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learner").field("weights", &self.places.len()).finish_non_exhaustive()
    }
}

impl Rounded {
    /// Room for the weights in quads, and their positions.
    fn packed(
        stream: &Arc<CudaStream>,
        layout: &mut Layout<'_>,
        parts: usize,
    ) -> Result<Self, CudaError> {
        let plan = layout.plan;
        let mut packings: Vec<Packing> = plan
            .weights
            .iter()
            .zip(&layout.places)
            .map(|(w, &(at, _))| Packing {
                at: at as i64,
                along_columns: -1,
                along_rows: -1,
                k: w.rows as i32,
                k1: 1,
                k2: w.columns as i32,
                unused: 0,
            })
            .collect();
        let (mut quads, mut lens) = (vec![[0; 2]; plan.weights.len()], [0; 2]);
        for (index, step) in plan.steps.iter().enumerate() {
            let (Some(weight), false) = (step.weight(), matches!(step, Step::Codes { .. })) else {
                continue;
            };
            let (task, [k, k1, k2]) = (&mut packings[weight], layout.shape(index));
            if task.along_columns >= 0 {
                continue;
            }
            quads[weight] = lens;
            (task.k1, task.k2) = (k1 as i32, k2 as i32);
            (task.along_columns, task.along_rows) = (lens[0] as i64, lens[1] as i64);
            lens[0] += k * k1 * k2.div_ceil(4);
            lens[1] += k.div_ceil(4) * k1 * k2;
        }
        layout.quads = Some(quads);
        let most = plan.weights.iter().map(|w| (w.rows * w.columns).div_ceil(16 * 256)).max();
        let room = |len: usize| stream.alloc_zeros::<f32>((len * 2 * parts).max(1));
        Ok(Self::Bfloat16 {
            packings: Tasks::new(stream, &packings)?,
            blocks: most.unwrap_or(1).clamp(1, 64) as u32,
            quads: [room(lens[0])?, room(lens[1])?],
        })
    }
}

impl Learner {
    /// Starts a fit with weights of zero. Set them with [`write`](Self::write).
    ///
    /// # Errors
    /// A layer is too wide, or the device reports an error, for example because it has too little
    /// memory.
    #[expect(clippy::too_many_lines, reason = "one list of everything that is on the device")]
    pub fn new(
        device: &Device,
        plan: &Plan,
        settings: &Settings,
        [train, valid]: [&Table; 2],
    ) -> Result<Self, CudaError> {
        let stream = device.stream()?;
        let parts = if plan.complex { 2 } else { 1 };
        let source = Source::Learning { complex: plan.complex, factors: settings.factors };
        let kernels = Kernels::new(&device.compile(source)?, settings.factors, parts)?;
        let stride = settings.batch.max(1).next_multiple_of(ROWS);
        let widths = plan.widths();
        let widest =
            plan.weights.iter().filter(|w| !w.is_output).map(|w| w.rows).max().unwrap_or(1);
        let width = widths.iter().copied().fold(widest, usize::max);
        if width > WIDEST {
            return Err(CudaError::TooWide { width, most: WIDEST });
        }

        let (mut offsets, mut components) = (Vec::new(), 0);
        for width in &widths {
            offsets.push(components);
            components += width;
        }
        let (mut places, mut total) = (Vec::new(), 0);
        for w in &plan.weights {
            places.push((total, w.rows * w.columns));
            total += (w.rows * w.columns).next_multiple_of(ALIGNMENT);
        }
        let slots = device.slots()?;
        let mut layout = Layout { plan, widths, offsets, stride, places, quads: None, slots };
        let rounded = match settings.factors {
            Factors::Single => Rounded::Single,
            Factors::Tf32 => Rounded::Tf32(stream.alloc_zeros((total * parts).max(1))?),
            Factors::Bfloat16 => Rounded::packed(&stream, &mut layout, parts)?,
        };
        let Layout { widths, offsets, .. } = &layout;
        let mut scratch = 0;

        // The leaves.
        let (mut leaves, mut functions, mut rank) = (Vec::new(), Vec::new(), 0);
        for (index, step) in plan.steps.iter().enumerate() {
            let (width, to) = (widths[index] as i32, offsets[index] as i32);
            let leaf = Leaf { width, to, index: index as i32, ..Leaf::default() };
            match *step {
                Step::Codes { variable, weight } => {
                    let (from, columns) =
                        (layout.places[weight].0 as i64, plan.weights[weight].columns as i32);
                    leaves.push(Leaf { from, columns, variable: variable as i32, ..leaf });
                }
                Step::Functions { .. } => {
                    // In units of rows of the table, which differ between training and validation.
                    functions.push(Leaf { from: rank, ..leaf });
                    rank += i64::from(width);
                }
                Step::Kronecker { .. } | Step::Hadamard { .. } | Step::Sum { .. } => {}
            }
        }

        // The levels of the tree.
        let mut depths = vec![0_usize; plan.steps.len()];
        for (index, step) in plan.steps.iter().enumerate() {
            depths[index] = step.inputs().iter().map(|&i| depths[i] + 1).max().unwrap_or(0);
        }
        let mut levels = Vec::new();
        for depth in 1..=depths.iter().copied().max().unwrap_or(0) {
            let steps: Vec<usize> = (0..plan.steps.len()).filter(|&n| depths[n] == depth).collect();
            let (mut pairs, mut pair_settles, mut place) = (Vec::new(), Vec::new(), 0);
            for &n in &steps {
                if let Step::Hadamard { inputs: [a, b] } = plan.steps[n] {
                    pairs.push(Pair {
                        a: offsets[a] as i32,
                        b: offsets[b] as i32,
                        own: offsets[n] as i32,
                        out: place as i32,
                        width: widths[n] as i32,
                        index_a: a as i32,
                        index_b: b as i32,
                    });
                    pair_settles.push(layout.settle(n, layout.at(place)));
                    place += widths[n];
                }
            }
            scratch = scratch.max(place * stride);
            let forward: Vec<_> =
                steps.iter().filter_map(|&n| Some((n, layout.forward(n)?))).collect();
            let reverse: Vec<_> = steps.iter().flat_map(|&n| layout.reverse(n)).collect();
            levels.push(Level {
                descents: layout.descents(&stream, &steps, &mut scratch)?,
                forward: layout.groups(&stream, &forward, true, &mut scratch)?,
                reverse: layout.groups(&stream, &reverse, false, &mut scratch)?,
                hadamard: Tasks::new(&stream, &pairs)?,
                hadamard_settles: Tasks::new(&stream, &pair_settles)?,
            });
        }

        // The weights: the sums over their users, split into shares if there are many.
        let mut users_of = vec![Vec::new(); plan.weights.len()];
        for (index, step) in plan.steps.iter().enumerate() {
            if let Some(weight) = step.weight() {
                users_of[weight].push(index);
            }
        }
        let (mut users, mut sums, mut shares) = (Vec::new(), Vec::new(), 0);
        let (mut columns, mut column_tiles) = (Vec::new(), [1, 1]);
        let mut products: [Vec<WeightTask>; 3] = Default::default();
        let mut product_tiles = [[1_u32; 2]; 3];
        for (weight, steps) in users_of.iter().enumerate() {
            let Some(&first) = steps.first() else { continue };
            let (at, len) = layout.places[weight];
            let [k, k1, k2] = layout.shape(first);
            let is_code = matches!(plan.steps[first], Step::Codes { .. });
            let class = class_of(k);
            let grid = if is_code {
                [tiles(k, 32), tiles(k2, 256)]
            } else {
                [tiles(k1 * k2, ROWS), tiles(k, tile(class))]
            };
            let to = if is_code { &mut column_tiles } else { &mut product_tiles[class] };
            *to = [to[0].max(grid[0]), to[1].max(grid[1])];
            let most = BLOCKS.div_ceil((grid[0] * grid[1]) as usize);
            let chunk = steps.len().div_ceil(most);
            let count = steps.len().div_ceil(chunk);
            for (share, steps) in steps.chunks(chunk).enumerate() {
                let begin = users.len() as i32;
                for &n in steps {
                    let e = offsets[n] as i32;
                    users.push(match plan.steps[n] {
                        Step::Codes { variable, .. } => {
                            User { e, a: variable as i32, b: 0, unused: 0 }
                        }
                        Step::Kronecker { inputs: [a, b], .. } => {
                            User { e, a: offsets[a] as i32, b: offsets[b] as i32, unused: 0 }
                        }
                        Step::Sum { input, .. } => {
                            User { e, a: -1, b: offsets[input] as i32, unused: 0 }
                        }
                        Step::Functions { .. } | Step::Hadamard { .. } => continue,
                    });
                }
                // The shares follow the weights in one buffer.
                let out = if count == 1 { at } else { total + shares + share * len } as i64;
                let (first, last) = (begin, users.len() as i32);
                let task = WeightTask {
                    out,
                    first,
                    last,
                    k: k as i32,
                    k1: k1 as i32,
                    k2: k2 as i32,
                    unused: 0,
                };
                if is_code {
                    columns.push(WeightTask { k1: k2 as i32, k2: 1, ..task });
                } else {
                    products[class].push(task);
                }
            }
            if count > 1 {
                let (to, from) = (at as i64, (total + shares) as i64);
                sums.push(Sum { to, from, len: len as i64, parts: count as i32, unused: 0 });
                shares += count * len;
            }
        }
        for class in 0..2 {
            if products[class].len() < FEW && !products[class + 1].is_empty() {
                let few = std::mem::take(&mut products[class]);
                products[class + 1].extend(few);
                let [narrower, wider] = [product_tiles[class], product_tiles[class + 1]];
                product_tiles[class + 1] = [wider[0].max(narrower[0]), wider[1]];
            }
        }
        let mut weight_tasks = Vec::new();
        for (class, list) in products.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            weight_tasks.push(Launch {
                class,
                tasks: Tasks::new(&stream, list)?,
                tiles: product_tiles[class],
                parts: 1,
            });
        }

        // The normalization and the updates of the weights.
        let (mut infos, mut owners, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        let (mut roughness, mut penalized, mut small) = (Vec::new(), Vec::new(), 0);
        let mut grams: [Vec<Gram>; 3] = Default::default();
        let mut updates: [Vec<Contraction>; 3] = Default::default();
        for (n, (w, &(at, len))) in plan.weights.iter().zip(&layout.places).enumerate() {
            let info = WeightInfo {
                at: at as i64,
                small: small as i64,
                k: w.rows as i32,
                columns: w.columns as i32,
                rate: w.rate,
                smoothing: w.smoothing,
                roughness: if w.roughness.is_empty() { -1 } else { roughness.len() as i64 },
            };
            roughness.extend_from_slice(&w.roughness);
            if w.smoothing > 0.0 || !w.roughness.is_empty() {
                penalized.push(n as i32);
            }
            owners.extend(std::iter::repeat_n(n as i32, len.div_ceil(ALIGNMENT)));
            infos.push(info);
            if w.is_output {
                outputs.push(info);
                continue;
            }
            let (k, columns, class) = (w.rows as i32, w.columns as i32, class_of(w.rows));
            grams[class].push(Gram {
                at: info.at,
                out: info.small,
                k,
                columns,
                rate: w.rate,
                unused: 0,
            });
            updates[class].push(Contraction {
                w: info.small,
                x: -1,
                y: info.at,
                out: info.at,
                sm: k,
                sp: 0,
                sq: 1,
                m: k,
                p: 1,
                q: k,
                stride: columns,
                n: columns,
            });
            small += w.rows * w.rows;
        }
        for class in 0..2 {
            if grams[class].len() < FEW && !grams[class + 1].is_empty() {
                let few = (std::mem::take(&mut grams[class]), std::mem::take(&mut updates[class]));
                grams[class + 1].extend(few.0);
                updates[class + 1].extend(few.1);
            }
        }
        let (mut gram_tasks, mut update_tasks, mut most_parts) = (Vec::new(), Vec::new(), 1);
        for class in 0..3 {
            let (Some(k), Some(columns)) = (
                grams[class].iter().map(|g| g.k as usize).max(),
                grams[class].iter().map(|g| g.columns as usize).max(),
            ) else {
                continue;
            };
            let rows = tiles(k, tile(class));
            let (tasks, shape) = (Tasks::new(&stream, &grams[class])?, [tiles(k, ROWS), rows]);
            // The sums of narrow weights are short, and there are many of them.
            let blocks = tasks.len * (shape[0] * shape[1]) as usize;
            let parts = if class < 2 {
                1
            } else {
                splits(blocks, slots >> class, PARTS, columns.div_ceil(16))
            };
            most_parts = most_parts.max(parts);
            gram_tasks.push(Launch { class, tasks, tiles: shape, parts: parts as i32 });
            let (tasks, shape) =
                (Tasks::new(&stream, &updates[class])?, [tiles(columns, ROWS), rows]);
            update_tasks.push(Launch { class, tasks, tiles: shape, parts: 1 });
        }

        let zeros = |len: usize| stream.alloc_zeros::<f32>(len.max(1));
        let numbers = |len: usize| zeros(len * parts);
        let upload = |table: &Table| -> Result<Rows, CudaError> {
            let codes = if table.codes.is_empty() {
                stream.alloc_zeros(4)?
            } else {
                stream.clone_htod(&table.codes)?
            };
            let functions = if table.functions.is_empty() {
                zeros(1)?
            } else {
                stream.clone_htod(&table.functions)?
            };
            Ok(Rows { len: table.len as i64, bytes: table.bytes as i32, codes, functions })
        };
        let variables = settings.sources.first().map_or(0, Vec::len);
        let sources: Vec<i32> = settings.sources.iter().flatten().map(|&v| v as i32).collect();
        let root = plan.steps.len() - 1;

        let learner = Self {
            root: (offsets[root], root, widths[root]),
            train: upload(train)?,
            valid: upload(valid)?,
            rows: stream.alloc_zeros(stride)?,
            moves: stream.alloc_zeros(stride)?,
            sources: if sources.is_empty() {
                stream.alloc_zeros(1)?
            } else {
                stream.clone_htod(&sources)?
            },
            step: stream.clone_htod(&[StepTask::default()])?,
            codes: stream.alloc_zeros((variables * stride).max(1))?,
            values: numbers(components * stride)?,
            environments: numbers(components * stride)?,
            scratch: numbers(scratch)?,
            factors: zeros(plan.steps.len() * stride)?,
            log2: stream.alloc_zeros(stride)?,
            logs: stream.alloc_zeros(stride)?,
            weights: numbers(total)?,
            gradients: numbers(total + shares)?,
            means: numbers(total)?,
            squares: numbers(if settings.momentum { 0 } else { total })?,
            averages: numbers(total)?,
            kept: numbers(total)?,
            rounded,
            small: numbers(small * most_parts)?,
            part_stride: small as i64,
            norm_parts: stream.alloc_zeros(owners.len().max(1))?,
            clip_by: stream.clone_htod(&[1.0_f32])?,
            roughness: if roughness.is_empty() {
                zeros(1)?
            } else {
                stream.clone_htod(&roughness)?
            },
            leaf_tasks: Tasks::new(&stream, &leaves)?,
            function_tasks: Tasks::new(&stream, &functions)?,
            levels,
            users: Tasks::new(&stream, &users)?,
            weight_tasks,
            column_tasks: Tasks::new(&stream, &columns)?,
            column_tiles,
            sums: Tasks::new(&stream, &sums)?,
            grams: gram_tasks,
            updates: update_tasks,
            infos: Tasks::new(&stream, &infos)?,
            owners: stream.clone_htod(&owners)?,
            penalized: Tasks::new(&stream, &penalized)?,
            outputs,
            widest,
            graph: None,
            places: layout.places.clone(),
            total,
            kernels,
            settings: settings.clone(),
            parts,
            stride,
            variables,
            branch: device.stream()?,
            stream: stream.clone(),
        };
        stream.synchronize()?;
        Ok(learner)
    }

    /// Takes one step along the gradient of the mean log-likelihood of training rows, and returns
    /// that mean before the step. Each row is moved by one of the shifts in the settings, by
    /// default the first.
    ///
    /// # Errors
    /// There are too many rows, or the device reports an error.
    pub fn step(&mut self, rows: &[u32], places: &[u32], update: Update) -> Result<f64, CudaError> {
        if rows.len() > self.stride || places.len() > self.stride {
            return Err(CudaError::Shape);
        }
        self.load(rows, places, update)?;
        if self.graph.is_none() {
            let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
            self.stream.begin_capture(mode)?;
            let recorded = self.enqueue();
            let graph = self.stream.end_capture(CUgraphInstantiate_flags(0))?;
            recorded?;
            self.graph = graph;
        }
        if let Some(graph) = &self.graph {
            graph.launch()?;
        }
        let logs = self.stream.clone_dtoh(&self.logs)?;
        self.stream.synchronize()?;
        Ok(logs[..rows.len()].iter().sum::<f64>() / rows.len().max(1) as f64)
    }

    /// The mean log-likelihood of the validation rows with the averaged weights, after
    /// normalization.
    ///
    /// # Errors
    /// The device reports an error.
    pub fn score(&mut self) -> Result<f64, CudaError> {
        self.normalize(true, &self.averages, &self.gradients)?;
        self.normalize_outputs(&self.stream, &self.averages, &self.gradients)?;
        let len = self.valid.len as u32;
        let mut sum = 0.0;
        for first in (0..len).step_by(self.settings.batch.max(1)) {
            let rows: Vec<u32> = (first..len.min(first + self.settings.batch as u32)).collect();
            self.load(&rows, &[], Update { rate: 0.0, epsilon: 1.0, keep: 1.0 })?;
            self.forward(&self.valid, Some(&self.gradients))?;
            let logs = self.stream.clone_dtoh(&self.logs)?;
            self.stream.synchronize()?;
            sum += logs[..rows.len()].iter().sum::<f64>();
        }
        Ok(sum / f64::from(len.max(1)))
    }

    /// Keeps the averages.
    ///
    /// # Errors
    /// The device reports an error.
    pub fn keep(&mut self) -> Result<(), CudaError> {
        Ok(self.stream.memcpy_dtod(&self.averages, &mut self.kept)?)
    }

    /// The largest entry of W Wᴴ − I of any weight except the output's.
    ///
    /// # Errors
    /// The device reports an error.
    pub fn residual(&mut self) -> Result<f64, CudaError> {
        self.gram(&self.kernels.gram, &self.weights, &self.weights)?;
        let mut most = 0.0_f64;
        for class in &self.grams {
            let out = self.stream.alloc_zeros::<f64>(class.tasks.len)?;
            let grid = (class.tasks.len as u32, 1, 1);
            launch! {
                self.stream, &self.kernels.residuals, grid, (256, 1, 1), 0, &class.tasks.list,
                &self.small, &class.parts, &self.part_stride, &out
            }
            let out = self.stream.clone_dtoh(&out)?;
            self.stream.synchronize()?;
            for x in out {
                most = if x.is_nan() { x } else { most.max(x) };
            }
        }
        Ok(most)
    }

    /// Reads one of the buffers, as real parts for every weight.
    ///
    /// # Errors
    /// The device reports an error.
    pub fn read(&self, part: Part) -> Result<Vec<Vec<f32>>, CudaError> {
        let all = self.stream.clone_dtoh(self.buffer(part))?;
        self.stream.synchronize()?;
        let of = |&(at, len): &(usize, usize)| {
            all.get(at * self.parts..(at + len) * self.parts).map_or_else(Vec::new, <[f32]>::to_vec)
        };
        Ok(self.places.iter().map(of).collect())
    }

    /// Writes one of the buffers.
    ///
    /// # Errors
    /// The numbers do not match the weights, or the device reports an error.
    pub fn write(&mut self, part: Part, numbers: &[&[f32]]) -> Result<(), CudaError> {
        let parts = self.parts;
        let fits = |(n, &(_, len)): (&&[f32], &(usize, usize))| n.len() == len * parts;
        if numbers.len() != self.places.len() || !numbers.iter().zip(&self.places).all(fits) {
            return Err(CudaError::Shape);
        }
        let mut all = vec![0.0_f32; self.total * parts];
        for (numbers, &(at, len)) in numbers.iter().zip(&self.places) {
            all[at * parts..(at + len) * parts].copy_from_slice(numbers);
        }
        let stream = self.stream.clone();
        let buffer = match part {
            Part::Weight => &mut self.weights,
            Part::Mean => &mut self.means,
            Part::Square => &mut self.squares,
            Part::Average => &mut self.averages,
            Part::Kept => &mut self.kept,
        };
        stream.memcpy_htod(&all, buffer)?;
        if part == Part::Weight {
            self.round()?;
        }
        stream.synchronize()?;
        Ok(())
    }

    fn buffer(&self, part: Part) -> &CudaSlice<f32> {
        match part {
            Part::Weight => &self.weights,
            Part::Mean => &self.means,
            Part::Square => &self.squares,
            Part::Average => &self.averages,
            Part::Kept => &self.kept,
        }
    }

    /// Uploads the rows of the next step, and its parameters.
    fn load(&mut self, rows: &[u32], places: &[u32], update: Update) -> Result<(), CudaError> {
        let padded = |list: &[u32]| -> Vec<i32> {
            let mut list: Vec<i32> = list.iter().map(|&n| n as i32).collect();
            list.resize(self.stride, 0);
            list
        };
        let step = StepTask {
            rate: update.rate,
            epsilon: update.epsilon,
            keep: update.keep,
            row_weight: 1.0 / rows.len().max(1) as f32,
            clip: self.settings.clip.unwrap_or(0.0),
            count: rows.len() as i32,
            momentum: i32::from(self.settings.momentum),
        };
        let (rows, places) = (padded(rows), padded(places));
        let stream = self.stream.clone();
        stream.memcpy_htod(&rows, &mut self.rows)?;
        stream.memcpy_htod(&places, &mut self.moves)?;
        stream.memcpy_htod(&[step], &mut self.step)?;
        Ok(())
    }

    /// The weights in the form that leaves and contractions without quads use.
    fn factors_of_weights(&self) -> &CudaSlice<f32> {
        match &self.rounded {
            Rounded::Tf32(rounded) => rounded,
            Rounded::Single | Rounded::Bfloat16 { .. } => &self.weights,
        }
    }

    /// Writes the weights with factors of fewer bits.
    fn round(&mut self) -> Result<(), CudaError> {
        match &self.rounded {
            Rounded::Single => {}
            Rounded::Tf32(rounded) => {
                if let Some(kernel) = &self.kernels.round_weights {
                    let grid = ((self.total / ALIGNMENT) as u32, 1, 1);
                    launch! {
                        self.stream, kernel, grid, (256, 1, 1), 0, &self.weights, rounded
                    }
                }
            }
            Rounded::Bfloat16 { .. } => {
                let stream = self.stream.clone();
                stream.memcpy_htod(
                    &[StepTask { keep: 1.0, ..StepTask::default() }],
                    &mut self.step,
                )?;
                self.average()?;
            }
        }
        Ok(())
    }

    /// Averages the weights, and writes them with factors of fewer bits.
    fn average(&self) -> Result<(), CudaError> {
        let (stream, kernel) = (&self.stream, &self.kernels.average);
        let chunks = ((self.total / ALIGNMENT) as u32, 1, 1);
        match &self.rounded {
            Rounded::Single => launch! {
                stream, kernel, chunks, (256, 1, 1), 0, &self.step, &self.weights, &self.averages,
                &self.weights
            },
            Rounded::Tf32(rounded) => launch! {
                stream, kernel, chunks, (256, 1, 1), 0, &self.step, &self.weights, &self.averages,
                rounded
            },
            Rounded::Bfloat16 { packings, blocks, quads: [along_columns, along_rows] } => launch! {
                stream, kernel, (*blocks, packings.len as u32, 1), (256, 1, 1), 0, &packings.list,
                &self.step, &self.weights, &self.averages, along_columns, along_rows
            },
        }
        Ok(())
    }

    /// Enqueues everything that a step does, in order.
    fn enqueue(&mut self) -> Result<(), CudaError> {
        self.forward(&self.train, None)?;
        self.reverse()?;
        self.gradient()?;
        self.update()
    }

    /// Computes log p of the rows, with the weights of the step, or exactly with these weights.
    fn forward(&self, from: &Rows, exact: Option<&CudaSlice<f32>>) -> Result<(), CudaError> {
        let weights = exact.unwrap_or_else(|| self.factors_of_weights());
        let (stream, kernels, stride) = (&self.stream, &self.kernels, self.stride as i32);
        let across = tiles(self.stride, 64);
        launch! {
            stream, &kernels.begin, (tiles(self.stride, 32), 1, 1), (32, 1, 1), 0, &stride,
            &self.log2
        }
        if self.leaf_tasks.len > 0 {
            let grid = (tiles(self.stride, 128), self.variables as u32, 1);
            let variables = self.variables as i32;
            launch! {
                stream, &kernels.gather, grid, (128, 1, 1), 0, &from.codes, &from.bytes, &from.len,
                &self.rows, &self.moves, &self.sources, &variables, &stride, &self.codes
            }
            let grid = (across, self.leaf_tasks.len as u32, 1);
            launch! {
                stream, &kernels.leaves, grid, (64, 4, 1), 0, &self.leaf_tasks.list, weights,
                &self.codes, &stride, &self.values, &self.factors, &self.log2
            }
        }
        if self.function_tasks.len > 0 {
            let grid = (across, self.function_tasks.len as u32, 1);
            launch! {
                stream, &kernels.functions, grid, (64, 4, 1), 0, &self.function_tasks.list,
                &from.functions, &self.rows, &from.len, &stride, &self.values, &self.factors,
                &self.log2
            }
        }
        for level in &self.levels {
            for group in &level.forward {
                let (class, components, parts) = (group.class, group.components, self.parts);
                let quads = match (exact, &self.rounded, &group.in_quads) {
                    (None, Rounded::Bfloat16 { quads, .. }, Some(tasks)) => {
                        Some((tasks, &quads[0]))
                    }
                    _ => None,
                };
                let (kernel, tasks, weights) = if let Some((tasks, quads)) = quads {
                    let memory = quads_memory(class, components, parts) as u32;
                    ((&kernels.forward, memory), tasks, quads)
                } else {
                    let kernels = if exact.is_some() { &kernels.exact } else { &kernels.forward };
                    let memory = contraction_memory(class, components, parts);
                    ((kernels, memory), &group.tasks, weights)
                };
                self.contract(kernel, group, tasks, weights, &self.values)?;
                if !group.is_settled {
                    self.settle(&group.settles, group.splits, group.split_stride)?;
                }
            }
            if level.hadamard.len > 0 {
                let grid = (across, level.hadamard.len as u32, 1);
                launch! {
                    stream, &kernels.hadamard, grid, (64, 4, 1), 0, &level.hadamard.list,
                    &self.values, &stride, &self.scratch
                }
                self.settle(&level.hadamard_settles, 1, 0)?;
            }
        }
        let (at, index, width) = (self.root.0 as i32, self.root.1 as i32, self.root.2 as i32);
        launch! {
            stream, &kernels.close, (tiles(self.stride, 32), 1, 1), (32, 1, 1), 0, &self.values,
            &self.factors, &self.log2, &self.step, &at, &index, &width, &stride, &self.environments,
            &self.logs
        }
        Ok(())
    }

    fn settle(
        &self,
        tasks: &Tasks<Settle>,
        splits: i32,
        split_stride: i64,
    ) -> Result<(), CudaError> {
        let (grid, stride) = ((tiles(self.stride, 32), tasks.len as u32, 1), self.stride as i32);
        launch! {
            self.stream, &self.kernels.settle, grid, (32, 16, 1), 0, &tasks.list, &self.scratch,
            &splits, &split_stride, &stride, &self.values, &self.factors, &self.log2
        }
        Ok(())
    }

    /// Contractions on the way up, with vectors for x, or on the way down, with environments.
    fn contract(
        &self,
        (kernels, memory): (&[CudaFunction; 3], u32),
        group: &Group,
        tasks: &Tasks<Contraction>,
        weights: &CudaSlice<f32>,
        x: &CudaSlice<f32>,
    ) -> Result<(), CudaError> {
        let grid = (group.tiles[0], group.tiles[1], group.tasks.len as u32 * group.splits as u32);
        let (block, is_settled) =
            ((4 * tile(group.class) as u32, 1, 1), i32::from(group.is_settled));
        launch! {
            self.stream, &kernels[group.class], grid, block, memory, &tasks.list,
            &group.splits, &group.split_stride, weights, x, &self.values, &self.scratch,
            &group.settles.list, &is_settled, x, &self.factors, &self.log2
        }
        Ok(())
    }

    fn settle_reverse(
        &self,
        tasks: &Tasks<Settle>,
        splits: i32,
        split_stride: i64,
    ) -> Result<(), CudaError> {
        let (grid, stride) = ((tiles(self.stride, 32), tasks.len as u32, 1), self.stride as i32);
        launch! {
            self.stream, &self.kernels.settle_reverse, grid, (32, 16, 1), 0, &tasks.list,
            &self.scratch, &splits, &split_stride, &stride, &self.factors, &self.environments
        }
        Ok(())
    }

    /// Computes the environments, from the output down to the leaves.
    fn reverse(&self) -> Result<(), CudaError> {
        let (stream, kernels, stride) = (&self.stream, &self.kernels, self.stride as i32);
        let weights = self.factors_of_weights();
        for level in self.levels.iter().rev() {
            for group in &level.descents {
                let across = tiles(self.stride, ROWS);
                let grid = (across, 1, group.tasks.len as u32 * group.splits as u32);
                let block = (4 * tile(group.class) as u32, 1, 1);
                let factors = self.settings.factors;
                let memory = descent_memory(factors, group.class, group.components, self.parts);
                let weights = match &self.rounded {
                    Rounded::Bfloat16 { quads, .. } => &quads[1],
                    Rounded::Single | Rounded::Tf32(_) => weights,
                };
                let ([a, b], is_settled) = (&group.settles, i32::from(group.splits == 1));
                launch! {
                    stream, &kernels.descend[group.class], grid, block, memory, &group.tasks.list,
                    &group.splits, &group.split_stride, weights, &self.environments,
                    &self.values, &a.list, &b.list, &is_settled, &self.factors,
                    &self.environments, &self.scratch
                }
                if group.splits > 1 {
                    self.settle_reverse(b, group.splits, group.split_stride)?;
                }
            }
            for group in &level.reverse {
                let memory = contraction_memory(group.class, group.components, self.parts);
                let kernel = (&kernels.reverse, memory);
                self.contract(kernel, group, &group.tasks, weights, &self.environments)?;
                if !group.is_settled {
                    self.settle_reverse(&group.settles, group.splits, group.split_stride)?;
                }
            }
            if level.hadamard.len > 0 {
                let grid = (tiles(self.stride, 64), level.hadamard.len as u32, 1);
                launch! {
                    stream, &kernels.hadamard_reverse, grid, (64, 4, 1), 0, &level.hadamard.list,
                    &self.values, &self.factors, &stride, &self.environments
                }
            }
        }
        Ok(())
    }

    /// Computes the gradients with respect to all weights.
    fn gradient(&self) -> Result<(), CudaError> {
        let (stream, kernels, stride) = (&self.stream, &self.kernels, self.stride as i32);
        // The gradients over codes have few threads, and run beside the others.
        let branch = &self.branch;
        branch.join(stream)?;
        for class in &self.weight_tasks {
            let (grid, block) = class.shape();
            launch! {
                stream, &kernels.gradient[class.class], grid, block, 0, &class.tasks.list,
                &self.users.list, &self.environments, &self.values, &stride, &self.gradients
            }
        }
        if self.column_tasks.len > 0 {
            let grid = (self.column_tiles[0], self.column_tiles[1], self.column_tasks.len as u32);
            launch! {
                branch, &kernels.columns, grid, (32, 1, 1), columns_memory(self.parts),
                &self.column_tasks.list, &self.users.list, &self.environments, &self.codes,
                &self.step, &stride, &self.gradients
            }
        }
        stream.join(branch)?;
        if self.sums.len > 0 {
            let grid = (512, self.sums.len as u32, 1);
            launch! {
                stream, &kernels.combine, grid, (32, 8, 1), 0, &self.sums.list, &self.gradients,
                &self.gradients
            }
        }
        if self.penalized.len > 0 {
            let grid = (8, self.penalized.len as u32, 1);
            launch! {
                stream, &kernels.penalize, grid, (256, 1, 1), 0, &self.infos.list,
                &self.penalized.list, &self.roughness, &self.weights, &self.gradients
            }
        }
        Ok(())
    }

    /// Computes the gradients with respect to the free parameters, takes a step, and normalizes the
    /// weights again.
    fn update(&self) -> Result<(), CudaError> {
        let (stream, kernels) = (&self.stream, &self.kernels);
        let chunks = (self.total / ALIGNMENT) as u32;
        let revisions = kernels.revisions.as_ref().filter(|_| self.widest <= tile(2));
        let is_fused = revisions.is_some() && self.settings.clip.is_none();
        if is_fused {
            self.branch.join(stream)?;
        }
        self.gram(&kernels.projection, &self.gradients, &self.weights)?;
        let is_stiefel = i32::from(self.settings.is_stiefel);
        for class in &self.grams {
            let grid = (class.tasks.len as u32, 1, 1);
            launch! {
                stream, &kernels.symmetrize, grid, (256, 1, 1), 0, &class.tasks.list, &is_stiefel,
                &class.parts, &self.part_stride, &self.small
            }
        }
        let gradients = &self.gradients;
        if let (Some([step, _]), true) = (revisions, is_fused) {
            self.revise(step, [gradients, &self.weights, gradients])?;
            self.normalize(false, gradients, &self.weights)?;
            // The weight of the output is small, and learns beside the others.
            self.project_outputs(&self.branch)?;
            for info in &self.outputs {
                let len = info.k as usize * info.columns as usize;
                let (first, count) = (info.at as usize / ALIGNMENT, len.div_ceil(ALIGNMENT));
                self.advance(&self.branch, first, count)?;
            }
            self.normalize_outputs(&self.branch, gradients, &self.weights)?;
            stream.join(&self.branch)?;
        } else {
            self.subtract(&kernels.subtract, gradients, &self.weights, gradients)?;
            self.project_outputs(stream)?;
            if self.settings.clip.is_some() {
                let count = chunks as i32;
                launch! {
                    stream, &kernels.norms, (chunks, 1, 1), (256, 1, 1), 0, &self.gradients,
                    &self.norm_parts
                }
                launch! {
                    stream, &kernels.clip, (1, 1, 1), (256, 1, 1), 0, &self.norm_parts, &count,
                    &self.step, &self.clip_by
                }
            }
            self.advance(stream, 0, chunks as usize)?;
            self.normalize(revisions.is_none(), gradients, &self.weights)?;
            self.normalize_outputs(stream, gradients, &self.weights)?;
        }
        self.average()
    }

    /// Removes the parts of the outputs' gradients along the weights.
    fn project_outputs(&self, stream: &Arc<CudaStream>) -> Result<(), CudaError> {
        for info in &self.outputs {
            launch! {
                stream, &self.kernels.output_gradient, (1, 1, 1), (256, 1, 1), 0, info,
                &self.weights, &self.gradients
            }
        }
        Ok(())
    }

    /// V / ‖V‖ for the outputs.
    fn normalize_outputs(
        &self,
        stream: &Arc<CudaStream>,
        from: &CudaSlice<f32>,
        to: &CudaSlice<f32>,
    ) -> Result<(), CudaError> {
        for info in &self.outputs {
            launch! {
                stream, &self.kernels.output_weight, (1, 1, 1), (256, 1, 1), 0, info, from, to
            }
        }
        Ok(())
    }

    /// Replaces the gradients in these blocks of numbers by V = W + step.
    fn advance(
        &self,
        stream: &Arc<CudaStream>,
        first: usize,
        count: usize,
    ) -> Result<(), CudaError> {
        let first = first as i32;
        launch! {
            stream, &self.kernels.advance, (count as u32, 1, 1), (256, 1, 1), 0,
            &self.infos.list, &self.owners, &first, &self.step, &self.clip_by, &self.weights,
            &self.means, &self.squares, &self.gradients
        }
        Ok(())
    }

    /// A − S B for every weight, with its square matrix S, or a step along that, by the kernel.
    fn revise(
        &self,
        kernels: &[CudaFunction; 3],
        [a, b, to]: [&CudaSlice<f32>; 3],
    ) -> Result<(), CudaError> {
        for class in &self.grams {
            let columns = self.updates.iter().find(|u| u.class == class.class);
            // Four tiles of 16 columns to each of four warps.
            let across = columns.map_or(1, |u| (u.tiles[0] as usize * ROWS).div_ceil(256)) as u32;
            let grid = (across, class.tasks.len as u32, 1);
            let (kernel, list) = (&kernels[class.class], &class.tasks.list);
            launch! {
                self.stream, kernel, grid, (128, 1, 1), 0, list, &self.small, a, b, to, &self.step,
                &self.means, &self.squares
            }
        }
        Ok(())
    }

    /// X Yᴴ of every weight.
    fn gram(
        &self,
        kernels: &[CudaFunction; 3],
        x: &CudaSlice<f32>,
        y: &CudaSlice<f32>,
    ) -> Result<(), CudaError> {
        for class in &self.grams {
            let (grid, block) = class.shape();
            launch! {
                self.stream, &kernels[class.class], grid, block, 0, &class.tasks.list, x,
                y, &class.parts, &self.part_stride, &self.small
            }
        }
        Ok(())
    }

    /// A − S B for every weight, with its square matrix S.
    fn subtract(
        &self,
        kernels: &[CudaFunction; 3],
        a: &CudaSlice<f32>,
        b: &CudaSlice<f32>,
        to: &CudaSlice<f32>,
    ) -> Result<(), CudaError> {
        let (splits, split_stride) = (1_i32, 0_i64);
        for class in &self.updates {
            let (grid, block) = class.shape();
            let components = if class.class < 2 { tile(class.class) } else { self.widest };
            let memory = contraction_memory(class.class, components, self.parts);
            launch! {
                self.stream, &kernels[class.class], grid, block, memory,
                &class.tasks.list, &splits, &split_stride, &self.small, a, b, to
            }
        }
        Ok(())
    }

    /// L⁻¹ V with L Lᴴ = V Vᴴ for all weights but the outputs. Factors have fewer bits if it need not
    /// be exact.
    fn normalize(
        &self,
        is_exact: bool,
        from: &CudaSlice<f32>,
        to: &CudaSlice<f32>,
    ) -> Result<(), CudaError> {
        let kernels = &self.kernels;
        self.gram(if is_exact { &kernels.gram } else { &kernels.projection }, from, from)?;
        let memory = (self.widest * self.widest * 4 * self.parts) as u32;
        for class in &self.grams {
            let grid = (class.tasks.len as u32, 1, 1);
            launch! {
                self.stream, &kernels.cholesky, grid, (256, 1, 1), memory, &class.tasks.list,
                &class.parts, &self.part_stride, &self.small
            }
        }
        // V − (I − L⁻¹) V.
        match &kernels.revisions {
            Some([_, revise]) if !is_exact => self.revise(revise, [from, from, to])?,
            _ => self.subtract(&kernels.retract, from, from, to)?,
        }
        Ok(())
    }
}
