//! A compressed file that has changed, or is not all there, is an error.

use std::io::Cursor;

use bornite::model::FileArchive;

use crate::table::{compress, compress_by, decompress, model, people};

/// Every value of every byte, and every length.
fn check(mut bytes: Vec<u8>, content: &[u8]) {
    let is_error = |bytes: &[u8]| decompress(bytes, Some(model())).is_err();
    for at in 0..bytes.len() {
        assert!(is_error(&bytes[..at]), "cut at {at}");
        let right = bytes[at];
        for change in 1..=255 {
            bytes[at] = right ^ change;
            assert!(is_error(&bytes), "byte {at} as {}", bytes[at]);
        }
        bytes[at] = right;
    }
    assert!(decompress(&bytes, Some(model())).unwrap() == content);
    bytes.push(0);
    assert!(is_error(&bytes));
}

#[test]
fn every_change_and_every_cut_of_a_table_is_found() {
    let text = people(900);
    let (bytes, done) = compress(text.as_bytes(), Some(model()));
    assert_eq!((done.segments, done.stored), (1, 0));
    assert!(bytes.len() > 3000, "{}", bytes.len());
    check(bytes, text.as_bytes());
}

#[test]
fn every_change_and_every_cut_among_stored_segments_is_found() {
    for content in [&b""[..], b"no table\0", &b"no table\0".repeat(4000)] {
        let (bytes, done) = compress_by(Some(1 << 14), content, None);
        assert_eq!(done.segments, content.len().div_ceil(1 << 14));
        check(bytes, content);
    }
}

/// The archive looks at the model and the index first, then at one segment.
#[test]
fn an_archive_finds_every_change_where_it_looks() {
    let text = people(2500);
    let (mut bytes, done) = compress_by(Some(1 << 14), text.as_bytes(), Some(model()));
    assert!(done.segments > 2);
    let open = |bytes: &[u8]| FileArchive::new(Cursor::new(bytes.to_vec()), Some(model()));
    let whole = |bytes: &[u8]| -> Option<Vec<Vec<u8>>> {
        let mut archive = open(bytes).ok()?;
        (0..archive.num_segments()).map(|n| archive.segment(n).ok()).collect()
    };
    assert!(whole(&bytes).unwrap().concat() == text.as_bytes());
    let (start, tail) = (28, bytes.len() - 28 - 16 * done.segments);
    for at in (0..start).chain(tail..bytes.len()) {
        for change in 1..=255 {
            bytes[at] ^= change;
            assert!(open(&bytes).is_err(), "byte {at}");
            bytes[at] ^= change;
        }
    }
    // One segment is lost, the others are not.
    bytes[start + 100] ^= 1;
    let mut archive = open(&bytes).unwrap();
    assert!(archive.segment(0).is_err() && archive.segment(1).is_ok());
    assert!(archive.segment(done.segments).is_err());
    for length in (0..bytes.len()).step_by(7) {
        assert!(open(&bytes[..length]).is_err(), "cut at {length}");
    }
}
