//! Structures: how the variables are split into regions, and circuits made over them.
//!
//! Which one? [`RegionTree::image`] for pixels, [`RegionTree::linear`] for sequences (a matrix-product state),
//! [`RegionTree::balanced`] for variables in an order that means something, [`RegionTree::random`] for those without.

mod compile;
mod tree;

pub use compile::{Product, Structure};
pub use tree::{Region, RegionTree, TreeError};
