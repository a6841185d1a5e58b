//! Priority of threads.

/// Gives the current thread only the time of processors that have no other work. Returns `false` if
/// the system refuses.
pub(super) fn set_idle() -> bool {
    let parameters = libc::sched_param { sched_priority: 0 };
    #[allow(unsafe_code)]
    // SAFETY: the parameters are valid for the call, and 0 is the current thread. No safe wrapper of
    // this call exists in the dependencies.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
    result == 0
}
