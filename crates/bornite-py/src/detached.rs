//! Work of the library with the interpreter released: in a pool of threads that exists, and with every panic an exception.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::exception::BorniteError;

/// The process that the module was loaded into. Its threads are those of rayon's own pool.
static HOME: OnceLock<u32> = OnceLock::new();

/// The pool of a process that was forked from one with threads, and that process.
static FORKED: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Remembers the process, when the module is loaded.
pub(crate) fn remember_process() {
    HOME.get_or_init(process::id);
}

/// Does work with the interpreter released.
///
/// A process forked from this one, as `multiprocessing` makes on Linux, has none of its threads: work that waits for them would
/// wait forever. It gets a pool of its own.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let pool = pool_of_fork()?;
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

/// The pool of this process where it was forked; `None` where it was not.
fn pool_of_fork() -> PyResult<Option<Arc<ThreadPool>>> {
    let own = process::id();
    if *HOME.get_or_init(process::id) == own {
        return Ok(None);
    }
    let mut forked = FORKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((process, pool)) = &*forked
        && *process == own
    {
        return Ok(Some(Arc::clone(pool)));
    }
    let pool = ThreadPoolBuilder::new().build();
    let pool = Arc::new(pool.map_err(|e| BorniteError::new_err(format!("no threads: {e}")))?);
    // The pool of a process before this one has no threads here; it must not wait for them when it is dropped.
    if let Some((_, other)) = forked.replace((own, Arc::clone(&pool))) {
        std::mem::forget(other);
    }
    Ok(Some(pool))
}
