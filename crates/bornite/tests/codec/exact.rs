//! The same bytes on every machine: whatever the threads, the blocks, the instruction set and the build.

use bornite::Orthonormal;
use bornite::codec::Codec;
use bornite::engine::SimdLevel;

use crate::models::{all, bits, fixed, fixed_rows, image, noise, samples, with_holes};

const LEVELS: [SimdLevel; 3] = [SimdLevel::Scalar, SimdLevel::Avx2, SimdLevel::Avx512];

#[test]
fn every_instruction_set_writes_and_reads_the_same_bytes() {
    for (name, circuit) in all() {
        let rows = [samples(&circuit, 77), with_holes(noise(&circuit, 77), 0.3)].concat();
        let bytes = Codec::new(&circuit).unwrap().compress(&rows).unwrap();
        for level in LEVELS {
            let codec = Codec::with_level(&circuit, level).unwrap();
            assert!(codec.compress(&rows).unwrap() == bytes, "{name} {level:?}");
            assert_eq!(bits(&codec.decompress(&bytes).unwrap()), bits(&rows), "{name} {level:?}");
        }
    }
}

#[test]
fn any_number_of_threads_writes_and_reads_the_same_bytes() {
    let circuit = image(4, 7, 5);
    let rows = with_holes(samples(&circuit, 2500), 0.1);
    for block_rows in [1, 10, 1000] {
        let codec = Codec::new(&circuit).unwrap().with_block_rows(block_rows).unwrap();
        let bytes = codec.compress(&rows).unwrap();
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                assert!(codec.compress(&rows).unwrap() == bytes);
                // The reader takes the size of blocks from the stream, not from its own settings.
                let reader = Codec::new(&circuit).unwrap();
                assert_eq!(bits(&reader.decompress(&bytes).unwrap()), bits(&rows));
            });
        }
    }
}

/// CRC-32 as docs/FORMAT.md defines it.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1))
        })
    })
}

/// Streams of a model whose weights are the same everywhere, by length and checksum. They may change only with the
/// version of the format.
#[test]
fn streams_are_pinned() {
    let mut found = Vec::new();
    for (r, holes) in [(1, false), (1, true), (4, false), (4, true)] {
        let circuit = fixed(r);
        for level in LEVELS {
            let codec = Codec::with_level(&circuit, level).unwrap();
            let rows = fixed_rows(1000, holes);
            let bytes = codec.compress(&rows).unwrap();
            assert_eq!(bits(&codec.decompress(&bytes).unwrap()), bits(&rows));
            found.push((codec.digest().to_string(), bytes.len(), crc32(&bytes)));
        }
    }
    found.dedup();
    let (one, four) = ("b0cb55edcde6858ae971939fb684edd8", "55e744d5648825e4761198ffb367c057");
    let expected = [
        (one, 4548, 1_173_286_172),
        (one, 4992, 583_228_030),
        (four, 4492, 2_245_075_103),
        (four, 4960, 1_443_639_417),
    ];
    let expected = expected.map(|(digest, len, crc)| (digest.to_string(), len, crc));
    assert_eq!(found, expected);
}

/// The example of docs/FORMAT.md, byte for byte.
#[test]
fn the_smallest_stream_is_that_of_the_documentation() {
    let circuit = bornite::file::from_json(
        r#"{"variables": [{"name": "x", "domain": {"finite": 2}}],
            "layers": [{"kind": "input", "variable": "x", "basis": {"kind": "indicator"}},
                       {"kind": "sum", "input": 0, "weight": [[0.6, [0, 0.8]]]}],
            "output": 1}"#,
    );
    let codec = Codec::new(&Orthonormal::verify(circuit.unwrap()).unwrap()).unwrap();
    let rows = [1.0, 0.0, 1.0, 1.0, f64::NAN, 0.0];
    let bytes = codec.compress(&rows).unwrap();
    let documented =
        include_str!("../../../../docs/FORMAT.md").split("```hexdump\n").nth(2).unwrap();
    let documented: Vec<&str> = documented.lines().take_while(|l| *l != "```").collect();
    let dump: Vec<String> = bytes
        .chunks(16)
        .enumerate()
        .map(|(n, line)| {
            let digits: Vec<String> = line.iter().map(|b| format!("{b:02x}")).collect();
            format!("{:08x}  {}", 16 * n, digits.join(" "))
        })
        .collect();
    assert_eq!(documented, dump, "\n{}", dump.join("\n"));
    assert_eq!(bits(&codec.decompress(&bytes).unwrap()), bits(&rows));
}
