//! SSC: a solid-state cache of NAND (FlashTier: Saxena et al., EuroSys 2012; as prototyped on the
//! OpenSSD board: Saxena et al., FAST 2013, section 3.3).
//!
//! The device holds blocks of a disk under the disk's own addresses. It distinguishes clean blocks, which
//! the disk has as well, from dirty ones. Instead of copying clean blocks in garbage collection it drops
//! them (*silent eviction*). Its map survives crashes by a log of map changes and by checkpoints.
//!
//! `docs/reference/flashtier.md` is the manual.
//!
//! | file | subject |
//! |---|---|
//! | `config` | user configuration |
//! | `layer` | state of the device |
//! | `device` | its interface, [`frit_core::CacheDevice`] |
//! | `map` | the map from blocks of the disk to pages of NAND |
//! | `blocks`, `place` | erase blocks and their pools; places for programs |
//! | `read`, `write`, `remove` | reads; writes and flushes; evictions and cleaning |
//! | `collect` | silent eviction |
//! | `records`, `log`, `checkpoint` | format of the metadata; log of map changes; checkpoints |
//! | `scan`, `recover`, `check` | contents of the NAND at a recovery; recovery; consistency check |
//! | `view` | counters and metrics |

mod blocks;
mod check;
mod checkpoint;
mod collect;
mod config;
mod device;
mod layer;
mod log;
mod map;
mod place;
mod read;
mod records;
mod recover;
mod remove;
mod scan;
#[cfg(test)]
mod tests;
mod view;
mod write;

pub use config::{SscConfig, SscDurability, SscFlush};
pub use layer::Ssc;
pub(crate) use records::BLOCKS_MAX;
