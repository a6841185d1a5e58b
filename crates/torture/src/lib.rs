//! Faults, a power cut at every media operation, and oracles that verify the results.
//!
//! A run of a layer is recorded once, over stores that log every write with its command ([`tap`],
//! [`tape`]). The recording is an order of durability ([`graph`]), which is cut everywhere
//! ([`cut`]). Each cut gives an image of the media ([`apply`]), which is recovered, read, checked,
//! recovered again and used ([`oracle`]). `docs/torture.md` is the manual, `docs/faults.md` the
//! list of faults.
//!
//! The crate does not simulate the inside of a device and is not limited to one layer: it tortures
//! any stack that a stack file describes.

pub mod apply;
pub mod campaign;
pub mod case;
pub mod cut;
mod cuts;
mod damage;
mod errors;
pub mod files;
pub mod fs;
pub mod graph;
pub mod history;
pub mod medium;
pub mod oracle;
mod rest;
pub mod scale;
pub mod session;
pub mod set;
mod shrink;
pub mod stamp;
pub mod subject;
pub mod tap;
pub mod tape;
pub mod trouble;
mod wear;
pub mod workload;
