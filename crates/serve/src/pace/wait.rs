//! Precise waiting until a given time.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// Last part of a wait, in which the thread polls the clock. A sleep ends late by up to this time,
/// since the wake-up of a core takes 20 to 60 µs.
const SPIN: Duration = Duration::from_micros(60);

thread_local! {
    /// Linux adds 50 µs to the sleeps of a thread, unless the thread asks for less once.
    static NO_SLACK: () = {
        // If the kernel refuses, waiting is less precise.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    };
}

/// A clock with functions to wait.
pub trait SleepClock {
    /// Returns the current time.
    fn now(&self) -> Instant;
    /// Sleeps for about this time, often a little longer.
    fn sleep(&mut self, time: Duration);
    /// Waits for a short time without sleeping.
    fn spin(&mut self);
}

/// The clock of the host.
struct System;

impl SleepClock for System {
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

/// Waits until a given time, and returns at once if it has passed. The thread sleeps for most of
/// the time, and spins for the rest.
pub fn wait_until(moment: Instant) {
    NO_SLACK.with(|()| ());
    wait(&mut System, moment);
}

fn wait(clock: &mut impl SleepClock, moment: Instant) {
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

    impl SleepClock for Fake {
        fn now(&self) -> Instant {
            self.now
        }
        fn sleep(&mut self, time: Duration) {
            self.slept += time;
            self.now += time + Duration::from_micros(20); // sleeps end late, as on a real machine
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
        assert_eq!(c.now - start, Duration::from_micros(1_000), "a time in the past");
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
