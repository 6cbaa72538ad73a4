//! Work of the library with the interpreter released: in a pool of threads that exists, and with every panic an exception.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::exception::BorniteError;

/// The process that the module was loaded into. Its threads are those of rayon's own pool.
static HOME: OnceLock<u32> = OnceLock::new();

/// Pools of the process that made them: with this many threads, or with all if that is 0, in a process that was forked from
/// one with threads.
static POOLS: Mutex<BTreeMap<usize, (u32, Arc<ThreadPool>)>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The threads that work of this thread has; 0 is all.
    static THREADS: Cell<usize> = const { Cell::new(0) };
}

/// Sets how many threads the work of this thread has, 0 for all, and returns how many it had.
#[pyfunction]
pub(crate) fn set_threads(count: usize) -> usize {
    THREADS.replace(count)
}

/// Remembers the process, when the module is loaded.
pub(crate) fn remember_process() {
    HOME.get_or_init(process::id);
}

/// Does work with the interpreter released.
///
/// A process forked from this one, as `multiprocessing` makes on Linux, has none of its threads: work that waits for them would
/// wait forever. It gets a pool of its own.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let pool = pool()?;
    let run = AssertUnwindSafe(|| match pool {
        Some(pool) => pool.install(work),
        None => work(),
    });
    py.detach(|| catch_unwind(run)).map_err(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("a panic");
        BorniteError::new_err(format!("internal error: {text}; please report it"))
    })
}

/// The pool that work of this thread has; `None` if that is rayon's own.
fn pool() -> PyResult<Option<Arc<ThreadPool>>> {
    let (own, threads) = (process::id(), THREADS.get());
    if threads == 0 && *HOME.get_or_init(process::id) == own {
        return Ok(None);
    }
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((process, pool)) = pools.get(&threads)
        && *process == own
    {
        return Ok(Some(Arc::clone(pool)));
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = Arc::new(pool.map_err(|e| BorniteError::new_err(format!("no threads: {e}")))?);
    // The pool of a process before this one has no threads here; it must not wait for them when it is dropped.
    if let Some((_, other)) = pools.insert(threads, (own, Arc::clone(&pool))) {
        std::mem::forget(other);
    }
    Ok(Some(pool))
}
