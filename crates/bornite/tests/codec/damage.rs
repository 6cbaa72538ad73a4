//! A stream that has changed, or is not all there, is an error: never other rows, never a panic.

use bornite::codec::{Archive, Codec, Decompressor};

use crate::exact::crc32;
use crate::models::{bits, fixed, fixed_rows};

fn read_all(codec: &Codec, bytes: &[u8]) -> Result<Vec<f64>, bornite::codec::CodecError> {
    let mut decompressor = Decompressor::new(codec, bytes)?;
    let mut rows = Vec::new();
    while let Some(block) = decompressor.next_block()? {
        rows.extend(block);
    }
    Ok(rows)
}

#[test]
fn every_change_of_a_byte_is_found() {
    let codec = Codec::new(&fixed(1)).unwrap();
    let rows = fixed_rows(2500, true);
    let mut bytes = codec.compress(&rows).unwrap();
    assert!(bytes.len() > 10_000, "{}", bytes.len());
    assert_eq!(Archive::new(&codec, &bytes).unwrap().num_blocks(), 1);
    for at in 0..bytes.len() {
        let right = bytes[at];
        for change in 1..=255 {
            bytes[at] = right ^ change;
            assert!(codec.decompress_block(&bytes, 0).is_err(), "byte {at} as {}", bytes[at]);
        }
        bytes[at] = right ^ (1 << (at % 8));
        assert!(read_all(&codec, &bytes).is_err(), "byte {at}");
        bytes[at] = right;
    }
    assert_eq!(bits(&codec.decompress(&bytes).unwrap()), bits(&rows));
}

#[test]
fn every_change_is_found_among_many_blocks() {
    let codec = Codec::new(&fixed(1)).unwrap().with_block_rows(5).unwrap();
    let rows = fixed_rows(23, true);
    let mut bytes = codec.compress(&rows).unwrap();
    for at in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            bytes[at] ^= change;
            assert!(codec.decompress(&bytes).is_err(), "byte {at}");
            assert!(read_all(&codec, &bytes).is_err(), "byte {at}");
            bytes[at] ^= change;
        }
    }
    assert_eq!(bits(&read_all(&codec, &bytes).unwrap()), bits(&rows));
}

#[test]
fn every_length_but_the_whole_is_refused() {
    let codec = Codec::new(&fixed(1)).unwrap();
    for (rows, block_rows) in [(2500, 4000), (100, 7), (0, 7)] {
        let codec = Codec::new(&fixed(1)).unwrap().with_block_rows(block_rows).unwrap();
        let mut bytes = codec.compress(&fixed_rows(rows, true)).unwrap();
        for length in 0..bytes.len() {
            assert!(codec.decompress(&bytes[..length]).is_err(), "{length}");
        }
        for length in (0..bytes.len()).step_by(if rows == 2500 { 97 } else { 1 }) {
            assert!(read_all(&codec, &bytes[..length]).is_err(), "{length}");
        }
        bytes.push(0);
        assert!(codec.decompress(&bytes).is_err());
        assert!(read_all(&codec, &bytes).is_err());
    }
    assert!(codec.decompress(&[]).is_err());
}

/// Bytes that were changed by someone who knows the format: the checksum of the block is right, that of the values is
/// not, unless the bits that changed are the last ones, which nothing depends on.
#[test]
fn a_forged_block_is_an_error_or_the_same_rows() {
    let codec = Codec::new(&fixed(1)).unwrap();
    let rows = fixed_rows(40, true);
    let bytes = codec.compress(&rows).unwrap();
    let (start, end) = (44, bytes.len() - 36);
    let seal = |bytes: &mut [u8]| {
        let crc = crc32(&bytes[start..end - 4]);
        bytes[end - 4..end].copy_from_slice(&crc.to_le_bytes());
    };
    let mut copy = bytes.clone();
    seal(&mut copy);
    assert_eq!(copy, bytes);
    for at in start..end - 4 {
        for change in [1, 0x10, 0xff] {
            let mut copy = bytes.clone();
            copy[at] ^= change;
            seal(&mut copy);
            for result in [codec.decompress(&copy), read_all(&codec, &copy)] {
                let is_end = at + 12 >= end;
                assert!(result.is_err() || is_end && bits(&result.unwrap()) == bits(&rows), "{at}");
            }
        }
    }
}
