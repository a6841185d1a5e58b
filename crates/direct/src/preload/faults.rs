//! Faults of copies: read(2) and write(2) return EFAULT for a buffer that is not mapped. All other faults go to the
//! handlers of the program.

use super::copy;
use super::process;
use super::signals::{
    self, FAULTS, SA_NODEFER, SA_ONSTACK, SA_RESETHAND, SA_RESTART, SA_SIGINFO, SIG_BLOCK, SIG_DFL, SIG_IGN,
    SIG_UNBLOCK, SIGBUS, SIGSEGV, SigAction, real_mask, real_sigaction, set_of,
};
use super::sys::{self, BlockedSignals};
use super::thread::Thread;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

/// Position of the instruction pointer in `ucontext_t`: general registers from byte 40, number 16.
const RIP: usize = 40 + 16 * 8;

/// The program's own handler of a fault.
struct Chained {
    handler: AtomicUsize,
    flags: AtomicI32,
    mask: AtomicU64,
}

impl Chained {
    const fn new() -> Self {
        Self { handler: AtomicUsize::new(0), flags: AtomicI32::new(0), mask: AtomicU64::new(0) }
    }

    fn get(&self) -> SigAction {
        let mask = set_of(self.mask.load(Ordering::Relaxed));
        SigAction::new(self.handler.load(Ordering::Acquire), mask, self.flags.load(Ordering::Relaxed))
    }

    fn set(&self, action: &SigAction) {
        self.flags.store(action.flags, Ordering::Relaxed);
        self.mask.store(action.mask[0], Ordering::Relaxed);
        self.handler.store(action.handler, Ordering::Release);
    }
}

static SEGV: Chained = Chained::new();
static BUS: Chained = Chained::new();
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Returns `true` for the signals of faults.
pub(super) fn is_fault(signal: c_int) -> bool {
    chained(signal).is_some()
}

/// Returns `true` if the kernel has the handler of this library.
pub(super) fn are_handled() -> bool {
    INSTALLED.load(Ordering::Acquire)
}

fn chained(signal: c_int) -> Option<&'static Chained> {
    match signal {
        SIGSEGV => Some(&SEGV),
        SIGBUS => Some(&BUS),
        _ => None,
    }
}

/// Excludes other threads from the handlers of the program.
static LOCK: AtomicBool = AtomicBool::new(false);

/// Calls `body` without other threads.
fn locked<T>(body: impl FnOnce() -> T) -> T {
    // In this order: a child of fork(2) has no other threads.
    process::is_active();
    let _quiet = BlockedSignals::new();
    while LOCK.swap(true, Ordering::Acquire) {
        // SAFETY: the call has no arguments.
        unsafe { sys::sched_yield() };
    }
    let result = body();
    LOCK.store(false, Ordering::Release);
    result
}

/// Puts the lock in order in a child of fork(2).
pub(super) fn begin_child() {
    LOCK.store(false, Ordering::Release);
}

/// Returns the program's handler of a fault, if the kernel has that of this library, and replaces it if there is a new
/// one.
pub(super) fn replace_handler(signal: c_int, new: Option<&SigAction>) -> Option<SigAction> {
    let chained = chained(signal).filter(|_| are_handled() && process::has_own_memory())?;
    Some(locked(|| {
        let before = chained.get();
        if let Some(new) = new {
            chained.set(new);
            set_ours(signal, new);
        }
        before
    }))
}

/// Gives the kernel the handler of this library. Returns `false` if that is not possible.
fn set_ours(signal: c_int, program: &SigAction) -> bool {
    let ours = ours(program);
    real_sigaction(signal, &raw const ours, std::ptr::null_mut()) == 0
}

/// Returns the action of the kernel for a handler of the program: both have the same stack.
fn ours(program: &SigAction) -> SigAction {
    let is_handler = !matches!(program.handler, SIG_DFL | SIG_IGN);
    let stack = if is_handler { program.flags & SA_ONSTACK } else { SA_ONSTACK };
    let flags = SA_SIGINFO | SA_RESTART | SA_NODEFER | stack;
    SigAction::new(on_fault as *const () as usize, set_of(0), flags)
}

/// Installs the handler of faults. The program's handlers are called for all other faults. Returns `false` if a filter of
/// system calls does not allow it.
pub(super) fn install() -> bool {
    if INSTALLED.swap(true, Ordering::AcqRel) {
        return true;
    }
    let is_installed = locked(|| {
        [SIGSEGV, SIGBUS].into_iter().all(|signal| {
            let mut old = SigAction::new(SIG_DFL, set_of(0), 0);
            let is_read = real_sigaction(signal, std::ptr::null(), &raw mut old) == 0;
            if let Some(chained) = chained(signal) {
                chained.set(&old);
            }
            is_read && set_ours(signal, &old)
        })
    });
    INSTALLED.store(is_installed, Ordering::Release);
    is_installed
}

/// Lets this thread receive faults, which would kill the process while they are blocked.
pub(super) fn unblock() {
    let set = set_of(FAULTS);
    real_mask(SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
}

unsafe extern "C" fn on_fault(signal: c_int, info: *mut c_void, context: *mut c_void) {
    // SAFETY: the kernel passes a `ucontext_t`.
    let instruction = unsafe { &mut *context.cast::<u8>().add(RIP).cast::<usize>() };
    // SAFETY: the kernel passes a `siginfo_t`.
    let is_fault = unsafe { !signals::is_sent(info) };
    // SAFETY: the arguments are the kernel's.
    unsafe {
        match copy::after_fault(*instruction) {
            Some(after) if is_fault => *instruction = after,
            _ if !is_fault && signals::delay_fault(signal, context) => {}
            _ => chain(signal, info, context, is_fault),
        }
    }
}

/// Calls the program's handler.
unsafe fn chain(signal: c_int, info: *mut c_void, context: *mut c_void, is_fault: bool) {
    let Some(chained) = chained(signal) else { return };
    let action = locked(|| {
        let action = chained.get();
        if action.flags & SA_RESETHAND != 0 && !matches!(action.handler, SIG_DFL | SIG_IGN) {
            chained.handler.store(SIG_DFL, Ordering::Release);
        }
        action
    });
    match action.handler {
        SIG_IGN if !is_fault => {}
        SIG_DFL | SIG_IGN => {
            let default = SigAction::new(SIG_DFL, set_of(0), 0);
            real_sigaction(signal, &raw const default, std::ptr::null_mut());
            if !is_fault {
                // A fault repeats by itself; a signal that was sent does not.
                signals::send_again(signal, std::ptr::null());
            }
        }
        handler => {
            let mut mask = action.mask;
            if action.flags & SA_NODEFER == 0 {
                mask[0] |= 1 << (signal - 1);
            }
            // The end of the signal restores the mask.
            real_mask(SIG_BLOCK, &raw const mask, std::ptr::null_mut());
            let thread = Thread::get();
            let was_in_handler = thread.in_handler.replace(true);
            // SAFETY: the program installed a handler with this signature; without SA_SIGINFO it uses the first argument.
            unsafe {
                let handler: unsafe extern "C" fn(c_int, *mut c_void, *mut c_void) =
                    std::mem::transmute::<usize, _>(handler);
                handler(signal, info, context);
            }
            thread.in_handler.set(was_in_handler);
        }
    }
}
