//! The memory that a fit may take, checked before anything of the size of a circuit is allocated.

use super::{ModelError, ModelOptions};
use crate::data::{Schema, Table};
use crate::memory;

/// The bytes that a fit takes per variable (its layers, their place in programs and tiles) and per parameter (the
/// weights, their gradients, averages and moments): measured on 20,000 and 100,000 columns, rounded up.
const PER_VARIABLE: u64 = 10_000;
const PER_PARAMETER: u64 = 140;
/// The bytes per input function of a column of numbers on a grid: its values on about 320 steps, here and in circuits
/// with fewer functions.
const PER_STEP_FUNCTION: u64 = 4_400;

/// The memory limit of a fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    columns: usize,
    variables: u64,
    /// The number of columns of numbers on a grid.
    grids: u64,
    allowed: u64,
}

impl Allowance {
    /// The limit for a table: that of a file with a byte per cell. If a width is given, it is the caller who asks for
    /// the memory, not the table, and all that is free is allowed.
    pub(super) fn of(schema: &Schema, table: &Table, options: &ModelOptions) -> Self {
        let columns = schema.columns().len();
        let cells = (table.num_rows() as u64).saturating_mul(columns as u64);
        let is_given = options.width.is_some() || options.widths.is_some();
        let free = if is_given { memory::available().unwrap_or(u64::MAX) } else { 0 };
        let allowed = memory::allowance(cells).max(free);
        let grids = schema.num_grids() as u64;
        Self { columns, variables: schema.num_variables() as u64, grids, allowed }
    }

    /// Checks that the smallest circuit can be fitted.
    pub(super) fn check_columns(&self) -> Result<(), ModelError> {
        self.check(1, 1, 0)
    }

    /// Checks that a circuit of this width, with this many functions per variable and parameters can be fitted.
    pub(super) fn check(
        &self,
        width: usize,
        functions: usize,
        parameters: u128,
    ) -> Result<(), ModelError> {
        let parameters = u64::try_from(parameters).unwrap_or(u64::MAX);
        let of_variables = self.variables.saturating_mul(PER_VARIABLE);
        let of_functions = self.grids.saturating_mul(PER_STEP_FUNCTION);
        let of_functions = of_functions.saturating_mul(functions as u64);
        let needed = of_variables
            .saturating_add(of_functions)
            .saturating_add(parameters.saturating_mul(PER_PARAMETER));
        if needed <= self.allowed {
            return Ok(());
        }
        let Self { columns, allowed, .. } = *self;
        Err(ModelError::TooLarge { columns, width, needed, allowed })
    }
}
