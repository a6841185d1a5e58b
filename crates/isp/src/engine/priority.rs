//! Priority of threads.

use rustix::process::{getpriority_process, setpriority_process};

/// Gives the current thread a niceness, unless it has a higher one. On Linux, `setpriority` without a process
/// changes the calling thread only (setpriority(2)). Any thread may raise its niceness.
pub(super) fn set_niceness(niceness: i32) {
    if getpriority_process(None).is_ok_and(|own| own < niceness) {
        // Without it the engine still yields at the foreground gate.
        let _ = setpriority_process(None, niceness);
    }
}
