//! Where commands go: the one place where "function now" meets "time".

use crate::{Cmd, Nanos, UnitId};

/// Whether a unit can start at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitState {
    /// It has nothing to do.
    Idle,
    /// It has work until about this time.
    BusyUntil(Nanos),
}

impl UnitState {
    /// Whether it is idle.
    #[must_use]
    pub fn is_idle(self) -> bool {
        matches!(self, UnitState::Idle)
    }
}

/// Takes the commands that media emit and decides what they mean in time.
///
/// A token ([`Sink::Tok`]) says when a command is done: nothing for [`Null`], a time for an eager
/// engine, an id for an event engine or a recorder. `after` edges are also the order of durability:
/// a power cut leaves a set of commands that is closed under them.
pub trait Sink {
    /// When a command is done.
    type Tok: Copy + Default + Send;

    /// The time at which the current request was admitted.
    fn now(&self) -> Nanos;

    /// A token that is done already: a command after it waits for nothing but its unit.
    fn start(&self) -> Self::Tok;

    /// Whether a unit is idle. Policies may decide from it.
    fn unit(&self, unit: UnitId) -> UnitState;

    /// Gives a command, to be carried out once `after` is done.
    fn emit(&mut self, cmd: Cmd, after: Self::Tok) -> Self::Tok;

    /// Done when both are done.
    fn join(&mut self, a: Self::Tok, b: Self::Tok) -> Self::Tok;

    /// The acknowledgement of the current request waits for `tok`.
    fn ack(&mut self, tok: Self::Tok);
}

/// The sink of live use: nothing takes time but the machine itself.
#[derive(Clone, Copy, Default, Debug)]
pub struct Null;

impl Sink for Null {
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
