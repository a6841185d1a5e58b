//! Changes of bytes, and the queries that read them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ranges that a query reads, and the changes of their bytes since its begin.
#[derive(Debug)]
pub(super) struct WatchedRanges {
    /// Ranges in ascending order, which do not touch each other.
    ranges: Vec<Range<u64>>,
    /// Number of times that bytes began or ended to change.
    count: AtomicU64,
    /// A change was in progress at the begin of the query, so its end may show too late.
    begun_in_change: bool,
}

impl WatchedRanges {
    /// Returns a number that differs after each change of the bytes.
    pub(super) fn version(&self) -> u64 {
        if self.begun_in_change {
            return self.count.fetch_add(1, Ordering::AcqRel);
        }
        self.count.load(Ordering::Acquire)
    }

    fn touches(&self, range: &Range<u64>) -> bool {
        let next = self.ranges.partition_point(|watched| watched.end <= range.start);
        !range.is_empty() && self.ranges.get(next).is_some_and(|watched| watched.start < range.end)
    }
}

/// Changes in progress, and the queries that are told of changes.
#[derive(Default, Debug)]
pub(super) struct Changes {
    in_progress: Vec<Range<u64>>,
    queries: Vec<Arc<WatchedRanges>>,
}

impl Changes {
    /// Notes that bytes begin to change.
    pub(super) fn begin(&mut self, range: Range<u64>) {
        self.note(&range);
        self.in_progress.push(range);
    }

    /// Notes that a change that had begun is complete.
    pub(super) fn end(&mut self, range: &Range<u64>) {
        if let Some(at) = self.in_progress.iter().position(|other| other == range) {
            self.in_progress.swap_remove(at);
        }
        self.note(range);
    }

    /// Notes a change for the queries that read bytes of a range.
    pub(super) fn note(&self, range: &Range<u64>) {
        for query in self.queries.iter().filter(|query| query.touches(range)) {
            query.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Watches ranges for a query that begins.
    pub(super) fn watch(&mut self, mut ranges: Vec<Range<u64>>) -> Arc<WatchedRanges> {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup_by(|next, before| {
            let joined = next.start <= before.end;
            if joined {
                before.end = before.end.max(next.end);
            }
            joined
        });
        let mut watched = WatchedRanges { ranges, count: AtomicU64::new(0), begun_in_change: false };
        watched.begun_in_change = self.in_progress.iter().any(|range| watched.touches(range));
        let watched = Arc::new(watched);
        self.queries.push(Arc::clone(&watched));
        watched
    }

    /// Ends the watch of a query.
    pub(super) fn unwatch(&mut self, query: &Arc<WatchedRanges>) {
        self.queries.retain(|other| !Arc::ptr_eq(other, query));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_change_in_progress_at_the_begin_shows() {
        let mut changes = Changes::default();
        changes.begin(0..10);
        assert!(!changes.watch(vec![0..5, 5..10]).touches(&(5..5)), "a range without bytes");
        let (inside, beside) = (changes.watch(vec![9..10, 9..10]), changes.watch(vec![10..20, 20..20]));
        assert_ne!(inside.version(), inside.version());
        assert_eq!(beside.version(), beside.version());
        changes.end(&(0..10));
        assert_eq!(beside.version(), 0);
        changes.unwatch(&beside);
        changes.begin(10..11);
        assert_eq!(beside.version(), 0, "the query has ended");
    }

    proptest! {
        /// A change shows exactly if it has a byte of the ranges.
        #[test]
        fn changes_show_in_the_queries_that_read_their_bytes(
            ranges in proptest::collection::vec((0u64..60, 0u64..8), 0..6),
            (at, len) in (0u64..60, 0u64..10),
        ) {
            let mut changes = Changes::default();
            let watched = changes.watch(ranges.iter().map(|&(at, len)| at..at + len).collect());
            let touched = (at..at + len).any(|byte| ranges.iter().any(|&(at, len)| (at..at + len).contains(&byte)));
            changes.begin(at..at + len);
            prop_assert_eq!(watched.version() != 0, touched);
            let begun = watched.version();
            changes.end(&(at..at + len));
            prop_assert_eq!(watched.version() != begun, touched);
        }
    }
}
