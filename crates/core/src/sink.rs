//! The receiver of commands: it connects layers, whose commands take effect immediately, with
//! virtual time.

use crate::{Cmd, Nanos, UnitId};

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

/// Receives the commands that media emit and decides how long they take.
///
/// A token ([`Sink::Tok`]) stands for the completion of a command: nothing for [`UntimedSink`], a time for
/// an eager engine, an id for an event engine or a recorder. `after` edges are also the order of
/// durability: a command is durable only if every command it came `after` is durable.
pub trait Sink {
    /// Token of the completion of a command.
    type Tok: Copy + Default + Send;

    /// The time at which the current request was admitted.
    fn now(&self) -> Nanos;

    /// Returns a token that is already done. A command after it waits only for its unit.
    fn start(&self) -> Self::Tok;

    /// Returns the state of a unit, from which policies may decide.
    fn unit(&self, unit: UnitId) -> UnitState;

    /// Emits a command, to be executed once `after` is done.
    fn emit(&mut self, cmd: Cmd, after: Self::Tok) -> Self::Tok;

    /// Returns a token that is done when both are done.
    fn join(&mut self, a: Self::Tok, b: Self::Tok) -> Self::Tok;

    /// Makes the acknowledgement of the current request wait for `tok`.
    fn ack(&mut self, tok: Self::Tok);
}

/// Bounds of a token that a layer or a device stores: see [`Sink::Tok`].
pub trait Token: Copy + Default + Send {}
impl<T: Copy + Default + Send> Token for T {}

/// The sink of real volumes. It models no time, so all tokens are done.
#[derive(Clone, Copy, Default, Debug)]
pub struct UntimedSink;

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
    fn emit(&mut self, _: Cmd, (): ()) {}
    #[inline]
    fn join(&mut self, (): (), (): ()) {}
    #[inline]
    fn ack(&mut self, (): ()) {}
}
