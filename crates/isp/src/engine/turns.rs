//! Processor time of users, and the wait of those who are ahead of others.
//!
//! Users, and not instructions or threads, share the processors: the next step is one of the user with the least
//! processor time (start-time fair queueing: Goyal, Vin and Cheng, IEEE/ACM Transactions on Networking 5(5), 1997),
//! and long steps wait at the points where they also wait for foreground requests. With a single user, nothing
//! waits and nothing is measured between steps.

use super::User;
use super::control::cpu_ns;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Processor time by which a user may be ahead: a few interruptions of a program.
const AHEAD_NS: u64 = 5_000_000;
/// Number of users who go on at a time, for each processor, if there are too few processors.
const RUNNING_USERS: usize = 2;
/// Largest part of the lead of a user that counts, so that a step which could not wait stops no user for long.
const LEAD_NS_MAX: u64 = 1_000_000_000;
/// Time between two looks of a thread at the others.
const LOOK: Duration = Duration::from_millis(1);
/// Longest wait at a time. So everybody goes on, if slowly, also beside users who wait for something else.
const PATIENCE: Duration = Duration::from_millis(100);
/// Time between two looks while a thread waits.
const POLL: Duration = Duration::from_millis(5);
/// Number of users for whom these times are as long again, so that those who are ahead take no more time of the others
/// if they are many.
const CROWD: usize = 16;
/// Number of users with a known time beyond which those without instructions are forgotten.
const USERS_KEPT: usize = 256;

thread_local! {
    /// Processor time of this thread that is accounted for, and the time of the last look, in a step of the pool.
    static STEP: Cell<Option<(u64, Instant)>> = const { Cell::new(None) };
}

/// Processor time of a user, in nanoseconds from a common begin.
#[derive(Default, Debug)]
pub(super) struct Usage(AtomicU64);

impl Usage {
    pub(super) fn ns(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds processor time.
    pub(super) fn add(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::Relaxed);
    }

    /// Adds the processor time of this thread since the last call in the step.
    fn account(&self) {
        if let Some((before, looked)) = STEP.get() {
            let now = cpu_ns();
            self.add(now.saturating_sub(before));
            STEP.set(Some((now, looked)));
        }
    }
}

/// Users and their processor time.
#[derive(Debug)]
pub(super) struct Turns {
    /// Number of users who have work.
    users: AtomicUsize,
    /// Number of threads in a step that do not wait here.
    running: AtomicUsize,
    /// Number of threads that make all processors busy.
    processors: usize,
    state: Mutex<State>,
}

#[derive(Default, Debug)]
struct State {
    users: HashMap<User, Arc<Usage>>,
    /// Those who have work.
    active: Vec<Arc<Usage>>,
    /// Least time of the users with work, which never falls. Whoever had none begins with it.
    floor: u64,
}

impl State {
    fn raise_floor(&mut self) {
        if let Some(least) = self.active.iter().map(|usage| usage.ns()).min() {
            self.floor = self.floor.max(least);
        }
    }
}

impl Turns {
    pub(super) fn new(processors: usize) -> Arc<Self> {
        let (users, running) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { users, running, processors, state: Mutex::default() })
    }

    /// Returns the time of a user.
    pub(super) fn usage(&self, user: User) -> Arc<Usage> {
        let mut state = self.state.lock();
        if state.users.len() >= USERS_KEPT {
            let floor = state.floor;
            state.users.retain(|_, usage| Arc::strong_count(usage) > 1 || usage.ns() > floor);
        }
        Arc::clone(state.users.entry(user).or_default())
    }

    /// Notes that a user has work from now on.
    pub(super) fn begin(&self, usage: &Arc<Usage>) {
        let mut state = self.state.lock();
        state.raise_floor();
        if state.active.iter().any(|active| Arc::ptr_eq(active, usage)) {
            return;
        }
        // Nobody saves time that was not used, nor owes more than a little.
        let floor = state.floor;
        usage.0.store(usage.ns().clamp(floor, floor.saturating_add(LEAD_NS_MAX)), Ordering::Relaxed);
        state.active.push(Arc::clone(usage));
        self.users.store(state.active.len(), Ordering::Relaxed);
    }

    /// Notes that a user has no work now, or that all of it waits.
    pub(super) fn end(&self, usage: &Arc<Usage>) {
        let mut state = self.state.lock();
        state.raise_floor();
        state.active.retain(|active| !Arc::ptr_eq(active, usage));
        self.users.store(state.active.len(), Ordering::Relaxed);
    }

    /// Runs a step of a user, and counts its processor time.
    pub(super) fn step<T>(&self, usage: &Usage, step: impl FnOnce() -> T) -> T {
        self.running.fetch_add(1, Ordering::Relaxed);
        STEP.set(Some((cpu_ns(), Instant::now())));
        let result = step();
        usage.account();
        STEP.set(None);
        self.running.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// Waits in a step while the user is ahead of others that have too few processors, and `stop` returns `false`.
    pub(super) fn pass(&self, usage: &Usage, stop: &dyn Fn() -> bool) {
        let users = self.users.load(Ordering::Relaxed);
        if users <= 1 {
            return;
        }
        // Threads that answer requests of a mount are none of the pool, and must not wait.
        let Some((counted, looked)) = STEP.get() else { return };
        let began = Instant::now();
        if began.duration_since(looked) < LOOK {
            return;
        }
        STEP.set(Some((counted, began)));
        usage.account();
        if !self.has_to_wait(usage, 0) {
            return;
        }
        self.running.fetch_sub(1, Ordering::Relaxed);
        let (patience, poll) = waits_beside(users);
        while began.elapsed() < patience && !stop() {
            std::thread::sleep(poll);
            if !self.has_to_wait(usage, 1) {
                break;
            }
        }
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns `true` if a user is ahead, and `more` threads beside those that run would be too many.
    fn has_to_wait(&self, usage: &Usage, more: usize) -> bool {
        if self.running.load(Ordering::Relaxed) + more <= self.processors {
            return false;
        }
        let mut state = self.state.lock();
        state.raise_floor();
        let own = usage.ns();
        let least = state.active.iter().map(|active| active.ns()).min();
        // Of many users with about the same time, only a few go on: the others would leave a newcomer too little.
        let is_late = || {
            let before = state.active.iter().filter(|active| active.ns() < own).count();
            before >= RUNNING_USERS * self.processors
        };
        least.is_some_and(|least| own > least.saturating_add(AHEAD_NS)) || is_late()
    }
}

/// Returns the longest wait at a time beside a number of users, and the time between two looks.
fn waits_beside(users: usize) -> (Duration, Duration) {
    let times = 1 + (users / CROWD) as u32;
    (PATIENCE * times, (POLL * times).min(PATIENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_users_who_are_ahead_leave_the_processors_to_others() {
        for users in [2, 16, 50, 100, 500, 5000] {
            let (patience, poll) = waits_beside(users);
            // Each goes on for the time until its next look.
            let used = LOOK.as_secs_f64() * users as f64 / patience.as_secs_f64();
            assert!(used < 0.2 && poll <= PATIENCE, "{users} use {used} processors");
        }
    }

    fn never() -> bool {
        false
    }

    #[test]
    fn a_newcomer_begins_with_the_least_time_of_the_others() {
        let turns = Turns::new(1);
        let [first, second, third] = [0, 1, 2].map(|user| turns.usage(User(user)));
        turns.begin(&first);
        first.add(70);
        turns.begin(&second);
        assert_eq!(second.ns(), 70);
        second.add(10);
        turns.end(&second);
        // What others do meanwhile is not saved up, and what was used is not forgotten.
        first.add(3);
        turns.begin(&second);
        assert_eq!((first.ns(), second.ns()), (73, 80));
        first.add(100);
        second.add(10);
        turns.end(&first);
        turns.end(&second);
        turns.begin(&third);
        assert_eq!(third.ns(), 90);
        // A debt has an end.
        let fourth = turns.usage(User(3));
        fourth.add(1 << 50);
        turns.begin(&fourth);
        assert_eq!(fourth.ns(), 90 + LEAD_NS_MAX);
    }

    #[test]
    fn who_is_ahead_waits_if_there_are_too_few_processors() {
        let waits = |users: u32, running: usize, ahead_ns: u64| {
            let turns = Turns::new(2);
            let usages: Vec<_> = (0..users).map(|user| turns.usage(User(user))).collect();
            usages.iter().for_each(|usage| turns.begin(usage));
            usages[0].add(ahead_ns);
            turns.running.store(running - 1, Ordering::Relaxed);
            let began = Instant::now();
            turns.step(&usages[0], || {
                std::thread::sleep(2 * LOOK);
                turns.pass(&usages[0], &never);
            });
            began.elapsed() >= PATIENCE
        };
        assert!(waits(2, 3, 10 * AHEAD_NS));
        assert!(!waits(1, 3, 10 * AHEAD_NS), "there is no other");
        assert!(!waits(2, 2, 10 * AHEAD_NS), "both processors are busy, and no more threads want them");
    }

    #[test]
    fn of_many_users_with_the_same_time_a_few_go_on() {
        let turns = Turns::new(2);
        let usages: Vec<_> = (0..100).map(|user| turns.usage(User(user))).collect();
        usages.iter().for_each(|usage| turns.begin(usage));
        usages.iter().zip(1..).for_each(|(usage, ns)| usage.add(ns));
        let going_on = || usages.iter().filter(|usage| !turns.has_to_wait(usage, 0)).count();
        assert_eq!(going_on(), 100, "there are processors for all");
        turns.running.store(100, Ordering::Relaxed);
        assert_eq!(going_on(), RUNNING_USERS * 2);
        // A newcomer is one of them.
        let newcomer = turns.usage(User(100));
        turns.begin(&newcomer);
        assert!(!turns.has_to_wait(&newcomer, 1) && going_on() <= RUNNING_USERS * 2);
    }

    #[test]
    fn threads_outside_of_the_pool_do_not_wait() {
        let turns = Turns::new(1);
        let [first, second] = [0, 1].map(|user| turns.usage(User(user)));
        turns.begin(&first);
        turns.begin(&second);
        first.add(1 << 40);
        turns.running.store(9, Ordering::Relaxed);
        let began = Instant::now();
        turns.pass(&first, &|| panic!("it would wait"));
        assert!(first.ns() == 1 << 40 && began.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_wait_ends_when_the_instruction_is_cancelled() {
        let turns = Turns::new(1);
        let [first, second] = [0, 1].map(|user| turns.usage(User(user)));
        turns.begin(&first);
        turns.begin(&second);
        first.add(1 << 40);
        turns.running.store(9, Ordering::Relaxed);
        let asked = Cell::new(0);
        turns.step(&first, || {
            std::thread::sleep(2 * LOOK);
            turns.pass(&first, &|| {
                asked.set(asked.get() + 1);
                true
            });
        });
        assert_eq!(asked.get(), 1);
        assert_eq!(turns.running.load(Ordering::Relaxed), 9);
    }
}
