//! Configuration of the cache manager.

use super::dirty::CleanOrder;
use crate::ssc::SscConfig;
use frit_core::{ParamTable, Result, size};
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Destination of writes.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FlashtierMode {
    /// The cache. Dirty blocks are written to the disk later.
    #[default]
    WriteBack,
    /// The disk, and then the cache.
    WriteThrough,
}

frit_core::parameters! {
    /// Configuration of a FlashTier cache, the table `[flashtier]` of a stack file.
    pub struct FlashtierConfig {
        "mode" mode: FlashtierMode as Keyword = FlashtierMode::WriteBack, fixed,
            "destination of writes";
        "read_caching" read_caching: bool as Switch = true, live,
            "whole blocks that are read from the disk are cached";
        /// 20 %, the default of FlashCache, on which the manager of the prototype is based.
        "dirty_threshold" dirty_threshold: f64 as Number = 0.2, live, unit "share of the cache", within 0.01..=1.0,
            "share of dirty blocks from which writes also clean some",
            unused |c| c.mode == FlashtierMode::WriteThrough => "no block is dirty";
        "clean_batch" clean_batch: u32 as Number = 256, live, unit "blocks", within 1..=65536,
            "dirty blocks that are written to the disk together, in the order of their addresses",
            unused |c| c.mode == FlashtierMode::WriteThrough => "no block is dirty";
        "clean_order" clean_order: CleanOrder as Keyword = CleanOrder::Address, fixed,
            "choice of these blocks: by address, or as a policy of the layer `cache` chooses victims",
            unused |c| c.mode == FlashtierMode::WriteThrough => "no block is dirty";
        #[serde(deserialize_with = "size::deserialize")]
        "bypass_bytes" bypass_bytes: u64 as Size = 0, live, unit "bytes",
            "bytes of a sequential stream of writes after which it bypasses the cache; 0: never";
        "bypass_streams" bypass_streams: u32 as Number = 16, live, unit "streams", within 1..=256,
            "streams that are tracked",
            unused |c| c.bypass_bytes == 0 => "no stream bypasses the cache";
        "tunnel" tunnel: bool as Switch = false, fixed,
            "the device answers a miss with a pattern in the data, as through the interface of a disk";
        "tunnel_mb_per_s" tunnel_mb_per_s: u64 as Number = 0, live, unit "MB/s", within 0..=1_000_000,
            "rate at which the pattern of a miss is transferred; 0: in no time",
            unused |c| !c.tunnel => "a miss transfers no data";
        include ssc: SscConfig;
    }
}

impl FlashtierConfig {
    /// Checks the parameters as far as that is possible without the media.
    ///
    /// # Errors
    /// The first invalid parameter; the error names the permitted values.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        self.ssc.validate()
    }

    /// Returns `true` if clean blocks survive a crash: then the disk never gets data that is newer than a
    /// clean block that the device durably has. Media in files are durable at a sync only.
    pub(super) fn keeps_clean(&self) -> bool {
        self.ssc.is_synchronous() && self.mode == FlashtierMode::WriteBack && !self.ssc.over_files
    }
}
