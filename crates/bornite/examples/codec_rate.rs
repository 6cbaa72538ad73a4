//! How fast rows are compressed and decompressed, next to one traversal: `cargo run --release --example codec_rate`.
//!
//! Arguments: side of the image, number of grey levels, width K, number of rows, threads. The last column is the time over
//! that of the traversal's multiply-adds at the peak rate, which is measured between the others; the best of five runs.

#![allow(clippy::print_stdout, reason = "a program")]

use std::time::Instant;

use bornite::circuit::Weights;
use bornite::codec::Codec;
use bornite::engine::{Batch, Engine};
use bornite::ops::orthonormalize;
use bornite::structure::{RegionTree, Structure};
use bornite::{Basis, Domain, Variable};
use bornite_kernels::{Simd, SimdLevel, peak};
use clap::Parser;
use rand::SeedableRng;

/// Rounds of multiply-adds that take some ten milliseconds.
const ROUNDS: u64 = 20_000_000;

#[derive(Parser)]
struct Arguments {
    /// The side of the images, in pixels.
    #[arg(default_value_t = 8)]
    side: usize,
    /// The number of gray levels.
    #[arg(default_value_t = 17)]
    levels: usize,
    /// The width K of inner layers.
    #[arg(default_value_t = 8)]
    width: usize,
    /// The number of images.
    #[arg(default_value_t = 4000)]
    rows: usize,
    /// The number of threads.
    #[arg(default_value_t = 1)]
    threads: usize,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Arguments { side, levels, width, rows, threads } = Arguments::parse();
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;

    let pixel = |v: usize| {
        (Variable::new(format!("p{v}"), Domain::Finite(levels)), Basis::indicator(levels))
    };
    let rng = &mut rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let structure = Structure::new(RegionTree::image(side, side, 1), pixel).width(width);
    let circuit = orthonormalize(&structure.build(Weights::Gaussian, rng)?)?.circuit;
    let engine = Engine::new(&circuit);
    let codec = Codec::new(&circuit)?;
    let simd = Simd::new(SimdLevel::Best);
    println!(
        "{side}x{side} pixels of {levels} levels, K = {width}, {rows} rows, {threads} threads"
    );

    // A complex multiply-add is four real ones.
    let adds = 4.0 * rows as f64 * engine.coding_work().table as f64;
    let values = engine.sample(rows, 3);
    let cells = Batch::from_rows(circuit.variables(), &values)?;
    let bytes = codec.compress(&values)?;
    let nats: f64 = engine.log_marginals(&cells)?.iter().sum();
    let mut best = [f64::INFINITY; 5];
    for _ in 0..5 {
        let mut time = |n: usize, f: &mut dyn FnMut() -> bool| {
            let start = Instant::now();
            assert!(f(), "the same again");
            best[n] = best[n].min(start.elapsed().as_secs_f64());
        };
        time(0, &mut || engine.sample(rows, 3) == values);
        time(1, &mut || engine.log_marginals(&cells).is_ok());
        time(2, &mut || codec.compress(&values).is_ok_and(|b| b == bytes));
        time(3, &mut || codec.decompress(&bytes).is_ok_and(|v| v == values));
        time(4, &mut || peak::fused_multiply_adds::<f64>(simd, ROUNDS).1.is_finite());
    }
    let lanes = peak::fused_multiply_adds::<f64>(simd, ROUNDS).0 as f64;
    let rate = lanes / best[4] * threads as f64;
    println!("peak {:.1} GFLOP/s, {:.3} s for the traversal", 2e-9 * rate, adds / rate);
    for (what, seconds) in ["sample", "evaluate", "compress", "decompress"].iter().zip(best) {
        let (rows, cells) = (rows as f64 / seconds, (rows * side * side) as f64 / seconds / 1e6);
        let over = seconds * rate / adds;
        println!("{what:12} {seconds:8.3} s {rows:10.0} rows/s {cells:8.3} M cells/s {over:7.2}");
    }
    let (found, expected) = (8.0 * bytes.len() as f64, -nats / std::f64::consts::LN_2);
    println!("{found} bits for {expected:.0}: {:+.4} %", 100.0 * (found / expected - 1.0));
    Ok(())
}
