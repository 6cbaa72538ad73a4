//! Everything that the library computes, against sums and quadratures over the definition.

mod errors;
mod laws;
mod limits;
mod oracle;
mod structures;
mod world;
