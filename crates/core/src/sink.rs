//! The receiver of commands: it connects layers, whose commands take effect immediately, with
//! virtual time.

use crate::{Cmd, Nanos, TrafficKind, UnitId};
use std::any::Any;
use std::fmt;

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

/// The tokens of a request: what its commands wait for, and what its acknowledgement waits for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RequestScope<T> {
    /// Token for which every command of the request waits.
    pub start: T,
    /// Join of the tokens for which the acknowledgement of the request waits.
    pub ack: T,
}

/// A request of a layer to the layer below it, as the measurement of its time needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkRequest {
    /// Number of the lower layer in the stack.
    pub layer: u16,
    /// Kind of request.
    pub kind: TrafficKind,
}

/// Receives the commands that media emit and decides how long they take.
///
/// A token ([`Sink::Tok`]) stands for the completion of a command: nothing for [`UntimedSink`], a time for
/// a simple engine, a number for other engines and a recorder. `after` edges are also the order of
/// durability: a command is durable only if every command it came `after` is durable.
///
/// A layer below another one receives its requests between [`Sink::begin_nested`] and
/// [`Sink::end_nested`]. It needs no other code than a layer that serves a client: the sink makes
/// its commands wait for the request of the upper layer, and collects its acknowledgements.
pub trait Sink: Send {
    /// Token of the completion of a command.
    type Tok: Copy + Default + Send;

    /// The time at which the current request was admitted.
    fn now(&self) -> Nanos;

    /// Returns the token for which all commands of the current request wait: for a request of a
    /// client, a token that is already done.
    fn start(&self) -> Self::Tok;

    /// Returns the state of a unit, from which policies may decide.
    fn unit(&self, unit: UnitId) -> UnitState;

    /// Returns `true` if a unit has no work. A sink that computes the end of the work for
    /// [`Sink::unit`] can answer this faster.
    #[inline]
    fn is_idle(&self, unit: UnitId) -> bool {
        self.unit(unit).is_idle()
    }

    /// Emits a command, to be executed once `after` and the start of the current request
    /// ([`Sink::start`]) are done.
    fn emit(&mut self, cmd: Cmd, after: Self::Tok) -> Self::Tok;

    /// Returns a token that is done when both are done.
    fn join(&mut self, a: Self::Tok, b: Self::Tok) -> Self::Tok;

    /// Returns a token that is done `by` after `after`, and after now at the earliest. A sink without
    /// time returns `after`.
    fn delay(&mut self, after: Self::Tok, _by: Nanos) -> Self::Tok {
        after
    }

    /// Adds a server, such as one direction of a link, and returns its number for [`Sink::serve`].
    fn add_server(&mut self) -> u16 {
        0
    }

    /// Returns a token that is done when a server has worked `by` for this job. It serves one job at a
    /// time, in the order in which they are ready. A sink that does not know when a job is ready before
    /// the next call, or has no time, makes no job wait for another one: see [`Sink::delay`].
    fn serve(&mut self, _server: u16, after: Self::Tok, by: Nanos) -> Self::Tok {
        self.delay(after, by)
    }

    /// Returns `true` if `tok` is done at the current time. A sink without time has no token that is not.
    fn is_done(&self, _tok: Self::Tok) -> bool {
        true
    }

    /// Adds a pool of `limit` units of space, and returns its number for [`Sink::acquire`].
    fn add_pool(&mut self, _limit: u64) -> u16 {
        0
    }

    /// Returns a token that is done when `after` is done and less than the limit of a pool is taken;
    /// `amount` of it is taken then. Jobs get their space in the order in which they are ready. A sink
    /// that cannot tell which release is the next one waits for `instead`, and a sink without time does
    /// not wait.
    fn acquire(&mut self, _pool: u16, _amount: u64, after: Self::Tok, _instead: Self::Tok) -> Self::Tok {
        after
    }

    /// Returns `amount` to a pool once `after` is done.
    fn release(&mut self, _pool: u16, _amount: u64, _after: Self::Tok) {}

    /// Begins a part of the current request that takes longer than its commands. Returns a value
    /// for [`Sink::end_delayed`].
    #[inline]
    fn begin_delayed(&mut self) -> Nanos {
        Nanos::ZERO
    }

    /// Ends a part of the current request, whose commands are done with `after`. Returns a token
    /// that is done `by` later, as [`Sink::delay`] does. `outer` is the value of
    /// [`Sink::begin_delayed`].
    #[inline]
    fn end_delayed(&mut self, _outer: Nanos, after: Self::Tok, by: Nanos) -> Self::Tok {
        self.delay(after, by)
    }

    /// Returns the delay of all parts since the last call, for a caller that waits in real time. It
    /// is zero in a sink whose tokens contain delays.
    #[inline]
    fn take_delay(&mut self) -> Nanos {
        Nanos::ZERO
    }

    /// Makes the acknowledgement of the current request wait for `tok`.
    fn ack(&mut self, tok: Self::Tok);

    /// Returns another sink for a layer that works beside the one of this sink, in another thread.
    /// `None` if the commands of both need one order.
    fn beside() -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Returns the tokens of the current request.
    fn scope(&mut self) -> &mut RequestScope<Self::Tok>;

    /// Begins a request of a layer to the layer below it. It starts when `after` is done. Returns
    /// the tokens of the upper request, for [`Sink::end_nested`].
    #[inline]
    fn begin_nested(&mut self, after: Self::Tok) -> RequestScope<Self::Tok> {
        let outer = *self.scope();
        let start = self.join(outer.start, after);
        *self.scope() = RequestScope { start, ack: start };
        outer
    }

    /// Ends a request of a layer to the layer below it, and continues the upper one. Returns the
    /// token of the acknowledgement of the lower request.
    #[inline]
    fn end_nested(&mut self, outer: RequestScope<Self::Tok>) -> Self::Tok {
        std::mem::replace(self.scope(), outer).ack
    }

    /// Ends a request like [`Sink::end_nested`]. A sink that measures the times of requests between
    /// layers records it from its start to its acknowledgement.
    #[inline]
    fn end_measured(&mut self, outer: RequestScope<Self::Tok>, _request: LinkRequest) -> Self::Tok {
        self.end_nested(outer)
    }
}

/// Bounds of a token that a layer or a device stores: see [`Sink::Tok`].
pub trait Token: Copy + Default + Send {}
impl<T: Copy + Default + Send> Token for T {}

/// Receives the commands of an [`UntimedSink`].
pub trait CommandObserver: Any + Send {
    /// Receives a command that a medium has executed.
    fn command(&mut self, cmd: &Cmd);
}

/// The sink of real volumes. It models no time, so all tokens are done.
///
/// It collects the delays of a request ([`Sink::take_delay`]), which a server waits for. Its tokens
/// do not tell which parts of a request run in parallel. So a delay around another one adds to it,
/// and of parts beside each other the longest counts: exact for parts in parallel, and too short for
/// parts that wait for each other.
///
/// It can pass the commands to an observer, which a progress bar or a count of commands needs. An
/// observer is a value and not a sink of its own, because layers are compiled once for each sink.
#[derive(Default)]
pub struct UntimedSink {
    observer: Option<Box<dyn CommandObserver>>,
    scope: RequestScope<()>,
    delay: Nanos,
}

impl UntimedSink {
    /// Returns a sink without an observer.
    #[inline]
    #[must_use]
    pub const fn new() -> UntimedSink {
        UntimedSink { observer: None, scope: RequestScope { start: (), ack: () }, delay: Nanos::ZERO }
    }

    /// Returns a sink that passes its commands to an observer.
    #[must_use]
    pub fn observed(observer: impl CommandObserver) -> UntimedSink {
        UntimedSink { observer: Some(Box::new(observer)), ..UntimedSink::new() }
    }

    /// Returns the observer, if it has this type.
    pub fn observer<T: CommandObserver>(&mut self) -> Option<&mut T> {
        let observer: &mut dyn Any = self.observer.as_deref_mut()?;
        observer.downcast_mut()
    }
}

impl fmt::Debug for UntimedSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UntimedSink").field("observed", &self.observer.is_some()).finish()
    }
}

impl Sink for UntimedSink {
    type Tok = ();
    #[inline]
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }
    #[inline]
    fn start(&self) {}
    #[inline]
    fn unit(&self, _: UnitId) -> UnitState {
        UnitState::Idle
    }
    #[inline]
    fn emit(&mut self, cmd: Cmd, (): ()) {
        if let Some(observer) = &mut self.observer {
            observer.command(&cmd);
        }
    }
    #[inline]
    fn join(&mut self, (): (), (): ()) {}
    #[inline]
    fn begin_delayed(&mut self) -> Nanos {
        std::mem::take(&mut self.delay)
    }
    #[inline]
    fn end_delayed(&mut self, outer: Nanos, (): (), by: Nanos) {
        self.delay = outer.max(self.delay + by);
    }
    #[inline]
    fn take_delay(&mut self) -> Nanos {
        std::mem::take(&mut self.delay)
    }
    #[inline]
    fn ack(&mut self, (): ()) {}
    fn beside() -> Option<UntimedSink> {
        Some(UntimedSink::new())
    }
    #[inline]
    fn scope(&mut self) -> &mut RequestScope<()> {
        &mut self.scope
    }
}
