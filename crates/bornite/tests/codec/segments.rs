//! Files of many segments: the same bytes back, and never more than a few segments in memory.

use std::cell::Cell;
use std::io::{Cursor, Read, Write};
use std::sync::OnceLock;

use bornite::data::Table;
use bornite::learn::Control;
use bornite::model::{
    CompressOptions, FileArchive, Method, ModelOptions, compress_file, decompress_file,
};
use bornite::{Fit, Model};

use crate::table::{compress_by, decompress, model, people};

/// The bytes of a segment.
const SEGMENT: usize = 1 << 14;

/// Counts what is read.
struct Counted<'a, R>(R, &'a Cell<usize>);

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(buffer)?;
        self.1.set(self.1.get() + read);
        Ok(read)
    }
}

/// Hands what is written to a function.
struct Watched<F>(F);

impl<F: FnMut(&[u8])> Write for Watched<F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What is read is written before more than one further segment is read, in both directions.
#[test]
fn no_more_than_two_segments_are_held() {
    let content = people(12_000);
    let options = CompressOptions { segment_bytes: Some(SEGMENT), ..CompressOptions::default() };
    let (read, mut packed, mut ends) = (Cell::new(0), Vec::new(), Vec::new());
    let out = Watched(|bytes: &[u8]| {
        assert!(read.get() <= (ends.len() + 1) * SEGMENT + 1, "{} after {ends:?}", read.get());
        packed.extend_from_slice(bytes);
        ends.push(packed.len());
    });
    let input = Counted(content.as_bytes(), &read);
    let done =
        compress_file(input, out, "people", Some(model()), &options, &mut |_| Control::Continue)
            .unwrap();
    assert!(done.segments > 12 && done.stored == 0, "{done:?}");
    assert_eq!(ends.len(), done.segments + 2, "the beginning, the segments and the index");

    let (read, mut back, mut segments) = (Cell::new(0), Vec::new(), 0);
    let out = Watched(|bytes: &[u8]| {
        segments += 1;
        assert!(bytes.len() <= SEGMENT && read.get() <= ends[segments + 1], "segment {segments}");
        back.extend_from_slice(bytes);
    });
    decompress_file(Counted(&packed[..], &read), out, Some(model())).unwrap();
    assert_eq!(segments, done.segments);
    assert!(back == content.as_bytes());

    let mut archive = FileArchive::new(Cursor::new(packed), Some(model())).unwrap();
    assert_eq!(archive.num_bytes(), content.len() as u64);
    assert_eq!(archive.segment_at(content.len() as u64), None);
    for byte in [content.len() - 1, content.len() / 2, 0] {
        let segment = archive.segment_at(byte as u64).unwrap();
        let start = archive.start(segment) as usize;
        let piece = archive.segment(segment).unwrap();
        assert!(piece == content.as_bytes()[start..start + piece.len()]);
        assert!((start..start + piece.len()).contains(&byte));
        assert!(piece.ends_with(b"\n"), "whole rows");
    }
}

#[test]
fn a_segment_that_is_not_written_back_is_stored_and_the_others_are_not() {
    let plain = people(4000);
    let middle = plain[..plain.len() / 2].rfind('\n').unwrap() + 1;
    for (odd, stored) in [
        ("\"Bonn\",30,1.00,no\n", 1),
        ("Bonn,30\n", 1),
        ("Bonn,30,1.00,\"no\nyes\"\n", 0),
        ("Bonn,thirty,one,no\n", 0),
        ("Bonn,inf,1e5,no\n", 0),
        ("\n", 1),
        ("\0\u{feff}\n", 1),
    ] {
        let text = [&plain[..middle], odd, &plain[middle..]].concat();
        for text in [text.clone(), text.replace('\n', "\r\n"), text.trim_end().to_owned()] {
            let (bytes, done) = compress_by(Some(SEGMENT), text.as_bytes(), Some(model()));
            assert_eq!((done.stored, &done.method), (stored, &Method::Given), "{odd:?}: {done:?}");
            assert!(decompress(&bytes, Some(model())).unwrap() == text.as_bytes(), "{odd:?}");
        }
    }
    // An open quote: no row ends any more.
    let text = [&plain[..middle], "\"Bonn,30,1.00,no\n", &plain[middle..]].concat();
    let (bytes, done) = compress_by(Some(SEGMENT), text.as_bytes(), Some(model()));
    assert!(0 < done.stored && done.stored < done.segments, "{done:?}");
    assert!(decompress(&bytes, Some(model())).unwrap() == text.as_bytes());
}

fn numbers(rows: usize) -> Vec<f64> {
    let mut state = 5_u64;
    let number = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((state >> 33) % 1000) as f64 / 100.0
    };
    (0..2 * rows).map(number).collect()
}

/// A model of two columns of numbers, as those of an array are named.
fn array_model() -> &'static Model {
    static MODEL: OnceLock<Model> = OnceLock::new();
    MODEL.get_or_init(|| {
        let table = Table::from_rows(&["x0", "x1"], &numbers(300)).unwrap();
        let options = ModelOptions {
            width: Some(2),
            epochs: Some(1),
            functions: Some(4),
            ..ModelOptions::default()
        };
        Fit::with(options).run(&table).unwrap()
    })
}

fn npy(order: &str, shape: &str, values: &[f64]) -> Vec<u8> {
    let text = format!("{{'descr': '<f8', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.bytes());
    bytes.extend(values.iter().flat_map(|x| x.to_le_bytes()));
    bytes
}

/// A member of a zip archive that is not packed; its checksum is of no interest here.
fn member(name: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\x01\x02\x03\x04".to_vec();
    bytes.extend([content.len() as u32, content.len() as u32].map(u32::to_le_bytes).as_flattened());
    bytes.extend([name.len() as u16, 0].map(u16::to_le_bytes).as_flattened());
    bytes.extend(name.bytes());
    bytes.extend(content);
    bytes
}

#[test]
fn arrays_are_coded_in_segments_of_rows() {
    let values = numbers(3000);
    let rows = npy("False", "(3000, 2)", &values);
    let by_columns = npy("True", "(3000, 2)", &values);
    let mut idx = vec![0, 0, 0x0e, 2, 0, 0, 0x0b, 0xb8, 0, 0, 0, 2];
    idx.extend(values.iter().flat_map(|x| x.to_be_bytes()));
    let two = [&rows[..], &rows].concat();
    let cut = rows[..rows.len() - 5].to_vec();
    let npz = [member("a.npy", &rows), member("b.npy", &rows), b"PK\x01\x02 and so on".to_vec()];
    let large = npy("True", "(6000, 2)", &numbers(6000));
    for (name, file, segments, stored) in [
        ("C order", &rows, 3, 0),
        ("Fortran order", &by_columns, 1, 0),
        ("IDX", &idx, 3, 0),
        ("two arrays in one file", &two, 6, 0),
        ("truncated", &cut, 4, 1),
        ("NPZ", &npz.concat(), 7, 1),
        ("Fortran order, too large to be held", &large, 6, 6),
    ] {
        let (bytes, done) = compress_by(Some(SEGMENT), file, Some(array_model()));
        assert_eq!((done.segments, done.stored), (segments, stored), "{name}: {done:?}");
        assert!(decompress(&bytes, Some(array_model())).unwrap() == *file, "{name}");
    }
}

#[test]
fn impossible_segments_are_refused() {
    for bytes in [0, 1000, usize::MAX] {
        let options = CompressOptions { segment_bytes: Some(bytes), ..CompressOptions::default() };
        let out =
            compress_file(&b"a"[..], Vec::new(), "a", None, &options, &mut |_| Control::Continue);
        assert!(out.unwrap_err().to_string().contains("segment_bytes"));
    }
}
