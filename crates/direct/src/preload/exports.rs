//! The functions of the C library that this library stands in for.

use super::calls::{
    Direction, control, direct_read, direct_write, leave, note_map, read_at_position, seek, to_kernel,
    vector, vector_at_position, vector_with_flags, write_at_position,
};
use super::files::{demote_all, duplicated, forget, get, give_up, give_up_range, opened};
use super::process::{self, Opening};
use super::sys::{self, Fd, IoVec, next, set_errno};
use std::ffi::{c_int, c_uint, c_void};

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

/// Stands in for `_Fork` of the C library.
///
/// # Safety
/// As for the function of the C library.
#[cfg_attr(frit_preload, unsafe(export_name = "_Fork"))]
pub unsafe extern "C" fn fork_for_handlers() -> c_int {
    process::fork(|| next!(_Fork() -> c_int))
}

/// Opens a file by `call`, and enters its descriptor.
fn entered(flags: c_int, call: impl FnOnce() -> Fd) -> Fd {
    let opening = Opening::begin();
    let fd = call();
    if fd >= 0 {
        let errno = sys::errno();
        opened(fd, flags, &opening);
        set_errno(errno);
    }
    fd
}

// The mode is the next argument if there is one; without it the value is not used. Variadic arguments
// are passed like others (System V ABI of x86-64).
stand_in! {
    fn open(path: *const u8, flags: c_int, mode: c_uint) -> c_int {
        entered(flags, || next!(open(path: *const u8, flags: c_int, mode: c_uint) -> c_int))
    }
    fn open64(path: *const u8, flags: c_int, mode: c_uint) -> c_int {
        entered(flags, || next!(open64(path: *const u8, flags: c_int, mode: c_uint) -> c_int))
    }
    fn openat(dir: Fd, path: *const u8, flags: c_int, mode: c_uint) -> c_int {
        entered(flags, || next!(openat(dir: Fd, path: *const u8, flags: c_int, mode: c_uint) -> c_int))
    }
    fn openat64(dir: Fd, path: *const u8, flags: c_int, mode: c_uint) -> c_int {
        entered(flags, || next!(openat64(dir: Fd, path: *const u8, flags: c_int, mode: c_uint) -> c_int))
    }
    fn creat(path: *const u8, mode: c_uint) -> c_int {
        entered(sys::O_WRONLY | sys::O_CREAT | sys::O_TRUNC, || next!(creat(path: *const u8, mode: c_uint) -> c_int))
    }
    fn creat64(path: *const u8, mode: c_uint) -> c_int {
        entered(sys::O_WRONLY | sys::O_CREAT | sys::O_TRUNC, || next!(creat64(path: *const u8, mode: c_uint) -> c_int))
    }
    fn __open_2(path: *const u8, flags: c_int) -> c_int {
        entered(flags, || next!(__open_2(path: *const u8, flags: c_int) -> c_int))
    }
    fn __open64_2(path: *const u8, flags: c_int) -> c_int {
        entered(flags, || next!(__open64_2(path: *const u8, flags: c_int) -> c_int))
    }
    fn __openat_2(dir: Fd, path: *const u8, flags: c_int) -> c_int {
        entered(flags, || next!(__openat_2(dir: Fd, path: *const u8, flags: c_int) -> c_int))
    }
    fn __openat64_2(dir: Fd, path: *const u8, flags: c_int) -> c_int {
        entered(flags, || next!(__openat64_2(dir: Fd, path: *const u8, flags: c_int) -> c_int))
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
            give_up_range(first, last);
        }
        next!(close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int)
    }
    fn closefrom(first: c_int) -> () {
        give_up_range(first.max(0) as u32, u32::MAX);
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
        give_up(new);
        let result = next!(dup2(old: Fd, new: Fd) -> c_int);
        if result >= 0 {
            duplicated(old, new);
        }
        result
    }
    fn dup3(old: Fd, new: Fd, flags: c_int) -> c_int {
        if old != new {
            give_up(new);
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
    // Names that the C library exports for other libraries.
    fn __open(path: *const u8, flags: c_int, mode: c_uint) -> c_int {
        entered(flags, || next!(__open(path: *const u8, flags: c_int, mode: c_uint) -> c_int))
    }
    fn __open64(path: *const u8, flags: c_int, mode: c_uint) -> c_int {
        entered(flags, || next!(__open64(path: *const u8, flags: c_int, mode: c_uint) -> c_int))
    }
    fn __close(fd: Fd) -> c_int {
        forget(fd);
        next!(__close(fd: Fd) -> c_int)
    }
    fn __dup2(old: Fd, new: Fd) -> c_int {
        // SAFETY: the caller's.
        unsafe { dup2(old, new) }
    }
    fn __fcntl(fd: Fd, command: c_int, argument: usize) -> c_int {
        // SAFETY: the caller's.
        unsafe { fcntl(fd, command, argument) }
    }
    fn __read(fd: Fd, into: *mut c_void, len: usize) -> isize {
        // SAFETY: the caller's.
        unsafe { read(fd, into, len) }
    }
    fn __write(fd: Fd, from: *const c_void, len: usize) -> isize {
        // SAFETY: the caller's.
        unsafe { write(fd, from, len) }
    }
    fn __pread64(fd: Fd, into: *mut c_void, len: usize, at: i64) -> isize {
        // SAFETY: the caller's.
        unsafe { pread64(fd, into, len, at) }
    }
    fn __pwrite64(fd: Fd, from: *const c_void, len: usize, at: i64) -> isize {
        // SAFETY: the caller's.
        unsafe { pwrite64(fd, from, len, at) }
    }
    fn __lseek(fd: Fd, by: i64, whence: c_int) -> i64 {
        // SAFETY: the caller's.
        unsafe { lseek(fd, by, whence) }
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
    fn fork() -> c_int {
        process::fork(|| next!(fork() -> c_int))
    }
    fn __fork() -> c_int {
        process::fork(|| next!(__fork() -> c_int))
    }
    fn forkpty(terminal: *mut c_int, name: *mut u8, modes: *const c_void, size: *const c_void) -> c_int {
        process::fork(|| next!(forkpty(terminal: *mut c_int, name: *mut u8, modes: *const c_void, size: *const c_void) -> c_int))
    }
    fn daemon(stays: c_int, keeps: c_int) -> c_int {
        process::fork(|| next!(daemon(stays: c_int, keeps: c_int) -> c_int))
    }
    fn unshare(flags: c_int) -> c_int {
        const CLONE_FILES: c_int = 0x400;
        if flags & CLONE_FILES != 0 {
            leave();
        }
        next!(unshare(flags: c_int) -> c_int)
    }
}
