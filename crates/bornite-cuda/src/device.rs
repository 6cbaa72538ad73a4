use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::CUdevice_attribute;
use cudarc::driver::{CudaContext, CudaModule, CudaStream};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};

use crate::error::CudaError;
use crate::plan::Factors;

/// The kernels to compile: those of learning or of queries, in one of their variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Learning { complex: bool, factors: Factors },
    Queries { complex: bool, double: bool },
}

impl Source {
    fn text(self) -> &'static str {
        match self {
            Self::Learning { factors: Factors::Bfloat16, .. } => {
                concat!(include_str!("kernels.cu"), include_str!("bfloat16.cu"))
            }
            Self::Learning { factors: Factors::Single | Factors::Tf32, .. } => {
                include_str!("kernels.cu")
            }
            Self::Queries { .. } => include_str!("queries.cu"),
        }
    }

    fn defines(self) -> [String; 2] {
        let define = |name: &str, value: u8| format!("-D{name}={value}");
        match self {
            Self::Learning { complex, factors } => {
                let fewer_bits = match factors {
                    Factors::Single => 0,
                    Factors::Tf32 => 1,
                    Factors::Bfloat16 => 2,
                };
                [define("COMPLEX", complex.into()), define("FEWER_BITS", fewer_bits)]
            }
            Self::Queries { complex, double } => {
                [define("COMPLEX", complex.into()), define("DOUBLE", double.into())]
            }
        }
    }
}

/// The kernels that have been compiled.
type Modules = Vec<(Source, Arc<CudaModule>)>;

/// The first CUDA device of this machine.
#[derive(Clone)]
pub struct Device {
    context: Arc<CudaContext>,
    name: String,
    capability: (i32, i32),
    modules: Arc<Mutex<Modules>>,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Device {
    /// Opens the device.
    ///
    /// # Errors
    /// The driver, the compiler or a device is missing, or the device is too old.
    pub fn open() -> Result<Self, CudaError> {
        #[expect(unsafe_code, reason = "asks whether libraries can be loaded")]
        // SAFETY: NVIDIA's libraries have no preconditions for being loaded.
        let (driver, compiler) = unsafe {
            (cudarc::driver::sys::is_culib_present(), cudarc::nvrtc::sys::is_culib_present())
        };
        if !driver {
            return Err(CudaError::NoDriver);
        }
        let none = |error: cudarc::driver::DriverError| match CudaError::from(error) {
            CudaError::Driver(text) => CudaError::NoDevice(text),
            other => other,
        };
        let context = CudaContext::new(0).map_err(none)?;
        if !compiler {
            return Err(CudaError::NoCompiler);
        }
        let (name, capability) = (context.name()?, context.compute_capability()?);
        let (major, minor) = capability;
        if major < 8 {
            return Err(CudaError::TooOld { name, major, minor });
        }
        #[expect(
            unsafe_code,
            reason = "every learner and evaluator has a stream, whose order is the order of its calls"
        )]
        // SAFETY: a buffer is used in the stream of the one that owns it, so that none is used by
        // two at a time.
        unsafe {
            context.disable_event_tracking();
        }
        Ok(Self { context, name, capability, modules: Arc::default() })
    }

    /// The name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The maximum number of single-precision operations per second, computed from the clock rate.
    ///
    /// # Errors
    /// The driver reports an error.
    pub fn peak(&self) -> Result<f64, CudaError> {
        let clock = self.context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?;
        let units =
            self.context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let lanes = if self.capability == (8, 0) { 64.0 } else { 128.0 };
        Ok(f64::from(clock) * 1e3 * f64::from(units) * lanes * 2.0)
    }

    /// The number of blocks of 64 threads, with 128 registers each, that run at a time.
    pub(crate) fn slots(&self) -> Result<usize, CudaError> {
        let units = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        Ok(self.context.attribute(units)? as usize * 8)
    }

    /// A new stream. What happens in one stream does not affect the others.
    pub(crate) fn stream(&self) -> Result<Arc<CudaStream>, CudaError> {
        Ok(self.context.new_stream()?)
    }

    /// The number of bytes of device memory that are free.
    ///
    /// # Errors
    /// The driver reports an error.
    pub fn free_memory(&self) -> Result<usize, CudaError> {
        Ok(self.context.mem_get_info()?.0)
    }

    pub(crate) fn compile(&self, source: Source) -> Result<Arc<CudaModule>, CudaError> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, module)) = modules.iter().find(|(known, _)| *known == source) {
            return Ok(module.clone());
        }
        let (major, minor) = self.capability;
        let mut options = vec![format!("--gpu-architecture=compute_{major}{minor}")];
        options.extend(source.defines());
        let options = CompileOptions { options, ..CompileOptions::default() };
        let module = self.context.load_module(compile_ptx_with_opts(source.text(), options)?)?;
        modules.push((source, module.clone()));
        Ok(module)
    }
}
