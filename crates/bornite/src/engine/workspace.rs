//! Memory that passes reuse: within a block of rows, from block to block, and from call to call.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use super::Buffer;
use super::lanes::Real;
use super::message::Message;
use crate::schedule::{Grouping, Places, Planner};

/// The memory that the passes over one block of rows need, kept from block to block.
#[derive(Debug)]
pub(crate) struct Workspace<F> {
    free: Vec<Message<F>>,
    pub(crate) scratch: [Buffer<F>; 4],
    pub(crate) planner: Planner,
    pub(crate) cells: Vec<f64>,
    /// log₂ of what has been divided out of each row's p.
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
    /// Begins a block of `count` rows: nothing has been divided out of them.
    pub(crate) fn begin(&mut self, count: usize) {
        self.log2.clear();
        self.log2.resize(count, 0);
        self.planner.begin(count);
    }

    /// A message in these places, whose numbers may be anything.
    pub(crate) fn take(&mut self, complex: bool, width: usize, places: &Arc<Places>) -> Message<F> {
        let mut message = self.spare();
        message.reset(complex, width, places);
        message
    }

    /// The memory of a message that is no longer needed.
    pub(crate) fn spare(&mut self) -> Message<F> {
        self.free.pop().unwrap_or_default()
    }

    pub(crate) fn give(&mut self, message: Message<F>) {
        self.free.push(message);
    }

    /// Bytes of tiles that are kept.
    fn bytes(&self) -> usize {
        let messages: usize = self.free.iter().map(Message::room).sum();
        let scratch: usize = self.scratch.iter().map(|s| s.len()).sum();
        (messages + scratch) * size_of::<F>()
    }

    pub(crate) fn grow_scratch(&mut self, len: usize) {
        for s in &mut self.scratch {
            s.grow(len);
        }
    }
}

/// Workspaces between calls, so that a steady stream of small batches allocates nothing.
#[derive(Debug)]
pub(crate) struct Pool<F>(Mutex<Vec<Workspace<F>>>);

impl<F> Default for Pool<F> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// The maximum number of bytes of a workspace that is kept: one with many mixed messages is not.
const KEPT: usize = 1 << 22;
/// The maximum number of workspaces that are kept.
const SPARE: usize = 64;

impl<F: Real> Pool<F> {
    /// A workspace, until it is dropped.
    pub(crate) fn lend(&self) -> Lent<'_, F> {
        let workspace = self.lock(Vec::pop).unwrap_or_default();
        Lent { workspace, pool: self }
    }

    fn lock<T>(&self, f: impl FnOnce(&mut Vec<Workspace<F>>) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A workspace that goes back to its pool.
#[derive(Debug)]
pub(crate) struct Lent<'a, F: Real> {
    workspace: Workspace<F>,
    pool: &'a Pool<F>,
}

impl<F: Real> Deref for Lent<'_, F> {
    type Target = Workspace<F>;

    fn deref(&self) -> &Workspace<F> {
        &self.workspace
    }
}

impl<F: Real> DerefMut for Lent<'_, F> {
    fn deref_mut(&mut self) -> &mut Workspace<F> {
        &mut self.workspace
    }
}

impl<F: Real> Drop for Lent<'_, F> {
    fn drop(&mut self) {
        let workspace = std::mem::take(&mut self.workspace);
        if workspace.bytes() <= KEPT {
            self.pool.lock(|spare| {
                if spare.len() < SPARE {
                    spare.push(workspace);
                }
            });
        }
    }
}
