//! State of the event engine: commands and their dependencies, the queue of each unit, channels,
//! events.

use super::cache_program::CacheRegister;
use super::channels::{ChannelRequest, Channels};
use super::chips::ChipControllers;
use super::disk_queue::{DiskJobState, DiskQueue, NO_DISK, disk_queues};
use super::gate::Gate;
use super::hazard_links::{Chains, HazardLinks, UnitHazards};
use super::pools::Pools;
use super::servers::Servers;
use super::suspend::{Suspension, suspensions};
use crate::usage::DeviceUsage;
use frit_core::{Cmd, Nanos, Op, UnitId, UnitState};
use frit_core::{Completion, Tag, Tok};
use frit_media::{Hardware, Phases, TimingModel};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// Id 0 means "none" in ids and links: slot 0 of the table is never used.
pub(super) const NONE: u32 = 0;

/// Id of a command that is not done yet. Ids are reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CmdId(pub(super) u32);

/// What the event engine has behind a token. The default token is done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct NodeToken {
    pub(super) id: u32,
    /// A token with a past generation is done, even if its id was reused.
    pub(super) generation: u32,
}

impl From<Tok> for NodeToken {
    #[inline]
    fn from(tok: Tok) -> NodeToken {
        NodeToken { id: tok.number() as u32, generation: (tok.number() >> 32) as u32 }
    }
}

impl From<NodeToken> for Tok {
    #[inline]
    fn from(tok: NodeToken) -> Tok {
        Tok::new(u64::from(tok.generation) << 32 | u64::from(tok.id))
    }
}

/// Stage in the life of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// The slot is free.
    Free,
    /// Not a command: a join, which is done when the tokens that it waits for are done.
    Join,
    /// Not a command: a delay, which becomes a join with a gate when its token is done. `start` holds
    /// its duration.
    Delay,
    /// Not a command: a job of a server, which becomes a join with a gate when its token is done. `start`
    /// holds its duration, and the address of its command the server.
    Job,
    /// Not a command: a wait for space of a pool, which becomes a join when its token is done. `start` holds
    /// the amount, and the address of its command the pool.
    Acquire,
    /// Not a command: a return of space to a pool, in the same form.
    Release,
    /// The command waits for its `after`.
    Waits,
    /// The command waits until a command that it must follow is released.
    Held,
    /// The command is released to the scheduler.
    Released,
    /// The command was sent to the device and may start.
    Sent,
    /// A read of the page register, which starts when its read ends.
    Follows,
    /// The command has the unit, which suspends another command for it.
    Suspends,
    /// The command has the unit: transfer in, operation of the cells, transfer out.
    In,
    /// The data are in the register of a cache program, while the cells work for another one.
    Loaded,
    Array,
    Out,
    /// The device is done; the host is not notified yet.
    Finished,
}

#[derive(Clone, Debug)]
pub(super) struct DependencyNode {
    pub(super) cmd: Cmd,
    pub(super) generation: u32,
    pub(super) stage: Stage,
    /// Number of tokens that it still waits for, at most two.
    pub(super) waits: u8,
    /// State of a command of a disk.
    pub(super) disk_job: DiskJobState,
    /// First of the links (`id × 2 + wait`) that wait for this node, newest first.
    pub(super) waiters: u32,
    /// The next link in each list that contains this node.
    pub(super) next_waiter: [u32; 2],
    /// Neighbours in the queue of the unit; `next` is also used in the free list.
    pub(super) prev: u32,
    pub(super) next: u32,
    /// Neighbours among the commands that were sent to the unit.
    pub(super) sent_prev: u32,
    pub(super) sent_next: u32,
    /// The read of the page register that follows this read, or [`NONE`].
    pub(super) register_read: u32,
    pub(super) order: HazardLinks,
    pub(super) tag: Option<Tag>,
    pub(super) phases: Phases,
    pub(super) ready: Nanos,
    pub(super) start: Nanos,
}

pub(super) const NO_CMD: Cmd =
    Cmd { addr: 0, len: 0, hazard: 0, unit: UnitId(0), op: Op::NandRead, cause: frit_core::Cause::Host };

/// A queue linked through `next` of the nodes, in order of entry.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LinkedQueue {
    head: u32,
    pub(super) tail: u32,
}

#[derive(Clone, Debug)]
pub(super) struct UnitQueue {
    /// Commands that have not started, in order of emission.
    pub(super) queue: LinkedQueue,
    pub(super) queued: u32,
    /// Commands of the queue that were sent, in the order in which they were sent.
    sent: LinkedQueue,
    pub(super) order: UnitHazards,
    pub(super) running: u32,
    /// Time at which the unit will be free if no command waits for a channel.
    pub(super) expected: Nanos,
    pub(super) channel: u16,
    pub(super) device: u8,
    /// Index of the disk, or [`NO_DISK`].
    pub(super) disk: u8,
    /// The unit is in the list of units to examine.
    listed: bool,
    /// The register for cache programs.
    pub(super) cache: Option<CacheRegister>,
    /// Pages that are programmed by one command.
    pub(super) program_pages: u32,
    /// A fence takes no time: see [`TimingModel::has_free_fence`].
    free_fence: bool,
}

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PendingEvent {
    /// A phase of a command ends.
    Phase(CmdId),
    /// The cells end a command that reads can suspend, unless the event is void.
    Operation(UnitId, u32),
    /// The register of a unit is free for the next cache program, if this one is still executed.
    CacheFree(CmdId),
    /// A timer of the scheduler expires.
    Timer(u32),
    /// A gate opens.
    Gate(Gate),
}

/// An event in the heap. The key orders by time and, at equal times, by creation; it is a single
/// number because a heap spends its time on comparisons.
#[derive(Clone, Copy, Debug)]
struct HeapEntry {
    key: u128,
    event: PendingEvent,
}

/// Bit of a key that places timers behind all other events of their time: a scheduler decides when
/// all that ends has ended.
const LATE: u64 = 1 << 63;

impl HeapEntry {
    fn is_timer(&self) -> bool {
        self.key as u64 & LATE != 0
    }

    fn at(&self) -> Nanos {
        Nanos((self.key >> 64) as u64)
    }
}

impl Ord for HeapEntry {
    /// Reverses the order: the heap returns the greatest element first, which must be the earliest
    /// event.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl PartialOrd for HeapEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HeapEntry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for HeapEntry {}

/// A command that waits at a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuedCommand {
    /// Id of the command.
    pub id: CmdId,
    /// The command.
    pub cmd: Cmd,
}

/// The queues of the event engine, as schedulers see them.
#[derive(Clone, Debug)]
pub struct Queues {
    pub(super) now: Nanos,
    pub(super) nodes: Vec<DependencyNode>,
    pub(super) free: u32,
    outstanding: u32,
    pub(super) units: Vec<UnitQueue>,
    pub(super) chains: Chains,
    /// Programs of NAND that have not started.
    pub(super) pages: Chains,
    pub(super) emitted: u64,
    channels: Channels,
    pub(super) models: Vec<TimingModel>,
    pub(super) disks: Vec<DiskQueue>,
    /// Worklist of disk commands that stop yielding; kept to reuse its memory.
    pub(super) promote_list: Vec<u32>,
    /// Copies of the models for [`Queues::unit_state`]: an estimate must not move the arm of a
    /// disk.
    estimates: Vec<TimingModel>,
    events: BinaryHeap<HeapEntry>,
    sequence: u64,
    /// Nodes whose dependencies are done, and units that may have a command to start.
    pub(super) woken: VecDeque<u32>,
    free_units: VecDeque<UnitId>,
    /// Watched tokens that are done at the current time.
    pub(super) reports: BinaryHeap<Reverse<(Nanos, Tag)>>,
    refused: u64,
    pub(super) servers: Servers,
    pub(super) pools: Pools,
    /// Controllers of NAND chips, if these and not the units have queues.
    pub(super) chips: Option<Box<ChipControllers>>,
    pub(super) suspensions: Vec<Option<Suspension>>,
    pub(super) usage: Box<DeviceUsage>,
}

/// Interface for schedulers.
impl Queues {
    /// Current time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Number of units.
    #[must_use]
    pub fn units(&self) -> usize {
        self.units.len()
    }

    /// Number of channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Channel of a unit.
    #[must_use]
    pub fn channel_of(&self, unit: UnitId) -> usize {
        usize::from(self.units[unit.idx()].channel)
    }

    /// Returns a command by id.
    #[inline]
    #[must_use]
    pub fn cmd(&self, id: CmdId) -> &Cmd {
        &self.nodes[id.0 as usize].cmd
    }

    /// Returns the oldest command of a unit that has not started, if it was sent (FIFO order).
    #[inline]
    #[must_use]
    pub fn oldest(&self, unit: UnitId) -> Option<CmdId> {
        let head = self.units[unit.idx()].queue.head;
        (self.nodes[head as usize].stage == Stage::Sent).then_some(CmdId(head))
    }

    /// Returns the commands that were sent to a unit and have not started, in the order in which
    /// they were sent. Hazards may still block them.
    #[inline]
    pub fn sent(&self, unit: UnitId) -> impl Iterator<Item = QueuedCommand> + '_ {
        let mut at = self.units[unit.idx()].sent.head;
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize).filter(|_| at != NONE)?;
            let id = CmdId(at);
            at = node.sent_next;
            Some(QueuedCommand { id, cmd: node.cmd })
        })
    }

    /// Number of commands that wait at a unit, without the running one.
    #[must_use]
    pub fn depth(&self, unit: UnitId) -> u32 {
        self.units[unit.idx()].queued
    }

    /// Sends a command to the device: it may start.
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
        self.list_free_unit(unit);
    }

    /// Notifies the host that a finished command is done. The commands that wait for it continue.
    pub fn complete(&mut self, id: CmdId) {
        debug_assert_eq!(self.nodes[id.0 as usize].stage, Stage::Finished, "only once, and finished");
        self.outstanding -= 1;
        self.resolve(id.0);
    }

    /// Sets a timer: the scheduler's `timer` is called with `token` at the given time (at once if
    /// it is past).
    pub fn timer(&mut self, at: Nanos, token: u32) {
        self.at(at.max(self.now), PendingEvent::Timer(token));
    }
}

/// Interface for the engine.
impl Queues {
    pub(super) fn new(hardware: &Hardware) -> Queues {
        let (disks, disk_of) = disk_queues(hardware);
        let unit = |u: UnitId| UnitQueue {
            queue: LinkedQueue::default(),
            queued: 0,
            sent: LinkedQueue::default(),
            order: UnitHazards::default(),
            running: NONE,
            expected: Nanos::ZERO,
            channel: hardware.channel_of(u) as u16,
            device: hardware.device_of(u) as u8,
            disk: disk_of[hardware.device_of(u)],
            listed: false,
            cache: hardware.devices()[hardware.device_of(u)].model.cache_busy().map(CacheRegister::new),
            program_pages: hardware.devices()[hardware.device_of(u)].nand.map_or(1, |l| l.program_pages),
            free_fence: hardware.devices()[hardware.device_of(u)].model.has_free_fence(),
        };
        let mut queues = Queues {
            now: Nanos::ZERO,
            nodes: Vec::new(),
            free: NONE,
            outstanding: 0,
            units: (0..hardware.units()).map(|u| unit(UnitId(u as u16))).collect(),
            chains: Chains::default(),
            pages: Chains::default(),
            emitted: 0,
            channels: Channels::new(hardware.channels()),
            models: hardware.models(),
            disks,
            promote_list: Vec::new(),
            estimates: hardware.models(),
            events: BinaryHeap::new(),
            sequence: 0,
            woken: VecDeque::new(),
            free_units: VecDeque::new(),
            reports: BinaryHeap::new(),
            refused: 0,
            servers: Servers::default(),
            pools: Pools::default(),
            chips: None,
            suspensions: suspensions(hardware),
            usage: Box::new(DeviceUsage::new(hardware)),
        };
        // Slot 0 stands for "none"; its generation makes the default token a done one.
        queues.node(NO_CMD, Stage::Free);
        queues.nodes[0].generation = 1;
        queues
    }

    pub(super) fn usage(&self) -> &DeviceUsage {
        &self.usage
    }

    pub(super) fn usage_mut(&mut self) -> &mut DeviceUsage {
        &mut self.usage
    }

    pub(super) fn swap_usage(&mut self, usage: &mut Box<DeviceUsage>) {
        std::mem::swap(&mut self.usage, usage);
    }

    pub(super) fn set_now(&mut self, now: Nanos) {
        self.now = self.now.max(now);
    }

    pub(super) fn next_event_time(&self) -> Option<Nanos> {
        let idle = self.woken.is_empty() && self.free_units.is_empty() && self.reports.is_empty();
        if !idle || self.channels.can_grant() || self.chips.as_ref().is_some_and(|c| c.can_start()) {
            return Some(Nanos::ZERO);
        }
        self.events.peek().map(HeapEntry::at)
    }

    pub(super) fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Number of slots of the table, used or free.
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

    pub(super) fn add(&mut self, cmd: Cmd, after: NodeToken) -> NodeToken {
        if cmd.op.is_fence() && self.units[cmd.unit.idx()].free_fence {
            return after;
        }
        let id = self.node(cmd, Stage::Waits);
        self.outstanding += 1;
        let unit = &mut self.units[cmd.unit.idx()];
        let disk = unit.disk;
        let cost = match disk {
            NO_DISK => self.estimates[usize::from(unit.device)].phases(&cmd, unit.expected).total(),
            disk => self.disks[usize::from(disk)].expected(),
        };
        unit.expected = unit.expected.max(self.now) + cost;
        if cmd.op == Op::NandRegisterRead {
            return self.follow_read(id);
        }
        unit.queued += 1;
        if self.is_chip(cmd.unit) {
            return self.add_to_chip(id, after);
        }
        let unit = &mut self.units[cmd.unit.idx()];
        let tail = unit.queue.tail;
        unit.queue.tail = id;
        if tail == NONE {
            unit.queue.head = id;
        } else {
            self.nodes[tail as usize].next = id;
        }
        self.nodes[id as usize].prev = tail;
        self.register(id);
        if disk != NO_DISK {
            self.register_at_disk(id);
        }
        self.wait_for(id, 0, after);
        self.wake(id);
        NodeToken { id, generation: self.nodes[id as usize].generation }
    }

    /// Makes a read of the page register follow the last read of its unit. The scheduler does not see
    /// it: another command in between would overwrite the register.
    fn follow_read(&mut self, id: u32) -> NodeToken {
        self.emitted += 1;
        let unit = self.nodes[id as usize].cmd.unit;
        let read = self.units[unit.idx()].queue.tail;
        let node = &mut self.nodes[id as usize];
        node.stage = Stage::Follows;
        node.order.seq = self.emitted;
        let generation = node.generation;
        let read = &mut self.nodes[read as usize];
        debug_assert_eq!(read.cmd.op, Op::NandRead, "emitted directly after its read");
        read.register_read = id;
        NodeToken { id, generation }
    }

    pub(super) fn has_report(&self) -> bool {
        !self.reports.is_empty()
    }

    pub(super) fn next_report(&mut self) -> Option<Completion> {
        let Reverse((at, tag)) = self.reports.pop()?;
        Some(Completion { tag, at })
    }

    pub(super) fn next_woken(&mut self) -> Option<u32> {
        self.woken.pop_front()
    }

    /// Returns a unit that is idle and may have a command to start. The unit is listed again when
    /// this may have changed.
    pub(super) fn next_free_unit(&mut self) -> Option<UnitId> {
        let unit = self.free_units.pop_front()?;
        self.units[unit.idx()].listed = false;
        Some(unit)
    }

    /// Returns `true` if no event of the current time is left, except timers of the scheduler.
    pub(super) fn is_instant_over(&self) -> bool {
        self.events.peek().is_none_or(|e| e.at() > self.now || e.is_timer())
    }

    /// Returns the next event until `limit`; if there is none, time advances to `limit`.
    pub(super) fn next_event(&mut self, limit: Nanos) -> Option<PendingEvent> {
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

    /// Processes a node whose dependencies are done. A join is done. A command is released and
    /// returned, or held if a command that it must follow is not released yet. Commands of disks go
    /// to their drive and are not passed to the scheduler.
    pub(super) fn release(&mut self, id: u32) -> Option<CmdId> {
        match self.nodes[id as usize].stage {
            Stage::Waits | Stage::Held => {}
            Stage::Join => {
                self.resolve(id);
                return None;
            }
            Stage::Delay => {
                let node = &mut self.nodes[id as usize];
                (node.stage, node.waits) = (Stage::Join, 1);
                let end = self.now + node.start;
                self.open_gate(Gate::of(id), end);
                return None;
            }
            Stage::Job => {
                let node = &mut self.nodes[id as usize];
                (node.stage, node.waits) = (Stage::Join, 1);
                let end = self.servers.serve(node.cmd.addr, self.now, node.start);
                self.open_gate(Gate::of(id), end);
                return None;
            }
            Stage::Acquire => {
                self.wait_for_space(id);
                return None;
            }
            Stage::Release => {
                self.return_space(id);
                return None;
            }
            // The node was woken twice at this time.
            _ => return None,
        }
        if self.is_chip(self.nodes[id as usize].cmd.unit) {
            self.release_to_chip(id);
            return None;
        }
        let released = self.may_release(id);
        let now = self.now;
        let node = &mut self.nodes[id as usize];
        // Commands that it must follow are a part of its wait.
        if node.stage == Stage::Waits {
            node.ready = now;
        }
        if !released {
            node.stage = Stage::Held;
            return None;
        }
        node.stage = Stage::Released;
        let unit = node.cmd.unit;
        self.wake_followers(id);
        if self.is_disk(unit) {
            self.send(CmdId(id));
            self.enqueue_at_disk(id);
            return None;
        }
        Some(CmdId(id))
    }

    /// Starts `picked` on an idle unit. If a hazard forbids it, starts the first command that may
    /// start.
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
        self.units[unit.idx()].running = id.0;
        self.start_at(id.0, self.now);
        self.begin_phases(id);
    }

    /// Notes the start of a command, and computes its phases.
    pub(super) fn start_at(&mut self, id: u32, begin: Nanos) {
        let node = &mut self.nodes[id as usize];
        let device = self.units[node.cmd.unit.idx()].device;
        node.phases = self.models[usize::from(device)].phases(&node.cmd, begin);
        node.start = begin;
    }

    /// Begins the first phase of a command that has its unit.
    pub(super) fn begin_phases(&mut self, id: CmdId) {
        let node = &mut self.nodes[id.0 as usize];
        if node.phases.bus_in > Nanos::ZERO {
            node.stage = Stage::In;
            self.request_channel(id.0);
        } else {
            self.start_cells(id);
        }
    }

    pub(super) fn start_cells(&mut self, id: CmdId) {
        self.begin_cache(id);
        let node = &mut self.nodes[id.0 as usize];
        node.stage = Stage::Array;
        let end = self.now + node.phases.array;
        if self.suspensions.is_empty() || !self.start_operation(id.0) {
            self.at(end, PendingEvent::Phase(id));
        }
    }

    /// Ends a phase of a command, and returns its new stage.
    pub(super) fn end_phase(&mut self, id: CmdId) -> Stage {
        let now = self.now;
        let node = &mut self.nodes[id.0 as usize];
        let phases = node.phases;
        match node.stage {
            Stage::In => {
                self.release_channel(id.0);
                if !self.waits_in_cache(id) {
                    self.start_cells(id);
                }
            }
            Stage::Suspends => self.begin_phases(id),
            Stage::Array if phases.bus_out > Nanos::ZERO => {
                node.stage = Stage::Out;
                self.request_channel(id.0);
            }
            stage => {
                node.stage = Stage::Finished;
                let (cmd, ready, start) = (node.cmd, node.ready, node.start);
                if stage == Stage::Out {
                    self.release_channel(id.0);
                }
                self.usage.count_command(&cmd, ready, start, now);
                if self.start_register_read(id) {
                    return Stage::Finished;
                }
                let unit = &mut self.units[cmd.unit.idx()];
                unit.running = NONE;
                if !self.suspensions.is_empty() && self.end_read(cmd.unit) {
                    return Stage::Finished;
                }
                if self.take_from_cache(cmd.unit) {
                    return Stage::Finished;
                }
                let unit = &mut self.units[cmd.unit.idx()];
                if unit.queued > 0 {
                    self.list_free_unit(cmd.unit);
                } else {
                    // The estimate did not include the waits for channels.
                    unit.expected = now;
                }
                if self.is_disk(cmd.unit) {
                    self.finish_disk(cmd.unit, id, now - start);
                }
            }
        }
        self.nodes[id.0 as usize].stage
    }

    /// Starts the read of the page register that follows a read, and returns `true`, if there is one.
    fn start_register_read(&mut self, read: CmdId) -> bool {
        let id = self.nodes[read.0 as usize].register_read;
        if id == NONE {
            return false;
        }
        let now = self.now;
        self.start_at(id, now);
        let node = &mut self.nodes[id as usize];
        node.ready = now;
        self.units[node.cmd.unit.idx()].running = id;
        self.begin_phases(CmdId(id));
        true
    }
}

impl Queues {
    pub(super) fn unlink(&mut self, id: u32) {
        self.unregister(id);
        let DependencyNode { prev, next, sent_prev, sent_next, cmd, .. } = self.nodes[id as usize];
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

    /// Lists a unit that may have a command to start: it is free, its operation can be suspended, or a cache
    /// program can be loaded.
    pub(super) fn list_free_unit(&mut self, unit: UnitId) {
        let u = &self.units[unit.idx()];
        if !u.listed && (u.running == NONE || self.has_operation(unit) || self.can_load(unit)) {
            self.units[unit.idx()].listed = true;
            self.free_units.push_back(unit);
        }
    }

    pub(super) fn at(&mut self, at: Nanos, event: PendingEvent) {
        self.sequence += 1;
        let late = if matches!(event, PendingEvent::Timer(_)) { LATE } else { 0 };
        let key = u128::from(at.0) << 64 | u128::from(late | self.sequence);
        self.events.push(HeapEntry { key, event });
    }

    fn request_channel(&mut self, id: u32) {
        let node = &self.nodes[id as usize];
        let request = ChannelRequest { at: self.now, number: node.order.seq, id };
        self.channels.request(self.units[node.cmd.unit.idx()].channel, request);
    }

    /// Grants a free channel, if one has requests.
    pub(super) fn grant_channel(&mut self) -> bool {
        let Some(id) = self.channels.next_grant() else { return false };
        let now = self.now;
        let node = &mut self.nodes[id as usize];
        let len = if node.stage == Stage::In {
            // The service starts with the grant; the wait for the channel counts as waiting time.
            node.start = now;
            node.phases.bus_in
        } else {
            node.phases.bus_out
        };
        let channel = self.units[node.cmd.unit.idx()].channel;
        self.usage.count_bus_phase(channel, now, len);
        self.at(now + len, PendingEvent::Phase(CmdId(id)));
        true
    }

    fn release_channel(&mut self, id: u32) {
        let unit = self.nodes[id as usize].cmd.unit;
        self.channels.release(self.units[unit.idx()].channel);
    }
}
