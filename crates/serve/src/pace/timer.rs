//! A thread that runs functions at given times.

use super::wait::wait_until;
use parking_lot::{Condvar, Mutex};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time before a due time from which the thread polls the clock instead of waiting for new entries.
/// An entry added meanwhile with an earlier due time is late by at most this time.
const POLL_BEFORE_DUE: Duration = Duration::from_micros(100);

/// Runs functions, such as the sending of replies, when they are due.
pub struct Timer {
    shared: Arc<TimerShared>,
    thread: Option<JoinHandle<()>>,
}

struct TimerShared {
    state: Mutex<TimerState>,
    changed: Condvar,
}

#[derive(Default)]
struct TimerState {
    queue: BinaryHeap<TimerEntry>,
    stop: bool,
    number: u64,
}

struct TimerEntry {
    due: Instant,
    /// Sequence number. Entries with equal due times run in this order.
    number: u64,
    send: Box<dyn FnOnce() + Send>,
}

impl Ord for TimerEntry {
    fn cmp(&self, other: &TimerEntry) -> Ordering {
        // `BinaryHeap` returns the greatest entry first, so the order is reversed.
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl PartialOrd for TimerEntry {
    fn partial_cmp(&self, other: &TimerEntry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for TimerEntry {
    fn eq(&self, other: &TimerEntry) -> bool {
        self.number == other.number
    }
}

impl Eq for TimerEntry {}

impl Timer {
    /// Starts the thread of a timer.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start() -> io::Result<Timer> {
        let shared = Arc::new(TimerShared { state: Mutex::default(), changed: Condvar::new() });
        let seen = shared.clone();
        let run = move || run(&seen);
        let thread = std::thread::Builder::new().name("pace".into()).spawn(run)?;
        Ok(Timer { shared, thread: Some(thread) })
    }

    /// Runs a function at a given time, and never earlier.
    pub fn at(&self, due: Instant, send: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.state.lock();
        state.number += 1;
        let entry = TimerEntry { due, number: state.number, send: Box::new(send) };
        state.queue.push(entry);
        drop(state);
        self.shared.changed.notify_one();
    }
}

impl Drop for Timer {
    /// Runs the remaining functions at once and stops the thread.
    fn drop(&mut self) {
        self.shared.state.lock().stop = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Timer")
    }
}

fn run(shared: &TimerShared) {
    let mut state = shared.state.lock();
    loop {
        let Some(next) = state.queue.peek() else {
            if state.stop {
                return;
            }
            shared.changed.wait(&mut state);
            continue;
        };
        let due = next.due;
        if !state.stop {
            if let Some(wait) = due.checked_sub(POLL_BEFORE_DUE).filter(|&t| t > Instant::now()) {
                shared.changed.wait_until(&mut state, wait);
                continue;
            }
            parking_lot::MutexGuard::unlocked(&mut state, || wait_until(due));
        }
        // An entry added meanwhile may be taken instead, but only if it is due even earlier.
        let Some(entry) = state.queue.pop() else { continue };
        parking_lot::MutexGuard::unlocked(&mut state, entry.send);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_done_in_order_and_never_early() {
        let timer = Timer::start().unwrap();
        let start = Instant::now();
        let done = Arc::new(Mutex::new(Vec::new()));
        for ms in [9, 3, 6, 3] {
            let (done, due) = (done.clone(), start + Duration::from_millis(ms));
            timer.at(due, move || done.lock().push((ms, Instant::now() >= due)));
        }
        std::thread::sleep(Duration::from_millis(12));
        drop(timer); // runs the entries that a busy machine has delayed
        let all = done.lock().clone();
        assert_eq!(all.iter().map(|d| d.0).collect::<Vec<_>>(), [3, 3, 6, 9]);
    }

    #[test]
    fn what_is_left_at_the_end_is_done() {
        let timer = Timer::start().unwrap();
        let done = Arc::new(Mutex::new(false));
        let seen = done.clone();
        timer.at(Instant::now() + Duration::from_secs(1000), move || *seen.lock() = true);
        drop(timer);
        assert!(*done.lock());
    }
}
