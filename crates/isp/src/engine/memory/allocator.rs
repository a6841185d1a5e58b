//! Memory that the allocator of the C library keeps after it was freed.
//!
//! glibc has an arena of free memory for each thread, up to eight for each processor, and gives the kernel back only what
//! is free at the end of one. With 16 users of aggregates, a budget of 256 MiB and two processors, the server kept
//! 164 MiB when all had ended, and 83 MiB with two arenas. So an engine has few arenas, and gives memory back after
//! much of it was freed.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Freed memory in bytes after which the allocator gives memory back.
const FREED_BYTES: u64 = 8 << 20;
/// Time in which more is freed before it does.
const DELAY: Duration = Duration::from_millis(500);

/// Memory that was freed and may be in the allocator.
#[derive(Clone, Default, Debug)]
pub(super) struct Freed(Arc<Mutex<State>>);

#[derive(Default, Debug)]
struct State {
    bytes: u64,
    has_thread: bool,
}

impl Freed {
    /// Notes memory that is freed soon.
    pub(super) fn add(&self, bytes: u64) {
        let mut state = self.0.lock();
        state.bytes += bytes;
        if state.bytes < FREED_BYTES || state.has_thread {
            return;
        }
        let freed = self.clone();
        let thread = std::thread::Builder::new().name("frit-isp-trim".into());
        // Without a thread, the next one tries again.
        state.has_thread = thread.spawn(move || freed.give_back(DELAY, trim)).is_ok();
    }

    /// Gives memory back until little was freed meanwhile.
    fn give_back(&self, delay: Duration, trim: impl Fn()) {
        loop {
            std::thread::sleep(delay);
            let bytes = std::mem::take(&mut self.0.lock().bytes);
            if bytes > 0 {
                trim();
            }
            let mut state = self.0.lock();
            if state.bytes == 0 {
                state.has_thread = false;
                return;
            }
        }
    }
}

#[cfg(target_env = "gnu")]
mod glibc {
    /// Lets the allocator have no more than this number of arenas, unless it has them already.
    #[expect(unsafe_code)]
    pub(in crate::engine) fn limit_arenas(number: usize) {
        // SAFETY: mallopt(3) may be called at any time, by any thread. It changes only where memory comes from.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, i32::try_from(number).unwrap_or(i32::MAX)) };
    }

    #[expect(unsafe_code)]
    pub(super) fn trim() {
        // SAFETY: malloc_trim(3) may be called at any time, by any thread. It changes no memory in use.
        unsafe { libc::malloc_trim(0) };
    }
}

/// Other allocators keep less.
#[cfg(not(target_env = "gnu"))]
mod glibc {
    pub(in crate::engine) fn limit_arenas(_: usize) {}

    pub(super) fn trim() {}
}

pub(in crate::engine) use glibc::limit_arenas;
use glibc::trim;

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn memory_is_given_back_after_the_last_of_it_was_freed() {
        let freed = Freed::default();
        freed.add(FREED_BYTES - 1);
        assert!(!freed.0.lock().has_thread);
        {
            let mut state = freed.0.lock();
            (state.bytes, state.has_thread) = (FREED_BYTES, true);
        }
        let trims = Cell::new(0);
        freed.give_back(Duration::ZERO, || {
            // Something is freed meanwhile.
            if trims.replace(trims.get() + 1) < 3 {
                freed.add(1);
            }
        });
        let state = freed.0.lock();
        assert_eq!((trims.get(), state.bytes, state.has_thread), (4, 0, false));
    }
}
