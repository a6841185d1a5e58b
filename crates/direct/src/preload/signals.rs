//! Handlers of signals run at the end of a direct access that they interrupt, as the kernel runs them at the end of a
//! call. Otherwise a handler could wait for what the access holds, and a child that it forks could make the rest of
//! the access at any later time.
//!
//! The kernel has an entry of this library for each handler of the program. Within an access, the entry keeps what the
//! handler gets, and returns with all signals blocked; the end of the access calls the handler. Otherwise the entry
//! jumps to the handler, so that the stack is as without this library. A handler on an alternate stack is called by the
//! kernel: its signal is sent to this thread again. That is not done for all, because it can be one with another
//! signal, and removes a pending SIGCONT or stop. An access without signals costs one test of a flag.

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

/// Bits of other signals that an instruction of an access can raise, for a debugger or a filter of system calls: SIGTRAP
/// and SIGSYS. Their handlers change the registers of that instruction, and while they are blocked they kill the process.
/// So each of them is delayed only if it was sent, and blocked only then.
const RAISED: u64 = 1 << (5 - 1) | 1 << (31 - 1);

/// Signals that are blocked within an access after one of them or of those above has arrived. SIGKILL and SIGSTOP never
/// are.
const HELD: u64 = !(FAULTS | RAISED | 1 << (9 - 1) | 1 << (19 - 1));

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

/// A handler of the program: its address, and bits above those of addresses of programs.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Handler(usize);

impl Handler {
    /// The program has set SA_SIGINFO.
    const TAKES_INFO: usize = 1 << 63;
    /// The kernel passes information (SA_SIGINFO), also if the program has not set this.
    const HAS_INFO: usize = 1 << 62;
    /// SA_RESETHAND.
    const IS_RESET: usize = 1 << 61;
    /// SA_ONSTACK.
    const ON_STACK: usize = 1 << 60;
    const BITS: usize = Self::TAKES_INFO | Self::HAS_INFO | Self::IS_RESET | Self::ON_STACK;

    fn new(address: usize, flags: c_int, has_info: bool) -> Self {
        let bit = |is_set: bool, bit: usize| if is_set { bit } else { 0 };
        let takes_info = bit(flags & SA_SIGINFO != 0, Self::TAKES_INFO);
        let is_reset = bit(flags & SA_RESETHAND != 0, Self::IS_RESET);
        let on_stack = bit(flags & SA_ONSTACK != 0, Self::ON_STACK);
        Self(address | takes_info | bit(has_info, Self::HAS_INFO) | is_reset | on_stack)
    }

    fn address(self) -> usize {
        self.0 & !Self::BITS
    }

    fn has(self, bit: usize) -> bool {
        self.0 & bit != 0
    }
}

/// Number of handlers, and of entries for the kernel. An entry stays that of one handler, so that the kernel changes
/// the handler, its flags and its mask in one step. Handlers beyond this number run within accesses.
const HANDLERS: usize = 1024;
/// Distance of entries in bytes.
const ENTRY: usize = 16;

static TABLE: [AtomicUsize; HANDLERS] = [const { AtomicUsize::new(0) }; HANDLERS];

// Each entry has its index in a register that no argument uses. The kernel jumps to it with the stack of a handler,
// and nothing is left on it.
std::arch::global_asm!(
    ".text",
    ".globl frit_direct_entries",
    ".hidden frit_direct_entries",
    ".p2align 4",
    "frit_direct_entries:",
    ".set frit_direct_entry, 0",
    ".rept {handlers}",
    ".p2align 4",
    "mov r11d, offset frit_direct_entry",
    "jmp 3f",
    ".set frit_direct_entry, frit_direct_entry + 1",
    ".endr",
    ".p2align 4",
    ".cfi_startproc",
    "3:",
    "push rdi",
    ".cfi_adjust_cfa_offset 8",
    "push rsi",
    ".cfi_adjust_cfa_offset 8",
    "push rdx",
    ".cfi_adjust_cfa_offset 8",
    "mov ecx, r11d",
    "call {choose}",
    "pop rdx",
    ".cfi_adjust_cfa_offset -8",
    "pop rsi",
    ".cfi_adjust_cfa_offset -8",
    "pop rdi",
    ".cfi_adjust_cfa_offset -8",
    "test rax, rax",
    "jz 4f",
    "jmp rax",
    "4: ret",
    ".cfi_endproc",
    handlers = const HANDLERS,
    choose = sym choose,
);

unsafe extern "C" {
    fn frit_direct_entries();
}

fn entry(index: usize) -> usize {
    frit_direct_entries as *const () as usize + index * ENTRY
}

/// Returns the handler whose entry has this address.
fn handler_of(entry_address: usize) -> Option<Handler> {
    let at = entry_address.checked_sub(entry(0)).filter(|at| at % ENTRY == 0)?;
    handler_at(at / ENTRY)
}

fn handler_at(index: usize) -> Option<Handler> {
    Some(Handler(TABLE.get(index)?.load(Ordering::Acquire)))
}

/// Returns the entry of a handler. `None`: there are too many.
fn entry_of(handler: Handler) -> Option<usize> {
    for (index, slot) in TABLE.iter().enumerate() {
        let found = match slot.load(Ordering::Acquire) {
            0 => slot
                .compare_exchange(0, handler.0, Ordering::AcqRel, Ordering::Acquire)
                .map_or_else(|is| is, |_| handler.0),
            found => found,
        };
        if found == handler.0 {
            return Some(entry(index));
        }
    }
    None
}

/// Returns what the kernel gets for a handler of the program that has these flags.
pub(super) fn for_kernel(address: usize, flags: c_int, has_info: bool) -> usize {
    let is_function = !matches!(address, SIG_DFL | SIG_IGN | SIG_HOLD | SIG_ERR);
    // After a system call for the former action, the program may set an entry itself.
    if !is_function || handler_of(address).is_some() {
        return address;
    }
    entry_of(Handler::new(address, flags, has_info)).unwrap_or(address)
}

/// Returns the handler of the program for one that the kernel has.
pub(super) fn for_program(address: usize) -> usize {
    handler_of(address).map_or(address, Handler::address)
}

/// Changes an action of the program to one for the kernel.
pub(super) fn to_kernel(action: &SigAction) -> SigAction {
    let handler = for_kernel(action.handler, action.flags, true);
    let has_info = if handler == action.handler { 0 } else { SA_SIGINFO };
    let mut mask = action.mask;
    // The handler may access files.
    mask[0] &= !FAULTS;
    SigAction { handler, mask, flags: action.flags | has_info, ..*action }
}

/// Changes an action of the kernel to that of the program.
pub(super) fn to_program(action: &mut SigAction) {
    if let Some(handler) = handler_of(action.handler) {
        action.handler = handler.address();
        if !handler.has(Handler::TAKES_INFO) {
            action.flags &= !SA_SIGINFO;
        }
    }
}

/// Returns the handler to be called now, or 0.
extern "C" fn choose(signal: c_int, info: *const c_void, context: *mut c_void, index: usize) -> usize {
    let Some(handler) = handler_at(index) else { return 0 };
    let thread = Thread::get();
    let info = if handler.has(Handler::HAS_INFO) { info } else { std::ptr::null() };
    let may_be_raised = RAISED >> (signal - 1) & 1 != 0;
    // SAFETY: the kernel passes a `siginfo_t`.
    let is_sent = !may_be_raised || unsafe { is_sent(info) };
    if thread.is_in_access() && is_sent {
        // SAFETY: the kernel passes a `ucontext_t`.
        let hold = unsafe { Hold::new(context) };
        let mask = hold.mask_of_handler(thread);
        // SAFETY: the arguments are the kernel's.
        let is_kept = !handler.has(Handler::ON_STACK)
            && unsafe { thread.delayed.keep(Call::new(handler.address(), signal, mask, info, context)) };
        if is_kept || send_again(signal, info) {
            if !is_kept && handler.has(Handler::IS_RESET) {
                set_again(signal, entry(index));
            }
            hold.until_end_of_access(thread, signal);
            return 0;
        }
    }
    // The handler may be the first to access a file, and what was blocked before would kill the process after it.
    // SAFETY: the kernel passes a `ucontext_t`, whose mask is set when the handler returns.
    unsafe { *mask_at_return(context) &= !FAULTS };
    handler.address()
}

/// Returns `true` for a signal that a process has sent, or the kernel for a timer, and not an instruction raised.
///
/// # Safety
/// `info` is null, or a `siginfo_t`.
pub(super) unsafe fn is_sent(info: *const c_void) -> bool {
    // SAFETY: the caller's; the code is the third int.
    !info.is_null() && unsafe { *info.cast::<c_int>().add(2) } <= 0
}

/// Returns the mask that the return from a handler sets.
///
/// # Safety
/// `context` is the `ucontext_t` of a handler.
unsafe fn mask_at_return(context: *mut c_void) -> *mut u64 {
    // SAFETY: the caller's.
    unsafe { context.cast::<u8>().add(MASK_AT).cast() }
}

/// Words of `siginfo_t`, and of a `ucontext_t`, as far as the kernel writes it (without the registers for
/// floating-point numbers), and in all.
const INFO_WORDS: usize = 16;
const CONTEXT_WORDS: usize = (MASK_AT + size_of::<u64>()) / size_of::<u64>();
const CONTEXT_WORDS_ALL: usize = 121;
/// Position of `uc_sigmask` in `ucontext_t`, behind `uc_mcontext`, which has 256 bytes.
const MASK_AT: usize = 40 + 256;
/// Position of the pointer to registers for floating-point numbers, in words.
const FLOATS_AT: usize = (40 + 184) / size_of::<u64>();

/// A handler that is called later, with its arguments.
#[derive(Clone, Copy)]
struct Call {
    handler: usize,
    signal: c_int,
    /// Signals that are blocked in the handler.
    mask: u64,
    info: [u64; INFO_WORDS],
    context: [u64; CONTEXT_WORDS],
}

impl Call {
    const NONE: Self =
        Self { handler: 0, signal: 0, mask: 0, info: [0; INFO_WORDS], context: [0; CONTEXT_WORDS] };

    /// # Safety
    /// `info` is null, or a `siginfo_t`; `context` is the `ucontext_t` of a handler.
    unsafe fn new(
        handler: usize,
        signal: c_int,
        mask: u64,
        info: *const c_void,
        context: *const c_void,
    ) -> Self {
        let mut call = Self { handler, signal, mask, ..Self::NONE };
        // SAFETY: the caller's.
        unsafe {
            if info.is_null() {
                call.info[0] = signal as u64;
            } else {
                call.info = info.cast::<[u64; INFO_WORDS]>().read();
            }
            call.context = context.cast::<[u64; CONTEXT_WORDS]>().read();
        }
        call.context[FLOATS_AT] = 0;
        // UC_FP_XSTATE.
        call.context[0] &= !1;
        call
    }

    fn make(&self) {
        let mut info = self.info;
        let mut context = [0_u64; CONTEXT_WORDS_ALL];
        context[..CONTEXT_WORDS].copy_from_slice(&self.context);
        sys::set_blocked_signals(self.mask);
        // SAFETY: the program installed a handler with this signature, or one that uses the first argument.
        unsafe {
            let handler: unsafe extern "C" fn(c_int, *mut u64, *mut u64) =
                std::mem::transmute::<usize, _>(self.handler);
            handler(self.signal, info.as_mut_ptr(), context.as_mut_ptr());
        }
    }
}

/// Sends a signal to this thread. Returns `false` if the kernel cannot queue it.
pub(super) fn send_again(signal: c_int, info: *const c_void) -> bool {
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

/// Sets an entry again that the kernel has reset before it called it (SA_RESETHAND). It keeps the flags and the mask.
fn set_again(signal: c_int, entry: usize) {
    let mut action = SigAction::new(SIG_DFL, set_of(0), 0);
    if real_sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.handler == SIG_DFL {
        action.handler = entry;
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
        // SAFETY: the caller's.
        let at_return = unsafe { mask_at_return(context) };
        // Also faults: those that are sent would set the mask for the end of the access after this handler.
        Self { before: sys::block_signals(u64::MAX), at_return }
    }

    /// Returns the signals that are blocked in the handler. Another one may have interrupted it, whose return has left
    /// the signals of the access blocked, and kept the mask that it found.
    fn mask_of_handler(&self, thread: &Thread) -> u64 {
        if thread.delayed.is_any.get() { thread.delayed.mask.get() } else { self.before }
    }

    /// Lets this signal and those of [`HELD`] stay blocked until the end of the access in progress. Handlers can be
    /// nested: the outer one is the last that comes here, and its mask is that of the access. A signal that arrives
    /// after it finds the blocked signals.
    fn until_end_of_access(self, thread: &Thread, signal: c_int) {
        let this = 1 << (signal - 1) & !FAULTS;
        // SAFETY: the context is valid until the handler returns.
        let mask = unsafe { self.at_return.read() };
        let is_after = mask & HELD == HELD;
        // SAFETY: as above.
        unsafe { self.at_return.write(HELD | this | if is_after { mask & !FAULTS } else { 0 }) };
        let delayed = &thread.delayed;
        if !delayed.is_any.replace(true) || !is_after {
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

/// Maximum number of calls that are kept: handlers that interrupt one another before all signals are blocked.
const CALLS: usize = 4;

/// Signals that arrived within an access.
pub(super) struct Delayed {
    is_any: Cell<bool>,
    /// Blocked signals before.
    mask: Cell<u64>,
    /// Signals of faults that were sent: they cannot be blocked.
    faults: Cell<u64>,
    calls: [Cell<Call>; CALLS],
    count: Cell<usize>,
}

impl Delayed {
    /// Keeps a call until the end of the access. All signals are blocked. Returns `false` if there is no room.
    fn keep(&self, call: Call) -> bool {
        let count = self.count.get();
        let room = self.calls.get(count);
        if let Some(room) = room {
            room.set(call);
            self.count.set(count + 1);
        }
        room.is_some()
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
        // In this order: handlers may access files, and leave by a jump.
        sys::block_signals(u64::MAX);
        let (faults, mask, count) = (self.faults.replace(0), self.mask.get(), self.count.replace(0));
        let mut calls = [Call::NONE; CALLS];
        for (call, kept) in calls.iter_mut().zip(&self.calls).take(count) {
            *call = kept.get();
        }
        self.is_any.set(false);
        for signal in [SIGSEGV, SIGBUS] {
            if faults >> (signal - 1) & 1 != 0 {
                send_again(signal, std::ptr::null());
            }
        }
        // The last one was interrupted by those before it.
        calls.iter().take(count).for_each(Call::make);
        sys::set_blocked_signals(mask);
    }
}

/// Delays a signal of a fault that was sent, if it interrupted an access. Returns `false` if it did not.
///
/// # Safety
/// `context` is the `ucontext_t` of a handler.
pub(super) unsafe fn delay_fault(signal: c_int, context: *mut c_void) -> bool {
    let thread = Thread::get();
    // Also before what was delayed is delivered.
    if !thread.is_in_access() && !thread.delayed.is_any.get() {
        return false;
    }
    // SAFETY: the caller's.
    let hold = unsafe { Hold::new(context) };
    thread.delayed.faults.set(thread.delayed.faults.get() | 1 << (signal - 1));
    hold.until_end_of_access(thread, signal);
    true
}
