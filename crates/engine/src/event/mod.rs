//! Discrete-event engine: queues, a scheduler and exact channel arbitration in virtual time.

mod cache_program;
mod channels;
mod chips;
mod disk;
mod disk_queue;
mod gate;
mod hazard;
mod hazard_links;
mod pools;
mod servers;
mod state;
mod suspend;
mod tokens;

pub(crate) use gate::Gate;
pub(crate) use state::NodeToken;
pub use state::{CmdId, QueuedCommand, Queues};

use crate::sched::Scheduler;
use crate::usage::DeviceUsage;
use frit_core::visible::Metric;
use frit_core::{Cmd, Completion, Engine, LinkRequest, Nanos, Op, RequestScope, Tag, Tok, UnitId, UnitState};
use frit_media::Hardware;
use state::{PendingEvent, Stage};
use std::any::Any;

/// A discrete-event engine with a scheduler.
///
/// A command waits until its `after` is done and until all commands that it must not overtake have
/// been released to the scheduler (see [`Queues::must_follow`]). The scheduler then decides when
/// the command is sent to the device, and which of the commands that wait at a unit is started
/// next. Each phase that needs the channel gets it in the order of the requests for it, and in order
/// of emission if they are of the same time. Disks do
/// not use the scheduler: a drive has its own queue and order. No event is processed while a layer
/// emits commands: the scheduler sees all commands of a request, and of requests that are admitted
/// at the same time, together.
///
/// Events are ordered by time and, at equal times, by creation: the same input yields the same
/// output. Ids are reused, so that a run in steady state allocates no memory.
#[derive(Clone, Debug)]
pub struct Event<P> {
    queues: Queues,
    scheduler: P,
}

impl<P: Scheduler> Event<P> {
    /// Creates an engine for these devices, at time zero.
    #[must_use]
    pub fn new(hardware: &Hardware, mut scheduler: P) -> Event<P> {
        let mut queues = Queues::new(hardware);
        if let Some(dispatch) = scheduler.chips() {
            queues.use_chips(hardware, dispatch);
        }
        scheduler.attach(&queues);
        Event { queues, scheduler }
    }

    /// Usage of units and channels.
    #[must_use]
    pub fn usage(&self) -> &DeviceUsage {
        self.queues.usage()
    }

    /// Mutable usage, to reset it or to enable further statistics.
    pub fn usage_mut(&mut self) -> &mut DeviceUsage {
        self.queues.usage_mut()
    }

    /// Scheduler, to read or change its parameters.
    pub fn scheduler(&mut self) -> &mut P {
        &mut self.scheduler
    }

    /// Queues of the engine.
    #[must_use]
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Metrics of the engine and its scheduler.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        let mut all = vec![
            Metric {
                name: "commands_outstanding",
                value: f64::from(self.queues.outstanding()),
                unit: "commands",
                help: "commands emitted and not yet done",
            },
            Metric {
                name: "picks_refused",
                value: self.queues.refused() as f64,
                unit: "commands",
                help: "choices of the scheduler that would have violated a hazard, and were replaced",
            },
        ];
        all.extend(self.scheduler.metrics());
        all
    }

    /// Advances time without processing events; none may be due before `now`.
    pub(crate) fn set_now(&mut self, now: Nanos) {
        self.queues.set_now(now);
    }

    /// Returns a gate, and a token that is done when the gate is open.
    pub(crate) fn add_gate(&mut self) -> (Gate, NodeToken) {
        self.queues.add_gate()
    }

    /// Opens a gate at the given time, or now if that is past.
    pub(crate) fn open_gate(&mut self, gate: Gate, at: Nanos) {
        self.queues.open_gate(gate, at);
    }

    /// Time of the next event; zero if there is work to do at once.
    pub(crate) fn next_event_time(&self) -> Option<Nanos> {
        self.queues.next_event_time()
    }

    /// Exchanges the usage into which the engine counts.
    pub(crate) fn swap_usage(&mut self, usage: &mut Box<DeviceUsage>) {
        self.queues.swap_usage(usage);
    }

    /// Makes one step at the current time that needs no event. Returns `false` if there is none.
    ///
    /// First, all commands that are ready are released, so that the scheduler gets them before it
    /// picks one. Then all events of this time end their phases, and the host is notified: it may
    /// add commands before units and drives choose. Channels are granted last, when all requests of
    /// this time are known.
    fn process_instant(&mut self) -> bool {
        if let Some(id) = self.queues.next_woken() {
            if let Some(cmd) = self.queues.release(id) {
                self.scheduler.ready(&mut self.queues, cmd);
            }
        } else if self.queues.start_chip() {
            // As in MQSim, a controller acts after each event, also if more events have the same time.
        } else if self.queues.end_in_chips() {
            // What waits for a page is in the queues before the next one is reported.
        } else if !self.queues.is_instant_over() || self.queues.has_report() {
            return false;
        } else if let Some(unit) = self.queues.next_free_unit() {
            if self.queues.is_disk(unit) {
                self.queues.start_disk(unit);
            } else if self.queues.has_operation(unit) {
                let accepts = self.queues.accepts_read(unit);
                let read = accepts.then(|| self.scheduler.pick_read(&self.queues, unit)).flatten();
                self.queues.suspend_or_resume(unit, read);
            } else if self.queues.can_load(unit) {
                let picked = self.scheduler.pick_cached(&self.queues, unit);
                self.queues.load(unit, picked);
            } else if let Some(id) = self.scheduler.pick(&self.queues, unit) {
                self.queues.start(unit, id);
            }
        } else {
            return self.queues.grant_channel();
        }
        true
    }

    fn process_event(&mut self, due: PendingEvent) {
        match due {
            PendingEvent::Timer(token) => self.scheduler.timer(&mut self.queues, token),
            PendingEvent::Gate(gate) => self.queues.pass_gate(gate),
            PendingEvent::Phase(id) if self.queues.is_chip(self.queues.cmd(id).unit) => {
                self.queues.end_chip_phase(id);
            }
            PendingEvent::Phase(id) => self.end_phase(id),
            PendingEvent::CacheFree(id) => self.queues.free_cache(id),
            PendingEvent::Operation(unit, event) => {
                if let Some(id) = self.queues.operation_of(unit, event) {
                    self.end_phase(id);
                }
            }
        }
    }

    fn end_phase(&mut self, id: CmdId) {
        if self.queues.end_phase(id) != Stage::Finished {
            return;
        }
        if self.queues.cmd(id).op == Op::NandRegisterRead {
            self.queues.complete(id);
        } else {
            self.scheduler.finished(&mut self.queues, id);
        }
    }
}

impl<P: Scheduler + 'static> Engine for Event<P> {
    #[inline]
    fn now(&self) -> Nanos {
        self.queues.now()
    }

    fn unit(&self, unit: UnitId) -> UnitState {
        self.queues.unit_state(unit)
    }

    fn emit(&mut self, cmd: Cmd, after: Tok) -> Tok {
        self.queues.add(cmd, after.into()).into()
    }

    fn join(&mut self, a: Tok, b: Tok) -> Tok {
        self.queues.join(a.into(), b.into()).into()
    }

    fn delay(&mut self, after: Tok, by: Nanos) -> Tok {
        self.queues.delay(after.into(), by).into()
    }

    fn add_server(&mut self) -> u16 {
        self.queues.servers_mut().add()
    }

    fn serve(&mut self, server: u16, after: Tok, by: Nanos) -> Tok {
        self.queues.serve(server, after.into(), by).into()
    }

    fn is_done(&self, tok: Tok) -> bool {
        self.queues.is_done(tok.into())
    }

    fn add_pool(&mut self, limit: u64) -> u16 {
        self.queues.pools_mut().add(limit)
    }

    fn acquire(&mut self, pool: u16, amount: u64, after: Tok, _: Tok) -> Tok {
        self.queues.acquire(pool, amount, after.into()).into()
    }

    fn release(&mut self, pool: u16, amount: u64, after: Tok) {
        self.queues.release_space(pool, amount, after.into());
    }

    fn measure(&mut self, scope: RequestScope, request: LinkRequest) {
        self.queues.measure(scope, request);
    }

    fn statistics(&self) -> Option<&dyn Any> {
        Some(self.usage())
    }

    fn statistics_mut(&mut self) -> Option<&mut dyn Any> {
        Some(self.usage_mut())
    }

    fn metrics(&self) -> Vec<Metric> {
        Event::metrics(self)
    }

    fn time_or_watch(&mut self, tok: Tok, tag: Tag) -> Option<Nanos> {
        if self.queues.watch(tok.into(), tag) { None } else { Some(self.queues.now()) }
    }

    fn next_done(&mut self, limit: Nanos) -> Option<Completion> {
        loop {
            while self.process_instant() {}
            if self.queues.is_instant_over()
                && let Some(done) = self.queues.next_report()
            {
                return Some(done);
            }
            let due = self.queues.next_event(limit)?;
            self.process_event(due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::Fifo;
    use frit_core::{Cause, MediumKind, Op, Sink};
    use frit_media::{Device, DramTiming, TimingModel};

    fn engine() -> Sink {
        let model = TimingModel::Dram(DramTiming { latency: Nanos(50), ps_per_byte: 0 });
        let (name, kind) = ("dram".into(), MediumKind::Dram);
        let mut hw = Hardware::new();
        hw.add(Device { name, kind, model, unit_channel: vec![0, 0], nand: None }).unwrap();
        Sink::new(Event::new(&hw, Fifo))
    }

    fn queues(e: &Sink) -> &Queues {
        e.engine::<Event<Fifo>>().unwrap().queues()
    }

    fn cmd(unit: u16) -> Cmd {
        Cmd { addr: 0, len: 8, hazard: 0, unit: UnitId(unit), op: Op::DramRead, cause: Cause::Host }
    }

    #[test]
    fn slots_are_used_again_and_old_tokens_stay_done() {
        let mut e = engine();
        let mut old = Vec::new();
        for round in 0..1000u64 {
            e.begin();
            let a = e.emit(cmd(0), e.start());
            let b = e.emit(cmd(1), old.last().copied().unwrap_or_default());
            e.ack(a);
            e.ack(b);
            let tok = e.end();
            assert_eq!(e.time_or_watch(tok, 7), None);
            assert_eq!(e.next_done(Nanos::MAX), Some(Completion { tag: 7, at: Nanos(50 * (round + 1)) }));
            old.extend([a, b]);
            assert!(old.iter().all(|&t| e.time_or_watch(t, 8).is_some()));
        }
        assert_eq!(queues(&e).outstanding(), 0);
        let slots = queues(&e).slots();
        assert!(slots <= 6, "{slots} slots for two commands and their joins");
    }

    #[test]
    fn one_token_can_be_watched_twice() {
        let mut e = engine();
        e.begin();
        let a = e.emit(cmd(0), e.start());
        assert_eq!((e.time_or_watch(a, 1), e.time_or_watch(a, 2)), (None, None));
        let mut tags = [1, 2].map(|_| e.next_done(Nanos::MAX).unwrap().tag);
        tags.sort_unstable();
        assert_eq!(tags, [1, 2]);
        assert_eq!(e.next_done(Nanos::MAX), None);
        assert_eq!(e.now(), Nanos(50));
    }

    #[test]
    fn space_of_a_pool_is_given_in_order() {
        let mut e = engine();
        let pool = e.add_pool(8);
        let start = e.start();
        // Space is given while less than the limit is taken, so the first two get theirs.
        for (tag, amount) in [7, 4, 1, 1].into_iter().enumerate() {
            let entered = e.acquire(pool, amount, start, start);
            let done = e.delay(entered, Nanos(100 * (tag as u64 + 1)));
            assert!(!e.is_done(done));
            e.release(pool, amount, done);
            e.time_or_watch(done, tag as u32);
        }
        let ends: Vec<_> = std::iter::from_fn(|| e.next_done(Nanos::MAX)).map(|d| (d.tag, d.at.0)).collect();
        // The third enters at 100, with the fourth.
        assert_eq!(ends, [(0, 100), (1, 200), (2, 400), (3, 500)]);
        assert_eq!(queues(&e).outstanding(), 0);
    }

    #[test]
    fn time_stops_at_the_limit() {
        let mut e = engine();
        let a = e.emit(cmd(0), e.start());
        e.time_or_watch(a, 0);
        assert_eq!(e.next_done(Nanos(49)), None);
        assert_eq!(e.now(), Nanos(49));
        assert_eq!(e.next_done(Nanos(50)), Some(Completion { tag: 0, at: Nanos(50) }));
        assert_eq!(e.next_done(Nanos(20)), None);
        assert_eq!(e.now(), Nanos(50));
    }
}
