//! Reads and read-ahead.

use super::drive::{
    CacheResult, Drive, DriveRequest, DriveRequestKind, PositioningTimes, ReadAheadState, ServiceResult,
};
use super::mechanism::{Arm, Pass};
use super::spec::{ReadAhead, WriteBack};

impl Drive {
    pub(super) fn read(&mut self, r: &DriveRequest, at: u64) -> ServiceResult {
        let (first, end) = (r.sector.0, r.sector.0 + u64::from(r.sectors));
        if self.dirty.holds(first, end, self.free > at) {
            let done = self.hit_ready(at) + self.bus_time(r) + self.spec.overheads.read_complete.0;
            return ServiceResult::ending_at(done, PositioningTimes::default(), CacheResult::Full);
        }
        let growing = self.read_ahead.map(|a| a.segment);
        match self.segments.find(first, end, growing, self.spec.cache.almost_hits) {
            Some((segment, true)) => self.read_full_hit(r, at, segment),
            Some((segment, false)) => self.read_partial_hit(r, at, segment),
            None => self.read_miss(r, at),
        }
    }

    /// Serves a read whose sectors are all in the cache.
    fn read_full_hit(&mut self, r: &DriveRequest, at: u64, segment: usize) -> ServiceResult {
        self.segments.touch(segment);
        let bus = self.hit_ready(at);
        let done = bus + self.bus_time(r) + self.spec.overheads.read_complete.0;
        let end = r.sector.0 + u64::from(r.sectors);
        if self.read_ahead.is_some_and(|a| a.segment == segment) {
            self.extend_read_ahead(segment, end, None);
        } else {
            let free = self.stop(at);
            if self.spec.cache.read_ahead_on_hit && !self.segments.get(segment).written {
                let start = free.max(at + self.after(self.spec.overheads.read_miss));
                self.early = (0, 0);
                self.extend_read_ahead(segment, end, Some(start));
            }
        }
        if self.spec.cache.discards_read {
            self.segments.forget(segment, end);
        }
        ServiceResult::ending_at(done, PositioningTimes::default(), CacheResult::Full)
    }

    /// Serves a read whose first sectors are in the cache or in an active read-ahead.
    fn read_partial_hit(&mut self, r: &DriveRequest, at: u64, segment: usize) -> ServiceResult {
        self.segments.touch(segment);
        let bus = self.hit_ready(at);
        let end = r.sector.0 + u64::from(r.sectors);
        let from = self.segments.get(segment).end;
        let start = match self.read_ahead {
            Some(a) if a.segment == segment => a.at,
            _ => self.stop(at).max(at + self.after(self.spec.overheads.read_miss)),
        };
        self.read_ahead = None;
        let have = (from - r.sector.0) as u32;
        let ready = bus + u64::from(have) * self.spec.bus.read_ps / 1000;
        let (over, moved) = self.read_media(start, from, (end - from) as u32);
        let done = self.bus_end(ready) + self.spec.overheads.read_complete.0;
        self.segments.grow(segment, end);
        self.free = over;
        self.extend_read_ahead(segment, end, Some(over));
        ServiceResult::ending_at(done, moved, CacheResult::Partial)
    }

    fn read_miss(&mut self, r: &DriveRequest, at: u64) -> ServiceResult {
        let o = &self.spec.overheads;
        let command = self.after(o.read_miss);
        let off_bus = at + command + self.after(o.read_disconnect);
        let (prepare, reselect) = (o.data_prepare.0, o.reselect_first.0);
        let complete = o.read_complete.0;
        let free = self.stop(at);
        let start = free.max(at + command);
        let (first, end) = (r.sector.0, r.sector.0 + u64::from(r.sectors));
        let from = if self.spec.cache.read_free_blocks { self.first_passing(start, first) } else { first };
        let (over, moved) = self.read_media(start, first, r.sectors);
        let ready = if self.spec.bus.never_disconnects {
            at + command + prepare
        } else {
            off_bus.max(self.watermark(r.sectors)) + reselect + prepare
        };
        let done = self.bus_end(ready) + complete;
        let segment = self.segments.victim(false, first, end, None);
        self.segments.fill(segment, from, end, false);
        self.segments.touch(segment);
        self.free = over;
        self.extend_read_ahead(segment, end, Some(over));
        ServiceResult::ending_at(done, moved, CacheResult::Miss)
    }

    /// Returns the time at which the data of a cache hit can be transferred.
    fn hit_ready(&self, at: u64) -> u64 {
        let o = &self.spec.overheads;
        let writes_alone = self.spec.cache.write_back != WriteBack::Full;
        if writes_alone && self.free > at && self.read_ahead.is_none() {
            // The drive released the bus, and reselects the host when the arm is done.
            let off_bus = at + self.after(o.read_miss) + self.after(o.read_disconnect);
            return off_bus.max(self.free) + o.reselect_first.0 + o.data_prepare.0;
        }
        at + self.after(o.read_hit) + o.data_prepare.0
    }

    fn bus_time(&self, r: &DriveRequest) -> u64 {
        let ps =
            if r.kind == DriveRequestKind::Read { self.spec.bus.read_ps } else { self.spec.bus.write_ps };
        u64::from(r.sectors) * ps / 1000
    }

    /// Reads blocks from the platters into `passes`; the arm is free at `start`. Returns the time
    /// at which the last block is in the buffer.
    fn read_media(&mut self, start: u64, block: u64, count: u32) -> (u64, PositioningTimes) {
        self.passes.clear();
        self.early = (0, 0);
        let on_arrival = self.spec.cache.read_on_arrival || self.spec.cache.read_free_blocks;
        let (mut at, mut block, mut left) = (start, block, count);
        let mut moved = PositioningTimes::default();
        while left > 0 {
            let p = if left == count {
                self.mechanism.pass(&mut self.arm, at, block, left, false)
            } else {
                self.mechanism.pass_on(&mut self.arm, at, block, left, false)
            };
            moved.add(&p);
            let n = p.sectors;
            at = if on_arrival { self.push_split(block, p) } else { self.push(p) };
            block += u64::from(n);
            left -= n;
        }
        (at, moved)
    }

    fn push(&mut self, p: Pass) -> u64 {
        self.passes.push(p);
        p.end
    }

    /// Adds a pass. If the head arrives in the middle of it, the rear part is read first and waits
    /// in the buffer for the front part; the blocks that follow on the track were read before as
    /// well. Returns the time at which the pass is in the buffer.
    fn push_split(&mut self, block: u64, p: Pass) -> u64 {
        let n = u64::from(p.sectors);
        let location = self.mechanism.layout.locate(block);
        let track = u64::from(self.mechanism.layout.sectors(location.zone));
        // The sector that the head met, counted from the first requested one, one revolution
        // earlier.
        let sector = (p.end - p.begin).max(n) / n;
        let whole = p.rotation / sector;
        let Some(met_sector) =
            track.checked_sub(whole).filter(|&m| whole > u64::from(location.sector) && m > 0)
        else {
            // The head met the first requested sector or one before it: no requested sector has
            // passed.
            return self.push(p);
        };
        let tail = self.mechanism.layout.track_end(block, &location);
        if met_sector >= n {
            self.early = (block + met_sector, tail.max(block + met_sector));
            return self.push(p);
        }
        self.early = (block + n, tail.max(block + n));
        let over = p.begin + self.mechanism.transfer_time(location.zone, met_sector as u32);
        self.push(Pass { sectors: met_sector as u32, end: over, ..p });
        self.push(Pass { sectors: (n - met_sector) as u32, begin: over, end: over, seek: 0, rotation: 0 });
        over
    }

    /// Returns the first block of the track that passes completely under the head before `block`
    /// does.
    fn first_passing(&self, start: u64, block: u64) -> u64 {
        let m = &self.mechanism;
        let location = m.layout.locate(block);
        let seek = m.position(self.arm, Arm::of_location(&location), false);
        let wait = m.wait(start + seek, location.angle_ps);
        let first = m.layout.track_first(block, &location);
        let sector = m.transfer_time(location.zone, 1).max(1);
        let passed = (wait / sector).min(block - first);
        block - passed
    }

    /// Returns the time at which the buffer contains as much of a read as the drive requires before
    /// it takes the bus.
    fn watermark(&self, sectors: u32) -> u64 {
        let b = &self.spec.bus;
        let segment = self.segments.size() as u32;
        let mark = if b.watermark_of_request {
            f64::from(sectors.min(segment)) * b.read_watermark
        } else {
            (f64::from(segment) * b.read_watermark).ceil()
        };
        let mut want = (mark as u32).clamp(1, sectors.max(1));
        for p in &self.passes {
            if want <= p.sectors {
                return p.begin + (p.end - p.begin) * u64::from(want) / u64::from(p.sectors);
            }
            want -= p.sectors;
        }
        self.passes.last().map_or(0, |p| p.end)
    }

    /// Returns the time at which the last block has crossed the bus. The transfer begins at `ready`
    /// at the earliest, and each block must have passed under the head first.
    fn bus_end(&self, ready: u64) -> u64 {
        let (b, o) = (&self.spec.bus, &self.spec.overheads);
        let gap =
            if b.never_disconnects || b.holds_reads { 0 } else { o.reselect_first.0 + o.data_prepare.0 };
        let mut bus = ready;
        for p in &self.passes {
            let n = u64::from(p.sectors);
            let first = p.begin + (p.end - p.begin) / n;
            // If the head is behind the bus, the drive disconnects and pays for the reconnection.
            if first > bus && gap > 0 {
                bus = first.max(bus + self.after(o.read_disconnect)) + gap;
            }
            let all = n * b.read_ps / 1000;
            // The last sector crosses the bus only after it was read.
            bus = (bus.max(first) + all).max(p.end + b.read_ps / 1000);
        }
        bus
    }

    /// Sets the limit of the read-ahead in a segment after a read that ended at `end`. `from` is
    /// the time at which the read-ahead starts, or `None` if it is already active.
    fn extend_read_ahead(&mut self, segment: usize, end: u64, from: Option<u64>) {
        let c = &self.spec.cache;
        let limit = self.limit(segment, end).min(self.sectors());
        if c.discards_read {
            self.segments.forget(segment, end);
        }
        let least = end + u64::from(c.read_ahead_min);
        match (&mut self.read_ahead, from) {
            (Some(a), None) => {
                a.limit = a.limit.max(limit);
                a.least = a.least.max(least);
            }
            (_, Some(at)) if limit > self.segments.get(segment).end => {
                self.read_ahead = Some(ReadAheadState { segment, limit, least, at, early: self.early });
            }
            _ => {}
        }
    }

    /// Returns the block before which a read-ahead stops.
    fn limit(&self, segment: usize, end: u64) -> u64 {
        let c = &self.spec.cache;
        let layout = &self.mechanism.layout;
        let room = if c.read_ahead_max > 0 { u64::from(c.read_ahead_max) } else { self.segments.size() };
        if end >= layout.blocks() {
            return end;
        }
        match c.read_ahead {
            ReadAhead::Off => end,
            ReadAhead::Segment => end + room,
            ReadAhead::Track => {
                let last = layout.locate(end - 1);
                layout.track_end(end - 1, &last).min(end + room)
            }
            ReadAhead::Cylinder => {
                let last = layout.locate(end - 1);
                let mut b = layout.track_end(end - 1, &last);
                while b < layout.blocks() && b < end + room {
                    let location = layout.locate(b);
                    if location.cylinder != last.cylinder {
                        break;
                    }
                    b = layout.track_end(b, &location);
                }
                b.min(end + room)
            }
            ReadAhead::NextTrack => {
                let location = layout.locate(end);
                let track_end = layout.track_end(end, &location);
                if self.segments.get(segment).start < layout.track_first(end, &location) {
                    track_end + u64::from(layout.sectors(location.zone))
                } else {
                    track_end
                }
            }
        }
    }

    /// Advances the read-ahead to `now`.
    pub(super) fn advance_read_ahead(&mut self, now: u64) {
        let Some(mut a) = self.read_ahead else { return };
        loop {
            let next = self.segments.get(a.segment).end;
            if next >= a.limit {
                self.read_ahead = None;
                self.free = self.free.max(a.at);
                return;
            }
            if a.early.0 <= next && next < a.early.1 && a.at <= now {
                self.segments.grow(a.segment, a.early.1.min(a.limit));
                continue;
            }
            let stop = if next < a.early.0 { a.limit.min(a.early.0) } else { a.limit };
            let left = (stop - next).min(u64::from(u32::MAX)) as u32;
            let mut arm = self.arm;
            let p = self.mechanism.pass_on(&mut arm, a.at, next, left, false);
            if p.end <= now {
                self.arm = arm;
                a.at = p.end;
                self.segments.grow(a.segment, next + u64::from(p.sectors));
                continue;
            }
            if now > p.begin {
                let n = (now - p.begin) * u64::from(p.sectors) / (p.end - p.begin).max(1);
                if n > 0 {
                    self.arm = arm;
                    a.at = p.begin + (p.end - p.begin) * n / u64::from(p.sectors);
                    self.segments.grow(a.segment, next + n);
                }
            }
            break;
        }
        self.read_ahead = Some(a);
    }

    /// Stops the background work at `now`. Returns the time at which the arm is free.
    pub(super) fn stop(&mut self, now: u64) -> u64 {
        let Some(a) = self.read_ahead.take() else { return self.free.max(now) };
        // A read-ahead has to fetch a minimum of blocks before it can be stopped.
        if self.segments.get(a.segment).end < a.least {
            self.read_ahead = Some(ReadAheadState { limit: a.least.min(self.sectors()), ..a });
            let mut until = now;
            while self.read_ahead.is_some() {
                until += self.mechanism.period_ps / 1000;
                self.advance_read_ahead(until);
            }
            return self.free.max(now);
        }
        // A seek in progress is finished; a sector in progress is finished only by drives that do
        // not stop within a sector.
        let next = self.segments.get(a.segment).end;
        let mut arm = self.arm;
        let p = self.mechanism.pass_on(&mut arm, a.at, next, 1, false);
        self.free = if p.seek > 0 && a.at < now {
            self.arm = arm;
            (a.at + p.seek).max(now)
        } else if !self.spec.cache.stops_in_sector && p.begin < now {
            p.end.max(now)
        } else {
            now
        };
        self.free
    }
}
