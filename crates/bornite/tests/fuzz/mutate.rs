//! Small changes to bytes, texts and JSON.

use rand::{Rng, RngExt};
use serde_json::Value;

/// Numbers at which something changes.
const NUMBERS: [f64; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    3.0,
    0.5,
    255.0,
    256.0,
    4096.0,
    65536.0,
    1_048_576.0,
    67_108_864.0,
    2_147_483_648.0,
    9_007_199_254_740_993.0,
    1e300,
    -1e300,
    1e-300,
    5e-324,
    f64::MAX,
    0.1,
    1e18,
];

/// Words that formats know, and others.
const WORDS: [&str; 20] = [
    "",
    "x",
    "y",
    "real",
    "sum",
    "input",
    "kronecker",
    "hadamard",
    "indicator",
    "haar",
    "gaussian",
    "integer",
    "continuous",
    "categorical",
    "digits",
    "\u{1b}[2J",
    "é\0",
    "{}",
    "tensor",
    "random",
];

pub(crate) fn pick<T: Clone>(rng: &mut impl Rng, items: &[T]) -> T {
    items[rng.random_range(0..items.len())].clone()
}

/// Changes a few bytes: bits, values, pieces removed, repeated or moved.
pub(crate) fn bytes(rng: &mut impl Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.random_range(1..4) {
        if bytes.is_empty() {
            bytes.push(rng.random());
            continue;
        }
        let at = rng.random_range(0..bytes.len());
        let length = rng.random_range(0..=16.min(bytes.len() - at));
        match rng.random_range(0..7) {
            0 => bytes[at] ^= 1 << rng.random_range(0..8),
            1 => bytes[at] = rng.random(),
            2 => bytes[at] = pick(rng, &[0, 1, 0x7f, 0x80, 0xff]),
            3 => drop(bytes.drain(at..at + length)),
            4 => {
                let piece = bytes[at..at + length].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => bytes.truncate(at),
            _ => {
                let number = (pick(rng, &NUMBERS) as u64).to_le_bytes();
                let end = bytes.len().min(at + 8);
                bytes[at..end].copy_from_slice(&number[..end - at]);
            }
        }
    }
}

/// Changes a few nodes of a JSON value.
pub(crate) fn json(rng: &mut impl Rng, value: &mut Value) {
    for _ in 0..rng.random_range(1..4) {
        let count = count(value);
        let other = nth(value, rng.random_range(0..count)).clone();
        let mut place = rng.random_range(0..count);
        change(rng, nth_mut(value, &mut place).expect("it is there"), other);
    }
}

fn change(rng: &mut impl Rng, value: &mut Value, other: Value) {
    if rng.random_ratio(1, 8) {
        *value = other;
        return;
    }
    match value {
        Value::Null | Value::Bool(_) => *value = Value::from(pick(rng, &NUMBERS)),
        Value::Number(number) => {
            let old = number.as_f64().unwrap_or(0.0);
            let new = match rng.random_range(0..4) {
                0 => pick(rng, &NUMBERS),
                1 => old + pick(rng, &[-1.0, 1.0, 1e-9, 0.5]),
                2 => -old,
                _ => old * pick(rng, &[2.0, 0.5, 1e3, 1.0 + 1e-12]),
            };
            // Whole numbers stay whole: fields that count would refuse all else at once.
            let is_whole = number.is_u64() || number.is_i64();
            *value = if is_whole && new.abs() < 9e18 {
                Value::from(new as i64)
            } else {
                Value::from(new)
            };
        }
        Value::String(text) => match rng.random_range(0..4) {
            0 => text.push_str(pick(rng, &WORDS)),
            1 => drop(text.pop()),
            _ => pick(rng, &WORDS).clone_into(text),
        },
        Value::Array(items) => match (rng.random_range(0..4), items.len()) {
            (_, 0) => items.push(other),
            (0, n) => drop(items.remove(rng.random_range(0..n))),
            (1, n) => items.push(items[rng.random_range(0..n)].clone()),
            (2, n) => items.swap(rng.random_range(0..n), rng.random_range(0..n)),
            (_, n) => items[rng.random_range(0..n)] = other,
        },
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            if names.is_empty() {
                return;
            }
            let name = pick(rng, &names);
            match rng.random_range(0..3) {
                0 => drop(fields.remove(&name)),
                1 => drop(fields.insert((pick(rng, &WORDS)).to_owned(), other)),
                _ => drop(fields.insert(name, other)),
            }
        }
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn count(value: &Value) -> usize {
    1 + children(value).into_iter().map(count).sum::<usize>()
}

fn nth(value: &Value, n: usize) -> &Value {
    let mut left = n;
    for child in children(value) {
        if left == 0 {
            return value;
        }
        let inside = count(child);
        if left <= inside {
            return nth(child, left - 1);
        }
        left -= inside;
    }
    value
}

fn nth_mut<'v>(value: &'v mut Value, n: &mut usize) -> Option<&'v mut Value> {
    if *n == 0 {
        return Some(value);
    }
    *n -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|child| nth_mut(child, n)),
        Value::Object(fields) => fields.values_mut().find_map(|child| nth_mut(child, n)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
