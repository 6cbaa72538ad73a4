//! Numbers that were just encoded, and how.

use crate::data::{Cells, Column};

/// The bits of a cell that is a number; `None` if it is missing or text.
pub(super) fn key(column: &Column, row: usize) -> Option<u64> {
    match column.cells() {
        Cells::Labels(_) => None,
        Cells::Integers(c) => c.get(row).map(i64::cast_unsigned),
        Cells::Numbers(c) => Some(c.values()[row]).filter(|x| !x.is_nan()).map(f64::to_bits),
    }
}

/// How some of a column's numbers were encoded. Columns repeat numbers, and transforms take much longer than a lookup.
pub(super) struct Memo {
    /// The numbers' bits. A number has a single slot, which it takes over from the one before.
    keys: Vec<Option<u64>>,
    /// The values and the contribution to log p of each.
    entries: Vec<f64>,
}

impl Memo {
    /// The maximum number of slots.
    const SLOTS: usize = 1 << 13;

    /// A memo for the cells of a column, which are encoded as `width` values.
    pub(super) fn new(width: usize, column: &Column) -> Self {
        let rows = match column.cells() {
            Cells::Labels(_) => 0,
            Cells::Integers(_) | Cells::Numbers(_) => column.len(),
        };
        let slots = rows.next_power_of_two().min(Self::SLOTS);
        Self { keys: vec![None; slots], entries: vec![0.0; slots * (width + 1)] }
    }

    /// The slot of a number.
    fn slot(&self, key: u64) -> usize {
        // The highest bits: decimals repeat in binary, so that their lower bits, and those of the product, hardly differ.
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        ((hash * self.keys.len() as u64) >> 32) as usize
    }

    /// The contribution to log p of a number, whose values it writes, if it is known.
    pub(super) fn get(&self, key: u64, values: &mut [f64]) -> Option<f64> {
        let slot = self.slot(key);
        (self.keys[slot] == Some(key)).then(|| {
            let entry = &self.entries[slot * (values.len() + 1)..][..=values.len()];
            values.copy_from_slice(&entry[..values.len()]);
            entry[values.len()]
        })
    }

    /// Keeps a number's values and its contribution to log p.
    pub(super) fn set(&mut self, key: u64, values: &[f64], log: f64) {
        let slot = self.slot(key);
        self.keys[slot] = Some(key);
        let entry = &mut self.entries[slot * (values.len() + 1)..][..=values.len()];
        entry[..values.len()].copy_from_slice(values);
        entry[values.len()] = log;
    }
}
