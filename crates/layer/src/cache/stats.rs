//! Counters of events in the cache. Commands are counted by the media.

/// Counters since the layer was created.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct CacheStats {
    /// Blocks read that were cached completely.
    pub(super) read_hits: u64,
    /// Blocks read that were cached in part.
    pub(super) read_partial: u64,
    /// Blocks read that were not cached.
    pub(super) read_misses: u64,
    /// Blocks written that were cached.
    pub(super) write_hits: u64,
    /// Blocks written that were not cached, and were inserted.
    pub(super) write_misses: u64,
    /// Blocks written directly to the disk: in write-around mode, or in a long sequential stream.
    pub(super) direct: u64,
    /// Victim selections.
    pub(super) destages: u64,
    /// Dirty blocks written to the disk for eviction.
    pub(super) destaged: u64,
    /// Writes to the disk that carried destaged or cleaned blocks.
    pub(super) destage_writes: u64,
    /// Clean blocks evicted.
    pub(super) dropped: u64,
    /// Dirty blocks written to the disk that stay in the cache.
    pub(super) cleaned: u64,
    /// Damaged blocks that could not be written back.
    pub(super) set_aside: u64,
    /// Writes that found no free slot and had to wait.
    pub(super) waits: u64,
    /// Flushes of the disk.
    pub(super) disk_flushes: u64,
}
