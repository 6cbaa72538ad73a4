//! What cannot be compressed, and streams of other models.

use bornite::codec::{Codec, CodecError};
use bornite::structure::{RegionTree, Structure};
use bornite::{Basis, Domain, Orthonormal, Variable, circuit::Weights, ops::orthonormalize};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::models::{fixed, fixed_rows};

fn single(domain: &Domain, basis: &Basis) -> Orthonormal {
    let rng = &mut ChaCha8Rng::seed_from_u64(1);
    let leaf = |_| (Variable::new("x", domain.clone()), basis.clone());
    let structure = Structure::new(RegionTree::parse("0").unwrap(), leaf).width(1);
    orthonormalize(&structure.build(Weights::RealGaussian, rng).unwrap()).unwrap().circuit
}

#[test]
fn another_model_is_refused() {
    let (one, other) = (fixed(1), fixed(4));
    let bytes = Codec::new(&one).unwrap().compress(&fixed_rows(10, false)).unwrap();
    let error = Codec::new(&other).unwrap().decompress(&bytes).unwrap_err();
    assert!(matches!(error, CodecError::WrongModel { .. }), "{error}");
    assert_ne!(Codec::new(&one).unwrap().digest(), Codec::new(&other).unwrap().digest());
}

#[test]
fn values_and_variables_that_do_not_fit_are_named() {
    let codec = Codec::new(&fixed(1)).unwrap();
    let mut rows = fixed_rows(3, true);
    rows[16 + 5] = 4.0;
    assert_eq!(
        codec.compress(&rows).unwrap_err().to_string(),
        "row 1: variable 'x5' cannot be 4: its values are the whole numbers 0 to 3"
    );
    assert!(codec.compress(&rows[..17]).is_err());
    let message = |circuit: &Orthonormal| Codec::new(circuit).unwrap_err().to_string();
    assert_eq!(
        message(&single(&Domain::Real, &Basis::hermite(3, 0.0, 1.0).unwrap())),
        "the domain of variable 'x' is the finite real numbers: only finite variables can be coded; bin or \
         round it"
    );
    let many = (1 << 20) + 1;
    assert_eq!(
        message(&single(&Domain::Finite(many), &Basis::indicator(many))),
        "variable 'x' has 1048577 values, but at most 1048576 can be coded; bin it"
    );
    for rows in [0, (1 << 20) + 1] {
        let error = Codec::new(&fixed(1)).unwrap().with_block_rows(rows).unwrap_err();
        assert!(error.to_string().ends_with("give 1 to 1048576"), "{error}");
    }
}
