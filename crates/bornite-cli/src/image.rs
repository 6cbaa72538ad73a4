//! The half-image query of the paper's example.

use anyhow::{Result, anyhow, bail};
use bornite::{Circuit, Evidence, Query};

/// The sides of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageSize {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
}

/// The maximum number of variables that a command creates.
pub(crate) const MAX_VARIABLES: usize = bornite::file::limits::MAX_COUNTED_VARIABLES;

impl ImageSize {
    /// Reads `HxW` or `HxWxC`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let sides: Option<Vec<usize>> =
            text.split('x').map(|side| side.trim().parse().ok()).collect();
        let (height, width, channels) = match sides.as_deref() {
            Some(&[h, w]) => (h, w, 1),
            Some(&[h, w, c]) => (h, w, c),
            _ => bail!("'{text}' is not an image size; give HxW or HxWxC, such as 28x28"),
        };
        let size = Self { height, width, channels };
        let count = height.checked_mul(width).and_then(|n| n.checked_mul(channels));
        match count {
            Some(1..=MAX_VARIABLES) => Ok(size),
            _ => Err(anyhow!(
                "'{text}' is not an image size; sides must be at least 1, with at most {MAX_VARIABLES} values in total"
            )),
        }
    }
}

impl std::str::FromStr for ImageSize {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// The query that observes the right half of an image and marginalizes the left.
pub(crate) fn right_half(
    circuit: &Circuit,
    size: ImageSize,
    mut value: impl FnMut() -> f64,
) -> Result<Query> {
    let mut query = Query::unknown(circuit.num_variables());
    for v in 0..circuit.num_variables() {
        if v / size.channels % size.width >= size.width / 2 {
            query.set(circuit.variables(), v, Evidence::Value(value()))?;
        }
    }
    Ok(query)
}
