//! FlashTier: the manager of a disk behind a solid-state cache (Saxena et al., "FlashTier: A Lightweight,
//! Consistent and Durable Storage Cache", EuroSys 2012; as prototyped on the OpenSSD board: Saxena et al.,
//! FAST 2013, section 3.3).
//!
//! The manager keeps no map of the cached blocks: it asks the device ([`frit_core::CacheDevice`]), and a
//! read that misses goes to the disk. It knows only which blocks are dirty. Which block leaves the cache
//! is the decision of the device.
//!
//! `docs/reference/flashtier.md` is the manual.
//!
//! | file | subject |
//! |---|---|
//! | `config`, `params` | user configuration; parameters that change while the layer runs |
//! | `layer` | state of the layer, and its block interface |
//! | `read`, `write`, `discard` | reads; writes; discards |
//! | `tunnel` | misses as a pattern in the data |
//! | `dirty` | dirty blocks, and the order in which they are cleaned |
//! | `clean` | writeback of dirty blocks, and flushes of the disk |
//! | `durable` | durability interface, recovery |
//! | `precondition`, `view` | preconditioned volumes; metrics and residence |

mod clean;
mod config;
mod dirty;
mod discard;
mod durable;
mod layer;
mod params;
mod precondition;
mod read;
#[cfg(test)]
mod tests;
mod tunnel;
mod view;
mod write;

pub use config::{FlashtierConfig, FlashtierMode};
pub use dirty::CleanOrder;
pub use layer::Flashtier;
