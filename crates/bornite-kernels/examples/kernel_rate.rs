//! How close the kernels come to the peak rate of one core: `cargo run --release --example
//! kernel_rate`.
//!
//! Arguments, all optional: SIMD levels (`avx2`, `avx512`) and number types (`f32`, `f64`).

#![allow(clippy::print_stdout, reason = "a program")]

use std::hint::black_box;
use std::time::Instant;

use bornite_kernels::lanes::{planes, tile_len};
use bornite_kernels::{
    Buffer, Dense, Kernels, PackedWeight, Real, Simd, SimdLevel, Uses, WeightGradient, peak,
};

/// Seconds per call: the best of many short runs.
fn time(mut f: impl FnMut()) -> f64 {
    let mut calls = 1;
    let mut run = |calls: u32| {
        let start = Instant::now();
        for _ in 0..calls {
            f();
        }
        start.elapsed().as_secs_f64()
    };
    while run(calls) < 1e-3 {
        calls *= 2;
    }
    (0..25).map(|_| run(calls)).fold(f64::INFINITY, f64::min) / f64::from(calls)
}

/// The peak rate, in operations per second.
fn peak_rate<F: Real>(simd: Simd) -> f64 {
    let mut operations = 0;
    let seconds =
        time(|| operations = 2 * black_box(peak::fused_multiply_adds::<F>(simd, 20_000)).0);
    operations as f64 / seconds
}

/// Prints the rate of every kernel at width `k`, as a percentage of the peak.
fn rates<F: Real, const C: bool>(simd: Simd, k: usize) {
    let kernels = Kernels::<F, C>::new(simd);
    let parts: Vec<f64> = (0..k * k * k * planes(C)).map(|n| (n % 7) as f64 - 3.0).collect();
    let kron = Dense::new([k, k * k], C, &parts);
    let kron = PackedWeight::<F>::kronecker(kron, [k, k], Uses::ALL);
    let plain = Dense::new([k, k], C, &parts[..k * k * planes(C)]);
    let plain = PackedWeight::<F>::plain(plain, Uses::ALL);
    let tile = |numbers| {
        let mut tile = Buffer::zeros(tile_len::<F>(C, numbers));
        tile.fill(F::from_f64(0.5));
        tile
    };
    let (a, b, m) = (tile(4 * k), tile(4 * k), tile(k * k));
    let (one, mut out, mut square) = (tile_len::<F>(C, k), tile(k), tile(k * k));
    let (mut ga, mut gb) = (tile(k), tile(k));
    let needed = Kernels::<F, C>::gradient_scratch([k; 3]).max(2 * k * k);
    let mut scratch = tile(needed);
    let mut grad = WeightGradient::kronecker(C, [k; 3]);
    let peak = peak_rate::<F>(simd);
    let (v, w) = (&a[..one], &b[..one]);
    let report = |name: &str, multiply_adds: usize, f: &mut dyn FnMut()| {
        let seconds = time(f);
        let operations = (multiply_adds * F::LANES * 2 * planes(C).pow(2)) as f64;
        let share = 100.0 * operations / seconds / peak;
        println!("  {name:16} {:7.1} GFLOP/s {share:5.0} %", operations / seconds / 1e9);
        seconds
    };
    println!("{:?} planes={} K={k} peak {:.1}", simd.level(), planes(C), peak / 1e9);
    let (k2, k3, k4) = (k * k, k * k * k, k * k * k * k);
    let half = k * (k + 1) / 2;
    report("sum", k2, &mut || kernels.sum(&plain, v, black_box(&mut out)));
    let forward =
        report("kron_sum", k3, &mut || kernels.kron_sum(&kron, v, w, black_box(&mut out)));
    report("kron_left", k3, &mut || kernels.kron_left(&kron, v, black_box(&mut square)));
    report("kron_right", k3, &mut || kernels.kron_right(&kron, v, black_box(&mut square)));
    report("outer_self", half * k, &mut || kernels.outer_self([k, k], &m, black_box(&mut square)));
    report("sandwich", k3 + half * k, &mut || {
        kernels.sandwich([k, k], [&m, &m], &mut scratch, black_box(&mut square));
    });
    report("mixed_identity", k4 + half * k2, &mut || {
        kernels.mixed_identity(&kron, &m, &mut scratch, black_box(&mut square));
    });
    report("identity_mixed", k4 + half * k2, &mut || {
        kernels.identity_mixed(&kron, &m, &mut scratch, black_box(&mut square));
    });
    report("mixed_mixed", 2 * k4 + half * k2, &mut || {
        kernels.mixed_mixed(&kron, [&m, &m], &mut scratch, black_box(&mut square));
    });
    report("congruence", k3 + half * k, &mut || {
        kernels.congruence(&plain, &m, &mut scratch, black_box(&mut square));
    });
    let inputs = report("reverse, inputs", k3 + 2 * k2, &mut || {
        kernels.kron_sum_reverse(&kron, &out, [v, w], black_box([&mut ga, &mut gb]));
    });
    let (out, zeros) = (tile(k), Buffer::<F>::zeros(4 * one));
    let single = report("gradient, 1 tile", k3 + k2, &mut || {
        kernels.kron_sum_gradient(&zeros[..one], [v, w], &mut scratch, black_box(&mut grad));
    });
    let four = report("gradient, 4 tiles", 4 * (k3 + k2), &mut || {
        kernels.kron_sum_gradient(&zeros, [&a, &b], &mut scratch, black_box(&mut grad));
    });
    println!(
        "  reverse / forward: {:.2} by one tile, {:.2} by four",
        (inputs + single) / forward,
        (inputs + four / 4.0) / forward
    );
    let mut scale = vec![0; F::LANES];
    let mut tile = out.clone();
    let rescale = time(|| kernels.rescale(black_box(&mut tile), &mut scale));
    println!("  rescale / kron_sum: {:.3}", rescale / forward);
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |name: &str, of: &[&str]| {
        args.iter().any(|a| a == name) || !args.iter().any(|a| of.contains(&a.as_str()))
    };
    for (name, level) in [("avx2", SimdLevel::Avx2), ("avx512", SimdLevel::Avx512)] {
        let simd = Simd::new(level);
        if !wanted(name, &["avx2", "avx512"]) {
            continue;
        }
        for k in [8, 16, 32] {
            if wanted("f64", &["f32", "f64"]) {
                println!("f64");
                rates::<f64, true>(simd, k);
            }
            if wanted("f32", &["f32", "f64"]) {
                println!("f32");
                rates::<f32, true>(simd, k);
            }
        }
    }
}
