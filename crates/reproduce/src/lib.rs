//! Published results beside what this code does: what `frit reproduce` runs.
//!
//! An experiment is a file in `experiments/` ([`describe`]); [`catalogue::select`] chooses by id, [`reproduce`] measures,
//! [`outcome::text`] shows. Figures over a sweep share its runs ([`sweep`]), as those over a study of caches do ([`caching`]); [`theory`] compares cleaning with
//! the theory of write amplification.
//!
//! It is not: a second way to run things. Runs are those of `frit-replay`, on stacks that `frit run` takes too.

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
pub use measure::{Plan, Watch, reproduce};
pub use sweep::Traces;
