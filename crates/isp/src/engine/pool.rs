//! Threads, and the jobs that they share.

use super::control::cancelled;
use super::priority;
use crate::foreground::{Foreground, RECENT};
use crate::outcome::{Failure, Status};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Effect of a step of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// A part was processed.
    Worked,
    /// Other threads have to finish their parts first.
    Blocked,
    /// The job has its outcome.
    Finished,
}

/// Instruction in execution, which any number of threads can advance.
pub(super) trait Steps: Send + Sync {
    /// Processes one part.
    fn step(&self) -> Step;
    /// Requests an early end.
    fn cancel(&self);
}

/// Threads and their jobs.
pub(super) struct Pool {
    state: Mutex<State>,
    work: Condvar,
    threads: usize,
    niceness: Option<i32>,
    foreground: Arc<Foreground>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Arc<dyn Steps>>,
    /// Number of changes after which a blocked job may be able to continue.
    changes: u64,
    handles: Vec<JoinHandle<()>>,
    closing: bool,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(threads: usize, niceness: Option<i32>, foreground: Arc<Foreground>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), work: Condvar::new(), threads, niceness, foreground })
    }

    /// Adds a job. The first one starts the threads.
    pub(super) fn add(self: &Arc<Self>, job: Arc<dyn Steps>) -> Result<(), Failure> {
        let mut state = self.state.lock();
        if state.closing {
            return Err(cancelled());
        }
        while state.handles.len() < self.threads {
            let pool = Arc::clone(self);
            let index = state.handles.len();
            let name = format!("frit-isp-{index}");
            match std::thread::Builder::new().name(name).spawn(move || pool.work(index)) {
                Ok(handle) => state.handles.push(handle),
                Err(error) if state.handles.is_empty() => {
                    return Err(Failure::new(Status::Internal, format!("no thread can be started: {error}")));
                }
                Err(_) => break,
            }
        }
        state.jobs.push_back(job);
        state.changes += 1;
        drop(state);
        self.work.notify_all();
        Ok(())
    }

    /// Cancels all jobs, and ends the threads.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closing = true;
        state.jobs.iter().for_each(|job| job.cancel());
        let handles = std::mem::take(&mut state.handles);
        drop(state);
        self.work.notify_all();
        for handle in handles {
            // The last reference to an engine may be dropped by a callback in one of its threads.
            if handle.thread().id() != std::thread::current().id() {
                let _ = handle.join();
            }
        }
    }

    /// Body of a thread.
    fn work(&self, index: usize) {
        if let Some(niceness) = self.niceness {
            priority::set_niceness(niceness);
        }
        let mut state = self.state.lock();
        loop {
            // While foreground requests come, one thread works, so that a processor is left for them.
            if index > 0 && !state.jobs.is_empty() && !state.closing && self.foreground.is_recent() {
                self.work.wait_for(&mut state, RECENT);
                continue;
            }
            let seen = state.changes;
            let mut worked = false;
            for _ in 0..state.jobs.len() {
                // Jobs take turns, so a short one does not wait for the end of a long one.
                let Some(job) = state.jobs.pop_front() else { break };
                state.jobs.push_back(Arc::clone(&job));
                drop(state);
                let step = job.step();
                state = self.state.lock();
                match step {
                    Step::Worked => worked = true,
                    Step::Blocked => continue,
                    Step::Finished => state.jobs.retain(|other| !Arc::ptr_eq(other, &job)),
                }
                state.changes += 1;
                self.work.notify_all();
                break;
            }
            if state.closing && state.jobs.is_empty() {
                return;
            }
            if !worked && state.changes == seen {
                self.work.wait(&mut state);
            }
        }
    }
}
