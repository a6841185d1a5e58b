//! What leaves the cache next.
//!
//! A policy is one file beside this one that implements [`WriteCache`], and one line in [`Policy`]: the
//! name in a stack file is the variant's in kebab case. `docs/cache-policies.md` has them all with their
//! sources.
//!
//! How a cache calls its policy: a block that is there: [`WriteCache::hit`]. One that is not and will be:
//! [`WriteCache::miss`], then, while there is no room, [`WriteCache::victims`], then [`WriteCache::insert`]. One that goes
//! for another reason than being a victim: [`WriteCache::remove`]. Buckets' recency in the directory is the
//! caller's: it [touches](Directory::touch) the bucket with each access.

mod arc;
mod belady;
mod clock;
mod config;
mod fifo;
mod ghosts;
mod halo;
mod links;
mod lru;
mod s3_fifo;
mod sweep;
#[cfg(test)]
mod tests;
mod two_q;
mod wow;

pub use config::PolicyConfig;

use super::directory::Directory;
use arc::Arc;
use belady::Belady;
use clock::Clock;
use enum_dispatch::enum_dispatch;
use fifo::Fifo;
use frit_core::{Error, Result};
use halo::Halo;
use lru::Lru;
use s3_fifo::S3Fifo;
use strum::{EnumString, IntoStaticStr, VariantNames};
use sweep::Sweep;
use two_q::TwoQ;
use wow::Wow;

/// An access to one block.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The block.
    pub lbn: u32,
    /// Whether it is written.
    pub write: bool,
    /// Its ordinal among all block accesses: an oracle's key to the future. 0 where there is none.
    pub at: u64,
    /// The request clock: requests so far. It may wrap.
    pub clock: u32,
}

/// A block that leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Victim {
    /// The block.
    pub lbn: u32,
    /// Where it lies in the cache.
    pub slot: u32,
}

/// What a policy is set up for.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Slots of the cache; those of blocks are below it.
    pub slots: u32,
    /// Blocks of the disk.
    pub disk_blocks: u32,
    /// Parameters.
    pub config: &'a PolicyConfig,
    /// For each block access when the same block is accessed next, as an ordinal; `u64::MAX`: never.
    pub next_use: Option<&'a std::sync::Arc<[u64]>>,
}

/// Chooses which blocks leave a full cache. Blocks are known by slot; the [`Directory`] is the caller's.
#[enum_dispatch]
pub trait WriteCache {
    /// Forget everything; the cache is this one, and empty.
    ///
    /// # Errors
    /// Parameters that do not suit the cache, or a future that is not known.
    fn reset(&mut self, setup: &Setup<'_>) -> Result<()>;

    /// A block that is there was accessed.
    fn hit(&mut self, slot: u32, access: &Access);

    /// A block that is there lies in another slot now.
    fn moved(&mut self, from: u32, to: u32);

    /// A block that is not there was accessed and will be inserted, once there is room.
    fn miss(&mut self, _access: &Access) {}

    /// A block came in.
    fn insert(&mut self, slot: u32, access: &Access);

    /// A block that is no victim left.
    fn remove(&mut self, slot: u32, lbn: u32);

    /// Adds the blocks that leave next to `out`, at least one when any can leave; those of a
    /// run ascend, one after the other. They have left the policy then: the caller takes them out of the directory, or
    /// inserts them again. Blocks that carry the directory's [`PINNED`](super::directory::PINNED) do not leave.
    fn victims(&mut self, dir: &Directory, clock: u32, out: &mut Vec<Victim>);

    /// Starts to load what [`WriteCache::hit`] of a slot will look at.
    #[inline]
    fn prefetch(&self, _slot: u32) {}

    /// Starts to load what [`WriteCache::miss`] of a block will look at.
    #[inline]
    fn prefetch_miss(&self, _lbn: u32) {}

    /// Whether victims are chosen by where they lie on the disk: only then the policy looks at the directory.
    fn by_place(&self) -> bool {
        false
    }

    /// Memory beside the directory, in bytes.
    fn dram_bytes(&self) -> u64;
}

/// All policies.
#[enum_dispatch(WriteCache)]
#[derive(Clone, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Policy {
    /// A bucket of 1 MiB at a time, full ones that were not accessed lately first (Liu et al. 2012).
    Halo,
    /// Least recently used (for writes: LRW).
    Lru,
    /// First in, first out.
    Fifo,
    /// Second chance: FIFO with a bit.
    Clock,
    /// Self-tuning between recency and frequency (Megiddo and Modha 2003).
    Arc,
    /// A FIFO before an LRU (Johnson and Shasha 1994, the full version).
    #[strum(serialize = "2q")]
    TwoQ,
    /// A small FIFO before a large one (Yang et al. 2023).
    S3Fifo,
    /// In the order of the disk, with a bit a group (Gill and Modha 2005).
    Wow,
    /// Dense buckets of 1 MiB, several in one sweep, near runs in turns: our own (`docs/cache-own-policy.md`).
    Sweep,
    /// The block that is needed last leaves: knows the future (Belady 1966).
    Belady,
}

impl Policy {
    /// The policy that `config` names, for an empty cache.
    ///
    /// # Errors
    /// A name that there is not, or parameters that cannot be.
    pub fn new(setup: &Setup<'_>) -> Result<Policy> {
        setup.config.validate()?;
        let name = &setup.config.policy;
        let mut policy: Policy = name.parse().map_err(|_| {
            Error::param(
                "policy",
                name,
                format!("there are {}", <Policy as VariantNames>::VARIANTS.join(", ")),
            )
        })?;
        policy.reset(setup)?;
        Ok(policy)
    }
}
