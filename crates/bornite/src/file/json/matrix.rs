use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::node::{Items, Node};
use super::place::{Fields, Place, choice, text, whole};
use crate::circuit::{Weight, Weights, random_weight};
use crate::file::FileError;
use crate::file::limits::{
    MAX_BASIS_ENTRIES, MAX_RANDOM_ENTRIES, STEP_WORK_PER_EDGE, WORK_PER_BYTE,
};
use crate::file::safetensors::Tensors;
use crate::linalg::{Complex64, Matrix, Scalar};
use crate::memory;

/// The tensors beside the JSON, and how many more matrix entries the file may request.
pub(super) struct MatrixSource<'b> {
    tensors: Option<Tensors<'b>>,
    random_entries: u128,
    random_work: u128,
    basis_entries: u128,
    edges: u64,
    step_entries: u128,
    step_work: u128,
}

impl<'b> MatrixSource<'b> {
    pub(super) fn new(tensors: Option<Tensors<'b>>) -> Self {
        Self {
            tensors,
            random_entries: 0,
            random_work: 0,
            basis_entries: 0,
            edges: 0,
            step_entries: 0,
            step_work: 0,
        }
    }

    /// Reads the weight of a sum layer whose input has this many columns, or any number if that is not known yet.
    pub(super) fn weight(
        &mut self,
        node: &Node,
        place: &Place<'_>,
        columns: Option<usize>,
    ) -> Result<Weight, FileError> {
        match node {
            Node::Object(entries) if entries.iter().any(|(name, _)| name == "random") => {
                self.random(node, place, columns)
            }
            Node::Word(_)
            | Node::Number(_)
            | Node::Text(_)
            | Node::Pair(_)
            | Node::Numbers(_)
            | Node::List(_)
            | Node::Object(_) => self.matrix(node, place),
        }
    }

    /// Reads the values of a table, or the transform of a basis.
    pub(super) fn basis_matrix(
        &mut self,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<Matrix<Complex64>, FileError> {
        let matrix = self.matrix(node, place)?;
        self.basis_entries += matrix.rows() as u128 * matrix.cols() as u128;
        place.check_size("a number of entries", self.basis_entries, MAX_BASIS_ENTRIES)?;
        Ok(match matrix {
            Weight::Real(m) => m.map(Scalar::to_complex),
            Weight::Complex(m) => m,
        })
    }

    /// Counts the values of step functions, and the work of making them orthonormal. Both may be in proportion to the
    /// edges that are read, for as many functions as a fit uses.
    pub(super) fn step_functions(
        &mut self,
        functions: usize,
        edges: usize,
        place: &Place<'_>,
    ) -> Result<(), FileError> {
        self.edges = self.edges.saturating_add(edges as u64);
        let entries = functions as u128 * edges as u128;
        self.step_entries = self.step_entries.saturating_add(entries);
        self.step_work = self.step_work.saturating_add(entries.saturating_mul(functions as u128));
        let bytes = self.step_entries.saturating_mul(size_of::<f64>() as u128);
        let read = self.edges.saturating_mul(size_of::<f64>() as u64);
        place.check_memory("a basis of step functions", bytes, read)?;
        let limit = memory::limit().saturating_mul(WORK_PER_BYTE as u64);
        let limit = limit.saturating_add(self.edges.saturating_mul(STEP_WORK_PER_EDGE));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        place.check_size("a number of multiply-adds of step functions", self.step_work, limit)
    }

    /// Counts entries of random weights with at most this many rows.
    pub(super) fn draw(
        &mut self,
        entries: u128,
        rows: usize,
        weights: Weights,
        place: &Place<'_>,
    ) -> Result<(), FileError> {
        self.random_entries = self.random_entries.saturating_add(entries);
        place.check_size("a number of random entries", self.random_entries, MAX_RANDOM_ENTRIES)?;
        let bytes = self.random_entries.saturating_mul(size_of::<Complex64>() as u128);
        place.check_memory("a random weight", bytes, 0)?;
        if weights.is_semi_unitary() {
            // Orthonormalizing takes a product with every row for each entry.
            self.random_work =
                self.random_work.saturating_add(entries.saturating_mul(rows as u128));
            let limit = usize::try_from(memory::limit()).unwrap_or(usize::MAX);
            let limit = limit.saturating_mul(WORK_PER_BYTE);
            place.check_size(
                "a number of multiply-adds of random weights",
                self.random_work,
                limit,
            )?;
        }
        Ok(())
    }

    /// Rejects tensors that are not used.
    pub(super) fn finish(&self) -> Result<(), FileError> {
        self.tensors.as_ref().map_or(Ok(()), Tensors::finish)
    }

    fn matrix(&mut self, node: &Node, place: &Place<'_>) -> Result<Weight, FileError> {
        if let Node::Object(_) = node {
            let name = Fields::of(node, place, &["tensor"])?.require("tensor", place)?;
            let name = text(name, &place.field("tensor"))?;
            return match &mut self.tensors {
                Some(tensors) => tensors.take(name, place),
                None => Err(FileError::NoTensors { place: place.to_string() }),
            };
        }
        rows(node, place)
    }

    fn random(
        &mut self,
        node: &Node,
        place: &Place<'_>,
        known: Option<usize>,
    ) -> Result<Weight, FileError> {
        let fields = Fields::of(node, place, &["random", "rows", "columns", "seed"])?;
        let kind = weights(fields.require("random", place)?, &place.field("random"))?;
        let rows = whole(fields.require("rows", place)?, &place.field("rows"))?;
        let columns = match (fields.get("columns"), known) {
            (Some(node), _) => whole(node, &place.field("columns"))?,
            (None, Some(columns)) => columns,
            (None, None) => whole(fields.require("columns", place)?, place)?,
        };
        if let Some(expected) = known
            && expected != columns
        {
            let (place, what) = (place.field("columns").to_string(), "columns");
            return Err(FileError::Count { place, what, expected, found: columns });
        }
        self.draw(rows as u128 * columns as u128, rows.min(columns), kind, place)?;
        let rng = &mut rng(fields.get("seed"), &place.field("seed"))?;
        Ok(random_weight(rows, columns, kind, rng))
    }
}

/// The random generator for a seed; 0 by default.
pub(super) fn rng(seed: Option<&Node>, place: &Place<'_>) -> Result<ChaCha8Rng, FileError> {
    let seed = seed.map_or(Ok(0), |node| whole(node, place))?;
    Ok(ChaCha8Rng::seed_from_u64(seed as u64))
}

/// The distribution of random weights.
pub(super) fn weights(node: &Node, place: &Place<'_>) -> Result<Weights, FileError> {
    let known = &["gaussian", "real_gaussian", "haar", "real_haar"];
    Ok(match choice(node, place, "weight distribution", known)? {
        "gaussian" => Weights::Gaussian,
        "real_gaussian" => Weights::RealGaussian,
        "haar" => Weights::Haar,
        _ => Weights::RealHaar,
    })
}

/// Reads a list of rows. The matrix is complex if any entry is a pair.
fn rows(node: &Node, place: &Place<'_>) -> Result<Weight, FileError> {
    const MATRIX: &str = "a list of rows [[…], …] of numbers or pairs [re, im]";
    let rows = match node.as_list() {
        Some(Items::Nodes(rows)) => rows,
        Some(Items::Numbers([first, ..])) => {
            return Err(place.item(0).expected("a row […]", &Node::Number(*first)));
        }
        _ => return Err(place.expected(MATRIX, node)),
    };
    let mut lists = Vec::with_capacity(rows.len());
    for (r, row) in rows.iter().enumerate() {
        let place = place.item(r);
        let items = row.as_list().ok_or_else(|| place.expected("a row […]", row))?;
        let expected = lists.first().unwrap_or(&items).len();
        let found = items.len();
        if found != expected {
            return Err(FileError::RowLength { place: place.to_string(), expected, found });
        }
        if found == 0 {
            return Err(place.expected("a row of at least one entry", row));
        }
        lists.push(items);
    }
    let cols = lists.first().map_or(0, Items::len);
    if lists.iter().all(|row| matches!(row, Items::Numbers(_))) {
        let data = lists.iter().flat_map(|row| match row {
            Items::Numbers(numbers) => numbers,
            Items::Nodes(_) => [].as_slice(),
        });
        return Ok(Weight::Real(Matrix::new(lists.len(), cols, data.copied().collect())));
    }
    let mut data = Vec::with_capacity(lists.len() * cols);
    for (r, row) in lists.iter().enumerate() {
        complex_row(row, &place.item(r), &mut data)?;
    }
    Ok(Weight::Complex(Matrix::new(lists.len(), cols, data)))
}

fn complex_row(
    row: &Items<'_>,
    place: &Place<'_>,
    data: &mut Vec<Complex64>,
) -> Result<(), FileError> {
    match row {
        Items::Numbers(numbers) => data.extend(numbers.iter().map(|&x| Complex64::new(x, 0.0))),
        Items::Nodes(nodes) => {
            for (c, entry) in nodes.iter().enumerate() {
                data.push(match entry {
                    Node::Number(x) => Complex64::new(*x, 0.0),
                    Node::Pair([re, im]) => Complex64::new(*re, *im),
                    _ => {
                        return Err(place.item(c).expected("a number or a pair [re, im]", entry));
                    }
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of bases with this many functions on 4096 steps that a file may have, at most a thousand.
    fn allowed(functions: usize) -> usize {
        let mut source = MatrixSource::new(None);
        let place = Place::Top("circuit");
        (0..1000).take_while(|_| source.step_functions(functions, 4097, &place).is_ok()).count()
    }

    #[test]
    fn step_functions_are_limited_by_their_work() {
        assert_eq!(allowed(96), 1000);
        assert!((10..60).contains(&allowed(256)), "{}", allowed(256));
    }
}
