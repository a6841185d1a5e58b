//! Published results compared with measured ones: the implementation of `frit reproduce`.
//!
//! An experiment is a file in `experiments/` ([`Experiment`]); [`catalogue::select`] chooses
//! experiments by ID, and [`reproduce()`] measures them. The description of a measurement depends
//! on the kind of experiment ([`kinds`]). Every kind presents its results in the same generic
//! parts ([`outcome`]), from which [`Reproduction::text`] and [`Reproduction::plots`] are made.
//!
//! Metrics over a sweep share its runs ([`sweep`]), as do those over a study of caches
//! ([`caching`]); [`theory`] compares garbage collection with the theory of write amplification.
//!
//! This crate has no runner of its own: `frit-replay` runs the stacks, which `frit run` takes as
//! well.

pub mod builtin;
pub mod caching;
pub mod catalogue;
pub mod describe;
mod error;
mod experiment;
mod findings;
pub mod kinds;
pub mod outcome;
mod pool;
mod reproduction;
pub mod sweep;
pub mod theory;
mod workbench;
mod workloads;

pub use error::{Error, Result};
pub use experiment::{Experiment, Measured, MeasurementPlan};
pub use reproduction::{ClaimText, ExperimentOutcome, ProgressFn, Reproduction, SCHEMA, reproduce};
pub use sweep::Traces;
pub use workbench::ReproduceOptions;
pub use workloads::{MissingWorkload, WorkloadOutcome};
