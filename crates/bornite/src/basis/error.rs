use thiserror::Error;

/// The maximum number of functions of a basis other than [`Indicator`](super::Indicator).
pub const MAX_FUNCTIONS: usize = 4096;

/// The maximum degree of a B-spline.
pub const MAX_DEGREE: usize = 32;

/// The maximum number of functions of a [`Steps`](super::Steps) basis, and of its steps.
pub const MAX_STEP_FUNCTIONS: usize = 256;
/// See [`MAX_STEP_FUNCTIONS`].
pub const MAX_STEPS: usize = 4096;

/// The maximum size of locations, bounds and table entries. Lengths are at least its inverse. So no
/// square of them overflows.
pub const MAX_MAGNITUDE: f64 = 1e150;

/// The maximum distance between T G Tᴴ and the identity in a [`Transformed`](super::Transformed)
/// basis.
pub const TRANSFORM_TOLERANCE: f64 = 1e-8;

/// Why a basis cannot be created from its parameters.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum BasisError {
    /// The basis would have no functions.
    #[error("a {family} basis with 0 functions: ask for at least 1")]
    NoFunctions {
        /// The requested family.
        family: &'static str,
    },
    /// The basis would have more functions than [`MAX_FUNCTIONS`].
    #[error("a {family} basis with {found} functions: ask for at most {MAX_FUNCTIONS}")]
    TooManyFunctions {
        /// The requested family.
        family: &'static str,
        /// The requested number.
        found: usize,
    },
    /// The bounds of an interval are not finite, not in order, too large, or too close to each
    /// other.
    #[error(
        "bounds low = {low} and high = {high}: give numbers of at most 1e150 with high - low of at least 1e-150"
    )]
    Bounds {
        /// The lower bound.
        low: f64,
        /// The upper bound.
        high: f64,
    },
    /// A location, or the end of a half-line, is not finite or too large.
    #[error("location {value}: give a number between -1e150 and 1e150")]
    Location {
        /// The location.
        value: f64,
    },
    /// A scale is not a positive number of reasonable size.
    #[error("scale {value}: give a number between 1e-150 and 1e150")]
    Scale {
        /// The scale.
        value: f64,
    },
    /// A Gaussian is too narrow to be resolved by the floating-point numbers near its location.
    #[error(
        "Gaussian component {component} with location {location} has scale {scale}: give a scale of at least 1e-12 times the location, or shift the variable"
    )]
    Unresolved {
        /// The index of the component.
        component: usize,
        /// Its location.
        location: f64,
        /// Its scale.
        scale: f64,
    },
    /// A table has no columns.
    #[error("a table of functions with 0 values: give at least 1 column")]
    NoValues,
    /// An entry of a table is not finite or too large.
    #[error(
        "table entry of function {function} at value {value} is {re} + {im}i: give finite parts of at most 1e150"
    )]
    TableEntry {
        /// The index of the function.
        function: usize,
        /// The value at which it occurs.
        value: usize,
        /// The real part.
        re: f64,
        /// The imaginary part.
        im: f64,
    },
    /// All entries of a table are zero.
    #[error("every entry of the table is 0: give at least one function that is not zero")]
    ZeroTable,
    /// The degree of a B-spline is larger than [`MAX_DEGREE`].
    #[error("B-spline degree {found}: give at most {MAX_DEGREE}")]
    Degree {
        /// The requested degree.
        found: usize,
    },
    /// There are too few knots for even one B-spline.
    #[error("{found} knots for B-splines of degree {degree}: give at least {needed}")]
    TooFewKnots {
        /// The number of knots.
        found: usize,
        /// The degree.
        degree: usize,
        /// The minimum number of knots for one function.
        needed: usize,
    },
    /// A knot is not finite or too large.
    #[error("knot {index} is {value}: give a number between -1e150 and 1e150")]
    Knot {
        /// The index of the knot.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// The knots are not in nondecreasing order.
    #[error("knot {index} is {right}, below the previous knot, {left}: sort the knots")]
    KnotsDecrease {
        /// The index of the knot.
        index: usize,
        /// The knot before it.
        left: f64,
        /// Its value.
        right: f64,
    },
    /// A knot is repeated so often that a B-spline is zero everywhere.
    #[error(
        "knot value {knot} is repeated so often that B-spline {function} is zero everywhere: repeat it at most degree + 1 times"
    )]
    KnotsRepeat {
        /// The index of the function.
        function: usize,
        /// The repeated knot.
        knot: f64,
    },
    /// There are fewer steps than step functions, or too many of either.
    #[error(
        "{functions} step functions on {steps} steps: give at most {MAX_STEP_FUNCTIONS} functions and {MAX_STEPS} steps, and at least as many steps as functions"
    )]
    Steps {
        /// The number of functions.
        functions: usize,
        /// The number of steps.
        steps: usize,
    },
    /// The edges of steps are not in increasing order, or too close to each other.
    #[error(
        "edge {index} is {right}, not far enough above the previous edge, {left}: sort the edges, and make every step at least 1e-12 of the whole"
    )]
    EdgesDecrease {
        /// The index of the edge.
        index: usize,
        /// The edge before it.
        left: f64,
        /// Its value.
        right: f64,
    },
    /// Atoms are not in increasing order.
    #[error(
        "atom {index} is {right}, not above the previous atom, {left}: sort the atoms and list each only once"
    )]
    AtomsDecrease {
        /// The index of the atom.
        index: usize,
        /// The atom before it.
        left: f64,
        /// Its value.
        right: f64,
    },
    /// Atoms combined with functions of a finite domain, or with other atoms.
    #[error("atoms added to a {family} basis: give functions of a continuous domain")]
    AtomsRest {
        /// The family of the rest.
        family: &'static str,
    },
    /// The base of a transformed basis is finite or already transformed.
    #[error(
        "a transform of a {family} basis: give a table of its values, or the product of the two transforms"
    )]
    TransformBase {
        /// The family of the base.
        family: &'static str,
    },
    /// A transform does not have one column per function of its base.
    #[error(
        "a transform of {rows}x{cols} for a base of {width} functions: give {width} columns and 1 to {width} rows"
    )]
    TransformShape {
        /// The number of rows.
        rows: usize,
        /// The number of columns.
        cols: usize,
        /// The number of functions of the base.
        width: usize,
    },
    /// A transform has an entry that is not finite.
    #[error("transform entry ({row}, {col}) is not finite: give finite numbers")]
    TransformEntry {
        /// The row of the entry.
        row: usize,
        /// Its column.
        col: usize,
    },
    /// The functions T f are not orthonormal.
    #[error(
        "the transformed functions are {residual:e} away from orthonormal (allowed: {TRANSFORM_TOLERANCE:e}): orthonormalize the base again"
    )]
    NotOrthonormal {
        /// The largest entry of T G Tᴴ − I.
        residual: f64,
    },
}

/// Accepts 1 to [`MAX_FUNCTIONS`] functions.
pub(super) fn check_functions(family: &'static str, found: usize) -> Result<(), BasisError> {
    match found {
        0 => Err(BasisError::NoFunctions { family }),
        1..=MAX_FUNCTIONS => Ok(()),
        _ => Err(BasisError::TooManyFunctions { family, found }),
    }
}

/// Accepts the bounds of an interval if neither they nor its length are extreme.
pub(super) fn check_bounds(low: f64, high: f64) -> Result<(), BasisError> {
    let sizes = low.abs() <= MAX_MAGNITUDE && high.abs() <= MAX_MAGNITUDE;
    if sizes && high - low >= 1.0 / MAX_MAGNITUDE {
        Ok(())
    } else {
        Err(BasisError::Bounds { low, high })
    }
}

/// Accepts a location that is not extreme.
pub(super) fn check_location(value: f64) -> Result<(), BasisError> {
    if value.abs() <= MAX_MAGNITUDE { Ok(()) } else { Err(BasisError::Location { value }) }
}

/// Accepts a positive scale that is not extreme.
pub(super) fn check_scale(value: f64) -> Result<(), BasisError> {
    if (1.0 / MAX_MAGNITUDE..=MAX_MAGNITUDE).contains(&value) {
        Ok(())
    } else {
        Err(BasisError::Scale { value })
    }
}
