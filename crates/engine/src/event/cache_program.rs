//! Cache programs: the data of the next page of a block are transferred while the cells program a page.

use super::state::{CmdId, NONE, PendingEvent, Queues, Stage};
use frit_core::{Nanos, Op, UnitId};

/// The second page register of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheRegister {
    /// tCBSY.
    busy: Nanos,
    /// The register can be loaded: the cells program, and tCBSY has passed.
    free: bool,
    /// The program whose data are transferred into it or wait in it, or [`NONE`].
    next: u32,
}

impl CacheRegister {
    pub(super) fn new(busy: Nanos) -> CacheRegister {
        CacheRegister { busy, free: false, next: NONE }
    }
}

impl Queues {
    /// Returns `true` if a program can be loaded while the unit works.
    #[inline]
    pub(super) fn can_load(&self, unit: UnitId) -> bool {
        self.units[unit.idx()].cache.is_some_and(|c| c.free && c.next == NONE)
    }

    /// Notes that the cells of a program have begun.
    pub(super) fn begin_cache(&mut self, id: CmdId) {
        let cmd = self.nodes[id.0 as usize].cmd;
        if cmd.op != Op::NandProgram {
            return;
        }
        let Some(cache) = self.units[cmd.unit.idx()].cache else { return };
        let at = self.now + cache.busy;
        self.at(at, PendingEvent::CacheFree(id));
    }

    /// Frees the register of the unit of a program, if its cells still work.
    pub(super) fn free_cache(&mut self, id: CmdId) {
        let node = &self.nodes[id.0 as usize];
        let (unit, works) = (node.cmd.unit, node.stage == Stage::Array);
        if !works || self.units[unit.idx()].running != id.0 {
            return;
        }
        if let Some(cache) = &mut self.units[unit.idx()].cache {
            cache.free = true;
        }
        self.list_free_unit(unit);
    }

    /// Starts the transfer of `picked`, if it is a program of the next page of the block.
    pub(super) fn load(&mut self, unit: UnitId, picked: Option<CmdId>) {
        let Some(id) = picked else { return };
        let running = self.units[unit.idx()].running;
        let node = &self.nodes[id.0 as usize];
        let follows = node.stage == Stage::Sent
            && node.cmd.op == Op::NandProgram
            && node.cmd.hazard == self.nodes[running as usize].cmd.hazard
            && !self.blocked(id);
        if !follows {
            return;
        }
        self.unlink(id.0);
        if let Some(cache) = &mut self.units[unit.idx()].cache {
            cache.next = id.0;
        }
        self.start_at(id.0, self.now);
        self.begin_phases(id);
    }

    /// Keeps a program whose data are in the register while the cells work for another one. Returns `true`
    /// if they do.
    pub(super) fn waits_in_cache(&mut self, id: CmdId) -> bool {
        let unit = self.nodes[id.0 as usize].cmd.unit;
        let waits = self.units[unit.idx()].cache.is_some_and(|c| c.next == id.0);
        if waits {
            self.nodes[id.0 as usize].stage = Stage::Loaded;
        }
        waits
    }

    /// Gives a unit whose cells have ended a program to the one in its register. Returns `true` if there is
    /// one.
    pub(super) fn take_from_cache(&mut self, unit: UnitId) -> bool {
        let now = self.now;
        let u = &mut self.units[unit.idx()];
        let Some(cache) = &mut u.cache else { return false };
        cache.free = false;
        let next = std::mem::replace(&mut cache.next, NONE);
        if next == NONE {
            return false;
        }
        u.running = next;
        // The time in which the cells worked for the other program counts as waiting time.
        let node = &mut self.nodes[next as usize];
        node.start = node.start.max(now);
        if node.stage == Stage::Loaded {
            self.start_cells(CmdId(next));
        }
        true
    }
}
