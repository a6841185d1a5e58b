//! Writes of instructions, in which users take turns.
//!
//! It takes time until the engine has an instruction: the rights of its sender, its text, the names of its files. Few
//! threads answer the requests of a mount, in the order in which they come, so hundreds of writes of one user would
//! hold up all requests of the others. Therefore such a thread executes a write only while none waits, and one of them
//! never does. Further writes wait here for threads of this module. The next one is of the user for whom fewest of them
//! work, and among those of the one who was served longest ago.

use crate::fuse::file_system::requester;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Threads that work for one user at a time: writes that take long leave the others to other users.
const THREADS_OF_USER: usize = 2;
/// Threads in all.
const THREADS_MAX: usize = 32;
/// Time after which a thread without work ends.
const IDLE: Duration = Duration::from_secs(10);

/// What is done with a write that has waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// It is executed.
    Execute,
    /// Its program got a signal.
    Interrupted,
}

/// A write that waits.
pub(super) struct Waiting {
    /// Number of its request.
    pub(super) unique: u64,
    /// Thread that waits for the answer.
    pub(super) thread: u32,
    /// Executes and answers it. Dropped, it answers with EIO.
    pub(super) answer: Box<dyn FnOnce(Turn) + Send>,
}

/// Writes of one user.
struct Line<W> {
    waiting: VecDeque<W>,
    /// Threads of this module that work for the user.
    threads: usize,
    /// Number of the turn in which the user came or was served last.
    served: u64,
}

impl<W> Line<W> {
    /// Number of writes that threads may take now.
    fn ready(&self) -> usize {
        self.waiting.len().min(THREADS_OF_USER - self.threads)
    }
}

/// Users whose writes wait or are executed by threads of this module.
struct Lines<W> {
    of_users: BTreeMap<u32, Line<W>>,
    turn: u64,
}

impl<W> Lines<W> {
    /// Adds a write of a user.
    fn add(&mut self, user: u32, write: W) {
        self.turn += 1;
        let served = self.turn;
        let line = self.of_users.entry(user);
        let line = line.or_insert_with(|| Line { waiting: VecDeque::new(), threads: 0, served });
        line.waiting.push_back(write);
    }

    /// Takes the next write.
    fn next(&mut self) -> Option<(u32, W)> {
        let ready = self.of_users.iter_mut().filter(|(_, line)| line.ready() > 0);
        let (user, line) = ready.min_by_key(|(_, line)| (line.threads, line.served))?;
        let write = line.waiting.pop_front()?;
        self.turn += 1;
        (line.threads, line.served) = (line.threads + 1, self.turn);
        Some((*user, write))
    }

    /// Notes that a write of a user, which [`next`](Self::next) returned, was executed.
    fn done(&mut self, user: u32) {
        let Some(line) = self.of_users.get_mut(&user) else { return };
        line.threads -= 1;
        if line.threads == 0 && line.waiting.is_empty() {
            self.of_users.remove(&user);
        }
    }

    fn has_waiting(&self) -> bool {
        self.of_users.values().any(|line| !line.waiting.is_empty())
    }

    /// Number of writes that threads may take now.
    fn ready(&self) -> usize {
        self.of_users.values().map(Line::ready).sum()
    }
}

struct State {
    lines: Lines<Waiting>,
    /// Threads for requests that execute a write.
    direct: usize,
    /// Threads of this module.
    threads: usize,
    idle: usize,
    is_closed: bool,
}

struct Shared {
    state: Mutex<State>,
    /// Wakes threads without work.
    work: Condvar,
    /// A thread has ended.
    ended: Condvar,
}

/// Writes of a mount.
pub(super) struct Admission {
    shared: Arc<Shared>,
    /// Largest number of threads for requests that execute writes.
    direct_max: usize,
}

impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").field("direct_max", &self.direct_max).finish_non_exhaustive()
    }
}

/// A thread for requests that executes a write, until this is dropped.
pub(super) struct Direct<'a>(&'a Shared);

impl Drop for Direct<'_> {
    fn drop(&mut self) {
        self.0.state.lock().direct -= 1;
    }
}

impl Admission {
    /// Creates the admission of a mount with this number of threads for requests.
    pub(super) fn new(threads: usize) -> Admission {
        let lines = Lines { of_users: BTreeMap::new(), turn: 0 };
        let state = State { lines, direct: 0, threads: 0, idle: 0, is_closed: false };
        let (work, ended) = (Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { state: Mutex::new(state), work, ended });
        // A single thread would give each write to another one.
        Admission { shared, direct_max: threads.saturating_sub(1).max(1) }
    }

    /// Returns a permission if the calling thread, which answers requests, may execute a write now.
    pub(super) fn direct(&self) -> Option<Direct<'_>> {
        let mut state = self.shared.state.lock();
        if state.direct >= self.direct_max || state.lines.has_waiting() {
            return None;
        }
        state.direct += 1;
        Some(Direct(&self.shared))
    }

    /// Adds a write of a user, which a thread of this module will execute.
    pub(super) fn add(&self, user: u32, write: Waiting) {
        let mut state = self.shared.state.lock();
        if state.is_closed {
            return;
        }
        if state.threads == 0 && !self.shared.start_thread(&mut state) {
            drop(state);
            return (write.answer)(Turn::Execute);
        }
        state.lines.add(user, write);
        if state.lines.ready() > state.idle && state.threads < THREADS_MAX {
            // Without it, the others take the write.
            self.shared.start_thread(&mut state);
        }
        self.shared.work.notify_one();
    }

    /// Ends a write that waits, if its program got a signal. Others are executed soon.
    pub(super) fn interrupt(&self, unique: u64) {
        let mut state = self.shared.state.lock();
        let found = state.lines.of_users.iter_mut().find_map(|(user, line)| {
            let at = line.waiting.iter().position(|write| write.unique == unique)?;
            if !requester::has_signal(line.waiting[at].thread) {
                return None;
            }
            let write = line.waiting.remove(at)?;
            Some((*user, line.threads == 0 && line.waiting.is_empty(), write))
        });
        let Some((user, is_last, write)) = found else { return };
        if is_last {
            state.lines.of_users.remove(&user);
        }
        drop(state);
        (write.answer)(Turn::Interrupted);
    }

    /// Answers all writes that wait with EIO, and waits until no thread of this module is left.
    pub(super) fn close(&self) {
        let mut state = self.shared.state.lock();
        state.is_closed = true;
        let waiting: Vec<_> =
            state.lines.of_users.values_mut().map(|line| std::mem::take(&mut line.waiting)).collect();
        MutexGuard::unlocked(&mut state, || drop(waiting));
        self.shared.work.notify_all();
        while state.threads > 0 {
            self.shared.ended.wait(&mut state);
        }
    }
}

impl Shared {
    fn start_thread(self: &Arc<Self>, state: &mut State) -> bool {
        let shared = Arc::clone(self);
        let thread = std::thread::Builder::new().name("isp-writes".into());
        let is_started = thread.spawn(move || shared.work()).is_ok();
        state.threads += usize::from(is_started);
        is_started
    }

    /// Body of a thread.
    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some((user, write)) = state.lines.next() {
                MutexGuard::unlocked(&mut state, || {
                    // A panic has dropped the reply, which is answered so.
                    let _ = catch_unwind(AssertUnwindSafe(|| (write.answer)(Turn::Execute)));
                });
                state.lines.done(user);
                continue;
            }
            if state.is_closed {
                break;
            }
            state.idle += 1;
            let is_over = self.work.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
            if is_over && state.lines.ready() == 0 {
                break;
            }
        }
        state.threads -= 1;
        self.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Act {
        Add(u32),
        Next,
        Done(usize),
    }

    fn act() -> impl Strategy<Value = Act> {
        // Most writes are those of one user.
        let user = prop_oneof![4 => Just(0_u32), 1 => 0_u32..6];
        prop_oneof![3 => user.prop_map(Act::Add), 2 => Just(Act::Next), 2 => (0_usize..8).prop_map(Act::Done)]
    }

    fn lines() -> Lines<usize> {
        Lines { of_users: BTreeMap::new(), turn: 0 }
    }

    proptest! {
        /// Any writes, with any number of threads: the writes of a user keep their order, none is lost, and no user
        /// is passed over for another one who has more threads, or as many and was served since.
        #[test]
        fn users_take_turns(acts in proptest::collection::vec(act(), 1..300)) {
            let mut lines = lines();
            let mut waiting: BTreeMap<u32, VecDeque<usize>> = BTreeMap::new();
            let mut working: Vec<u32> = Vec::new();
            // Users who were passed over, since each came or was served.
            let mut passed: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for (number, act) in acts.into_iter().enumerate() {
                match act {
                    Act::Add(user) => {
                        lines.add(user, number);
                        waiting.entry(user).or_default().push_back(number);
                    }
                    Act::Next => {
                        let threads = |user: u32| working.iter().filter(|other| **other == user).count();
                        let ready: Vec<_> = waiting
                            .iter()
                            .filter(|(user, line)| !line.is_empty() && threads(**user) < THREADS_OF_USER)
                            .map(|(user, _)| *user)
                            .collect();
                        let Some((user, write)) = lines.next() else {
                            prop_assert!(ready.is_empty());
                            continue;
                        };
                        prop_assert_eq!(waiting.get_mut(&user).and_then(VecDeque::pop_front), Some(write));
                        passed.remove(&user);
                        for other in ready.into_iter().filter(|other| *other != user) {
                            prop_assert!(threads(other) >= threads(user));
                            let before = passed.entry(other).or_default();
                            let again = before.iter().filter(|passed| **passed == user).count();
                            prop_assert!(threads(other) > threads(user) || again < THREADS_OF_USER, "{other} {user}");
                            before.push(user);
                        }
                        working.push(user);
                    }
                    Act::Done(at) if at < working.len() => lines.done(working.swap_remove(at)),
                    Act::Done(_) => {}
                }
                let writes = waiting.values().map(VecDeque::len).sum::<usize>();
                prop_assert_eq!(lines.has_waiting(), writes > 0);
                prop_assert!(lines.ready() <= writes);
            }
        }
    }

    #[test]
    fn a_user_does_not_wait_for_the_writes_of_another_one() {
        let mut lines = lines();
        (0..400).for_each(|write| lines.add(0, write));
        let taken: Vec<_> = std::iter::from_fn(|| lines.next()).collect();
        assert_eq!(taken, [(0, 0), (0, 1)]);
        // No thread more for the same user, and the next one for another.
        lines.add(1, 1000);
        assert_eq!((lines.ready(), lines.next()), (1, Some((1, 1000))));
        lines.done(0);
        lines.add(1, 1001);
        lines.done(1);
        assert_eq!(lines.next(), Some((1, 1001)));
    }

    #[test]
    fn a_thread_for_requests_is_always_left() {
        let admission = Admission::new(3);
        let direct = [admission.direct(), admission.direct()];
        assert!(direct.iter().all(Option::is_some) && admission.direct().is_none());
        drop(direct);
        assert!(admission.direct().is_some());
        // Nobody overtakes those who wait.
        admission.shared.state.lock().threads = 1;
        let (sender, answers) = std::sync::mpsc::channel();
        let write = |unique, thread| {
            let sender = sender.clone();
            Waiting { unique, thread, answer: Box::new(move |turn| sender.send((unique, turn)).unwrap()) }
        };
        admission.shared.state.lock().idle = 9;
        admission.add(7, write(1, u32::MAX));
        admission.add(7, write(2, std::process::id()));
        assert!(admission.direct().is_none());
        // A thread that is not there has a signal, and this one has none.
        admission.interrupt(1);
        admission.interrupt(2);
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), [(1, Turn::Interrupted)]);
        {
            let mut state = admission.shared.state.lock();
            (state.idle, state.threads) = (0, 0);
        }
        admission.add(8, write(3, 0));
        let mut done: Vec<_> = (0..2).map(|_| answers.recv().unwrap()).collect();
        done.sort_unstable_by_key(|(unique, _)| *unique);
        assert_eq!(done, [(2, Turn::Execute), (3, Turn::Execute)]);
        admission.close();
        admission.add(9, write(4, 0));
        assert!(answers.try_recv().is_err() && admission.shared.state.lock().threads == 0);
    }
}
