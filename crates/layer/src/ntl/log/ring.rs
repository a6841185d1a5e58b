//! Allocation in the full log: slots in cyclic order.

use super::LogSpace;
use crate::numbers::LogSlot;
use std::ops::Range;

/// A ring of slots. The free ones start at `next`.
#[derive(Clone, Debug)]
pub(super) struct RingAllocator {
    slots: u32,
    row: u32,
    /// Number of rows that are merged together.
    at_once: u32,
    next: LogSlot,
    /// Number of slots that may be written, from `next` on.
    free: u32,
}

impl RingAllocator {
    /// Creates a ring in which `row` slots form a row, and `at_once` rows are merged when no slot
    /// is free.
    pub(super) fn new(slots: u32, row: u32, at_once: u32) -> RingAllocator {
        RingAllocator { slots, row, at_once, next: LogSlot(0), free: slots }
    }

    #[inline]
    pub(super) fn next_slot(&self) -> LogSpace {
        if self.free > 0 {
            return LogSpace::Slot(self.next);
        }
        let first = self.next.0 / self.row;
        LogSpace::Merge(first..first + self.at_once)
    }

    #[inline]
    pub(super) fn take(&mut self) {
        self.free -= 1;
        self.next = self.next.plus(1);
        if self.next.0 == self.slots {
            self.next = LogSlot(0);
        }
    }

    pub(super) fn reclaim(&mut self, rows: &Range<u32>) {
        self.free += (rows.end - rows.start) * self.row;
        // All rows may be merged before the ring is full. It starts again at slot 0 then.
        if self.free >= self.slots {
            self.clear();
        }
    }

    pub(super) fn clear(&mut self) {
        (self.next, self.free) = (LogSlot(0), self.slots);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_merged_in_turn() {
        let mut r = RingAllocator::new(12, 4, 1);
        for slot in LogSlot::first(12) {
            assert_eq!(r.next_slot(), LogSpace::Slot(slot));
            r.take();
        }
        assert_eq!(r.next_slot(), LogSpace::Merge(0..1));
        r.reclaim(&(0..1));
        for slot in LogSlot::first(4) {
            assert_eq!(r.next_slot(), LogSpace::Slot(slot));
            r.take();
        }
        assert_eq!(r.next_slot(), LogSpace::Merge(1..2));
        let mut all = RingAllocator::new(12, 4, 3);
        (0..12).for_each(|_| all.take());
        assert_eq!(all.next_slot(), LogSpace::Merge(0..3));
        all.reclaim(&(0..3));
        assert_eq!(all.next_slot(), LogSpace::Slot(LogSlot(0)));
    }
}
