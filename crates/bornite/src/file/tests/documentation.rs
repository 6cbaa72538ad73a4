use super::bits;
use crate::file::{from_bytes, from_json, to_bytes, to_json};

const FORMAT: &str = include_str!("../../../../../docs/FORMAT.md");

/// The fenced code blocks in a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("\n```{language}\n");
    let after = |piece: &'static str| piece.split_once("\n```").map_or(piece, |(block, _)| block);
    FORMAT.split(&fence).skip(1).map(after).collect()
}

#[test]
fn every_example_is_a_circuit() {
    let examples = blocks("json");
    assert!(examples.len() >= 8, "{}", examples.len());
    for example in examples {
        let circuit = from_json(example).unwrap_or_else(|e| panic!("{e}\n{example}"));
        let read = from_json(&to_json(&circuit)).unwrap();
        assert_eq!(bits(&read), bits(&circuit));
    }
}

#[test]
fn every_wrong_example_gives_the_message_below_it() {
    let (files, messages) = (blocks("json5"), blocks("text"));
    assert!(!files.is_empty() && files.len() == messages.len());
    for (file, message) in files.iter().zip(messages) {
        assert_eq!(from_json(file).unwrap_err().to_string(), message, "{file}");
    }
}

#[test]
fn the_bytes_are_those_of_the_example() {
    let dump: String =
        blocks("hexdump")[0].lines().map(|l| l[10..58].trim().to_owned() + " ").collect();
    let byte = |digits: &str| u8::from_str_radix(digits, 16).unwrap();
    let bytes: Vec<u8> = dump.split_whitespace().map(byte).collect();
    let circuit = from_json(blocks("json")[0]).unwrap();
    assert_eq!(bits(&from_bytes(&bytes).unwrap()), bits(&circuit));
    assert_eq!(to_bytes(&circuit).unwrap(), bytes);
}

/// Replacing any character of an example gives an error or another circuit, but never a panic.
#[test]
fn every_change_of_a_character_is_survived() {
    let examples = blocks("json").into_iter().filter(|e| !e.contains("784"));
    let (mut read, mut refused) = (0, 0);
    for example in examples {
        for position in 0..example.len() {
            for byte in [b'0', b'9', b'-', b'.', b'e', b'"', b'[', b'}', b',', b' '] {
                let mut changed = example.as_bytes().to_vec();
                changed[position] = byte;
                match from_bytes(&changed) {
                    Ok(circuit) => {
                        read += 1;
                        assert!(circuit.num_layers() > 0);
                    }
                    Err(e) => {
                        refused += 1;
                        assert!(!e.to_string().is_empty());
                    }
                }
            }
        }
    }
    assert!(read > 0 && refused > read, "{read} read and {refused} refused");
}
