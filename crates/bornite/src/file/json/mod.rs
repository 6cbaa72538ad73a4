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

/// The format version that is written, and the only one that is read.
pub(super) const VERSION: usize = 1;

/// The name of the top-level value in messages.
pub(super) const TOP: Place<'static> = Place::Top("the circuit");
