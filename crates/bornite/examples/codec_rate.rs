//! How fast rows are compressed and decompressed, next to one traversal: `cargo run --release --example codec_rate`.
//!
//! Arguments: side of the image, number of grey levels, width K, number of rows, threads.

#![allow(clippy::print_stdout, reason = "a program")]

use std::time::Instant;

use bornite::circuit::Weights;
use bornite::codec::Codec;
use bornite::engine::{Engine, Rows};
use bornite::ops::orthonormalize;
use bornite::structure::{RegionTree, Structure};
use bornite::{Basis, Domain, Variable};
use rand::SeedableRng;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|a| a.parse::<usize>());
    let mut next = |default| numbers.next().unwrap_or(Ok(default));
    let (side, levels, width) = (next(8)?, next(17)?, next(8)?);
    let (rows, threads) = (next(4000)?, next(1)?);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;

    let pixel = |v: usize| {
        (Variable::new(format!("p{v}"), Domain::Finite(levels)), Basis::indicator(levels))
    };
    let rng = &mut rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let structure = Structure::new(RegionTree::image(side, side, 1), pixel).width(width);
    let circuit = orthonormalize(&structure.build(Weights::Gaussian, rng)?)?.circuit;
    let engine: Engine = Engine::new(&circuit);
    let codec = Codec::new(&circuit)?;
    println!(
        "{side}x{side} pixels of {levels} levels, K = {width}, {rows} rows, {threads} threads"
    );

    let timed = |what: &str, start: Instant| {
        let seconds = start.elapsed().as_secs_f64();
        let (rate, cells) = (rows as f64 / seconds, (rows * side * side) as f64 / seconds / 1e6);
        println!("{what:14} {seconds:8.3} s {rate:10.0} rows/s {cells:8.3} M cells/s");
    };
    let start = Instant::now();
    let values = engine.sample(rows, 3);
    timed("sample", start);
    let cells = Rows::new(circuit.variables(), &values)?;
    let start = Instant::now();
    let nats: f64 = engine.log_marginals(&cells)?.iter().sum();
    timed("evaluate", start);
    let start = Instant::now();
    let bytes = codec.compress(&values)?;
    timed("compress", start);
    let start = Instant::now();
    let back = codec.decompress(&bytes)?;
    timed("decompress", start);
    assert!(back == values, "rows come back");
    let (found, expected) = (8.0 * bytes.len() as f64, -nats / std::f64::consts::LN_2);
    println!("{found} bits for {expected:.0}: {:+.4} %", 100.0 * (found / expected - 1.0));
    Ok(())
}
