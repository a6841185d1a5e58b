//! Writes to the platters, and writes that the cache acknowledges early.

use super::drive::{CacheResult, Drive, DriveRequest, PositioningTimes, ServiceResult};
use super::mechanism::Pass;
use super::spec::WriteBack;

/// Arrival of a write's data over the bus.
#[derive(Clone, Copy, Debug)]
struct DataArrival {
    /// Time at which the transfer of the first block begins.
    start: u64,
    /// Transfer time of a block, in picoseconds.
    ps: u64,
    /// Number of blocks that must be in the buffer before the first is written to the platters.
    prebuffer: u64,
}

impl DataArrival {
    /// Returns the time at which `blocks` blocks have arrived.
    fn at(&self, blocks: u64) -> u64 {
        self.start + blocks * self.ps / 1000
    }
}

/// Minimum number of buffered blocks before a write starts, for drives that disconnect before the
/// data of a write: 10, or 15 for a request of at least 45 blocks. Source: DiskSim's model of the
/// HP C2247A.
const PREBUFFER: (u32, u64, u64) = (45, 10, 15);

impl Drive {
    /// Serves a write that goes to the platters, or that is acknowledged early while it is the only
    /// one in flight.
    pub(super) fn write(&mut self, r: &DriveRequest, at: u64) -> ServiceResult {
        let o = self.spec.overheads;
        let (first, end) = (r.sector.0, r.sector.0 + u64::from(r.sectors));
        let behind = self.spec.cache.write_back == WriteBack::Stream;
        let busy = self.read_ahead.is_none() && self.free > at;
        let joins = self.spec.cache.combines_writes
            && busy
            && self
                .wrote
                .is_some_and(|(s, e)| e == first && end - self.segments.get(s).start <= self.segments.size());
        let extra = o
            .extra
            .filter(|_| !busy && self.wrote.is_some_and(|(s, e)| self.segments.is_latest(s) && e != first));
        let free = self.stop(at);
        let command = at + self.after(if behind { o.write_hit } else { o.write_miss });
        let (bus, media) = match extra {
            Some(x) => {
                let again = at + x.command.0 + x.disconnect.0 + x.between.0 + o.reselect_first.0;
                (again, at + x.command.0 + x.seek_delta.0)
            }
            None if busy && !joins => {
                ((command + o.write_disconnect.0).max(free) + o.reselect_first.0, command)
            }
            None => (command, command),
        };
        let ps = self.spec.bus.write_ps;
        let prebuffer = match extra.or(o.extra) {
            Some(_) if r.sectors < PREBUFFER.0 => u64::from(r.sectors).min(PREBUFFER.1),
            Some(_) => PREBUFFER.2,
            None => 1,
        };
        let supply = DataArrival { start: bus + o.data_prepare.0, ps, prebuffer };
        let over_bus = supply.at(u64::from(r.sectors));
        let delay = if joins { 0 } else { o.seek_delay_min.0 };
        let (over, moved) = self.write_media(media.max(free), r, supply, delay);
        let done = if behind {
            over_bus
        } else if self.spec.bus.never_disconnects {
            over.max(over_bus)
        } else {
            let off = extra.map_or(o.write_disconnect, |x| x.disconnect_again);
            let reselect = if extra.is_some() { o.reselect_other } else { o.reselect_first };
            over.max(over_bus + off.0) + reselect.0
        } + o.write_complete.0;
        self.free = over;
        let segment = match self.wrote {
            Some((s, _)) if joins => s,
            _ => {
                let s = self.segments.victim(true, first, end, None);
                self.segments.fill(s, first, first, true);
                s
            }
        };
        self.segments.grow(segment, end);
        self.segments.drop_overlapping(segment, first, end);
        self.segments.touch(segment);
        self.wrote = Some((segment, end));
        let hit = if behind { CacheResult::Full } else { CacheResult::Miss };
        ServiceResult::ending_at(done, moved, hit)
    }

    /// Writes blocks to the platters as they arrive over the bus; the arm is free at `start`. A
    /// block that has not arrived when its sector passes waits for the next revolution. Returns the
    /// time at which the last block is written.
    fn write_media(
        &mut self,
        start: u64,
        r: &DriveRequest,
        supply: DataArrival,
        delay: u64,
    ) -> (u64, PositioningTimes) {
        let turn = self.mechanism.period_ps.div_ceil(1000);
        let (mut at, mut block, mut left) = (start, r.sector.0, r.sectors);
        let mut written = 0_u64;
        let mut moved = PositioningTimes::default();
        while left > 0 {
            if written == 0 && delay > 0 {
                let mut arm = self.arm;
                let seek = self.mechanism.pass(&mut arm, at, block, 1, true).seek;
                at += delay.saturating_sub(seek);
            }
            let p = if written == 0 {
                self.mechanism.pass(&mut self.arm, at, block, left, true)
            } else {
                self.mechanism.pass_on(&mut self.arm, at, block, left, true)
            };
            moved.add(&p);
            let need = supply.at(if written == 0 { supply.prebuffer } else { written + 1 });
            let late = need.saturating_sub(p.begin).div_ceil(turn) * turn;
            moved.rotation += late;
            let begin = p.begin + late;
            let n = sectors_before_underrun(begin, p.end - p.begin, p.sectors, supply, written);
            at = begin + (p.end - p.begin) * u64::from(n) / u64::from(p.sectors);
            if self.spec.cache.write_on_arrival && n == p.sectors && late == 0 {
                at = self.arrive_write(at, p, supply);
            }
            block += u64::from(n);
            written += u64::from(n);
            left -= n;
        }
        (at, moved)
    }

    /// Returns the end of a pass in which the head arrives in the middle. If all data has arrived,
    /// the pass ends where it began, one revolution later.
    fn arrive_write(&self, over: u64, p: Pass, supply: DataArrival) -> u64 {
        let turn = self.mechanism.period_ps / 1000;
        let down = p.begin - p.rotation;
        let inside = p.rotation + (p.end - p.begin) > turn;
        if inside && supply.at(u64::from(p.sectors)) <= down { down + turn } else { over }
    }
}

/// Returns the number of sectors of a pass that are written before the first sector whose block has
/// not arrived.
fn sectors_before_underrun(begin: u64, span: u64, sectors: u32, supply: DataArrival, written: u64) -> u32 {
    let n = u64::from(sectors);
    let last = begin + span * (n - 1) / n;
    if supply.at(written + n) <= last || supply.ps == 0 {
        return sectors;
    }
    // Both times are linear in the sector number, so the condition holds for a prefix: binary
    // search.
    let fits = |k: u64| supply.at(written + k + 1) <= begin + span * k / n;
    let (mut lo, mut hi) = (0, n - 1);
    while lo < hi {
        let mid = u64::midpoint(lo, hi + 1);
        if fits(mid) { lo = mid } else { hi = mid - 1 }
    }
    lo as u32 + 1
}
