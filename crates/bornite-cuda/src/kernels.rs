//! The kernels of learning, and the shared memory of their tiles.

use std::sync::Arc;

use cudarc::driver::sys::CUfunction_attribute_enum;
use cudarc::driver::{CudaFunction, CudaModule};

use crate::error::CudaError;
use crate::plan::Factors;

/// The maximum width of a layer: its Gram matrix is factored in the memory of one multiprocessor.
pub(crate) const WIDEST: usize = 128;
/// The number of chunks of a weight that are in shared memory at a time.
pub(crate) const STAGES: usize = 4;
/// The number of rows in a tile of a product.
pub(crate) const ROWS: usize = 64;

pub(crate) struct Kernels {
    pub(crate) forward: [CudaFunction; 3],
    pub(crate) reverse: [CudaFunction; 3],
    pub(crate) descend: [CudaFunction; 3],
    pub(crate) exact: [CudaFunction; 3],
    pub(crate) retract: [CudaFunction; 3],
    pub(crate) subtract: [CudaFunction; 3],
    pub(crate) gradient: [CudaFunction; 3],
    pub(crate) gram: [CudaFunction; 3],
    pub(crate) projection: [CudaFunction; 3],
    pub(crate) gather: CudaFunction,
    pub(crate) leaves: CudaFunction,
    pub(crate) functions: CudaFunction,
    pub(crate) columns: CudaFunction,
    pub(crate) hadamard: CudaFunction,
    pub(crate) hadamard_reverse: CudaFunction,
    pub(crate) settle: CudaFunction,
    pub(crate) settle_reverse: CudaFunction,
    pub(crate) begin: CudaFunction,
    pub(crate) close: CudaFunction,
    pub(crate) combine: CudaFunction,
    pub(crate) penalize: CudaFunction,
    pub(crate) symmetrize: CudaFunction,
    pub(crate) cholesky: CudaFunction,
    pub(crate) output_gradient: CudaFunction,
    pub(crate) output_weight: CudaFunction,
    pub(crate) norms: CudaFunction,
    pub(crate) clip: CudaFunction,
    pub(crate) advance: CudaFunction,
    pub(crate) average: CudaFunction,
    /// Steps and other revisions of weights; only in bfloat16.
    pub(crate) revisions: Option<[[CudaFunction; 3]; 2]>,
    /// Not in bfloat16.
    pub(crate) round_weights: Option<CudaFunction>,
    pub(crate) residuals: CudaFunction,
}

impl Kernels {
    pub(crate) fn new(
        module: &Arc<CudaModule>,
        factors: Factors,
        parts: usize,
    ) -> Result<Self, CudaError> {
        let get = |name: &str| module.load_function(name);
        let three = |name: &str| -> Result<[CudaFunction; 3], CudaError> {
            Ok([
                get(&format!("{name}_16"))?,
                get(&format!("{name}_32"))?,
                get(&format!("{name}_64"))?,
            ])
        };
        let kernels = Self {
            forward: three("forward")?,
            reverse: three("reverse")?,
            descend: three("descend")?,
            exact: three("exact")?,
            retract: three("retract")?,
            subtract: three("subtract")?,
            gradient: three("gradient")?,
            gram: three("gram")?,
            projection: three("projection")?,
            gather: get("gather")?,
            leaves: get("leaves")?,
            functions: get("functions")?,
            columns: get("columns")?,
            hadamard: get("hadamard")?,
            hadamard_reverse: get("hadamard_reverse")?,
            settle: get("settle")?,
            settle_reverse: get("settle_reverse")?,
            begin: get("begin")?,
            close: get("close")?,
            combine: get("combine")?,
            penalize: get("penalize")?,
            symmetrize: get("symmetrize")?,
            cholesky: get("cholesky")?,
            output_gradient: get("output_gradient")?,
            output_weight: get("output_weight")?,
            norms: get("norms")?,
            clip: get("clip")?,
            advance: get("advance")?,
            average: get("average")?,
            revisions: match factors {
                Factors::Single | Factors::Tf32 => None,
                Factors::Bfloat16 => Some([three("step")?, three("revise")?]),
            },
            round_weights: match factors {
                Factors::Single | Factors::Tf32 => Some(get("round_weights")?),
                Factors::Bfloat16 => None,
            },
            residuals: get("residuals")?,
        };
        // As much shared memory as there is, so that two blocks fit.
        let carveout =
            CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
        for all in [&kernels.gram, &kernels.projection, &kernels.gradient] {
            for kernel in all {
                kernel.set_attribute(carveout, 100)?;
            }
        }
        let most = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        kernels.columns.set_attribute(most, columns_memory(parts) as i32)?;
        kernels.cholesky.set_attribute(most, (WIDEST * WIDEST * 4 * parts) as i32)?;
        for (class, kernel) in kernels.descend.iter().enumerate() {
            kernel.set_attribute(most, descent_memory(factors, class, WIDEST, parts) as i32)?;
        }
        for (class, kernel) in kernels.forward.iter().enumerate() {
            let memory = match factors {
                Factors::Single | Factors::Tf32 => contraction_memory(class, WIDEST, parts),
                Factors::Bfloat16 => quads_memory(class, WIDEST, parts) as u32,
            };
            kernel.set_attribute(most, memory as i32)?;
        }
        for all in [&kernels.reverse, &kernels.exact, &kernels.retract, &kernels.subtract] {
            for (class, kernel) in all.iter().enumerate() {
                kernel.set_attribute(most, contraction_memory(class, WIDEST, parts) as i32)?;
            }
        }
        Ok(kernels)
    }
}

/// The smallest class of tiles, of 16, 32 or 64 rows, that fits a width.
pub(crate) fn class_of(width: usize) -> usize {
    match width {
        0..=16 => 0,
        17..=32 => 1,
        _ => 2,
    }
}

pub(crate) fn tile(class: usize) -> usize {
    16 << class
}

pub(crate) fn tiles(n: usize, size: usize) -> u32 {
    n.div_ceil(size) as u32
}

/// The shared memory of a contraction over this many components: chunks of the weight, and a tile
/// of the vectors.
pub(crate) fn contraction_memory(class: usize, components: usize, parts: usize) -> u32 {
    let chunks = STAGES * (tile(class) * 20).max(16 * (tile(class) + 4));
    ((chunks + components.next_multiple_of(16) * (ROWS + 4)) * 4 * parts) as u32
}

/// The number of blocks of 16 places in each of the stages of products in bfloat16.
fn blocks(class: usize) -> usize {
    if class == 0 { 4 } else { 2 }
}

/// The shared memory of a contraction in bfloat16: stages of the weight and of the vectors that its
/// sums are multiplied by, and a tile of the others.
pub(crate) fn quads_memory(class: usize, components: usize, parts: usize) -> usize {
    let stages = STAGES * blocks(class);
    let quads = stages * tile(class) * 4 + components.next_multiple_of(16) / 4 * ROWS;
    (quads * 8 + stages * ROWS * 4) * parts
}

/// The shared memory of a descent: fewer chunks, tiles of both vectors, and partial sums.
pub(crate) fn descent_memory(
    factors: Factors,
    class: usize,
    components: usize,
    parts: usize,
) -> u32 {
    let rows = tile(class);
    if factors == Factors::Bfloat16 {
        let groups = rows.div_ceil(32);
        let tiles = rows * (ROWS + 4) + 2 * blocks(class) * groups * ROWS;
        return (quads_memory(class, components, parts) + tiles * 4 * parts) as u32;
    }
    let chunks = (STAGES - 1) * (rows * 20).max(16 * (rows + 4));
    let tiles = (rows + components.next_multiple_of(16)) * (ROWS + 4) + 2 * (rows / 8) * ROWS;
    ((chunks + tiles) * 4 * parts) as u32
}

/// The shared memory of the kernel that sums columns.
pub(crate) fn columns_memory(parts: usize) -> u32 {
    ((256 * 33 + 32 * 33) * 4 * parts) as u32
}
