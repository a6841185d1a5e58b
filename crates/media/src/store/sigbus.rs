//! Handler of SIGBUS for mapped files. The kernel sends SIGBUS for an access to a mapped file that
//! another program truncated, that a full file system cannot back, or whose disk fails. By default
//! the signal ends the program, which for a server of volumes means that all clients lose
//! everything because of one bad page.
//!
//! Here the signal is caught. If the address lies in a mapping that has a [`SigbusGuard`], the
//! handler maps a page of zeros over it, lets the access continue, and records the address in the
//! guard: the store then reports an I/O error for it. Any other SIGBUS is passed to the previous
//! handler.
//!
//! This module is unsafe because signal handlers are. The handler does only what is allowed in one:
//! it loads and stores atomics and makes system calls (`mmap`, `sigaction`), and restores errno.

#![allow(unsafe_code)]

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

/// Maximum number of guarded mappings; further ones are mapped without a guard. A volume has two or
/// three.
const SLOTS: usize = 256;

/// A guarded mapping as the handler sees it.
struct Slot {
    in_use: AtomicBool,
    /// First address of the mapping; 0 if the slot is unused.
    start: AtomicUsize,
    end: AtomicUsize,
    /// Lowest address over which zeros were mapped.
    low: AtomicUsize,
    /// End of the highest page over which zeros were mapped.
    high: AtomicUsize,
}

static GUARDED: [Slot; SLOTS] = [const {
    Slot {
        in_use: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        low: AtomicUsize::new(usize::MAX),
        high: AtomicUsize::new(0),
    }
}; SLOTS];

static INSTALL: Once = Once::new();
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);
/// The handler that was installed before (address and flags).
static PREVIOUS_HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static PREVIOUS_FLAGS: AtomicUsize = AtomicUsize::new(0);

/// Watches one mapping. It must be dropped before the mapping is.
#[derive(Debug)]
pub struct SigbusGuard {
    slot: Option<usize>,
    start: usize,
}

impl SigbusGuard {
    /// Guards `len` bytes of memory at `start`.
    #[must_use]
    pub fn new(start: *const u8, len: usize) -> SigbusGuard {
        INSTALL.call_once(install);
        let start = start as usize;
        let free = GUARDED.iter().position(|s| !s.in_use.swap(true, Ordering::AcqRel));
        if let Some(s) = free.map(|n| &GUARDED[n]) {
            s.low.store(usize::MAX, Ordering::Relaxed);
            s.high.store(0, Ordering::Relaxed);
            // The end before the start: a slot with a start is complete for the handler.
            s.end.store(start + len, Ordering::Release);
            s.start.store(start, Ordering::Release);
        }
        SigbusGuard { slot: free, start }
    }

    /// Returns `true` if the range `at` .. `at + len` overlaps the span from the first to the last
    /// address over which zeros were mapped.
    #[inline]
    #[must_use]
    pub fn is_lost(&self, at: usize, len: usize) -> bool {
        let Some(n) = self.slot else { return false };
        // The handler runs in this thread, during the access that precedes this call: the compiler
        // must not move that access behind these loads.
        compiler_fence(Ordering::SeqCst);
        let s = &GUARDED[n];
        let from = self.start + at;
        s.low.load(Ordering::Relaxed) < from + len && from < s.high.load(Ordering::Relaxed)
    }
}

impl Drop for SigbusGuard {
    fn drop(&mut self) {
        if let Some(s) = self.slot.map(|n| &GUARDED[n]) {
            // The start first: the handler ignores a slot without a start.
            s.start.store(0, Ordering::Release);
            s.end.store(0, Ordering::Release);
            s.in_use.store(false, Ordering::Release);
        }
    }
}

fn install() {
    // SAFETY: `sigaction` gets valid structures of its own type, zeroed as it requires, and a
    // handler with the signature that SA_SIGINFO asks for, which lives as long as the program.
    unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE);
        if page > 0 {
            PAGE_BYTES.store(page as usize, Ordering::Relaxed);
        }
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut old) != 0 {
            return;
        }
        PREVIOUS_HANDLER.store(old.sa_sigaction, Ordering::Relaxed);
        PREVIOUS_FLAGS.store(old.sa_flags as usize, Ordering::Relaxed);
        let mut new: libc::sigaction = std::mem::zeroed();
        let entry: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
        new.sa_sigaction = entry as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut new.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const new, std::ptr::null_mut());
    }
}

extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `info` to a SA_SIGINFO handler; for SIGBUS it contains an
    // address.
    let address = unsafe { (*info).si_addr() } as usize;
    let slot = GUARDED.iter().find(|s| {
        let start = s.start.load(Ordering::Acquire);
        start != 0 && (start..s.end.load(Ordering::Acquire)).contains(&address)
    });
    if let Some(s) = slot
        && map_zero_page(address, s)
    {
        return;
    }
    chain_to_previous(signal, info, context);
}

/// Maps a page of zeros where the mapping failed. Returns `true` on success.
fn map_zero_page(address: usize, slot: &Slot) -> bool {
    let size = PAGE_BYTES.load(Ordering::Relaxed);
    let page = address & !(size - 1);
    // The mark is set before the zeros are mapped, so that no other thread can read zeros without a
    // mark.
    slot.low.fetch_min(page, Ordering::SeqCst);
    slot.high.fetch_max(page + size, Ordering::SeqCst);
    // SAFETY: the page lies in one of our mappings (a guard is dropped before its mapping is
    // unmapped), so that only that mapping is replaced; the length is one page. errno belongs to
    // the interrupted code.
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

/// Passes a SIGBUS outside of all guarded mappings to the previous handler.
fn chain_to_previous(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = PREVIOUS_HANDLER.load(Ordering::Relaxed);
    if before == libc::SIG_DFL || before == libc::SIG_IGN {
        // SAFETY: as in `install`. The failed access is repeated when the handler returns, and then
        // ends the program as it would have without this handler.
        unsafe {
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &raw const default, std::ptr::null_mut());
        }
        return;
    }
    let with_info = PREVIOUS_FLAGS.load(Ordering::Relaxed) & libc::SA_SIGINFO as usize != 0;
    // SAFETY: the address is the handler that `sigaction` returned, with the signature that the
    // flag states; it is called with the arguments that the kernel passed.
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
