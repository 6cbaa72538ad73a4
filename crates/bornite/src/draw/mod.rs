//! Drawings of circuits.
//!
//! A drawing is made in steps, one per file: `cells` groups the layers into the cells of a tree, `arrange` assigns each
//! cell a row and a column, `layout` turns these into boxes, and `svg` writes the boxes.

mod arrange;
mod cells;
mod glyph;
mod groups;
mod layout;
mod legend;
mod svg;
mod text;

pub(crate) use cells::CellTree;
pub(crate) use svg::px;
pub(crate) use text::{ems, escape, fit};

use crate::circuit::Circuit;
use crate::ops::dependences;
use crate::query::{Dependence, Query, QueryError};

/// Draws a circuit as one self-contained SVG, inputs on the left and the output on the right.
///
/// With a query the layers are colored by how they depend on it, as in the paper's first figure: φ_Y, which depend on
/// only observed variables, are red; φ_Z, on only unobserved variables, blue; φ_YZ, on both, green. Each layer shows
/// its kind, width and size on hover. Up to about 500 variables each input has its name; a larger circuit is drawn as
/// dots. A deep tree, such as a linear one, is drawn along its spine and folded into lines.
///
/// The output depends only on the circuit and the query.
///
/// ```
/// use bornite::{Basis, Domain, Query, Variable, circuit::Weights, draw::circuit_svg};
/// use bornite::structure::{Product, RegionTree, Structure};
/// use rand::SeedableRng;
///
/// let leaf = |v| (Variable::new(format!("x{v}"), Domain::Finite(2)), Basis::indicator(2));
/// let structure = Structure::new(RegionTree::balanced(4), leaf).product(Product::Hadamard);
/// let rng = &mut rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let circuit = structure.build(Weights::Haar, rng)?;
/// let query = Query::parse(circuit.variables(), "x0=1, x1=0")?;
/// let picture = circuit_svg(&circuit, Some(&query))?;
/// assert!(picture.starts_with("<svg") && picture.contains("x1 = 0"));
/// # Ok::<(), bornite::Error>(())
/// ```
///
/// Cost: linear in the layers.
///
/// # Errors
/// The query was created for other variables.
///
/// Paper: `fig:tighter-marginalization`.
pub fn circuit_svg(circuit: &Circuit, query: Option<&Query>) -> Result<String, QueryError> {
    if let Some(query) = query {
        query.check(circuit.variables())?;
    }
    let dependences = query.map(|q| dependences(circuit, q));
    Ok(svg::render(&drawing(circuit, query, dependences)))
}

/// The drawing without colors. Its boxes and edges are marked with their layers, so that a script can color it.
pub(crate) fn circuit_drawing(circuit: &Circuit) -> String {
    svg::render(&drawing(circuit, None, None))
}

fn drawing<'a>(
    circuit: &'a Circuit,
    query: Option<&Query>,
    dependences: Option<Vec<Dependence>>,
) -> svg::Drawing<'a> {
    let cells = CellTree::new(circuit);
    let labels = text::input_labels(circuit, query);
    let layout = layout::Layout::new(circuit, &cells, &labels);
    svg::Drawing { circuit, layout, dependences, labels }
}

#[cfg(test)]
mod tests;
