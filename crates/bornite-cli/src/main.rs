//! The `bornite` command.

fn main() {}
