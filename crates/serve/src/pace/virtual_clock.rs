//! Virtual time that follows the wall clock.

use frit_core::Nanos;
use frit_engine::Engine;
use std::time::Duration;

/// Virtual time of an engine that follows a clock: each admission advances it to the time of the
/// clock.
///
/// Virtual time never goes back. A clock that goes back is treated as if it stood still.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct VirtualClock {
    /// Time of the clock at the start of virtual time.
    origin: Duration,
    now: Nanos,
}

impl VirtualClock {
    /// Starts virtual time at the given time of the clock.
    #[must_use]
    pub fn new(clock: Duration) -> VirtualClock {
        VirtualClock { origin: clock, now: Nanos::ZERO }
    }

    /// Advances the engine to the time of the clock, and begins a request.
    pub fn admit<E: Engine>(&mut self, engine: &mut E, clock: Duration) {
        let elapsed = clock.saturating_sub(self.origin).as_nanos().min(u128::from(u64::MAX / 2));
        self.now = self.now.max(Nanos(elapsed as u64));
        engine.next_done(self.now);
        engine.begin();
    }

    /// Ends the request that was admitted last. Returns the time of the clock at which the modelled
    /// device completes it, or `None` if the engine does not know it yet.
    pub fn done<E: Engine>(&self, engine: &mut E) -> Option<Duration> {
        let tok = engine.end();
        let at = engine.time_or_watch(tok, 0)?;
        Some(self.origin + Duration::from_nanos(at.max(self.now).0))
    }

    /// Returns the time of the clock at the last admission.
    #[must_use]
    pub fn admitted(&self) -> Duration {
        self.origin + Duration::from_nanos(self.now.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frit_core::{Sink, UnitId, UnitState};
    use frit_engine::driver::{Completion, Tag};

    /// An engine with one unit that takes 100 ns per command.
    #[derive(Default)]
    struct Unit {
        now: Nanos,
        free: Nanos,
        ack: Nanos,
    }

    impl Sink for Unit {
        type Tok = Nanos;
        fn now(&self) -> Nanos {
            self.now
        }
        fn start(&self) -> Nanos {
            Nanos::ZERO
        }
        fn unit(&self, _: UnitId) -> UnitState {
            UnitState::Idle
        }
        fn emit(&mut self, _: frit_core::Cmd, after: Nanos) -> Nanos {
            self.free = self.free.max(self.now).max(after) + Nanos(100);
            self.free
        }
        fn join(&mut self, a: Nanos, b: Nanos) -> Nanos {
            a.max(b)
        }
        fn ack(&mut self, tok: Nanos) {
            self.ack = self.ack.max(tok);
        }
    }

    impl Engine for Unit {
        fn begin(&mut self) {
            self.ack = self.now;
        }
        fn end(&mut self) -> Nanos {
            self.ack
        }
        fn time_or_watch(&mut self, tok: Nanos, _: Tag) -> Option<Nanos> {
            Some(tok)
        }
        fn next_done(&mut self, limit: Nanos) -> Option<Completion> {
            self.now = self.now.max(limit);
            None
        }
    }

    fn request(t: &mut VirtualClock, e: &mut Unit, clock: u64) -> u64 {
        t.admit(e, Duration::from_nanos(clock));
        let cmd = frit_core::Cmd {
            addr: 0,
            len: 0,
            hazard: 0,
            unit: UnitId(0),
            op: frit_core::Op::PcmRead,
            cause: frit_core::Cause::Host,
        };
        let tok = e.emit(cmd, Nanos::ZERO);
        e.ack(tok);
        t.done(e).unwrap().as_nanos() as u64
    }

    #[test]
    fn requests_end_when_the_model_says_on_the_clock() {
        let (mut t, mut e) = (VirtualClock::new(Duration::from_nanos(5_000)), Unit::default());
        assert_eq!(request(&mut t, &mut e, 5_000), 5_100);
        assert_eq!(request(&mut t, &mut e, 5_040), 5_200, "the request waits for the previous one");
        assert_eq!(request(&mut t, &mut e, 9_000), 9_100, "the unit was idle");
        assert_eq!(request(&mut t, &mut e, 8_000), 9_200, "a clock that goes back stands still");
        assert_eq!(t.admitted(), Duration::from_nanos(9_000));
        t.admit(&mut e, Duration::from_nanos(9_500));
        assert_eq!(t.done(&mut e), Some(Duration::from_nanos(9_500)), "a request without commands");
    }
}
