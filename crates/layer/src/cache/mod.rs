//! The write cache of a disk in PCM (HALO and its alternatives).
//!
//! [`directory`] finds blocks and groups them by regions of the disk (HALO's bucketinfo table: Liu
//! et al., "PCM-Based Durable Write Cache for Fast Disk I/O", MASCOTS 2012, section III).
//! [`policy`] chooses the victims of eviction: HALO and its alternatives behind one trait. [`sim`]
//! counts the hits of a policy over a sequence of blocks.
//!
//! Blocks are 4 KiB. An *LBN* is the number of a block on the disk. A *slot* (the paper's PBN) is
//! the location of a block in the cache. Both are 32 bits: 16 TiB of disk, 8 TiB of cache.

mod config;
mod deferred;
mod destage;
pub mod directory;
mod discard;
mod durable;
mod eviction;
mod halt;
mod health;
mod in_flight;
mod layer;
mod layout;
mod marks;
mod params;
pub mod policy;
mod read;
mod recover;
pub mod sim;
mod space;
mod stats;
mod streams;
#[cfg(test)]
mod tests;
mod verify;
mod view;
mod would_block;
mod write;

pub use config::{CacheConfig, DiskFlush, Mode, Overwrite};
pub use layer::Cache;

/// Size of a block, in bytes.
pub const BLOCK_BYTES: u64 = 4096;
