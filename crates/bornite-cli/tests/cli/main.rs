//! Runs the built command, and checks what it prints, what it writes and how it fails.

mod bad_input;
mod circuit;
mod commas;
mod compress;
mod demo_and_bench;
mod documentation;
mod faults;
mod model;
mod refused;
mod report;
mod streams;
mod support;
mod writes;
