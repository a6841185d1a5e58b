//! State that the threads of an instruction and its operation share: cancellation, the foreground gate,
//! and the work done.

use super::memory::Account;
use super::turns::{Turns, Usage};
use super::{EngineOptions, Ticket, User};
use crate::outcome::{Failure, Status};
use crate::scan::StepTime;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time for which an instruction that has not begun waits for memory of its user.
const ROOM_WAIT: Duration = Duration::from_secs(10);

/// Work of a job, counted by all its threads.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) bytes: AtomicU64,
    pub(super) cpu_ns: AtomicU64,
    pub(super) yields: AtomicU64,
    pub(super) yielded_ns: AtomicU64,
}

/// User of an instruction, with the own memory and processor time.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub(super) user: User,
    pub(super) account: Account,
    pub(super) usage: Arc<Usage>,
    pub(super) turns: Arc<Turns>,
}

/// Control of an instruction in execution.
pub(crate) struct Control {
    pub(super) options: Arc<EngineOptions>,
    pub(super) share: Share,
    pub(super) ticket: Ticket,
    /// `true` if no more bytes are needed.
    pub(super) stopped: AtomicBool,
    pub(super) counters: Counters,
}

impl Control {
    pub(super) fn new(options: Arc<EngineOptions>, share: Share, ticket: Ticket) -> Self {
        Self { options, share, ticket, stopped: AtomicBool::new(false), counters: Counters::default() }
    }

    /// Configuration of the engine.
    pub(crate) fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Memory of the user of the instruction.
    pub(crate) fn account(&self) -> &Account {
        &self.share.account
    }

    /// User of the instruction.
    pub(crate) fn user(&self) -> User {
        self.share.user
    }

    /// Returns `true` if the user has memory to begin an instruction. It holds little until then, so that those that
    /// wait do not hold up each other.
    ///
    /// # Errors
    /// It has waited for [`ROOM_WAIT`].
    pub(super) fn has_room(&self, submitted: Instant) -> Result<bool, Failure> {
        match self.share.account.check_room() {
            Ok(()) => Ok(true),
            Err(_) if submitted.elapsed() < ROOM_WAIT => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Bytes of the next read of a source.
    pub(crate) fn chunk_bytes(&self) -> usize {
        let EngineOptions { foreground, chunk_bytes, foreground_chunk_bytes, .. } = &*self.options;
        if foreground.is_recent() { *foreground_chunk_bytes } else { *chunk_bytes }
    }

    /// Waits for foreground requests, and for users with less processor time. A scan that has to stop fails.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.pass(&|| self.has_to_stop())
    }

    /// Fails if the scan has to stop. It does not wait, and so serves while the source is read.
    pub(crate) fn check_stop(&self) -> Result<(), Failure> {
        if self.has_to_stop() { Err(cancelled()) } else { Ok(()) }
    }

    /// Fails if the scan has to stop. In a long step it also waits for users with less processor time: the source is
    /// not read meanwhile.
    pub(crate) fn check_within(&self, step: StepTime) -> Result<(), Failure> {
        if step > StepTime::Short {
            self.share.turns.pass(&self.share.usage, &|| self.has_to_stop());
        }
        self.check_stop()
    }

    fn has_to_stop(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || self.ticket.is_cancelled()
    }

    /// Waits for foreground requests. It fails only if the instruction is cancelled, and so also serves
    /// results that are needed when no more bytes are.
    #[cfg(feature = "programs")]
    pub(crate) fn check_cancelled(&self) -> Result<(), Failure> {
        self.pass(&|| self.ticket.is_cancelled())
    }

    fn pass(&self, stop: &dyn Fn() -> bool) -> Result<(), Failure> {
        if let Some(waited) = self.options.foreground.pass(stop) {
            self.counters.yields.fetch_add(1, Ordering::Relaxed);
            self.counters.yielded_ns.fetch_add(waited.as_nanos() as u64, Ordering::Relaxed);
        }
        self.share.turns.pass(&self.share.usage, stop);
        if stop() { Err(cancelled()) } else { Ok(()) }
    }

    /// Counts the time of a processor that another thread than those of the pool has used for the instruction.
    #[cfg(feature = "programs")]
    pub(crate) fn count_other_cpu(&self, ns: u64) {
        self.share.usage.add(ns);
        self.count_cpu(ns);
    }

    /// Counts the time of a processor.
    pub(super) fn count_cpu(&self, ns: u64) {
        self.counters.cpu_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Counts bytes that were read.
    pub(crate) fn count_bytes(&self, bytes: u64) {
        self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
impl Control {
    /// Creates the control of an instruction that no engine executes.
    pub(crate) fn of(ticket: &Ticket) -> Self {
        Self::of_user(ticket, User::default())
    }

    /// Creates the control of an instruction of a user that no engine executes.
    pub(crate) fn of_user(ticket: &Ticket, user: User) -> Self {
        let turns = Turns::new(1);
        let share = Share { user, account: Account::unlimited(), usage: turns.usage(user), turns };
        Self::new(Arc::default(), share, ticket.clone())
    }
}

/// Failure of a cancelled instruction.
pub(super) fn cancelled() -> Failure {
    Failure::new(
        Status::Cancelled,
        "the instruction was cancelled before its end; write it again to repeat it",
    )
}

/// Time of a processor that the current thread has used, in nanoseconds.
pub(crate) fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
