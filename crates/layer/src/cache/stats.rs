//! Events that are no commands. Commands are counted by the media.

/// Counts since the layer was made.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Stats {
    /// Blocks read that were all there.
    pub(super) read_hits: u64,
    /// Blocks read that were there in part.
    pub(super) read_partial: u64,
    /// Blocks read that were not there.
    pub(super) read_misses: u64,
    /// Blocks written that were there.
    pub(super) write_hits: u64,
    /// Blocks written that were not there, and came in.
    pub(super) write_misses: u64,
    /// Blocks written to the disk directly: around the cache, or in a long stream.
    pub(super) direct: u64,
    /// Choices of victims.
    pub(super) destages: u64,
    /// Dirty blocks written to the disk.
    pub(super) destaged: u64,
    /// Writes to the disk that they came to.
    pub(super) destage_writes: u64,
    /// Clean blocks that left.
    pub(super) dropped: u64,
    /// Dirty blocks written to the disk that stayed.
    pub(super) cleaned: u64,
    /// Damaged blocks that could not be written back.
    pub(super) set_aside: u64,
    /// Writes that found no free slot and waited.
    pub(super) waits: u64,
    /// Flushes of the disk.
    pub(super) disk_flushes: u64,
}
