//! State of a thread: its slots in the shared memory of mounts, and its access in progress.

use super::mounts::{self, MOUNTS};
use super::{faults, process, signals, sys};
use crate::segment::Slot;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence};

/// State of a thread.
pub(super) struct Thread {
    /// Slots, by mount.
    pub(super) slots: [Cell<*const Slot>; MOUNTS],
    /// [`process::ancestors`](super::process::ancestors) when the slots were taken.
    pub(super) ancestors: Cell<u32>,
    /// Number of accesses.
    pub(super) count: Cell<u32>,
    is_in_access: Cell<bool>,
    /// Signals that arrived within the access in progress.
    pub(super) delayed: signals::Delayed,
    /// A cancellation can end this thread within an access (PTHREAD_CANCEL_ASYNCHRONOUS).
    ends_anywhere: Cell<bool>,
    /// This thread has called vfork(2), and its child may use this memory.
    pub(super) calls_vfork: Cell<bool>,
    /// The program's handler of a fault runs, or was left by a jump, so that faults may be blocked.
    pub(super) in_handler: Cell<bool>,
    /// The C library has set the mask of signals without this library, so that faults may be blocked.
    is_mask_unknown: Cell<bool>,
}

// In the memory that each thread has from its begin: with `thread_local!`, the first access of a thread after
// dlopen(3) can call malloc, also in a signal handler. Zeros are the initial state.
std::arch::global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".globl frit_direct_thread",
    ".hidden frit_direct_thread",
    ".type frit_direct_thread, @object",
    ".p2align 6",
    "frit_direct_thread:",
    ".zero {size}",
    ".text",
    size = const size_of::<Thread>(),
);

impl Thread {
    /// Returns the state of this thread.
    #[inline]
    pub(super) fn get() -> &'static Thread {
        let at: *const Thread;
        // SAFETY: the distance of the variable from the begin of the control block is constant in a library that is
        // loaded with the program.
        unsafe {
            std::arch::asm!(
                "mov {at}, qword ptr [rip + frit_direct_thread@GOTTPOFF]",
                "add {at}, qword ptr fs:[0]",
                at = out(reg) at,
                options(pure, readonly, nostack)
            );
        }
        // SAFETY: zeros are a valid state, which needs no drop, so it is valid until the thread has ended, and nobody
        // keeps the reference longer.
        unsafe { &*at }
    }

    /// Returns `true` if this thread may begin an access: not in a signal handler that interrupted one, not while a
    /// fault would kill the process, and not while it can be canceled at any instruction.
    #[inline]
    pub(super) fn may_access(&self) -> bool {
        !self.is_in_access.get()
            && !self.ends_anywhere.get()
            && (!(self.in_handler.get() | self.is_mask_unknown.get()) || self.receives_faults())
    }

    #[cold]
    fn receives_faults(&self) -> bool {
        let receives = if self.in_handler.get() {
            sys::blocked_signals() & signals::FAULTS == 0
        } else {
            faults::unblock();
            true
        };
        self.in_handler.set(!receives);
        self.is_mask_unknown.set(!receives);
        receives
    }

    /// Notes that the mask of signals becomes an unknown one.
    pub(super) fn forget_mask(&self) {
        self.is_mask_unknown.set(true);
    }

    /// Begins an access: handlers of signals run at its end.
    #[inline]
    pub(super) fn begin_access(&self) {
        self.is_in_access.set(true);
        compiler_fence(Ordering::SeqCst);
    }

    /// Ends the access in progress, which is no longer announced.
    #[inline]
    pub(super) fn end_access(&self) {
        // In this order, also for signal handlers: what arrives later is not delayed.
        compiler_fence(Ordering::SeqCst);
        self.is_in_access.set(false);
        compiler_fence(Ordering::SeqCst);
        self.delayed.deliver();
    }

    #[inline]
    pub(super) fn is_in_access(&self) -> bool {
        self.is_in_access.get()
    }

    /// Notes whether a cancellation can end this thread at any instruction.
    pub(super) fn set_ends_anywhere(&self, ends_anywhere: bool) {
        self.ends_anywhere.set(ends_anywhere);
    }
}

/// Key of a value of each thread (pthread_key_create(3)) whose destructor ends the use of vfork(2), plus 1, or 0.
static KEY: AtomicU32 = AtomicU32::new(0);

#[cfg_attr(frit_preload, used)]
#[cfg_attr(frit_preload, unsafe(link_section = ".init_array"))]
static AT_START: extern "C" fn() = start;

/// Finds the functions of the C library, and creates the key before the program creates others: the C library has room
/// for the values of the first ones, and uses malloc for more.
extern "C" fn start() {
    const FIRST_KEYS: u32 = 32;
    sys::find_all();
    if !mounts::has_mounts() {
        return;
    }
    let mut key = 0;
    // SAFETY: the key is valid for writing.
    let is_created = unsafe { sys::pthread_key_create(&raw mut key, at_end) } == 0;
    if is_created && key < FIRST_KEYS {
        KEY.store(key + 1, Ordering::Relaxed);
    }
}

/// Lets this thread's use of vfork(2) end with the thread.
pub(super) fn watch_end() {
    if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) {
        // SAFETY: the key exists, and the value is not looked at.
        unsafe { sys::pthread_setspecific(key, std::ptr::from_ref(&KEY).cast()) };
    }
}

extern "C" fn at_end(_: *mut c_void) {
    // It has come back from vfork(2).
    process::is_active();
}
