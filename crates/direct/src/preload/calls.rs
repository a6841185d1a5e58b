//! What the calls of programs do: a call on a descriptor that is not in the table, or that direct access
//! cannot serve, goes to the C library.

use super::access::{self, COUNT_MAX, Direct, Request};
use super::copy::copy;
use super::files::{Open, demote_all, duplicated, forget, get, give_up, give_up_range};
use super::process;
use super::report::count_through_mount;
use super::sys::{self, Fd, IoVec, next, set_errno};
use std::ffi::{c_int, c_long, c_void};
use std::mem::MaybeUninit;

/// Gives the position of an open file to the kernel.
pub(super) fn to_kernel(fd: Fd) {
    if let Some(open) = get(fd) {
        let errno = sys::errno();
        open.demote(fd);
        set_errno(errno);
    }
}

/// Operation of prctl(2) after which the kernel may refuse system calls of this library.
pub(super) const PR_SET_SECCOMP: u32 = 22;

/// Ends direct access in this process.
pub(super) fn leave() {
    demote_all();
    process::turn_off();
}

pub(super) fn note_map(fd: Fd, flags: c_int) {
    if flags & sys::MAP_ANONYMOUS == 0
        && let Some(open) = get(fd)
    {
        let errno = sys::errno();
        open.note_map(fd);
        set_errno(errno);
    }
}

/// Number of bytes, or the error.
#[inline]
pub(super) fn result(direct: Direct) -> isize {
    match direct {
        Direct::Done(bytes) => bytes as isize,
        Direct::Fault => {
            set_errno(sys::EFAULT);
            -1
        }
        Direct::Failed => -1,
    }
}

/// Returns the result of a call with a position, and counts it if it goes through the mount.
#[inline]
fn counted(done: Option<Direct>) -> Option<isize> {
    if done.is_none() {
        count_through_mount();
    }
    done.map(result)
}

/// Returns the buffer of a call, if the kernel would not refuse it whatever the file has.
#[inline]
fn one(base: *mut c_void, len: usize) -> Option<[IoVec; 1]> {
    (len <= COUNT_MAX && sys::is_user_range(base, len)).then_some([IoVec { base, len }])
}

/// Returns a position of a call, if the kernel would not refuse it.
#[inline]
fn position_of(at: i64, len: usize) -> Option<u64> {
    (at >= 0 && at.checked_add(len as i64).is_some()).then_some(at as u64)
}

#[inline]
pub(super) fn direct_read(fd: Fd, into: *mut c_void, len: usize, at: i64) -> Option<isize> {
    let open = get(fd)?;
    let (buffers, at) = (one(into, len)?, position_of(at, len)?);
    counted(access::read(fd, open, Request { buffers: &buffers, len, at: Some(at) }))
}

#[inline]
pub(super) fn direct_write(fd: Fd, from: *const c_void, len: usize, at: i64) -> Option<isize> {
    let open = get(fd)?;
    let (buffers, at) = (one(from.cast_mut(), len)?, position_of(at, len)?);
    counted(access::write(fd, open, Request { buffers: &buffers, len, at: Some(at) }))
}

/// Reads at the position of an open file.
#[inline]
pub(super) fn read_at_position(fd: Fd, open: &'static Open, into: *mut c_void, len: usize) -> isize {
    if let Some(buffers) = one(into, len)
        && let Some(done) = access::read(fd, open, Request { buffers: &buffers, len, at: None })
    {
        return result(done);
    }
    through_mount(fd, open, || next!(read(fd: Fd, into: *mut c_void, len: usize) -> isize))
}

/// Writes at the position of an open file.
#[inline]
pub(super) fn write_at_position(fd: Fd, open: &'static Open, from: *const c_void, len: usize) -> isize {
    if let Some(buffers) = one(from.cast_mut(), len)
        && let Some(done) = access::write(fd, open, Request { buffers: &buffers, len, at: None })
    {
        return result(done);
    }
    through_mount(fd, open, || next!(write(fd: Fd, from: *const c_void, len: usize) -> isize))
}

/// Makes a call at the position of an open file through the mount.
#[cold]
fn through_mount(fd: Fd, open: &Open, call: impl FnOnce() -> isize) -> isize {
    count_through_mount();
    open.position.in_kernel(fd, call)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

/// Maximum number of buffers of a direct call: they are copied to the stack, which may be that of a signal handler.
const BUFFERS_MAX: usize = 64;

/// Calls `access` with the buffers of a call and their total length, if the kernel would accept them.
fn with_buffers<T>(
    open: &Open,
    buffers: *const IoVec,
    count: c_int,
    access: impl FnOnce(&[IoVec], usize) -> Option<T>,
) -> Option<T> {
    let count = usize::try_from(count).ok().filter(|count| (1..=BUFFERS_MAX).contains(count))?;
    // The handler of faults is needed below.
    if !open.has_slot() {
        return None;
    }
    let mut copied = [const { MaybeUninit::<IoVec>::uninit() }; BUFFERS_MAX];
    let (into, bytes) = (copied.as_mut_ptr().cast::<u8>(), count * size_of::<IoVec>());
    // SAFETY: there is room for this many; a bad source ends the copy.
    if unsafe { copy(into, buffers.cast(), bytes) } < bytes {
        return None;
    }
    // SAFETY: this many were written, and all bits are valid.
    let buffers = unsafe { std::slice::from_raw_parts(copied.as_ptr().cast::<IoVec>(), count) };
    let mut len = 0_usize;
    for buffer in buffers {
        len = len.checked_add(buffer.len).filter(|len| *len <= COUNT_MAX)?;
        if !sys::is_user_range(buffer.base, buffer.len) {
            return None;
        }
    }
    access(buffers, len)
}

pub(super) fn direct_vector(
    fd: Fd,
    open: &'static Open,
    request: Request<'_>,
    direction: Direction,
) -> Option<isize> {
    match direction {
        Direction::Read => access::read(fd, open, request),
        Direction::Write => access::write(fd, open, request),
    }
    .map(result)
}

pub(super) fn vector(
    fd: Fd,
    buffers: *const IoVec,
    count: c_int,
    at: i64,
    direction: Direction,
) -> Option<isize> {
    let open = get(fd)?;
    let done = with_buffers(open, buffers, count, |buffers, len| {
        let at = position_of(at, len)?;
        direct_vector(fd, open, Request { buffers, len, at: Some(at) }, direction)
    });
    if done.is_none() {
        count_through_mount();
    }
    done
}

/// Reads or writes at the position of an open file. `None`: the descriptor is not in the table.
pub(super) fn vector_at_position(
    fd: Fd,
    buffers: *const IoVec,
    count: c_int,
    direction: Direction,
) -> Option<isize> {
    let open = get(fd)?;
    let done = with_buffers(open, buffers, count, |buffers, len| {
        direct_vector(fd, open, Request { buffers, len, at: None }, direction)
    });
    Some(done.unwrap_or_else(|| {
        through_mount(fd, open, || match direction {
            Direction::Read => next!(readv(fd: Fd, buffers: *const IoVec, count: c_int) -> isize),
            Direction::Write => next!(writev(fd: Fd, buffers: *const IoVec, count: c_int) -> isize),
        })
    }))
}

/// preadv2 and pwritev2: with flags, they go through the mount; at -1, they use the position.
pub(super) fn vector_with_flags(
    fd: Fd,
    buffers: *const IoVec,
    count: c_int,
    at: i64,
    flags: c_int,
    direction: Direction,
) -> Option<isize> {
    match (at, flags) {
        (-1, 0) => vector_at_position(fd, buffers, count, direction),
        (-1, _) => {
            to_kernel(fd);
            None
        }
        (_, 0) => vector(fd, buffers, count, at, direction),
        _ => {
            // One flag appends, at the size that the kernel knows.
            if direction == Direction::Write {
                to_kernel(fd);
            }
            None
        }
    }
}

/// lseek(2).
pub(super) fn seek(fd: Fd, by: i64, whence: c_int, call: impl Fn() -> i64) -> i64 {
    let Some(open) = get(fd) else { return call() };
    loop {
        let Some(at) = open.position.get() else { return open.position.in_kernel(fd, call) };
        let to = match whence {
            sys::SEEK_SET => Some(by),
            sys::SEEK_CUR => (at as i64).checked_add(by),
            _ => {
                // The end of the file, its data and holes: the mount has them.
                let found = call();
                if found < 0 {
                    return found;
                }
                Some(found)
            }
        };
        match to {
            Some(to) if to >= 0 => {
                if open.position.replace(at, to as u64) {
                    return to;
                }
            }
            _ => {
                set_errno(sys::EINVAL);
                return -1;
            }
        }
    }
}

/// Lets the kernel know the position and the size for a call that does not change the position.
pub(super) fn show_position(fd: Fd) {
    if let Some(open) = get(fd) {
        let errno = sys::errno();
        open.position.show(fd, || open.refresh_size(fd));
        set_errno(errno);
    }
}

/// fcntl(2).
pub(super) fn control(fd: Fd, command: c_int, call: impl Fn() -> c_int) -> c_int {
    match command {
        sys::F_DUPFD | sys::F_DUPFD_CLOEXEC => {
            let new = call();
            if new >= 0 {
                duplicated(fd, new);
            }
            new
        }
        // Appending, for example, is left to the kernel.
        sys::F_SETFL => {
            to_kernel(fd);
            forget(fd);
            call()
        }
        // Locks can be relative to the position, and to the size.
        sys::F_GETLK..=sys::F_SETLKW | sys::F_OFD_GETLK..=sys::F_OFD_SETLKW => {
            show_position(fd);
            call()
        }
        _ => call(),
    }
}

/// Prepares for a call of syscall(2).
pub(super) extern "C" fn before_syscall(number: c_long, a: usize, b: usize) {
    const CLOSE: c_long = sys::SYS_CLOSE;
    const DUP2: c_long = 33;
    const DUP3: c_long = 292;
    const CLOSE_RANGE: c_long = 436;
    const FCNTL: c_long = 72;
    const IO_URING_SETUP: c_long = 425;
    const CLONE: c_long = 56;
    const FORK: c_long = 57;
    const CLONE3: c_long = 435;
    const CLONE_VM: usize = 0x100;
    const UNSHARE: c_long = 272;
    const RT_SIGACTION: c_long = 13;
    const RT_SIGPROCMASK: c_long = 14;
    const PRCTL: c_long = 157;
    const SECCOMP: c_long = 317;
    const SETRLIMIT: c_long = 160;
    const PRLIMIT64: c_long = 302;
    let is_size = |resource: usize| resource as u32 == process::RLIMIT_FSIZE;
    if (number == SETRLIMIT && is_size(a)) || (number == PRLIMIT64 && is_size(b)) {
        process::limit_size();
    }
    match number {
        CLOSE => forget(a as Fd),
        DUP2 | DUP3 => {
            to_kernel(a as Fd);
            give_up(b as Fd);
        }
        CLOSE_RANGE => give_up_range(a as u32, b as u32),
        FCNTL => give_up(a as Fd),
        // Handlers would run within accesses, and whether faults are blocked would not be known.
        RT_SIGACTION | RT_SIGPROCMASK => leave(),
        // Threads and timers do not concern files.
        202 | 186 | 39 | 24 | 228 | 230 | 318 | 332 => {}
        IO_URING_SETUP | UNSHARE | SECCOMP => leave(),
        PRCTL if a as u32 == PR_SET_SECCOMP => leave(),
        // Not for threads.
        CLONE if a & CLONE_VM != 0 => demote_all(),
        CLONE3 if sys::read_word(a).is_some_and(|flags| flags & CLONE_VM != 0) => demote_all(),
        CLONE | FORK | CLONE3 => process::begin_fork(),
        // Any other call may use the position of a descriptor, or start a process.
        _ => demote_all(),
    }
}
