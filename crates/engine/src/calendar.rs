//! When a channel is free: a tail and the last few gaps before it.

use frit_core::Nanos;

/// Gaps that a channel remembers. A gap opens when a bus phase is reserved later than the channel's
/// tail; one per unit of the channel is the usual number.
const GAPS: usize = 8;

/// The reservations of one channel, from the first gap that is remembered to the end of time.
///
/// Phases are reserved in the order in which they are asked for, each at the first place where it
/// fits whole. A reservation is never moved: a phase that could have gone first on a real bus goes
/// behind one that was reserved earlier. When there are more than eight gaps the oldest is
/// forgotten, that is, counted as used.
#[derive(Clone, Debug)]
pub(crate) struct Calendar {
    /// Free from here on.
    tail: u64,
    len: usize,
    /// Gaps before the tail, in order of time: `[start, end)`.
    gaps: [(u64, u64); GAPS],
}

impl Calendar {
    pub(crate) fn new() -> Calendar {
        Calendar { tail: 0, len: 0, gaps: [(0, 0); GAPS] }
    }

    /// Reserves `len` from `earliest` on and returns where it starts.
    #[inline]
    pub(crate) fn reserve(&mut self, earliest: Nanos, len: Nanos) -> Nanos {
        let (earliest, len) = (earliest.0, len.0);
        if earliest >= self.tail {
            if earliest > self.tail {
                self.push((self.tail, earliest));
            }
            self.tail = earliest + len;
            return Nanos(earliest);
        }
        self.fill(earliest, len)
    }

    fn fill(&mut self, earliest: u64, len: u64) -> Nanos {
        // Gaps that end too early are all at the front, so the search goes from the back.
        let mut best = None;
        for i in (0..self.len).rev() {
            let (start, end) = self.gaps[i];
            if end < earliest + len {
                break;
            }
            if start.max(earliest) + len <= end {
                best = Some(i);
            }
        }
        let Some(i) = best else {
            let at = self.tail;
            self.tail += len;
            return Nanos(at);
        };
        let (start, end) = self.gaps[i];
        let at = start.max(earliest);
        match (start < at, at + len < end) {
            (false, false) => self.remove(i),
            (true, false) => self.gaps[i].1 = at,
            (false, true) => self.gaps[i].0 = at + len,
            (true, true) => {
                self.gaps[i].1 = at;
                self.insert(i + 1, (at + len, end));
            }
        }
        Nanos(at)
    }

    #[inline]
    fn push(&mut self, gap: (u64, u64)) {
        if self.len == GAPS {
            self.gaps.copy_within(1.., 0);
            self.len -= 1;
        }
        self.gaps[self.len] = gap;
        self.len += 1;
    }

    fn insert(&mut self, mut at: usize, gap: (u64, u64)) {
        if self.len == GAPS {
            self.remove(0);
            at -= 1;
        }
        self.gaps.copy_within(at..self.len, at + 1);
        self.gaps[at] = gap;
        self.len += 1;
    }

    fn remove(&mut self, at: usize) {
        self.gaps.copy_within(at + 1..self.len, at);
        self.len -= 1;
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
        assert_eq!(c.len, 0);
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
                prop_assert!(c.gaps[..c.len].windows(2).all(|w| w[0].1 <= w[1].0));
                prop_assert!(c.gaps[..c.len].iter().all(|g| g.0 < g.1 && g.1 <= c.tail));
            }
        }
    }
}
