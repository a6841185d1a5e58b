//! Counters of events in NTL. Commands are counted by the media.

/// Counters since the layer was created.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct NtlStats {
    /// Rounds of first writes and of writes to clean log pages.
    pub(super) parallel_clean: u64,
    /// Rounds with an update in place, including those of merges.
    pub(super) parallel_dirty: u64,
    /// Dirty rounds of requests that also contain a clean page.
    pub(super) mixed: u64,
    /// Merges of a part of the log.
    pub(super) merges: u64,
    /// Rounds of dirty writes by merges: the sum of M in Equation 1.
    pub(super) merge_rounds: u64,
    /// Pages that merges copied to their home locations.
    pub(super) merged_pages: u64,
    /// Sequential refreshes: simultaneous refreshes of several chips count as one.
    pub(super) refreshes: u64,
    /// Pages written for the first time.
    pub(super) first_writes: u64,
    /// Pages that were updated.
    pub(super) updates: u64,
    /// Updates that were written to the log.
    pub(super) log_writes: u64,
    /// Updates of a page that was in the buffer already.
    pub(super) buffer_hits: u64,
    /// Writes of the buffer to the log.
    pub(super) buffer_flushes: u64,
}
