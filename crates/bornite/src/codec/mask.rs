//! Coding of the mask of missing cells, which precedes the values: adaptive bits, with integers only.

use constriction::stream::queue::{DefaultRangeDecoder, DefaultRangeEncoder};
use constriction::stream::{Decode, Encode};

use super::Broken;
use super::cdf::Bit;

/// For every variable, how often it was present and how often missing, by whether the variable before it in the row
/// was.
#[derive(Debug)]
pub(super) struct MaskModel {
    counts: Vec<[[u64; 2]; 2]>,
}

impl MaskModel {
    pub(super) fn new(num_variables: usize) -> Self {
        Self { counts: vec![[[0; 2]; 2]; num_variables] }
    }

    /// The probability that a cell is missing: (n₁ + ½) / (n + 1) from the cells coded so far.
    fn bit(&self, variable: usize, before: bool) -> Bit {
        let [present, missing] = self.counts[variable][usize::from(before)];
        Bit::new(2 * missing + 1, 2 * (present + missing) + 2)
    }

    fn count(&mut self, variable: usize, before: bool, missing: bool) {
        self.counts[variable][usize::from(before)][usize::from(missing)] += 1;
    }

    /// Codes the mask of some rows, variable by variable.
    pub(super) fn encode(
        &mut self,
        values: &[f64],
        coder: &mut DefaultRangeEncoder,
    ) -> Result<(), Broken> {
        let d = self.counts.len();
        for variable in 0..d {
            for row in values.chunks_exact(d) {
                let before = variable > 0 && row[variable - 1].is_nan();
                let missing = row[variable].is_nan();
                coder.encode_symbol(missing, self.bit(variable, before)).map_err(|_| Broken)?;
                self.count(variable, before, missing);
            }
        }
        Ok(())
    }

    /// Writes NaN to the cells that are missing, and 0 to the others.
    pub(super) fn decode(
        &mut self,
        values: &mut [f64],
        coder: &mut DefaultRangeDecoder,
    ) -> Result<(), Broken> {
        let d = self.counts.len();
        for variable in 0..d {
            for row in values.chunks_exact_mut(d) {
                let before = variable > 0 && row[variable - 1].is_nan();
                let bit = self.bit(variable, before);
                let missing = coder.decode_symbol(bit).map_err(|_| Broken)?;
                row[variable] = if missing { f64::NAN } else { 0.0 };
                self.count(variable, before, missing);
            }
        }
        Ok(())
    }
}
