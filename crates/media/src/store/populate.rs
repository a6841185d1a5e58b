//! Background population of a mapping: touches its pages before requests do.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Bytes that are touched with one call. A thread that drops a [`Populate`] waits for one call,
/// about 5 ms.
const STEP: usize = 16 << 20;

/// A thread that maps the pages of a mapping for writing (best effort). It ends when all pages are
/// mapped or when this value is dropped, which must happen before the mapping is dropped.
#[derive(Debug)]
pub(super) struct Populate {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Populate {
    /// Starts to populate `len` bytes at `start`, which must be page-aligned.
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
    // SAFETY: the range lies in a mapping that outlives this thread, which is joined before the
    // mapping is dropped. The call maps pages as a write would, and changes no byte.
    unsafe { libc::madvise(start as *mut libc::c_void, len, libc::MADV_POPULATE_WRITE) == 0 }
}

impl Drop for Populate {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread cannot panic, so the result is ignored.
            drop(thread.join());
        }
    }
}
