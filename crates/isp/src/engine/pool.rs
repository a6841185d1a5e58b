//! Threads, and the jobs that they share.

use super::User;
use super::control::cancelled;
use super::priority;
use super::queue::{Choice, Next, Queue, Taken};
use super::turns::Turns;
use crate::foreground::{Foreground, RECENT};
use crate::outcome::Failure;
use crate::scan::StepTime;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Effect of a step of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// A part was processed.
    Worked,
    /// Other threads have to finish their parts first.
    Blocked,
    /// It has not begun, because its user has no memory. It is tried again after a while.
    Waits,
    /// The job has its outcome.
    Finished,
}

/// Instruction in execution, which any number of threads can advance.
pub(super) trait Steps: Send + Sync {
    /// Processes one part.
    fn step(&self) -> Step;
    /// Requests an early end.
    fn cancel(&self);
    /// Returns the time that a step can take.
    fn step_time(&self) -> StepTime;
}

/// A thread whose step lasts longer is stuck: in a program, or in a search that takes long for each byte.
const STUCK: Duration = Duration::from_millis(50);
/// The same while foreground requests come: a step waits for them at each of its chunks (16 of 50 ms).
const STUCK_BESIDE_REQUESTS: Duration = Duration::from_secs(1);
/// Maximum number of threads beside the usual ones, which work while those are stuck.
const SPARE_THREADS: usize = 16;
/// Number of them that steps of [`StepTime::Endless`] leave to others.
const SPARE_BESIDE_ENDLESS: usize = 8;
/// Number of them that steps of [`StepTime::Long`] leave to others.
const SPARE_BESIDE_LONG: usize = 4;
/// Number of further threads, for users who have none for as long as a step that is stuck: long steps of others
/// hold up nobody. There is one for each user who can have memory at a time, within these limits.
const THREADS_FOR_USERS: std::ops::RangeInclusive<usize> = 48..=512;
/// Time after which a thread without work ends, if it is neither a usual one nor the first spare one.
const IDLE: Duration = Duration::from_secs(1);
/// Time after which a job that waits is tried again.
const TRY_AGAIN: Duration = Duration::from_millis(5);

/// Numbers of threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threads {
    /// Usual ones.
    usual: usize,
    /// Further ones for users who have none.
    for_users: usize,
}

impl Threads {
    /// Returns the numbers for a number of usual threads and of users who can have memory at a time.
    pub(super) fn new(usual: usize, users: usize) -> Self {
        Self { usual, for_users: users.clamp(*THREADS_FOR_USERS.start(), *THREADS_FOR_USERS.end()) }
    }

    fn most(self) -> usize {
        self.usual + SPARE_THREADS + self.for_users
    }
}

/// Threads and their jobs. If all threads are stuck, another one processes the jobs that have none, so that a few
/// long steps do not hold up the instructions of others.
pub(super) struct Pool {
    state: Mutex<State>,
    turns: Arc<Turns>,
    /// Wakes the usual threads.
    work: Condvar,
    /// Wakes the spare ones.
    spare: Condvar,
    threads: Threads,
    niceness: Option<i32>,
    foreground: Arc<Foreground>,
}

struct State {
    jobs: Queue,
    /// Begin of the step of each thread, by its number.
    begun: Vec<Option<Instant>>,
    handles: Vec<JoinHandle<()>>,
    closing: bool,
}

impl State {
    /// Returns `true` if the threads before this one are in steps that last as long.
    fn are_stuck(&self, before: usize, limit: Duration) -> bool {
        let is_stuck = |begun: &Option<Instant>| begun.is_some_and(|begun| begun.elapsed() >= limit);
        self.begun.get(..before).is_some_and(|all| all.iter().all(is_stuck))
    }

    /// Returns the longest step that a further thread may begin, if `threads` are the usual ones: the others
    /// have to find threads as well.
    fn longest_step(&self, threads: usize) -> StepTime {
        let busy = |time: StepTime| self.jobs.busy(time);
        let most = threads + SPARE_THREADS;
        if busy(StepTime::Long) >= most - SPARE_BESIDE_LONG {
            StepTime::Short
        } else if busy(StepTime::Endless) >= most - SPARE_BESIDE_ENDLESS {
            StepTime::Long
        } else {
            StepTime::Endless
        }
    }

    /// Returns the jobs that a thread may take now, beside `usual` ones of which all may work, of `threads`.
    fn choices(
        &self,
        index: usize,
        (usual, threads): (usize, Threads),
        limit: Duration,
    ) -> [Option<Choice>; 2] {
        let longest = self.longest_step(threads.usual);
        let is_usual = index < usual || self.closing;
        let busy = self.begun.iter().flatten().count().saturating_sub(self.jobs.for_users());
        let is_spare = busy < threads.usual + SPARE_THREADS && self.are_stuck(index, limit);
        // An idle thread would take a job of a user without one as well, whatever its steps take.
        let are_busy = self.begun.iter().take(usual).all(Option::is_some) || longest < StepTime::Endless;
        let own = is_usual.then_some(Choice::Usual(longest)).or(is_spare.then_some(Choice::Spare(longest)));
        let is_free = are_busy && self.jobs.for_users() < threads.for_users;
        [own, is_free.then_some(Choice::Without(STUCK))]
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(
        threads: Threads,
        niceness: Option<i32>,
        foreground: Arc<Foreground>,
        turns: &Arc<Turns>,
    ) -> Arc<Self> {
        let (work, spare) = (Condvar::new(), Condvar::new());
        let state = Mutex::new(State {
            jobs: Queue::new(turns),
            begun: Vec::new(),
            handles: Vec::new(),
            closing: false,
        });
        Arc::new(Self { state, turns: Arc::clone(turns), work, spare, threads, niceness, foreground })
    }

    /// Adds a job of a user. The first one starts the threads.
    pub(super) fn add(self: &Arc<Self>, user: User, job: Arc<dyn Steps>) -> Result<(), Failure> {
        let mut state = self.state.lock();
        if state.closing {
            return Err(cancelled());
        }
        // One is spare.
        while state.handles.len() <= self.threads.usual {
            match self.start_thread(&mut state) {
                Err(error) if state.handles.is_empty() => {
                    return Err(Failure::no_thread(&error));
                }
                Err(_) => break,
                Ok(()) => {}
            }
        }
        self.keep_spare(&mut state);
        state.jobs.add(user, job, Instant::now());
        state.jobs.changes += 1;
        drop(state);
        self.work.notify_all();
        self.spare.notify_all();
        Ok(())
    }

    /// Starts another thread if the last one is in a step. If that fails, it is tried again with the next job.
    fn keep_spare(self: &Arc<Self>, state: &mut State) {
        let is_busy = state.begun.last().is_some_and(Option::is_some);
        if is_busy && state.handles.len() < self.threads.most() && !state.closing {
            // Without it, other jobs wait.
            let _ = self.start_thread(state);
        }
    }

    fn start_thread(self: &Arc<Self>, state: &mut State) -> std::io::Result<()> {
        let pool = Arc::clone(self);
        let index = state.handles.len();
        let name = format!("frit-isp-{index}");
        let handle = std::thread::Builder::new().name(name).spawn(move || pool.work(index))?;
        state.handles.push(handle);
        state.begun.push(None);
        Ok(())
    }

    /// Cancels all jobs, and ends the threads.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closing = true;
        state.jobs.jobs().for_each(|job| job.cancel());
        let handles = std::mem::take(&mut state.handles);
        drop(state);
        self.work.notify_all();
        self.spare.notify_all();
        for handle in handles {
            // The last reference to an engine may be dropped by a callback in one of its threads.
            if handle.thread().id() != std::thread::current().id() {
                let _ = handle.join();
            }
        }
    }

    /// Body of a thread.
    fn work(self: &Arc<Self>, index: usize) {
        if let Some(niceness) = self.niceness {
            priority::set_niceness(niceness);
        }
        let mut state = self.state.lock();
        let mut worked_at = Instant::now();
        loop {
            // While foreground requests come, one thread works, so that a processor is left for them.
            let (usual, limit) = match self.foreground.is_recent() {
                true => (1, STUCK_BESIDE_REQUESTS),
                false => (self.threads.usual, STUCK),
            };
            let is_usual = index < usual || state.closing;
            let seen = state.jobs.changes;
            let mut worked = false;
            for _ in 0..state.jobs.len() {
                // Jobs take turns, so a short one does not wait for the end of a long one.
                let choices = state.choices(index, (usual, self.threads), limit);
                let now = Instant::now();
                let Some(taken) =
                    choices.into_iter().flatten().find_map(|choice| state.jobs.take(choice, now))
                else {
                    break;
                };
                let step = self.step(&mut state, index, &taken);
                worked_at = Instant::now();
                match step {
                    Step::Worked => worked = true,
                    Step::Blocked | Step::Waits => continue,
                    Step::Finished => state.jobs.remove(&taken.job, Instant::now()),
                }
                state.jobs.changes += 1;
                self.work.notify_all();
                if state.closing {
                    self.spare.notify_all();
                }
                break;
            }
            if state.closing && state.jobs.is_empty() {
                return;
            }
            if !worked && state.jobs.changes == seen {
                self.wait(&mut state, index, is_usual);
                if worked_at.elapsed() >= IDLE && self.is_surplus(&state, index) {
                    // The number of threads is that of the handles.
                    state.begun.pop();
                    state.handles.pop();
                    return;
                }
            }
        }
    }

    /// Waits for work. A thread that works only at times looks again while there are jobs.
    fn wait(&self, state: &mut MutexGuard<'_, State>, index: usize, is_usual: bool) {
        let has_jobs = !state.jobs.is_empty();
        if is_usual && state.jobs.has_waiting() {
            self.work.wait_for(state, TRY_AGAIN);
        } else if index >= self.threads.usual {
            match has_jobs {
                true => _ = self.spare.wait_for(state, STUCK),
                false if index == self.threads.usual => self.spare.wait(state),
                false => _ = self.spare.wait_for(state, IDLE),
            }
        } else if is_usual || !has_jobs {
            self.work.wait(state);
        } else {
            self.work.wait_for(state, RECENT);
        }
    }

    /// Returns `true` if a thread is the last one, and the one before it is a spare one without work.
    fn is_surplus(&self, state: &State, index: usize) -> bool {
        let is_last = index + 1 == state.handles.len() && !state.closing;
        is_last && index > self.threads.usual && state.begun.get(index - 1).is_some_and(Option::is_none)
    }

    /// Processes a part of a job without the lock of the state.
    fn step(self: &Arc<Self>, state: &mut MutexGuard<'_, State>, index: usize, taken: &Taken) -> Step {
        if let Some(begun) = state.begun.get_mut(index) {
            *begun = Some(Instant::now());
        }
        // The last thread may get stuck as well.
        self.keep_spare(state);
        let step = MutexGuard::unlocked(state, || self.turns.step(&taken.usage, || taken.job.step()));
        if let Some(begun) = state.begun.get_mut(index) {
            *begun = None;
        }
        let now = Instant::now();
        let next = match step {
            Step::Worked | Step::Finished => Next::Ready,
            Step::Blocked => Next::Blocked,
            Step::Waits => Next::Waits { until: now + TRY_AGAIN },
        };
        state.jobs.give_back(taken, next, now);
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job whose steps are all the same.
    struct Same(Step, StepTime);

    impl Steps for Same {
        fn step(&self) -> Step {
            self.0
        }

        fn cancel(&self) {}

        fn step_time(&self) -> StepTime {
            self.1
        }
    }

    #[test]
    fn a_job_gets_a_thread_although_the_last_one_could_not_start_another() {
        let pool = Pool::new(Threads::new(1, 0), None, Arc::default(), &Turns::new(1));
        {
            let stuck = Instant::now().checked_sub(Duration::from_secs(9));
            let mut state = pool.state.lock();
            state.handles = (0..2).map(|_| std::thread::spawn(|| ())).collect();
            state.begun = vec![stuck; 2];
        }
        pool.add(User(0), Arc::new(Same(Step::Finished, StepTime::Short))).unwrap();
        assert_eq!(pool.state.lock().handles.len(), 3);
        let end = Instant::now() + Duration::from_secs(60);
        while !pool.state.lock().jobs.is_empty() {
            assert!(Instant::now() < end, "no thread has taken it");
            std::thread::yield_now();
        }
        pool.close();
    }

    #[test]
    fn a_user_without_a_thread_gets_one_unless_an_idle_thread_may_take_the_job() {
        let (turns, now, threads) = (Turns::new(1), Instant::now(), Threads::new(1, 0));
        let mut jobs = Queue::new(&turns);
        let most = (1 + SPARE_THREADS - SPARE_BESIDE_ENDLESS) as u32;
        (0..=most)
            .for_each(|user| jobs.add(User(user), Arc::new(Same(Step::Worked, StepTime::Endless)), now));
        let mut state = State { jobs, begun: vec![None], handles: Vec::new(), closing: false };
        for taken in 0..=most {
            // The usual thread is idle, and the last one looks for work.
            let index = state.begun.len();
            let [_, without] = state.choices(index, (1, threads), STUCK);
            assert_eq!(matches!(without, Some(Choice::Without(_))), taken == most, "{taken}");
            let choice = without.unwrap_or(Choice::Usual(StepTime::Endless));
            assert!(state.jobs.take(choice, now + STUCK).is_some());
            state.begun.push(Some(now));
        }
    }
}
