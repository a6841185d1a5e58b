//! Access to the outcome of a submitted instruction.

use super::memory::Charge;
use crate::outcome::{Failure, Outcome};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Function that is called once, when an instruction is complete.
type Callback = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    done: Condvar,
    cancelled: AtomicBool,
}

#[derive(Default)]
struct State {
    outcome: Option<Arc<Outcome>>,
    callbacks: Vec<Callback>,
    /// Memory of the instruction, and then of its outcome.
    memory: Vec<Charge>,
}

/// Access to the outcome of a submitted instruction. Copies refer to the same instruction.
#[derive(Clone, Default)]
pub struct Ticket(Arc<Shared>);

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("complete", &self.is_complete()).finish_non_exhaustive()
    }
}

impl Ticket {
    /// Creates a ticket of an instruction, whose own memory is counted.
    pub(super) fn new(memory: Charge) -> Self {
        let ticket = Self::default();
        ticket.0.state.lock().memory.push(memory);
        ticket
    }

    /// Creates a ticket that is complete.
    pub(crate) fn completed(outcome: Outcome) -> Self {
        let ticket = Self::default();
        ticket.complete(outcome, None);
        ticket
    }

    /// Returns `true` if the outcome is known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.0.state.lock().outcome.is_some()
    }

    /// Waits for the outcome.
    #[must_use]
    pub fn wait(&self) -> Arc<Outcome> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(outcome) = &state.outcome {
                return Arc::clone(outcome);
            }
            self.0.done.wait(&mut state);
        }
    }

    /// Waits for the outcome for at most `limit`.
    #[must_use]
    pub fn wait_for(&self, limit: Duration) -> Option<Arc<Outcome>> {
        let until = Instant::now() + limit;
        let mut state = self.0.state.lock();
        while state.outcome.is_none() && !self.0.done.wait_until(&mut state, until).timed_out() {}
        state.outcome.clone()
    }

    /// Returns the outcome if it is known.
    #[must_use]
    pub fn try_wait(&self) -> Option<Arc<Outcome>> {
        self.0.state.lock().outcome.clone()
    }

    /// Requests an early end. The outcome has the status `Cancelled`, unless it was already known.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
    }

    /// Calls `callback` when the outcome is known: in a thread of the engine, or at once. It must not
    /// wait for other instructions.
    pub fn on_complete(&self, callback: impl FnOnce() + Send + 'static) {
        let mut state = self.0.state.lock();
        if state.outcome.is_none() {
            state.callbacks.push(Box::new(callback));
        } else {
            drop(state);
            callback();
        }
    }

    /// Replaces the outcome, whose result is not kept, and gives its memory back.
    pub(crate) fn replace(&self, failure: Failure) -> Arc<Outcome> {
        let mut state = self.0.state.lock();
        let outcome = Arc::new(Outcome::failed(failure));
        let before = (state.outcome.replace(Arc::clone(&outcome)), std::mem::take(&mut state.memory));
        drop(state);
        drop(before);
        outcome
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Sets the outcome, with the count of its memory.
    pub(super) fn complete(&self, outcome: Outcome, memory: Option<Charge>) {
        let mut state = self.0.state.lock();
        if state.outcome.is_some() {
            return;
        }
        // The instruction itself is no longer needed.
        state.memory.clear();
        if let Some(mut memory) = memory {
            memory.shrink(outcome.memory_bytes());
            state.memory.push(memory);
        }
        state.outcome = Some(Arc::new(outcome));
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        self.0.done.notify_all();
        for callback in callbacks {
            callback();
        }
    }
}
