//! A nameless-write device without a volume, for an owner that keeps the addresses of its blocks: a file
//! system, or a client over the control socket (Zhang et al., FAST 2012).
//!
//! The block interface is the virtual address space of the device, in which the owner keeps its metadata.
//! Contents are reached through [`frit_core::NamelessDevice`]
//! ([`frit_core::BlockLayer::nameless_device`]). Virtual writes become durable together, at a flush.
//!
//! `docs/reference/nameless.md` is the manual.
//!
//! | file | subject |
//! |---|---|
//! | `config`, `params` | user configuration |
//! | `sizes` | capacity for contents, and number of virtual blocks |
//! | `layer` | state of the layer, and its block interface |
//! | `requests` | block requests as virtual reads and writes |
//! | `durable` | durability interface, recovery |

mod config;
mod durable;
mod layer;
mod params;
mod requests;
mod sizes;
#[cfg(test)]
mod tests;

pub use config::NamelessBlockConfig;
pub use layer::NamelessBlock;
