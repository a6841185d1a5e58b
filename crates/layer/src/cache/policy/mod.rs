//! Eviction policies of the cache.
//!
//! A policy is one file of this module that implements [`EvictionPolicy`], and one line in [`Policy`].
//! Its name in a stack file is the variant's name in kebab case. `docs/reference/cache-policies.md`
//! describes all policies and their sources.
//!
//! Protocol between a cache and its policy: an access to a cached block calls [`EvictionPolicy::hit`].
//! For a block that is not cached and will be inserted, the cache calls [`EvictionPolicy::miss`], then
//! [`EvictionPolicy::victims`] while no slot is free, then [`EvictionPolicy::insert`]. A block that leaves
//! without being a victim calls [`EvictionPolicy::remove`]. The caller maintains the recency of buckets
//! in the directory: it [touches](Directory::touch) the bucket at each access.

mod arc;
mod belady;
mod clock;
mod config;
mod fifo;
mod ghosts;
mod halo;
mod lru;
mod random;
mod s3_fifo;
mod sieve;
mod slot_lists;
mod sweep;
#[cfg(test)]
mod tests;
mod two_q;
mod wow;

pub use config::PolicyConfig;

use super::directory::Directory;
use crate::numbers::{CacheSlot, Lbn};
use arc::Arc;
use belady::Belady;
use clock::Clock;
use enum_dispatch::enum_dispatch;
use fifo::Fifo;
use frit_core::{Error, Result};
use halo::Halo;
use lru::Lru;
use random::Random;
use s3_fifo::S3Fifo;
use serde::Serialize;
use sieve::Sieve;
use strum::{EnumString, IntoStaticStr, VariantNames};
use sweep::Sweep;
use two_q::TwoQ;
use wow::Wow;

/// An access to one block.
#[derive(Clone, Copy, Debug)]
pub struct CacheAccess {
    /// The block.
    pub lbn: Lbn,
    /// The access is a write.
    pub write: bool,
    /// Ordinal among all block accesses, which the policy `belady` needs; otherwise 0.
    pub at: u64,
    /// Request clock: the number of requests so far. It may wrap.
    pub clock: u32,
}

/// A block that is to be evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Victim {
    /// The block.
    pub lbn: Lbn,
    /// Its slot.
    pub slot: CacheSlot,
}

/// Evictions of HALO, by the condition that made a bucket eligible.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct EvictionReasons {
    /// The bucket exceeded TH_BCOUNTS and TH_RECENCY in full.
    pub thresholds: u64,
    /// The bucket exceeded both thresholds after the search had lowered them.
    pub lowered_thresholds: u64,
    /// The bucket exceeded OUTDATE_RECENCY, and not the two thresholds.
    pub outdated: u64,
    /// The search had passed `halo_scan` buckets, and took the next one.
    pub end_of_scan: u64,
}

/// Parameters of a new policy.
#[derive(Clone, Copy, Debug)]
pub struct PolicySetup<'a> {
    /// Number of slots of the cache.
    pub slots: u32,
    /// Number of blocks of the disk.
    pub disk_blocks: u32,
    /// Parameters of the configuration.
    pub config: &'a PolicyConfig,
    /// For each block access, the ordinal of the next access to the same block; `u64::MAX`: none.
    pub next_use: Option<&'a std::sync::Arc<[u64]>>,
}

/// An eviction policy: chooses the victims of a full cache. Policies identify blocks by slot; the
/// caller owns the [`Directory`].
#[enum_dispatch]
pub trait EvictionPolicy {
    /// Resets the policy for an empty cache.
    ///
    /// # Errors
    /// Returns an error if the parameters do not suit the cache, or if the policy needs the future
    /// accesses and they are unknown.
    fn reset(&mut self, setup: &PolicySetup<'_>) -> Result<()>;

    /// Notes an access to a cached block.
    fn hit(&mut self, slot: CacheSlot, access: &CacheAccess);

    /// Notes that a cached block was moved to another slot.
    fn moved(&mut self, from: CacheSlot, to: CacheSlot);

    /// Notes an access to a block that is not cached and will be inserted when a slot is free.
    fn miss(&mut self, _access: &CacheAccess) {}

    /// Notes the insertion of a block.
    fn insert(&mut self, slot: CacheSlot, access: &CacheAccess);

    /// Notes the removal of a block that was not a victim.
    fn remove(&mut self, slot: CacheSlot, lbn: Lbn);

    /// Appends the next victims to `out`, at least one if any block can be evicted. Adjacent blocks
    /// are consecutive and ascending. The policy has removed the victims: the caller removes them
    /// from the directory, or inserts them into the policy again. Blocks with the flag
    /// [`PINNED`](super::directory::PINNED) are never victims.
    fn victims(&mut self, dir: &Directory, clock: u32, out: &mut Vec<Victim>);

    /// Returns the number of evictions by reason; `None` if the policy has no such conditions.
    fn reasons(&self) -> Option<EvictionReasons> {
        None
    }

    /// Prefetches the data for [`EvictionPolicy::hit`] of a slot.
    #[inline]
    fn prefetch(&self, _slot: CacheSlot) {}

    /// Prefetches the data for [`EvictionPolicy::miss`] of a block.
    #[inline]
    fn prefetch_miss(&self, _lbn: Lbn) {}

    /// Returns `true` if victims depend on addresses on the disk. Only such a policy reads the
    /// directory.
    fn by_address(&self) -> bool {
        false
    }

    /// Returns the DRAM used beside the directory, in bytes.
    fn dram_bytes(&self) -> u64;
}

/// All policies.
#[enum_dispatch(EvictionPolicy)]
#[derive(Clone, Debug, EnumString, VariantNames, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Policy {
    /// Evicts a bucket of 1 MiB at a time, first those with many blocks and no recent access (Liu
    /// et al. 2012).
    Halo,
    /// Least recently used (for writes: LRW).
    Lru,
    /// First in, first out.
    Fifo,
    /// Second chance: FIFO with a reference bit.
    Clock,
    /// Self-tuning between recency and frequency (Megiddo and Modha 2003).
    Arc,
    /// A FIFO before an LRU (Johnson and Shasha 1994, the full version).
    #[strum(serialize = "2q")]
    TwoQ,
    /// A small FIFO before a large one (Yang et al. 2023).
    S3Fifo,
    /// A FIFO with a hand that evicts blocks without an access and leaves the others in place
    /// (Zhang et al. 2024).
    Sieve,
    /// CSCAN over groups of blocks with a reference bit for each group (Gill and Modha 2005).
    Wow,
    /// Evicts dense buckets of 1 MiB, several in one sweep, with close runs in separate passes: a
    /// policy of frit (`docs/design/cache-own-policy.md`).
    Sweep,
    /// Evicts any block, at random.
    Random,
    /// Evicts the block whose next access is farthest in the future, which must be known (Belady
    /// 1966).
    Belady,
}

impl Policy {
    /// Creates the policy that `config` names, for an empty cache.
    ///
    /// # Errors
    /// Returns an error if the name is unknown or a parameter is invalid.
    pub fn new(setup: &PolicySetup<'_>) -> Result<Policy> {
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
