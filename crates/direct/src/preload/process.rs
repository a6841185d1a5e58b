//! Phase of this process: whether its table of descriptors is right, after fork, vfork and others.

use super::sys::BlockedSignals;
use super::thread::{self, Thread};
use super::{faults, files, sys};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Phase of the process.
const FORKED: u32 = 0;
const ACTIVE: u32 = 1;
/// Direct access is off for good, because descriptors may change without this library.
const OFF: u32 = 2;
/// A child of vfork(2) may use this memory. Larger values: further children of other threads.
const SHARED: u32 = 3;

/// Page that a child of fork(2) finds zeroed.
static PHASE: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());
/// Process that registered, and the number of processes before this one that had this memory.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static ANCESTORS: AtomicU32 = AtomicU32::new(0);
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// Lock of rare changes. It is never waited for: whoever does not get it does without direct access.
static BUSY: AtomicBool = AtomicBool::new(false);

/// Holds [`BUSY`], with blocked signals: a jump out of a handler would never release it.
pub(super) struct Exclusive {
    /// Dropped after the lock is released, because handlers run then.
    _quiet: BlockedSignals,
}

impl Exclusive {
    pub(super) fn try_new() -> Option<Self> {
        let quiet = BlockedSignals::new();
        // Lazily: a value that is not returned would release the lock of another thread when it is dropped.
        (!BUSY.swap(true, Ordering::Acquire)).then(|| Self { _quiet: quiet })
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        BUSY.store(false, Ordering::Release);
    }
}

/// Returns `true` if this is a child of vfork(2), which uses the memory of its parent.
pub(super) fn is_other_process() -> bool {
    let owner = PROCESS.load(Ordering::Relaxed);
    owner != 0 && owner != sys::process()
}

/// Returns `true` if this process may access files directly, and its table of descriptors is right.
#[inline]
pub(super) fn is_active() -> bool {
    let phase = PHASE.load(Ordering::Relaxed);
    // SAFETY: the page is never unmapped.
    !phase.is_null() && unsafe { &*phase }.load(Ordering::Relaxed) == ACTIVE || check_phase()
}

#[cold]
fn check_phase() -> bool {
    let mut phase = PHASE.load(Ordering::Acquire);
    if phase.is_null() {
        let page = sys::allocate(4096);
        // SAFETY: the page was just allocated.
        if page.is_null() || unsafe { sys::madvise(page, 4096, sys::MADV_WIPEONFORK) } != 0 {
            return false;
        }
        PROCESS.store(sys::process(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { &*page.cast::<AtomicU32>() }.store(active_or_off(), Ordering::Release);
        match PHASE.compare_exchange(std::ptr::null_mut(), page.cast(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => phase = page.cast(),
            Err(other) => phase = other,
        }
    }
    // SAFETY: the page is never unmapped.
    let phase = unsafe { &*phase };
    match phase.load(Ordering::Acquire) {
        FORKED => {
            begin_child();
            let now = active_or_off();
            phase.store(now, Ordering::Release);
            now == ACTIVE
        }
        ACTIVE => true,
        OFF => false,
        _ => end_vfork(phase),
    }
}

/// Puts the only thread of a child of fork(2) in order. What others held in the parent is free here.
fn begin_child() {
    Thread::get().calls_vfork.set(false);
    BUSY.store(false, Ordering::Release);
    FORKS.store(0, Ordering::SeqCst);
    files::begin_child();
    faults::begin_child();
    ANCESTORS.fetch_add(1, Ordering::AcqRel);
    PROCESS.store(sys::process(), Ordering::Relaxed);
}

/// Notes that this thread has come back from vfork(2), if it has: its child does not use this memory any longer.
/// Returns `true` if no other child does, and direct access is not off.
fn end_vfork(phase: &AtomicU32) -> bool {
    let thread = Thread::get();
    if !thread.calls_vfork.get() || is_other_process() {
        return false;
    }
    thread.calls_vfork.set(false);
    let one_less = |now| match now {
        SHARED => Some(ACTIVE),
        now if now > SHARED => Some(now - 1),
        _ => None,
    };
    phase.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less) == Ok(SHARED)
}

/// Returns the phase of a process whose table is right: another thread may have turned direct access off.
fn active_or_off() -> u32 {
    if IS_OFF.load(Ordering::Acquire) { OFF } else { ACTIVE }
}

/// Calls of fork(2): the number of those that have begun, and in the lower half the number of those in progress.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Makes a call of fork(2). Before, all positions are given to the kernel. The child is in order when it returns.
pub(super) fn fork(call: impl FnOnce() -> c_int) -> c_int {
    begin_fork();
    let child = call();
    let errno = sys::errno();
    if child == 0 {
        is_active();
    } else {
        FORKS.fetch_sub(1, Ordering::SeqCst);
    }
    sys::set_errno(errno);
    child
}

/// Gives positions to the kernel before a fork, also those of files that are opened until its end. That of a fork by
/// syscall(2) is not known.
pub(super) fn begin_fork() {
    FORKS.fetch_add(1 << 32 | 1, Ordering::SeqCst);
    files::demote_all();
}

/// Time at which a file is opened, among calls of fork(2).
pub(super) struct Opening(u64);

impl Opening {
    /// The file is not open yet.
    pub(super) fn begin() -> Self {
        Self(FORKS.load(Ordering::SeqCst))
    }

    /// Returns `true` if a child may have the open file, which was not yet in the table before the fork.
    pub(super) fn is_in_child(&self) -> bool {
        let now = FORKS.load(Ordering::SeqCst);
        now != self.0 || now as u32 > 0
    }
}

/// Returns `true` if this process does not use the memory of another one, as a child of vfork(2) does.
pub(super) fn has_own_memory() -> bool {
    is_active();
    !is_other_process()
}

/// Notes that this thread calls vfork(2).
pub(super) fn begin_vfork() {
    is_active();
    let thread = Thread::get();
    // A child of vfork(2) may call it again, with the memory of its parent.
    if thread.calls_vfork.get() || is_other_process() {
        return;
    }
    let one_more = |now| match now {
        ACTIVE => Some(SHARED),
        now if now >= SHARED => Some(now + 1),
        _ => None,
    };
    if let Some(phase) = phase()
        && phase.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more).is_ok()
    {
        thread.calls_vfork.set(true);
        thread::watch_end();
    }
}

/// Turns direct access off for good.
pub(super) fn turn_off() {
    IS_OFF.store(true, Ordering::SeqCst);
    is_active();
    if let Some(phase) = phase() {
        phase.store(OFF, Ordering::SeqCst);
    }
}

/// Returns the phase, if this process has one.
fn phase() -> Option<&'static AtomicU32> {
    // SAFETY: the page is never unmapped.
    unsafe { PHASE.load(Ordering::Acquire).as_ref() }
}

/// Number of the limit of the size of files.
pub(super) const RLIMIT_FSIZE: u32 = 1;
/// Limit of the size of files in bytes (RLIMIT_FSIZE).
static SIZE_LIMIT: AtomicU64 = AtomicU64::new(UNKNOWN);
const UNKNOWN: u64 = u64::MAX - 1;
pub(super) const UNLIMITED: u64 = u64::MAX;

/// Returns the limit of the size of files of this process in bytes: only the kernel writes behind it, and only the
/// kernel extends files if there is one. It is 0 after the program has set a limit.
#[inline]
pub(super) fn size_limit() -> u64 {
    match SIZE_LIMIT.load(Ordering::SeqCst) {
        UNKNOWN => find_size_limit(),
        limit => limit,
    }
}

#[cold]
fn find_size_limit() -> u64 {
    let mut limits = [0_u64; 2];
    // SAFETY: the kernel writes two words.
    let result =
        unsafe { sys::raw_call(sys::SYS_GETRLIMIT, RLIMIT_FSIZE as usize, limits.as_mut_ptr() as usize, 0) };
    let limit = if result == 0 && limits[0] != UNKNOWN { limits[0] } else { 0 };
    // Another thread may be setting a limit.
    let _ = SIZE_LIMIT.compare_exchange(UNKNOWN, limit, Ordering::SeqCst, Ordering::SeqCst);
    SIZE_LIMIT.load(Ordering::SeqCst)
}

/// Notes that the program sets a limit.
pub(super) fn limit_size() {
    SIZE_LIMIT.store(0, Ordering::SeqCst);
}

/// Returns the number of processes before this one that had this memory.
#[inline]
pub(super) fn ancestors() -> u32 {
    ANCESTORS.load(Ordering::Acquire)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_of_rare_changes_excludes() {
        let held = Exclusive::try_new();
        assert!(held.is_some());
        // Whoever does not get it leaves it to its holder.
        assert!(Exclusive::try_new().is_none() && Exclusive::try_new().is_none());
        drop(held);
        assert!(Exclusive::try_new().is_some());
    }
}
