//! Report at the end of a process, for `frit exec --report`.

use super::{slots, sys};
use crate::environment::REPORT;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of reads and writes of tracked files that went through the mount.
static THROUGH_MOUNT: AtomicU64 = AtomicU64::new(0);

/// Counts an access that goes through the mount.
pub(super) fn count_through_mount() {
    THROUGH_MOUNT.fetch_add(1, Ordering::Relaxed);
}

#[cfg_attr(frit_preload, used)]
#[cfg_attr(frit_preload, unsafe(link_section = ".fini_array"))]
static AT_END: extern "C" fn() = report;

/// Writes the report to the standard error, if it is wanted and this process accessed files of a mount.
extern "C" fn report() {
    const STDERR: usize = 2;
    const SYS_WRITE: i64 = 1;
    // SAFETY: the name is a C string.
    if unsafe { sys::getenv(REPORT.as_ptr()) }.is_null() {
        return;
    }
    let (reads, writes) = slots::direct_accesses();
    let through = THROUGH_MOUNT.load(Ordering::Relaxed);
    if reads + writes + through == 0 {
        return;
    }
    let text = format!(
        "[frit exec] process {}: {reads} reads and {writes} writes in memory, {through} through the mount\n",
        sys::process()
    );
    // SAFETY: the text is valid for reading.
    unsafe { sys::raw_call(SYS_WRITE, STDERR, text.as_ptr() as usize, text.len()) };
}
