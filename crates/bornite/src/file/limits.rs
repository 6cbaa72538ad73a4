//! Limits on what a file may request. A short file can request a lot; these limits turn that into an error.

/// The largest width of a layer and number of values of a finite domain: vectors of a gibibyte.
pub const MAX_WIDTH: usize = 1 << 26;

/// The largest number of variables that counted declarations make.
pub const MAX_COUNTED_VARIABLES: usize = 1 << 20;

/// The largest number of entries of all random weights together: four gibibytes of complex ones.
pub const MAX_RANDOM_ENTRIES: usize = 1 << 28;

/// The multiply-adds that random semi-unitary weights may take for each byte of the [memory limit](crate::memory).
pub const WORK_PER_BYTE: usize = 4;

/// The largest number of entries of all tables and transforms of input functions together.
pub const MAX_BASIS_ENTRIES: usize = 1 << 28;

/// The bytes that a variable of a [structure](crate::structure::Structure) takes besides its weights: its name, functions and layers.
pub(crate) const BYTES_PER_VARIABLE: u128 = 1200;

/// The longest name that a counted declaration may have.
pub const MAX_TEMPLATE: usize = 255;

/// The longest header of a safetensors file, in bytes; other programs have the same limit.
pub const MAX_HEADER: usize = 100_000_000;

/// How deep bases may contain each other: squares of transformed functions are 3.
pub(crate) const MAX_BASIS_DEPTH: usize = 4;

/// The maximum number of bytes that are read from something other than a regular file, which has no length.
pub(crate) const MAX_STREAM: u64 = 1 << 30;
