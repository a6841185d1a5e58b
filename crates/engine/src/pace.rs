//! Virtual time paced by the wall clock.

use frit_core::Nanos;
use std::time::{Duration, Instant};

/// A clock that can be waited on.
pub trait WallClock {
    /// Time since some fixed point.
    fn elapsed(&self) -> Duration;
    /// Waits about this long.
    fn sleep(&mut self, time: Duration);
}

/// The clock of the machine.
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

/// Holds a driver back until the wall clock has come as far as virtual time: the modelled device then
/// answers as the real one would. When the machine is slower than the model, it never waits and
/// virtual time lags ([`Pacer::lag`]).
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
    /// On this clock. Virtual and wall-clock time are set equal at the first wait.
    pub fn new(clock: C) -> Pacer<C> {
        Pacer { clock, origin: None, lag: Duration::ZERO }
    }

    /// The most by which the wall clock was ahead of virtual time.
    #[must_use]
    pub fn lag(&self) -> Duration {
        self.lag
    }
}

/// What a driver asks of a pacer.
pub trait Pace {
    /// Returns once the wall clock has reached this virtual time.
    fn wait_until(&mut self, time: Nanos);
}

impl<C: WallClock> Pace for Pacer<C> {
    fn wait_until(&mut self, time: Nanos) {
        let (wall, origin) = *self.origin.get_or_insert((self.clock.elapsed(), time));
        let due = wall + Duration::from_nanos(time.since(origin).0);
        loop {
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

/// As fast as the machine computes: never waits.
#[derive(Clone, Copy, Default, Debug)]
pub struct Unpaced;

impl Pace for Unpaced {
    #[inline]
    fn wait_until(&mut self, _: Nanos) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sleeps half of what is asked, as an interrupted sleep would, and remembers.
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
        p.clock.at += Duration::from_nanos(400); // the machine took its time
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
