//! A write cache in PCM, in front of a disk (HALO and its alternatives).
//!
//! [`directory`] finds blocks and groups them by regions of the disk (HALO's bucketinfo table: Liu
//! et al., "PCM-Based Durable Write Cache for Fast Disk I/O", MASCOTS 2012, section III).
//! [`policy`] chooses the victims of eviction: HALO and its alternatives behind one trait. [`sim`]
//! counts the hits of a policy over a sequence of blocks.
//!
//! Blocks are 4 KiB. An *LBN* is the number of a block on the disk. A *slot* (the paper's PBN) is
//! the location of a block in the cache. Both are 32 bits: 16 TiB of disk, 8 TiB of cache.
//!
//! Files that other layers have under the same names:
//!
//! | file | subject |
//! |---|---|
//! | `config`, `params` | user configuration; parameters that change while the layer runs |
//! | `layout` | areas in PCM |
//! | `layer` | state of the layer, and its block interface |
//! | `read`, `write`, `discard` | reads, writes, discards and flushes |
//! | `stats`, `view` | counters; metrics and residence |
//! | `space`, `marks` | slots, blocks, records and their fences; marks of complete records |
//! | `header` | header in PCM, and the state of use |
//! | `halt`, `recover` | clean shutdown and its summary; recovery from the records |
//! | `durable`, `check` | durability interface; consistency check and repair |
//! | `precondition` | preconditioning: a cache full of dirty blocks |
//!
//! Files of the cache only:
//!
//! | file | subject |
//! |---|---|
//! | `block_span`, `fragments` | parts of blocks that a request covers; fragments of blocks |
//! | `eviction`, `destage` | free slots and victims; sorted writes of dirty blocks to the disk |
//! | `merge` | merge of two versions of a block that a crash left |
//! | `in_flight`, `writeback` | blocks in flight; writebacks, until the disk is flushed |
//! | `deferred_io`, `deferred` | descriptors of deferred accesses to the disk; their execution outside the lock |
//! | `would_block` | prediction of requests that would wait for the disk |
//! | `disk_health`, `disk_failures` | state of the disk; effects of its failures |
//! | `streams` | detection of sequential streams of writes |
//!
//! `layer`, `space`, and the types of their fields do not import the files that implement the
//! behaviour of [`Cache`], so the state can be read first.

use frit_core::convert::bounded_u32;

mod block_span;
mod check;
mod config;
mod deferred;
mod deferred_io;
mod destage;
pub mod directory;
mod discard;
mod disk_failures;
mod disk_health;
mod durable;
mod eviction;
mod fragments;
mod halt;
mod header;
mod in_flight;
mod layer;
mod layout;
mod marks;
mod merge;
mod params;
pub mod policy;
mod precondition;
mod read;
mod recover;
pub mod sim;
mod space;
mod stats;
pub(crate) mod streams;
#[cfg(test)]
mod tests;
mod view;
mod would_block;
mod write;
mod writeback;

pub use crate::numbers::{BucketId, CacheSlot, Lbn};
pub use config::{CacheConfig, CacheMode, DiskFlush, Overwrite};
pub use layer::Cache;

/// Size of a block, in bytes.
pub const BLOCK_BYTES: u64 = 4096;
/// Size of a block as the length of a payload.
const BLOCK_LEN: u32 = bounded_u32(BLOCK_BYTES);
