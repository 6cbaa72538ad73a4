//! Rows come back, at the size that the model's own probabilities say.

use bornite::codec::{Archive, Codec, Compressor, Decompressor};
use bornite::engine::{Batch, Engine};
use bornite::{Basis, CircuitBuilder, Domain, Orthonormal};

use crate::models::{all, bits, image, noise, samples, with_holes};

#[test]
fn rows_come_back() {
    for (name, circuit) in all() {
        let codec = Codec::new(&circuit).unwrap();
        let d = circuit.num_variables();
        for rows in [
            Vec::new(),
            samples(&circuit, 1),
            samples(&circuit, 300),
            noise(&circuit, 300),
            with_holes(noise(&circuit, 1), 0.5),
            with_holes(samples(&circuit, 300), 0.2),
            with_holes(noise(&circuit, 300), 0.8),
            vec![f64::NAN; 9 * d],
        ] {
            let bytes = codec.compress(&rows).unwrap();
            let back = codec.decompress(&bytes).unwrap();
            assert_eq!(bits(&back), bits(&rows), "{name}, {} rows", rows.len() / d);
        }
    }
}

#[test]
fn codewords_are_as_short_as_the_model_says() {
    for (name, circuit) in all() {
        let codec = Codec::new(&circuit).unwrap();
        let engine = Engine::new(&circuit);
        for rows in [samples(&circuit, 2000), noise(&circuit, 2000)] {
            let log_p =
                engine.log_marginals(&Batch::from_rows(circuit.variables(), &rows).unwrap());
            // A value that cannot be costs no more than 24 bits, and infinitely many by the model.
            let nats: f64 = log_p.unwrap().iter().sum();
            let bytes = codec.compress(&rows).unwrap();
            let (found, expected) = (8.0 * bytes.len() as f64, -nats / std::f64::consts::LN_2);
            assert!(found < expected * 1.005 + 120.0 * 8.0, "{name}: {found} bits for {expected}");
            assert!(found > expected * 0.995, "{name}: {found} bits for {expected}");
        }
    }
}

#[test]
fn missing_cells_cost_the_entropy_of_their_mask() {
    let circuit = image(4, 9, 4);
    let codec = Codec::new(&circuit).unwrap();
    let engine = Engine::new(&circuit);
    let rows = with_holes(samples(&circuit, 3000), 0.1);
    let log_p =
        engine.log_marginals(&Batch::from_rows(circuit.variables(), &rows).unwrap()).unwrap();
    let nats: f64 = -log_p.iter().sum::<f64>();
    let entropy = -(0.1 * 0.1_f64.log2() + 0.9 * 0.9_f64.log2());
    let expected = nats / std::f64::consts::LN_2 + entropy * rows.len() as f64;
    let found = 8.0 * codec.compress(&rows).unwrap().len() as f64;
    assert!((found / expected - 1.0).abs() < 0.01, "{found} bits for {expected}");
}

/// Two variables that are always equal: what the model calls impossible is coded all the same, and after it the
/// rest of the row as if nothing had been said.
#[test]
fn impossible_rows_come_back() {
    let mut builder = CircuitBuilder::new();
    let inputs: Vec<_> = (0..2)
        .map(|v| {
            let variable = builder.variable(format!("x{v}"), Domain::Finite(2));
            builder.input(variable, Basis::indicator(2))
        })
        .collect();
    let product = builder.kronecker(inputs);
    let output = builder.sum(product, bornite::linalg::Matrix::from_rows(&[[1.0, 0.0, 0.0, 0.0]]));
    let circuit = Orthonormal::verify(builder.build(output).unwrap()).unwrap();
    let codec = Codec::new(&circuit).unwrap();
    let rows = [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0];
    let bytes = codec.compress(&rows).unwrap();
    assert_eq!(codec.decompress(&bytes).unwrap(), rows);
    // The second value of the third row is no surprise.
    let count = |rows: &[f64]| codec.compress(&rows.repeat(100)).unwrap().len();
    assert!(count(&[1.0, 0.0]) < count(&[0.0, 0.0]) + 100 * 24 / 8 + 8);
}

#[test]
fn streams_in_pieces_are_the_same_bytes() {
    let circuit = image(4, 5, 4);
    let rows = with_holes(samples(&circuit, 1000), 0.05);
    let codec = Codec::new(&circuit).unwrap().with_block_rows(64).unwrap();
    let bytes = codec.compress(&rows).unwrap();
    let mut compressor = Compressor::new(&codec, Vec::new()).unwrap();
    for piece in rows.chunks(16 * 37) {
        compressor.push(piece).unwrap();
    }
    assert_eq!(compressor.finish().unwrap(), bytes);

    let mut decompressor = Decompressor::new(&codec, &bytes[..]).unwrap();
    let mut back = Vec::new();
    while let Some(block) = decompressor.next_block().unwrap() {
        assert!(block.len() <= 64 * 16);
        back.extend(block);
    }
    assert_eq!(bits(&back), bits(&rows));
    assert!(decompressor.next_block().unwrap().is_none());

    let archive = Archive::new(&codec, &bytes).unwrap();
    assert_eq!((archive.num_rows(), archive.num_blocks(), archive.block_rows()), (1000, 16, 64));
    for (n, block) in rows.chunks(64 * 16).enumerate() {
        assert_eq!(bits(&archive.block(n).unwrap()), bits(block));
        assert_eq!(bits(&codec.decompress_block(&bytes, n).unwrap()), bits(block));
    }
    assert_eq!(
        archive.block(16).unwrap_err().to_string(),
        "there is no block 16: the stream has 16, counted from 0"
    );
}
