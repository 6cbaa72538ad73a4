//! The reverse of mixed messages, compared with its definition, and all SIMD levels with each
//! other.

use bornite_kernels::lanes::{get, tile_len};
use bornite_kernels::{
    Complex64, Kernels, PackedWeight, Real, Simd, SimdLevel, Uses, WeightGradient,
};

use crate::dense::Matrix;
use crate::forward::{LEVELS, Numbers, tolerance};

const SHAPES: [[usize; 3]; 6] = [[1, 1, 1], [2, 3, 4], [5, 3, 2], [8, 8, 8], [3, 17, 5], [4, 2, 9]];

/// A weight over a Kronecker product, one over a single input, and tiles for both.
struct World<F> {
    shape: [usize; 3],
    w: Matrix,
    v: Matrix,
    e: Vec<F>,
    m: [Vec<F>; 2],
    /// K × K₁ and K × K₂.
    blocks: [Vec<F>; 2],
}

impl<F: Real> World<F> {
    fn new(complex: bool, [k, k1, k2]: [usize; 3]) -> Self {
        let n = &mut Numbers((k * 289 + k1 * 17 + k2) as u64);
        Self {
            shape: [k, k1, k2],
            w: Matrix::from_fn(k, k1 * k2, |_, _| n.next(complex)),
            v: Matrix::from_fn(k, k1, |_, _| n.next(complex)),
            e: n.hermitian(complex, k),
            m: [n.hermitian(complex, k1), n.hermitian(complex, k2)],
            blocks: [n.tile(complex, k * k1), n.tile(complex, k * k2)],
        }
    }
}

/// The results of the kernels: tiles, and gradients with respect to weights. The scratch memory
/// contains old numbers.
type Found<F> = (Vec<Vec<F>>, Vec<Matrix>);

/// Which of M₁ and M₂ are not the identity.
const CASES: [[bool; 2]; 3] = [[true, true], [false, true], [true, false]];

fn found<F: Real, const C: bool>(level: SimdLevel, world: &World<F>) -> Found<F> {
    let [k, k1, k2] = world.shape;
    let kernels = Kernels::<F, C>::new(Simd::new(level));
    let w = world.w.with_parts(C, |w| PackedWeight::kronecker(w, [k1, k2], Uses::ALL));
    let v = world.v.with_parts(C, |w| PackedWeight::plain(w, Uses::ALL));
    let old = |numbers| vec![F::from_f64(7.0); tile_len::<F>(C, numbers)];
    let zeros = |numbers| vec![F::ZERO; tile_len::<F>(C, numbers)];
    let matrix = |g: &WeightGradient<F>| {
        let [k, k1, k2] = g.shape();
        Matrix::from_parts([k, k1 * k2], C, &g.to_parts())
    };
    let (mut tiles, mut gradients) = (Vec::new(), Vec::new());
    let World { e, m: [m1, m2], blocks: [left, right], .. } = world;

    for m in [Some(&m2[..]), None] {
        let (mut gb, mut em) = (old(k * k2), old(k2 * k2));
        let mut scratch = old(Kernels::<F, C>::block_reverse_scratch([k, k2]));
        let b = [&e[..], &right[..]];
        kernels.block_reverse([k, k2], b, m, &mut scratch, &mut gb, Some(&mut em));
        tiles.extend([gb, em]);
    }
    let (mut ga, mut gb) = (zeros(k1), zeros(k2));
    kernels.kron_left_reverse(&w, right, &mut ga);
    kernels.kron_right_reverse(&w, left, &mut gb);
    let mut scratch = old(Kernels::<F, C>::gradient_scratch([k, k1, k2]));
    let mut gradient = WeightGradient::kronecker(C, [k, k1, k2]);
    kernels.kron_right_gradient(left, &gb, &mut scratch, &mut gradient);
    tiles.extend([ga, gb]);
    gradients.push(matrix(&gradient));
    for [first, second] in CASES {
        let (mut e1, mut e2) = (old(k1 * k1), old(k2 * k2));
        let mut scratch = old(Kernels::<F, C>::mixed_reverse_scratch([k, k1, k2]));
        let mut gradient = WeightGradient::kronecker(C, [k, k1, k2]);
        let m = [first.then_some(&m1[..]), second.then_some(&m2[..])];
        let to = [Some(&mut e1[..]), Some(&mut e2[..])];
        kernels.mixed_reverse(&w, e, m, to, &mut scratch, &mut gradient);
        tiles.extend([e1, e2]);
        gradients.push(matrix(&gradient));
    }
    let mut to = old(k1 * k1);
    let mut scratch = old(Kernels::<F, C>::congruence_reverse_scratch([k, k1, 1]));
    let mut gradient = WeightGradient::plain(C, [k, k1]);
    kernels.congruence_reverse(&v, [e, m1], Some(&mut to), &mut scratch, &mut gradient);
    tiles.push(to);
    gradients.push(matrix(&gradient));
    (tiles, gradients)
}

/// The expected results of [`found`] for one row.
fn expected<F: Real, const C: bool>(world: &World<F>, lane: usize) -> (Vec<Matrix>, Vec<Matrix>) {
    let [k, k1, k2] = world.shape;
    let matrix = |tile: &[F], rows: usize, cols: usize| {
        Matrix::from_fn(rows, cols, |r, c| get(C, tile, r * cols + c, lane))
    };
    let (w, v, e) = (&world.w, &world.v, matrix(&world.e, k, k));
    let (m1, m2) = (matrix(&world.m[0], k1, k1), matrix(&world.m[1], k2, k2));
    let (left, right) = (matrix(&world.blocks[0], k, k1), matrix(&world.blocks[1], k, k2));
    let around = |b: &Matrix| b.transpose().times(&e).times(&b.conj());
    let mut tiles = Vec::new();
    for m in [&m2, &Matrix::identity(k2)] {
        tiles.extend([e.conj().times(&right).times(m), around(&right)]);
    }
    let ga = Matrix::from_fn(k1, 1, |i, _| {
        let terms =
            (0..k * k2).map(|n| w[(n / k2, i * k2 + n % k2)].conj() * right[(n / k2, n % k2)]);
        terms.sum::<Complex64>()
    });
    let gb = Matrix::from_fn(k2, 1, |j, _| {
        let terms =
            (0..k * k1).map(|n| w[(n / k1, n % k1 * k2 + j)].conj() * left[(n / k1, n % k1)]);
        terms.sum::<Complex64>()
    });
    let mut gradients =
        vec![Matrix::from_fn(k, k1 * k2, |k, n| left[(k, n / k2)] * gb[(n % k2, 0)].conj())];
    tiles.extend([ga, gb]);
    let all = around(w);
    for [first, second] in CASES {
        let m1 = if first { m1.clone() } else { Matrix::identity(k1) };
        let m2 = if second { m2.clone() } else { Matrix::identity(k2) };
        let both = |r: usize, c: usize| m1[(r / k2, c / k2)] * m2[(r % k2, c % k2)];
        let e1 = |i: usize, l: usize| -> Complex64 {
            let pairs = (0..k2 * k2).map(|n| (n / k2, n % k2));
            pairs.map(|(j, m)| all[(i * k2 + j, l * k2 + m)] * m2[(j, m)]).sum()
        };
        let e2 = |j: usize, m: usize| -> Complex64 {
            let pairs = (0..k1 * k1).map(|n| (n / k1, n % k1));
            pairs.map(|(i, l)| all[(i * k2 + j, l * k2 + m)] * m1[(i, l)]).sum()
        };
        tiles.extend([Matrix::from_fn(k1, k1, e1), Matrix::from_fn(k2, k2, e2)]);
        gradients.push(e.conj().times(w).times(&Matrix::from_fn(k1 * k2, k1 * k2, both)));
    }
    tiles.push(around(v));
    gradients.push(e.conj().times(v).times(&m1));
    (tiles, gradients)
}

fn check<F: Real, const C: bool>() {
    for shape in SHAPES {
        let world = World::<F>::new(C, shape);
        let (tiles, gradients) = found::<F, C>(SimdLevel::Best, &world);
        let near = |x: Complex64, y: Complex64, what: &str, n: usize| {
            let terms = shape.iter().product::<usize>() * F::LANES;
            let error = (x - y).norm() / (1.0 + y.norm());
            assert!(error <= tolerance::<F>(terms), "{what} {n} {shape:?} {C}: {x} for {y}");
        };
        let mut sums: Vec<Matrix> =
            gradients.iter().map(|g| Matrix::zeros(g.rows(), g.cols())).collect();
        for lane in 0..F::LANES {
            let (expected, more) = expected::<F, C>(&world, lane);
            for (n, (tile, expected)) in tiles.iter().zip(expected).enumerate() {
                for (i, &y) in expected.data().iter().enumerate() {
                    near(get(C, tile, i, lane), y, "tile", n);
                }
            }
            for (sum, more) in sums.iter_mut().zip(&more) {
                sum.data_mut().iter_mut().zip(more.data()).for_each(|(sum, x)| *sum += x);
            }
        }
        for (n, (g, sum)) in gradients.iter().zip(&sums).enumerate() {
            g.data().iter().zip(sum.data()).for_each(|(&x, &y)| near(x, y, "gradient", n));
        }
        for level in LEVELS {
            let other = found::<F, C>(level, &world);
            assert_eq!(other, (tiles.clone(), gradients.clone()), "{level:?} {shape:?}");
        }
    }
}

#[test]
fn environments_and_gradients_match_the_definition() {
    check::<f64, false>();
    check::<f64, true>();
    check::<f32, false>();
    check::<f32, true>();
}
