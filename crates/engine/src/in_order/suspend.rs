//! Units whose programs and erases are suspended by reads.
//!
//! The end of such an operation is not known when it starts, because a read that is emitted later
//! can suspend it. So the end, the suspension and the choice after a read are events of their own.
//! At one time, ends come first, then choices, then the grants of channels.

use super::unit::{QueuedCommand, Stage};
use super::{CommandTimes, InOrder, Tokens, Unit};
use frit_core::{Nanos, Op, UnitId};
use frit_media::{Hardware, NandSuspend};

/// Numbers in the tree of events: an end precedes all commands of its time, a choice all grants.
const END: u64 = 0;
const CHOICE: u64 = 1;

/// A program or an erase in its cell phase, running or suspended.
#[derive(Clone, Copy, Debug)]
struct Operation {
    command: QueuedCommand,
    ready: Nanos,
    start: Nanos,
    /// Time in which the unit executed reads.
    paused: Nanos,
    /// Start of the cells, or of their continuation.
    from: Nanos,
    /// End of the cells if nothing suspends them.
    end: Nanos,
    /// Time of the cells that is left, while the operation is suspended.
    left: Nanos,
    suspended: bool,
    suspends: u32,
    reads: u32,
    /// Time at which the unit began the current read.
    read_from: Nanos,
}

/// A unit with suspensions.
#[derive(Clone, Debug)]
pub(super) struct Suspension {
    rules: NandSuspend,
    operation: Option<Operation>,
}

/// Gives the units with suspensions numbers after those of the dies, in `of_unit`.
pub(super) fn suspensions(hardware: &Hardware, dies: usize, of_unit: &mut [u16]) -> Vec<Suspension> {
    let mut suspensions = Vec::new();
    for (unit, number) in of_unit.iter_mut().enumerate() {
        let model = &hardware.devices()[hardware.device_of(UnitId(unit as u16))].model;
        if let Some(rules) = model.suspend() {
            *number = (dies + suspensions.len()) as u16;
            suspensions.push(Suspension { rules, operation: None });
        }
    }
    suspensions
}

/// Returns the time from which a queued command can suspend the operation, if it can: it is a read
/// of another block, and waits for nothing but a time.
fn suspending_from(
    rules: &NandSuspend,
    operation: &Operation,
    command: Option<&QueuedCommand>,
    tokens: &Tokens,
) -> Option<Nanos> {
    let QueuedCommand { cmd, tok, ready } = *command?;
    let may = cmd.op == Op::NandRead
        && cmd.hazard != operation.command.cmd.hazard
        && operation.reads < rules.max_reads;
    ready.or_else(|| tokens.ready_at(tok)).filter(|_| may)
}

impl InOrder {
    fn suspension_of(&self, id: UnitId) -> usize {
        usize::from(self.units[id.idx()].die) - self.dies.len()
    }

    /// Determines the next event of a unit with suspensions.
    pub(super) fn plan_suspensions(&mut self, id: UnitId) {
        let number = self.suspension_of(id);
        loop {
            let unit = &mut self.units[id.idx()];
            match self.suspensions[number].operation {
                Some(operation) if operation.suspended => {
                    if unit.stage == Stage::Idle {
                        self.asks.set(id.idx(), unit.free, CHOICE);
                    }
                    return;
                }
                Some(operation) => return self.plan_operation(id, number, &operation),
                None if unit.stage != Stage::Idle => return,
                None => {}
            }
            let Some(&QueuedCommand { cmd, tok, ready }) = unit.queue.front() else { return };
            let Some(ready) = ready.or_else(|| self.tokens.ready_at(tok)) else { return };
            let begin = ready.max(unit.free);
            let phases = self.models[usize::from(unit.device)].phases(&cmd, begin);
            (unit.ready, unit.start) = (ready, begin);
            if phases.bus_in + phases.bus_out > Nanos::ZERO {
                return self.ask(id, tok, begin, phases);
            }
            if self.suspensions[number].rules.times(cmd.op).is_some() {
                self.start_operation(id, begin, begin + phases.array);
            } else {
                self.end(id, begin + phases.array);
            }
        }
    }

    /// Registers the oldest command of a unit as the operation whose cells work from `from` on.
    fn start_operation(&mut self, id: UnitId, from: Nanos, end: Nanos) {
        let number = self.suspension_of(id);
        let unit = &mut self.units[id.idx()];
        let Some(&command) = unit.queue.front() else { return };
        unit.stage = Stage::Array;
        self.suspensions[number].operation = Some(Operation {
            command,
            ready: unit.ready,
            start: unit.start,
            paused: Nanos::ZERO,
            from,
            end,
            left: Nanos::ZERO,
            suspended: false,
            suspends: 0,
            reads: 0,
            read_from: Nanos::ZERO,
        });
    }

    /// Sets the next event of a running operation: its suspension, or its end.
    fn plan_operation(&mut self, id: UnitId, number: usize, operation: &Operation) {
        let rules = self.suspensions[number].rules;
        let unit = &self.units[id.idx()];
        let times = rules.times(operation.command.cmd.op).unwrap_or_default();
        let at = suspending_from(&rules, operation, unit.queue.get(1), &self.tokens)
            .filter(|_| operation.suspends < rules.max_suspends)
            .map(|ready| ready.max(operation.from).max(self.now))
            .filter(|&at| at < operation.end && operation.end - at >= times.min_remaining);
        match at {
            Some(at) => self.asks.set(id.idx(), at, CHOICE),
            None => self.asks.set(id.idx(), operation.end, END),
        }
    }

    /// Processes the event of a unit with suspensions: a transfer, the end of an operation, its
    /// suspension, or the choice after a read.
    pub(super) fn process_suspensions(&mut self, id: UnitId, at: Nanos) {
        let number = self.suspension_of(id);
        let stage = self.units[id.idx()].stage;
        match (stage, self.suspensions[number].operation) {
            (Stage::Array, Some(operation)) if at == operation.end => self.end_operation(id, number),
            (Stage::Array, Some(operation)) => self.suspend(id, number, operation, at),
            (Stage::Idle, Some(operation)) => self.read_or_resume(id, number, operation, at),
            _ => self.grant_with_suspensions(id, number, at),
        }
        self.start_ready();
    }

    fn grant_with_suspensions(&mut self, id: UnitId, number: usize, asked: Nanos) {
        let unit = &mut self.units[id.idx()];
        let goes_in = unit.stage == Stage::In;
        let (at, done) = super::transfer(unit, &mut self.channels, asked);
        self.usage.count_bus_phase(unit.channel, at, unit.transfer);
        if unit.second_transfer > Nanos::ZERO {
            unit.stage = Stage::Out;
            (unit.transfer, unit.then) = (unit.second_transfer, Nanos::ZERO);
            unit.second_transfer = Nanos::ZERO;
            let tok = unit.running();
            return self.asks.set(id.idx(), done, tok.number());
        }
        let then = unit.then;
        let op = unit.queue.front().map(|c| c.cmd.op);
        let is_operation = op.is_some_and(|op| self.suspensions[number].rules.times(op).is_some());
        if goes_in && is_operation {
            self.asks.clear(id.idx());
            self.start_operation(id, done - then, done);
        } else {
            self.end_read(id, number, done);
        }
        self.plan_suspensions(id);
    }

    /// Ends a command that is no operation, and counts its time if it was executed in a suspension.
    fn end_read(&mut self, id: UnitId, number: usize, done: Nanos) {
        self.asks.clear(id.idx());
        if let Some(operation) = &mut self.suspensions[number].operation {
            operation.paused += done - operation.read_from;
        }
        self.end(id, done);
    }

    fn end_operation(&mut self, id: UnitId, number: usize) {
        self.asks.clear(id.idx());
        let Some(operation) = self.suspensions[number].operation.take() else { return };
        let unit = &mut self.units[id.idx()];
        unit.queue.pop_front();
        unit.free = operation.end;
        unit.stage = Stage::Idle;
        // The time of the reads counts as waiting time of the operation, so that the busy time of
        // the unit has it once.
        let Operation { command, ready, start, paused, end, .. } = operation;
        self.usage.count_command(&command.cmd, ready, start + paused, end);
        if let Some(recorded) = &mut self.recorded {
            recorded.push(CommandTimes { command: command.tok, start, end });
        }
        self.resolve(command.tok, end);
        self.plan_suspensions(id);
    }

    fn suspend(&mut self, id: UnitId, number: usize, mut operation: Operation, at: Nanos) {
        let rules = self.suspensions[number].rules;
        operation.left = operation.end - at;
        operation.suspended = true;
        operation.suspends += 1;
        self.usage.count_suspension(&operation.command.cmd);
        self.suspensions[number].operation = Some(operation);
        self.units[id.idx()].queue.pop_front();
        let times = rules.times(operation.command.cmd.op).unwrap_or_default();
        self.start_read(id, number, at, at + times.suspend);
    }

    /// Starts the oldest command, a read, in a suspension.
    fn start_read(&mut self, id: UnitId, number: usize, now: Nanos, begin: Nanos) {
        self.asks.clear(id.idx());
        let unit = &mut self.units[id.idx()];
        let Some(&QueuedCommand { cmd, tok, ready }) = unit.queue.front() else { return };
        if let Some(operation) = &mut self.suspensions[number].operation {
            operation.reads += u32::from(cmd.op == Op::NandRead);
            operation.read_from = begin;
        }
        let phases = self.models[usize::from(unit.device)].phases(&cmd, begin);
        (unit.ready, unit.start) = (ready.or_else(|| self.tokens.ready_at(tok)).unwrap_or(now), begin);
        if phases.bus_in + phases.bus_out > Nanos::ZERO {
            return self.ask(id, tok, begin, phases);
        }
        self.end_read(id, number, begin + phases.array);
        self.plan_suspensions(id);
    }

    /// Chooses after a read in a suspension: its read of the page register, else the next read if one
    /// waits, else the operation.
    fn read_or_resume(&mut self, id: UnitId, number: usize, mut operation: Operation, at: Nanos) {
        let rules = self.suspensions[number].rules;
        let next = self.units[id.idx()].queue.front();
        if next.is_some_and(|c| c.cmd.op == Op::NandRegisterRead) {
            return self.start_read(id, number, at, at);
        }
        if suspending_from(&rules, &operation, next, &self.tokens).is_some_and(|ready| ready <= at) {
            return self.start_read(id, number, at, at);
        }
        operation.suspended = false;
        operation.from = at;
        operation.end = at + operation.left + rules.resume;
        let unit = &mut self.units[id.idx()];
        unit.queue.push_front(operation.command);
        unit.stage = Stage::Array;
        self.suspensions[number].operation = Some(operation);
        self.plan_operation(id, number, &operation);
    }

    /// Returns the time until which a unit with suspensions has work, as far as is known.
    pub(super) fn suspensions_busy_until(&self, id: UnitId) -> Option<Nanos> {
        let unit: &Unit = &self.units[id.idx()];
        let suspension = &self.suspensions[self.suspension_of(id)];
        let model = &self.models[usize::from(unit.device)];
        match suspension.operation {
            None => unit.busy_until(self.now, model),
            Some(operation) => {
                let mut model = model.clone();
                let (left, running) = match operation.suspended {
                    true => (unit.free.max(self.now) + operation.left + suspension.rules.resume, 0),
                    false => (operation.end.max(self.now), 1),
                };
                let waiting = unit.queue.iter().skip(running);
                Some(waiting.fold(left, |at, c| at + model.phases(&c.cmd, at).total()))
            }
        }
    }
}
