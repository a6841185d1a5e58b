//! Processors of the threads that answer requests.
//!
//! A program that waits for each of its small requests gains nothing from a second processor: to wake a
//! thread there costs more than the request (20 to 60 µs in a virtual machine, against 4 to 6 µs on the
//! processor of the program). So the threads move to the processor of a program that is alone, and
//! may run on all processors when several programs, or large requests, come.

use fuser::Request;
use parking_lot::Mutex;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of requests after which the decision is made again.
const WINDOW: u32 = 64;
/// Maximum number of requests of other threads, and of large requests, in a window of a program that is
/// alone.
const OTHERS_MAX: u32 = WINDOW / 10;
/// Length in bytes from which a request is large: its copy takes longer than a wake-up.
const LARGE: usize = 64 << 10;
/// Stands for all processors.
const ANY: u32 = u32::MAX;

thread_local! {
    /// Processor on which this thread runs.
    static CURRENT: Cell<u32> = const { Cell::new(ANY) };
}

/// Chooses the processors of the threads.
#[derive(Debug)]
pub(super) struct Placement {
    /// Processors that this process may use; `None` if there is one, or if they are not known.
    allowed: Option<CpuSet>,
    target: AtomicU32,
    window: Mutex<Window>,
}

/// Requests since the last decision.
#[derive(Clone, Copy, Default, Debug)]
struct Window {
    /// Thread of the first request.
    thread: u32,
    requests: u32,
    others: u32,
    large: u32,
}

impl Placement {
    pub(super) fn new() -> Placement {
        let allowed = sched_getaffinity(None).ok().filter(|allowed| allowed.count() > 1);
        Placement { allowed, target: AtomicU32::new(ANY), window: Mutex::default() }
    }

    /// Notes a request of `len` bytes, and moves this thread.
    #[inline]
    pub(super) fn note(&self, request: &Request, len: usize) {
        let Some(allowed) = &self.allowed else { return };
        self.count(request.pid(), len, allowed);
        let target = self.target.load(Ordering::Relaxed);
        if CURRENT.get() != target {
            move_to(target, allowed);
        }
    }

    /// Counts a request; decides at the end of a window.
    fn count(&self, thread: u32, len: usize, allowed: &CpuSet) {
        // Several threads at a time are not counted exactly.
        let Some(mut window) = self.window.try_lock() else { return };
        if window.requests == 0 {
            window.thread = thread;
        }
        window.requests += 1;
        window.others += u32::from(thread != window.thread);
        window.large += u32::from(len >= LARGE);
        if window.requests < WINDOW {
            return;
        }
        let done = std::mem::take(&mut *window);
        drop(window);
        self.target.store(done.decide(allowed), Ordering::Relaxed);
    }
}

impl Window {
    fn is_of_one_program(&self) -> bool {
        self.thread != 0 && self.others <= OTHERS_MAX && self.large <= OTHERS_MAX
    }

    fn decide(&self, allowed: &CpuSet) -> u32 {
        let cpu = self.is_of_one_program().then(|| processor_of(self.thread)).flatten();
        cpu.filter(|cpu| allowed.is_set(*cpu as usize)).unwrap_or(ANY)
    }
}

/// Moves this thread to a processor, or allows all of them again.
#[cold]
fn move_to(target: u32, allowed: &CpuSet) {
    let set = match target {
        ANY => *allowed,
        cpu => {
            let mut set = CpuSet::new();
            set.set(cpu as usize);
            set
        }
    };
    // A processor can be taken from the process at any time. Then the thread stays where it is.
    let _ = sched_setaffinity(None, &set);
    CURRENT.set(target);
}

/// Returns the processor on which a thread ran last.
fn processor_of(thread: u32) -> Option<u32> {
    processor_in(&std::fs::read_to_string(format!("/proc/{thread}/stat")).ok()?)
}

/// Returns field 39 of the status of a process (proc(5)).
fn processor_in(status: &str) -> Option<u32> {
    // The name of the program, field 2, can contain blanks and parentheses.
    let (_, rest) = status.rsplit_once(") ")?;
    rest.split(' ').nth(39 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_program_with_small_requests_is_followed() {
        let placement = Placement { allowed: None, target: AtomicU32::new(ANY), window: Mutex::default() };
        let allowed = sched_getaffinity(None).unwrap();
        let own = std::process::id();
        let decided = |requests: &dyn Fn(u32) -> (u32, usize)| {
            for i in 0..WINDOW {
                let (thread, len) = requests(i);
                placement.count(thread, len, &allowed);
            }
            placement.target.load(Ordering::Relaxed)
        };
        assert!(allowed.is_set(decided(&|_| (own, 4096)) as usize));
        assert!(allowed.is_set(decided(&|i| (own + u32::from(i % 20 == 5), 4096)) as usize));
        assert_eq!(decided(&|i| (own + i % 2, 4096)), ANY, "two programs");
        assert!(allowed.is_set(decided(&|_| (own, 4096)) as usize));
        assert_eq!(decided(&|_| (own, 1 << 20)), ANY, "large requests");
        assert_eq!(decided(&|_| (0, 4096)), ANY, "a program that is not visible");
        assert_eq!(decided(&|_| (u32::MAX, 4096)), ANY, "a program that has ended");
    }

    #[test]
    fn the_processor_is_found_behind_any_name() {
        let fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        assert_eq!(processor_in(&format!("7 (a) b (c) {}", fields.join(" "))), Some(39));
        assert_eq!(processor_in("7 (a"), None);
        assert_eq!(processor_in("7 (a) S 1"), None);
    }
}
