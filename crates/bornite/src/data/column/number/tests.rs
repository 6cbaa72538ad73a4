//! Tests of columns of numbers.

use super::grid::EXACT;
use super::place::SHORTEST_STEP;
use super::*;
use crate::data::{Cell, Support, WarpOptions};

/// Every third value is 0, some are 5 or 2.5, one in thirty is 9999; the others are decimals from 0.1 to 12.
fn values(n: u64) -> Vec<f64> {
    let value = |i: u64| match i % 30 {
        k if k % 3 == 0 => 0.0,
        1 | 2 => 5.0,
        4 => 2.5,
        5 => 9999.0,
        _ => ((i * 7919) % 120 + 1) as f64 / 10.0,
    };
    (0..n).map(value).collect()
}

fn fitted(values: &[f64]) -> Number {
    Number::fit(values, Support::REAL, &WarpOptions::default()).unwrap()
}

#[test]
fn values_that_stand_out_are_atoms() {
    let number = fitted(&values(3000));
    assert_eq!(number.atoms(), [0.0, 2.5, 5.0, 9999.0]);
    assert_eq!(number.decimals(), Some(1));
    // No number is below 0, although 0 is an atom.
    assert!((1..1000).all(|n| number.number_at(f64::from(n) / 1000.0) > 0.0));
    // Evenly distributed counts have no atoms, however often each value occurs.
    let even: Vec<f64> = (0..30_000).map(|i| f64::from(i % 300)).collect();
    assert!(fitted(&even).atoms().is_empty());
    // Without a grid, four rows with the same value are enough.
    let mut real: Vec<f64> = (0..500).map(|i| (f64::from(i) * 0.618).sin()).collect();
    real.extend([0.25; 4]);
    let number = fitted(&real);
    assert_eq!((number.atoms(), number.decimals()), (&[0.25][..], None));
}

#[test]
fn only_frequent_values_can_be_atoms() {
    // 0 has a third of the rows, 5 a fifteenth, 2.5 and 9999 a thirtieth each.
    for (share, atoms) in
        [(0.0, &[0.0, 2.5, 5.0, 9999.0][..]), (0.05, &[0.0, 5.0]), (0.1, &[0.0]), (0.5, &[])]
    {
        let options = WarpOptions::default();
        let number =
            Number::with_frequent_atoms(&values(3000), &[], share, Support::REAL, &options);
        let number = number.unwrap();
        assert_eq!(number.atoms(), atoms);
        // The grid and the bound stay.
        assert_eq!(number.decimals(), Some(1));
        assert!((0..1000).all(|n| number.number_at(f64::from(n) / 1000.0) >= 0.0));
    }
}

#[test]
fn multiples_are_a_grid() {
    // Multiples of 0.25 from 1 to 40, and multiples of 50 from 0.
    let quarters: Vec<f64> = (0..400).map(|i| 1.0 + f64::from((i * 37) % 157) / 4.0).collect();
    let fifties: Vec<f64> = (0..400).map(|i| 50.0 * f64::from((i * i) % 97)).collect();
    for (values, unit) in [(quarters, 0.25), (fifties, 50.0)] {
        let number = fitted(&values);
        assert_eq!(number.unit(), Some(unit));
        let is_multiple = |x: f64| (x / unit).fract() == 0.0;
        assert!((1..1000).all(|n| is_multiple(number.number_at(f64::from(n) / 1000.0))));
        let mut out = [0.0];
        let encode = number.encoder(Storage::Integers);
        assert!(encode(Cell::Number(3.0 * unit), &mut out).is_ok());
        assert_eq!(number.decode(&out).number(), Some(3.0 * unit));
        let between = encode(Cell::Number(3.5 * unit), &mut out);
        assert!(matches!(between, Err(Problem::Between { .. })), "{between:?}");
        let slope = |n: u32| number.place(f64::from(n) * unit).map_or(0.0, |p| p.1.exp());
        let sum: f64 = (0..4000).map(slope).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        let text = serde_json::to_string(&number).unwrap();
        assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), number);
        // A declared atom may lie between multiples; then other numbers may too.
        let atom = 0.5 * unit;
        let named = Number::with_atoms(&values, &[atom], Support::REAL, &WarpOptions::default());
        assert!(unit < 1.0 || named.unwrap().unit() == Some(1.0));
    }
    // A handful of numbers does not determine a step.
    assert_eq!(fitted(&[100.0, 250.0, 400.0, 700.0]).unit(), Some(1.0));
}

/// Regression: half of the mass of 0.5, 1.5, 2.5, … went to the whole numbers.
#[test]
fn grids_may_have_an_offset() {
    let spread = |step: f64, first: f64| -> Vec<f64> {
        (0..600).map(|i| first + step * f64::from((i * 37) % 157)).collect()
    };
    let halves = spread(1.0, 0.5);
    let sevens = spread(10.0, 7.0);
    let prices: Vec<f64> = (0..600).map(|i| f64::from(499 + 500 * (i * i % 97)) / 100.0).collect();
    let negative: Vec<f64> = sevens.iter().map(|x| -x).collect();
    let around: Vec<f64> = sevens.iter().map(|x| x - 800.0).collect();
    let odd: Vec<f64> = spread(2.0, 9_007_199_254_740.0 * 101.0 + 1.0);
    for (values, unit, offset) in [
        (halves, 1.0, 0.5),
        (sevens, 10.0, 7.0),
        (prices, 5.0, 4.99),
        (negative, 10.0, 3.0),
        (around, 10.0, 7.0),
        (odd, 2.0, 1.0),
    ] {
        let number = fitted(&values);
        assert_eq!((number.unit(), number.offset()), (Some(unit), Some(offset)));
        let (low, high) =
            values.iter().fold((f64::MAX, f64::MIN), |(a, b), &x| (a.min(x), b.max(x)));
        let is_on_grid = |x: f64| {
            let n = (x - offset) / unit;
            (n - n.round()).abs() < 1e-9 && !(low >= 0.0 && x < 0.0) && !(high <= 0.0 && x > 0.0)
        };
        assert!((0..=1000).all(|n| is_on_grid(number.number_at(f64::from(n) / 1000.0))));
        let mut out = [0.0];
        let encode = number.encoder(Storage::Integers);
        for &x in &values {
            assert!(encode(Cell::Number(x), &mut out).is_ok());
            assert_eq!(number.decode(&out).number(), Some(x));
        }
        // A multiple of the step is not on the grid.
        let between = encode(Cell::Number(values[3] - offset), &mut out);
        assert!(matches!(between, Err(Problem::Between { .. })), "{between:?}");
        // The cells fill the line, up to the bound at 0 if there is one.
        let slope = |n: i32| number.place(low + f64::from(n) * unit).map_or(0.0, |p| p.1.exp());
        let sum: f64 = (-20_000..20_000).map(slope).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        let text = serde_json::to_string(&number).unwrap();
        assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), number);
        let broken = text.replace("\"offset\":", "\"offset\":1000");
        assert!(serde_json::from_str::<Number>(&broken).is_err());
    }
}

#[test]
fn shares_end_at_one() {
    let shares: Vec<f64> = (0..=300).map(|i| f64::from(i) / 300.0).collect();
    let percent: Vec<f64> = shares.iter().map(|x| (1000.0 * x).round() / 10.0).collect();
    for (values, most) in [(shares, 1.0), (percent, 100.0)] {
        let number = fitted(&values);
        let ends = [0.0, 1e-9, 0.5, 1.0 - 1e-9, 1.0].map(|u| number.number_at(u));
        assert!(ends.iter().all(|x| (0.0..=most).contains(x)), "{ends:?}");
    }
}

#[test]
fn atoms_can_be_named() {
    let named = |atoms: &[f64]| {
        Number::with_atoms(&values(3000), atoms, Support::REAL, &WarpOptions::default())
    };
    let number = named(&[7.5, -1.0, 0.0]).unwrap();
    assert_eq!(number.atoms(), [-1.0, 0.0, 2.5, 5.0, 7.5, 9999.0]);
    for x in [-1.0, 7.5] {
        let (u, slope) = number.place(x).unwrap();
        assert!(slope == 0.0 && number.domains()[0].atom(u).is_some());
        assert_eq!(number.number_at(u), x);
    }
    assert!(matches!(named(&[0.25]), Err(WarpError::Atom(0.25))));
    assert!(matches!(named(&[f64::INFINITY]), Err(WarpError::NotFinite(_))));
}

#[test]
fn atoms_alone_are_fine() {
    let number = fitted(&[vec![0.0; 50], vec![1.5; 20], vec![7.0; 30]].concat());
    assert_eq!(number.atoms(), [0.0, 1.5, 7.0]);
    let number = fitted(&[vec![0.0; 50], vec![3.25]].concat());
    assert_eq!(number.atoms(), [0.0]);
    assert_eq!(number.number_at(number.place(3.25).unwrap().0), 3.25);
}

#[test]
fn cells_come_back_as_they_were() {
    for number in [fitted(&values(3000)), fitted(&[0.1, 0.2, 0.4, 7.5])] {
        let mut out = [0.0];
        let encode = number.encoder(Storage::Integers);
        for n in 0..200 {
            let x = f64::from(n) / 10.0;
            encode(Cell::Number(x), &mut out).unwrap();
            assert!(number.domains()[0].contains(out[0]));
            assert_eq!(number.decode(&out).number(), Some(x));
            // A number between grid points is encoded as the nearest one, but not equal to it.
            let slope = encode(Cell::Number(x), &mut out).unwrap();
            let between = encode(Cell::Number(x + 0.03), &mut out);
            assert!(matches!(between, Err(Problem::Between { slope: s, .. }) if s == slope));
            assert_eq!(number.decode(&out).number(), Some(x));
            // Rounding does not move a number off the grid.
            for same in [f64::from(x as f32), x + 0.1 - 0.1, x.next_up()] {
                assert_eq!(encode(Cell::Number(same), &mut out), Ok(slope), "{same}");
            }
        }
        assert!(encode(Cell::Number(-1.0), &mut out).is_err());
    }
}

#[test]
fn cells_fill_the_line() {
    let number = fitted(&values(3000));
    let cells: Vec<(f64, f64)> = (0..3000)
        .map(|n| f64::from(n) / 10.0)
        .filter(|x| find(number.atoms(), *x).is_none())
        .map(|x| number.cell(x))
        .collect();
    assert_eq!(cells[0].0, 0.0);
    assert!(cells.windows(2).all(|c| c[0].1 == c[1].0), "{cells:?}");
    assert!(cells[cells.len() - 1].1 > 1.0 - 1e-9);
    // Every u inside a cell decodes to its number.
    for n in 0..2000 {
        let u = (f64::from(n) + 0.5) / 2000.0;
        let (low, high) = number.cell(number.number_at(u));
        assert!(low <= u && u < high, "{u} in {low} to {high}");
    }
}

#[test]
fn steps_are_whole_cells() {
    let wide: Vec<f64> = (0..2000).map(|i| f64::from(i * i % 1999) * 0.01).collect();
    let few: Vec<f64> = (0..400).map(|i| f64::from(i % 19) + 0.5).collect();
    for number in [fitted(&values(3000)), fitted(&wide), fitted(&few)] {
        let edges = number.edges();
        assert!(edges.windows(2).all(|e| e[1] - e[0] >= 0.9 * SHORTEST_STEP), "{edges:?}");
        assert!((edges[0], edges[edges.len() - 1]) == (0.0, 1.0) && edges.len() < 400);
        let basis = number.basis(0, 64).unwrap();
        assert!(basis.is_orthonormal() && basis.accepts(&number.domains()[0]));
        for n in 0..4000 {
            let u = (f64::from(n) + 0.5) / 4000.0;
            let (low, high) = number.cell(number.number_at(u));
            let inside = edges.iter().find(|e| **e > low + 1e-12 && **e < high - 1e-12);
            assert!(inside.is_none(), "{inside:?} in {low} to {high}");
            // Long cells are steps of their own.
            if high - low > 0.02 && low > 0.0 && high < 1.0 {
                let nearest = edges.iter().map(|e| (e - low).abs()).fold(1.0, f64::min);
                assert!(nearest <= SHORTEST_STEP, "{low} to {high}: {nearest}");
            }
        }
    }
}

#[test]
fn intervals_hold_what_lies_in_them() {
    let numbers = [fitted(&values(3000)), fitted(&values(100)), fitted(&[1.5, 8.0, 12.5])];
    let mut real = values(900);
    real.extend((0..300).map(|i| (f64::from(i) * 0.618).fract() * 9.0));
    for number in numbers.iter().chain([&fitted(&real)]) {
        let cells: Vec<f64> = (0..130).map(|n| f64::from(n) / 10.0).chain([9999.0]).collect();
        let ends = [-1.0, 0.0, 0.04, 0.1, 1.0, 2.4, 2.5, 2.6, 4.9, 5.0, 5.1, 12.0, 9999.0, 1e5];
        for (i, &a) in ends.iter().enumerate() {
            for &b in &ends[i..] {
                let bounds = |x: f64| [Bound::Included(x), Bound::Excluded(x), Bound::Unbounded];
                for (low, high) in bounds(a).into_iter().flat_map(|l| bounds(b).map(|h| (l, h))) {
                    let Ok(ends) = Ends::new(low, high) else { continue };
                    let part = number.between(&ends);
                    for &x in &cells {
                        let (u, _) = number.place(x).unwrap();
                        // So far out, all positions coincide.
                        if u > 1.0 - 1e-12 && find(number.atoms(), x).is_none() {
                            continue;
                        }
                        let inside = part.is_some_and(|(low, high)| low <= u && u < high);
                        // Without a grid, the ends have probability 0.
                        if number.has_density(&[u]) && (x == a || x == b) {
                            continue;
                        }
                        assert_eq!(inside, ends.contains(x), "{x} in {ends:?}: {u} in {part:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn numbers_far_out_have_a_probability() {
    let number = fitted(&[0.1, 0.2, 0.4, 7.5]);
    for x in [0.3, 5.0, 42.0, 62_600.0, 1e15] {
        let parts = number.exactly(&[number.place(x).unwrap().0]);
        let [(0, Evidence::In(Part::Interval { low, high }))] = parts[..] else {
            panic!("{x} is {parts:?}");
        };
        assert!(low < high && high <= 1.0, "{x}: {low} to {high}");
        assert!(x < 40.0 || high - low < 1e-10, "{x}: {low} to {high}");
    }
    // Regression: a grid point without neighbors made the search for one endless.
    let far = Number::new(number.warp().clone(), vec![1e300], Some(0));
    assert!(matches!(far, Err(WarpError::Atom(_))));
}

#[test]
fn scores_are_probabilities_on_a_grid() {
    let number = fitted(&values(3000));
    let slope = |x: f64| number.place(x).unwrap().1.exp();
    let rest = (1..4000).map(|n| f64::from(n) / 10.0);
    let sum: f64 = rest.filter(|x| find(number.atoms(), *x).is_none()).map(slope).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    assert_eq!(slope(0.0), 1.0);
}

#[test]
fn numbers_are_stored_and_read() {
    let number = fitted(&values(3000));
    let text = serde_json::to_string(&number).unwrap();
    assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), number);
    let broken = text.replace("\"atoms\":[0.0,2.5", "\"atoms\":[2.5,2.5");
    assert!(serde_json::from_str::<Number>(&broken).is_err());
}

/// Regression: beyond 2⁵³, where a float has no neighbor at the distance of the grid, nothing was below, at or above it.
#[test]
fn numbers_beyond_whole_floats_have_sides() {
    let values: Vec<f64> = (0..12)
        .map(|n| if n == 0 { 7.0 } else { 9_007_199_254_740_000.0 + 23.0 * f64::from(n) })
        .collect();
    let number = fitted(&values);
    for x in [7.0, 9e15, EXACT - 1.0, EXACT, 9_009_057_704_033_400.0, 9.1e15, 1e17, 1e300] {
        let share = |low, high| {
            let ends = Ends::new(low, high).unwrap();
            number.between(&ends).map_or(0.0, |(low, high)| high.min(1.0) - low.max(0.0))
        };
        let sides = [
            share(Bound::Unbounded, Bound::Excluded(x)),
            share(Bound::Included(x), Bound::Included(x)),
            share(Bound::Excluded(x), Bound::Unbounded),
        ];
        assert!((sides.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{x}: {sides:?}");
    }
}
