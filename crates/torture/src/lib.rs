//! Faults, power cuts at every media operation, and oracles that say what must hold after them.
//!
//! A run of a layer is recorded once, over stores that log every write under the command that it belongs to
//! ([`tap`], [`tape`]); the recording is an order of durability ([`graph`]), which is cut everywhere ([`cut`]).
//! Each cut is an image of the media ([`apply`]), which is recovered, read, checked, recovered again and
//! used ([`oracle`]). `docs/torture.md` is the manual, `docs/faults.md` the list of faults.
//!
//! It is not: a simulator of a device's inside, nor a test of one layer; whatever a stack file describes can
//! be tortured.

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
