//! Configuration of a solid-state cache.

use frit_core::{Error, ParamTable, Result, size};
use frit_media::NandGeometry;
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Point at which dirty writes and evictions are durable.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SscDurability {
    /// At a flush, or when an erase block fills: the map changes are written to the last page of the
    /// block (the OpenSSD prototype).
    #[default]
    Deferred,
    /// At the acknowledgement: the spare area of each page has its map change, and an eviction is logged
    /// at once (the design of FlashTier).
    Synchronous,
}

/// Metadata that a flush writes.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SscFlush {
    /// A page of the log of map changes (the design of FlashTier).
    #[default]
    Log,
    /// A checkpoint of the whole map (the OpenSSD prototype).
    Checkpoint,
}

/// Map from blocks to pages.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SscMap {
    /// Linear probing in a table that is allocated at the start (the OpenSSD prototype).
    #[default]
    Linear,
    /// A sparse hash map that grows with its entries (the design of FlashTier).
    Sparse,
}

frit_core::parameters! {
    /// Configuration of a solid-state cache, a part of the table of its cache manager.
    pub struct SscConfig {
        /// The prototype maps 4 KiB in virtual pages of 32 KiB.
        #[serde(deserialize_with = "size::deserialize")]
        "mapping_unit" mapping_unit: u64 as Bytes = 0, fixed, unit "bytes",
            "size of a cached block, a part of a NAND page; 0: the NAND page";
        "map" map: SscMap as Keyword = SscMap::Linear, fixed,
            "map from blocks to pages: a table of a fixed size, or a sparse one that grows with its entries";
        "durability" durability: SscDurability as Keyword = SscDurability::Deferred, fixed,
            "point at which dirty writes and evictions are durable: at a flush, or at the acknowledgement";
        "merge_buffer" merge_buffer: u32 as Number = 2, fixed, unit "NAND pages", within 1..=65536,
            "buffer in DRAM in which writes wait until they fill a NAND page",
            unused |c| c.durability == SscDurability::Synchronous => "a synchronous write does not wait";
        "flush" flush: SscFlush as Keyword = SscFlush::Log, fixed,
            "metadata that a flush writes: the changes of the map, or the whole map as in the prototype";
        /// FlashTier: two thirds.
        "checkpoint_log" checkpoint_log: f64 as Number = 0.67, fixed, unit "share of a checkpoint", within 0.01..=100.0,
            "size of the log from which a checkpoint is written";
        /// 7 % as on the board (section 3.3).
        "reserve" reserve: f64 as Number = 0.07, fixed, unit "share of the NAND", within 0.0..=0.5,
            "erased blocks from which blocks are evicted or cleaned up";
        /// The prototype has one. With one, damage cannot be told from an interrupted program.
        "metadata_copies" metadata_copies: u32 as Number = 1, fixed, unit "copies", within 1..=2,
            "copies of each log page and of each checkpoint; with 2, one damaged page is repaired, and a flush states what is durable";
        /// A power loss may lose any write to a page cache that was not synced.
        "over_files" over_files: bool as Switch = false, fixed,
            "the NAND is synced before blocks are erased, for media in files";
    }
}

impl SscConfig {
    /// Checks everything that does not depend on the media.
    ///
    /// # Errors
    /// The first invalid parameter; the error names the permitted values.
    pub fn validate(&self) -> Result<()> {
        if !self.reserve.is_finite() || !self.checkpoint_log.is_finite() {
            return Err(Error::param("reserve, checkpoint_log", "NaN", "have to be numbers"));
        }
        self.check_ranges()
    }

    /// Geometry of the NAND that the device uses: its pages are divided into blocks, and a record has
    /// two copies.
    ///
    /// # Errors
    /// A mapping unit that does not divide a page.
    pub fn divide(&self, nand: NandGeometry) -> Result<NandGeometry> {
        Ok(NandGeometry { record_copies: 2, ..nand.divided(self.mapping_unit)? })
    }

    /// Returns `true` if writes are durable when they are acknowledged.
    #[must_use]
    pub fn is_synchronous(&self) -> bool {
        self.durability == SscDurability::Synchronous
    }
}
