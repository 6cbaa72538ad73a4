//! What must hold of everything that is accepted.

use std::ops::Bound;

use bornite::data::ColumnKind;
use bornite::model::Event;
use bornite::ops::log_partition;
use bornite::{Circuit, Model, Orthonormal, file};

/// Why an input fails.
pub(crate) type Law = Result<(), String>;

fn holds(holds: bool, law: impl FnOnce() -> String) -> Law {
    if holds { Ok(()) } else { Err(law()) }
}

/// The multiply-adds of a partition function are about this.
fn work(circuit: &Circuit) -> u128 {
    let width = |id| circuit.width(id) as u128;
    circuit
        .layer_ids()
        .map(|id| width(id).pow(2).saturating_mul(circuit.num_layers() as u128))
        .sum()
}

/// A circuit is the same after it was written and read, and Z = 1 where it is called orthonormal.
///
/// One that takes much of the memory limit is not written and read: that would be there three times.
pub(crate) fn circuit(circuit: Circuit) -> Law {
    let entries: usize = circuit.weights().iter().map(|w| w.rows() * w.cols()).sum();
    if entries < 1 << 22 && circuit.num_layers() < 1 << 16 {
        let bytes = file::to_bytes(&circuit).map_err(|e| format!("cannot be written: {e}"))?;
        let back = file::from_bytes(&bytes).map_err(|e| format!("cannot be read back: {e}"))?;
        holds(back == circuit, || "other bytes after a round trip".to_owned())?;
    }
    if work(&circuit) > 1 << 26 {
        return Ok(());
    }
    let Ok(orthonormal) = Orthonormal::verify(circuit) else { return Ok(()) };
    let log = log_partition(&orthonormal).map_err(|e| format!("no partition function: {e}"))?;
    holds(log.abs() < 1e-5, || format!("orthonormal, and log Z = {log}"))
}

/// A model reads back to the same answers; its probabilities are some, sum to 1 and agree with its cdf and quantiles.
pub(crate) fn model(model: &Model) -> Law {
    let bytes = model.to_bytes().map_err(|e| format!("cannot be written: {e}"))?;
    let back = Model::from_bytes(&bytes).map_err(|e| format!("cannot be read back: {e}"))?;
    let nothing = Event::parse(model.schema(), "").map_err(|e| e.to_string())?;
    let log = model.log_probability(&nothing).map_err(|e| e.to_string())?;
    holds(log.abs() < 1e-5, || format!("log P(nothing) = {log}"))?;
    for column in model.schema().columns() {
        let found = model.distribution(&column.name, &nothing).map_err(|e| e.to_string())?;
        if let Ok(Some(all)) = found.probabilities() {
            let sum: f64 = all.iter().map(|(_, p)| p).sum();
            holds((sum - 1.0).abs() < 1e-6, || format!("'{}' has the sum {sum}", column.name))?;
            let is_one = all.iter().all(|(_, p)| (-1e-12..=1.0 + 1e-9).contains(p));
            holds(is_one, || format!("'{}' has something that is no probability", column.name))?;
        }
        for level in [0.1, 0.5, 0.9] {
            let Ok(x) = found.quantile(level) else { continue };
            holds(!x.is_nan(), || format!("a quantile of '{}' is NaN", column.name))?;
            if let Ok(p) = found.cdf(x) {
                holds(p >= level - 1e-6, || format!("cdf(quantile({level})) = {p}"))?;
            }
        }
        let again = back.distribution(&column.name, &nothing).map_err(|e| e.to_string())?;
        let (one, other) = (found.quantile(0.3).ok(), again.quantile(0.3).ok());
        let is_same = one.map(f64::to_bits) == other.map(f64::to_bits);
        holds(is_same, || "another quantile after a round trip".to_owned())?;
    }
    laws_of_sides(model)?;
    let rows = model.sample(20, 1).map_err(|e| format!("no samples: {e}"))?;
    let scores = model.score(&rows).map_err(|e| format!("samples are refused: {e}"))?;
    holds(scores.iter().all(|s| !s.is_nan()), || "a score is NaN".to_owned())
}

/// What a column may be below, at and above a number sums to 1, beyond all that was seen as well; and what lies beyond says
/// nothing of other columns.
fn laws_of_sides(model: &Model) -> Law {
    let schema = model.schema();
    let nothing = Event::parse(schema, "").map_err(|e| e.to_string())?;
    for column in schema.columns() {
        let Ok(found) = model.distribution(&column.name, &nothing) else { continue };
        let Ok(middle) = found.quantile(0.5) else { continue };
        for x in [middle, middle + 1.0, -1.0, 1e9] {
            let between = |low, high| Event::interval(schema, &column.name, low, high);
            let sides = [
                between(Bound::Unbounded, Bound::Excluded(x)),
                between(Bound::Included(x), Bound::Included(x)),
                between(Bound::Excluded(x), Bound::Unbounded),
            ];
            let mut sum = 0.0;
            for side in sides {
                let Ok(event) = side else { return Ok(()) };
                let log = model.log_probability(&event).map_err(|e| e.to_string())?;
                holds(!log.is_nan(), || format!("a side of '{}' is NaN", column.name))?;
                sum += log.exp();
            }
            let missing = Event::missing(schema, &column.name);
            if let Ok(Ok(log)) = missing.map(|event| model.log_probability(&event)) {
                sum += log.exp();
            }
            // Numbers in no order, and angles, have no sides.
            let has_sides = !matches!(column.kind, ColumnKind::Periodic(_));
            holds(!has_sides || (sum - 1.0).abs() < 1e-6, || {
                format!("'{}' below, at and above {x} has the sum {sum}", column.name)
            })?;
        }
    }
    Ok(())
}
