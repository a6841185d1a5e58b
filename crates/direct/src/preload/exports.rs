//! The functions of the C library that this library stands in for. A call on a descriptor that is not in
//! the table, or that direct access cannot serve, goes to the C library.

use super::access::{self, COUNT_MAX, Direct, Request};
use super::files::{Open, demote_all, duplicated, forget, forget_range, get, opened};
use super::process;
use super::report::count_through_mount;
use super::sys::{self, Fd, IoVec, next, set_errno};
use std::ffi::{c_int, c_long, c_uint, c_void};

/// Defines a function of the C library.
macro_rules! stand_in {
    ($(fn $name:ident($($arg:ident: $kind:ty),* $(,)?) -> $result:ty $body:block)*) => {$(
        #[doc = concat!("Stands in for `", stringify!($name), "` of the C library.")]
        ///
        /// # Safety
        /// As for the function of the C library.
        #[cfg_attr(frit_preload, unsafe(no_mangle))]
        #[inline(never)]
        pub unsafe extern "C" fn $name($($arg: $kind),*) -> $result $body
    )*};
}

/// Enters a descriptor after a successful call.
fn entered(fd: Fd, flags: c_int) -> Fd {
    if fd >= 0 {
        let errno = sys::errno();
        opened(fd, flags);
        set_errno(errno);
    }
    fd
}

// The mode is the next argument if there is one; without it the value is not used. Variadic arguments
// are passed like others (System V ABI of x86-64).
stand_in! {
    fn open(path: *const u8, flags: c_int, mode: c_uint) -> c_int {
        entered(next!(open(path: *const u8, flags: c_int, mode: c_uint) -> c_int), flags)
    }
    fn open64(path: *const u8, flags: c_int, mode: c_uint) -> c_int {
        entered(next!(open64(path: *const u8, flags: c_int, mode: c_uint) -> c_int), flags)
    }
    fn openat(dir: Fd, path: *const u8, flags: c_int, mode: c_uint) -> c_int {
        entered(next!(openat(dir: Fd, path: *const u8, flags: c_int, mode: c_uint) -> c_int), flags)
    }
    fn openat64(dir: Fd, path: *const u8, flags: c_int, mode: c_uint) -> c_int {
        entered(next!(openat64(dir: Fd, path: *const u8, flags: c_int, mode: c_uint) -> c_int), flags)
    }
    fn creat(path: *const u8, mode: c_uint) -> c_int {
        entered(next!(creat(path: *const u8, mode: c_uint) -> c_int), sys::O_WRONLY | sys::O_CREAT | sys::O_TRUNC)
    }
    fn creat64(path: *const u8, mode: c_uint) -> c_int {
        entered(next!(creat64(path: *const u8, mode: c_uint) -> c_int), sys::O_WRONLY | sys::O_CREAT | sys::O_TRUNC)
    }
    fn __open_2(path: *const u8, flags: c_int) -> c_int {
        entered(next!(__open_2(path: *const u8, flags: c_int) -> c_int), flags)
    }
    fn __open64_2(path: *const u8, flags: c_int) -> c_int {
        entered(next!(__open64_2(path: *const u8, flags: c_int) -> c_int), flags)
    }
    fn __openat_2(dir: Fd, path: *const u8, flags: c_int) -> c_int {
        entered(next!(__openat_2(dir: Fd, path: *const u8, flags: c_int) -> c_int), flags)
    }
    fn __openat64_2(dir: Fd, path: *const u8, flags: c_int) -> c_int {
        entered(next!(__openat64_2(dir: Fd, path: *const u8, flags: c_int) -> c_int), flags)
    }

    fn close(fd: Fd) -> c_int {
        forget(fd);
        next!(close(fd: Fd) -> c_int)
    }
    fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
        const CLOSE_RANGE_UNSHARE: c_int = 2;
        const CLOSE_RANGE_CLOEXEC: c_int = 4;
        if flags & CLOSE_RANGE_UNSHARE != 0 {
            leave();
        }
        if flags & CLOSE_RANGE_CLOEXEC == 0 {
            forget_range(first, last);
        }
        next!(close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int)
    }
    fn closefrom(first: c_int) -> () {
        forget_range(first.max(0) as u32, u32::MAX);
        next!(closefrom(first: c_int) -> ())
    }
    fn dup(old: Fd) -> c_int {
        let new = next!(dup(old: Fd) -> c_int);
        if new >= 0 {
            duplicated(old, new);
        }
        new
    }
    fn dup2(old: Fd, new: Fd) -> c_int {
        if old == new {
            return next!(dup2(old: Fd, new: Fd) -> c_int);
        }
        forget(new);
        let result = next!(dup2(old: Fd, new: Fd) -> c_int);
        if result >= 0 {
            duplicated(old, new);
        }
        result
    }
    fn dup3(old: Fd, new: Fd, flags: c_int) -> c_int {
        if old != new {
            forget(new);
        }
        let result = next!(dup3(old: Fd, new: Fd, flags: c_int) -> c_int);
        if result >= 0 {
            duplicated(old, new);
        }
        result
    }
    fn fcntl(fd: Fd, command: c_int, argument: usize) -> c_int {
        control(fd, command, || next!(fcntl(fd: Fd, command: c_int, argument: usize) -> c_int))
    }
    fn fcntl64(fd: Fd, command: c_int, argument: usize) -> c_int {
        control(fd, command, || next!(fcntl64(fd: Fd, command: c_int, argument: usize) -> c_int))
    }

    fn read(fd: Fd, into: *mut c_void, len: usize) -> isize {
        match get(fd) {
            Some(open) => read_at_position(fd, open, into, len),
            None => next!(read(fd: Fd, into: *mut c_void, len: usize) -> isize),
        }
    }
    fn __read_chk(fd: Fd, into: *mut c_void, len: usize, room: usize) -> isize {
        match get(fd).filter(|_| len <= room) {
            Some(open) => read_at_position(fd, open, into, len),
            None => next!(__read_chk(fd: Fd, into: *mut c_void, len: usize, room: usize) -> isize),
        }
    }
    fn write(fd: Fd, from: *const c_void, len: usize) -> isize {
        match get(fd) {
            Some(open) => write_at_position(fd, open, from, len),
            None => next!(write(fd: Fd, from: *const c_void, len: usize) -> isize),
        }
    }
    fn pread(fd: Fd, into: *mut c_void, len: usize, at: i64) -> isize {
        direct_read(fd, into, len, at)
            .unwrap_or_else(|| next!(pread(fd: Fd, into: *mut c_void, len: usize, at: i64) -> isize))
    }
    fn pread64(fd: Fd, into: *mut c_void, len: usize, at: i64) -> isize {
        direct_read(fd, into, len, at)
            .unwrap_or_else(|| next!(pread64(fd: Fd, into: *mut c_void, len: usize, at: i64) -> isize))
    }
    fn __pread_chk(fd: Fd, into: *mut c_void, len: usize, at: i64, room: usize) -> isize {
        if len <= room && let Some(done) = direct_read(fd, into, len, at) {
            return done;
        }
        next!(__pread_chk(fd: Fd, into: *mut c_void, len: usize, at: i64, room: usize) -> isize)
    }
    fn __pread64_chk(fd: Fd, into: *mut c_void, len: usize, at: i64, room: usize) -> isize {
        if len <= room && let Some(done) = direct_read(fd, into, len, at) {
            return done;
        }
        next!(__pread64_chk(fd: Fd, into: *mut c_void, len: usize, at: i64, room: usize) -> isize)
    }
    fn pwrite(fd: Fd, from: *const c_void, len: usize, at: i64) -> isize {
        direct_write(fd, from, len, at)
            .unwrap_or_else(|| next!(pwrite(fd: Fd, from: *const c_void, len: usize, at: i64) -> isize))
    }
    fn pwrite64(fd: Fd, from: *const c_void, len: usize, at: i64) -> isize {
        direct_write(fd, from, len, at)
            .unwrap_or_else(|| next!(pwrite64(fd: Fd, from: *const c_void, len: usize, at: i64) -> isize))
    }
    fn readv(fd: Fd, buffers: *const IoVec, count: c_int) -> isize {
        vector_at_position(fd, buffers, count, Direction::Read)
            .unwrap_or_else(|| next!(readv(fd: Fd, buffers: *const IoVec, count: c_int) -> isize))
    }
    fn writev(fd: Fd, buffers: *const IoVec, count: c_int) -> isize {
        vector_at_position(fd, buffers, count, Direction::Write)
            .unwrap_or_else(|| next!(writev(fd: Fd, buffers: *const IoVec, count: c_int) -> isize))
    }
    fn preadv(fd: Fd, buffers: *const IoVec, count: c_int, at: i64) -> isize {
        vector(fd, buffers, count, at, Direction::Read)
            .unwrap_or_else(|| next!(preadv(fd: Fd, buffers: *const IoVec, count: c_int, at: i64) -> isize))
    }
    fn preadv64(fd: Fd, buffers: *const IoVec, count: c_int, at: i64) -> isize {
        vector(fd, buffers, count, at, Direction::Read)
            .unwrap_or_else(|| next!(preadv64(fd: Fd, buffers: *const IoVec, count: c_int, at: i64) -> isize))
    }
    fn pwritev(fd: Fd, buffers: *const IoVec, count: c_int, at: i64) -> isize {
        vector(fd, buffers, count, at, Direction::Write)
            .unwrap_or_else(|| next!(pwritev(fd: Fd, buffers: *const IoVec, count: c_int, at: i64) -> isize))
    }
    fn pwritev64(fd: Fd, buffers: *const IoVec, count: c_int, at: i64) -> isize {
        vector(fd, buffers, count, at, Direction::Write)
            .unwrap_or_else(|| next!(pwritev64(fd: Fd, buffers: *const IoVec, count: c_int, at: i64) -> isize))
    }
    fn preadv2(fd: Fd, buffers: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize {
        vector_with_flags(fd, buffers, count, at, flags, Direction::Read).unwrap_or_else(
            || next!(preadv2(fd: Fd, buffers: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize))
    }
    fn preadv64v2(fd: Fd, buffers: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize {
        vector_with_flags(fd, buffers, count, at, flags, Direction::Read).unwrap_or_else(
            || next!(preadv64v2(fd: Fd, buffers: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize))
    }
    fn pwritev2(fd: Fd, buffers: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize {
        vector_with_flags(fd, buffers, count, at, flags, Direction::Write).unwrap_or_else(
            || next!(pwritev2(fd: Fd, buffers: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize))
    }
    fn pwritev64v2(fd: Fd, buffers: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize {
        vector_with_flags(fd, buffers, count, at, flags, Direction::Write).unwrap_or_else(
            || next!(pwritev64v2(fd: Fd, buffers: *const IoVec, count: c_int, at: i64, flags: c_int) -> isize))
    }
    fn lseek(fd: Fd, by: i64, whence: c_int) -> i64 {
        seek(fd, by, whence, || next!(lseek(fd: Fd, by: i64, whence: c_int) -> i64))
    }
    fn lseek64(fd: Fd, by: i64, whence: c_int) -> i64 {
        seek(fd, by, whence, || next!(lseek64(fd: Fd, by: i64, whence: c_int) -> i64))
    }
    fn mmap(at: *mut c_void, len: usize, protection: c_int, flags: c_int, fd: Fd, from: i64) -> *mut c_void {
        note_map(fd, flags);
        next!(mmap(at: *mut c_void, len: usize, protection: c_int, flags: c_int, fd: Fd, from: i64) -> *mut c_void)
    }
    fn mmap64(at: *mut c_void, len: usize, protection: c_int, flags: c_int, fd: Fd, from: i64) -> *mut c_void {
        note_map(fd, flags);
        next!(mmap64(at: *mut c_void, len: usize, protection: c_int, flags: c_int, fd: Fd, from: i64) -> *mut c_void)
    }
    fn sendfile(to: Fd, from: Fd, at: *mut i64, len: usize) -> isize {
        to_kernel(to);
        to_kernel(from);
        next!(sendfile(to: Fd, from: Fd, at: *mut i64, len: usize) -> isize)
    }
    fn sendfile64(to: Fd, from: Fd, at: *mut i64, len: usize) -> isize {
        to_kernel(to);
        to_kernel(from);
        next!(sendfile64(to: Fd, from: Fd, at: *mut i64, len: usize) -> isize)
    }
    fn splice(from: Fd, from_at: *mut i64, to: Fd, to_at: *mut i64, len: usize, flags: c_uint) -> isize {
        to_kernel(to);
        to_kernel(from);
        next!(splice(from: Fd, from_at: *mut i64, to: Fd, to_at: *mut i64, len: usize, flags: c_uint) -> isize)
    }
    fn copy_file_range(from: Fd, from_at: *mut i64, to: Fd, to_at: *mut i64, len: usize, flags: c_uint) -> isize {
        to_kernel(to);
        to_kernel(from);
        next!(copy_file_range(from: Fd, from_at: *mut i64, to: Fd, to_at: *mut i64, len: usize, flags: c_uint) -> isize)
    }
    fn clone(
        run: *const c_void, stack: *mut c_void, flags: c_int, argument: *mut c_void, a: usize, b: usize, c: usize,
    ) -> c_int {
        const CLONE_VM: c_int = 0x100;
        const CLONE_FILES: c_int = 0x400;
        demote_all();
        if flags & CLONE_VM != 0 && flags & CLONE_FILES == 0 {
            // Both processes have this memory, and each its own descriptors.
            leave();
        }
        next!(clone(run: *const c_void, stack: *mut c_void, flags: c_int, argument: *mut c_void, a: usize, b: usize, c: usize) -> c_int)
    }
    fn unshare(flags: c_int) -> c_int {
        const CLONE_FILES: c_int = 0x400;
        if flags & CLONE_FILES != 0 {
            leave();
        }
        next!(unshare(flags: c_int) -> c_int)
    }
}

/// Gives the position of an open file to the kernel.
fn to_kernel(fd: Fd) {
    if let Some(open) = get(fd) {
        let errno = sys::errno();
        open.demote(fd);
        set_errno(errno);
    }
}

/// Ends direct access in this process.
fn leave() {
    demote_all();
    process::turn_off();
}

fn note_map(fd: Fd, flags: c_int) {
    if flags & sys::MAP_ANONYMOUS == 0
        && let Some(open) = get(fd)
    {
        open.note_map();
    }
}

/// Number of bytes, or the error.
#[inline]
fn result(direct: Direct) -> isize {
    match direct {
        Direct::Done(bytes) => bytes as isize,
        Direct::Fault => {
            set_errno(sys::EFAULT);
            -1
        }
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

#[inline]
fn one(base: *mut c_void, len: usize) -> [IoVec; 1] {
    [IoVec { base, len: len.min(COUNT_MAX) }]
}

#[inline]
fn direct_read(fd: Fd, into: *mut c_void, len: usize, at: i64) -> Option<isize> {
    let (open, at) = (get(fd)?, u64::try_from(at).ok()?);
    let buffers = one(into, len);
    let done = access::read(fd, open, Request { buffers: &buffers, len: buffers[0].len, at: Some(at) });
    counted(done)
}

#[inline]
fn direct_write(fd: Fd, from: *const c_void, len: usize, at: i64) -> Option<isize> {
    let (open, at) = (get(fd)?, u64::try_from(at).ok()?);
    let buffers = one(from.cast_mut(), len);
    let done = access::write(fd, open, Request { buffers: &buffers, len: buffers[0].len, at: Some(at) });
    counted(done)
}

/// Reads at the position of an open file.
#[inline]
fn read_at_position(fd: Fd, open: &'static Open, into: *mut c_void, len: usize) -> isize {
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
fn write_at_position(fd: Fd, open: &'static Open, from: *const c_void, len: usize) -> isize {
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
fn through_mount(open: &Open, len: usize, call: impl Fn(Option<u64>) -> isize) -> isize {
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
enum Direction {
    Read,
    Write,
}

/// Returns the buffers of a call with their total length, if the kernel would accept them.
fn buffers_of<'a>(buffers: *const IoVec, count: c_int) -> Option<(&'a [IoVec], usize)> {
    const IOV_MAX: c_int = 1024;
    if buffers.is_null() || !(1..=IOV_MAX).contains(&count) {
        return None;
    }
    // SAFETY: the program passes this many buffers.
    let buffers = unsafe { std::slice::from_raw_parts(buffers, count as usize) };
    let len = buffers.iter().try_fold(0_usize, |sum, buffer| sum.checked_add(buffer.len))?;
    (len <= COUNT_MAX).then_some((buffers, len))
}

fn direct_vector(fd: Fd, open: &'static Open, request: Request<'_>, direction: Direction) -> Option<isize> {
    match direction {
        Direction::Read => access::read(fd, open, request),
        Direction::Write => access::write(fd, open, request),
    }
    .map(result)
}

fn vector(fd: Fd, buffers: *const IoVec, count: c_int, at: i64, direction: Direction) -> Option<isize> {
    let (open, at) = (get(fd)?, u64::try_from(at).ok()?);
    let (buffers, len) = buffers_of(buffers, count)?;
    let done = direct_vector(fd, open, Request { buffers, len, at: Some(at) }, direction);
    if done.is_none() {
        count_through_mount();
    }
    done
}

/// Reads or writes at the position of an open file. `None`: the kernel has the position.
fn vector_at_position(fd: Fd, buffers: *const IoVec, count: c_int, direction: Direction) -> Option<isize> {
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
fn vector_with_flags(
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
        _ => None,
    }
}

/// lseek(2).
fn seek(fd: Fd, by: i64, whence: c_int, call: impl Fn() -> i64) -> i64 {
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
fn control(fd: Fd, command: c_int, call: impl Fn() -> c_int) -> c_int {
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
        // Locks can be relative to the position.
        sys::F_GETLK..=sys::F_SETLKW | sys::F_OFD_GETLK..=sys::F_OFD_SETLKW => {
            if let Some(open) = get(fd)
                && let Some(at) = open.position()
            {
                let (at, whence) = (at as i64, sys::SEEK_SET);
                let errno = sys::errno();
                next!(lseek(fd: Fd, at: i64, whence: c_int) -> i64);
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
