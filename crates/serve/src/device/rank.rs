//! Rank of threads that read for the processing engine.
//!
//! While such a thread holds the lock of a device, requests wait for it, so it has the rank of their
//! threads. While it processes what it has read, every other thread goes first.

use rustix::process::{getpriority_process, setpriority_process};
use std::cell::Cell;
use std::sync::OnceLock;

/// Nice value of a thread that processes what it has read: the lowest rank of `setpriority(2)`.
const NICE_PROCESSING: i32 = 19;

thread_local! {
    static LOWERED: Cell<bool> = const { Cell::new(false) };
}

/// Returns the nice value of the process, or `None` if its threads may not return to it. They may with
/// the capability `CAP_SYS_NICE`.
fn base() -> Option<i32> {
    static BASE: OnceLock<Option<i32>> = OnceLock::new();
    // A thread of its own tries, since it may keep the lower rank.
    let tries = || {
        let base = getpriority_process(None).ok().filter(|base| *base < NICE_PROCESSING)?;
        setpriority_process(None, NICE_PROCESSING).ok()?;
        setpriority_process(None, base).ok().map(|()| base)
    };
    *BASE.get_or_init(|| std::thread::spawn(tries).join().ok().flatten())
}

/// Gives the current thread the rank of the process.
pub(crate) fn raise() {
    if LOWERED.get()
        && let Some(base) = base()
        && setpriority_process(None, base).is_ok()
    {
        LOWERED.set(false);
    }
}

/// Gives the current thread the lowest rank, if it can be raised again.
pub(crate) fn lower() {
    if !LOWERED.get() && base().is_some() {
        LOWERED.set(setpriority_process(None, NICE_PROCESSING).is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lowered_thread_has_its_rank_again() {
        let nice = || getpriority_process(None).unwrap();
        let before = nice();
        lower();
        assert_eq!(nice(), if base().is_some() { NICE_PROCESSING } else { before });
        raise();
        assert_eq!((nice(), LOWERED.get()), (before, false));
    }
}
