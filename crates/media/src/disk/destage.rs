//! Writing behind: a cache that acknowledges writes while it has room, and writes them to the media in the
//! order in which the arm reaches them soonest.

use super::drive::{Drive, Hit, Kind, Moved, Request, Service};
use frit_core::Nanos;
use std::collections::BTreeMap;

/// Neighbours on either side that are looked at for the next to be written.
const LOOK: usize = 24;

/// Blocks that are acknowledged and not on the media: first block → blocks.
#[derive(Clone, Default, Debug)]
pub(super) struct Dirty {
    runs: BTreeMap<u64, u32>,
    sectors: u64,
    /// The run that was taken last: block and blocks. They are on the media when the arm is free.
    flying: (u64, u32),
    /// Behind the run that was written last: where the arm is.
    last: u64,
}

impl Dirty {
    /// Adds blocks; what was there is replaced, what adjoins becomes one run of at most `most` blocks.
    fn add(&mut self, block: u64, sectors: u32, most: u64) {
        self.remove(block, sectors);
        let (mut first, mut n) = (block, u64::from(sectors));
        if let Some((&b, &len)) = self.runs.range(..block).next_back()
            && b + u64::from(len) == block
            && u64::from(len) + n <= most
        {
            self.runs.remove(&b);
            first = b;
            n += u64::from(len);
        }
        if let Some(&len) = self.runs.get(&(first + n))
            && u64::from(len) + n <= most
        {
            self.runs.remove(&(first + n));
            n += u64::from(len);
        }
        self.runs.insert(first, n as u32);
        self.sectors += u64::from(sectors);
    }

    /// Forgets blocks.
    fn remove(&mut self, block: u64, sectors: u32) {
        let end = block + u64::from(sectors);
        while let Some((&b, &len)) = self.runs.range(..end).next_back() {
            let over = b + u64::from(len);
            if over <= block {
                break;
            }
            self.runs.remove(&b);
            self.sectors -= over.min(end) - b.max(block);
            if b < block {
                self.runs.insert(b, (block - b) as u32);
            }
            if over > end {
                self.runs.insert(end, (over - end) as u32);
            }
        }
    }

    /// Whether all these blocks are in one run, or in the one that is being written.
    pub(super) fn holds(&self, block: u64, end: u64, writing: bool) -> bool {
        let (first, n) = self.flying;
        if writing && first <= block && end <= first + u64::from(n) {
            return true;
        }
        self.runs.range(..=block).next_back().is_some_and(|(b, n)| b + u64::from(*n) >= end)
    }
}

impl Drive {
    /// Dirty blocks that have their place at `at`: what is on its way to the media has it until it is there.
    fn taken(&self, at: u64) -> (u64, u64) {
        let flying = if self.free > at { u64::from(self.dirty.flying.1) } else { 0 };
        (self.dirty.sectors + flying, flying)
    }

    /// Dirty blocks that the cache holds at most; a larger write goes through it alone.
    fn room(&self, r: &Request) -> u64 {
        u64::from(self.spec.cache.dirty_sectors).max(u64::from(r.sectors))
    }

    /// Whether a write can be acknowledged at once.
    pub(super) fn has_room(&self, r: &Request, at: u64) -> bool {
        self.taken(at).0 + u64::from(r.sectors) <= self.room(r)
    }

    /// A write that is acknowledged as soon as the cache has room for it.
    pub(super) fn write_behind(&mut self, r: &Request, at: u64) -> Service {
        let o = self.spec.overheads;
        let mut bus = at + self.after(o.write_hit) + o.data_prepare.0;
        let mut hit = Hit::Whole;
        let mut ready = at;
        loop {
            if self.has_room(r, ready) {
                break;
            }
            let (_, flying) = self.taken(ready);
            hit = Hit::Partial;
            if flying > 0 {
                ready = self.free;
            } else {
                self.stop(ready);
                if !self.destage_one(ready) {
                    break;
                }
            }
        }
        bus = bus.max(ready);
        let done = bus + u64::from(r.sectors) * self.spec.bus.write_ps / 1000 + o.write_complete.0;
        let (first, end) = (r.sector.0, r.sector.0 + u64::from(r.sectors));
        let most = u64::from(self.spec.cache.segment_sectors).max(u64::from(r.sectors));
        if self.dirty.runs.is_empty() {
            self.free = self.free.max(done);
        }
        self.dirty.add(first, r.sectors, most);
        if self.ahead.is_some_and(|a| self.segments.get(a.segment).overlaps(first, end)) {
            self.stop(at);
        }
        self.segments.drop_overlapping(usize::MAX, first, end);
        Service::over(done, Moved::default(), hit)
    }

    /// Writes dirty blocks while the arm is free before `now`.
    pub(super) fn destage(&mut self, now: u64) {
        while !self.dirty.runs.is_empty() && self.free < now && self.destage_one(self.free) {}
    }

    /// Writes the run that the arm reaches soonest from `at` on; false when there is none.
    fn destage_one(&mut self, at: u64) -> bool {
        let at = at.max(self.free);
        let hint = self.dirty.last;
        let up = self.dirty.runs.range(hint..).take(LOOK);
        let down = self.dirty.runs.range(..hint).rev().take(LOOK);
        let soonest = up.chain(down).min_by_key(|&(&b, _)| {
            let mut arm = self.arm;
            let p = self.mechanism.pass(&mut arm, at, b, 1, true);
            p.begin
        });
        let Some((&block, &n)) = soonest else { return false };
        let (mut t, mut b, mut left) = (at, block, n);
        while left > 0 {
            let p = self.mechanism.pass(&mut self.arm, t, b, left, true);
            t = p.end;
            b += u64::from(p.sectors);
            left -= p.sectors;
        }
        self.dirty.remove(block, n);
        self.free = t;
        self.dirty.last = b;
        self.dirty.flying = (block, n);
        true
    }

    /// When everything that was acknowledged is on the media, if nothing else is asked for.
    pub fn flush(&mut self, begin: Nanos) -> Nanos {
        self.advance(begin.0);
        self.stop(begin.0);
        while self.destage_one(begin.0) {}
        self.last = Kind::Write;
        Nanos(self.free.max(begin.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// The runs are the set of blocks that were added and not removed.
        #[test]
        fn runs_are_a_set_of_blocks(
            steps in prop::collection::vec((any::<bool>(), 0_u64..200, 1_u32..30), 1..80),
        ) {
            let (mut d, mut set) = (Dirty::default(), BTreeSet::new());
            for (add, block, n) in steps {
                let blocks = block..block + u64::from(n);
                if add {
                    d.add(block, n, 64);
                    set.extend(blocks);
                } else {
                    d.remove(block, n);
                    set.retain(|b| !blocks.contains(b));
                }
                let all: Vec<u64> =
                    d.runs.iter().flat_map(|(&b, &n)| b..b + u64::from(n)).collect();
                prop_assert_eq!(&all, &set.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(d.sectors, set.len() as u64);
            }
        }
    }
}
