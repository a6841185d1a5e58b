//! A mapped file that is cut short by another program, that a full file system cannot back, or whose
//! disk fails, answers a memory access with SIGBUS, which ends the program. For a server of volumes
//! that is the worst of outcomes: all clients lose everything for one bad page.
//!
//! Here the signal is caught. Where the address lies in a mapping that was [`Guard`]ed, a page of zeros
//! is put over it, the access goes on, and the guard remembers the place: the store then reports an
//! error of the host for it. Any other SIGBUS goes where it would have gone.
//!
//! This has to be unsafe: a signal handler is. It does what is allowed in one: loads and stores of
//! atomics, and system calls (`mmap`, `sigaction`), with errno put back.

#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

/// Mappings that can be guarded at a time; more are mapped without a guard. A volume has two or three.
const SLOTS: usize = 256;

/// A guarded mapping, as the handler sees it.
struct Slot {
    taken: AtomicBool,
    /// Its first address; 0: none.
    start: AtomicUsize,
    end: AtomicUsize,
    /// The addresses over which zeros were put lie from here ...
    low: AtomicUsize,
    /// ... to here.
    high: AtomicUsize,
}

static TABLE: [Slot; SLOTS] = [const {
    Slot {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        low: AtomicUsize::new(usize::MAX),
        high: AtomicUsize::new(0),
    }
}; SLOTS];

static INSTALL: Once = Once::new();
static PAGE: AtomicUsize = AtomicUsize::new(4096);
/// What was installed before: the handler's address and its flags.
static BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static BEFORE_FLAGS: AtomicUsize = AtomicUsize::new(0);

/// Watches one mapping for as long as it lives; it has to go before the mapping does.
#[derive(Debug)]
pub(super) struct Guard {
    slot: Option<usize>,
    start: usize,
}

impl Guard {
    /// Guards `len` bytes of memory at `start`.
    pub(super) fn new(start: *const u8, len: usize) -> Guard {
        INSTALL.call_once(install);
        let start = start as usize;
        let free = TABLE.iter().position(|s| !s.taken.swap(true, Ordering::AcqRel));
        if let Some(s) = free.map(|n| &TABLE[n]) {
            s.low.store(usize::MAX, Ordering::Relaxed);
            s.high.store(0, Ordering::Relaxed);
            s.end.store(start + len, Ordering::Release);
            s.start.store(start, Ordering::Release);
        }
        Guard { slot: free, start }
    }

    /// Whether zeros were put over something from the first to the last place of which `at` .. `at +
    /// len` is a part.
    #[inline]
    pub(super) fn hurt(&self, at: usize, len: usize) -> bool {
        let Some(n) = self.slot else { return false };
        // The handler runs in this thread, inside of the access that comes before: it must not be moved
        // behind these loads.
        compiler_fence(Ordering::SeqCst);
        let s = &TABLE[n];
        let from = self.start + at;
        s.low.load(Ordering::Relaxed) < from + len && from < s.high.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(s) = self.slot.map(|n| &TABLE[n]) {
            s.start.store(0, Ordering::Release);
            s.end.store(0, Ordering::Release);
            s.taken.store(false, Ordering::Release);
        }
    }
}

fn install() {
    // SAFETY: `sigaction` is given valid structures of its own type, zeroed as it wants them, and a
    // handler of the signature that SA_SIGINFO asks for, which lives as long as the program.
    unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE);
        if page > 0 {
            PAGE.store(page as usize, Ordering::Relaxed);
        }
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut old) != 0 {
            return;
        }
        BEFORE.store(old.sa_sigaction, Ordering::Relaxed);
        BEFORE_FLAGS.store(old.sa_flags as usize, Ordering::Relaxed);
        let mut new: libc::sigaction = std::mem::zeroed();
        let entry: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
        new.sa_sigaction = entry as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut new.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const new, std::ptr::null_mut());
    }
}

extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `info` to a SA_SIGINFO handler; for SIGBUS it holds an address.
    let address = unsafe { (*info).si_addr() } as usize;
    let slot = TABLE.iter().find(|s| {
        let start = s.start.load(Ordering::Acquire);
        start != 0 && (start..s.end.load(Ordering::Acquire)).contains(&address)
    });
    if let Some(s) = slot
        && zeros_over(address, s)
    {
        return;
    }
    pass_on(signal, info, context);
}

/// Puts a page of zeros where the mapping failed.
fn zeros_over(address: usize, slot: &Slot) -> bool {
    let size = PAGE.load(Ordering::Relaxed);
    let page = address & !(size - 1);
    // First, so that no other thread meets the zeros and not the mark.
    slot.low.fetch_min(page, Ordering::SeqCst);
    slot.high.fetch_max(page + size, Ordering::SeqCst);
    // SAFETY: the page lies in a mapping of ours (its guard is dropped before it is unmapped), so that
    // nothing but that mapping is replaced; its length is one page. errno belongs to the interrupted code.
    unsafe {
        let errno = *libc::__errno_location();
        let mapped = libc::mmap(
            page as *mut libc::c_void,
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        *libc::__errno_location() = errno;
        if mapped == libc::MAP_FAILED {
            return false;
        }
    }
    true
}

/// A SIGBUS that is none of ours goes to whom it would have gone to.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.load(Ordering::Relaxed);
    if before == libc::SIG_DFL || before == libc::SIG_IGN {
        // SAFETY: as in `install`; the access that failed is repeated when the handler returns, and then
        // ends the program as it would have.
        unsafe {
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &raw const default, std::ptr::null_mut());
        }
        return;
    }
    let with_info = BEFORE_FLAGS.load(Ordering::Relaxed) & libc::SA_SIGINFO as usize != 0;
    // SAFETY: the address is the handler that `sigaction` gave us, whose signature the flag tells; it is
    // called with what the kernel passed.
    unsafe {
        if with_info {
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                std::mem::transmute(before);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(libc::c_int) = std::mem::transmute(before);
            handler(signal);
        }
    }
}
