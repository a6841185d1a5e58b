//! State of a thread: its slots in the shared memory of mounts, and its access in progress.

use super::mounts::MOUNTS;
use super::{copy, sys};
use crate::segment::{FileState, Slot};
use std::cell::Cell;
use std::sync::atomic::Ordering;

/// State of a thread.
pub(super) struct Thread {
    /// Slots, by mount.
    pub(super) slots: [Cell<*const Slot>; MOUNTS],
    /// [`process::ancestors`](super::process::ancestors) when the slots were taken.
    pub(super) ancestors: Cell<u32>,
    /// Number of accesses.
    pub(super) count: Cell<u32>,
    /// Stack pointer of the access in progress, or 0.
    pub(super) frame: Cell<usize>,
    /// File whose lock of writers the access holds, or null.
    pub(super) writes: Cell<*const FileState>,
    /// The program's handler of a fault runs, or was left by a jump, so that faults may be blocked.
    pub(super) in_handler: Cell<bool>,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            slots: [const { Cell::new(std::ptr::null()) }; MOUNTS],
            ancestors: Cell::new(0),
            count: Cell::new(0),
            frame: Cell::new(0),
            writes: Cell::new(std::ptr::null()),
            in_handler: Cell::new(false),
        }
    };
}

impl Thread {
    /// Returns the state of this thread.
    #[inline]
    pub(super) fn get() -> &'static Thread {
        // SAFETY: the state needs no drop, so it is valid until the thread has ended, and nobody keeps the
        // reference longer.
        THREAD.with(|thread| unsafe { &*std::ptr::from_ref(thread) })
    }

    /// Returns `true` if this thread may begin an access: not in a signal handler that interrupted one, and not
    /// while a fault would kill the process.
    #[inline]
    pub(super) fn may_access(&self) -> bool {
        self.frame.get() == 0 && (!self.in_handler.get() || self.receives_faults())
    }

    #[cold]
    fn receives_faults(&self) -> bool {
        let receives = sys::blocked_signals() & copy::FAULTS == 0;
        self.in_handler.set(!receives);
        receives
    }

    /// Ends the access in progress before a jump to a frame with this stack pointer, if the frame is outside of the
    /// access: a signal handler leaves it for good.
    pub(super) fn leave_access(&self, target: usize) {
        let frame = self.frame.get();
        if frame == 0 || target <= frame || is_within_alternate_stack(target) {
            return;
        }
        // SAFETY: the shared memory is never unmapped.
        if let Some(file) = unsafe { self.writes.replace(std::ptr::null()).as_ref() } {
            file.writer.store(0, Ordering::Release);
        }
        for slot in &self.slots {
            // SAFETY: as above.
            if let Some(slot) = unsafe { slot.get().as_ref() } {
                slot.access.store(0, Ordering::Release);
            }
        }
        self.frame.set(0);
    }
}

/// Returns `true` if this thread runs on an alternate stack for signals (sigaltstack(2)) which has this address.
fn is_within_alternate_stack(at: usize) -> bool {
    const SYS_SIGALTSTACK: i64 = 131;
    const SS_ONSTACK: usize = 1;
    // `stack_t`: base, flags, size.
    let mut stack = [0_usize; 3];
    // SAFETY: the kernel writes a `stack_t`.
    let result = unsafe { sys::raw_call(SYS_SIGALTSTACK, 0, stack.as_mut_ptr() as usize, 0) };
    let [base, flags, len] = stack;
    result == 0 && flags & SS_ONSTACK != 0 && at.wrapping_sub(base) <= len
}
