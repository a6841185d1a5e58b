//! Background population of a mapping: makes huge pages of its pages, or touches them, before requests
//! do.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Bytes that are touched with one call. A thread that drops a [`Populate`] waits for one call,
/// about 5 ms.
const STEP: usize = 16 << 20;
/// Size of a huge page of x86-64 and of most kernels of AArch64.
pub(super) const HUGE_PAGE: usize = 2 << 20;
/// Number of huge pages in a row that the kernel refuses, after which none is asked for any more.
const REFUSALS_MAX: u32 = 4;

/// A thread that maps the pages of a mapping for writing (best effort). It ends when all pages are
/// mapped or when this value is dropped, which must happen before the mapping is dropped.
#[derive(Debug)]
pub(super) struct Populate {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Populate {
    /// Starts to populate `len` bytes at `start`, which must be page-aligned. With `huge`, all pages
    /// have memory, which becomes memory of huge pages if the kernel has any.
    ///
    /// A random page of 4 KiB is read in a half to a third of the time in huge pages, since nearly
    /// each one needs a new entry of the TLB otherwise. A file keeps its huge pages until its memory
    /// is freed.
    pub(super) fn new(start: *const u8, len: usize, huge: bool) -> Populate {
        let stop = Arc::new(AtomicBool::new(false));
        let (ended, start) = (Arc::clone(&stop), start as usize);
        let touch = move || {
            let (mut from, mut refusals) = (0, if huge { 0 } else { REFUSALS_MAX });
            while from < len && !ended.load(Ordering::Relaxed) {
                let step = if refusals < REFUSALS_MAX { HUGE_PAGE } else { STEP }.min(len - from);
                if refusals < REFUSALS_MAX && step == HUGE_PAGE && collapse(start + from) {
                    refusals = 0;
                } else {
                    refusals += u32::from(refusals < REFUSALS_MAX);
                    if !populate(start + from, step) {
                        return;
                    }
                }
                from += step;
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

/// Moves a huge page of bytes, which may be in use, into a huge page. Returns `true` if it is one.
fn collapse(start: usize) -> bool {
    // SAFETY: the range lies in a mapping that outlives this thread. The call changes no byte.
    unsafe { libc::madvise(start as *mut libc::c_void, HUGE_PAGE, libc::MADV_COLLAPSE) == 0 }
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
