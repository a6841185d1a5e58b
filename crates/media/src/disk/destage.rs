//! Write-back cache of the drive: acknowledges writes while it has space, and destages them in the
//! order in which the arm reaches them soonest.

use super::drive::{CacheResult, Drive, DriveRequest, DriveRequestKind, PositioningTimes, ServiceResult};
use frit_core::Nanos;

/// Number of runs on either side that are considered for the next destage.
const CANDIDATES: usize = 24;

impl Drive {
    /// Returns the number of dirty blocks in the cache at `at`, and how many of them are being
    /// written. A run that is being written occupies its space until it is on the platters.
    fn occupied(&self, at: u64) -> (u64, u64) {
        let in_flight = if self.free > at { u64::from(self.dirty.in_flight.1) } else { 0 };
        (self.dirty.sectors + in_flight, in_flight)
    }

    /// Returns the maximum number of dirty blocks. A larger write is accepted if it is alone.
    fn dirty_max(&self, r: &DriveRequest) -> u64 {
        u64::from(self.spec.cache.dirty_sectors).max(u64::from(r.sectors))
    }

    /// Returns `true` if a write can be acknowledged at once.
    pub(super) fn has_space(&self, r: &DriveRequest, at: u64) -> bool {
        self.occupied(at).0 + u64::from(r.sectors) <= self.dirty_max(r)
    }

    /// Serves a write that is acknowledged as soon as the cache has space for it.
    pub(super) fn write_to_cache(&mut self, r: &DriveRequest, at: u64) -> ServiceResult {
        let o = self.spec.overheads;
        let mut bus = at + self.after(o.write_hit) + o.data_prepare.0;
        let mut hit = CacheResult::Full;
        let mut ready = at;
        loop {
            if self.has_space(r, ready) {
                break;
            }
            let (_, in_flight) = self.occupied(ready);
            hit = CacheResult::Partial;
            if in_flight > 0 {
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
        // An idle arm starts to destage only after the transfer over the bus.
        if self.dirty.runs.is_empty() {
            self.free = self.free.max(done);
        }
        self.dirty.add(first, r.sectors, most);
        if self.read_ahead.is_some_and(|a| self.segments.get(a.segment).overlaps(first, end)) {
            self.stop(at);
        }
        self.segments.drop_overlapping(usize::MAX, first, end);
        ServiceResult::ending_at(done, PositioningTimes::default(), hit)
    }

    /// Destages dirty blocks while the arm is free before `now`.
    pub(super) fn destage(&mut self, now: u64) {
        while !self.dirty.runs.is_empty() && self.free < now && self.destage_one(self.free) {}
    }

    /// Destages the run that the arm reaches soonest from `at` on. Returns `false` if there is
    /// none.
    fn destage_one(&mut self, at: u64) -> bool {
        let at = at.max(self.free);
        let hint = self.dirty.last;
        let up = self.dirty.runs.range(hint..).take(CANDIDATES);
        let down = self.dirty.runs.range(..hint).rev().take(CANDIDATES);
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
        self.dirty.in_flight = (block, n);
        true
    }

    /// Returns the time at which all acknowledged writes are on the platters, if no other request
    /// arrives.
    pub fn flush(&mut self, begin: Nanos) -> Nanos {
        self.advance(begin.0);
        self.stop(begin.0);
        while self.destage_one(begin.0) {}
        self.last = DriveRequestKind::Write;
        Nanos(self.free.max(begin.0))
    }
}
