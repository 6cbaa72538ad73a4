//! Every kernel compared with a plain reference, and all SIMD levels with each other.

use bornite_kernels::lanes::{get, planes, set, tile_len};
use bornite_kernels::{
    Complex64 as C64, Kernels, PackedWeight, Real, Simd, SimdLevel, Uses, WeightGradient,
};

use crate::dense::Matrix;

const SHAPES: [[usize; 3]; 12] = [
    [1, 1, 1],
    [2, 2, 2],
    [3, 3, 3],
    [5, 5, 5],
    [8, 8, 8],
    [16, 16, 16],
    [17, 17, 17],
    [1, 5, 3],
    [3, 2, 8],
    [8, 3, 17],
    [6, 32, 1],
    [32, 5, 4],
];

pub(crate) const LEVELS: [SimdLevel; 3] = [SimdLevel::Scalar, SimdLevel::Avx2, SimdLevel::Avx512];

/// The number of tiles for the weight gradients: more than one group.
const TILES: usize = 5;

/// Numbers in [−1, 1) that fit into the 24 bits of an `f32`.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    fn real(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 41) as f64 / f64::from(1 << 22) - 1.0
    }

    pub(crate) fn next(&mut self, complex: bool) -> C64 {
        let re = self.real();
        C64::new(re, if complex { self.real() } else { 0.0 })
    }

    pub(crate) fn tile<F: Real>(&mut self, complex: bool, numbers: usize) -> Vec<F> {
        let mut tile = vec![F::ZERO; tile_len::<F>(complex, numbers)];
        for n in 0..numbers {
            for lane in 0..F::LANES {
                set(complex, &mut tile, n, lane, self.next(complex));
            }
        }
        tile
    }

    pub(crate) fn hermitian<F: Real>(&mut self, complex: bool, k: usize) -> Vec<F> {
        let mut tile = vec![F::ZERO; tile_len::<F>(complex, k * k)];
        for lane in 0..F::LANES {
            for i in 0..k {
                for j in 0..i {
                    let z = self.next(complex);
                    set(complex, &mut tile, i * k + j, lane, z);
                    set(complex, &mut tile, j * k + i, lane, z.conj());
                }
                set(complex, &mut tile, i * k + i, lane, C64::new(self.real(), 0.0));
            }
        }
        tile
    }
}

/// The inputs of all kernels for one shape.
struct World<F> {
    shape: [usize; 3],
    kron: Matrix,
    plain: Matrix,
    a: Vec<F>,
    a2: Vec<F>,
    b: Vec<F>,
    g: Vec<F>,
    m1: Vec<F>,
    m2: Vec<F>,
    /// A K×K₂ matrix.
    x: Vec<F>,
    g_tiles: Vec<F>,
    a_tiles: Vec<F>,
    b_tiles: Vec<F>,
}

impl<F: Real> World<F> {
    fn new(complex: bool, [k, k1, k2]: [usize; 3]) -> Self {
        let mut numbers = Numbers((k * 289 + k1 * 17 + k2) as u64);
        let n = &mut numbers;
        Self {
            shape: [k, k1, k2],
            kron: Matrix::from_fn(k, k1 * k2, |_, _| n.next(complex)),
            plain: Matrix::from_fn(k, k1, |_, _| n.next(complex)),
            a: n.tile(complex, k1),
            a2: n.tile(complex, k1),
            b: n.tile(complex, k2),
            g: n.tile(complex, k),
            m1: n.hermitian(complex, k1),
            m2: n.hermitian(complex, k2),
            x: n.tile(complex, k * k2),
            g_tiles: n.tile(complex, TILES * k),
            a_tiles: n.tile(complex, TILES * k1),
            b_tiles: n.tile(complex, TILES * k2),
        }
    }
}

type Outputs<F> = Vec<(&'static str, Vec<F>)>;

/// The outputs of all kernels. The scratch memory contains old numbers.
fn outputs<F: Real, const C: bool>(level: SimdLevel, world: &World<F>) -> Outputs<F> {
    let [k, k1, k2] = world.shape;
    let kernels = Kernels::<F, C>::new(Simd::new(level));
    let kron = world.kron.with_parts(C, |w| PackedWeight::kronecker(w, [k1, k2], Uses::ALL));
    let plain = world.plain.with_parts(C, |w| PackedWeight::plain(w, Uses::ALL));
    let old = |numbers| vec![F::from_f64(7.0); tile_len::<F>(C, numbers)];
    let mut scratch = old(Kernels::<F, C>::mixed_scratch(world.shape).max(k * k1).max(k * k2));
    let World { a, a2, b, g, m1, m2, x, .. } = world;
    let mut all = Outputs::new();
    let mut run = |name, numbers, f: &mut dyn FnMut(&mut [F], &mut [F])| {
        let mut out = old(numbers);
        f(&mut scratch, &mut out);
        all.push((name, out));
    };
    run("sum", k, &mut |_, out| kernels.sum(&plain, a, out));
    run("kron_sum", k, &mut |_, out| kernels.kron_sum(&kron, a, b, out));
    run("kron_left", k * k2, &mut |_, out| kernels.kron_left(&kron, a, out));
    run("kron_right", k * k1, &mut |_, out| kernels.kron_right(&kron, b, out));
    run("outer_self", k * k, &mut |_, out| kernels.outer_self([k, k2], x, out));
    run("sandwich", k * k, &mut |s, out| kernels.sandwich([k, k2], [x, m2], s, out));
    run("mixed_identity", k * k, &mut |s, out| kernels.mixed_identity(&kron, m1, s, out));
    run("identity_mixed", k * k, &mut |s, out| kernels.identity_mixed(&kron, m2, s, out));
    run("mixed_mixed", k * k, &mut |s, out| kernels.mixed_mixed(&kron, [m1, m2], s, out));
    run("congruence", k * k, &mut |s, out| kernels.congruence(&plain, m1, s, out));
    run("hadamard", k1 * k1, &mut |_, out| kernels.hadamard(m1, m1, out));
    run("pure_mixed", k1 * k1, &mut |_, out| kernels.hadamard_pure_mixed(a, m1, out));
    run("pure_identity", k1 * k1, &mut |_, out| kernels.hadamard_pure_identity(a, out));
    run("mixed_identity∘", k1 * k1, &mut |_, out| kernels.hadamard_mixed_identity(k1, m1, out));
    run("sum_reverse", k1, &mut |_, out| kernels.sum_reverse(&plain, g, out));
    let mut other = old(k2);
    run("kron_reverse", k1, &mut |_, out| {
        kernels.kron_sum_reverse(&kron, g, [a, b], [out, &mut other]);
    });
    run("hadamard_reverse", k1, &mut |_, out| kernels.hadamard_reverse(a, a2, out));
    all.push(("kron_reverse right", other));
    all
}

/// The expected [`outputs`]: number `n` of row `lane` of each.
fn expected<F: Real, const C: bool>(world: &World<F>, lane: usize) -> Vec<Vec<C64>> {
    let [k, k1, k2] = world.shape;
    let vector = |tile: &[F], len| (0..len).map(|n| get(C, tile, n, lane)).collect::<Vec<_>>();
    let matrix = |tile: &[F], r, c| Matrix::new(r, c, vector(tile, r * c));
    let (a, a2, b) = (vector(&world.a, k1), vector(&world.a2, k1), vector(&world.b, k2));
    let g = vector(&world.g, k);
    let (m1, m2) = (matrix(&world.m1, k1, k1), matrix(&world.m2, k2, k2));
    let x = matrix(&world.x, k, k2);
    let (w, v) = (&world.kron, &world.plain);
    let kron = |p: &Matrix, q: &Matrix| {
        Matrix::from_fn(k1 * k2, k1 * k2, |r, c| p[(r / k2, c / k2)] * q[(r % k2, c % k2)])
    };
    let around = |w: &Matrix, m: &Matrix| w.times(m).times_adjoint(w).data().to_vec();
    let (one1, one2) = (Matrix::identity(k1), Matrix::identity(k2));
    let ab: Vec<_> = (0..k1 * k2).map(|n| a[n / k2] * b[n % k2]).collect();
    let square = |f: &dyn Fn(usize, usize) -> C64| Matrix::from_fn(k1, k1, f).data().to_vec();
    let (h, hv) = (w.adjoint().times_vector(&g), v.adjoint().times_vector(&g));
    let seven = if C { C64::new(7.0, 7.0) } else { C64::new(7.0, 0.0) };
    let plus_old = |f: &dyn Fn(usize) -> C64, n| (0..n).map(|i| f(i) + seven).collect::<Vec<_>>();
    let diagonal = |i, j, z| if i == j { z } else { C64::ZERO };
    let contracted = |len: usize, f: &dyn Fn(usize, usize) -> C64| {
        (0..k * len).map(|n| f(n / len, n % len)).collect::<Vec<_>>()
    };
    vec![
        v.times_vector(&a),
        w.times_vector(&ab),
        contracted(k2, &|k, j| (0..k1).map(|i| w[(k, i * k2 + j)] * a[i]).sum()),
        contracted(k1, &|k, i| (0..k2).map(|j| w[(k, i * k2 + j)] * b[j]).sum()),
        x.times_adjoint(&x).data().to_vec(),
        around(&x, &m2),
        around(w, &kron(&m1, &one2)),
        around(w, &kron(&one1, &m2)),
        around(w, &kron(&m1, &m2)),
        around(v, &m1),
        square(&|i, j| m1[(i, j)] * m1[(i, j)]),
        square(&|i, j| a[i] * a[j].conj() * m1[(i, j)]),
        square(&|i, j| diagonal(i, j, C64::new(a[i].norm_sqr(), 0.0))),
        square(&|i, j| diagonal(i, j, m1[(i, j)])),
        plus_old(&|i| hv[i], k1),
        plus_old(&|i| (0..k2).map(|j| h[i * k2 + j] * b[j].conj()).sum(), k1),
        plus_old(&|i| a[i] * a2[i].conj(), k1),
        plus_old(&|j| (0..k1).map(|i| h[i * k2 + j] * a[i].conj()).sum(), k2),
    ]
}

/// The rounding error of sums of up to `terms` products of numbers with a modulus below two.
pub(crate) fn tolerance<F: Real>(terms: usize) -> f64 {
    let epsilon = if F::LANES == 8 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    64.0 * epsilon * (terms + 8) as f64
}

fn check_reference<F: Real, const C: bool>() {
    for shape in SHAPES {
        let world = World::<F>::new(C, shape);
        let found = outputs::<F, C>(SimdLevel::Best, &world);
        let terms = shape[1] * shape[2];
        for lane in 0..F::LANES {
            for ((name, tile), expected) in found.iter().zip(expected::<F, C>(&world, lane)) {
                assert_eq!(tile.len(), tile_len::<F>(C, expected.len()), "{name} {shape:?}");
                for (n, expected) in expected.into_iter().enumerate() {
                    let z = get(C, tile, n, lane);
                    let error = (z - expected).norm();
                    assert!(
                        error <= tolerance::<F>(terms) * (1.0 + expected.norm()),
                        "{name} {shape:?} complex={C} number {n} lane {lane}: {z} for {expected}"
                    );
                }
            }
        }
        check_hermitian::<F, C>(&found, shape);
    }
}

fn check_hermitian<F: Real, const C: bool>(found: &Outputs<F>, [k, k1, _]: [usize; 3]) {
    for (index, (name, tile)) in found.iter().enumerate() {
        let k = match index {
            4..=9 => k,
            10..=13 => k1,
            _ => continue,
        };
        for lane in 0..F::LANES {
            for n in 0..k * k {
                let other = get(C, tile, n % k * k + n / k, lane);
                assert_eq!(get(C, tile, n, lane), other.conj(), "{name} is Hermitian");
            }
        }
    }
}

fn gradients<F: Real, const C: bool>(
    level: SimdLevel,
    world: &World<F>,
    at_a_time: usize,
) -> [Matrix; 2] {
    let [k, k1, k2] = world.shape;
    let kernels = Kernels::<F, C>::new(Simd::new(level));
    let needed = Kernels::<F, C>::gradient_scratch(world.shape);
    let mut scratch = vec![F::from_f64(7.0); tile_len::<F>(C, needed)];
    let mut kron = WeightGradient::kronecker(C, world.shape);
    let mut plain = WeightGradient::plain(C, [k, k1]);
    let split = |tiles: &[F], numbers| -> Vec<Vec<F>> {
        tiles.chunks(at_a_time * tile_len::<F>(C, numbers)).map(<[F]>::to_vec).collect()
    };
    let (g, a) = (split(&world.g_tiles, k), split(&world.a_tiles, k1));
    for ((g, a), b) in g.iter().zip(&a).zip(split(&world.b_tiles, k2)) {
        kernels.kron_sum_gradient(g, [a, &b], &mut scratch, &mut kron);
        kernels.sum_gradient(g, a, &mut scratch, &mut plain);
    }
    [
        Matrix::from_parts([k, k1 * k2], C, &kron.to_parts()),
        Matrix::from_parts([k, k1], C, &plain.to_parts()),
    ]
}

fn check_gradients<F: Real, const C: bool>() {
    for shape in SHAPES {
        let [k, k1, k2] = shape;
        let world = World::<F>::new(C, shape);
        let [kron, plain] = gradients::<F, C>(SimdLevel::Best, &world, TILES);
        let mut expected: [Matrix; 2] = [Matrix::zeros(k, k1 * k2), Matrix::zeros(k, k1)];
        for (tile, lane) in (0..TILES * F::LANES).map(|n| (n / F::LANES, n % F::LANES)) {
            for row in 0..k {
                let g = get(C, &world.g_tiles, tile * k + row, lane);
                for i in 0..k1 {
                    let a = get(C, &world.a_tiles, tile * k1 + i, lane);
                    expected[1][(row, i)] += g * a.conj();
                    for j in 0..k2 {
                        let b = get(C, &world.b_tiles, tile * k2 + j, lane);
                        expected[0][(row, i * k2 + j)] += g * (a * b).conj();
                    }
                }
            }
        }
        for (found, expected) in [kron, plain].iter().zip(&expected) {
            for (x, y) in found.data().iter().zip(expected.data()) {
                let error = (x - y).norm();
                assert!(error <= tolerance::<F>(TILES * F::LANES), "{shape:?}: {x} for {y}");
            }
        }
    }
}

fn check_levels<F: Real, const C: bool>() {
    for shape in SHAPES.into_iter().filter(|[k, ..]| *k < 17) {
        let world = World::<F>::new(C, shape);
        let best = outputs::<F, C>(SimdLevel::Best, &world);
        let gradient = gradients::<F, C>(SimdLevel::Best, &world, TILES);
        for level in LEVELS {
            let other = outputs::<F, C>(level, &world);
            for ((name, x), (_, y)) in other.iter().zip(&best) {
                let bits =
                    |tile: &[F]| tile.iter().map(|x| x.to_f64().to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(x), bits(y), "{name} {level:?} {shape:?}");
            }
            for at_a_time in [1, 2, TILES] {
                let other = gradients::<F, C>(level, &world, at_a_time);
                assert_eq!(other, gradient, "{level:?} {shape:?} {at_a_time} tiles at a time");
            }
        }
    }
}

#[test]
fn kernels_match_the_reference() {
    check_reference::<f64, false>();
    check_reference::<f64, true>();
    check_reference::<f32, false>();
    check_reference::<f32, true>();
}

#[test]
fn weight_gradients_match_the_reference() {
    check_gradients::<f64, false>();
    check_gradients::<f64, true>();
    check_gradients::<f32, false>();
    check_gradients::<f32, true>();
}

#[test]
fn all_simd_levels_give_the_same_bits() {
    check_levels::<f64, false>();
    check_levels::<f64, true>();
    check_levels::<f32, false>();
    check_levels::<f32, true>();
}

#[test]
fn a_row_does_not_depend_on_its_neighbors() {
    let shape = [5, 3, 8];
    let world = World::<f64>::new(true, shape);
    let mut other = World::<f64>::new(true, shape);
    for tile in [&mut other.a, &mut other.a2, &mut other.b, &mut other.g, &mut other.m1] {
        for (n, x) in tile.iter_mut().enumerate() {
            *x = if n % 8 == 3 { *x } else { f64::NAN };
        }
    }
    let alone = outputs::<f64, true>(SimdLevel::Best, &other);
    for ((name, x), (_, y)) in outputs::<f64, true>(SimdLevel::Best, &world).iter().zip(alone) {
        for (x, y) in x.iter().zip(&y).skip(3).step_by(8) {
            assert_eq!(x.to_bits(), y.to_bits(), "{name}");
        }
    }
}

fn check_scale<F: Real, const C: bool>(exponents: &[i32]) {
    for level in LEVELS {
        let kernels = Kernels::<F, C>::new(Simd::new(level));
        for k in [1, 2, 3, 8, 17] {
            let tile = Numbers(k as u64).tile::<F>(C, k);
            let mut scaled = tile.clone();
            let factor = |lane: usize| 2f64.powi(exponents[lane % exponents.len()]);
            for (n, x) in scaled.iter_mut().enumerate() {
                let lane = n % F::LANES;
                *x = F::from_f64(if lane == 1 { 0.0 } else { x.to_f64() * factor(lane) });
            }
            let before = scaled.clone();
            let mut log2_scale: Vec<i64> = (0..).take(F::LANES).collect();
            kernels.rescale(&mut scaled, &mut log2_scale);
            for (lane, before_scale) in (0_i64..).enumerate().take(F::LANES) {
                let of = |tile: &[F], n: usize| tile[n * F::LANES + lane].to_f64();
                let planes = scaled.len() / F::LANES;
                let max = (0..planes).fold(0.0, |max: f64, n| max.max(of(&scaled, n).abs()));
                let added = log2_scale[lane] - before_scale;
                assert!(if lane == 1 {
                    max == 0.0 && added == 0
                } else {
                    (1.0..2.0).contains(&max)
                });
                for n in 0..planes {
                    // In two steps, because the factor itself may be out of range.
                    let half = added as i32 / 2;
                    let back = of(&scaled, n) * 2f64.powi(half) * 2f64.powi(added as i32 - half);
                    assert_eq!(back, of(&before, n), "{level:?} K={k} lane {lane}");
                }
            }
        }
    }
}

/// Columns of every length around that of a square, in tiles.
fn check_gather<F: Real, const C: bool>() {
    for level in LEVELS {
        let kernels = Kernels::<F, C>::new(Simd::new(level));
        for k in [1, 3, 4, 8, 16, 21] {
            let len = k * planes(C);
            let columns: Vec<F> = (0..20 * len).map(|n| F::from_f64(n as f64)).collect();
            let at: Vec<usize> = (0..F::LANES).map(|lane| lane * 7 % 20).collect();
            let mut tile = vec![F::ZERO; tile_len::<F>(C, k)];
            kernels.gather(&columns, &at, &mut tile);
            for (n, &x) in tile.iter().enumerate() {
                let expected = columns[at[n % F::LANES] * len + n / F::LANES];
                assert_eq!(x, expected, "{level:?} K={k} number {n}");
            }
        }
    }
}

#[test]
fn columns_are_gathered_into_lanes() {
    check_gather::<f64, true>();
    check_gather::<f64, false>();
    check_gather::<f32, true>();
    check_gather::<f32, false>();
}

#[test]
fn only_extreme_rows_are_rescaled() {
    let kernels = Kernels::<f64, false>::new(Simd::default());
    let (mut tile, mut log2) = (vec![0.25; 16], [0; 8]);
    assert!(!kernels.rescale_extreme(&mut tile, &mut log2));
    tile[3] = 2f64.powi(31);
    assert!(kernels.rescale_extreme(&mut tile, &mut log2));
    assert_eq!((log2, tile[3], tile[11]), ([0, 0, 0, 31, 0, 0, 0, 0], 1.0, 2f64.powi(-33)));
    assert_eq!((tile[0], tile[15]), (0.25, 0.25));
}

#[test]
fn rescaling_is_exact() {
    check_scale::<f64, true>(&[0, 1, -1000, 1000, 37, -5]);
    check_scale::<f64, false>(&[0, 1, 500, -990, 3]);
    check_scale::<f32, true>(&[0, 3, -90, 120, 17]);
    check_scale::<f32, false>(&[-3, 3, 90, -90, 1]);
}
