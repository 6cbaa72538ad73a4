//! x
use std::time::Instant;
use bornite::engine::{Kernels, PackedWeight, Real, Simd, SimdLevel, Uses, peak};
use bornite::engine::lanes::tile_len;
use bornite::linalg::{Complex64, Matrix};

fn time(mut f: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let mut n = 1;
    loop { let t = Instant::now(); for _ in 0..n { f(); } if t.elapsed().as_secs_f64() > 2e-3 { break; } n *= 2; }
    for _ in 0..30 { let t = Instant::now(); for _ in 0..n { f(); } best = best.min(t.elapsed().as_secs_f64() / n as f64); }
    best
}
fn rates<F: Real>(level: SimdLevel) {
    let simd = Simd::new(level);
    let mut flops = 0.0;
    let t = time(|| { let (n, x) = peak::fused_multiply_adds::<F>(simd, 100_000); std::hint::black_box(x); flops = 2.0 * n as f64; });
    let peak = flops / t;
    println!("{level:?} {} peak {:.1}", std::any::type_name::<F>(), peak / 1e9);
    for k in [8, 16, 32] {
        let w = Matrix::from_fn(k, k * k, |i, j| Complex64::new((i * 7 + j * 3) as f64 % 5.0, (i + j) as f64 % 3.0));
        let w = PackedWeight::<F>::kronecker(&w, [k, k], Uses::ALL);
        let len = tile_len::<F>(true, k);
        let a = vec![F::ONE; len];
        let b = vec![F::ONE; len];
        let mut out = vec![F::ZERO; len];
        let ker = Kernels::<F, true>::new(simd);
        let t = time(|| { ker.kron_sum(&w, &a, &b, &mut out); std::hint::black_box(&out); });
        let fl = (8 * k * k * k * F::LANES) as f64;
        println!("  kron_sum K={k} {:.1} GF {:.0}%", fl / t / 1e9, 100.0 * fl / t / peak);
    }
}
fn main() {
    for level in [SimdLevel::Avx2, SimdLevel::Avx512] { rates::<f64>(level); rates::<f32>(level); }
}
