//! Pacing of virtual time by the wall clock.

use frit_core::Nanos;
use std::time::{Duration, Instant};

/// A clock with a sleep function, so that tests can replace the system clock.
pub trait WallClock {
    /// Time since a fixed point.
    fn elapsed(&self) -> Duration;
    /// Sleeps for about the given time.
    fn sleep(&mut self, time: Duration);
}

/// The monotonic clock of the machine.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock(Instant);

impl WallClock for SystemClock {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Delays a driver until the wall clock has reached virtual time, so that the modelled device
/// responds at the speed of the real one. If the machine is slower than the model, the pacer never
/// waits and virtual time lags behind ([`Pacer::lag`]).
#[derive(Clone, Debug)]
pub struct Pacer<C = SystemClock> {
    clock: C,
    /// Wall-clock time and virtual time of the first wait.
    origin: Option<(Duration, Nanos)>,
    lag: Duration,
}

impl Default for Pacer {
    fn default() -> Self {
        Pacer::new(SystemClock(Instant::now()))
    }
}

impl<C: WallClock> Pacer<C> {
    /// Creates a pacer on a clock. The first wait defines the origin of both times.
    pub fn new(clock: C) -> Pacer<C> {
        Pacer { clock, origin: None, lag: Duration::ZERO }
    }

    /// Maximum lag of virtual time behind the wall clock.
    #[must_use]
    pub fn lag(&self) -> Duration {
        self.lag
    }
}

/// Interface between a driver and a pacer.
pub trait Pace {
    /// Returns when the wall clock has reached this virtual time.
    fn wait_until(&mut self, time: Nanos);
}

impl<C: WallClock> Pace for Pacer<C> {
    fn wait_until(&mut self, time: Nanos) {
        let (wall, origin) = *self.origin.get_or_insert((self.clock.elapsed(), time));
        let due = wall + Duration::from_nanos(time.since(origin).0);
        loop {
            // Loops because a sleep may end early.
            let now = self.clock.elapsed();
            match due.checked_sub(now) {
                Some(rest) if !rest.is_zero() => self.clock.sleep(rest),
                _ => {
                    self.lag = self.lag.max(now.saturating_sub(due));
                    return;
                }
            }
        }
    }
}

/// Runs as fast as the machine computes: never waits.
#[derive(Clone, Copy, Default, Debug)]
pub struct Unpaced;

impl Pace for Unpaced {
    #[inline]
    fn wait_until(&mut self, _: Nanos) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that sleeps half of the requested time, as an interrupted sleep would, and records
    /// it.
    #[derive(Default)]
    struct Fake {
        at: Duration,
        slept: Duration,
    }

    impl WallClock for Fake {
        fn elapsed(&self) -> Duration {
            self.at
        }
        fn sleep(&mut self, time: Duration) {
            let part = time.div_f64(2.0).max(Duration::from_nanos(1));
            self.at += part;
            self.slept += part;
        }
    }

    #[test]
    fn waits_for_the_difference_and_never_less() {
        let mut p = Pacer::new(Fake { at: Duration::from_secs(7), ..Fake::default() });
        p.wait_until(Nanos(1_000)); // the origin: no wait
        assert_eq!(p.clock.slept, Duration::ZERO);
        p.wait_until(Nanos(3_500));
        assert_eq!(p.clock.slept, Duration::from_nanos(2_500));
        p.clock.at += Duration::from_nanos(400); // the machine was busy in the meantime
        p.wait_until(Nanos(4_000));
        assert_eq!(p.clock.slept, Duration::from_nanos(2_600));
        assert_eq!(p.lag(), Duration::ZERO);
        p.clock.at += Duration::from_nanos(90);
        p.wait_until(Nanos(4_010));
        assert_eq!(p.lag(), Duration::from_nanos(80));
    }

    #[test]
    fn the_system_clock_gets_there() {
        let mut p = Pacer::default();
        p.wait_until(Nanos::ZERO);
        let (origin, _) = p.origin.unwrap();
        p.wait_until(Nanos(200_000));
        assert!(p.clock.elapsed() - origin >= Duration::from_micros(200));
    }
}
