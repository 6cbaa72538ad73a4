//! Rows as bytes, column by column, for temporary files on this machine. Codes stay codes.

use std::sync::Arc;

use bytemuck::Pod;

use super::{Batch, BatchColumn, Codes, Values};
use crate::domain::Domain;

impl Batch {
    /// A batch without rows, for variables with these domains.
    pub(crate) fn empty<'a>(domains: impl IntoIterator<Item = &'a Domain>) -> Self {
        let empty = |domain| BatchColumn::with_capacity(domain, 0);
        Self { columns: domains.into_iter().map(empty).collect(), len: 0 }
    }

    /// Appends the bytes of all rows. Their cells must have values or be missing, without sets and
    /// intervals.
    pub(crate) fn write_bytes(&self, out: &mut Vec<u8>) {
        for column in &self.columns {
            debug_assert!(column.parts.is_empty(), "sets and intervals are evidence, not rows");
            match &column.values {
                Values::U8(codes) => codes.write(out),
                Values::U16(codes) => codes.write(out),
                Values::U32(codes) => codes.write(out),
                Values::Real(values) => out.extend_from_slice(bytemuck::cast_slice(values)),
                Values::Missing(_) => {}
            }
        }
    }

    /// Appends rows that [`write_bytes`](Self::write_bytes) wrote, from a batch with the same
    /// domains. Returns `None` if there are too few or too many bytes.
    pub(crate) fn add_bytes(&mut self, rows: usize, mut bytes: &[u8]) -> Option<()> {
        for column in &mut self.columns {
            column.num_missing += match &mut column.values {
                Values::U8(codes) => codes.add(rows, &mut bytes)?,
                Values::U16(codes) => codes.add(rows, &mut bytes)?,
                Values::U32(codes) => codes.add(rows, &mut bytes)?,
                Values::Real(values) => {
                    let start = values.len();
                    values.extend(numbers::<f64>(rows, &mut bytes)?);
                    values[start..].iter().filter(|x| x.is_nan()).count()
                }
                Values::Missing(len) => {
                    *len += rows;
                    rows
                }
            };
        }
        self.len += rows;
        bytes.is_empty().then_some(())
    }
}

impl<T: Pod> Codes<T> {
    /// Writes the codes, followed by the number of words of the missing bits and these words.
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(bytemuck::cast_slice(&self.codes));
        out.extend_from_slice(bytemuck::bytes_of(&(self.missing.len() as u64)));
        out.extend_from_slice(bytemuck::cast_slice(&self.missing));
    }

    /// Appends codes that `write` wrote, and returns the number of missing ones.
    fn add(&mut self, rows: usize, bytes: &mut &[u8]) -> Option<usize> {
        let start = self.codes.len();
        Arc::make_mut(&mut self.codes).extend(numbers::<T>(rows, bytes)?);
        let words = numbers::<u64>(1, bytes)?.next()?;
        let mut count = 0;
        for (n, mut word) in numbers::<u64>(usize::try_from(words).ok()?, bytes)?.enumerate() {
            while word != 0 {
                let row = start + 64 * n + word.trailing_zeros() as usize;
                self.missing.resize(row / 64 + 1, 0);
                self.missing[row / 64] |= 1 << (row % 64);
                (word, count) = (word & (word - 1), count + 1);
            }
        }
        Some(count)
    }
}

/// Takes `count` numbers from the front.
fn numbers<'a, T: Pod>(count: usize, bytes: &mut &'a [u8]) -> Option<impl Iterator<Item = T> + 'a> {
    let (taken, rest) = bytes.split_at_checked(count.checked_mul(size_of::<T>())?)?;
    *bytes = rest;
    Some(taken.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Variable;

    #[test]
    fn rows_come_back_in_pieces_of_any_size() {
        let domains =
            [Domain::Finite(3), Domain::Finite(300), Domain::Finite(70_000), Domain::Real];
        let variables: Vec<Variable> =
            domains.iter().map(|d| Variable::new(format!("{d:?}"), d.clone())).collect();
        let value = |n: usize| match n * 7 % 11 {
            0 | 3 => f64::NAN,
            k if n % 4 == 3 => k as f64 / 3.0,
            k => (k % 3) as f64,
        };
        let values: Vec<f64> = (0..4 * 200).map(value).collect();
        let whole = Batch::from_rows(&variables, &values).unwrap();
        for size in [1, 63, 64, 65, 200] {
            let mut back = Batch::empty(&domains);
            for start in (0..200).step_by(size) {
                let rows: Vec<usize> = (start..200.min(start + size)).collect();
                let mut bytes = Vec::new();
                whole.select(&rows).write_bytes(&mut bytes);
                back.add_bytes(rows.len(), &bytes).unwrap();
                // Too few and too many bytes are rejected.
                assert!(Batch::empty(&domains).add_bytes(rows.len(), &bytes[1..]).is_none());
                bytes.push(0);
                assert!(Batch::empty(&domains).add_bytes(rows.len(), &bytes).is_none());
            }
            let same = |a: &[f64], b: &[f64]| {
                a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits()))
            };
            assert!(same(&back.to_rows(), &whole.to_rows()));
            assert_eq!((back.len(), back.num_missing()), (200, whole.num_missing()));
            assert!((0..200).all(|row| back.first_missing(row) == whole.first_missing(row)));
        }
    }
}
