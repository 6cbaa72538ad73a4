//! Circuits as JSON: `docs/FORMAT.md` is the reference.

mod basis;
mod matrix;
mod node;
mod place;
mod read;
mod structure;
mod variables;
mod write;

pub(super) use node::Node;
pub(super) use place::{Fields, Place, named, objects, text, wholes};
pub(super) use read::read;
pub(super) use write::{Data, Written, write};

/// The version of the format that this program writes, and the only one that it reads.
pub(super) const VERSION: usize = 1;

/// How messages call the top of the JSON.
pub(super) const TOP: Place<'static> = Place::Top("the circuit");
