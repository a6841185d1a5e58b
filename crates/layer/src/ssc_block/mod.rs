//! A solid-state cache without a cache manager: a block device with the addresses of a disk, and the
//! commands of the cache for a client that manages it (Saxena et al., "FlashTier", EuroSys 2012, section 4).
//!
//! A write through the block interface is a dirty write, a discard an eviction, and a block that is not
//! present reads as zeros. A client that uses both interfaces knows which of its blocks are clean: the
//! device may drop those at any time.
//!
//! `docs/reference/ssc.md` is the manual.
//!
//! | file | subject |
//! |---|---|
//! | `config`, `params` | user configuration |
//! | `layer` | state of the layer, and its block interface |
//! | `requests` | block requests as commands of the device |
//! | `commands` | commands of clients |
//! | `durable` | durability interface, recovery |

mod commands;
mod config;
mod durable;
mod layer;
mod params;
mod requests;
#[cfg(test)]
mod tests;

pub use config::SscBlockConfig;
pub use layer::SscBlock;
