//! State of a thread: its slots in the shared memory of mounts, and its access in progress.

use super::mounts::{self, MOUNTS};
use super::{copy, process, slots, sys};
use crate::segment::{FileState, Slot};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

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
    /// File whose lock of writers the access holds, or is about to take, or null.
    pub(super) writes: Cell<*const FileState>,
    /// This process was forked within the access in progress, which is to be made again through the mount.
    pub(super) is_forked: Cell<bool>,
    /// This thread has called vfork(2), and its child may use this memory.
    pub(super) calls_vfork: Cell<bool>,
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
            is_forked: Cell::new(false),
            calls_vfork: Cell::new(false),
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
        if frame != 0 && target > frame && !is_within_alternate_stack(target) {
            self.end_access();
        }
    }

    /// Separates an access in progress from the one of the parent, in a child of fork(2): a signal handler that
    /// interrupted the access may return in both processes, but it is announced for the parent alone.
    pub(super) fn separate_access(&self) {
        if self.frame.get() != 0 {
            mounts::detach();
            self.is_forked.set(true);
        }
    }

    /// Ends the access in progress, which does not continue.
    pub(super) fn end_access(&self) {
        let writes = self.writes.replace(std::ptr::null());
        for (mount, slot) in mounts::mounts().iter().zip(&self.slots) {
            // SAFETY: the shared memory is never unmapped.
            if let Some(slot) = unsafe { slot.get().as_ref() } {
                slots::unlock(mount, slot, writes);
                slot.access.store(0, Ordering::Release);
            }
        }
        self.frame.set(0);
    }
}

/// Key of a value of each thread (pthread_key_create(3)) whose destructor ends the access in progress, plus 1, or 0.
static KEY: AtomicU32 = AtomicU32::new(0);

#[cfg_attr(frit_preload, used)]
#[cfg_attr(frit_preload, unsafe(link_section = ".init_array"))]
static AT_START: extern "C" fn() = create_key;

/// Creates the key before the program creates others: the C library has room for the values of the first ones, and
/// uses malloc for more.
extern "C" fn create_key() {
    const FIRST_KEYS: u32 = 32;
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

/// Lets an access in progress end when this thread ends, in a signal handler or when it is cancelled, and its use of
/// vfork(2).
pub(super) fn watch_end() {
    if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) {
        // SAFETY: the key exists, and the value is not looked at.
        unsafe { sys::pthread_setspecific(key, std::ptr::from_ref(&KEY).cast()) };
    }
}

extern "C" fn at_end(_: *mut c_void) {
    Thread::get().end_access();
    // It has come back from vfork(2).
    process::is_active();
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
