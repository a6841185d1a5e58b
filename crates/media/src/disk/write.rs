//! Writes to the media, and what a cache acknowledges before.

use super::drive::{Drive, Hit, Moved, Request, Service};
use super::mechanism::Pass;
use super::spec::WriteBack;

/// When the data of a write comes over the bus.
#[derive(Clone, Copy, Debug)]
struct Supply {
    /// The first block begins.
    start: u64,
    /// One block, in picoseconds.
    ps: u64,
    /// Blocks that have to be in the buffer before the first goes to the media.
    gate: u64,
}

impl Supply {
    /// When `blocks` blocks are in.
    fn at(&self, blocks: u64) -> u64 {
        self.start + blocks * self.ps / 1000
    }
}

/// Blocks that a drive which disconnects before the data of a write wants buffered before it starts to
/// write: 10 (15 of a request of 45 or more). Source: DiskSim's model of the HP C2247A.
const GATE: (u32, u64, u64) = (45, 10, 15);

impl Drive {
    /// A write that goes through, or is acknowledged while it is the only one on its way.
    pub(super) fn write(&mut self, r: &Request, at: u64) -> Service {
        let o = self.spec.overheads;
        let (first, end) = (r.sector.0, r.sector.0 + u64::from(r.sectors));
        let behind = self.spec.cache.write_back == WriteBack::Stream;
        let busy = self.ahead.is_none() && self.free > at;
        let joins = self.spec.cache.joins_writes
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
        let gate = match extra.or(o.extra) {
            Some(_) if r.sectors < GATE.0 => u64::from(r.sectors).min(GATE.1),
            Some(_) => GATE.2,
            None => 1,
        };
        let supply = Supply { start: bus + o.data_prepare.0, ps, gate };
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
        let hit = if behind { Hit::Whole } else { Hit::Miss };
        Service::over(done, moved, hit)
    }

    /// Writes blocks to the media as they come over the bus, the arm being free at `start`. A block that is
    /// not there when its sector comes waits for the next turn. Returns when the last one is written.
    fn write_media(&mut self, start: u64, r: &Request, supply: Supply, delay: u64) -> (u64, Moved) {
        let turn = self.mechanism.period_ps.div_ceil(1000);
        let (mut at, mut block, mut left) = (start, r.sector.0, r.sectors);
        let mut written = 0_u64;
        let mut moved = Moved::default();
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
            let need = supply.at(if written == 0 { supply.gate } else { written + 1 });
            let late = need.saturating_sub(p.begin).div_ceil(turn) * turn;
            moved.rotation += late;
            let begin = p.begin + late;
            let n = runs_until_dry(begin, p.end - p.begin, p.sectors, supply, written);
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

    /// When a pass is over in which the head came down in the middle: with all its data there, it ends
    /// where the head met it, one turn later.
    fn arrive_write(&self, over: u64, p: Pass, supply: Supply) -> u64 {
        let turn = self.mechanism.period_ps / 1000;
        let down = p.begin - p.rotation;
        let inside = p.rotation + (p.end - p.begin) > turn;
        if inside && supply.at(u64::from(p.sectors)) <= down { down + turn } else { over }
    }
}

/// How many sectors of a pass are written before one comes whose block is not there.
fn runs_until_dry(begin: u64, span: u64, sectors: u32, supply: Supply, written: u64) -> u32 {
    let n = u64::from(sectors);
    let last = begin + span * (n - 1) / n;
    if supply.at(written + n) <= last || supply.ps == 0 {
        return sectors;
    }
    // Both times are linear in the number of the sector.
    let fits = |k: u64| supply.at(written + k + 1) <= begin + span * k / n;
    let (mut lo, mut hi) = (0, n - 1);
    while lo < hi {
        let mid = u64::midpoint(lo, hi + 1);
        if fits(mid) { lo = mid } else { hi = mid - 1 }
    }
    lo as u32 + 1
}
