//! The file system on modelled memory in virtual time. A [`SimMedium`] is a medium whose reads, writes
//! and fences are commands with causes and dependencies, so that operations have plans and latency.
//!
//! [`bench::run`] runs patterns on files and names; [`plan::explain`] shows the commands of one
//! operation; [`isp::run`] compares a query by in-storage processing with one by software.
//!
//! The crate does not simulate the processor. [`host`] is the model of the host, and
//! `docs/guide/fs-sim.md` says what it omits.

pub mod area;
pub mod bench;
mod build;
mod error;
pub mod host;
pub mod isp;
pub mod plan;
mod sim_medium;

mod timed;

pub use area::{Area, AreaCount, Traffic};
pub use build::{Devices, UnitName};
pub use error::{Error, Result};
pub use host::HostModel;
pub use isp::{IspHost, IspParams};
pub use sim_medium::{MediumCall, RecordedCall, SimMedium};
