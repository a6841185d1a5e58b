//! Handlers of signals run at the end of a direct access that they interrupt, as the kernel runs them at the end of a
//! call. Otherwise a handler could wait for what the access holds, and a child that it forks could make the rest of
//! the access at any later time.
//!
//! The kernel calls [`on_signal`] instead of a handler of the program. Within an access, the signal is sent to this
//! thread again, which blocks it until the end of the access. Otherwise `on_signal` jumps to the handler, so that the
//! stack is as without this library. An access without signals costs one test of a flag.

use super::sys::{self, next};
use super::thread::Thread;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) const SA_SIGINFO: c_int = 4;
pub(super) const SA_ONSTACK: c_int = 0x0800_0000;
pub(super) const SA_RESTART: c_int = 0x1000_0000;
pub(super) const SA_NODEFER: c_int = 0x4000_0000;
pub(super) const SA_RESETHAND: c_int = i32::MIN;
pub(super) const SIG_DFL: usize = 0;
pub(super) const SIG_IGN: usize = 1;
/// Asks `sigset` to block a signal.
pub(super) const SIG_HOLD: usize = 2;
pub(super) const SIG_ERR: usize = usize::MAX;
pub(super) const SIG_BLOCK: c_int = 0;
pub(super) const SIG_UNBLOCK: c_int = 1;
pub(super) const SIGBUS: c_int = 7;
pub(super) const SIGSEGV: c_int = 11;
/// Bits of the two signals in a set.
pub(super) const FAULTS: u64 = 1 << (SIGSEGV - 1) | 1 << (SIGBUS - 1);

/// Signals that are blocked within an access after one of them has arrived. SIGKILL and SIGSTOP never are.
const HELD: u64 = !(FAULTS | 1 << (9 - 1) | 1 << (19 - 1));

/// Words of `sigset_t`.
const SET_WORDS: usize = 16;

/// `sigset_t`.
pub(super) type SignalSet = [u64; SET_WORDS];

/// Returns a set with signals up to 64.
pub(super) const fn set_of(signals: u64) -> SignalSet {
    let mut set = [0; SET_WORDS];
    set[0] = signals;
    set
}

/// `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct SigAction {
    pub(super) handler: usize,
    pub(super) mask: SignalSet,
    pub(super) flags: c_int,
    pub(super) restorer: usize,
}

impl SigAction {
    pub(super) const fn new(handler: usize, mask: SignalSet, flags: c_int) -> Self {
        Self { handler, mask, flags, restorer: 0 }
    }
}

pub(super) fn real_sigaction(signal: c_int, new: *const SigAction, old: *mut SigAction) -> c_int {
    next!(sigaction(signal: c_int, new: *const SigAction, old: *mut SigAction) -> c_int)
}

pub(super) fn real_mask(how: c_int, new: *const SignalSet, old: *mut SignalSet) -> c_int {
    next!(pthread_sigmask(how: c_int, new: *const SignalSet, old: *mut SignalSet) -> c_int)
}

/// Number of signals, which begin at 1.
const SIGNALS: usize = 64;

/// A handler of the program: its address, and two of its flags in upper bits, which addresses of programs do not have.
struct Handler(AtomicUsize);

const TAKES_INFO: usize = 1 << 62;
const IS_RESET: usize = 1 << 63;

static HANDLERS: [Handler; SIGNALS] = [const { Handler(AtomicUsize::new(0)) }; SIGNALS];

fn handler(signal: c_int) -> Option<&'static Handler> {
    HANDLERS.get((signal as usize).checked_sub(1)?)
}

/// Address of [`on_signal`].
fn entry() -> usize {
    on_signal as *const () as usize
}

/// Sets the handler of a signal by `call`, which gets the handler for the kernel, and returns the former one, or
/// `None` if it fails. Returns the former handler of the program.
pub(super) fn replace(
    signal: c_int,
    new: Option<(usize, c_int)>,
    call: impl FnOnce(usize) -> Option<usize>,
) -> Option<usize> {
    let Some(table) = handler(signal) else { return call(new.map_or(0, |(new, _)| new)) };
    let before = table.0.load(Ordering::Acquire);
    let mut for_kernel = 0;
    if let Some((new, flags)) = new {
        for_kernel = new;
        // After a system call for the former action, the program may set the entry itself.
        if !matches!(new, SIG_DFL | SIG_IGN | SIG_HOLD | SIG_ERR) && new != entry() {
            let takes_info = if flags & SA_SIGINFO != 0 { TAKES_INFO } else { 0 };
            let is_reset = if flags & SA_RESETHAND != 0 { IS_RESET } else { 0 };
            table.0.store(new | takes_info | is_reset, Ordering::Release);
            for_kernel = entry();
        }
    }
    let old = call(for_kernel);
    if old.is_none() {
        table.0.store(before, Ordering::Release);
    }
    old.map(|old| program_s(old, before))
}

/// Returns the former handler of the program, from that of the kernel.
fn program_s(old: usize, before: usize) -> usize {
    if old == entry() { before & !(TAKES_INFO | IS_RESET) } else { old }
}

/// Returns the handler of the program for an address that the kernel has.
pub(super) fn of_program(signal: c_int, old: usize) -> usize {
    handler(signal).map_or(old, |table| program_s(old, table.0.load(Ordering::Acquire)))
}

/// What the kernel calls. It has the stack of a handler, and leaves nothing on it.
#[unsafe(naked)]
unsafe extern "C" fn on_signal() {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "call {choose}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2: ret",
        choose = sym choose,
    )
}

/// Returns the handler to be called now, or 0.
extern "C" fn choose(signal: c_int, info: *const c_void, context: *mut c_void) -> usize {
    let Some(table) = handler(signal) else { return 0 };
    let value = table.0.load(Ordering::Acquire);
    let thread = Thread::get();
    if thread.is_in_access() {
        // SAFETY: the kernel passes a `ucontext_t`.
        let hold = unsafe { Hold::new(context) };
        if send_again(signal, if value & TAKES_INFO != 0 { info } else { std::ptr::null() }) {
            if value & IS_RESET != 0 {
                set_again(signal);
            }
            hold.until_end_of_access(thread);
            return 0;
        }
    }
    value & !(TAKES_INFO | IS_RESET)
}

/// Sends a signal to this thread, which blocks it. Returns `false` if the kernel cannot queue it.
fn send_again(signal: c_int, info: *const c_void) -> bool {
    const SYS_RT_TGSIGQUEUEINFO: i64 = 297;
    let (process, thread) = (sys::process() as usize, sys::thread() as usize);
    // SAFETY: the kernel reads the information that it has passed to the handler.
    let result = unsafe {
        if info.is_null() {
            sys::raw_call(sys::SYS_TGKILL, process, thread, signal as usize)
        } else {
            let arguments = [process, thread, signal as usize, info as usize, 0, 0];
            sys::raw_call_of_six(SYS_RT_TGSIGQUEUEINFO, arguments)
        }
    };
    result == 0
}

/// Sets a handler again that the kernel has reset before it called it (SA_RESETHAND). It keeps the flags and the mask.
fn set_again(signal: c_int) {
    let mut action = SigAction::new(SIG_DFL, set_of(0), 0);
    if real_sigaction(signal, std::ptr::null(), &raw mut action) == 0 {
        action.handler = entry();
        real_sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

/// All signals are blocked, within a handler of a signal, whose return restores a mask.
struct Hold {
    before: u64,
    /// The mask that the return from the handler restores.
    at_return: *mut u64,
}

impl Hold {
    /// # Safety
    /// `context` is the `ucontext_t` of a handler.
    unsafe fn new(context: *mut c_void) -> Self {
        /// Position of `uc_sigmask` in `ucontext_t`, behind `uc_mcontext`, which has 256 bytes.
        const MASK: usize = 40 + 256;
        // SAFETY: the caller's.
        let at_return = unsafe { context.cast::<u8>().add(MASK).cast::<u64>() };
        // Also faults: those that are sent would set the mask for the end of the access after this handler.
        Self { before: sys::block_signals(u64::MAX), at_return }
    }

    /// Lets the signals but faults stay blocked until the end of the access in progress. Handlers can be nested: the
    /// outer one is the last that comes here, and its mask is that of the access. A fault that is sent after it finds
    /// the blocked signals.
    fn until_end_of_access(self, thread: &Thread) {
        // SAFETY: the context is valid until the handler returns.
        let mask = unsafe { self.at_return.replace(HELD) };
        let delayed = &thread.delayed;
        if !delayed.is_any.replace(true) || mask != HELD {
            delayed.mask.set(mask);
        }
        std::mem::forget(self);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        sys::set_blocked_signals(self.before);
    }
}

/// Signals that arrived within an access.
pub(super) struct Delayed {
    is_any: Cell<bool>,
    /// Blocked signals before.
    mask: Cell<u64>,
    /// Signals of faults that were sent: they cannot be blocked.
    faults: Cell<u64>,
}

impl Delayed {
    pub(super) const fn new() -> Self {
        Self { is_any: Cell::new(false), mask: Cell::new(0), faults: Cell::new(0) }
    }

    /// Lets the handlers run. There is no access in progress.
    #[inline]
    pub(super) fn deliver(&self) {
        if self.is_any.get() {
            self.deliver_now();
        }
    }

    #[cold]
    fn deliver_now(&self) {
        // In this order: handlers run within the calls, and may access files.
        self.is_any.set(false);
        let faults = self.faults.replace(0);
        sys::set_blocked_signals(self.mask.get());
        for signal in [SIGSEGV, SIGBUS] {
            if faults >> (signal - 1) & 1 != 0 {
                send_again(signal, std::ptr::null());
            }
        }
    }
}

/// Delays a signal of a fault that was sent, if it interrupted an access. Returns `false` if it did not.
///
/// # Safety
/// `context` is the `ucontext_t` of a handler.
pub(super) unsafe fn delay_fault(signal: c_int, context: *mut c_void) -> bool {
    let thread = Thread::get();
    if !thread.is_in_access() {
        return false;
    }
    // SAFETY: the caller's.
    let hold = unsafe { Hold::new(context) };
    thread.delayed.faults.set(thread.delayed.faults.get() | 1 << (signal - 1));
    hold.until_end_of_access(thread);
    true
}
