//! The functions of the C library on signals that this library stands in for: the kernel has handlers of this library
//! (`signals.rs`, `faults.rs`), and the program finds its own.

use super::signals::{
    self, FAULTS, SA_NODEFER, SA_RESETHAND, SA_RESTART, SIG_BLOCK, SIG_ERR, SIG_HOLD, SIG_IGN, SIG_UNBLOCK,
    SigAction, SignalSet, real_mask, real_sigaction, set_of,
};
use super::sys::{self, next, set_errno};
use super::{faults, mounts};
use std::ffi::{c_int, c_void};

/// sigaction(2) of the program.
///
/// # Safety
/// As for sigaction(2).
#[cfg_attr(frit_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const SigAction, old: *mut SigAction) -> c_int {
    if !mounts::has_mounts() {
        return real_sigaction(signal, new, old);
    }
    // SAFETY: the program's pointers are valid or null.
    let new = unsafe { new.as_ref() }.copied();
    if let Some(before) = faults::replace_handler(signal, new.as_ref()) {
        if !old.is_null() {
            // SAFETY: as above.
            unsafe { *old = before };
        }
        return 0;
    }
    // Faults are handled by this library only while it needs that.
    let is_fault = faults::is_fault(signal);
    let new = new.as_ref().map(|new| if is_fault { *new } else { signals::to_kernel(new) });
    let result = real_sigaction(signal, new.as_ref().map_or(std::ptr::null(), std::ptr::from_ref), old);
    // SAFETY: as above.
    if let (0, Some(old)) = (result, unsafe { old.as_mut() }) {
        signals::to_program(old);
    }
    result
}

/// Another name of `sigaction` in the C library.
///
/// # Safety
/// As for sigaction(2).
#[cfg_attr(frit_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn __sigaction(signal: c_int, new: *const SigAction, old: *mut SigAction) -> c_int {
    // SAFETY: the caller's.
    unsafe { sigaction(signal, new, old) }
}

/// Defines a function that sets the handler of a signal, with the flags of the C library.
macro_rules! set_handler {
    ($($name:ident: $flags:expr),* $(,)?) => {$(
        #[doc = concat!("Stands in for `", stringify!($name), "` of the C library.")]
        ///
        /// # Safety
        /// As for signal(2).
        #[cfg_attr(frit_preload, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(signal: c_int, handler: usize) -> usize {
            let call = |handler| next!($name(signal: c_int, handler: usize) -> usize);
            if !mounts::has_mounts() {
                return call(handler);
            }
            if let Some(before) = replace_fault_handler(signal, handler, $flags) {
                return before;
            }
            let handler = if faults::is_fault(signal) { handler } else { signals::for_kernel(handler, $flags, false) };
            signals::for_program(call(handler))
        }
    )*};
}

set_handler! {
    signal: SA_RESTART,
    bsd_signal: SA_RESTART,
    ssignal: SA_RESTART,
    sysv_signal: SA_RESETHAND | SA_NODEFER,
    __sysv_signal: SA_RESETHAND | SA_NODEFER,
    sigset: 0,
}

/// sigignore(3) of the program.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(frit_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn sigignore(signal: c_int) -> c_int {
    let ignores = SigAction::new(SIG_IGN, set_of(0), 0);
    // SAFETY: the action is valid.
    unsafe { sigaction(signal, &raw const ignores, std::ptr::null_mut()) }
}

/// `__ppoll_chk` of the C library, which is `ppoll` in programs with _FORTIFY_SOURCE.
///
/// # Safety
/// As for ppoll(2).
#[cfg_attr(frit_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn __ppoll_chk(
    all: *mut c_void,
    count: usize,
    limit: *const c_void,
    mask: *const SignalSet,
    room: usize,
) -> c_int {
    let allowed = without_faults(SIG_BLOCK, mask);
    let mask = allowed.as_ref().map_or(mask, std::ptr::from_ref);
    next!(__ppoll_chk(all: *mut c_void, count: usize, limit: *const c_void, mask: *const SignalSet, room: usize) -> c_int)
}

/// Replaces the handler of a fault; returns the one before. `None`: the kernel has the program's.
fn replace_fault_handler(signal: c_int, handler: usize, flags: c_int) -> Option<usize> {
    let action = SigAction::new(handler, set_of(0), flags);
    // A fault is never blocked.
    let new = Some(&action).filter(|_| !matches!(handler, SIG_HOLD | SIG_ERR));
    let before = faults::replace_handler(signal, new)?;
    if handler == SIG_ERR {
        set_errno(sys::EINVAL);
        return Some(SIG_ERR);
    }
    Some(before.handler)
}

/// Returns a set of signals to be blocked, without faults.
fn without_faults(how: c_int, set: *const SignalSet) -> Option<SignalSet> {
    if set.is_null() || how == SIG_UNBLOCK || !faults::are_handled() {
        return None;
    }
    // SAFETY: the program passes a set.
    let mut set = unsafe { *set };
    set[0] &= !FAULTS;
    Some(set)
}

/// pthread_sigmask(3) of the program.
///
/// # Safety
/// As for pthread_sigmask(3).
#[cfg_attr(frit_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn pthread_sigmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int {
    let allowed = without_faults(how, set);
    real_mask(how, allowed.as_ref().map_or(set, std::ptr::from_ref), old)
}

/// sigprocmask(2) of the program.
///
/// # Safety
/// As for sigprocmask(2).
#[cfg_attr(frit_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn sigprocmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int {
    let allowed = without_faults(how, set);
    let set = allowed.as_ref().map_or(set, std::ptr::from_ref);
    next!(sigprocmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int)
}

/// Defines functions that wait with other blocked signals, the set of which is the argument `$set`.
macro_rules! wait_with_mask {
    ($(fn $name:ident($($arg:ident: $kind:ty),*; $set:ident) -> c_int;)*) => {$(
        #[doc = concat!("Stands in for `", stringify!($name), "` of the C library.")]
        ///
        /// # Safety
        /// As for the function of the C library.
        #[cfg_attr(frit_preload, unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($arg: $kind,)* $set: *const SignalSet) -> c_int {
            let allowed = without_faults(SIG_BLOCK, $set);
            let $set = allowed.as_ref().map_or($set, std::ptr::from_ref);
            next!($name($($arg: $kind,)* $set: *const SignalSet) -> c_int)
        }
    )*};
}

wait_with_mask! {
    fn sigsuspend(; mask) -> c_int;
    fn ppoll(all: *mut c_void, count: usize, limit: *const c_void; mask) -> c_int;
    fn pselect(
        count: c_int, read: *mut c_void, write: *mut c_void, other: *mut c_void, limit: *const c_void; mask
    ) -> c_int;
    fn epoll_pwait(epoll: c_int, events: *mut c_void, count: c_int, limit: c_int; mask) -> c_int;
    fn epoll_pwait2(epoll: c_int, events: *mut c_void, count: c_int, limit: *const c_void; mask) -> c_int;
}
