//! Events that are no commands. Commands are counted by the media.

/// Counts since the layer was made.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Stats {
    /// Rounds of first writes, and of writes to clean log pages.
    pub(super) parallel_clean: u64,
    /// Rounds with an update in place, those of merges among them.
    pub(super) parallel_dirty: u64,
    /// Of the dirty rounds of requests, those with a clean page as well.
    pub(super) mixed: u64,
    /// Times that a part of the log was merged.
    pub(super) merges: u64,
    /// Rounds of dirty writes by merges: the sum of Equation 1's M.
    pub(super) merge_rounds: u64,
    /// Pages that merges brought home.
    pub(super) merged_pages: u64,
    /// Refreshes one after the other: those that chips make at a time are one.
    pub(super) refreshes: u64,
    /// Pages written for the first time.
    pub(super) first_writes: u64,
    /// Pages written again.
    pub(super) updates: u64,
    /// Of these, to the log.
    pub(super) log_writes: u64,
    /// Updates that met an earlier one in the buffer.
    pub(super) buffer_hits: u64,
    /// Times that the buffer was written to the log.
    pub(super) buffer_flushes: u64,
}
