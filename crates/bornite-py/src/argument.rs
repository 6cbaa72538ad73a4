//! Arguments that accept several types.

use std::sync::Arc;

use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PySequence, PyString};

use crate::basis::Basis;
use crate::domain::Domain;
use crate::exception::{BorniteError, argument_error};

/// A basis, or the number of values of a finite domain with indicators.
#[derive(Clone)]
pub(crate) struct BasisLike(pub(crate) Arc<bornite::Basis>);

impl<'a, 'py> FromPyObject<'a, 'py> for BasisLike {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(basis) = object.cast::<Basis>() {
            return Ok(Self(basis.get().0.clone()));
        }
        let v = whole(&object, "a basis or a number of values")?;
        Ok(Self(Arc::new(bornite::Basis::indicator(v))))
    }
}

/// A domain, or the number of values of a finite domain.
#[derive(Clone)]
pub(crate) struct DomainLike(pub(crate) bornite::Domain);

impl<'a, 'py> FromPyObject<'a, 'py> for DomainLike {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(domain) = object.cast::<Domain>() {
            return Ok(Self(domain.get().0.clone()));
        }
        whole(&object, "a domain or a number of values").map(|v| Self(bornite::Domain::Finite(v)))
    }
}

/// Reads a whole number ≥ 0.
pub(crate) fn whole(object: &Bound<'_, PyAny>, expected: &str) -> PyResult<usize> {
    if let Ok(v) = object.extract::<usize>() {
        return Ok(v);
    }
    if object.extract::<i128>().is_ok() {
        return Err(BorniteError::new_err(format!("expected {expected}, found {}", shown(object))));
    }
    Err(argument_error(format!("expected {expected}, found {}", shown(object))))
}

/// The position of a variable, layer or weight.
#[derive(Clone, Copy)]
pub(crate) struct Position(u32);

impl Position {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Position {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let position = whole(&object, "a position, counted from 0")?;
        let too_large =
            |_| BorniteError::new_err(format!("{position} is too large for a position"));
        u32::try_from(position).map(Self).map_err(too_large)
    }
}

/// A name.
pub(crate) struct Name(pub(crate) String);

impl<'a, 'py> FromPyObject<'a, 'py> for Name {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let expected = || argument_error(format!("expected a name, found {}", shown(&object)));
        object.extract::<String>().map(Self).map_err(|_| expected())
    }
}

/// One item for all, or a sequence with an item for each.
pub(crate) enum OneOrEach<T> {
    One(T),
    Each(Vec<T>),
}

impl<'a, 'py, T> FromPyObject<'a, 'py> for OneOrEach<T>
where
    T: for<'b> FromPyObject<'b, 'py, Error = PyErr>,
{
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let is_text = object.is_instance_of::<PyString>();
        if is_text || object.cast::<PySequence>().is_err() {
            return object.extract::<T>().map(Self::One);
        }
        let items = object.try_iter()?.map(|item| item?.extract::<T>());
        items.collect::<PyResult<_>>().map(Self::Each)
    }
}

impl<T: Clone> OneOrEach<T> {
    /// The length of the sequence, if each has its own item.
    pub(crate) fn count(&self) -> Option<usize> {
        match self {
            Self::One(_) => None,
            Self::Each(items) => Some(items.len()),
        }
    }

    /// One item for each of `count`. A sequence keeps its own length.
    pub(crate) fn spread(self, count: usize) -> Vec<T> {
        match self {
            Self::One(item) => vec![item; count],
            Self::Each(items) => items,
        }
    }
}

/// The Python representation of an object, for messages.
pub(crate) fn shown(object: &Bound<'_, PyAny>) -> String {
    let text = object.repr().map_or_else(|_| "something else".to_owned(), |text| text.to_string());
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
