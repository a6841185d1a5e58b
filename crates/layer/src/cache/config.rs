//! What a user sets.

use super::policy::PolicyConfig;
use crate::record::COPIES_MAX;
use crate::wear::WearKeys;
use frit_core::{Error, Result, size};
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Where a write goes that meets no cached block.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Mode {
    /// To the cache; the disk has it later.
    #[default]
    WriteBack,
    /// To the cache and to the disk.
    WriteThrough,
    /// To the disk alone.
    WriteAround,
}

/// How a cached block is written again.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Overwrite {
    /// In another slot: a stop leaves the old or the new one whole.
    #[default]
    OutOfPlace,
    /// Where it lies (the paper, section III.A): a stop can tear it. For simulations.
    InPlace,
}

/// When the disk's own cache is flushed.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum DiskFlush {
    /// Before slots of destaged blocks are used again, for many at a time.
    #[default]
    Batch,
    /// Never: what the disk acknowledges counts as written (the paper). For simulations.
    Never,
}

/// Configuration of a disk's cache, as a stack file has it under `[cache]`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheConfig {
    /// What leaves the cache, with the parameters of the policies: keys of the same table.
    #[serde(skip)]
    pub policy: PolicyConfig,
    /// How PCM's wear is leveled: keys of the same table.
    #[serde(skip)]
    pub wear: WearKeys,
    /// Where writes go.
    pub mode: Mode,
    /// Blocks that are read from the disk are cached as well.
    pub read_caching: bool,
    /// How a cached block is written again.
    pub overwrite: Overwrite,
    /// When the disk's own cache is flushed.
    pub disk_flush: DiskFlush,
    /// Share of the cache in use from which on writes make blocks leave (the paper: 0.95).
    pub threshold: f64,
    /// Share of the cache that may be dirty when the disk is idle: more is written back and stays as a copy.
    pub dirty_low: f64,
    /// Write back everything, request by request and in idle time, and keep it; turns itself off.
    pub drain: bool,
    /// Bytes of a sequential stream of writes after which the rest of it goes to the disk directly; 0: never.
    #[serde(deserialize_with = "size::deserialize")]
    pub bypass_bytes: u64,
    /// Streams that are told apart.
    pub bypass_streams: u32,
    /// Share of the cache that may wait for a flush of the disk.
    pub flying: f64,
    /// Copies of each block's record: with two a damaged one is told from one that a stop tore, and mended. 1 or 2.
    pub record_copies: u32,
    /// Bytes of PCM that cache data; 0: as many as there is room for.
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

/// Most streams that are told apart.
const STREAMS_MAX: u32 = 256;

impl CacheConfig {
    /// Checks what can be checked without knowing the media.
    ///
    /// # Errors
    /// The first parameter that cannot be, with what it may be.
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

    /// Refuses what a stop could tear or lose.
    ///
    /// # Errors
    /// The parameter, and what would be right.
    pub fn durable(&self) -> Result<()> {
        if self.overwrite == Overwrite::InPlace {
            let why = "a stop can tear a block that is overwritten in place; a volume needs out-of-place";
            return Err(Error::param("overwrite", "in-place", why));
        }
        if self.disk_flush == DiskFlush::Never {
            let why = "what a disk acknowledges can be lost until it is flushed; a volume needs batch";
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
