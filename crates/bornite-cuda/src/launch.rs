//! How kernels are launched.

/// Launches a kernel.
macro_rules! launch {
    ($stream:expr, $function:expr, $grid:expr, $block:expr, $shared:expr, $($arg:expr),+) => {{
        let config = LaunchConfig { grid_dim: $grid, block_dim: $block, shared_mem_bytes: $shared };
        let mut builder = $stream.launch_builder($function);
        $(builder.arg($arg);)+
        #[expect(unsafe_code, reason = "kernels are launched by their addresses")]
        // SAFETY: the arguments have the types and order of the kernel's parameters, and every
        // position in its tasks is inside the buffers, which belong to the caller and are used in
        // one stream.
        unsafe { builder.launch(config) }?;
    }};
}

pub(crate) use launch;
