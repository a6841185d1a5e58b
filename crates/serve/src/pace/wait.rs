//! Waiting for a moment, precisely.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// The last part of a wait is spent looking at the clock: a sleep ends as late as this, since a wake-up of
/// a core takes 20 to 60 µs.
const SPIN: Duration = Duration::from_micros(60);

thread_local! {
    /// Linux adds 50 µs to the sleeps of a thread, unless the thread asks for less once.
    static NO_SLACK: () = {
        // A kernel that refuses makes it less precise.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    };
}

/// A clock and a way to sleep.
pub trait Sleeper {
    /// Now.
    fn now(&self) -> Instant;
    /// Sleeps about this long, often a little longer.
    fn sleep(&mut self, time: Duration);
    /// Waits a moment without sleeping.
    fn spin(&mut self);
}

/// The machine's.
struct System;

impl Sleeper for System {
    fn now(&self) -> Instant {
        Instant::now()
    }
    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
    fn spin(&mut self) {
        std::hint::spin_loop();
    }
}

/// Returns at this moment, or at once when it is over. Most of the time is slept, the rest spun.
pub fn wait_until(moment: Instant) {
    NO_SLACK.with(|()| ());
    wait(&mut System, moment);
}

fn wait(clock: &mut impl Sleeper, moment: Instant) {
    loop {
        let left = moment.saturating_duration_since(clock.now());
        match left.checked_sub(SPIN) {
            _ if left.is_zero() => return,
            Some(long) if !long.is_zero() => clock.sleep(long),
            _ => clock.spin(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fake {
        now: Instant,
        slept: Duration,
        spun: u32,
    }

    impl Sleeper for Fake {
        fn now(&self) -> Instant {
            self.now
        }
        fn sleep(&mut self, time: Duration) {
            self.slept += time;
            self.now += time + Duration::from_micros(20); // as late as a machine is
        }
        fn spin(&mut self) {
            self.spun += 1;
            self.now += Duration::from_micros(1);
        }
    }

    #[test]
    fn most_is_slept_and_the_rest_spun() {
        let start = Instant::now();
        let mut c = Fake { now: start, slept: Duration::ZERO, spun: 0 };
        wait(&mut c, start + Duration::from_micros(1_000));
        assert_eq!((c.slept, c.spun), (Duration::from_micros(940), 40));
        assert_eq!(c.now - start, Duration::from_micros(1_000));
        wait(&mut c, start);
        assert_eq!(c.now - start, Duration::from_micros(1_000), "a moment that is over");
        wait(&mut c, start + Duration::from_micros(1_030));
        assert_eq!((c.slept, c.spun), (Duration::from_micros(940), 70), "too short to sleep");
    }

    #[test]
    fn the_machine_gets_there() {
        let moment = Instant::now() + Duration::from_micros(300);
        wait_until(moment);
        assert!(Instant::now() >= moment);
    }
}
