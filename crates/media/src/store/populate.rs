//! Touching the pages of a mapping ahead of the requests that will.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What is touched with one call: the wait of whoever ends it, about 5 ms.
const STEP: usize = 16 << 20;

/// A thread that maps a mapping's pages for writing, best effort, until it is through or this goes; it has to
/// go before the mapping does.
#[derive(Debug)]
pub(super) struct Populate {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Populate {
    /// Over `len` bytes at `start`, which is the start of a page.
    pub(super) fn new(start: *const u8, len: usize) -> Populate {
        let stop = Arc::new(AtomicBool::new(false));
        let (ended, start) = (Arc::clone(&stop), start as usize);
        let touch = move || {
            for from in (0..len).step_by(STEP) {
                if ended.load(Ordering::Relaxed) || !populate(start + from, STEP.min(len - from)) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("populate".into()).spawn(touch);
        Populate { stop, thread: thread.ok() }
    }
}

fn populate(start: usize, len: usize) -> bool {
    // SAFETY: the range lies in a mapping that outlives this thread, which is joined before it goes.
    // The call maps pages as a write would, and changes no byte.
    unsafe { libc::madvise(start as *mut libc::c_void, len, libc::MADV_POPULATE_WRITE) == 0 }
}

impl Drop for Populate {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It cannot panic.
            drop(thread.join());
        }
    }
}
