//! Programs and erases that reads suspend.
//!
//! The operation of a unit whose cells work is its running command, or is suspended while the unit
//! executes reads. When a read is sent to the unit, when the cells begin and after each read, the
//! unit is listed as if it were free, and the scheduler is asked for a read.

use super::state::{CmdId, NONE, PendingEvent, Queues, Stage};
use frit_core::{Nanos, Op, UnitId};
use frit_media::{Hardware, NandSuspend};

/// A unit with suspensions, and its program or erase in the cell phase.
#[derive(Clone, Debug)]
pub(super) struct Suspension {
    rules: NandSuspend,
    /// The operation, running or suspended, or [`NONE`].
    operation: u32,
    suspended: bool,
    /// Number of the event that ends the operation. Events with other numbers are void.
    event: u32,
    /// End of the cells if nothing suspends them.
    end: Nanos,
    /// Time of the cells that is left, while the operation is suspended.
    left: Nanos,
    /// Time in which the unit executed reads.
    paused: Nanos,
    /// Time at which the unit began the current read.
    read_from: Nanos,
    suspends: u32,
    reads: u32,
}

/// The suspension of each unit; empty if no unit has suspensions.
pub(super) fn suspensions(hardware: &Hardware) -> Vec<Option<Suspension>> {
    let rules = |u| hardware.devices()[hardware.device_of(UnitId(u as u16))].model.suspend();
    let new = |rules| Suspension {
        rules,
        operation: NONE,
        suspended: false,
        event: 0,
        end: Nanos::ZERO,
        left: Nanos::ZERO,
        paused: Nanos::ZERO,
        read_from: Nanos::ZERO,
        suspends: 0,
        reads: 0,
    };
    let all: Vec<_> = (0..hardware.units()).map(|u| rules(u).map(new)).collect();
    if all.iter().any(Option::is_some) { all } else { Vec::new() }
}

/// Interface for schedulers.
impl Queues {
    /// Returns `true` if a command that was sent to a unit can be executed in a suspension of the
    /// program or the erase of this unit: it is a read of another block, and waits for no hazard.
    #[must_use]
    pub fn may_suspend(&self, id: CmdId) -> bool {
        let node = &self.nodes[id.0 as usize];
        let Some(s) = self.suspension(node.cmd.unit) else { return false };
        node.stage == Stage::Sent
            && node.cmd.op == Op::NandRead
            && s.operation != NONE
            && node.cmd.hazard != self.nodes[s.operation as usize].cmd.hazard
            && !self.blocked(id)
    }
}

/// Interface for the engine.
impl Queues {
    fn suspension(&self, unit: UnitId) -> Option<&Suspension> {
        self.suspensions.get(unit.idx())?.as_ref()
    }

    fn suspension_mut(&mut self, unit: UnitId) -> Option<&mut Suspension> {
        self.suspensions.get_mut(unit.idx())?.as_mut()
    }

    /// Returns `true` if the unit has an operation, running or suspended, and executes no read.
    pub(super) fn has_operation(&self, unit: UnitId) -> bool {
        let running = self.units[unit.idx()].running;
        running != NONE && self.suspension(unit).is_some_and(|s| s.operation == running)
    }

    /// Returns `true` if the unit can execute a read in a suspension of its operation now.
    pub(super) fn accepts_read(&self, unit: UnitId) -> bool {
        let Some(s) = self.suspension(unit) else { return false };
        let times = s.rules.times(self.nodes[s.operation as usize].cmd.op).unwrap_or_default();
        let may_begin = s.suspended
            || (s.suspends < s.rules.max_suspends
                && s.end > self.now
                && s.end - self.now >= times.min_remaining);
        may_begin && s.reads < s.rules.max_reads
    }

    /// Starts the cells of a command, and returns `true`, if reads can suspend it.
    pub(super) fn start_operation(&mut self, id: u32) -> bool {
        let node = &self.nodes[id as usize];
        let (cmd, end) = (node.cmd, self.now + node.phases.array);
        let Some(s) = self.suspension_mut(cmd.unit) else { return false };
        if s.rules.times(cmd.op).is_none() {
            return false;
        }
        s.operation = id;
        (s.suspended, s.suspends, s.reads, s.paused) = (false, 0, 0, Nanos::ZERO);
        self.schedule_end(cmd.unit, end);
        self.list_free_unit(cmd.unit);
        true
    }

    fn schedule_end(&mut self, unit: UnitId, end: Nanos) {
        let Some(s) = self.suspension_mut(unit) else { return };
        s.end = end;
        s.event = s.event.wrapping_add(1);
        let event = s.event;
        self.at(end, PendingEvent::Operation(unit, event));
    }

    /// Returns the operation whose cells end with this event, if the event is not void.
    pub(super) fn operation_of(&mut self, unit: UnitId, event: u32) -> Option<CmdId> {
        let s = self.suspension_mut(unit)?;
        if s.event != event || s.operation == NONE {
            return None;
        }
        let (id, paused) = (s.operation, s.paused);
        s.operation = NONE;
        // The time of the reads counts as waiting time of the operation, so that the busy time of
        // the unit has it once.
        self.nodes[id as usize].start += paused;
        Some(CmdId(id))
    }

    /// Executes a read in a suspension of the operation of a unit, or resumes the operation.
    pub(super) fn suspend_or_resume(&mut self, unit: UnitId, read: Option<CmdId>) {
        let now = self.now;
        let read = read.filter(|&id| self.may_suspend(id) && self.accepts_read(unit));
        let Some(s) = self.suspension_mut(unit) else { return };
        let operation = s.operation;
        match (read, s.suspended) {
            (Some(read), true) => self.start_read(unit, read, now),
            (Some(read), false) => {
                s.suspended = true;
                s.suspends += 1;
                s.left = s.end - now;
                // The event of the end is void.
                s.event = s.event.wrapping_add(1);
                let rules = s.rules;
                let cmd = self.nodes[operation as usize].cmd;
                self.usage_mut().count_suspension(&cmd);
                let times = rules.times(cmd.op).unwrap_or_default();
                self.start_read(unit, read, now + times.suspend);
            }
            (None, true) => {
                s.suspended = false;
                let end = now + s.left + s.rules.resume;
                self.schedule_end(unit, end);
            }
            (None, false) => {}
        }
    }

    /// Starts a read in a suspension; the unit is ready for it at `begin`.
    fn start_read(&mut self, unit: UnitId, id: CmdId, begin: Nanos) {
        self.unlink(id.0);
        self.units[unit.idx()].running = id.0;
        if let Some(s) = self.suspension_mut(unit) {
            s.reads += 1;
            s.read_from = begin;
        }
        self.start_at(id.0, begin);
        if begin > self.now {
            self.nodes[id.0 as usize].stage = Stage::Suspends;
            self.at(begin, PendingEvent::Phase(id));
        } else {
            self.begin_phases(id);
        }
    }

    /// Makes the suspended operation the running command of its unit again, after a read, and
    /// returns `true`. It is resumed later in the same instant, unless a further read waits.
    pub(super) fn end_read(&mut self, unit: UnitId) -> bool {
        let now = self.now;
        let Some(s) = self.suspension_mut(unit) else { return false };
        if s.operation == NONE || !s.suspended {
            return false;
        }
        s.paused += now - s.read_from;
        self.units[unit.idx()].running = s.operation;
        self.list_free_unit(unit);
        true
    }
}
