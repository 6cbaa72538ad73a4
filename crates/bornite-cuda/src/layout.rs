//! The memory layout of learning, and the tasks of a pass over the tree.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DeviceRepr};

use crate::error::CudaError;
use crate::kernels::{ROWS, class_of, tile, tiles};
use crate::plan::{Plan, Step};
use crate::tasks::{Contraction, Descent, Settle};

/// The maximum width of a second input that fits into one tile.
const WIDEST_TILE: usize = 64;
/// The work that the sum of shares costs, in products of tiles with 16 places.
const SHARED: f64 = 13.0;
/// The maximum number of shares that a sum is split into.
const SPLITS: usize = 16;

/// A list of tasks on the device.
pub(crate) struct Tasks<T> {
    pub(crate) list: CudaSlice<T>,
    pub(crate) len: usize,
}

impl<T: DeviceRepr + Default + Clone> Tasks<T> {
    pub(crate) fn new(stream: &Arc<CudaStream>, list: &[T]) -> Result<Self, CudaError> {
        let len = list.len();
        let list = if list.is_empty() {
            stream.clone_htod(&[T::default()])?
        } else {
            stream.clone_htod(list)?
        };
        Ok(Self { list, len })
    }
}

/// Contractions of one class of widths whose inputs are ready, and where their vectors go.
pub(crate) struct Group {
    pub(crate) class: usize,
    pub(crate) tasks: Tasks<Contraction>,
    /// The same tasks with weights in quads.
    pub(crate) in_quads: Option<Tasks<Contraction>>,
    pub(crate) tiles: [u32; 2],
    pub(crate) splits: i32,
    pub(crate) split_stride: i64,
    pub(crate) settles: Tasks<Settle>,
    /// Whether the vectors are settled by the blocks that compute them.
    pub(crate) is_settled: bool,
    /// The maximum number of components that are summed over at once.
    pub(crate) components: usize,
}

/// What products of one class of widths send down to both inputs, and where it goes.
pub(crate) struct Descents {
    pub(crate) class: usize,
    pub(crate) tasks: Tasks<Descent>,
    pub(crate) splits: i32,
    pub(crate) split_stride: i64,
    /// The vectors for first inputs, which are settled by the blocks that compute them, and for
    /// second inputs, which are unless they are split into shares.
    pub(crate) settles: [Tasks<Settle>; 2],
    pub(crate) components: usize,
}

/// The positions of everything, while tasks are listed.
pub(crate) struct Layout<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) widths: Vec<usize>,
    /// The position of the first component of every step.
    pub(crate) offsets: Vec<usize>,
    pub(crate) stride: usize,
    pub(crate) places: Vec<(usize, usize)>,
    /// The positions of weights in quads along their columns and along their rows, if there are
    /// any.
    pub(crate) quads: Option<Vec<[usize; 2]>>,
    /// The number of blocks of the narrowest class that run at a time.
    pub(crate) slots: usize,
}

impl Layout<'_> {
    pub(crate) fn at(&self, component: usize) -> i64 {
        (component * self.stride) as i64
    }

    /// K, K₁ and K₂ of a step with a weight. For a sum, K₁ is 1.
    pub(crate) fn shape(&self, step: usize) -> [usize; 3] {
        let k = self.widths[step];
        match self.plan.steps[step] {
            Step::Kronecker { inputs, .. } => [k, self.widths[inputs[0]], self.widths[inputs[1]]],
            Step::Sum { input, .. } => [k, 1, self.widths[input]],
            Step::Codes { weight, .. } => [k, 1, self.plan.weights[weight].columns],
            Step::Functions { .. } | Step::Hadamard { .. } => [k, 1, k],
        }
    }

    pub(crate) fn contraction(&self) -> Contraction {
        let stride = self.stride as i32;
        Contraction { x: -1, stride, n: stride, ..Contraction::default() }
    }

    /// W (a ⊗ b), or W a.
    pub(crate) fn forward(&self, step: usize) -> Option<Contraction> {
        let (weight, inputs) = (self.plan.steps[step].weight()?, self.plan.steps[step].inputs());
        let [k, k1, k2] = self.shape(step).map(|n| n as i32);
        let last = *inputs.last()?;
        let x = if inputs.len() == 2 { self.at(self.offsets[inputs[0]]) } else { -1 };
        let w = self.places[weight].0 as i64;
        let y = self.at(self.offsets[last]);
        Some(Contraction {
            w,
            x,
            y,
            sm: k1 * k2,
            sp: k2,
            sq: 1,
            m: k,
            p: k1,
            q: k2,
            ..self.contraction()
        })
    }

    /// The same with the weight in quads.
    fn in_quads(&self, step: usize, task: Contraction) -> Option<Contraction> {
        let (weight, [_, k1, k2]) = (self.plan.steps[step].weight()?, self.shape(step));
        let [along_columns, _] = self.quads.as_ref()?[weight];
        let across = k2.div_ceil(4) as i32;
        Some(Contraction { w: along_columns as i64, sm: k1 as i32 * across, sp: across, ..task })
    }

    /// What a step without a descent sends down to its inputs, with the input of each task.
    pub(crate) fn reverse(&self, step: usize) -> Vec<(usize, Contraction)> {
        if matches!(self.plan.steps[step], Step::Kronecker { .. })
            && self.shape(step)[2] <= WIDEST_TILE
        {
            return Vec::new();
        }
        let Some(weight) = self.plan.steps[step].weight() else { return Vec::new() };
        let [k, k1, k2] = self.shape(step).map(|n| n as i32);
        let (w, x) = (self.places[weight].0 as i64, self.at(self.offsets[step]));
        let base = Contraction { w, x, p: k, sp: k1 * k2, ..self.contraction() };
        let sent = match *self.plan.steps[step].inputs() {
            [a, b] => {
                let [at_a, at_b] = [a, b].map(|n| self.at(self.offsets[n]));
                vec![
                    (a, Contraction { y: at_b, m: k1, sm: k2, q: k2, sq: 1, ..base }),
                    (b, Contraction { y: at_a, m: k2, sm: 1, q: k1, sq: k2, ..base }),
                ]
            }
            [a] => {
                vec![(
                    a,
                    Contraction { x: -1, y: x, p: 1, sp: 0, m: k2, sm: 1, q: k, sq: k2, ..base },
                )]
            }
            _ => Vec::new(),
        };
        // Functions have no weights below them, so nothing is sent to them.
        sent.into_iter()
            .filter(|(n, _)| !matches!(self.plan.steps[*n], Step::Functions { .. }))
            .collect()
    }

    /// Groups the contractions whose results go to steps, and grows the scratch memory that they
    /// need.
    pub(crate) fn groups(
        &self,
        stream: &Arc<CudaStream>,
        tasks: &[(usize, Contraction)],
        is_forward: bool,
        scratch: &mut usize,
    ) -> Result<Vec<Group>, CudaError> {
        let mut groups = Vec::new();
        for class in 0..3 {
            let of_class =
                |(step, _): &&(usize, Contraction)| class_of(self.widths[*step]) == class;
            let chosen: Vec<(usize, Contraction)> =
                tasks.iter().filter(of_class).copied().collect();
            let Some(longest) = chosen.iter().map(|(_, t)| t.p).max() else { continue };
            let components = chosen.iter().map(|(_, t)| t.q as usize).max().unwrap_or(1);
            let (mut list, mut settles, mut place) = (Vec::new(), Vec::new(), 0);
            let (mut in_quads, mut most) = (Vec::new(), 0);
            for (step, task) in chosen {
                let (width, from) = (self.widths[step], self.at(place));
                let task = Contraction { out: from, ..task };
                list.push(task);
                in_quads.extend(self.in_quads(step, task));
                settles.push(self.settle(step, from));
                place += width;
                most = most.max(width);
            }
            let tiles = [tiles(self.stride, ROWS), tiles(most, tile(class))];
            let blocks = list.len() * (tiles[0] * tiles[1]) as usize;
            let work = longest as usize * components.div_ceil(16);
            let splits = splits(blocks, self.slots >> class, longest as usize, work);
            // A block settles vectors on the way up if it has all of their components.
            let is_settled = splits == 1 && (tiles[1] == 1 || !is_forward);
            if !is_settled {
                *scratch = (*scratch).max(place * self.stride * splits);
            }
            groups.push(Group {
                is_settled,
                class,
                tasks: Tasks::new(stream, &list)?,
                in_quads: if is_forward && self.quads.is_some() {
                    Some(Tasks::new(stream, &in_quads)?)
                } else {
                    None
                },
                tiles,
                splits: splits as i32,
                split_stride: self.at(place),
                settles: Tasks::new(stream, &settles)?,
                components,
            });
        }
        Ok(groups)
    }

    /// What products with narrow second inputs send down.
    pub(crate) fn descents(
        &self,
        stream: &Arc<CudaStream>,
        steps: &[usize],
        scratch: &mut usize,
    ) -> Result<Vec<Descents>, CudaError> {
        let mut groups = Vec::new();
        for class in 0..3 {
            let (mut list, mut chosen) = (Vec::new(), [Vec::new(), Vec::new()]);
            let (mut components, mut longest) = (0, 0);
            for &step in steps {
                let Step::Kronecker { inputs: [a, b], weight } = self.plan.steps[step] else {
                    continue;
                };
                let [k, k1, k2] = self.shape(step);
                if k2 > WIDEST_TILE || class_of(k2) != class {
                    continue;
                }
                let [e, at_a, at_b] = [step, a, b].map(|n| self.at(self.offsets[n]));
                list.push((
                    Descent {
                        w: self
                            .quads
                            .as_ref()
                            .map_or(self.places[weight].0, |quads| quads[weight][1])
                            as i64,
                        e,
                        a: at_a,
                        b: at_b,
                        to_b: 0,
                        k: k as i32,
                        k1: k1 as i32,
                        k2: k2 as i32,
                        stride: self.stride as i32,
                    },
                    b,
                ));
                chosen[0].push(self.settle(a, 0));
                components = components.max(k);
                longest = longest.max(k1);
            }
            if list.is_empty() {
                continue;
            }
            let (mut tasks, mut place) = (Vec::new(), 0);
            for (task, b) in list {
                let to_b = self.at(place);
                tasks.push(Descent { to_b, ..task });
                chosen[1].push(self.settle(b, to_b));
                place += task.k2 as usize;
            }
            let blocks = tasks.len() * tiles(self.stride, ROWS) as usize;
            let work = longest * components.div_ceil(16);
            let splits = splits(blocks, self.slots >> class, longest, work);
            if splits > 1 {
                *scratch = (*scratch).max(place * splits * self.stride);
            }
            groups.push(Descents {
                class,
                tasks: Tasks::new(stream, &tasks)?,
                splits: splits as i32,
                split_stride: self.at(place),
                settles: [Tasks::new(stream, &chosen[0])?, Tasks::new(stream, &chosen[1])?],
                components,
            });
        }
        Ok(groups)
    }

    pub(crate) fn settle(&self, step: usize, from: i64) -> Settle {
        let (to, width) = (self.offsets[step] as i32, self.widths[step] as i32);
        Settle { from, to, width, index: step as i32, unused: 0 }
    }
}

/// The number of shares of a sum that takes the least time, given the number of blocks, the number
/// that run at a time, and the work of a block: its products of tiles with 16 places.
pub(crate) fn splits(blocks: usize, slots: usize, most: usize, work: usize) -> usize {
    let time = |s: usize| {
        let rounds = (blocks * s).div_ceil(slots) as f64 / s as f64;
        rounds * work as f64 + if s > 1 { SHARED } else { 0.0 }
    };
    let most = most.clamp(1, SPLITS);
    let best = (1..=most).map(time).fold(f64::INFINITY, f64::min);
    (1..=most).find(|&s| time(s) <= 1.05 * best).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::splits;

    /// No round of blocks is nearly empty if more shares can fill it.
    #[test]
    fn shares_fill_the_device() {
        assert_eq!(splits(4, 264, 64, 1000), 16);
        assert_eq!(splits(176, 264, 64, 1000), 3);
        assert_eq!(splits(264, 264, 64, 1000), 1);
        assert_eq!(splits(1568, 264, 64, 1000), 1);
        assert_eq!(splits(4, 264, 1, 1000), 1);
        // Sums that are short are not worth sharing.
        assert_eq!(splits(4, 264, 16, 12), 1);
    }
}
