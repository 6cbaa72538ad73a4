use cudarc::driver::DriverError;
use cudarc::nvrtc::CompileError;

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// There is no driver.
    #[error("the driver library libcuda was not found")]
    NoDriver,
    /// There is a driver and no device that works.
    #[error("{0}")]
    NoDevice(String),
    /// The run-time compiler is not there.
    #[error(
        "the compiler library libnvrtc was not found: install the CUDA toolkit, or add its libraries to the library path"
    )]
    NoCompiler,
    /// A device that lacks what the kernels need.
    #[error("{name} has compute capability {major}.{minor}; at least 8.0 is needed")]
    TooOld {
        /// The device.
        name: String,
        /// Its capability.
        major: i32,
        /// The part after the point.
        minor: i32,
    },
    /// A layer too wide for the kernels.
    #[error("a layer has width {width}, but it supports widths up to {most}")]
    TooWide {
        /// Its width.
        width: usize,
        /// The widest.
        most: usize,
    },
    /// The kernels do not compile.
    #[error("its kernels do not compile: {0}")]
    Compile(String),
    /// The driver reports an error.
    #[error("its driver reports: {0}")]
    Driver(String),
    /// Samples of variables that are not finite.
    #[error("it supports only samples of finite variables")]
    Continuous,
    /// A row that its memory does not hold.
    #[error("a row takes {needed} bytes, but only {free} bytes of its memory are free")]
    Memory {
        /// What a row takes.
        needed: usize,
        /// What is there.
        free: usize,
    },
    /// Numbers of another fit, or more rows than a batch has.
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
