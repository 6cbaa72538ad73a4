use cudarc::driver::DriverError;
use cudarc::nvrtc::CompileError;

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The driver is missing.
    #[error("the driver library libcuda was not found")]
    NoDriver,
    /// There is a driver, but no device that works.
    #[error("{0}")]
    NoDevice(String),
    /// The run-time compiler is missing.
    #[error(
        "the compiler library libnvrtc was not found: install the CUDA toolkit, or add its libraries to the library path"
    )]
    NoCompiler,
    /// A device without the features that the kernels need.
    #[error("{name} has compute capability {major}.{minor}; at least 8.0 is needed")]
    TooOld {
        /// The device.
        name: String,
        /// The major version of its compute capability.
        major: i32,
        /// The minor version.
        minor: i32,
    },
    /// A layer that is too wide for the kernels.
    #[error("a layer has width {width}, but it supports widths up to {most}")]
    TooWide {
        /// The width of the layer.
        width: usize,
        /// The maximum width.
        most: usize,
    },
    /// The kernels do not compile.
    #[error("its kernels do not compile: {0}")]
    Compile(String),
    /// The driver reports an error.
    #[error("its driver reports: {0}")]
    Driver(String),
    /// A request for samples of variables that are not finite.
    #[error("it supports only samples of finite variables")]
    Continuous,
    /// A row that does not fit into device memory.
    #[error("a row takes {needed} bytes, but only {free} bytes of its memory are free")]
    Memory {
        /// The number of bytes that a row takes.
        needed: usize,
        /// The number of bytes that are free.
        free: usize,
    },
    /// Numbers that do not match the weights, or more rows than a batch allows.
    #[error("the numbers do not match the weights, or the rows do not match the batch")]
    Shape,
}

impl From<DriverError> for CudaError {
    fn from(error: DriverError) -> Self {
        let text = error
            .error_string()
            .map_or_else(|_| format!("{error:?}"), |s| s.to_string_lossy().into());
        Self::Driver(text)
    }
}

impl From<CompileError> for CudaError {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::CompileError { log, .. } => Self::Compile(log.to_string_lossy().into()),
            other => Self::Compile(format!("{other:?}")),
        }
    }
}
