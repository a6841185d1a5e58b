//! Configuration of the cache.

use super::policy::PolicyConfig;
use crate::record::COPIES_MAX;
use frit_core::{Error, Result, size};
use frit_wear::WearKeys;
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Destination of a write to a block that is not cached.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Mode {
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

/// Configuration of a disk's cache, the table `[cache]` of a stack file.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheConfig {
    /// Eviction policy and the parameters of all policies, which are keys of the same table.
    #[serde(skip)]
    pub policy: PolicyConfig,
    /// Wear leveling of the PCM, whose parameters are keys of the same table.
    #[serde(skip)]
    pub wear: WearKeys,
    /// Destination of writes.
    pub mode: Mode,
    /// Blocks that are read from the disk are cached too.
    pub read_caching: bool,
    /// Method of overwriting a cached block.
    pub overwrite: Overwrite,
    /// Policy of flushing the volatile cache of the disk.
    pub disk_flush: DiskFlush,
    /// Share of used slots from which writes also evict blocks (the paper: 0.95).
    pub threshold: f64,
    /// Share of the cache that may stay dirty when the disk is idle. Blocks above it are written
    /// back and stay as clean copies.
    pub dirty_low: f64,
    /// Write back all dirty blocks, with each request and in idle time, and keep them as clean
    /// copies. The parameter is reset when no block is dirty.
    pub drain: bool,
    /// Bytes of a sequential stream of writes after which the rest of the stream goes directly to
    /// the disk; 0: never.
    #[serde(deserialize_with = "size::deserialize")]
    pub bypass_bytes: u64,
    /// Number of streams that are tracked.
    pub bypass_streams: u32,
    /// Share of the slots that may wait for a flush of the disk.
    pub flying: f64,
    /// Copies of each block's record, 1 or 2. With two copies a damaged record is distinguished
    /// from a torn one, and repaired.
    pub record_copies: u32,
    /// Bytes of PCM that cache data; 0: as many as fit.
    #[serde(deserialize_with = "size::deserialize")]
    pub cache_bytes: u64,
}

impl Default for CacheConfig {
    fn default() -> Self {
        CacheConfig {
            policy: PolicyConfig::default(),
            wear: WearKeys::default(),
            mode: Mode::WriteBack,
            read_caching: false,
            overwrite: Overwrite::OutOfPlace,
            disk_flush: DiskFlush::Batch,
            threshold: 0.95,
            dirty_low: 1.0,
            drain: false,
            bypass_bytes: 0,
            bypass_streams: 16,
            flying: 0.02,
            record_copies: 1,
            cache_bytes: 0,
        }
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
        self.policy.validate()?;
        self.wear.config()?;
        let share = |key: &str, v: f64, least: f64| {
            let why = format!("has to be from {least} to 1");
            (least..=1.0).contains(&v).then_some(()).ok_or_else(|| Error::param(key, v, why))
        };
        share("threshold", self.threshold, 0.1)?;
        share("dirty_low", self.dirty_low, 0.0)?;
        share("flying", self.flying, 0.0)?;
        if self.bypass_streams == 0 || self.bypass_streams > STREAMS_MAX {
            let why = format!("has to be 1 to {STREAMS_MAX}");
            return Err(Error::param("bypass_streams", self.bypass_streams, why));
        }
        if !(1..=COPIES_MAX).contains(&self.record_copies) {
            let why = format!("has to be 1 to {COPIES_MAX}");
            return Err(Error::param("record_copies", self.record_copies, why));
        }
        Ok(())
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
