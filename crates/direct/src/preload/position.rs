//! Position of an open file: of this library, or of the kernel.
//!
//! Reads and writes of the kernel at a position exclude one another by a lock of the open file. Here, a direct
//! access replaces the position in one step, and a call through the mount uses the position of the kernel, so that
//! its lock serves such calls. The position is then *lent*: it is taken back when no call uses it. A call that never
//! ends (a canceled thread, a jump out of a signal handler) leaves it to the kernel, which is slow and correct.

use super::sys::{self, Fd};
use super::{files, process};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

/// The kernel has the position for good.
const KERNEL: i64 = -1;
/// The kernel has the position while calls use it.
const LENT: i64 = -2;
/// A thread moves the position from one to the other. Its signals are blocked.
const MOVING: i64 = -3;

/// Position of an open file.
pub(super) struct Position {
    /// The position, or one of the constants.
    at: AtomicI64,
    /// Number of calls that use the position of the kernel while it is lent.
    calls: AtomicU32,
}

impl Position {
    /// Begins at 0.
    pub(super) fn reset(&self) {
        self.calls.store(0, Ordering::Relaxed);
        self.at.store(0, Ordering::Relaxed);
    }

    /// Returns the position, or `None` if the kernel has it.
    #[inline]
    pub(super) fn get(&self) -> Option<u64> {
        u64::try_from(self.at.load(Ordering::Acquire)).ok()
    }

    /// Returns the position, which is taken back from the kernel if no call uses it there.
    #[inline]
    pub(super) fn get_back(&self, fd: Fd) -> Option<u64> {
        self.get().or_else(|| self.take_back(fd))
    }

    /// Returns the position, also if it is lent; it may change at any time.
    pub(super) fn peek(&self, fd: Fd) -> Option<u64> {
        match self.at.load(Ordering::Acquire) {
            LENT => kernel_position(fd),
            at => u64::try_from(at).ok(),
        }
    }

    /// Returns `true` if the kernel has the position for good, or is about to get it.
    pub(super) fn is_given(&self) -> bool {
        matches!(self.at.load(Ordering::SeqCst), KERNEL | MOVING)
    }

    /// Moves the position from `from` to `to`. Returns `false` if another thread has moved it, or the kernel has
    /// it.
    #[inline]
    pub(super) fn replace(&self, from: u64, to: u64) -> bool {
        self.at.compare_exchange(from as i64, to as i64, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Makes a call that uses the position of the kernel.
    pub(super) fn in_kernel<T>(&self, fd: Fd, call: impl FnOnce() -> T) -> T {
        let is_lent = self.lend(fd);
        let done = call();
        if is_lent {
            self.calls.fetch_sub(1, Ordering::SeqCst);
        }
        done
    }

    /// Begins a call that uses the position of the kernel. Returns `false` if the kernel has it for good.
    fn lend(&self, fd: Fd) -> bool {
        let mut wait = Wait::default();
        loop {
            match self.at.load(Ordering::SeqCst) {
                KERNEL => return false,
                LENT => {
                    // In this order: whoever takes the position back looks at the calls after its mark.
                    self.calls.fetch_add(1, Ordering::SeqCst);
                    if self.at.load(Ordering::SeqCst) == LENT {
                        return true;
                    }
                    self.calls.fetch_sub(1, Ordering::SeqCst);
                }
                MOVING => wait.step(),
                at => {
                    if !self.move_to_kernel(fd, at, LENT, || {}) && !self.is_of(fd) {
                        return false;
                    }
                }
            }
        }
    }

    /// Lets the kernel know the position, for a call that does not change it, and then calls `after`.
    pub(super) fn show(&self, fd: Fd, after: impl Fn()) {
        let mut wait = Wait::default();
        loop {
            match self.at.load(Ordering::SeqCst) {
                KERNEL | LENT => return after(),
                MOVING => wait.step(),
                at => {
                    if self.move_to_kernel(fd, at, at, &after) || !self.is_of(fd) {
                        return;
                    }
                }
            }
        }
    }

    /// Gives the position to the kernel for good, after `before`, which runs once.
    pub(super) fn give(&self, fd: Fd, before: impl Fn()) {
        let mut wait = Wait::default();
        loop {
            match self.at.load(Ordering::SeqCst) {
                KERNEL => return,
                MOVING => wait.step(),
                at => {
                    if !self.move_to_kernel(fd, at, KERNEL, &before) && !self.is_of(fd) {
                        return;
                    }
                }
            }
        }
    }

    /// Moves the position to the kernel, calls `before`, and sets the state `to`. Returns `false` if another thread has
    /// changed the position, or closed the descriptor.
    fn move_to_kernel(&self, fd: Fd, at: i64, to: i64, before: impl Fn()) -> bool {
        let _quiet = sys::BlockedSignals::new();
        if self.at.compare_exchange(at, MOVING, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return false;
        }
        // Another thread may have closed the descriptor. If it removes it later, it waits for the end of the move.
        if !self.is_of(fd) {
            self.at.store(at, Ordering::SeqCst);
            return false;
        }
        before();
        if at >= 0 {
            // SAFETY: the call uses no memory of the program.
            unsafe { sys::raw_call(sys::SYS_LSEEK, fd as usize, at as usize, sys::SEEK_SET as usize) };
        }
        self.at.store(to, Ordering::SeqCst);
        true
    }

    /// Waits until no thread moves the position: its descriptor was removed from the table, and is about to be closed.
    pub(super) fn wait_for_move(&self) {
        let mut wait = Wait::default();
        while self.at.load(Ordering::SeqCst) == MOVING {
            wait.step();
        }
    }

    /// Returns `true` if this is the position of a descriptor.
    fn is_of(&self, fd: Fd) -> bool {
        files::get(fd).is_some_and(|open| std::ptr::eq(&raw const open.position, self))
    }

    #[cold]
    fn take_back(&self, fd: Fd) -> Option<u64> {
        if self.at.load(Ordering::SeqCst) != LENT || self.calls.load(Ordering::SeqCst) > 0 {
            return None;
        }
        let _quiet = sys::BlockedSignals::new();
        self.at.compare_exchange(LENT, MOVING, Ordering::SeqCst, Ordering::SeqCst).ok()?;
        let is_free = self.calls.load(Ordering::SeqCst) == 0 && self.is_of(fd);
        let found = if is_free { kernel_position(fd) } else { None };
        self.at.store(found.map_or(LENT, |at| at as i64), Ordering::SeqCst);
        found
    }

    /// Gives the position to the kernel in a child of fork(2), if another thread of the parent was moving it.
    pub(super) fn end_move(&self) {
        self.calls.store(0, Ordering::Relaxed);
        let _ = self.at.compare_exchange(MOVING, KERNEL, Ordering::SeqCst, Ordering::SeqCst);
    }
}

fn kernel_position(fd: Fd) -> Option<u64> {
    // SAFETY: the call uses no memory of the program.
    let at = unsafe { sys::raw_call(sys::SYS_LSEEK, fd as usize, 0, sys::SEEK_CUR as usize) };
    u64::try_from(at).ok()
}

/// Wait for a thread that moves a position: at most for requests to the mount.
#[derive(Default)]
struct Wait(u32);

impl Wait {
    fn step(&mut self) {
        const SPINS: u32 = 100;
        const YIELDS: u32 = 1000;
        self.0 = self.0.saturating_add(1);
        // In a child of fork(2), this ends the moves of threads that it does not have.
        process::is_active();
        if self.0 <= SPINS {
            std::hint::spin_loop();
        } else if self.0 <= YIELDS {
            // SAFETY: the call has no arguments.
            unsafe { sys::sched_yield() };
        } else {
            let short = sys::TimeSpec { sec: 0, nsec: 50_000 };
            // SAFETY: the kernel reads the time.
            unsafe { sys::raw_call(sys::SYS_NANOSLEEP, (&raw const short) as usize, 0, 0) };
        }
    }
}
