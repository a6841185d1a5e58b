//! Reads of command files that wait for a result, and can be interrupted.

use frit_fuse::{Errno, ReplyRead};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Interruptions that are kept for reads that come later: another thread may receive the interruption
/// before this one has noted the read. Most are for requests that never wait.
const EARLY_MAX: usize = 64;

/// Reads that wait.
#[derive(Debug, Default)]
pub(super) struct WaitingReads(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    reads: HashMap<u64, Arc<WaitingRead>>,
    early: VecDeque<u64>,
}

/// A read that waits.
#[derive(Debug)]
pub(super) struct WaitingRead {
    unique: u64,
    /// `None` after the reply.
    reply: Mutex<Option<ReplyRead>>,
}

impl WaitingReads {
    /// Adds a read. Returns `None` if it was interrupted already, and answers it.
    pub(super) fn add(&self, unique: u64, reply: ReplyRead) -> Option<Arc<WaitingRead>> {
        let mut state = self.0.lock();
        if let Some(at) = state.early.iter().position(|&early| early == unique) {
            state.early.remove(at);
            drop(state);
            reply.error(Errno::EINTR);
            return None;
        }
        let read = Arc::new(WaitingRead { unique, reply: Mutex::new(Some(reply)) });
        state.reads.insert(unique, Arc::clone(&read));
        Some(read)
    }

    /// Answers a read with EINTR.
    pub(super) fn interrupt(&self, unique: u64) {
        let mut state = self.0.lock();
        match state.reads.remove(&unique) {
            Some(read) => {
                drop(state);
                if let Some(reply) = read.reply.lock().take() {
                    reply.error(Errno::EINTR);
                }
            }
            None => {
                if state.early.len() == EARLY_MAX {
                    state.early.pop_front();
                }
                state.early.push_back(unique);
            }
        }
    }

    /// Removes a read that was answered.
    pub(super) fn remove(&self, read: &WaitingRead) {
        self.0.lock().reads.remove(&read.unique);
    }
}

impl WaitingRead {
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
