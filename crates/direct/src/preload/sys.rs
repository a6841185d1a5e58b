//! Declarations of the C library, and the functions that this library stands in for.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

pub(super) type Fd = c_int;

/// Part of a scattered buffer (`struct iovec`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct IoVec {
    pub(super) base: *mut c_void,
    pub(super) len: usize,
}

/// `struct timespec`.
#[repr(C)]
#[derive(Default)]
pub(super) struct TimeSpec {
    pub(super) sec: i64,
    pub(super) nsec: i64,
}

pub(super) const O_ACCMODE: c_int = 3;
pub(super) const O_RDONLY: c_int = 0;
pub(super) const O_WRONLY: c_int = 1;
pub(super) const O_RDWR: c_int = 2;
pub(super) const O_CREAT: c_int = 0o100;
pub(super) const O_TRUNC: c_int = 0o1000;
pub(super) const O_APPEND: c_int = 0o2000;
pub(super) const O_DSYNC: c_int = 0o10000;
pub(super) const O_SYNC: c_int = 0o4010000;
pub(super) const O_DIRECT: c_int = 0o40000;
pub(super) const O_CLOEXEC: c_int = 0o2000000;
pub(super) const O_PATH: c_int = 0o10000000;

pub(super) const SEEK_SET: c_int = 0;
pub(super) const SEEK_CUR: c_int = 1;

pub(super) const F_DUPFD: c_int = 0;
pub(super) const F_SETFL: c_int = 4;
pub(super) const F_GETLK: c_int = 5;
pub(super) const F_SETLKW: c_int = 7;
pub(super) const F_OFD_GETLK: c_int = 36;
pub(super) const F_OFD_SETLKW: c_int = 38;
pub(super) const F_DUPFD_CLOEXEC: c_int = 1030;

pub(super) const EFAULT: c_int = 14;
pub(super) const EINVAL: c_int = 22;

pub(super) const PROT_READ: c_int = 1;
pub(super) const PROT_WRITE: c_int = 2;
pub(super) const MAP_SHARED: c_int = 1;
pub(super) const MAP_PRIVATE: c_int = 2;
pub(super) const MAP_ANONYMOUS: c_int = 0x20;
pub(super) const MADV_WIPEONFORK: c_int = 18;
pub(super) const MADV_HUGEPAGE: c_int = 14;
pub(super) const MADV_POPULATE_READ: c_int = 22;
pub(super) const MADV_POPULATE_WRITE: c_int = 23;
pub(super) const CLOCK_REALTIME_COARSE: c_int = 5;

pub(super) const SYS_CLOSE: c_long = 3;
pub(super) const SYS_LSEEK: c_long = 8;
pub(super) const SYS_NANOSLEEP: c_long = 35;
pub(super) const SYS_GETPID: c_long = 39;
pub(super) const SYS_GETRLIMIT: c_long = 97;
pub(super) const SYS_GETTID: c_long = 186;
pub(super) const SYS_TGKILL: c_long = 234;

// `syscall` is among the functions that this library stands in for, so it is not declared here.
unsafe extern "C" {
    pub(super) fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub(super) static environ: *const *const c_char;
    pub(super) fn getenv(name: *const c_char) -> *const c_char;
    pub(super) fn __errno_location() -> *mut c_int;
    pub(super) fn ioctl(fd: Fd, request: u64, ...) -> c_int;
    pub(super) fn madvise(at: *mut c_void, len: usize, advice: c_int) -> c_int;
    pub(super) fn clock_gettime(clock: c_int, to: *mut TimeSpec) -> c_int;
    pub(super) fn sched_yield() -> c_int;
    pub(super) fn pthread_key_create(key: *mut u32, at_end: extern "C" fn(*mut c_void)) -> c_int;
    pub(super) fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
}

/// Handle of `dlsym` for the next definition of a function.
const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;

/// A function of the C library, found when this library is loaded, or by a call before that. Later, the lock of the
/// loader may be held by a constructor that waits for the caller.
pub(super) struct Next {
    name: &'static CStr,
    at: AtomicUsize,
}

impl Next {
    pub(super) const fn new(name: &'static CStr) -> Self {
        Self { name, at: AtomicUsize::new(0) }
    }

    /// Returns the address, or 0 if the C library has no such function.
    #[inline]
    pub(super) fn address(&self) -> usize {
        match self.at.load(Ordering::Relaxed) {
            0 => self.find(),
            at => at,
        }
    }

    #[cold]
    fn find(&self) -> usize {
        // SAFETY: the name is a C string.
        let at = unsafe { dlsym(RTLD_NEXT, self.name.as_ptr()) } as usize;
        self.at.store(at, Ordering::Relaxed);
        at
    }
}

/// Finds all functions of the C library.
pub(super) fn find_all() {
    #[cfg(frit_preload)]
    {
        unsafe extern "C" {
            #[link_name = "__start_frit_next"]
            static START: u8;
            #[link_name = "__stop_frit_next"]
            static END: u8;
        }
        let (start, end) = ((&raw const START).cast::<&Next>(), (&raw const END).cast::<&Next>());
        // SAFETY: the linker puts these symbols around the section, which has nothing else.
        let all = unsafe { std::slice::from_raw_parts(start, end.offset_from_unsigned(start)) };
        all.iter().for_each(|next| _ = next.address());
    }
}

/// Defines `NEXT`, a function of the C library that [`find_all`] finds.
macro_rules! define_next {
    ($name:ident) => {
        static NEXT: $crate::preload::sys::Next = $crate::preload::sys::Next::new({
            const NAME: &[u8] = concat!(stringify!($name), "\0").as_bytes();
            match std::ffi::CStr::from_bytes_with_nul(NAME) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            }
        });
        #[cfg(frit_preload)]
        #[used]
        #[unsafe(link_section = "frit_next")]
        static IN_SECTION: &$crate::preload::sys::Next = &NEXT;
    };
}

/// Calls the C library's definition of a function: `next!(read(fd: Fd, ...) -> isize)`.
macro_rules! next {
    ($name:ident($($arg:ident: $kind:ty),*) -> $result:ty) => {{
        $crate::preload::sys::define_next!($name);
        // SAFETY: the signature is that of the C library, and the arguments are the caller's.
        unsafe {
            let next: unsafe extern "C" fn($($kind),*) -> $result =
                std::mem::transmute::<usize, unsafe extern "C" fn($($kind),*) -> $result>(NEXT.address());
            next($($arg),*)
        }
    }};
}
pub(super) use define_next;
pub(super) use next;

/// Makes a system call without the C library, so that it sets no error number and is no cancellation
/// point.
///
/// # Safety
/// As for the system call.
pub(super) unsafe fn raw_call(number: c_long, a: usize, b: usize, c: usize) -> isize {
    // SAFETY: the caller's.
    unsafe { raw_call_of_six(number, [a, b, c, 0, 0, 0]) }
}

/// As [`raw_call`], with six arguments.
///
/// # Safety
/// As for the system call.
pub(super) unsafe fn raw_call_of_six(number: c_long, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let result: isize;
    // SAFETY: the caller's.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// Returns the number of this process.
pub(super) fn process() -> u32 {
    // SAFETY: the call has no arguments.
    unsafe { raw_call(SYS_GETPID, 0, 0, 0) as u32 }
}

/// Returns the number of this thread.
pub(super) fn thread() -> u32 {
    // SAFETY: the call has no arguments.
    unsafe { raw_call(SYS_GETTID, 0, 0, 0) as u32 }
}

pub(super) fn errno() -> c_int {
    // SAFETY: the pointer is valid for this thread.
    unsafe { *__errno_location() }
}

pub(super) fn set_errno(to: c_int) {
    // SAFETY: the pointer is valid for this thread.
    unsafe { *__errno_location() = to };
}

/// Allocates zeroed memory from the kernel: `malloc` cannot be called in a signal handler.
pub(super) fn allocate(bytes: usize) -> *mut c_void {
    let (at, protection, flags) =
        (std::ptr::null_mut::<c_void>(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    let (none, zero) = (-1, 0_i64);
    let map = next!(mmap(at: *mut c_void, bytes: usize, protection: c_int, flags: c_int, none: c_int, zero: i64) -> *mut c_void);
    if map as usize == usize::MAX { std::ptr::null_mut() } else { map }
}

/// Returns the time with the resolution of the kernel's timestamps, in nanoseconds since 1970.
pub(super) fn coarse_time() -> i64 {
    let mut now = TimeSpec::default();
    // SAFETY: `now` is valid for writing.
    unsafe { clock_gettime(CLOCK_REALTIME_COARSE, &raw mut now) };
    now.sec * 1_000_000_000 + now.nsec
}

/// Looks at the stack below this frame, as far as an access uses it. A stack that is too small for that overflows here,
/// where a handler of the program may jump away, and not within the access.
#[inline(always)]
pub(super) fn touch_stack() {
    // SAFETY: a fault is one of the program, whose stack has ended.
    unsafe { std::arch::asm!("test byte ptr [rsp - 1024], 0", options(nostack)) };
}

/// All signals of this thread are blocked until it is dropped.
pub(super) struct BlockedSignals(u64);

impl BlockedSignals {
    pub(super) fn new() -> Self {
        Self(block_signals(u64::MAX))
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        set_blocked_signals(self.0);
    }
}

/// Blocks signals of this thread; returns those that it blocked before.
pub(super) fn block_signals(signals: u64) -> u64 {
    const SIG_BLOCK: usize = 0;
    let mut old = 0_u64;
    // SAFETY: the kernel reads and writes sets of this size.
    unsafe { set_mask(SIG_BLOCK, &raw const signals, &raw mut old) };
    old
}

/// Sets the signals that this thread blocks.
pub(super) fn set_blocked_signals(signals: u64) {
    const SIG_SETMASK: usize = 2;
    // SAFETY: as above.
    unsafe { set_mask(SIG_SETMASK, &raw const signals, std::ptr::null_mut()) };
}

/// Returns the signals that this thread blocks.
pub(super) fn blocked_signals() -> u64 {
    let mut now = 0_u64;
    // SAFETY: the kernel writes a set of this size.
    unsafe { set_mask(0, std::ptr::null(), &raw mut now) };
    now
}

/// Changes the blocked signals of this thread, also those that the C library keeps for itself.
///
/// # Safety
/// As for rt_sigprocmask(2), with sets of 8 bytes.
unsafe fn set_mask(how: usize, new: *const u64, old: *mut u64) {
    const SYS_RT_SIGPROCMASK: c_long = 14;
    // SAFETY: the caller's.
    unsafe { raw_call_of_six(SYS_RT_SIGPROCMASK, [how, new as usize, old as usize, size_of::<u64>(), 0, 0]) };
}

/// Reads memory of the program at an address that it gave. `None`: it is not mapped.
pub(super) fn read_word(at: usize) -> Option<usize> {
    const SYS_PROCESS_VM_READV: c_long = 310;
    let mut word = 0_usize;
    let into = IoVec { base: (&raw mut word).cast(), len: size_of::<usize>() };
    let from = IoVec { base: at as *mut c_void, len: size_of::<usize>() };
    let arguments = [process() as usize, (&raw const into) as usize, 1, (&raw const from) as usize, 1, 0];
    // SAFETY: the kernel writes the word, and finds out whether the other address is valid.
    let read = unsafe { raw_call_of_six(SYS_PROCESS_VM_READV, arguments) };
    (read == size_of::<usize>() as isize).then_some(word)
}

/// Ends this thread if it was canceled, as functions that are cancellation points do (pthreads(7)). Nothing that
/// has to be dropped may be in use: the C library unwinds the stack.
#[inline]
pub(super) fn test_cancel() {
    static TEST: Next = Next::new(c"pthread_testcancel");
    let test = TEST.address();
    if test != 0 {
        // SAFETY: the function has no arguments.
        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn()>(test)() };
    }
}

/// End of the addresses of programs: the kernel refuses buffers that end behind it, whatever is read.
const USER_END: usize = 0x7fff_ffff_f000;

/// Returns `true` if a buffer is within the addresses of programs.
#[inline]
pub(super) fn is_user_range(base: *const c_void, len: usize) -> bool {
    len <= USER_END && base as usize <= USER_END - len
}
