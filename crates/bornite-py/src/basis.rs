//! Input functions.

use std::sync::Arc;

use bornite::basis::{FourierForm, Part};
use bornite::linalg::{Complex64, Matrix, Scalar};
use bornite::{Evidence, Query, Variable};
use numpy::Element;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::array::{Rows, complex_matrix, scalar_to_array};
use crate::detached::detached;
use crate::domain::Domain;
use crate::exception::{BasisError, BorniteError, Raise};
use crate::query::evidence;

/// K functions of one variable, for the input layers of a circuit.
///
/// ``indicator``, ``fourier``, ``legendre``, ``laguerre``, ``hermite`` and ``steps`` are orthonormal; ``table``, ``gaussian`` and
/// ``bspline`` need not be. Wherever a basis is expected, a whole number v means ``Basis.indicator(v)``.
///
/// >>> from bornite import Basis
/// >>> basis = Basis.legendre(3, 0, 2)
/// >>> basis
/// Basis.legendre(3, 0.0, 2.0)
/// >>> basis.evaluate([0.5, 1.5]).shape
/// (2, 3)
#[pyclass(frozen, eq, module = "bornite")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Basis(pub(crate) Arc<bornite::Basis>);

impl Basis {
    fn new(basis: Result<bornite::Basis, bornite::basis::BasisError>) -> PyResult<Self> {
        basis.map(|basis| Self(Arc::new(basis))).map_err(Raise::raise)
    }

    fn check_has_gram(&self) -> PyResult<()> {
        if let bornite::Basis::Squared(_) = *self.0 {
            return Err(BasisError::new_err(
                "the products f f* of a squared circuit have no Gram matrix; use the basis they are made of",
            ));
        }
        Ok(())
    }

    /// The part of the domain given by a set, range or pair; `None` for all of it.
    fn part(&self, part: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Part>> {
        let Some(part) = part else { return Ok(None) };
        let variable = [Variable::new("x", self.0.natural_domain())];
        let evidence = match evidence(&variable[0], part)? {
            Evidence::Value(_) => {
                let message = "expected a set or range of values, or a pair (low, high)";
                return Err(BorniteError::new_err(message));
            }
            evidence @ (Evidence::Unknown | Evidence::In(_)) => evidence,
        };
        let mut query = Query::unknown(1);
        query.set(&variable, 0, evidence).map_err(Raise::raise)?;
        Ok(match query.evidence()[0].clone() {
            Evidence::Unknown => None,
            Evidence::Value(x) => {
                let atom = variable[0].domain.atom(x);
                Some(Part::Values(vec![atom.unwrap_or(x as usize)]))
            }
            Evidence::In(part) => Some(part),
        })
    }

    fn evaluate_as<'py, T: Scalar + Element>(
        &self,
        py: Python<'py>,
        xs: &[f64],
        axes: &[usize],
    ) -> PyResult<Bound<'py, PyAny>> {
        let values: Matrix<T> = detached(py, || self.0.evaluate_batch(xs))?;
        scalar_to_array(py, &values)?.call_method1("reshape", (axes,))
    }
}

#[pymethods]
impl Basis {
    /// The indicators of the values 0, …, v − 1 of a finite domain.
    #[classmethod]
    fn indicator(_class: &Bound<'_, PyType>, num_values: usize) -> Self {
        Self(Arc::new(bornite::Basis::indicator(num_values)))
    }

    /// Fourier functions with period high − low, on that interval or, if low is 0, on the circle.
    ///
    /// The form ``"real"`` consists of a constant, sines and cosines; the form ``"complex"`` consists of exponentials.
    ///
    /// >>> from bornite import Basis
    /// >>> Basis.fourier(5, 0, 24).domain
    /// Domain.circle(24.0)
    #[classmethod]
    #[pyo3(signature = (functions, low, high, form = "real"))]
    fn fourier(
        _class: &Bound<'_, PyType>,
        functions: usize,
        low: f64,
        high: f64,
        form: &str,
    ) -> PyResult<Self> {
        let form = match form {
            "real" => FourierForm::Real,
            "complex" => FourierForm::Complex,
            _ => {
                let message = format!("there is no form '{form}'; give 'real' or 'complex'");
                return Err(BorniteError::new_err(message));
            }
        };
        Self::new(bornite::Basis::fourier(functions, low, high, form))
    }

    /// Orthonormal Legendre polynomials on [low, high].
    #[classmethod]
    fn legendre(
        _class: &Bound<'_, PyType>,
        functions: usize,
        low: f64,
        high: f64,
    ) -> PyResult<Self> {
        Self::new(bornite::Basis::legendre(functions, low, high))
    }

    /// Orthonormal step functions that are constant between neighboring edges: polynomials in the
    /// middles of the steps.
    #[classmethod]
    fn steps(_class: &Bound<'_, PyType>, functions: usize, edges: Vec<f64>) -> PyResult<Self> {
        Self::new(bornite::Basis::steps(functions, edges))
    }

    /// Laguerre functions on the half-line x ≥ low.
    #[classmethod]
    #[pyo3(signature = (functions, low = 0.0, scale = 1.0))]
    fn laguerre(
        _class: &Bound<'_, PyType>,
        functions: usize,
        low: f64,
        scale: f64,
    ) -> PyResult<Self> {
        Self::new(bornite::Basis::laguerre(functions, low, scale))
    }

    /// Hermite functions on the real line.
    #[classmethod]
    #[pyo3(signature = (functions, location = 0.0, scale = 1.0))]
    fn hermite(
        _class: &Bound<'_, PyType>,
        functions: usize,
        location: f64,
        scale: f64,
    ) -> PyResult<Self> {
        Self::new(bornite::Basis::hermite(functions, location, scale))
    }

    /// Arbitrary functions on a finite domain: row k of the table contains the values of function k at 0, …, v − 1.
    ///
    /// >>> from bornite import Basis
    /// >>> Basis.table([[1, 1, 1], [0, 1, 2]]).gram()
    /// array([[3., 3.],
    ///        [3., 5.]])
    #[classmethod]
    fn table(_class: &Bound<'_, PyType>, values: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::new(bornite::Basis::table(complex_matrix(values, "a table of functions")?))
    }

    /// Normal densities on the real line, given as pairs (location, scale).
    #[classmethod]
    fn gaussian(_class: &Bound<'_, PyType>, components: Vec<(f64, f64)>) -> PyResult<Self> {
        Self::new(bornite::Basis::gaussian(components))
    }

    /// B-splines of the given degree on nondecreasing knots: one for every degree + 2 consecutive knots.
    #[classmethod]
    fn bspline(_class: &Bound<'_, PyType>, degree: usize, knots: Vec<f64>) -> PyResult<Self> {
        Self::new(bornite::Basis::bspline(degree, knots))
    }

    /// The indicators of atoms, in increasing order, followed by these functions, which must be on a continuous domain.
    ///
    /// >>> from bornite import Basis
    /// >>> basis = Basis.laguerre(3).with_atoms([0])
    /// >>> basis.width, basis.domain
    /// (4, Domain.half_line(0.0).with_atoms([0.0]))
    fn with_atoms(&self, points: Vec<f64>) -> PyResult<Self> {
        Self::new((*self.0).clone().with_atoms(points))
    }

    /// The number K of functions.
    #[getter]
    fn width(&self) -> usize {
        self.0.width()
    }

    /// The domain of the functions.
    #[getter]
    fn domain(&self) -> Domain {
        Domain(self.0.natural_domain())
    }

    /// Whether all functions are real.
    #[getter]
    fn is_real(&self) -> bool {
        self.0.is_real()
    }

    /// Whether the integral of f fᴴ over the domain is the identity.
    #[getter]
    fn is_orthonormal(&self) -> bool {
        self.0.is_orthonormal()
    }

    /// The values of all functions at x: K values for a number, or one row of K values for each number in a list.
    ///
    /// >>> from bornite import Basis
    /// >>> Basis.indicator(3).evaluate(1)
    /// array([0., 1., 0.])
    fn evaluate<'py>(&self, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = x.py();
        let (xs, axes) = if let Ok(x) = x.extract::<f64>() {
            (vec![x], vec![self.width()])
        } else {
            let rows = Rows::read(x)?;
            if !rows.is_single() {
                return Err(BorniteError::new_err("expected a number or a list of numbers"));
            }
            let xs = rows.first();
            let axes = vec![xs.len(), self.width()];
            (xs, axes)
        };
        let (low, high) = self.0.natural_domain().bounds();
        let is_finite = self.0.natural_domain().num_values().is_some();
        let outside = |x: &&f64| {
            !(x.is_finite() && **x >= low && **x <= high) || is_finite && x.fract() != 0.0
        };
        if let Some(x) = xs.iter().find(outside) {
            let domain = self.0.natural_domain();
            return Err(BasisError::new_err(format!("x cannot be {x}: its values are {domain}")));
        }
        if self.0.is_real() {
            self.evaluate_as::<f64>(py, &xs, &axes)
        } else {
            self.evaluate_as::<Complex64>(py, &xs, &axes)
        }
    }

    /// The K × K matrix of the integrals of fᵢ fⱼ* over the domain, or over a part of it: a set or range of values, or
    /// a pair (low, high), which means low ≤ x < high.
    ///
    /// >>> from bornite import Basis
    /// >>> Basis.legendre(1, 0, 2).gram((0, 0.5))
    /// array([[0.25]])
    #[pyo3(signature = (part = None))]
    fn gram<'py>(
        &self,
        py: Python<'py>,
        part: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.check_has_gram()?;
        let part = self.part(part)?;
        if self.0.is_real() {
            let gram: Matrix<f64> = detached(py, || gram(&self.0, part.as_ref()))?;
            scalar_to_array(py, &gram)
        } else {
            let gram: Matrix<Complex64> = detached(py, || gram(&self.0, part.as_ref()))?;
            scalar_to_array(py, &gram)
        }
    }

    fn __repr__(&self) -> String {
        repr(&self.0)
    }
}

fn gram<T: Scalar>(basis: &bornite::Basis, part: Option<&Part>) -> Matrix<T> {
    match part {
        Some(part) => basis.gram_over(part),
        None => basis.gram(),
    }
}

/// The call that creates a basis, or a description if the call would be long.
pub(crate) fn repr(basis: &bornite::Basis) -> String {
    use bornite::Basis as B;
    let width = basis.width();
    match basis {
        B::Indicator(_) => format!("Basis.indicator({width})"),
        B::Fourier(b) => {
            let (low, high) = b.bounds();
            let form = match b.form() {
                FourierForm::Real => "real",
                FourierForm::Complex => "complex",
            };
            format!("Basis.fourier({width}, {low:?}, {high:?}, '{form}')")
        }
        B::Legendre(b) => {
            let (low, high) = b.bounds();
            format!("Basis.legendre({width}, {low:?}, {high:?})")
        }
        B::Laguerre(b) => format!("Basis.laguerre({width}, {:?}, {:?})", b.start(), b.scale()),
        B::Hermite(b) => format!("Basis.hermite({width}, {:?}, {:?})", b.location(), b.scale()),
        B::Table(b) => format!("<Basis table: {width} functions of {} values>", b.values().cols()),
        B::Gaussian(_) => format!("<Basis gaussian: {width} densities>"),
        B::BSpline(b) => format!("<Basis bspline: {width} functions of degree {}>", b.degree()),
        B::Transformed(b) => {
            format!("<Basis transformed: {width} functions made of {}>", repr(b.base()))
        }
        B::Atoms(b) => format!("{}.with_atoms({:?})", repr(b.rest()), b.points()),
        B::Steps(b) => {
            format!("<Basis steps: {width} functions on {} steps>", b.edges().len() - 1)
        }
        B::Squared(b) => format!("<Basis squared: {width} products made of {}>", repr(b.base())),
    }
}
