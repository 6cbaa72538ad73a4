//! Limits on what a file may request. A short file can request a lot; these limits turn that into an error.

/// The maximum width of a layer, and number of values of a finite domain: vectors of one gibibyte.
pub const MAX_WIDTH: usize = 1 << 26;

/// The maximum number of variables from declarations with a count.
pub const MAX_COUNTED_VARIABLES: usize = 1 << 20;

/// The maximum number of entries in all random weights: four gibibytes if they are complex.
pub const MAX_RANDOM_ENTRIES: usize = 1 << 28;

/// The number of multiply-adds that random semi-unitary weights may take for each byte of the [memory
/// limit](crate::memory).
pub const WORK_PER_BYTE: usize = 4;

/// The number of multiply-adds that step functions may take for each of their edges, besides those for the [memory
/// limit](crate::memory): those of 128 functions.
pub(crate) const STEP_WORK_PER_EDGE: u64 = 1 << 14;

/// The maximum number of entries in all tables and transforms of bases.
pub const MAX_BASIS_ENTRIES: usize = 1 << 28;

/// The memory per variable of a [structure](crate::structure::Structure) besides its weights: its name, functions and
/// layers.
pub(crate) const BYTES_PER_VARIABLE: u128 = 1200;

/// The maximum length of a name in a declaration with a count.
pub const MAX_TEMPLATE: usize = 255;

/// The maximum length of a safetensors header in bytes, as in other programs.
pub const MAX_HEADER: usize = 100_000_000;

/// The maximum nesting depth of bases: squares of transformed functions have 3.
pub(crate) const MAX_BASIS_DEPTH: usize = 4;

/// The maximum number of bytes to read from something other than a regular file.
pub(crate) const MAX_STREAM: u64 = 1 << 30;
