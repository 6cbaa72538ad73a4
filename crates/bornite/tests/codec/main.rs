//! The codec: what goes in comes out, at the promised size, and nothing else is taken for it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod damage;
mod exact;
mod models;
mod refused;
mod round_trip;
mod segments;
mod table;
mod table_damage;
mod table_exact;
