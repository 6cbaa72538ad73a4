//! Compressed files that were written once, kept in `testdata/golden`: they may change only with the version of the format,
//! or with that of zstd.

use std::path::PathBuf;

use bornite::Model;

use crate::table::{compress, compress_by, decompress, few_values, fit, people};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/golden").join(name)
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

/// Every way in which a cell can be coded: by the model, on a grid, escaped, and beside the rows; and rows of CSV that are
/// stored, since they have needless quotes.
fn golden() -> String {
    let text = people(900).replace("yes\n", "yes,a b\n").replace("no\n", "no,\n");
    let text = text.replace("flag\n", "flag,note\nParis,17000,-0.0,maybe,x\n");
    text + &"\"Bonn\",30,1.00,no,\n".repeat(900)
}

#[test]
fn a_kept_file_is_read_and_written_the_same() {
    let (model, packed) = (Model::load(path("people.model")).unwrap(), read("people.brz"));
    let content = golden();
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            assert!(decompress(&packed, Some(&model)).unwrap() == content.as_bytes());
            let (bytes, done) = compress_by(Some(1 << 14), content.as_bytes(), Some(&model));
            assert_eq!((done.segments, done.stored), (3, 2));
            assert!(bytes == packed, "{} bytes, {} before", bytes.len(), packed.len());
        });
    }
}

/// Fitting may differ from machine to machine in the last bits; reading what was fitted may not.
#[test]
fn a_kept_file_with_its_own_model_is_read_the_same() {
    assert!(decompress(&read("own.brz"), None).unwrap() == few_values().as_bytes());
}

/// Writes the files anew, for a new version of the format.
#[test]
#[ignore = "it makes the files that the others read"]
fn write_the_kept_files() {
    std::fs::create_dir_all(path("")).unwrap();
    fit(&people(200)).save(path("people.model")).unwrap();
    let model = Model::load(path("people.model")).unwrap();
    let (bytes, _) = compress_by(Some(1 << 14), golden().as_bytes(), Some(&model));
    std::fs::write(path("people.brz"), bytes).unwrap();
    std::fs::write(path("own.brz"), compress(few_values().as_bytes(), None).0).unwrap();
}
