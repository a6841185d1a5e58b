//! Repetition of failed requests: exponential back-off with jitter, within a time limit.

use crate::bucket::BucketError;
use frit_core::split_mix::mix;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wait before the second attempt. Each later wait is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// Longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A signal that ends all waits.
#[derive(Default, Debug)]
pub(crate) struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    pub(crate) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits, and returns `true` if the signal ended the wait.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        let (stopped, _) = self
            .changed
            .wait_timeout_while(stopped, time, |stopped| !*stopped)
            .unwrap_or_else(PoisonError::into_inner);
        *stopped
    }
}

/// Returns half of the wait, and a random part of the other half, so that writers that failed
/// together do not come back together.
fn with_jitter(wait: Duration) -> Duration {
    static STATE: AtomicU64 = AtomicU64::new(0);
    let process = u64::from(std::process::id()) << 32;
    let random = mix(STATE.fetch_add(1, Ordering::Relaxed) ^ process) as f64 / u64::MAX as f64;
    wait / 2 + (wait / 2).mul_f64(random)
}

/// Repeats a request as long as it fails with [`BucketError::Passing`] and the time limit, which
/// counts from `start`, is not over. No attempt begins after the limit.
pub(crate) fn retry<T>(
    start: Instant,
    limit: Duration,
    stop: &Stop,
    mut request: impl FnMut() -> Result<T, BucketError>,
) -> Result<T, BucketError> {
    let mut wait = FIRST_WAIT;
    loop {
        let failed = match request() {
            Err(BucketError::Passing(why)) => why,
            done => return done,
        };
        let pause = with_jitter(wait);
        if start.elapsed() + pause >= limit || stop.wait(pause) {
            return Err(BucketError::Passing(failed));
        }
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passing_failures_are_repeated_and_others_are_not() {
        let stop = Stop::default();
        let run = |mut results: Vec<Result<(), BucketError>>| {
            let mut attempts = 0;
            let done = retry(Instant::now(), Duration::from_secs(60), &stop, || {
                attempts += 1;
                results.remove(0)
            });
            (done, attempts)
        };
        let passing = || Err(BucketError::Passing("503".into()));
        assert_eq!(run(vec![passing(), passing(), Ok(())]), (Ok(()), 3));
        assert_eq!(run(vec![Err(BucketError::Missing)]), (Err(BucketError::Missing), 1));
        let lasting = Err(BucketError::Lasting("403".into()));
        assert_eq!(run(vec![passing(), lasting.clone()]), (lasting, 2));
    }

    #[test]
    fn the_limit_and_the_signal_end_the_repetition() {
        let stop = Stop::default();
        let begin = Instant::now();
        let failing = || Err::<(), _>(BucketError::Passing("down".into()));
        let limit = Duration::from_millis(400);
        assert!(retry(begin, limit, &stop, failing).is_err());
        let took = begin.elapsed();
        assert!(took < limit && took > limit / 4, "{took:?}");
        stop.stop();
        let mut attempts = 0;
        let ended = retry(Instant::now(), Duration::from_secs(3600), &stop, || {
            attempts += 1;
            failing()
        });
        assert!(ended.is_err() && attempts == 1);
    }

    #[test]
    fn waits_differ_and_stay_in_their_range() {
        let wait = Duration::from_secs(1);
        let all: Vec<Duration> = (0..20).map(|_| with_jitter(wait)).collect();
        assert!(all.iter().all(|w| (wait / 2..=wait).contains(w)));
        assert!(all.windows(2).any(|w| w[0] != w[1]));
    }
}
