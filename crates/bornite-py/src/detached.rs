//! Runs library code with the interpreter released, in a thread pool that exists, with panics converted to exceptions.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::exception::BorniteError;

/// The process that loaded the module. It owns the threads of rayon's global pool.
static HOME: OnceLock<u32> = OnceLock::new();

/// Thread pools by their number of threads (0 for all cores), with the process that created them. A forked process does
/// not inherit threads.
static POOLS: Mutex<BTreeMap<usize, (u32, Arc<ThreadPool>)>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The number of threads for work of this thread; 0 for all cores.
    static THREADS: Cell<usize> = const { Cell::new(0) };
}

/// Sets the number of threads for work of this thread, 0 for all cores, and returns the previous number.
#[pyfunction]
pub(crate) fn set_threads(count: usize) -> usize {
    THREADS.replace(count)
}

/// Remembers the process, when the module is loaded.
pub(crate) fn remember_process() {
    HOME.get_or_init(process::id);
}

/// Runs work with the interpreter released.
///
/// A process forked from this one, as `multiprocessing` does on Linux, has none of its threads: waiting for them would
/// never end. Such a process gets a pool of its own.
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

/// The thread pool for work of this thread; `None` for rayon's global pool.
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
    // The pool of a parent process has no threads here. Dropping it must not wait for them.
    if let Some((_, other)) = pools.insert(threads, (own, Arc::clone(&pool))) {
        std::mem::forget(other);
    }
    Ok(Some(pool))
}
