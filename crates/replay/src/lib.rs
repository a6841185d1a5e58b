//! A workload over a stack in virtual time: what `frit run` does, and the report it gives.
//!
//! [`Job`] opens a workload once and runs it over stacks; [`run`] is the short form for one that is open
//! already; [`Session`] has the parts. A [`Report`] holds all figures and what they belong to; [`report::text`] and
//! [`report::compare`] show reports, [`report::write_json`] writes them.
//!
//! It is not: a second engine or a second set of statistics. Time is `frit-engine`'s, counts are the media's.

mod error;
mod host;
pub mod html;
pub mod options;
pub mod report;
mod rig;
mod session;
pub mod steady;
pub mod verify;

#[cfg(test)]
mod tests;

pub use error::{Error, Result};
pub use host::Asked;
pub use options::{Lead, RunOptions, Start, Warm};
pub use report::Report;
pub use rig::Watch;
pub use session::{Job, Progress, Session, run, sectors};
