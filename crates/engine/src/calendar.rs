//! Reservations of a channel: its tail, and the last few gaps before it.

use frit_core::Nanos;

/// Number of gaps that are remembered per channel. A gap arises when a bus phase is reserved later
/// than the tail; usually there is one gap per unit of the channel.
const GAPS: usize = 8;

/// The reservations of one channel, from the first remembered gap on.
///
/// Phases are reserved in the order of the requests, each at the first position where it fits
/// completely. A reservation is never moved: a phase that would be first on a real bus is placed
/// behind one that was reserved earlier. If there are more than eight gaps, the oldest is dropped
/// and counts as used.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    /// The channel is free from this time on.
    tail: u64,
    /// Gaps before the tail in order of time: a ring with the numbers `first..next`.
    first: u32,
    next: u32,
    gaps: [Gap; GAPS],
}

/// A gap: the channel is free in `[start, end)`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Gap {
    start: u64,
    end: u64,
}

impl Calendar {
    pub(crate) fn new() -> Calendar {
        Calendar { tail: 0, first: 0, next: 0, gaps: [Gap::default(); GAPS] }
    }

    #[inline]
    fn gap(&mut self, i: u32) -> &mut Gap {
        &mut self.gaps[i as usize % GAPS]
    }

    /// Reserves `len` at the first possible time from `earliest` on, and returns the start.
    #[inline]
    pub(crate) fn reserve(&mut self, earliest: Nanos, len: Nanos) -> Nanos {
        let (earliest, len) = (earliest.0, len.0);
        if earliest >= self.tail {
            if earliest > self.tail {
                let end = self.next;
                self.insert(end, Gap { start: self.tail, end: earliest });
            }
            self.tail = earliest + len;
            return Nanos(earliest);
        }
        Nanos(self.fill(earliest, len))
    }

    fn fill(&mut self, earliest: u64, len: u64) -> u64 {
        // Gaps that end too early are all at the front, so the search starts at the back.
        let mut best = None;
        let mut i = self.next;
        while i != self.first {
            i = i.wrapping_sub(1);
            let g = *self.gap(i);
            if g.end < earliest + len {
                break;
            }
            if g.start.max(earliest) + len <= g.end {
                best = Some((i, g));
            }
        }
        let Some((i, g)) = best else {
            let at = self.tail;
            self.tail += len;
            return at;
        };
        let at = g.start.max(earliest);
        match (g.start < at, at + len < g.end) {
            (false, false) => self.remove(i),
            (true, false) => self.gap(i).end = at,
            (false, true) => self.gap(i).start = at + len,
            (true, true) => {
                self.gap(i).end = at;
                self.insert(i.wrapping_add(1), Gap { start: at + len, end: g.end });
            }
        }
        at
    }

    /// Inserts a gap before the gap with number `at`. If there are too many, the oldest is dropped.
    #[inline]
    fn insert(&mut self, at: u32, gap: Gap) {
        let mut i = self.next;
        while i != at {
            let before = *self.gap(i.wrapping_sub(1));
            *self.gap(i) = before;
            i = i.wrapping_sub(1);
        }
        *self.gap(at) = gap;
        self.next = self.next.wrapping_add(1);
        if self.next.wrapping_sub(self.first) > GAPS as u32 {
            self.first = self.first.wrapping_add(1);
        }
    }

    fn remove(&mut self, at: u32) {
        let mut i = at.wrapping_add(1);
        while i != self.next {
            let after = *self.gap(i);
            *self.gap(i.wrapping_sub(1)) = after;
            i = i.wrapping_add(1);
        }
        self.next = self.next.wrapping_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(c: &mut Calendar, earliest: u64, len: u64) -> u64 {
        c.reserve(Nanos(earliest), Nanos(len)).0
    }

    #[test]
    fn fills_the_first_gap_that_is_long_enough() {
        let mut c = Calendar::new();
        assert_eq!(at(&mut c, 100, 10), 100); // gap 0..100
        assert_eq!(at(&mut c, 150, 10), 150); // gap 110..150
        assert_eq!(at(&mut c, 95, 10), 110); // 0..100 has only 5 left from 95
        assert_eq!(at(&mut c, 95, 5), 95);
        assert_eq!(at(&mut c, 0, 95), 0);
        assert_eq!(at(&mut c, 0, 30), 120);
        assert_eq!(c.first, c.next);
        assert_eq!(at(&mut c, 0, 1), 160);
    }

    proptest! {
        #[test]
        fn reservations_never_overlap_nor_come_early(
            asks in prop::collection::vec((0u64..2000, 1u64..60), 1..80)
        ) {
            let mut c = Calendar::new();
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (earliest, len) in asks {
                let s = at(&mut c, earliest, len);
                prop_assert!(s >= earliest);
                prop_assert!(taken.iter().all(|&(a, b)| s + len <= a || b <= s), "{s}+{len} in {taken:?}");
                taken.push((s, s + len));
                let gaps: Vec<Gap> = (c.first..c.next).map(|i| *c.gap(i)).collect();
                prop_assert!(gaps.len() <= GAPS);
                prop_assert!(gaps.windows(2).all(|w| w[0].end <= w[1].start), "{gaps:?}");
                prop_assert!(gaps.iter().all(|g| g.start < g.end && g.end <= c.tail), "{gaps:?}");
            }
        }
    }
}
