//! The in-order engine: exact times of units that execute their commands in order of emission.

mod ask_tree;
mod dies;
mod disks;
mod suspend;
mod tokens;
mod unit;

use crate::links::is_link_tag;
use crate::usage::DeviceUsage;
use ask_tree::AskTree;
use dies::{Die, NO_DIE};
use disks::Disks;
use frit_core::{
    Cmd, Completion, Engine, LinkRequest, Nanos, RequestScope, Tag, Tok, UnitId, UnitState, UnitTimes,
};
use frit_media::{Hardware, Phases, TimingModel};
use std::any::Any;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::select_unpredictable;
use suspend::Suspension;
use tokens::{Consequence, Tokens};
use unit::{QueuedCommand, Stage, Unit};

/// Computes when each command starts and ends, for units that execute commands in order of
/// emission (FIFO), and for disks with queues of their own.
///
/// The result is that of a simulation of all events: a unit starts a command when the command waits
/// for nothing and all earlier commands of the unit have ended, and a channel is granted in the
/// order of the requests for it. Requests of the same instant are granted in order of emission.
///
/// The engine needs only one event for each bus phase. The order of the requests for a channel
/// decides all that follows, so when a request is due, its grant is computed, and with it the end of
/// the command, or the time of its next request, even if these are in the future. A command without
/// a bus phase needs no event: its end is known when its start is.
#[derive(Clone, Debug)]
pub struct InOrder {
    now: Nanos,
    tokens: Tokens,
    units: Vec<Unit>,
    /// For units without planes and suspensions.
    unit_times: UnitTimes,
    /// The next request for a bus of each unit. The position after the last unit stands for the
    /// disks, and their next event.
    asks: AskTree,
    /// Time from which each channel is free.
    channels: Vec<Nanos>,
    models: Vec<TimingModel>,
    /// Watched tokens whose completion time is known, earliest first.
    completions: BinaryHeap<Reverse<(Nanos, Tag)>>,
    disks: Option<Box<Disks>>,
    dies: Vec<Die>,
    suspensions: Vec<Suspension>,
    usage: Box<DeviceUsage>,
    /// Commands that can start now; kept to reuse its memory.
    startable: Vec<(UnitId, Tok)>,
    /// End of the last command whose end is known.
    last_end: Nanos,
    recorded: Option<Vec<CommandTimes>>,
}

/// Start and end of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandTimes {
    /// The command, as [`Engine::emit`] returned it.
    pub command: Tok,
    /// Time at which its unit started it.
    pub start: Nanos,
    /// Time of its end.
    pub end: Nanos,
}

impl InOrder {
    /// Creates an engine for these devices, at time zero.
    #[must_use]
    pub fn new(hardware: &Hardware) -> InOrder {
        let disks = Disks::new(hardware).map(Box::new);
        let (dies, mut die_of) = dies::dies(hardware);
        let suspensions = suspend::suspensions(hardware, dies.len(), &mut die_of);
        let units: Vec<Unit> =
            die_of.iter().enumerate().map(|(u, &die)| Unit::new(hardware, UnitId(u as u16), die)).collect();
        let unit_times = UnitTimes::new(units.len());
        for (u, unit) in units.iter().enumerate().filter(|(_, unit)| unit.die == NO_DIE && !unit.is_disk) {
            unit_times.free_from(UnitId(u as u16), unit.free);
        }
        InOrder {
            now: Nanos::ZERO,
            tokens: Tokens::new(),
            units,
            unit_times,
            asks: AskTree::new(hardware.units() + usize::from(disks.is_some())),
            channels: vec![Nanos::ZERO; hardware.channels()],
            models: hardware.models(),
            completions: BinaryHeap::new(),
            disks,
            dies,
            suspensions,
            usage: Box::new(DeviceUsage::new(hardware)),
            startable: Vec::new(),
            last_end: Nanos::ZERO,
            recorded: None,
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

    /// Begins to record the times of all commands except those of disks.
    pub fn record_times(&mut self) {
        self.recorded = Some(Vec::new());
    }

    /// The recorded times, in the order in which they became known.
    #[must_use]
    pub fn recorded_times(&self) -> &[CommandTimes] {
        self.recorded.as_deref().unwrap_or_default()
    }

    /// Starts the oldest command of a unit if it waits for nothing, and all commands that can start
    /// as a consequence.
    #[inline]
    fn start(&mut self, unit: UnitId) {
        self.start_oldest(unit);
        self.start_ready();
    }

    /// Starts the commands that became ready, and those that become ready as a consequence.
    #[inline]
    fn start_ready(&mut self) {
        while let Some((unit, command)) = self.startable.pop() {
            if self.units[unit.idx()].is_disk {
                self.release_to_disk(command);
            } else {
                self.start_oldest(unit);
            }
        }
    }

    /// Starts the oldest command of a unit if it waits for nothing. A command without a bus phase
    /// is also ended, and the next one is tried.
    #[inline]
    fn start_oldest(&mut self, id: UnitId) {
        loop {
            let unit = &mut self.units[id.idx()];
            if unit.die != NO_DIE {
                return self.plan(id);
            }
            if unit.stage != Stage::Idle {
                return;
            }
            let Some(&QueuedCommand { cmd, tok, ready }) = unit.queue.front() else { return };
            let Some(ready) = ready.or_else(|| self.tokens.ready_at(tok)) else { return };
            let begin = ready.max(unit.free_for(&cmd));
            let phases = self.models[usize::from(unit.device)].phases(&cmd, begin);
            (unit.ready, unit.start) = (ready, begin);
            if phases.bus_in + phases.bus_out > Nanos::ZERO {
                return self.ask(id, tok, begin, phases);
            }
            self.end(id, begin + phases.array);
        }
    }

    /// Makes a command ask for the bus, for its transfer in or, without one, for its transfer out.
    #[inline]
    fn ask(&mut self, id: UnitId, tok: Tok, begin: Nanos, phases: Phases) {
        let unit = &mut self.units[id.idx()];
        // Selections instead of branches: a processor cannot predict them.
        let goes_in = phases.bus_in > Nanos::ZERO;
        let either = |goes_in_first, other| select_unpredictable(goes_in, goes_in_first, other);
        unit.stage = if goes_in { Stage::In } else { Stage::Out };
        unit.transfer = either(phases.bus_in, phases.bus_out);
        unit.then = either(phases.array, Nanos::ZERO);
        unit.second_transfer = either(phases.bus_out, Nanos::ZERO);
        let at = either(begin, begin + phases.array);
        self.asks.set(id.idx(), at, tok.number());
    }

    /// Grants the bus to the unit that asks first, at the time of its request or when the bus is
    /// free.
    #[inline]
    fn grant(&mut self, id: UnitId, asked: Nanos) {
        let unit = &mut self.units[id.idx()];
        if unit.die != NO_DIE {
            return self.process_special(id, asked);
        }
        let (at, done) = transfer(unit, &mut self.channels, asked);
        self.usage.count_bus_phase(unit.channel, at, unit.transfer);
        if unit.second_transfer > Nanos::ZERO {
            unit.stage = Stage::Out;
            (unit.transfer, unit.then) = (unit.second_transfer, Nanos::ZERO);
            unit.second_transfer = Nanos::ZERO;
            let tok = unit.running();
            return self.asks.set(id.idx(), done, tok.number());
        }
        self.end_and_start(id, done);
    }

    /// Determines the next event of a unit with a die or with suspensions.
    fn plan(&mut self, id: UnitId) {
        let die = self.units[id.idx()].die;
        if usize::from(die) < self.dies.len() {
            self.plan_die(die);
        } else {
            self.plan_suspensions(id);
        }
    }

    /// Processes the event of a unit with a die or with suspensions.
    fn process_special(&mut self, id: UnitId, at: Nanos) {
        if usize::from(self.units[id.idx()].die) < self.dies.len() {
            self.grant_to_plane(id, at);
        } else {
            self.process_suspensions(id, at);
        }
    }

    /// Starts a die, or grants the bus to one of its planes.
    fn grant_to_plane(&mut self, id: UnitId, asked: Nanos) {
        let unit = &mut self.units[id.idx()];
        let die = unit.die;
        if unit.stage == Stage::Start {
            self.start_die(die, id, asked);
        } else {
            unit.transfer = if unit.stage == Stage::In { unit.phases.bus_in } else { unit.phases.bus_out };
            unit.then = Nanos::ZERO;
            let (at, done) = transfer(unit, &mut self.channels, asked);
            self.usage.count_bus_phase(unit.channel, at, unit.transfer);
            self.end_transfer(die, id, done);
        }
        self.start_ready();
    }

    #[inline]
    fn end_and_start(&mut self, id: UnitId, at: Nanos) {
        self.end(id, at);
        self.start(id);
        if self.units[id.idx()].stage == Stage::Idle {
            self.asks.clear(id.idx());
        }
    }

    /// Ends the oldest command of a unit at a time that can be in the future.
    #[inline]
    fn end(&mut self, id: UnitId, at: Nanos) {
        let unit = &mut self.units[id.idx()];
        let Some(&QueuedCommand { cmd, tok, .. }) = unit.queue.front() else { return };
        unit.queue.pop_front();
        unit.note_end(&cmd, at);
        if unit.die == NO_DIE && unit.queue.is_empty() {
            self.unit_times.free_from(id, unit.free);
        }
        unit.stage = Stage::Idle;
        self.usage.count_command(&cmd, unit.ready, unit.start, at);
        if let Some(recorded) = &mut self.recorded {
            recorded.push(CommandTimes { command: tok, start: unit.start, end: at });
        }
        self.resolve(tok, at);
    }

    #[inline]
    fn resolve(&mut self, tok: Tok, at: Nanos) {
        self.last_end = self.last_end.max(at);
        let (startable, completions) = (&mut self.startable, &mut self.completions);
        let usage = &mut self.usage;
        self.tokens.resolve(tok, at, |consequence| match consequence {
            Consequence::Ready(unit, command) => startable.push((unit, command)),
            Consequence::Watched(tag, at) if is_link_tag(tag) => {
                if let Some(links) = usage.links_mut() {
                    links.resolved(tag, at);
                }
            }
            Consequence::Watched(tag, at) => completions.push(Reverse((at, tag))),
        });
    }

    /// Measures a request between layers, from its start to its acknowledgement.
    fn measure_link(&mut self, scope: RequestScope, request: LinkRequest) {
        let Some(links) = self.usage.links_mut() else { return };
        // A time that is past counts as now: the request cannot have started before.
        let at = |tok| self.tokens.done_at(tok).map(|at| at.max(self.now));
        let (start, end) = match scope.ack == scope.start {
            // No command of the request takes time.
            true => (Some(self.now), Some(self.now)),
            false => (at(scope.start), at(scope.ack)),
        };
        let tags = links.request(request, start, end);
        for (tok, tag) in [(scope.start, tags.start), (scope.ack, tags.end)] {
            if let Some(tag) = tag {
                self.tokens.watch(self.now, tok, tag);
            }
        }
    }

    /// Gives a command of a disk, which waits for nothing but a time, to its drive.
    #[cold]
    fn release_to_disk(&mut self, command: Tok) {
        let Some(disks) = &mut self.disks else { return };
        disks.release(command, self.tokens.ready_at(command).unwrap_or(self.now));
        self.update_disk_event();
    }

    #[cold]
    fn emit_to_disk(&mut self, cmd: Cmd, tok: Tok) {
        let Some(disks) = &mut self.disks else { return };
        disks.emit(cmd, tok, self.now, self.tokens.ready_at(tok));
        self.update_disk_event();
    }

    fn update_disk_event(&mut self) {
        let position = self.units.len();
        match self.disks.as_ref().and_then(|d| d.next_event()) {
            Some(at) => self.asks.set(position, at.max(self.now), 0),
            None => self.asks.clear(position),
        }
    }

    /// Processes the events of the disks that are due, up to the first command that is done. A host
    /// that is notified of it can add a command before the drive chooses its next one.
    #[cold]
    fn process_disks(&mut self, at: Nanos) {
        let Some(disks) = &mut self.disks else { return };
        // The disks have an engine of their own. It counts into the same usage.
        disks.swap_usage(&mut self.usage);
        let done = disks.advance(at);
        disks.swap_usage(&mut self.usage);
        if let Some(tok) = done {
            self.resolve(tok, at);
        }
        self.start_ready();
        self.update_disk_event();
    }

    /// Returns the completion time of a token if no further command is emitted. A command that is
    /// emitted later can use a bus earlier, or be served by a disk first, and delay the completion.
    ///
    /// If the time is not known yet, the rest is simulated on a copy of the engine, which costs some
    /// microseconds.
    #[must_use]
    pub fn predict(&self, tok: Tok) -> Nanos {
        if let Some(at) = self.tokens.done_at(tok) {
            return at;
        }
        let mut copy = self.clone();
        while copy.asks.first_time() < Nanos::MAX {
            copy.process_event(copy.asks.first_time());
            if let Some(at) = copy.tokens.done_at(tok) {
                return at;
            }
        }
        copy.last_end
    }

    #[inline]
    fn process_event(&mut self, at: Nanos) {
        self.now = self.now.max(at);
        let position = self.asks.first();
        if position == self.units.len() {
            self.process_disks(at);
        } else {
            self.grant(UnitId(position as u16), at);
        }
    }
}

/// Transfers data between a unit and its channel, from the time `asked` or when the channel is free.
/// Returns the start of the transfer, and the time of what follows it.
#[inline]
fn transfer(unit: &mut Unit, channels: &mut [Nanos], asked: Nanos) -> (Nanos, Nanos) {
    let free = &mut channels[usize::from(unit.channel)];
    let at = asked.max(*free);
    *free = at + unit.transfer;
    // The service starts with the first grant; the wait for the bus counts as waiting time. So does the time of
    // a cache program in which the cells work for the one before.
    unit.start = select_unpredictable(unit.stage == Stage::In, at.max(unit.free), unit.start);
    (at, (*free).max(unit.free) + unit.then)
}

impl Engine for InOrder {
    #[inline]
    fn now(&self) -> Nanos {
        self.now
    }

    fn unit(&self, unit: UnitId) -> UnitState {
        let u = &self.units[unit.idx()];
        let busy_until = match &self.disks {
            Some(disks) if u.is_disk => disks.busy_until(unit, self.now),
            _ if u.die != NO_DIE && usize::from(u.die) >= self.dies.len() => {
                self.suspensions_busy_until(unit)
            }
            _ if u.die != NO_DIE && u.queue.is_empty() => self.dies[usize::from(u.die)].busy_until(self.now),
            _ => u.busy_until(self.now, &self.models[usize::from(u.device)]),
        };
        busy_until.map_or(UnitState::Idle, UnitState::BusyUntil)
    }

    fn unit_times(&self) -> UnitTimes {
        self.unit_times.share()
    }

    fn emit(&mut self, cmd: Cmd, after: Tok) -> Tok {
        if cmd.op.is_fence() && self.units[cmd.unit.idx()].free_fence {
            return after;
        }
        let (tok, ready) = self.tokens.command(self.now, cmd.unit, after);
        let unit = &mut self.units[cmd.unit.idx()];
        if unit.is_disk {
            self.emit_to_disk(cmd, tok);
            return tok;
        }
        unit.queue.push_back(QueuedCommand { cmd, tok, ready });
        if unit.die == NO_DIE {
            self.unit_times.busy(cmd.unit);
        }
        if unit.queue.len() <= unit.planned_commands {
            self.start(cmd.unit);
        }
        tok
    }

    #[inline]
    fn join(&mut self, a: Tok, b: Tok) -> Tok {
        self.tokens.join(self.now, a, b)
    }

    fn delay(&mut self, after: Tok, by: Nanos) -> Tok {
        self.tokens.delay(self.now, after, by)
    }

    fn is_done(&self, tok: Tok) -> bool {
        self.tokens.done_at(tok).is_some_and(|at| at <= self.now)
    }

    fn acquire(&mut self, _: u16, _: u64, after: Tok, instead: Tok) -> Tok {
        self.join(after, instead)
    }

    fn measure(&mut self, scope: RequestScope, request: LinkRequest) {
        self.measure_link(scope, request);
    }

    fn statistics(&self) -> Option<&dyn Any> {
        Some(self.usage())
    }

    fn statistics_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self.usage_mut())
    }
    #[inline]
    fn time_or_watch(&mut self, tok: Tok, tag: Tag) -> Option<Nanos> {
        match self.tokens.done_at(tok) {
            Some(at) if at <= self.now => return Some(self.now),
            Some(at) => self.completions.push(Reverse((at, tag))),
            None => self.tokens.watch(self.now, tok, tag),
        }
        None
    }

    #[inline]
    fn next_done(&mut self, limit: Nanos) -> Option<Completion> {
        loop {
            let event = self.asks.first_time();
            let done = self.completions.peek().map_or(Nanos::MAX, |c| c.0.0);
            if event.min(done) > limit || event.min(done) == Nanos::MAX {
                let target = if limit == Nanos::MAX { self.last_end } else { limit };
                self.now = self.now.max(target);
                return None;
            }
            // Requests for a bus at the time of a completion do not lose their turn: they are older
            // than the requests that the completion causes.
            // The ends of operations that reads can suspend are events, and precede completions.
            if done <= event && !(done == event && self.asks.first_is_end(self.units.len())) {
                let Reverse((at, tag)) = self.completions.pop()?;
                self.now = self.now.max(at);
                return Some(Completion { tag, at });
            }
            self.process_event(event);
        }
    }
}
