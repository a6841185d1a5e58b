//! Copies between memory of the program and the medium, which end at an address that is not mapped
//! instead of killing the program: read(2) and write(2) return EFAULT for such a buffer.

use super::mounts;
use super::sys::{self, next, set_errno};
use super::thread::Thread;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

// Both return the number of bytes that were not copied. A fault continues at the label behind the
// copy, where rcx has the rest.
std::arch::global_asm!(
    ".text",
    ".globl frit_direct_copy, frit_direct_copy_start, frit_direct_copy_end",
    ".globl frit_direct_stream, frit_direct_stream_start, frit_direct_stream_end",
    ".hidden frit_direct_copy, frit_direct_copy_start, frit_direct_copy_end",
    ".hidden frit_direct_stream, frit_direct_stream_start, frit_direct_stream_end",
    ".p2align 4",
    "frit_direct_copy:",
    "mov rcx, rdx",
    "frit_direct_copy_start:",
    "rep movsb",
    "frit_direct_copy_end:",
    "mov rax, rcx",
    "ret",
    ".p2align 4",
    "frit_direct_stream:",
    "mov rcx, rdx",
    "frit_direct_stream_start:",
    "2:",
    "movdqu xmm0, [rsi]",
    "movdqu xmm1, [rsi + 16]",
    "movdqu xmm2, [rsi + 32]",
    "movdqu xmm3, [rsi + 48]",
    "movntdq [rdi], xmm0",
    "movntdq [rdi + 16], xmm1",
    "movntdq [rdi + 32], xmm2",
    "movntdq [rdi + 48], xmm3",
    "add rsi, 64",
    "add rdi, 64",
    "sub rcx, 64",
    "jnz 2b",
    "frit_direct_stream_end:",
    "sfence",
    "mov rax, rcx",
    "ret",
);

unsafe extern "C" {
    fn frit_direct_copy(to: *mut u8, from: *const u8, len: usize) -> usize;
    fn frit_direct_copy_start();
    fn frit_direct_copy_end();
    fn frit_direct_stream(to: *mut u8, from: *const u8, len: usize) -> usize;
    fn frit_direct_stream_start();
    fn frit_direct_stream_end();
}

/// Minimum length of writes with streaming stores, as in the library (`fs/src/medium/memory.rs`).
const STREAM_FROM: usize = 32 << 10;

/// Copies bytes; returns the number of bytes copied, which is lower if an address is not mapped.
///
/// # Safety
/// One of the ranges is memory of this library, or of the medium, and valid.
#[inline]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) -> usize {
    // SAFETY: a fault at the other address ends the copy.
    len - unsafe { frit_direct_copy(to, from, len) }
}

/// Copies bytes to the medium; long copies bypass the caches. Returns the number of bytes copied.
///
/// # Safety
/// `to` is valid for writes of `len` bytes.
#[inline]
pub(super) unsafe fn copy_to_medium(to: *mut u8, from: *const u8, len: usize) -> usize {
    if len < STREAM_FROM {
        // SAFETY: the caller's.
        return unsafe { copy(to, from, len) };
    }
    let head = to.align_offset(64);
    let body = (len - head) / 64 * 64;
    // SAFETY: the parts are within the range of the caller; the streamed one is aligned.
    unsafe {
        let mut done = copy(to, from, head);
        if done < head {
            return done;
        }
        done += body - frit_direct_stream(to.add(head), from.add(head), body);
        if done < head + body {
            return done;
        }
        done + copy(to.add(done), from.add(done), len - done)
    }
}

const SIGBUS: c_int = 7;
const SIGSEGV: c_int = 11;
const SA_SIGINFO: c_int = 4;
const SA_ONSTACK: c_int = 0x0800_0000;
const SA_RESTART: c_int = 0x1000_0000;
const SA_NODEFER: c_int = 0x4000_0000;
const SA_RESETHAND: c_int = i32::MIN;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const SIG_ERR: usize = usize::MAX;
const SIG_BLOCK: c_int = 0;
const SIG_UNBLOCK: c_int = 1;
/// Words of `sigset_t`.
const SET_WORDS: usize = 16;
/// Position of the instruction pointer in `ucontext_t`: general registers from byte 40, number 16.
const RIP: usize = 40 + 16 * 8;

/// `sigset_t`.
pub(super) type SignalSet = [u64; SET_WORDS];

/// `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct SigAction {
    handler: usize,
    mask: SignalSet,
    flags: c_int,
    restorer: usize,
}

/// The program's own handler of a signal.
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
        let mut mask = [0; SET_WORDS];
        mask[0] = self.mask.load(Ordering::Relaxed);
        let flags = self.flags.load(Ordering::Relaxed);
        SigAction { handler: self.handler.load(Ordering::Acquire), mask, flags, restorer: 0 }
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

fn chained(signal: c_int) -> Option<&'static Chained> {
    match signal {
        SIGSEGV => Some(&SEGV),
        SIGBUS => Some(&BUS),
        _ => None,
    }
}

/// Bits of the two signals in a set.
pub(super) const FAULTS: u64 = 1 << (SIGSEGV - 1) | 1 << (SIGBUS - 1);

fn real_sigaction(signal: c_int, new: *const SigAction, old: *mut SigAction) -> c_int {
    next!(sigaction(signal: c_int, new: *const SigAction, old: *mut SigAction) -> c_int)
}

fn real_mask(how: c_int, new: *const SignalSet, old: *mut SignalSet) -> c_int {
    next!(pthread_sigmask(how: c_int, new: *const SignalSet, old: *mut SignalSet) -> c_int)
}

/// Installs the handler of faults. The program's handlers are called for all other faults.
pub(super) fn install() {
    if INSTALLED.swap(true, Ordering::AcqRel) {
        return;
    }
    for signal in [SIGSEGV, SIGBUS] {
        let mut old = SigAction { handler: 0, mask: [0; SET_WORDS], flags: 0, restorer: 0 };
        let flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER;
        let new =
            SigAction { handler: on_fault as *const () as usize, mask: [0; SET_WORDS], flags, restorer: 0 };
        real_sigaction(signal, std::ptr::null(), &raw mut old);
        if let Some(chained) = chained(signal) {
            chained.set(&old);
        }
        real_sigaction(signal, &raw const new, std::ptr::null_mut());
    }
}

/// Lets this thread receive faults, which would kill the process while they are blocked.
pub(super) fn unblock() {
    let mut set = [0; SET_WORDS];
    set[0] = FAULTS;
    real_mask(SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
}

unsafe extern "C" fn on_fault(signal: c_int, info: *mut c_void, context: *mut c_void) {
    // SAFETY: the kernel passes a `ucontext_t`.
    let rip = unsafe { &mut *context.cast::<u8>().add(RIP).cast::<usize>() };
    let (copy, copy_end) =
        (frit_direct_copy_start as *const () as usize, frit_direct_copy_end as *const () as usize);
    let (stream, stream_end) =
        (frit_direct_stream_start as *const () as usize, frit_direct_stream_end as *const () as usize);
    if (copy..copy_end).contains(rip) {
        *rip = copy_end;
        return;
    }
    if (stream..stream_end).contains(rip) {
        *rip = stream_end;
        return;
    }
    // SAFETY: the arguments are the kernel's.
    unsafe { chain(signal, info, context) };
}

/// Calls the program's handler.
unsafe fn chain(signal: c_int, info: *mut c_void, context: *mut c_void) {
    let Some(chained) = chained(signal) else { return };
    let action = chained.get();
    // SAFETY: `siginfo_t` has the code as its third int. It is positive for a fault of this thread.
    let is_fault = unsafe { *info.cast::<c_int>().add(2) } > 0;
    match action.handler {
        SIG_IGN if !is_fault => {}
        SIG_DFL | SIG_IGN => {
            let default = SigAction { handler: SIG_DFL, mask: [0; SET_WORDS], flags: 0, restorer: 0 };
            real_sigaction(signal, &raw const default, std::ptr::null_mut());
            if !is_fault {
                // A fault repeats by itself; a signal that was sent does not.
                // SAFETY: the signal goes to this thread.
                unsafe {
                    sys::raw_call(
                        sys::SYS_TGKILL,
                        sys::process() as usize,
                        sys::thread() as usize,
                        signal as usize,
                    )
                };
            }
        }
        handler => {
            if action.flags & SA_RESETHAND != 0 {
                chained.handler.store(SIG_DFL, Ordering::Release);
            }
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

/// sigaction(2) of the program.
///
/// # Safety
/// As for sigaction(2).
#[cfg_attr(frit_preload, unsafe(no_mangle))]
pub unsafe extern "C" fn sigaction(signal: c_int, new: *const SigAction, old: *mut SigAction) -> c_int {
    let Some(chained) = chained(signal).filter(|_| INSTALLED.load(Ordering::Acquire)) else {
        if new.is_null() || !mounts::has_mounts() {
            return real_sigaction(signal, new, old);
        }
        // SAFETY: the program passes an action. Its handler may access files.
        let mut new = unsafe { *new };
        new.mask[0] &= !FAULTS;
        return real_sigaction(signal, &raw const new, old);
    };
    let before = chained.get();
    // SAFETY: the program's pointers are valid or null.
    unsafe {
        if !new.is_null() {
            chained.set(&*new);
        }
        if !old.is_null() {
            *old = before;
        }
    }
    0
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
            match chained(signal).filter(|_| INSTALLED.load(Ordering::Acquire)) {
                Some(chained) => replace_handler(chained, handler, $flags),
                None => next!($name(signal: c_int, handler: usize) -> usize),
            }
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

fn replace_handler(chained: &Chained, handler: usize, flags: c_int) -> usize {
    /// Asks `sigset` to block the signal, which a fault never is.
    const SIG_HOLD: usize = 2;
    let before = chained.get().handler;
    match handler {
        SIG_ERR => {
            set_errno(sys::EINVAL);
            return SIG_ERR;
        }
        SIG_HOLD => {}
        _ => chained.set(&SigAction { handler, mask: [0; SET_WORDS], flags, restorer: 0 }),
    }
    before
}

/// Returns a set of signals to be blocked, without faults.
fn without_faults(how: c_int, set: *const SignalSet) -> Option<SignalSet> {
    if set.is_null() || how == SIG_UNBLOCK || !INSTALLED.load(Ordering::Acquire) {
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
