//! Virtual time that follows the wall clock.

use frit_core::{Nanos, Sink};
use frit_engine::InOrder;
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

    /// Advances a sink over an in-order engine to the time of the clock, and begins a request.
    pub fn admit(&mut self, sink: &mut Sink, clock: Duration) {
        let elapsed = clock.saturating_sub(self.origin).as_nanos().min(u128::from(u64::MAX / 2));
        self.now = self.now.max(Nanos(elapsed as u64));
        sink.next_done(self.now);
        sink.begin();
    }

    /// Ends the request that was admitted last. Returns the time of the clock at which the modelled
    /// device completes it if no other request arrives before.
    pub fn done(&self, sink: &mut Sink) -> Duration {
        let tok = sink.end();
        let done = sink.engine::<InOrder>().map_or(self.now, |engine| engine.predict(tok));
        self.origin + Duration::from_nanos(done.max(self.now).0)
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
    use frit_core::{Cause, Cmd, MediumKind, Op, UnitId};
    use frit_media::{Device, DramTiming, Hardware, TimingModel};

    /// An engine with one unit that takes 100 ns per command.
    fn engine() -> Sink {
        let model = TimingModel::Dram(DramTiming { latency: Nanos(100), ps_per_byte: 0 });
        let mut hardware = Hardware::new();
        hardware
            .add(Device {
                name: "dram".into(),
                kind: MediumKind::Dram,
                model,
                unit_channel: vec![0],
                nand: None,
            })
            .unwrap();
        Sink::new(InOrder::new(&hardware))
    }

    fn request(t: &mut VirtualClock, e: &mut Sink, clock: u64) -> u64 {
        t.admit(e, Duration::from_nanos(clock));
        let (unit, op, cause) = (UnitId(0), Op::DramRead, Cause::Host);
        let tok = e.emit(Cmd { addr: 0, len: 0, hazard: 0, unit, op, cause }, e.start());
        e.ack(tok);
        t.done(e).as_nanos() as u64
    }

    #[test]
    fn requests_end_when_the_model_says_on_the_clock() {
        let (mut t, mut e) = (VirtualClock::new(Duration::from_nanos(5_000)), engine());
        assert_eq!(request(&mut t, &mut e, 5_000), 5_100);
        assert_eq!(request(&mut t, &mut e, 5_040), 5_200, "the request waits for the previous one");
        assert_eq!(request(&mut t, &mut e, 9_000), 9_100, "the unit was idle");
        assert_eq!(request(&mut t, &mut e, 8_000), 9_200, "a clock that goes back stands still");
        assert_eq!(t.admitted(), Duration::from_nanos(9_000));
        t.admit(&mut e, Duration::from_nanos(9_500));
        assert_eq!(t.done(&mut e), Duration::from_nanos(9_500), "a request without commands");
    }
}
