//! Structures: how variables are split into regions, and circuits over these regions.
//!
//! Which tree should I use? [`RegionTree::aligned_image`] for pixels, [`RegionTree::linear`] for
//! sequences (a matrix product state), [`RegionTree::balanced`] for variables in a meaningful
//! order, and [`RegionTree::random`] for others. With data, use [`average_linkage`] of the
//! [`mutual_information`] between columns.

mod compile;
mod learn;
mod tree;
mod widths;

pub use compile::{Product, Structure};
pub use learn::{
    Edge, InformationError, InformationOptions, MutualInformation, average_linkage, chow_liu_tree,
    mutual_information, root_edges,
};
pub use tree::{Region, RegionTree, TreeError};
pub use widths::{Widths, WidthsError};
