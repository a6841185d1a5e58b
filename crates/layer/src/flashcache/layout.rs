//! Places on the SSD.
//!
//! ```text
//! header | copy of the header | metadata blocks, set by set | slots
//! ```
//!
//! Each copy of the header is at the start of a metadata block. A metadata block belongs to one set.

use super::config::FlashcacheConfig;
use super::sector::{ENTRIES, SECTOR};
use frit_core::convert::{bounded_u32, to_u64};
use frit_core::{Error, Result, SECTOR_BYTES};

/// Number of copies of the header.
pub(super) const HEADERS: u64 = 2;

/// Sizes of the regions of the SSD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub(super) block_bytes: u32,
    pub(super) set_blocks: u32,
    pub(super) sets: u32,
    pub(super) metadata_block: u32,
    /// Metadata blocks of a set.
    pub(super) blocks_per_set: u32,
    slots_at: u64,
}

impl Layout {
    /// Divides an SSD into sets.
    ///
    /// # Errors
    /// An SSD that is too small for one set, or has more than 2^32 blocks.
    pub(super) fn new(config: &FlashcacheConfig, ssd_bytes: u64) -> Result<Layout> {
        let (block_bytes, metadata_block) = (bounded_u32(config.block), bounded_u32(config.metadata_block));
        let sectors = config.set_blocks.div_ceil(ENTRIES);
        let blocks_per_set = sectors.div_ceil(metadata_block / bounded_u32(SECTOR_BYTES));
        let metadata = u64::from(blocks_per_set) * config.metadata_block;
        let set_bytes = metadata + u64::from(config.set_blocks) * config.block;
        // The slots begin at a multiple of a block.
        let fixed = HEADERS * config.metadata_block + config.block;
        let sets = ssd_bytes.saturating_sub(fixed) / set_bytes;
        let slots = sets.saturating_mul(u64::from(config.set_blocks));
        if sets == 0 || slots >= u64::from(u32::MAX) {
            let why = format!(
                "an SSD of {ssd_bytes} bytes has {sets} sets of {} blocks: use smaller or larger sets or blocks",
                config.set_blocks
            );
            return Err(Error::param("set_blocks", config.set_blocks, why));
        }
        let metadata_end = HEADERS * config.metadata_block + sets * metadata;
        Ok(Layout {
            block_bytes,
            set_blocks: config.set_blocks,
            sets: bounded_u32(sets),
            metadata_block,
            blocks_per_set,
            slots_at: metadata_end.next_multiple_of(config.block),
        })
    }

    /// Number of slots.
    pub(super) fn slots(&self) -> u32 {
        self.sets * self.set_blocks
    }

    /// Address of a copy of the header.
    pub(super) fn header_at(&self, copy: u64) -> u64 {
        copy * u64::from(self.metadata_block)
    }

    /// Number of all metadata blocks.
    pub(super) fn metadata_blocks(&self) -> u32 {
        self.sets * self.blocks_per_set
    }

    /// Metadata block of a slot.
    pub(super) fn metadata_of(&self, slot: u32) -> u32 {
        let (set, i) = (slot / self.set_blocks, slot % self.set_blocks);
        set * self.blocks_per_set + i / (ENTRIES * self.sectors_per_block())
    }

    /// Address of a metadata block.
    pub(super) fn metadata_at(&self, block: u32) -> u64 {
        HEADERS * u64::from(self.metadata_block) + u64::from(block) * u64::from(self.metadata_block)
    }

    /// Sectors of a metadata block.
    pub(super) fn sectors_per_block(&self) -> u32 {
        self.metadata_block / bounded_u32(to_u64(SECTOR))
    }

    /// Slots whose entries are in a sector of a metadata block.
    pub(super) fn slots_of(&self, metadata_block: u32, sector: u32) -> std::ops::Range<u32> {
        let (set, k) = (metadata_block / self.blocks_per_set, metadata_block % self.blocks_per_set);
        let first = ((k * self.sectors_per_block() + sector) * ENTRIES).min(self.set_blocks);
        let end = (first + ENTRIES).min(self.set_blocks);
        set * self.set_blocks + first..set * self.set_blocks + end
    }

    /// Address of a slot.
    pub(super) fn slot_at(&self, slot: u32) -> u64 {
        self.slots_at + u64::from(slot) * u64::from(self.block_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_has_one_entry_and_the_regions_do_not_overlap() {
        for (set_blocks, metadata_block) in [(512, 4096), (512, 512), (8, 512), (100, 8192)] {
            let config = FlashcacheConfig { set_blocks, metadata_block, ..FlashcacheConfig::default() };
            let layout = Layout::new(&config, 10 << 20).unwrap();
            let mut seen = vec![0; layout.slots() as usize];
            for block in 0..layout.metadata_blocks() {
                for slot in (0..layout.sectors_per_block()).flat_map(|s| layout.slots_of(block, s)) {
                    seen[slot as usize] += 1;
                    assert_eq!(layout.metadata_of(slot), block);
                }
            }
            assert!(seen.iter().all(|&n| n == 1), "{layout:?}");
            assert!(layout.header_at(1) + u64::from(layout.metadata_block) <= layout.metadata_at(0));
            assert!(layout.metadata_at(layout.metadata_blocks()) <= layout.slot_at(0));
            assert!(layout.slot_at(layout.slots()) <= 10 << 20 && layout.slot_at(0).is_multiple_of(4096));
        }
        let config = FlashcacheConfig::default();
        assert!(Layout::new(&config, 1 << 20).unwrap_err().to_string().contains("0 sets"));
        // Three metadata blocks of 4 KiB describe a set of 512 blocks.
        assert_eq!(Layout::new(&config, 1 << 30).unwrap().blocks_per_set, 3);
    }
}
