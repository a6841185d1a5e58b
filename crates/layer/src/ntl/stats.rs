//! Counters of events in NTL. Commands are counted by the media.

use super::rounds::RoundCounts;

/// Counters since the layer was created.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct NtlStats {
    /// Closed rounds that count as clean.
    pub(super) parallel_clean: u64,
    /// Closed rounds that count as dirty, including those of merges.
    pub(super) parallel_dirty: u64,
    /// Closed rounds with clean and dirty pages.
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

impl NtlStats {
    /// Adds closed rounds.
    #[inline]
    pub(super) fn add_rounds(&mut self, rounds: RoundCounts) {
        self.parallel_clean += rounds.clean;
        self.parallel_dirty += rounds.dirty;
        self.mixed += rounds.mixed;
    }
}
