//! The file system on modelled memory, in virtual time: a [`Board`] is a medium whose reads, writes and fences are
//! commands with causes and orders, so that operations have plans and latency.
//!
//! [`bench::run`] plays patterns of files and names on it; [`plan::explain`] shows one operation command by command.
//!
//! It is not: a simulator of the processor. What of the host is modelled is in [`host`], and `docs/fs-model.md` says
//! what is not.

pub mod area;
pub mod bench;
mod board;
mod build;
mod error;
pub mod host;
pub mod plan;

mod timed;

pub use area::{Area, AreaCount, Traffic};
pub use board::{Board, Call, Step};
pub use build::{Parts, UnitName};
pub use error::{Error, Result};
pub use host::Host;
pub use timed::Timed;
