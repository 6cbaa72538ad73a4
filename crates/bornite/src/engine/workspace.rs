//! Memory that passes reuse: within a block of rows, between blocks, and between calls.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use super::Buffer;
use super::lanes::Real;
use super::message::Message;
use crate::schedule::{Grouping, Places, Planner};

/// The memory that a pass over a block of rows needs.
#[derive(Debug)]
pub(crate) struct Workspace<F> {
    free: Vec<Message<F>>,
    pub(crate) scratch: [Buffer<F>; 4],
    pub(crate) planner: Planner,
    pub(crate) cells: Vec<f64>,
    /// log₂ of the factor that has been divided out of each row's p.
    pub(crate) log2: Vec<i64>,
}

impl<F: Real> Default for Workspace<F> {
    fn default() -> Self {
        let scratch = std::array::from_fn(|_| Buffer::zeros(0));
        Self {
            free: Vec::new(),
            scratch,
            planner: Planner::new(Grouping::ByKind, F::LANES),
            cells: Vec::new(),
            log2: Vec::new(),
        }
    }
}

impl<F: Real> Workspace<F> {
    /// Starts a block of `count` rows.
    pub(crate) fn begin(&mut self, count: usize) {
        self.log2.clear();
        self.log2.resize(count, 0);
        self.planner.begin(count);
    }

    /// A message with its rows in these places. Its numbers are unspecified.
    pub(crate) fn take(&mut self, complex: bool, width: usize, places: &Arc<Places>) -> Message<F> {
        let mut message = self.spare();
        message.reset(complex, width, places);
        message
    }

    /// A message whose memory can be reused.
    pub(crate) fn spare(&mut self) -> Message<F> {
        self.free.pop().unwrap_or_default()
    }

    /// Returns the memory of a message.
    pub(crate) fn give(&mut self, message: Message<F>) {
        self.free.push(message);
    }

    /// The number of bytes that are held in tiles.
    fn bytes(&self) -> usize {
        let messages: usize = self.free.iter().map(Message::room).sum();
        let scratch: usize = self.scratch.iter().map(|s| s.len()).sum();
        (messages + scratch) * size_of::<F>()
    }

    /// Makes sure that each piece of scratch memory has at least `len` reals.
    pub(crate) fn grow_scratch(&mut self, len: usize) {
        for s in &mut self.scratch {
            s.grow(len);
        }
    }
}

/// Workspaces that are kept between calls, so that a steady stream of small batches does not
/// allocate.
#[derive(Debug)]
pub(crate) struct Pool<F>(Mutex<Vec<Workspace<F>>>);

impl<F> Default for Pool<F> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// The maximum size of a workspace that is kept, in bytes. One with many mixed messages is dropped.
const MAX_KEPT_BYTES: usize = 1 << 22;
/// The maximum number of workspaces that are kept.
const MAX_KEPT: usize = 64;

impl<F: Real> Pool<F> {
    /// Borrows a workspace, which returns to the pool when dropped.
    pub(crate) fn lend(&self) -> PooledWorkspace<'_, F> {
        let workspace = self.lock(Vec::pop).unwrap_or_default();
        PooledWorkspace { workspace, pool: self }
    }

    fn lock<T>(&self, f: impl FnOnce(&mut Vec<Workspace<F>>) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A workspace that returns to its pool when dropped.
#[derive(Debug)]
pub(crate) struct PooledWorkspace<'a, F: Real> {
    workspace: Workspace<F>,
    pool: &'a Pool<F>,
}

impl<F: Real> Deref for PooledWorkspace<'_, F> {
    type Target = Workspace<F>;

    fn deref(&self) -> &Workspace<F> {
        &self.workspace
    }
}

impl<F: Real> DerefMut for PooledWorkspace<'_, F> {
    fn deref_mut(&mut self) -> &mut Workspace<F> {
        &mut self.workspace
    }
}

impl<F: Real> Drop for PooledWorkspace<'_, F> {
    fn drop(&mut self) {
        let workspace = std::mem::take(&mut self.workspace);
        if workspace.bytes() <= MAX_KEPT_BYTES {
            self.pool.lock(|spare| {
                if spare.len() < MAX_KEPT {
                    spare.push(workspace);
                }
            });
        }
    }
}
