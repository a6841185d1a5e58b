//! What the event engine knows: commands, their waits, the queue of each unit, channels, events.

use super::arm::{Arm, NO_ARM, Role, arms};
use super::hazard::{Chains, Order, UnitOrder};
use crate::driver::{Done, Tag};
use crate::usage::Usage;
use frit_core::{Cmd, Nanos, Op, UnitId, UnitState};
use frit_media::{Hardware, Model, Phases};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// "None", for ids and links: slot 0 of the table is never used.
pub(super) const NONE: u32 = 0;

/// A command that is not done yet. Ids are used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CmdId(pub(super) u32);

/// When something is done, in an event engine. The default is done already.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tok {
    id: u32,
    /// A token whose generation is past is done, whoever uses the id now.
    generation: u32,
}

/// Where a command is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The slot is free.
    Free,
    /// Not a command: it is done when what it waits for is.
    Join,
    /// It waits for its `after`.
    Waits,
    /// It waits until a command that it must follow is released.
    Held,
    /// The scheduler has it.
    Released,
    /// It is at the device and may start.
    Sent,
    /// It has the unit: data in, cells, data out.
    In,
    Array,
    Out,
    /// The device is done; the host does not know yet.
    Finished,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) cmd: Cmd,
    generation: u32,
    pub(super) stage: Stage,
    /// How many of its at most two waits are not over.
    waits: u8,
    /// On a disk.
    pub(super) role: Role,
    /// First of the links (`id × 2 + wait`) that wait for this node, newest first.
    waiters: u32,
    /// The next link in the lists that this node's waits are in.
    next_waiter: [u32; 2],
    /// Neighbours in the queue of the unit; `next` also in a channel's queue and the free list.
    pub(super) prev: u32,
    pub(super) next: u32,
    /// Neighbours among the commands that were sent to the unit.
    sent_prev: u32,
    sent_next: u32,
    pub(super) order: Order,
    tag: Option<Tag>,
    phases: Phases,
    ready: Nanos,
    start: Nanos,
}

const NO_CMD: Cmd =
    Cmd { addr: 0, len: 0, hazard: 0, unit: UnitId(0), op: Op::NandRead, cause: frit_core::Cause::Host };

/// A queue through the nodes' `next`, in order of entry.
#[derive(Clone, Copy, Default, Debug)]
struct Fifo {
    head: u32,
    tail: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// Commands that have not started, in order of emission.
    queue: Fifo,
    queued: u32,
    /// Of these, those that were sent, in that order.
    sent: Fifo,
    pub(super) order: UnitOrder,
    running: u32,
    /// When it will be free if channels cost no wait.
    expected: Nanos,
    channel: u16,
    pub(super) device: u8,
    /// Which of the disks it is, if it is one.
    pub(super) arm: u8,
    /// It is in the list of units to look at.
    listed: bool,
}

#[derive(Clone, Default, Debug)]
struct Channel {
    busy: bool,
    waiting: Fifo,
}

/// Something that is due at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A phase of a command ends.
    Phase(CmdId),
    /// A timer of the scheduler.
    Timer(u32),
}

/// An event in the heap, by time and, within an instant, by when it was made: one number, because the
/// comparison is what a heap spends its time on.
#[derive(Clone, Copy, Debug)]
struct Scheduled {
    key: u128,
    event: Event,
}

impl Scheduled {
    fn at(&self) -> Nanos {
        Nanos((self.key >> 64) as u64)
    }
}

impl Ord for Scheduled {
    /// The earliest is the greatest: the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Scheduled {}

/// A command that waits at a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// Which.
    pub id: CmdId,
    /// What.
    pub cmd: Cmd,
}

/// The queues of the event engine, as schedulers see them.
#[derive(Debug)]
pub struct Queues {
    now: Nanos,
    pub(super) nodes: Vec<Node>,
    free: u32,
    outstanding: u32,
    pub(super) units: Vec<Unit>,
    pub(super) chains: Chains,
    pub(super) emitted: u64,
    channels: Vec<Channel>,
    pub(super) models: Vec<Model>,
    pub(super) arms: Vec<Arm>,
    /// Commands of disks that stop yielding, kept for its memory.
    pub(super) hurried: Vec<u32>,
    /// Copies of the models for [`Queues::unit_state`]: asking must not move an arm.
    estimates: Vec<Model>,
    events: BinaryHeap<Scheduled>,
    sequence: u64,
    /// Nodes whose waits are over, and units that may have something to start.
    pub(super) woken: VecDeque<u32>,
    free_units: VecDeque<UnitId>,
    reports: VecDeque<Done>,
    refused: u64,
    usage: Usage,
}

/// For schedulers.
impl Queues {
    /// The time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// How many units there are.
    #[must_use]
    pub fn units(&self) -> usize {
        self.units.len()
    }

    /// How many channels there are.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// The channel of a unit.
    #[must_use]
    pub fn channel_of(&self, unit: UnitId) -> usize {
        usize::from(self.units[unit.idx()].channel)
    }

    /// A command by id.
    #[inline]
    #[must_use]
    pub fn cmd(&self, id: CmdId) -> &Cmd {
        &self.nodes[id.0 as usize].cmd
    }

    /// The oldest command that has not started on a unit, if it was sent: first in, first out.
    #[inline]
    #[must_use]
    pub fn oldest(&self, unit: UnitId) -> Option<CmdId> {
        let head = self.units[unit.idx()].queue.head;
        (self.nodes[head as usize].stage == Stage::Sent).then_some(CmdId(head))
    }

    /// The commands that may start on a unit, but for hazards, in the order in which they were sent.
    #[inline]
    pub fn sent(&self, unit: UnitId) -> impl Iterator<Item = Waiting> + '_ {
        let mut at = self.units[unit.idx()].sent.head;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize).filter(|_| at != NONE)?;
            let id = CmdId(at);
            at = node.sent_next;
            Some(Waiting { id, cmd: node.cmd })
        })
    }

    /// How many commands wait at a unit, without the one that runs.
    #[must_use]
    pub fn depth(&self, unit: UnitId) -> u32 {
        self.units[unit.idx()].queued
    }

    /// The device has the command: it may start.
    pub fn send(&mut self, id: CmdId) {
        let node = &mut self.nodes[id.0 as usize];
        debug_assert_eq!(node.stage, Stage::Released, "only a released command can be sent");
        node.stage = Stage::Sent;
        let unit = node.cmd.unit;
        let tail = std::mem::replace(&mut self.units[unit.idx()].sent.tail, id.0);
        node.sent_prev = tail;
        match tail {
            NONE => self.units[unit.idx()].sent.head = id.0,
            t => self.nodes[t as usize].sent_next = id.0,
        }
        self.list(unit);
    }

    /// The host learns that a finished command is done: what waits for it goes on.
    pub fn complete(&mut self, id: CmdId) {
        debug_assert_eq!(self.nodes[id.0 as usize].stage, Stage::Finished, "only once, and finished");
        self.outstanding -= 1;
        self.resolve(id.0);
    }

    /// Calls the scheduler's `timer` with `token` at this time (now, if it is past).
    pub fn timer(&mut self, at: Nanos, token: u32) {
        self.at(at.max(self.now), Event::Timer(token));
    }
}

/// For the engine.
impl Queues {
    pub(super) fn new(hardware: &Hardware) -> Queues {
        let (arms, arm_of) = arms(hardware);
        let unit = |u: UnitId| Unit {
            queue: Fifo::default(),
            queued: 0,
            sent: Fifo::default(),
            order: UnitOrder::default(),
            running: NONE,
            expected: Nanos::ZERO,
            channel: hardware.channel_of(u) as u16,
            device: hardware.device_of(u) as u8,
            arm: arm_of[hardware.device_of(u)],
            listed: false,
        };
        let mut queues = Queues {
            now: Nanos::ZERO,
            nodes: Vec::new(),
            free: NONE,
            outstanding: 0,
            units: (0..hardware.units()).map(|u| unit(UnitId(u as u16))).collect(),
            chains: Chains::default(),
            emitted: 0,
            channels: vec![Channel::default(); hardware.channels()],
            models: hardware.models(),
            arms,
            hurried: Vec::new(),
            estimates: hardware.models(),
            events: BinaryHeap::new(),
            sequence: 0,
            woken: VecDeque::new(),
            free_units: VecDeque::new(),
            reports: VecDeque::new(),
            refused: 0,
            usage: Usage::new(hardware),
        };
        // Slot 0 stands for "none"; its generation makes the default token a done one.
        queues.node(NO_CMD, Stage::Free);
        queues.nodes[0].generation = 1;
        queues
    }

    pub(super) fn usage(&self) -> &Usage {
        &self.usage
    }

    pub(super) fn usage_mut(&mut self) -> &mut Usage {
        &mut self.usage
    }

    pub(super) fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Slots of the table, in use or not.
    #[cfg(test)]
    pub(super) fn slots(&self) -> usize {
        self.nodes.len() - 1
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused
    }

    #[inline]
    pub(super) fn unit_state(&self, unit: UnitId) -> UnitState {
        let u = &self.units[unit.idx()];
        if u.running == NONE && u.queued == 0 {
            UnitState::Idle
        } else {
            UnitState::BusyUntil(u.expected.max(self.now))
        }
    }

    pub(super) fn add(&mut self, cmd: Cmd, after: Tok) -> Tok {
        let id = self.node(cmd, Stage::Waits);
        self.outstanding += 1;
        let unit = &mut self.units[cmd.unit.idx()];
        let arm = unit.arm;
        let cost = match arm {
            NO_ARM => self.estimates[usize::from(unit.device)].phases(&cmd, unit.expected).total(),
            arm => self.arms[usize::from(arm)].expected(),
        };
        unit.expected = unit.expected.max(self.now) + cost;
        unit.queued += 1;
        let tail = unit.queue.tail;
        unit.queue.tail = id;
        if tail == NONE {
            unit.queue.head = id;
        } else {
            self.nodes[tail as usize].next = id;
        }
        self.nodes[id as usize].prev = tail;
        self.enter(id);
        if arm != NO_ARM {
            self.enter_arm(id);
        }
        self.wait_for(id, 0, after);
        self.wake(id);
        Tok { id, generation: self.nodes[id as usize].generation }
    }

    pub(super) fn join(&mut self, a: Tok, b: Tok) -> Tok {
        if a == b || self.is_done(b) {
            return a;
        }
        if self.is_done(a) {
            return b;
        }
        let id = self.node(NO_CMD, Stage::Join);
        self.wait_for(id, 0, a);
        self.wait_for(id, 1, b);
        Tok { id, generation: self.nodes[id as usize].generation }
    }

    /// Reports `tag` when `tok` is done; false when it is done already.
    pub(super) fn watch(&mut self, tok: Tok, tag: Tag) -> bool {
        if self.is_done(tok) {
            return false;
        }
        let mut id = tok.id;
        if self.nodes[id as usize].tag.is_some() {
            id = self.node(NO_CMD, Stage::Join);
            self.wait_for(id, 0, tok);
        }
        self.nodes[id as usize].tag = Some(tag);
        true
    }

    pub(super) fn has_report(&self) -> bool {
        !self.reports.is_empty()
    }

    pub(super) fn next_report(&mut self) -> Option<Done> {
        self.reports.pop_front()
    }

    pub(super) fn next_woken(&mut self) -> Option<u32> {
        self.woken.pop_front()
    }

    /// A unit that runs nothing and may have something to start. It is listed again when that changes.
    pub(super) fn next_free_unit(&mut self) -> Option<UnitId> {
        let unit = self.free_units.pop_front()?;
        self.units[unit.idx()].listed = false;
        Some(unit)
    }

    /// The next event until `limit`; without one, time advances to `limit`.
    pub(super) fn next_event(&mut self, limit: Nanos) -> Option<Event> {
        match self.events.peek() {
            Some(&next) if next.at() <= limit => {
                self.events.pop();
                self.now = next.at();
                Some(next.event)
            }
            _ => {
                if limit < Nanos::MAX {
                    self.now = self.now.max(limit);
                }
                None
            }
        }
    }

    /// A node whose waits are over: a join is done; a command is returned when nothing that it must
    /// follow is still to be released, and held otherwise. Commands of disks go to their drive: no
    /// scheduler hears of them.
    pub(super) fn release(&mut self, id: u32) -> Option<CmdId> {
        match self.nodes[id as usize].stage {
            Stage::Waits | Stage::Held => {}
            Stage::Join => {
                self.resolve(id);
                return None;
            }
            // Woken twice in this instant.
            _ => return None,
        }
        let released = self.may_release(id);
        let now = self.now;
        let node = &mut self.nodes[id as usize];
        if !released {
            node.stage = Stage::Held;
            return None;
        }
        node.stage = Stage::Released;
        node.ready = now;
        let unit = node.cmd.unit;
        self.wake_held(id);
        if self.is_arm(unit) {
            self.send(CmdId(id));
            self.line_up(id);
            return None;
        }
        Some(CmdId(id))
    }

    /// Starts `picked` on a unit that is free, unless a hazard forbids it; then the first that may.
    pub(super) fn start(&mut self, unit: UnitId, picked: CmdId) {
        let mut id = picked;
        let node = &self.nodes[id.0 as usize];
        let legal = node.stage == Stage::Sent && node.cmd.unit == unit;
        if !legal || self.blocked(id) {
            self.refused += 1;
            let Some(other) = self.sent(unit).find(|w| !self.blocked(w.id)) else { return };
            id = other.id;
        }
        self.unlink(id.0);
        let now = self.now;
        let u = &mut self.units[unit.idx()];
        u.running = id.0;
        let node = &mut self.nodes[id.0 as usize];
        node.phases = self.models[usize::from(u.device)].phases(&node.cmd, now);
        node.start = now;
        if node.phases.bus_in > Nanos::ZERO {
            node.stage = Stage::In;
            self.ask_channel(id.0);
        } else {
            node.stage = Stage::Array;
            let end = now + node.phases.array;
            self.at(end, Event::Phase(id));
        }
    }

    /// A phase of a command ended; returns where the command is now.
    pub(super) fn phase_over(&mut self, id: CmdId) -> Stage {
        let now = self.now;
        let node = &mut self.nodes[id.0 as usize];
        let phases = node.phases;
        match node.stage {
            Stage::In => {
                node.stage = Stage::Array;
                self.leave_channel(id.0);
                self.at(now + phases.array, Event::Phase(id));
            }
            Stage::Array if phases.bus_out > Nanos::ZERO => {
                node.stage = Stage::Out;
                self.ask_channel(id.0);
            }
            stage => {
                node.stage = Stage::Finished;
                let (cmd, ready, start) = (node.cmd, node.ready, node.start);
                if stage == Stage::Out {
                    self.leave_channel(id.0);
                }
                self.usage.command(&cmd, ready, start, now);
                let unit = &mut self.units[cmd.unit.idx()];
                unit.running = NONE;
                if unit.queued > 0 {
                    self.list(cmd.unit);
                } else {
                    // The estimate did not know how long channels would be waited for.
                    unit.expected = now;
                }
                if self.is_arm(cmd.unit) {
                    self.finish_arm(cmd.unit, id, now - start);
                }
            }
        }
        self.nodes[id.0 as usize].stage
    }
}

impl Queues {
    fn node(&mut self, cmd: Cmd, stage: Stage) -> u32 {
        let fresh = |generation| Node {
            cmd,
            generation,
            stage,
            waits: 0,
            role: Role::default(),
            waiters: NONE,
            next_waiter: [NONE; 2],
            prev: NONE,
            next: NONE,
            sent_prev: NONE,
            sent_next: NONE,
            order: Order::default(),
            tag: None,
            phases: Phases::default(),
            ready: Nanos::ZERO,
            start: Nanos::ZERO,
        };
        if self.free == NONE {
            self.nodes.push(fresh(0));
            return self.nodes.len() as u32 - 1;
        }
        let id = self.free;
        let node = &mut self.nodes[id as usize];
        self.free = node.next;
        *node = fresh(node.generation);
        id
    }

    #[inline]
    fn is_done(&self, tok: Tok) -> bool {
        self.nodes[tok.id as usize].generation != tok.generation
    }

    fn wait_for(&mut self, id: u32, wait: usize, tok: Tok) {
        if self.is_done(tok) {
            return;
        }
        let first = &mut self.nodes[tok.id as usize].waiters;
        let next = std::mem::replace(first, id * 2 + wait as u32);
        let node = &mut self.nodes[id as usize];
        node.next_waiter[wait] = next;
        node.waits += 1;
    }

    #[inline]
    fn wake(&mut self, id: u32) {
        if self.nodes[id as usize].waits == 0 {
            self.woken.push_back(id);
        }
    }

    /// A node is done: frees it and wakes what waited for it, oldest first.
    fn resolve(&mut self, id: u32) {
        let node = &mut self.nodes[id as usize];
        let mut newest = node.waiters;
        if let Some(tag) = node.tag {
            self.reports.push_back(Done { tag, at: self.now });
        }
        node.generation = node.generation.wrapping_add(1);
        node.stage = Stage::Free;
        node.next = self.free;
        self.free = id;
        let mut oldest = NONE;
        while newest != NONE {
            let slot = &mut self.nodes[newest as usize / 2].next_waiter[newest as usize % 2];
            let next = std::mem::replace(slot, oldest);
            oldest = newest;
            newest = next;
        }
        while oldest != NONE {
            let node = &mut self.nodes[oldest as usize / 2];
            let next = node.next_waiter[oldest as usize % 2];
            node.waits -= 1;
            self.wake(oldest / 2);
            oldest = next;
        }
    }

    fn unlink(&mut self, id: u32) {
        self.leave(id);
        let Node { prev, next, sent_prev, sent_next, cmd, .. } = self.nodes[id as usize];
        let unit = &mut self.units[cmd.unit.idx()];
        unit.queued -= 1;
        match prev {
            NONE => unit.queue.head = next,
            p => self.nodes[p as usize].next = next,
        }
        match next {
            NONE => unit.queue.tail = prev,
            n => self.nodes[n as usize].prev = prev,
        }
        match sent_prev {
            NONE => unit.sent.head = sent_next,
            p => self.nodes[p as usize].sent_next = sent_next,
        }
        match sent_next {
            NONE => unit.sent.tail = sent_prev,
            n => self.nodes[n as usize].sent_prev = sent_prev,
        }
        self.nodes[id as usize].next = NONE;
    }

    fn list(&mut self, unit: UnitId) {
        let u = &mut self.units[unit.idx()];
        if !u.listed && u.running == NONE {
            u.listed = true;
            self.free_units.push_back(unit);
        }
    }

    fn at(&mut self, at: Nanos, event: Event) {
        self.sequence += 1;
        let key = u128::from(at.0) << 64 | u128::from(self.sequence);
        self.events.push(Scheduled { key, event });
    }

    fn ask_channel(&mut self, id: u32) {
        let unit = self.nodes[id as usize].cmd.unit;
        let channel = &mut self.channels[usize::from(self.units[unit.idx()].channel)];
        if !channel.busy {
            channel.busy = true;
            self.grant(id);
            return;
        }
        let tail = std::mem::replace(&mut channel.waiting.tail, id);
        match tail {
            NONE => channel.waiting.head = id,
            t => self.nodes[t as usize].next = id,
        }
    }

    fn grant(&mut self, id: u32) {
        let now = self.now;
        let node = &mut self.nodes[id as usize];
        let len = if node.stage == Stage::In {
            node.start = now;
            node.phases.bus_in
        } else {
            node.phases.bus_out
        };
        let channel = self.units[node.cmd.unit.idx()].channel;
        self.usage.channel(channel, now, len);
        self.at(now + len, Event::Phase(CmdId(id)));
    }

    fn leave_channel(&mut self, id: u32) {
        let unit = self.nodes[id as usize].cmd.unit;
        let channel = &mut self.channels[usize::from(self.units[unit.idx()].channel)];
        let next = channel.waiting.head;
        if next == NONE {
            channel.busy = false;
            return;
        }
        channel.waiting.head = std::mem::replace(&mut self.nodes[next as usize].next, NONE);
        if channel.waiting.head == NONE {
            channel.waiting.tail = NONE;
        }
        self.grant(next);
    }
}
