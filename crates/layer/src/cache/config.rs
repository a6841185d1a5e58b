//! Configuration of the cache.

use super::policy::PolicyConfig;
use crate::record::COPIES_MAX;
use frit_core::{Error, ParamTable, Result, size};
use frit_wear::WearKeys;
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Destination of a write to a block that is not cached.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum CacheMode {
    /// The cache. The block is written to the disk later.
    #[default]
    WriteBack,
    /// The cache and the disk.
    WriteThrough,
    /// The disk only.
    WriteAround,
}

/// Method of overwriting a cached block.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Overwrite {
    /// In another slot. After a power loss the old or the new version is complete.
    #[default]
    OutOfPlace,
    /// In place (the paper, section III.A). A power loss can tear the block. For simulations.
    InPlace,
}

/// Policy of flushing the volatile cache of the disk.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum DiskFlush {
    /// Before the slots of destaged blocks are reused, for many blocks at a time.
    #[default]
    Batch,
    /// Never: data that the disk has acknowledged counts as durable (the paper). For simulations.
    Never,
}

frit_core::parameters! {
    /// Configuration of a disk's cache, the table `[cache]` of a stack file.
    pub struct CacheConfig {
        "mode" mode: CacheMode as Keyword = CacheMode::WriteBack, live,
            "destination of writes";
        "read_caching" read_caching: bool as Switch = false, live,
            "blocks that are read from the disk are cached";
        /// The default is that of the paper.
        "threshold" threshold: f64 as Number = 0.95, live, unit "share of the slots", within 0.1..=1.0,
            "share of used slots from which writes also evict blocks";
        "dirty_low" dirty_low: f64 as Number = 1.0, live, unit "share of the slots", within 0.0..=1.0,
            "share that may stay dirty in idle time; more is written back and kept clean";
        /// With each request and in idle time. It is reset when no block is dirty.
        "drain" drain: bool as Switch = false, live,
            "write back all dirty blocks and keep them; turns itself off";
        #[serde(deserialize_with = "size::deserialize")]
        "bypass_bytes" bypass_bytes: u64 as Size = 0, live, unit "bytes",
            "bytes of a sequential stream after which it bypasses the cache; 0: never",
            unused |c| c.mode == CacheMode::WriteAround => "all writes bypass the cache";
        "bypass_streams" bypass_streams: u32 as Number = 16, live, unit "streams", within 1..=STREAMS_MAX,
            "streams that are tracked",
            unused |c| c.bypass_bytes == 0 => "no stream bypasses the cache";
        "flying" in_flight: f64 as Number = 0.02, live, unit "share of the slots", within 0.0..=1.0,
            "share of slots that may wait for a flush of the disk";
        "overwrite" overwrite: Overwrite as Keyword = Overwrite::OutOfPlace, fixed,
            "method of overwriting a cached block; in-place is for simulations";
        "disk_flush" disk_flush: DiskFlush as Keyword = DiskFlush::Batch, fixed,
            "time at which the cache of the disk is flushed; never is for simulations";
        /// With two copies a damaged record is distinguished from a torn one, and repaired.
        "record_copies" record_copies: u32 as Number = 1, fixed, unit "copies", within 1..=COPIES_MAX,
            "copies of each block's record; two copies distinguish damage from a torn write";
        #[serde(deserialize_with = "size::deserialize")]
        "cache_bytes" cache_bytes: u64 as Size = 0, fixed, unit "bytes",
            "PCM that caches data; 0: all of it";
        include policy: PolicyConfig;
        include wear: WearKeys;
    }
}

/// Largest number of streams that are tracked.
const STREAMS_MAX: u32 = 256;

impl CacheConfig {
    /// Checks the parameters as far as that is possible without the media.
    ///
    /// # Errors
    /// Returns an error that names the first invalid parameter and its valid values.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        self.policy.validate()?;
        self.wear.config()?;
        Ok(())
    }

    /// Returns `true` if writes to blocks that are not cached go to the disk.
    pub(super) fn around(&self) -> bool {
        self.mode == CacheMode::WriteAround
    }

    /// Returns `true` if some writes may bypass the cache.
    pub(super) fn bypasses(&self) -> bool {
        self.around() || self.bypass_bytes > 0
    }

    /// Rejects settings under which a power loss could tear or lose data.
    ///
    /// # Errors
    /// Returns an error that names the parameter and the right value.
    pub fn durable(&self) -> Result<()> {
        if self.overwrite == Overwrite::InPlace {
            let why = "a power loss can tear a block overwritten in place; a volume needs out-of-place";
            return Err(Error::param("overwrite", "in-place", why));
        }
        if self.disk_flush == DiskFlush::Never {
            let why = "data that a disk has acknowledged can be lost until a flush; a volume needs batch";
            return Err(Error::param("disk_flush", "never", why));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_durable_and_nonsense_is_not() {
        let ok = CacheConfig::default();
        ok.validate().unwrap();
        ok.durable().unwrap();
        let bad = |f: fn(&mut CacheConfig)| {
            let mut c = CacheConfig::default();
            f(&mut c);
            c.validate().unwrap_err().to_string()
        };
        assert!(bad(|c| c.threshold = 0.0).contains("threshold"));
        assert!(bad(|c| c.dirty_low = f64::NAN).contains("dirty_low"));
        assert!(bad(|c| c.bypass_streams = 0).contains("bypass_streams"));
        let c = CacheConfig { overwrite: Overwrite::InPlace, ..CacheConfig::default() };
        assert!(c.durable().unwrap_err().to_string().contains("out-of-place"));
    }
}
