//! What the calls of programs do: a call on a descriptor that is not in the table, or that direct access
//! cannot serve, goes to the C library.

use super::access::{self, COUNT_MAX, Direct, Request};
use super::files::{Open, demote_all, duplicated, forget, forget_range, get};
use super::process;
use super::report::count_through_mount;
use super::sys::{self, Fd, IoVec, next, set_errno};
use std::ffi::{c_int, c_long, c_void};

/// Gives the position of an open file to the kernel.
pub(super) fn to_kernel(fd: Fd) {
    if let Some(open) = get(fd) {
        let errno = sys::errno();
        open.demote(fd);
        set_errno(errno);
    }
}

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
pub(super) fn counted(done: Option<Direct>) -> Option<isize> {
    if done.is_none() {
        count_through_mount();
    }
    done.map(result)
}

#[inline]
pub(super) fn one(base: *mut c_void, len: usize) -> [IoVec; 1] {
    [IoVec { base, len: len.min(COUNT_MAX) }]
}

#[inline]
pub(super) fn direct_read(fd: Fd, into: *mut c_void, len: usize, at: i64) -> Option<isize> {
    let (open, at) = (get(fd)?, u64::try_from(at).ok()?);
    let buffers = one(into, len);
    let done = access::read(fd, open, Request { buffers: &buffers, len: buffers[0].len, at: Some(at) });
    counted(done)
}

#[inline]
pub(super) fn direct_write(fd: Fd, from: *const c_void, len: usize, at: i64) -> Option<isize> {
    let (open, at) = (get(fd)?, u64::try_from(at).ok()?);
    let buffers = one(from.cast_mut(), len);
    let done = access::write(fd, open, Request { buffers: &buffers, len: buffers[0].len, at: Some(at) });
    counted(done)
}

/// Reads at the position of an open file.
#[inline]
pub(super) fn read_at_position(fd: Fd, open: &'static Open, into: *mut c_void, len: usize) -> isize {
    let buffers = one(into, len);
    if let Some(done) = access::read(fd, open, Request { buffers: &buffers, len: buffers[0].len, at: None }) {
        return result(done);
    }
    through_mount(open, buffers[0].len, |at| match at {
        Some(at) => {
            let at = at as i64;
            next!(pread64(fd: Fd, into: *mut c_void, len: usize, at: i64) -> isize)
        }
        None => next!(read(fd: Fd, into: *mut c_void, len: usize) -> isize),
    })
}

/// Writes at the position of an open file.
#[inline]
pub(super) fn write_at_position(fd: Fd, open: &'static Open, from: *const c_void, len: usize) -> isize {
    let buffers = one(from.cast_mut(), len);
    if let Some(done) = access::write(fd, open, Request { buffers: &buffers, len: buffers[0].len, at: None })
    {
        return result(done);
    }
    through_mount(open, buffers[0].len, |at| match at {
        Some(at) => {
            let at = at as i64;
            next!(pwrite64(fd: Fd, from: *const c_void, len: usize, at: i64) -> isize)
        }
        None => next!(write(fd: Fd, from: *const c_void, len: usize) -> isize),
    })
}

/// Makes a call at the position of an open file through the mount. The range is taken first, so that no two
/// threads get the same one.
#[cold]
pub(super) fn through_mount(open: &Open, len: usize, call: impl Fn(Option<u64>) -> isize) -> isize {
    loop {
        let Some(at) = open.position() else {
            count_through_mount();
            return call(None);
        };
        let end = at.saturating_add(len as u64).min(i64::MAX as u64);
        if !open.move_position(at, end) {
            continue;
        }
        count_through_mount();
        let done = call(Some(at));
        open.move_position(end, at + done.max(0) as u64);
        return done;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

/// Returns the buffers of a call with their total length, if the kernel would accept them.
pub(super) fn buffers_of<'a>(buffers: *const IoVec, count: c_int) -> Option<(&'a [IoVec], usize)> {
    const IOV_MAX: c_int = 1024;
    if buffers.is_null() || !(1..=IOV_MAX).contains(&count) {
        return None;
    }
    // SAFETY: the program passes this many buffers.
    let buffers = unsafe { std::slice::from_raw_parts(buffers, count as usize) };
    let len = buffers.iter().try_fold(0_usize, |sum, buffer| sum.checked_add(buffer.len))?;
    (len <= COUNT_MAX).then_some((buffers, len))
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
    let (open, at) = (get(fd)?, u64::try_from(at).ok()?);
    let (buffers, len) = buffers_of(buffers, count)?;
    let done = direct_vector(fd, open, Request { buffers, len, at: Some(at) }, direction);
    if done.is_none() {
        count_through_mount();
    }
    done
}

/// Reads or writes at the position of an open file. `None`: the kernel has the position.
pub(super) fn vector_at_position(
    fd: Fd,
    buffers: *const IoVec,
    count: c_int,
    direction: Direction,
) -> Option<isize> {
    let open = get(fd)?;
    let Some((parts, len)) = buffers_of(buffers, count) else {
        to_kernel(fd);
        return None;
    };
    if let Some(done) = direct_vector(fd, open, Request { buffers: parts, len, at: None }, direction) {
        return Some(done);
    }
    open.position()?;
    Some(through_mount(open, len, |at| match (at, direction) {
        (Some(at), Direction::Read) => {
            let at = at as i64;
            next!(preadv64(fd: Fd, buffers: *const IoVec, count: c_int, at: i64) -> isize)
        }
        (Some(at), Direction::Write) => {
            let at = at as i64;
            next!(pwritev64(fd: Fd, buffers: *const IoVec, count: c_int, at: i64) -> isize)
        }
        (None, Direction::Read) => next!(readv(fd: Fd, buffers: *const IoVec, count: c_int) -> isize),
        (None, Direction::Write) => next!(writev(fd: Fd, buffers: *const IoVec, count: c_int) -> isize),
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
        let Some(at) = open.position() else { return call() };
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
            None => {
                set_errno(sys::EOVERFLOW);
                return -1;
            }
            Some(to) if to < 0 => {
                set_errno(sys::EINVAL);
                return -1;
            }
            Some(to) if open.move_position(at, to as u64) => return to,
            Some(_) => {}
        }
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
            if let Some(open) = get(fd)
                && let Some(at) = open.position()
            {
                let (at, whence) = (at as i64, sys::SEEK_SET);
                let errno = sys::errno();
                next!(lseek(fd: Fd, at: i64, whence: c_int) -> i64);
                open.refresh_size(fd);
                set_errno(errno);
            }
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
    const IO_URING_SETUP: c_long = 425;
    const UNSHARE: c_long = 272;
    match number {
        CLOSE => forget(a as Fd),
        DUP2 | DUP3 => {
            to_kernel(a as Fd);
            forget(b as Fd);
        }
        CLOSE_RANGE => forget_range(a as u32, b as u32),
        // Threads and timers do not concern files.
        202 | 186 | 39 | 24 | 228 | 230 | 318 | 332 => {}
        IO_URING_SETUP | UNSHARE => leave(),
        // Any other call may use the position of a descriptor, or start a process.
        _ => demote_all(),
    }
}
