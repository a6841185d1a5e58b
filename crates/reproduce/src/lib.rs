//! Published results compared with measured ones: the implementation of `frit reproduce`.
//!
//! An experiment is a file in `experiments/` ([`describe`]); [`catalogue::select`] chooses
//! experiments by ID, [`reproduce`] measures them, [`outcome::text`] formats the results. Metrics
//! over a sweep share its runs ([`sweep`]), as do those over a study of caches ([`caching`]);
//! [`theory`] compares garbage collection with the theory of write amplification.
//!
//! This crate has no runner of its own: `frit-replay` runs the stacks, which `frit run` takes as
//! well.

pub mod caching;
pub mod catalogue;
pub mod describe;
mod error;
mod measure;
pub mod outcome;
mod pool;
mod software;
pub mod sweep;
pub mod theory;

pub use error::{Error, Result};
pub use measure::{ProgressFn, ReproduceOptions, reproduce};
pub use sweep::Traces;
