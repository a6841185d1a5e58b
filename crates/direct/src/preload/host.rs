//! What the position of an open file needs of the process and of the kernel. `tests/schedules.rs` has a model of it.

use super::position::Position;
pub(super) use super::sys::{BlockedSignals, Fd};
use super::{files, process, sys};
pub(super) use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Returns `true` if a position is that of a descriptor.
pub(super) fn is_position_of(fd: Fd, position: &Position) -> bool {
    files::get(fd).is_some_and(|open| std::ptr::eq(&raw const open.position, position))
}

/// Sets the position of the kernel.
pub(super) fn seek(fd: Fd, at: i64) {
    // SAFETY: the call uses no memory of the program.
    unsafe { sys::raw_call(sys::SYS_LSEEK, fd as usize, at as usize, sys::SEEK_SET as usize) };
}

/// Returns the position of the kernel.
pub(super) fn tell(fd: Fd) -> Option<u64> {
    // SAFETY: the call uses no memory of the program.
    let at = unsafe { sys::raw_call(sys::SYS_LSEEK, fd as usize, 0, sys::SEEK_CUR as usize) };
    u64::try_from(at).ok()
}

/// Wait for a thread that moves a position: at most for requests to the mount.
#[derive(Default)]
pub(super) struct Wait(u32);

impl Wait {
    pub(super) fn step(&mut self) {
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
