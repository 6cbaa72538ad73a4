//! Structures from data: the mutual information of variables, and region trees based on it.
//!
//! Compute the [`mutual_information`] of all pairs, then use [`average_linkage`] for a region tree;
//! or [`chow_liu_tree`] for the edges of the best tree-shaped model, and [`root_edges`] to turn
//! them into a region tree.

mod edges;
mod information;
mod linkage;
#[cfg(test)]
mod tests;

pub use edges::{Edge, chow_liu_tree, root_edges};
pub use information::{
    InformationError, InformationOptions, MutualInformation, mutual_information,
};
pub use linkage::average_linkage;
