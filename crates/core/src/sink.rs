//! The receiver of commands: it connects layers, whose commands take effect immediately, with
//! virtual time.
//!
//! Layers are compiled once, for the one type [`Sink`]. What happens in each request lies in it and is
//! inlined: the time, the tokens of the request, the units that are idle. An [`Engine`] behind it
//! decides how long commands take.

use crate::visible::Metric;
use crate::{Cmd, Nanos, TrafficKind, UnitId};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// State of a unit of a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitState {
    /// The unit has no work.
    Idle,
    /// The unit has work until about this time.
    BusyUntil(Nanos),
}

impl UnitState {
    /// Returns `true` if the unit is idle.
    #[must_use]
    pub fn is_idle(self) -> bool {
        matches!(self, UnitState::Idle)
    }
}

/// Stands for the completion of a command, or of several: see [`Sink::emit`] and [`Sink::join`].
///
/// `after` edges are also the order of durability: a command is durable only if every command it came
/// `after` is durable. What is behind the number is up to the engine that returned the token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Tok(u64);

impl Tok {
    /// The token that is always done. It is the default, and the only one of a sink without time.
    pub const DONE: Tok = Tok(0);

    /// Returns the token that an engine knows under a number. 0 is [`Tok::DONE`] in every engine.
    #[inline]
    #[must_use]
    pub const fn new(number: u64) -> Tok {
        Tok(number)
    }

    /// Returns the number under which an engine knows the token.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Tokens by index, all of them done at first. A table of which none was ever set to another token, as
/// without time, takes no memory.
#[derive(Clone, Default, Debug)]
pub struct TokTable {
    len: usize,
    toks: Vec<Tok>,
}

impl TokTable {
    /// Creates a table of `len` tokens.
    #[must_use]
    pub fn new(len: usize) -> TokTable {
        TokTable { len, toks: Vec::new() }
    }

    /// Returns a token.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Tok {
        debug_assert!(index < self.len, "token {index} of {}", self.len);
        self.toks.get(index).copied().unwrap_or_default()
    }

    /// Replaces a token.
    #[inline]
    pub fn set(&mut self, index: usize, tok: Tok) {
        debug_assert!(index < self.len, "token {index} of {}", self.len);
        if let Some(place) = self.toks.get_mut(index) {
            *place = tok;
        } else if tok != Tok::DONE {
            self.toks = vec![Tok::DONE; self.len];
            self.toks[index] = tok;
        }
    }

    /// Replaces all tokens.
    pub fn fill(&mut self, tok: Tok) {
        self.toks = if tok == Tok::DONE { Vec::new() } else { vec![tok; self.len] };
    }
}

/// The tokens of a request: what its commands wait for, and what its acknowledgement waits for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RequestScope {
    /// Token for which every command of the request waits.
    pub start: Tok,
    /// Join of the tokens for which the acknowledgement of the request waits.
    pub ack: Tok,
}

/// A request of a layer to the layer below it, as the measurement of its time needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkRequest {
    /// Number of the lower layer in the stack.
    pub layer: u16,
    /// Kind of request.
    pub kind: TrafficKind,
}

/// Identifier under which a caller waits for a token.
pub type Tag = u32;

/// A watched token that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Tag under which it was watched.
    pub tag: Tag,
    /// Time at which it was done.
    pub at: Nanos,
}

/// The times from which units are free, which an engine keeps up to date for its sink: cleaning asks for
/// each unit whether it is idle.
///
/// Both sides are in one thread at a time. A clone is a table of its own.
#[derive(Default, Debug)]
pub struct UnitTimes(Arc<[AtomicU64]>);

impl UnitTimes {
    /// The engine has to be asked.
    const ASK: u64 = u64::MAX;

    /// Creates a table in which the engine has to be asked for all units.
    #[must_use]
    pub fn new(units: usize) -> UnitTimes {
        UnitTimes((0..units).map(|_| AtomicU64::new(Self::ASK)).collect())
    }

    /// Returns the same table, for the sink.
    #[must_use]
    pub fn share(&self) -> UnitTimes {
        UnitTimes(Arc::clone(&self.0))
    }

    /// Sets the time from which a unit is free.
    #[inline]
    pub fn free_from(&self, unit: UnitId, at: Nanos) {
        self.0[unit.idx()].store(at.0, Ordering::Relaxed);
    }

    /// A unit has work until a time that is not known.
    #[inline]
    pub fn busy(&self, unit: UnitId) {
        self.free_from(unit, Nanos(Self::ASK - 1));
    }

    /// Returns whether a unit is idle; `None` if the engine has to be asked.
    #[inline]
    fn is_idle(&self, unit: UnitId, now: Nanos) -> Option<bool> {
        match self.0.get(unit.idx())?.load(Ordering::Relaxed) {
            Self::ASK => None,
            free => Some(free <= now.0),
        }
    }
}

impl Clone for UnitTimes {
    fn clone(&self) -> UnitTimes {
        UnitTimes(self.0.iter().map(|t| AtomicU64::new(t.load(Ordering::Relaxed))).collect())
    }
}

/// Decides how long commands take: what is behind a [`Sink`] with time. It makes the tokens.
///
/// The sink joins the start of the request to what a command, a delay or a job waits for before it
/// passes them on.
pub trait Engine: Any + Send {
    /// Returns the current time.
    fn now(&self) -> Nanos;

    /// Returns the state of a unit, from which policies may decide.
    fn unit(&self, _unit: UnitId) -> UnitState {
        UnitState::Idle
    }

    /// Returns the table from which the sink answers whether a unit is idle. Without one, it asks.
    fn unit_times(&self) -> UnitTimes {
        UnitTimes::default()
    }

    /// Emits a command, to be executed once `after` is done.
    fn emit(&mut self, cmd: Cmd, after: Tok) -> Tok;

    /// Returns a token that is done when both are done.
    fn join(&mut self, a: Tok, b: Tok) -> Tok;

    /// Returns `true` if the engine decides what acknowledgements wait for ([`Engine::ack`]), as one with a
    /// planted bug does. The sink asks once, at its creation.
    fn decides_acks(&self) -> bool {
        false
    }

    /// Returns what an acknowledgement that waits for `ack` waits for if it also has to wait for `tok`.
    fn ack(&mut self, ack: Tok, tok: Tok) -> Tok {
        self.join(ack, tok)
    }

    /// Returns a token that is done `by` after `after`, and after now at the earliest.
    fn delay(&mut self, after: Tok, _by: Nanos) -> Tok {
        after
    }

    /// Adds a server: see [`Sink::add_server`].
    fn add_server(&mut self) -> u16 {
        0
    }

    /// Gives a job to a server: see [`Sink::serve`].
    fn serve(&mut self, _server: u16, after: Tok, by: Nanos) -> Tok {
        self.delay(after, by)
    }

    /// Returns `true` if `tok` is done at the current time.
    fn is_done(&self, _tok: Tok) -> bool {
        true
    }

    /// Adds a pool: see [`Sink::add_pool`].
    fn add_pool(&mut self, _limit: u64) -> u16 {
        0
    }

    /// Takes space of a pool: see [`Sink::acquire`].
    fn acquire(&mut self, _pool: u16, _amount: u64, after: Tok, _instead: Tok) -> Tok {
        after
    }

    /// Returns `amount` to a pool once `after` is done.
    fn release(&mut self, _pool: u16, _amount: u64, _after: Tok) {}

    /// A request of a client begins.
    fn begin(&mut self) {}

    /// The request has emitted its commands. Returns the token that its acknowledgement waits for, of
    /// which the sink says `ack`.
    fn end(&mut self, ack: Tok) -> Tok {
        ack
    }

    /// Measures a request between layers, from its start to its acknowledgement.
    fn measure(&mut self, _scope: RequestScope, _request: LinkRequest) {}

    /// Returns what the engine has counted, in a type of its own.
    fn statistics(&self) -> Option<&dyn Any> {
        None
    }

    /// Mutable statistics, to reset them or to enable further ones.
    fn statistics_mut(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// Returns metrics of the engine.
    fn metrics(&self) -> Vec<Metric> {
        Vec::new()
    }

    /// Returns the time at which `tok` is (or will be) done, if it is known. Otherwise
    /// [`Engine::next_done`] reports the token later, under `tag`.
    fn time_or_watch(&mut self, _tok: Tok, _tag: Tag) -> Option<Nanos> {
        Some(self.now())
    }

    /// Advances time to the next watched token that is done, and returns it. Tokens that are done
    /// at the same time are returned in order of their tags. If none is done until
    /// `limit`, advances to `limit` ([`Nanos::MAX`]: to the last event).
    fn next_done(&mut self, _limit: Nanos) -> Option<Completion> {
        None
    }
}

/// Sees what a sink emits: progress, counts, records of commands and what they wait for.
pub trait CommandObserver: Any + Send {
    /// Receives a command that a medium has executed, what it waited for, and its completion. Without
    /// time, both are [`Tok::DONE`].
    fn command(&mut self, cmd: &Cmd, after: Tok, done: Tok);
}

/// Receives the commands that media emit.
///
/// A sink without an [`Engine`] is that of a real volume: it models no time, and all tokens are done. It
/// collects the delays of a request ([`Sink::take_delay`]), which a server waits for. Its tokens do not
/// tell which parts of a request run in parallel. So a delay around another one adds to it, and of parts
/// beside each other the longest counts: exact for parts in parallel, and too short for parts that wait
/// for each other.
///
/// A layer below another one receives its requests between [`Sink::begin_nested`] and
/// [`Sink::end_nested`]. It needs no other code than a layer that serves a client: the sink makes
/// its commands wait for the request of the upper layer, and collects its acknowledgements.
#[derive(Default)]
pub struct Sink {
    now: Nanos,
    scope: RequestScope,
    delay: Nanos,
    units: UnitTimes,
    /// [`Engine::decides_acks`].
    decides_acks: bool,
    engine: Option<Box<dyn Engine>>,
    observer: Option<Box<dyn CommandObserver>>,
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink")
            .field("timed", &self.engine.is_some())
            .field("observed", &self.observer.is_some())
            .field("now", &self.now)
            .finish()
    }
}

impl Sink {
    /// Returns a sink without time.
    #[must_use]
    pub fn untimed() -> Sink {
        Sink::default()
    }

    /// Returns the sink of an engine.
    #[must_use]
    pub fn new(engine: impl Engine) -> Sink {
        Sink {
            now: engine.now(),
            units: engine.unit_times(),
            decides_acks: engine.decides_acks(),
            engine: Some(Box::new(engine)),
            ..Sink::default()
        }
    }

    /// Passes the commands to an observer as well.
    #[must_use]
    pub fn observed(self, observer: impl CommandObserver) -> Sink {
        Sink { observer: Some(Box::new(observer)), ..self }
    }

    /// Returns the observer, if it has this type.
    pub fn observer<T: CommandObserver>(&mut self) -> Option<&mut T> {
        let observer: &mut dyn Any = self.observer.as_deref_mut()?;
        observer.downcast_mut()
    }

    /// Returns the engine, if it has this type.
    #[must_use]
    pub fn engine<E: Engine>(&self) -> Option<&E> {
        let engine: &dyn Any = self.engine.as_deref()?;
        engine.downcast_ref()
    }

    /// Returns the engine, if it has this type. Time must not be advanced past the sink.
    pub fn engine_mut<E: Engine>(&mut self) -> Option<&mut E> {
        let engine: &mut dyn Any = self.engine.as_deref_mut()?;
        engine.downcast_mut()
    }

    /// Returns the engine, if it has this type.
    #[must_use]
    pub fn into_engine<E: Engine>(self) -> Option<E> {
        let engine: Box<dyn Any> = self.engine?;
        engine.downcast().ok().map(|e| *e)
    }

    /// Returns what the engine has counted, in a type of its own.
    #[must_use]
    pub fn statistics(&self) -> Option<&dyn Any> {
        self.engine.as_ref()?.statistics()
    }

    /// Mutable statistics of the engine.
    pub fn statistics_mut(&mut self) -> Option<&mut dyn Any> {
        self.engine.as_mut()?.statistics_mut()
    }

    /// Returns metrics of the engine.
    #[must_use]
    pub fn metrics(&self) -> Vec<Metric> {
        self.engine.as_ref().map(|engine| engine.metrics()).unwrap_or_default()
    }

    /// Returns `true` if commands take time: an engine is behind the sink. Layers in other threads need a
    /// sink of their own then, which an engine is not: it needs the order of all commands.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.engine.is_some()
    }

    /// The time at which the current request was admitted.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Returns the token for which all commands of the current request wait: for a request of a
    /// client, a token that is already done.
    #[inline]
    #[must_use]
    pub fn start(&self) -> Tok {
        self.scope.start
    }

    /// Returns the state of a unit, from which policies may decide.
    #[inline]
    #[must_use]
    pub fn unit(&self, unit: UnitId) -> UnitState {
        self.engine.as_ref().map_or(UnitState::Idle, |engine| engine.unit(unit))
    }

    /// Returns `true` if a unit has no work.
    #[inline]
    #[must_use]
    pub fn is_idle(&self, unit: UnitId) -> bool {
        self.units.is_idle(unit, self.now).unwrap_or_else(|| self.unit(unit).is_idle())
    }

    /// Emits a command, to be executed once `after` and the start of the current request
    /// ([`Sink::start`]) are done.
    #[inline]
    pub fn emit(&mut self, cmd: Cmd, after: Tok) -> Tok {
        let after = self.join(self.scope.start, after);
        let done = match &mut self.engine {
            Some(engine) => engine.emit(cmd, after),
            None => Tok::DONE,
        };
        if let Some(observer) = &mut self.observer {
            observer.command(&cmd, after, done);
        }
        done
    }

    /// Returns a token that is done when both are done.
    #[inline]
    pub fn join(&mut self, a: Tok, b: Tok) -> Tok {
        if a == b || b == Tok::DONE {
            return a;
        }
        match &mut self.engine {
            Some(engine) if a != Tok::DONE => engine.join(a, b),
            _ => b,
        }
    }

    /// Returns a token that is done `by` after `after`, and after now at the earliest. A sink without
    /// time returns `after`.
    #[inline]
    pub fn delay(&mut self, after: Tok, by: Nanos) -> Tok {
        let after = self.join(self.scope.start, after);
        self.engine.as_mut().map_or(after, |engine| engine.delay(after, by))
    }

    /// Adds a server, such as one direction of a link, and returns its number for [`Sink::serve`].
    pub fn add_server(&mut self) -> u16 {
        self.engine.as_mut().map_or(0, |engine| engine.add_server())
    }

    /// Returns a token that is done when a server has worked `by` for this job. It serves one job at a
    /// time, in the order in which they are ready. A sink that does not know when a job is ready before
    /// the next call, or has no time, makes no job wait for another one: see [`Sink::delay`].
    pub fn serve(&mut self, server: u16, after: Tok, by: Nanos) -> Tok {
        let after = self.join(self.scope.start, after);
        self.engine.as_mut().map_or(after, |engine| engine.serve(server, after, by))
    }

    /// Returns `true` if `tok` is done at the current time. A sink without time has no token that is not.
    #[inline]
    #[must_use]
    pub fn is_done(&self, tok: Tok) -> bool {
        tok == Tok::DONE || self.engine.as_ref().is_none_or(|engine| engine.is_done(tok))
    }

    /// Adds a pool of `limit` units of space, and returns its number for [`Sink::acquire`].
    pub fn add_pool(&mut self, limit: u64) -> u16 {
        self.engine.as_mut().map_or(0, |engine| engine.add_pool(limit))
    }

    /// Returns a token that is done when `after` is done and less than the limit of a pool is taken;
    /// `amount` of it is taken then. Jobs get their space in the order in which they are ready. A sink
    /// that cannot tell which release is the next one waits for `instead`, and a sink without time does
    /// not wait.
    pub fn acquire(&mut self, pool: u16, amount: u64, after: Tok, instead: Tok) -> Tok {
        let after = self.join(self.scope.start, after);
        self.engine.as_mut().map_or(after, |engine| engine.acquire(pool, amount, after, instead))
    }

    /// Returns `amount` to a pool once `after` is done.
    pub fn release(&mut self, pool: u16, amount: u64, after: Tok) {
        if let Some(engine) = &mut self.engine {
            engine.release(pool, amount, after);
        }
    }

    /// Begins a part of the current request that takes longer than its commands. Returns a value
    /// for [`Sink::end_delayed`].
    #[inline]
    pub fn begin_delayed(&mut self) -> Nanos {
        std::mem::take(&mut self.delay)
    }

    /// Ends a part of the current request, whose commands are done with `after`. Returns a token
    /// that is done `by` later, as [`Sink::delay`] does. `outer` is the value of
    /// [`Sink::begin_delayed`].
    #[inline]
    pub fn end_delayed(&mut self, outer: Nanos, after: Tok, by: Nanos) -> Tok {
        if self.engine.is_some() {
            return self.delay(after, by);
        }
        self.delay = outer.max(self.delay + by);
        after
    }

    /// Returns the delay of all parts since the last call, for a caller that waits in real time. It
    /// is zero in a sink whose tokens contain delays.
    #[inline]
    pub fn take_delay(&mut self) -> Nanos {
        std::mem::take(&mut self.delay)
    }

    /// Makes the acknowledgement of the current request wait for `tok`.
    #[inline]
    pub fn ack(&mut self, tok: Tok) {
        self.scope.ack = match &mut self.engine {
            Some(engine) if self.decides_acks => engine.ack(self.scope.ack, tok),
            _ => self.join(self.scope.ack, tok),
        };
    }

    /// Returns the tokens of the current request.
    #[inline]
    #[must_use]
    pub fn scope(&self) -> RequestScope {
        self.scope
    }

    /// Begins a request of a layer to the layer below it. It starts when `after` is done. Returns
    /// the tokens of the upper request, for [`Sink::end_nested`].
    #[inline]
    pub fn begin_nested(&mut self, after: Tok) -> RequestScope {
        let start = self.join(self.scope.start, after);
        std::mem::replace(&mut self.scope, RequestScope { start, ack: start })
    }

    /// Ends a request of a layer to the layer below it, and continues the upper one. Returns the
    /// token of the acknowledgement of the lower request.
    #[inline]
    pub fn end_nested(&mut self, outer: RequestScope) -> Tok {
        std::mem::replace(&mut self.scope, outer).ack
    }

    /// Ends a request like [`Sink::end_nested`]. A sink that measures the times of requests between
    /// layers records it from its start to its acknowledgement.
    #[inline]
    pub fn end_measured(&mut self, outer: RequestScope, request: LinkRequest) -> Tok {
        let scope = std::mem::replace(&mut self.scope, outer);
        if let Some(engine) = &mut self.engine {
            engine.measure(scope, request);
        }
        scope.ack
    }

    /// Begins a request of a client at the current time; acknowledgements are collected for it.
    #[inline]
    pub fn begin(&mut self) {
        self.scope = RequestScope::default();
        if let Some(engine) = &mut self.engine {
            engine.begin();
        }
    }

    /// Ends the emission of a request's commands. Returns the token that its acknowledgement waits
    /// for.
    #[inline]
    pub fn end(&mut self) -> Tok {
        let ack = std::mem::take(&mut self.scope).ack;
        self.engine.as_mut().map_or(ack, |engine| engine.end(ack))
    }

    /// Returns the time at which `tok` is (or will be) done, if it is known. Otherwise
    /// [`Sink::next_done`] reports the token later, under `tag`.
    #[inline]
    pub fn time_or_watch(&mut self, tok: Tok, tag: Tag) -> Option<Nanos> {
        match &mut self.engine {
            Some(engine) if tok != Tok::DONE => engine.time_or_watch(tok, tag),
            _ => Some(self.now),
        }
    }

    /// Advances time to the next watched token that is done, and returns it: see
    /// [`Engine::next_done`]. Without time, no token is pending.
    #[inline]
    pub fn next_done(&mut self, limit: Nanos) -> Option<Completion> {
        let engine = self.engine.as_mut()?;
        let done = engine.next_done(limit);
        self.now = engine.now();
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_done_tokens_takes_no_memory() {
        let mut table = TokTable::new(3);
        table.set(1, Tok::DONE);
        assert!(table.toks.is_empty());
        table.set(2, Tok::new(7));
        assert_eq!([0, 1, 2].map(|i| table.get(i)), [Tok::DONE, Tok::DONE, Tok::new(7)]);
        table.fill(Tok::new(9));
        table.set(0, Tok::DONE);
        assert_eq!([0, 1, 2].map(|i| table.get(i)), [Tok::DONE, Tok::new(9), Tok::new(9)]);
        table.fill(Tok::DONE);
        assert_eq!((table.get(2), table.toks.len()), (Tok::DONE, 0));
    }

    #[test]
    fn a_table_of_times_answers_or_asks() {
        let times = UnitTimes::new(2);
        let sink = times.share();
        let idle = |now| sink.is_idle(UnitId(1), Nanos(now));
        assert_eq!(idle(0), None);
        times.free_from(UnitId(1), Nanos(5));
        assert_eq!((idle(4), idle(5)), (Some(false), Some(true)));
        let copy = times.clone();
        times.busy(UnitId(1));
        assert_eq!((idle(u64::MAX - 2), copy.is_idle(UnitId(1), Nanos(5))), (Some(false), Some(true)));
        assert_eq!(sink.is_idle(UnitId(2), Nanos(0)), None, "a unit that the table does not have");
    }

    #[test]
    fn without_time_delays_beside_each_other_count_once() {
        let mut sink = Sink::untimed();
        let outer = sink.begin_delayed();
        assert_eq!(sink.end_delayed(outer, Tok::DONE, Nanos(5)), Tok::DONE);
        let outer = sink.begin_delayed();
        sink.end_delayed(outer, Tok::DONE, Nanos(3));
        assert_eq!((sink.take_delay(), sink.take_delay()), (Nanos(5), Nanos::ZERO));
        let outer = sink.begin_delayed();
        let inner = sink.begin_delayed();
        sink.end_delayed(inner, Tok::DONE, Nanos(3));
        sink.end_delayed(outer, Tok::DONE, Nanos(4));
        assert_eq!(sink.take_delay(), Nanos(7), "a delay around another one adds to it");
        assert_eq!((sink.time_or_watch(Tok::DONE, 1), sink.next_done(Nanos::MAX)), (Some(Nanos::ZERO), None));
    }
}
