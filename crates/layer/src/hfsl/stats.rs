//! Counters of events in HFSL. Commands are counted by the media.

/// Counters since the layer was created.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct HfslStats {
    /// Writes of part of a page that is in NAND: the paper's "update times" (section 3.3.3).
    pub(crate) flash_updates: u64,
    /// Pages moved from NAND to PCM by a write that the policy sends to PCM.
    pub(crate) to_pcm: u64,
    /// Pages moved from PCM to NAND by a write that the policy sends to NAND.
    pub(crate) to_nand: u64,
    /// Pages destaged from PCM to free slots.
    pub(crate) destaged: u64,
    /// Destages that a write had to wait for.
    pub(crate) destage_waits: u64,
    /// Flushes that a write made because all free slots of PCM were held back until a flush.
    pub(crate) space_flushes: u64,
    /// Writes intended for PCM that went to NAND because PCM had no free space.
    pub(crate) overflowed: u64,
    /// Sub-pages that an update moved because their slot was worn more than the next free one.
    pub(crate) slots_moved: u64,
}
