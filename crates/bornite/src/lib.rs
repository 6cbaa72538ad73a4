//! Squared orthonormal circuits: densities that are normalized by construction, with exact
//! marginals, conditionals, range queries and samples.
//!
//! A *circuit* c is a tree of layers over functions of single variables. The model is p(x) =
//! ‖c(x)‖² / Z. An *orthonormal* circuit has orthonormal input functions and semi-unitary weights,
//! so Z = 1, and the parts of the tree that depend only on unobserved variables drop out of every
//! query.
//!
//! # The pipeline
//!
//! 1. **Variables and functions.** A [`Variable`] has a [`Domain`]; a [`Basis`] is a set of
//!    functions on it. See [`basis`] for which one to use.
//! 2. **A circuit.** Build one with [`structure::Structure`] from a region tree, bases and widths,
//!    or with [`CircuitBuilder`] from layers, or load it with [`mod@file`] from JSON or
//!    safetensors. A [`Circuit`] is always valid.
//! 3. **Orthonormal form.** [`ops::orthonormalize`](ops::orthonormalize()) rewrites it without
//!    changing p and returns log Z; [`Orthonormal::verify`] accepts a circuit that is already
//!    orthonormal. [`learn::fit`](learn::fit()) learns weights from rows.
//! 4. **Queries.** A [`Query`] states the evidence about each variable: a value, nothing, a set or
//!    an interval.
//!
//! ```
//! use bornite::{Basis, CircuitBuilder, Domain, Query, linalg::Matrix, ops};
//!
//! // c(x, y) = 3 at (0, 0), 4 at (1, 1) and 0 elsewhere, so Z = 25.
//! let mut b = CircuitBuilder::new();
//! let (x, y) = (b.variable("x", Domain::Finite(2)), b.variable("y", Domain::Finite(2)));
//! let (f, g) = (b.input(x, Basis::indicator(2)), b.input(y, Basis::indicator(2)));
//! let product = b.kronecker([f, g]);
//! let output = b.sum(product, Matrix::from_rows(&[[3.0, 0.0, 0.0, 4.0]]));
//! let circuit = b.build(output)?;
//!
//! let orthonormal = ops::orthonormalize(&circuit)?;
//! assert!((orthonormal.log_partition - 25_f64.ln()).abs() < 1e-14);
//! let p = orthonormal.circuit;
//! let query = Query::parse(p.variables(), "x=1")?;
//! assert!((ops::log_marginal(&p, &query)?.exp() - 16.0 / 25.0).abs() < 1e-14);
//! # Ok::<(), bornite::Error>(())
//! ```
//!
//! # What to use when
//!
//! | question | use |
//! |---|---|
//! | p(evidence), one query | [`ops::log_marginal`], or [`ops::marginalize`](ops::marginalize()) with the counts of the paper |
//! | p(evidence), many rows | [`engine::Engine::log_marginals`] |
//! | p(a given b) | the difference of two log marginals |
//! | all single-variable marginals, means, covariances, quantiles, given any evidence | [`ops::Environments`] |
//! | the mean of a product of functions | [`ops::expectation`](ops::expectation()) |
//! | samples, given any evidence | [`engine::Engine::sample`], [`engine::Engine::sample_given`] |
//! | log p of every variable given the ones before it | [`engine::Engine::log_conditionals`] |
//! | c(x) itself, of any circuit | [`ops::evaluate`](ops::evaluate()) |
//! | log Z of a circuit that need not be orthonormal | [`ops::log_partition`] |
//! | how close two circuits are | [`ops::overlap`](ops::overlap()) |
//! | a smaller circuit | [`ops::truncate`](ops::truncate()) |
//! | several circuits as one model | [`Mixture`] |
//! | a drawing of a circuit | [`draw::circuit_svg`] |
//! | plots of a model, and a page with all of them | [`report::Report`] |
//! | the squared circuit itself, as a baseline | [`ops::square`](ops::square()) |
//! | fit a model to a table and ask it questions | [`Fit`], [`Model`] |
//! | tables with types and missing values | [`data`] |
//! | lossless compression of a table or file | [`Model::compress`], [`model::compress_file`] |
//! | lossless compression of rows of finite variables | [`codec`] |
//!
//! # Numbers
//!
//! Probabilities are natural logarithms and never underflow. Weights are real or complex; an
//! operation on a circuit that is real throughout uses real arithmetic. [`engine::Engine`] also
//! runs in single precision. The library does not print, only [`Fit::time`] reads a clock, the
//! [`memory`] limit is the only global state, and the same input gives the same bits with any
//! number of threads.
//!
//! The guide, the map from the paper to the code, and the file format are in `docs` in the
//! repository.
//!
//! # Features
//!
//! All features are on by default, and all are additive. Without any, the crate contains circuits,
//! queries, the engine, learning and circuit files, and needs no C compiler.
//!
//! | feature | adds |
//! |---|---|
//! | `tables` | [`data`] and [`model`]: CSV, NPY, NPZ and IDX files, and models of tables |
//! | `parquet` | Parquet files |
//! | `codec` | [`codec`]: lossless compression of rows, tables and files |
//! | `draw` | [`draw`]: drawings of circuits |
//! | `report` | [`report`]: plots of models, and an HTML page with all of them |

#![cfg_attr(
    not(all(feature = "parquet", feature = "codec", feature = "report")),
    allow(dead_code, unused_imports, reason = "some internal helpers serve only one feature")
)]

mod algebra;
pub mod basis;
pub mod circuit;
#[cfg(feature = "codec")]
pub mod codec;
#[cfg(feature = "tables")]
pub mod data;
mod digest;
mod disk;
pub mod domain;
#[cfg(feature = "draw")]
pub mod draw;
pub mod engine;
mod error;
pub mod file;
pub mod learn;
pub mod linalg;
pub mod memory;
pub mod mixture;
#[cfg(feature = "tables")]
pub mod model;
mod names;
pub mod ops;
mod program;
pub mod query;
mod regions;
#[cfg(feature = "report")]
pub mod report;
mod root;
mod schedule;
pub mod structure;
mod tolerance;

pub use basis::Basis;
pub use circuit::{Circuit, CircuitBuilder, LayerId, Orthonormal, VariableId, WeightId};
pub use domain::{Domain, Variable, WithAtoms};
pub use error::Error;
pub use mixture::Mixture;
#[cfg(feature = "tables")]
pub use model::{Fit, Model};
pub use names::{printable, printable_text, shortest_number, shown};
pub use query::{Evidence, Query};

/// The Rust code of the README and the guide, run as doctests.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide/tour.md")]
    struct Tour;
    #[doc = include_str!("../../../docs/guide/circuits.md")]
    struct Circuits;
    #[doc = include_str!("../../../docs/guide/queries.md")]
    struct Queries;
    #[doc = include_str!("../../../docs/guide/tensor-networks.md")]
    struct TensorNetworks;
    #[doc = include_str!("../../../docs/guide/compression.md")]
    struct Compression;
    #[doc = include_str!("../../../docs/guide/performance.md")]
    struct Performance;
    #[doc = include_str!("../../../docs/guide/images.md")]
    struct Images;
    #[doc = include_str!("../../../docs/guide/report.md")]
    struct Reports;
    #[doc = include_str!("../../../docs/guide/faq.md")]
    struct Faq;
}
