use super::{EXAMPLE, bits};
use crate::file::{from_bytes, from_json, to_bytes};

fn example() -> Vec<u8> {
    to_bytes(&from_json(EXAMPLE).unwrap()).unwrap()
}

fn header_length(bytes: &[u8]) -> usize {
    u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize
}

/// A file with this header, followed by this many zero bytes.
fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = example();
    for end in 0..bytes.len() {
        assert!(from_bytes(&bytes[..end]).is_err(), "cut to {end} of {} bytes", bytes.len());
    }
    for more in 1..20 {
        let mut longer = bytes.clone();
        longer.resize(bytes.len() + more, 0);
        let message = from_bytes(&longer).unwrap_err().to_string();
        assert!(message.contains("has trailing bytes"), "{message}");
    }
}

/// A flipped bit may give another valid file, such as one with a renamed variable, but never a panic.
#[test]
fn every_flip_in_the_header_is_survived() {
    let bytes = example();
    let circuit = bits(&from_bytes(&bytes).unwrap());
    let mut same = 0;
    for position in 0..8 + header_length(&bytes) {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[position] ^= 1 << bit;
            same += usize::from(from_bytes(&flipped).is_ok_and(|c| bits(&c) == circuit));
        }
        for value in [0, b' ', b'"', b'9', b'{', b'}', b'[', b',', 0xff] {
            let mut changed = bytes.clone();
            changed[position] = value;
            let _either = from_bytes(&changed);
        }
    }
    // Only replacing one white space by another leaves the circuit unchanged.
    assert!(same < 200, "{same}");
}

#[test]
fn a_flip_in_the_data_is_another_weight_or_an_error() {
    let bytes = example();
    let circuit = bits(&from_bytes(&bytes).unwrap());
    for position in 8 + header_length(&bytes)..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[position] ^= 0xff;
        assert!(from_bytes(&flipped).map_or(true, |c| bits(&c) != circuit));
    }
}

#[test]
fn lying_headers() {
    let json = |weight: &str| {
        let json = format!(
            r#"{{"version": 1, "variables": [{{"name": "x", "domain": {{"finite": 2}}}}],
                "layers": [{{"kind": "input", "variable": "x"}},
                           {{"kind": "sum", "input": 0, "weight": {weight}}}], "output": 1}}"#
        );
        serde_json::Value::from(json).to_string()
    };
    let one = json(r#"{"tensor": "w"}"#);
    let header = |tensors: &str| format!(r#"{{"__metadata__": {{"bornite": {one}}}, {tensors}}}"#);
    let w = |shape: &str, offsets: &str| {
        format!(r#""w": {{"dtype": "F64", "shape": {shape}, "data_offsets": {offsets}}}"#)
    };
    assert!(from_bytes(&file(&header(&w("[1, 2]", "[0, 16]")), 16)).is_ok());
    assert!(from_bytes(&file(&header(&w("[1, 2, 2]", "[0, 32]")), 32)).is_ok());
    let good = w("[1, 2]", "[0, 16]");
    let huge = "[2305843009213693951]";
    let cases: Vec<(String, usize, &str)> = vec![
        (header(&w("[1, 2]", "[0, 16]")), 8, "the tensors take 16 bytes, but the file has 8"),
        (header(&w("[1, 2]", "[0, 16]")), 24, "take 16 bytes, but the file has 24"),
        (header(&w("[1, 2]", "[8, 24]")), 24, "header.w: the tensor should begin at byte 0"),
        (header(&w("[1, 2]", "[16, 0]")), 16, "header.w.data_offsets: expected an end after"),
        (header(&w("[1, 3]", "[0, 16]")), 16, "header.w: the shape [1, 3] does not match"),
        (header(&w("[4294967296, 4294967296]", "[0, 0]")), 0, "header.w: the shape"),
        (header(&w("[0, 2]", "[0, 0]")), 0, "header.w.shape: expected [rows, columns]"),
        (header(&w("[2]", "[0, 16]")), 16, "header.w.shape: expected [rows, columns]"),
        (header(&w("[1, 1, 2]", "[0, 16]")), 16, "layer 1: its weight is 1x1"),
        (header(&w("[2, 1]", "[0, 16]")), 16, "layer 1: its weight is 2x1"),
        (header(&w("[1, 2]", "[0, 1e400]")), 16, "header: invalid JSON: number out of range"),
        (header(&w("[1, 2]", "[0, 18446744073709551615]")), 16, "header.w.data_offsets[1]"),
        (header(&w(huge, "[0, 9007199254740992]")), 16, "header.w.shape[0]"),
        (header(&w("[1, 2]", "[0.5, 16]")), 16, "header.w.data_offsets[0]: expected a whole"),
        (header(&format!("{good}, {good}")), 16, "header: 'w' appears twice"),
        (header(&good.replace("F64", "F32")), 16, "header.w.dtype: expected \"F64\""),
        (header(&good.replace("shape", "shap")), 16, "header.w: there is no field 'shap'"),
        (header(&good.replace("\"w\"", "\"v\"")), 16, "layers[1].weight: there is no tensor 'w'"),
        (
            header(&format!("{good}, {}", good.replace("\"w\"", "\"v\""))),
            16,
            "header.w: the tensor should begin at byte 16 but begins at 0",
        ),
        (
            header(&format!("{good}, {}", w("[1]", "[16, 24]").replace("\"w\"", "\"v\""))),
            24,
            "header.v: nothing refers to it",
        ),
        (format!("{{{good}}}"), 16, "header: the field '__metadata__' is missing"),
        (format!(r#"{{"__metadata__": {{}}, {good}}}"#), 16, "the field 'bornite' is missing"),
        (
            header(&good).replace("\\\"version\\\": 1,", ""),
            16,
            "the circuit: the field 'version' is missing",
        ),
        (header(&good).replace("version\\\": 1,", "version\\\": 2,"), 16, "use a newer bornite"),
        (
            format!(r#"{{"__metadata__": {{"bornite": {}}}, {good}}}"#, json("[[1, 2]]")),
            16,
            "header.w: nothing refers to it",
        ),
    ];
    for (header, data, part) in cases {
        let message = from_bytes(&file(&header, data)).unwrap_err().to_string();
        assert!(message.contains(part), "expected {part:?}\nin {message:?}\nfor {header}");
    }
}

#[test]
fn one_tensor_is_not_multiplied() {
    let json = r#"{"version": 1, "variables": [{"count": 2, "name": "x{}", "domain": {"finite": 2}}],
        "layers": [{"kind": "input", "variable": "x0"}, {"kind": "input", "variable": "x1"},
                   {"kind": "sum", "input": 0, "weight": {"tensor": "w"}},
                   {"kind": "sum", "input": 1, "weight": {"tensor": "w"}},
                   {"kind": "hadamard", "inputs": [2, 3]}], "output": 4}"#;
    let header = format!(
        r#"{{"__metadata__": {{"bornite": {}}}, "w": {{"dtype": "F64", "shape": [1, 2], "data_offsets": [0, 16]}}}}"#,
        serde_json::Value::from(json)
    );
    let message = from_bytes(&file(&header, 16)).unwrap_err().to_string();
    assert!(message.starts_with("layers[3].weight: the tensor 'w' is already used"), "{message}");
}

#[test]
fn weights_that_are_not_finite() {
    let bytes = example();
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut changed = bytes.clone();
        let start = bytes.len() - 8;
        changed[start..].copy_from_slice(&bad.to_le_bytes());
        let message = from_bytes(&changed).unwrap_err().to_string();
        assert!(message.contains("layer 5: its weight is not finite at row 0"), "{message}");
    }
}

#[test]
fn lying_lengths() {
    for length in [0, 1, 9, 1_000, 99_999_999, 100_000_001, u64::MAX - 7, u64::MAX] {
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend(b"{}\0\0\0\0");
        let message = from_bytes(&bytes).unwrap_err().to_string();
        assert!(!message.is_empty(), "{length}");
    }
    for bytes in [&b""[..], b"  ", b"\x89PNG", b"[1]", b"{\xff\"aaaaaaaaaaa\"}", b"\0"] {
        assert!(from_bytes(bytes).is_err());
    }
}
