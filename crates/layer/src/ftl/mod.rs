//! FTL: a page-mapped flash translation layer, an SSD of NAND alone (the OpenSSD prototypes of
//! Saxena et al., "Getting Real: Lessons in Transitioning Research Simulations into Hardware
//! Systems", FAST 2013, section 3.1).
//!
//! A mapping unit is a page of the NAND, or a part of it. Several mapping units of a physical page
//! are programmed together. Writes are collected in a *merge buffer* until they fill a physical page,
//! and a *read buffer* keeps physical pages that were read as a whole. Each mapping unit has a record
//! in the spare area with its logical page and its sequence number. Recovery scans these records: the
//! newest version of each page counts.
//!
//! `docs/reference/ftl.md` is the manual.
//!
//! Files that other layers have under the same names:
//!
//! | file | subject |
//! |---|---|
//! | `config`, `params` | user configuration; parameters that change while the layer runs |
//! | `layer` | state of the layer, and its block interface |
//! | `read`, `write`, `discard` | reads; writes and flushes; discards and their record |
//! | `view` | counters, metrics and residence |
//! | `recover`, `check`, `durable` | recovery by a scan; consistency check; durability interface |
//! | `precondition` | preconditioned volumes |
//!
//! Files of the FTL only:
//!
//! | file | subject |
//! |---|---|
//! | `page_map` | the map from logical to physical pages, in DRAM |
//! | `mapping` | mapping schemes: page map, DFTL, FAST, BAST, block map; a file each |
//! | `place`, `translate` | execution of their steps: log blocks and merges; translation pages |
//! | `merge_buffer`, `read_buffer` | buffers of writes and of reads |
//! | `streams` | streams of placement handles, each with a merge buffer |
//! | `meta` | pages of metadata: the mark of a flush, and the record of discards |

mod check;
mod config;
mod discard;
mod durable;
mod layer;
mod mapping;
pub(crate) mod merge_buffer;
mod meta;
mod page_map;
mod params;
mod place;
mod precondition;
mod read;
mod read_buffer;
mod recover;
mod streams;
#[cfg(test)]
mod tests;
mod translate;
mod view;
mod write;

pub use config::{Allocation, FtlConfig, FtlRecovery, SlcMode, StreamGc};
pub use layer::Ftl;
pub use mapping::Mapping;
