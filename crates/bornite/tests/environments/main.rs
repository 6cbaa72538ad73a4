//! Environments, expectations, overlaps and truncation, against enumeration and fine grids.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as tests do")]

mod environment;
mod expectation;
mod long;
mod overlap;
mod truncate;
mod univariate;
mod world;
