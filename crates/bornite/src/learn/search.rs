use super::fit::{Control, Fit, FitOptions, Progress, fit};
use super::network::LearnError;
use crate::circuit::Circuit;
use crate::engine::Rows;

/// The best of several fits, and which it was.
#[derive(Clone, Debug)]
pub struct BestFit {
    /// The place of the best among the candidates.
    pub index: usize,
    /// Its fit.
    pub fit: Fit,
    /// The validation likelihoods of all candidates that were fitted.
    pub tried: Vec<f64>,
}

/// Fits one candidate after the other, narrow ones first, until one is not better than the one before it on the
/// validation rows; keeps the best.
///
/// On tables of some thousand rows wide circuits overfit, and by how much depends on the data: trying is cheap, since a
/// narrow circuit learns far faster than a wide one. Progress is told the place of the candidate. A stop ends the search.
///
/// Returns `None` where there are no candidates.
///
/// # Errors
/// A candidate cannot be learned; see [`fit`].
pub fn fit_best(
    candidates: impl IntoIterator<Item = (Circuit, FitOptions)>,
    train: &Rows<'_>,
    valid: &Rows<'_>,
    progress: &mut dyn FnMut(usize, &Progress) -> Control,
) -> Result<Option<BestFit>, LearnError> {
    let mut best: Option<BestFit> = None;
    let mut tried = Vec::new();
    for (index, (circuit, options)) in candidates.into_iter().enumerate() {
        let mut ended = false;
        let next = fit(&circuit, train, valid, &options, &mut |p| {
            let control = progress(index, p);
            ended |= match control {
                Control::Continue => false,
                Control::Used(share) => share >= 1.0,
                Control::Stop => true,
            };
            control
        })?;
        tried.push(next.valid);
        let is_better = best.as_ref().is_none_or(|b| next.valid > b.fit.valid);
        if is_better {
            best = Some(BestFit { index, fit: next, tried: Vec::new() });
        }
        if ended || !is_better {
            break;
        }
    }
    Ok(best.map(|best| BestFit { tried, ..best }))
}
