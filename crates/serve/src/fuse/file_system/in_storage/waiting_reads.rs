//! Reads of command files that wait for a result, and can be interrupted.

use crate::fuse::file_system::requester;
use frit_fuse::{Errno, ReplyRead, Request};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Interruptions that are kept for reads that come later: another thread may receive the interruption
/// before this one has noted the read. Most are for requests that never wait.
const EARLY_MAX: usize = 64;
/// Interval at which threads are looked at that were interrupted without a signal.
const WATCH: Duration = Duration::from_millis(50);

/// Reads that wait.
///
/// The kernel interrupts a request also without a signal, or for one that the program does not take
/// notice of, such as those by which the C library changes the user of all threads. Such a read goes on
/// waiting. The kernel reports no second interruption of it, so its thread is looked at from then on.
#[derive(Debug, Default)]
pub(super) struct WaitingReads(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    reads: HashMap<u64, Arc<WaitingRead>>,
    early: VecDeque<u64>,
    /// Reads that were interrupted without a signal.
    watched: Vec<u64>,
    /// A thread looks at the watched reads.
    has_watcher: bool,
}

/// A read that waits.
#[derive(Debug)]
pub(super) struct WaitingRead {
    unique: u64,
    thread: u32,
    /// `None` after the reply.
    reply: Mutex<Option<ReplyRead>>,
}

impl WaitingReads {
    /// Adds a read of the sender of a request.
    pub(super) fn add(self: &Arc<Self>, request: &Request, reply: ReplyRead) -> Arc<WaitingRead> {
        let (unique, thread) = (request.unique(), request.pid());
        let read = Arc::new(WaitingRead { unique, thread, reply: Mutex::new(Some(reply)) });
        let mut state = self.0.lock();
        state.reads.insert(unique, Arc::clone(&read));
        let early = state.early.iter().position(|&early| early == unique);
        if let Some(at) = early {
            state.early.remove(at);
            drop(state);
            self.interrupt(unique);
        }
        read
    }

    /// Answers a read with EINTR, if its thread has a signal.
    pub(super) fn interrupt(self: &Arc<Self>, unique: u64) {
        let mut state = self.0.lock();
        let Some(read) = state.reads.get(&unique).map(Arc::clone) else {
            if state.early.len() == EARLY_MAX {
                state.early.pop_front();
            }
            return state.early.push_back(unique);
        };
        if requester::has_signal(read.thread) {
            state.reads.remove(&unique);
            drop(state);
            return read.interrupt();
        }
        state.watched.push(unique);
        if !state.has_watcher {
            let reads = Arc::downgrade(self);
            let watcher = std::thread::Builder::new().name("signals".into());
            // Without a thread, the read waits for its result.
            state.has_watcher = watcher.spawn(move || watch(&reads)).is_ok();
        }
    }

    /// Answers watched reads whose threads have a signal. Returns `false` if none is left.
    fn look(&self) -> bool {
        let mut state = self.0.lock();
        let State { reads, watched, .. } = &mut *state;
        let mut interrupted = Vec::new();
        watched.retain(|unique| match reads.get(unique) {
            Some(read) if requester::has_signal(read.thread) => {
                interrupted.extend(reads.remove(unique));
                false
            }
            read => read.is_some(),
        });
        state.has_watcher = !state.watched.is_empty();
        let goes_on = state.has_watcher;
        drop(state);
        interrupted.iter().for_each(|read| read.interrupt());
        goes_on
    }

    /// Removes a read that was answered.
    pub(super) fn remove(&self, read: &WaitingRead) {
        self.0.lock().reads.remove(&read.unique);
    }
}

fn watch(reads: &Weak<WaitingReads>) {
    loop {
        std::thread::sleep(WATCH);
        if !reads.upgrade().is_some_and(|reads| reads.look()) {
            return;
        }
    }
}

impl WaitingRead {
    /// Answers with EINTR, if the read still waits.
    pub(super) fn interrupt(&self) {
        if let Some(reply) = self.reply.lock().take() {
            reply.error(Errno::EINTR);
        }
    }

    /// Answers with a result, if there is one and the read still waits. Returns `true` if it no
    /// longer waits.
    pub(super) fn with_reply(&self, result: impl FnOnce() -> Option<Result<Vec<u8>, Errno>>) -> bool {
        let mut reply = self.reply.lock();
        if reply.is_none() {
            return true;
        }
        let Some(result) = result() else { return false };
        match (reply.take(), result) {
            (Some(reply), Ok(bytes)) => reply.data(&bytes),
            (Some(reply), Err(error)) => reply.error(error),
            (None, _) => {}
        }
        true
    }
}
