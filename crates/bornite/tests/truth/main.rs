//! Everything that the library computes, against sums and quadratures over the definition.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod errors;
mod laws;
mod limits;
mod oracle;
mod structures;
mod world;
