//! A unit of the in-order engine: its queue, and the command that it executes.

use frit_core::Tok;
use frit_core::{Cmd, Nanos, Op, UnitId};
use frit_media::{Hardware, Phases, TimingModel};
use std::collections::VecDeque;

/// The next event of the oldest command of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The command has not started, or there is none.
    Idle,
    /// Its die starts it, and those that it is executed with.
    Start,
    /// It asks for the bus, for its transfer in.
    In,
    /// It waits for the transfers in of other planes of its die, or the cells work.
    Array,
    /// It asks for the bus, for its transfer out.
    Out,
}

/// A command that waits at a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct QueuedCommand {
    pub(super) cmd: Cmd,
    pub(super) tok: Tok,
    /// Time from which it waits only for its unit, if that was known when it was emitted.
    pub(super) ready: Option<Nanos>,
}

#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// Commands whose end is not known, in order of emission.
    pub(super) queue: VecDeque<QueuedCommand>,
    /// Time from which the unit is free for the oldest command of the queue.
    pub(super) free: Nanos,
    /// Phases of the oldest command of a plane, whose die executes them with those of other planes.
    pub(super) phases: Phases,
    /// Times of the oldest command, if its stage is not idle.
    pub(super) ready: Nanos,
    pub(super) start: Nanos,
    /// Length of its next transfer, and the time from the end of this transfer to the next transfer
    /// or to its end.
    pub(super) transfer: Nanos,
    pub(super) then: Nanos,
    /// Length of the transfer after the next one; zero if there is none.
    pub(super) second_transfer: Nanos,
    /// tCBSY, if the device has cache programs.
    pub(super) cache_busy: Option<Nanos>,
    /// Block of the last command, if that was a program; and the time from which a transfer to its next page
    /// can begin.
    pub(super) cached_block: Option<u32>,
    pub(super) register_free: Nanos,
    pub(super) channel: u16,
    pub(super) device: u8,
    pub(super) stage: Stage,
    pub(super) is_disk: bool,
    /// A fence takes no time: see [`TimingModel::has_free_fence`].
    pub(super) free_fence: bool,
    /// Number of its die if that executes multi-plane commands; the number of dies and the number of
    /// its suspension if reads suspend its operations; else [`super::dies::NO_DIE`].
    pub(super) die: u16,
    /// Number of oldest commands that can have an effect before those before them have ended.
    pub(super) planned_commands: usize,
}

impl Unit {
    pub(super) fn new(hardware: &Hardware, id: UnitId, die: u16) -> Unit {
        let device = hardware.device_of(id);
        Unit {
            queue: VecDeque::new(),
            free: Nanos::ZERO,
            phases: Phases::default(),
            ready: Nanos::ZERO,
            start: Nanos::ZERO,
            transfer: Nanos::ZERO,
            then: Nanos::ZERO,
            second_transfer: Nanos::ZERO,
            cache_busy: hardware.devices()[device].model.cache_busy(),
            cached_block: None,
            register_free: Nanos::ZERO,
            channel: hardware.channel_of(id) as u16,
            device: device as u8,
            stage: Stage::Idle,
            is_disk: matches!(hardware.devices()[device].model, TimingModel::Disk(_)),
            free_fence: hardware.devices()[device].model.has_free_fence(),
            die,
            planned_commands: if hardware.devices()[device].model.suspend().is_some() { 2 } else { 1 },
        }
    }

    /// Time from which a command can begin: a cache program before the cells have ended the one before.
    #[inline]
    pub(super) fn free_for(&self, cmd: &Cmd) -> Nanos {
        let cached = self.cached_block == Some(cmd.hazard) && cmd.op == Op::NandProgram;
        if cached { self.register_free } else { self.free }
    }

    /// Notes the last command of the unit, whose cells have ended or will end at `end`.
    #[inline]
    pub(super) fn note_end(&mut self, cmd: &Cmd, end: Nanos) {
        self.free = end;
        if let Some(busy) = self.cache_busy {
            self.cached_block = (cmd.op == Op::NandProgram).then_some(cmd.hazard);
            self.register_free = end - self.then + busy;
        }
    }

    /// Token of the command that is executed; a done token if there is none.
    #[inline]
    pub(super) fn running(&self) -> Tok {
        self.queue.front().map_or(Tok::default(), |c| c.tok)
    }

    /// Returns the time until which the unit has work, if it has; waits for buses and for other
    /// commands are not included.
    pub(super) fn busy_until(&self, now: Nanos, model: &TimingModel) -> Option<Nanos> {
        if self.queue.is_empty() && self.free <= now {
            return None;
        }
        let mut model = model.clone();
        let from = self.free.max(now);
        Some(self.queue.iter().fold(from, |at, c| at + model.phases(&c.cmd, at).total()))
    }
}
