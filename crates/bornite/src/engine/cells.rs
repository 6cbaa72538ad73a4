//! The values of a block of rows, some variables at a time.

use std::ops::Range;

use super::rows::Rows;

/// Leaves to a group: in most trees their variables are neighbors, whose cells of a row share lines of the cache.
const GROUP: usize = 32;

/// Values in a line of the cache.
const LINE: usize = 8;

/// The values of a group of neighboring leaves in all rows of a block, leaf after leaf.
///
/// A table lies row after row, and its rows lie on pages of their own: read for each leaf alone, every cell would cost a
/// line of the cache and an entry of the page table.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    /// The leaves whose values are there.
    group: Range<usize>,
    values: Vec<f64>,
}

impl Cells {
    /// Forgets the rows of the block before.
    pub(crate) fn clear(&mut self) {
        self.group = 0..0;
    }

    /// The values of one of the leaves, whose variables are given in their order, in `count` rows from `first` on.
    pub(crate) fn of(
        &mut self,
        (variables, leaf): (&[usize], usize),
        rows: &Rows<'_>,
        (first, count): (usize, usize),
    ) -> &[f64] {
        if !self.group.contains(&leaf) {
            self.group = leaf..variables.len().min(leaf + GROUP);
            self.values.resize(self.group.len() * count, 0.0);
            let variables = &variables[self.group.clone()];
            // A line of the cache is filled at a time: lines of many leaves may have to share one place in it.
            for line in (0..count).step_by(LINE) {
                for (to, &variable) in self.values.chunks_exact_mut(count).zip(variables) {
                    let to = to[line..].iter_mut().take(LINE);
                    to.zip(first + line..).for_each(|(to, row)| *to = rows.value(row, variable));
                }
            }
        }
        let within = leaf - self.group.start;
        &self.values[within * count..(within + 1) * count]
    }
}
