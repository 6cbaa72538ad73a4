//! The symbols in the boxes, drawn as paths, so that no font is needed.

use super::svg::px;
use crate::circuit::Layer;
use crate::domain::Domain;

/// The symbols of the layer kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Glyph {
    /// Bars, for functions on a finite domain.
    Bars,
    /// A bell curve, for functions on a continuous domain.
    Curve,
    /// ⊙
    Hadamard,
    /// ⊗
    Kronecker,
    /// Σ
    Sum,
}

impl Glyph {
    pub(super) fn of(layer: &Layer, domain: Option<&Domain>) -> Self {
        match layer {
            Layer::Input { .. } if domain.is_some_and(|d| d.num_values().is_some()) => Glyph::Bars,
            Layer::Input { .. } => Glyph::Curve,
            Layer::Hadamard { .. } => Glyph::Hadamard,
            Layer::Kronecker { .. } => Glyph::Kronecker,
            Layer::Sum { .. } => Glyph::Sum,
        }
    }

    /// The path of the strokes around (x, y), in a square with this side.
    pub(super) fn path(self, x: f64, y: f64, side: f64) -> String {
        let a = 0.29 * side;
        let at = |dx: f64, dy: f64| format!("{} {}", px(x + dx * a), px(y + dy * a));
        let r = px(a);
        let circle = format!(
            "M{}a{r} {r} 0 1 0 {} 0a{r} {r} 0 1 0 -{} 0",
            at(-1.0, 0.0),
            px(2.0 * a),
            px(2.0 * a)
        );
        match self {
            Glyph::Bars => {
                let bars = [(-0.85, -0.1), (0.0, -0.95), (0.85, 0.25)];
                let bar = |(dx, top): (f64, f64)| format!("M{}L{}", at(dx, 0.9), at(dx, top));
                bars.map(bar).concat()
            }
            Glyph::Curve => format!(
                "M{}C{},{},{}S{},{}",
                at(-1.15, 0.75),
                at(-0.35, 0.75),
                at(-0.5, -0.85),
                at(0.0, -0.85),
                at(0.35, 0.75),
                at(1.15, 0.75)
            ),
            // A line of length 0 with round caps is a dot.
            Glyph::Hadamard => format!("{circle}M{}h.01", at(0.0, 0.0)),
            Glyph::Kronecker => {
                let d = std::f64::consts::FRAC_1_SQRT_2;
                format!("{circle}M{}L{}M{}L{}", at(-d, -d), at(d, d), at(d, -d), at(-d, d))
            }
            Glyph::Sum => format!(
                "M{}L{}L{}L{}L{}",
                at(0.75, -0.95),
                at(-0.75, -0.95),
                at(0.1, 0.0),
                at(-0.75, 0.95),
                at(0.75, 0.95)
            ),
        }
    }
}
