//! Configuration of the cache manager.

use frit_core::{Error, ParamTable, Result, SECTOR_BYTES, size};
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Destination of writes.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FlashcacheMode {
    /// The SSD. Dirty blocks are written to the disk later.
    #[default]
    WriteBack,
    /// The disk, and then the SSD.
    WriteThrough,
}

/// Order in which the blocks of a set are replaced and cleaned.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, EnumString, VariantNames, IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum SetPolicy {
    /// In the order in which they were cached.
    #[default]
    Fifo,
    /// The least recently used first.
    Lru,
}

frit_core::parameters! {
    /// Configuration of a Flashcache-like manager, the table `[flashcache]` of a stack file. Defaults
    /// are those of Flashcache unless a comment says otherwise.
    pub struct FlashcacheConfig {
        "mode" mode: FlashcacheMode as Keyword = FlashcacheMode::WriteBack, fixed,
            "destination of writes";
        "policy" policy: SetPolicy as Keyword = SetPolicy::Fifo, live,
            "order in which the blocks of a set are replaced and cleaned";
        "read_caching" read_caching: bool as Switch = true, live,
            "whole blocks that are read from the disk are cached";
        "dirty_threshold" dirty_threshold: f64 as Number = 0.2, live, unit "share of a set", within 0.01..=1.0,
            "share of dirty blocks of a set from which a write to it also cleans some",
            unused |c| c.mode == FlashcacheMode::WriteThrough => "no block is dirty";
        /// `max_clean_ios_set`.
        "clean_writes" clean_writes: u32 as Number = 2, live, unit "writes", within 1..=1024,
            "largest number of writes to the disk, each of adjacent blocks, by which a write cleans its set",
            unused |c| c.mode == FlashcacheMode::WriteThrough => "no block is dirty";
        /// Ours: Flashcache does not flush the disk.
        "clean_batch" clean_batch: u32 as Number = 256, live, unit "blocks", within 1..=65536,
            "blocks written to the disk after which it is flushed, and their metadata is updated",
            unused |c| c.mode == FlashcacheMode::WriteThrough => "no block is dirty";
        /// `skip_seq_thresh_kb`.
        #[serde(deserialize_with = "size::deserialize")]
        "skip_sequential" skip_sequential: u64 as Size = 0, live, unit "bytes",
            "bytes of a sequential stream of reads or writes after which it is not cached; 0: never";
        /// Flashcache tracks 32 sequential I/Os (from memory of its source).
        "streams" streams: u32 as Number = 32, live, unit "streams", within 1..=256,
            "streams that are tracked",
            unused |c| c.skip_sequential == 0 => "all streams are cached";
        #[serde(deserialize_with = "size::deserialize")]
        "block" block: u64 as Size = 4096, fixed, unit "bytes",
            "size of a cached block";
        "set_blocks" set_blocks: u32 as Number = 512, fixed, unit "blocks", within 2..=4096,
            "blocks of a set";
        #[serde(deserialize_with = "size::deserialize")]
        "metadata_block" metadata_block: u64 as Size = 4096, fixed, unit "bytes",
            "size of a write of metadata";
    }
}

impl FlashcacheConfig {
    /// Checks the parameters as far as that is possible without the devices.
    ///
    /// # Errors
    /// The first invalid parameter; the error names the permitted values.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        let sizes = [("block", self.block, 1 << 20), ("metadata_block", self.metadata_block, 8 << 10)];
        for (key, bytes, most) in sizes {
            if !bytes.is_power_of_two() || bytes < SECTOR_BYTES || bytes > most {
                let why = format!("has to be a power of two from 512 to {}", size::format(most));
                return Err(Error::param(key, size::format(bytes), why));
            }
        }
        Ok(())
    }
}
