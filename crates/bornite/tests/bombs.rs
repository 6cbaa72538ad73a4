//! Compressed files that become far larger than they are. The memory limit is that of the whole process, so that this test
//! has one of its own.

use std::fs;
use std::io::Write;

use bornite::data::{CsvOptions, Table};
use bornite::memory;

#[test]
fn bombs_are_refused_before_they_go_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.csv.gz");
    let file = fs::File::create(&path).unwrap();
    let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    let zeros = vec![b'0'; 1 << 20];
    for _ in 0..64 {
        packer.write_all(&zeros).unwrap();
    }
    packer.finish().unwrap();
    // A smaller limit serves as well as a larger bomb.
    memory::set_limit(1 << 20);
    let text = Table::read_csv(&path, &CsvOptions::default()).unwrap_err().to_string();
    assert!(text.contains("memory limit"), "{text}");
    memory::set_limit(memory::DEFAULT_LIMIT);
}
