//! The fast engine for replay: a token is a completion time, and there is no event queue.

use crate::calendar::Calendar;
use crate::driver::{Completion, Engine, Tag};
use crate::usage::DeviceUsage;
use frit_core::{Cmd, Nanos, Sink, UnitId, UnitState};
use frit_media::{Hardware, Phases, TimingModel};

#[derive(Clone, Copy, Debug)]
struct EagerUnit {
    free: Nanos,
    channel: u16,
    device: u8,
}

/// Computes the completion time of each command when it is emitted.
///
/// A command begins when `after` is done and its unit has finished all commands that were emitted
/// to it before (FIFO). It occupies the unit from the start of its first phase to its end, and the
/// channel only in its bus phases.
///
/// Approximations: a unit never runs a later command while an earlier one waits for its `after`;
/// and bus phases are reserved in the order of emission, each in the first gap where it fits, while
/// a real channel is granted in the order of requests. If no two units share a channel, or no
/// command has a bus phase, the result equals that of the event engine with the FIFO scheduler.
#[derive(Clone, Debug)]
pub struct Eager {
    now: Nanos,
    ack: Nanos,
    units: Vec<EagerUnit>,
    channels: Vec<Calendar>,
    models: Vec<TimingModel>,
    usage: DeviceUsage,
}

impl Eager {
    /// Creates an engine for these devices, at time zero.
    #[must_use]
    pub fn new(hardware: &Hardware) -> Eager {
        let units = (0..hardware.units())
            .map(|u| UnitId(u as u16))
            .map(|u| EagerUnit {
                free: Nanos::ZERO,
                channel: hardware.channel_of(u) as u16,
                device: hardware.device_of(u) as u8,
            })
            .collect();
        Eager {
            now: Nanos::ZERO,
            ack: Nanos::ZERO,
            units,
            channels: vec![Calendar::new(); hardware.channels()],
            models: hardware.models(),
            usage: DeviceUsage::new(hardware),
        }
    }

    /// Usage of units and channels.
    #[must_use]
    pub fn usage(&self) -> &DeviceUsage {
        &self.usage
    }

    /// Mutable usage, to reset it or to enable further statistics.
    pub fn usage_mut(&mut self) -> &mut DeviceUsage {
        &mut self.usage
    }

    /// Returns the start and the end of a command whose unit is free at `begin`.
    #[inline]
    fn schedule_phases(&mut self, channel: u16, begin: Nanos, p: Phases) -> (Nanos, Nanos) {
        if p.bus_in > Nanos::ZERO && p.bus_out > Nanos::ZERO {
            let start = self.bus(channel, begin, p.bus_in);
            let out = self.bus(channel, start + p.bus_in + p.array, p.bus_out);
            return (start, out + p.bus_out);
        }
        // Both are zero: the case of two bus phases is handled above.
        if p.bus_in == p.bus_out {
            return (begin, begin + p.array);
        }
        // One bus phase: both kinds take the same steps, to avoid a branch that the processor
        // cannot predict.
        let goes_in = p.bus_in > Nanos::ZERO;
        let (before, after) = if goes_in { (Nanos::ZERO, p.array) } else { (p.array, Nanos::ZERO) };
        let len = p.bus_in + p.bus_out;
        let at = self.bus(channel, begin + before, len);
        (if goes_in { at } else { begin }, at + len + after)
    }

    #[inline]
    fn bus(&mut self, channel: u16, earliest: Nanos, len: Nanos) -> Nanos {
        let at = self.channels[usize::from(channel)].reserve(earliest, len);
        self.usage.count_bus_phase(channel, at, len);
        at
    }
}

impl Sink for Eager {
    type Tok = Nanos;

    #[inline]
    fn now(&self) -> Nanos {
        self.now
    }

    #[inline]
    fn start(&self) -> Nanos {
        Nanos::ZERO
    }

    #[inline]
    fn unit(&self, unit: UnitId) -> UnitState {
        match self.units[unit.idx()].free {
            free if free > self.now => UnitState::BusyUntil(free),
            _ => UnitState::Idle,
        }
    }

    #[inline]
    fn emit(&mut self, cmd: Cmd, after: Nanos) -> Nanos {
        let unit = self.units[cmd.unit.idx()];
        let ready = self.now.max(after);
        let begin = ready.max(unit.free);
        let phases = self.models[usize::from(unit.device)].phases(&cmd, begin);
        let (start, end) = self.schedule_phases(unit.channel, begin, phases);
        self.units[cmd.unit.idx()].free = end;
        self.usage.count_command(&cmd, ready, start, end);
        end
    }

    #[inline]
    fn join(&mut self, a: Nanos, b: Nanos) -> Nanos {
        a.max(b)
    }

    #[inline]
    fn ack(&mut self, tok: Nanos) {
        self.ack = self.ack.max(tok);
    }
}

impl Engine for Eager {
    #[inline]
    fn begin(&mut self) {
        self.ack = self.now;
    }

    #[inline]
    fn end(&mut self) -> Nanos {
        self.ack
    }

    #[inline]
    fn time_or_watch(&mut self, tok: Nanos, _: Tag) -> Option<Nanos> {
        Some(tok.max(self.now))
    }

    #[inline]
    fn next_done(&mut self, limit: Nanos) -> Option<Completion> {
        if limit < Nanos::MAX {
            self.now = self.now.max(limit);
        }
        None
    }
}
