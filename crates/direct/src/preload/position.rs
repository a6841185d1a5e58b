//! Position of an open file: of this library, or of the kernel.
//!
//! Reads and writes of the kernel at a position exclude one another by a lock of the open file. Here, a direct
//! access replaces the position in one step, and a call through the mount uses the position of the kernel, so that
//! its lock serves such calls. The position is then *lent*: it is taken back when no call uses it. A call that never
//! ends (a canceled thread, a jump out of a signal handler) leaves it to the kernel, which is slow and correct.

use super::host::{self, AtomicI64, AtomicU64, BlockedSignals, Fd, Ordering, Wait};

/// The kernel has the position for good.
const KERNEL: i64 = -1;
/// The kernel has the position while calls use it.
const LENT: i64 = -2;
/// A thread moves the position from one to the other. Its signals are blocked.
const MOVING: i64 = -3;

/// Position of an open file.
#[derive(Default)]
pub(super) struct Position {
    /// The position, or one of the constants.
    at: AtomicI64,
    /// Number of calls that use the position of the kernel while it is lent, and in the upper half the [`Use`].
    calls: AtomicU64,
}

/// Number of the open file that has the memory of this position. A call may end after its descriptor was closed, when
/// the memory belongs to another open file, whose calls it must not change.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Use(u32);

impl Use {
    fn of(calls: u64) -> Self {
        Self((calls >> 32) as u32)
    }

    /// Returns the value for no calls of the next use.
    fn next(calls: u64) -> u64 {
        u64::from(Self::of(calls).0.wrapping_add(1)) << 32
    }
}

impl Position {
    /// Begins at 0. Returns `false` if a thread that came late to the last open file here is moving the position: the
    /// end of the move would replace it.
    pub(super) fn reset(&self) -> bool {
        let at = self.at.load(Ordering::SeqCst);
        let is_quiet =
            at != MOVING && self.at.compare_exchange(at, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if is_quiet {
            self.forget_calls();
        }
        is_quiet
    }

    fn forget_calls(&self) {
        let _ = self.calls.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |calls| Some(Use::next(calls)));
    }

    fn has_calls(&self) -> bool {
        self.calls.load(Ordering::SeqCst) as u32 > 0
    }

    /// Begins a call, and returns the use to which it belongs.
    fn begin_call(&self) -> Use {
        Use::of(self.calls.fetch_add(1, Ordering::SeqCst))
    }

    fn end_call(&self, of: Use) {
        let end = |calls| (Use::of(calls) == of).then(|| calls - 1);
        let _ = self.calls.fetch_update(Ordering::SeqCst, Ordering::SeqCst, end);
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
            LENT => host::tell(fd),
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
        let lent = self.lend(fd);
        let done = call();
        if let Some(of) = lent {
            self.end_call(of);
        }
        done
    }

    /// Begins a call that uses the position of the kernel. `None`: the kernel has it for good.
    fn lend(&self, fd: Fd) -> Option<Use> {
        let mut wait = Wait::default();
        loop {
            match self.at.load(Ordering::SeqCst) {
                KERNEL => return None,
                LENT => {
                    // In this order: whoever takes the position back looks at the calls after its mark.
                    let of = self.begin_call();
                    if self.at.load(Ordering::SeqCst) == LENT {
                        return Some(of);
                    }
                    self.end_call(of);
                }
                MOVING => wait.step(),
                at => {
                    if !self.move_to_kernel(fd, at, LENT, || {}) && !self.is_of(fd) {
                        return None;
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
        let _quiet = BlockedSignals::new();
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
            host::seek(fd, at);
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
        host::is_position_of(fd, self)
    }

    #[cold]
    fn take_back(&self, fd: Fd) -> Option<u64> {
        if self.at.load(Ordering::SeqCst) != LENT || self.has_calls() {
            return None;
        }
        let _quiet = BlockedSignals::new();
        self.at.compare_exchange(LENT, MOVING, Ordering::SeqCst, Ordering::SeqCst).ok()?;
        let is_free = !self.has_calls() && self.is_of(fd);
        let found = if is_free { host::tell(fd) } else { None };
        self.at.store(found.map_or(LENT, |at| at as i64), Ordering::SeqCst);
        found
    }

    /// Gives the position to the kernel in a child of fork(2). The parent has done so, or does it after the fork: its
    /// position is left alone.
    pub(super) fn begin_child(&self) {
        self.forget_calls();
        self.at.store(KERNEL, Ordering::SeqCst);
    }

    /// Returns the position that a child of fork(2) has now.
    #[cfg(test)]
    pub(super) fn forked(&self) -> Self {
        Self {
            at: AtomicI64::new(self.at.load(Ordering::SeqCst)),
            calls: AtomicU64::new(self.calls.load(Ordering::SeqCst)),
        }
    }
}
