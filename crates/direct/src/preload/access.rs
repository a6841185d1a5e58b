//! Reads and writes of file data in the medium.

use super::copy::{copy_from_medium, copy_to_medium};
use super::files::{Open, Piece, Window, get};
use super::mounts::Mount;
use super::process;
use super::report::count_through_mount;
use super::slots;
use super::status::file_status;
use super::sys::{self, Fd, IoVec, next};
use super::thread::Thread;
use crate::segment::{FileState, GAP_MAX, SIZE_FIXED, Slot};
use std::sync::atomic::{AtomicU64, Ordering};

/// Attempts to get the lock of writers before the write goes through the mount.
const WRITER_SPINS: u32 = 1000;
const WRITER_YIELDS: u32 = 1000;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Maximum number of bytes of a call, as in the kernel (`MAX_RW_COUNT`).
pub(super) const COUNT_MAX: usize = 0x7fff_f000;

/// An announced access, valid until it is dropped.
struct Access {
    thread: &'static Thread,
    slot: &'static Slot,
    window: &'static Window,
    file: &'static FileState,
}

impl Access {
    /// Announces an access to an open file, if it has a valid lease.
    #[inline(always)]
    fn begin(fd: Fd, open: &'static Open) -> Option<Self> {
        let window = open.window.load(Ordering::Acquire);
        if window.is_null() {
            return None;
        }
        // SAFETY: windows are never unmapped. Another thread may reuse this one until it is announced, so
        // that the index is checked below.
        let index = unsafe { (&raw const (*window).lease.file).read_volatile() };
        let (mount, thread) = (open.mount(), Thread::get());
        let file = mount.segment().files.get(index as usize)?;
        if !thread.may_access() {
            return None;
        }
        sys::touch_stack();
        thread.begin_access();
        let Some(slot) = slots::slot(thread, mount) else {
            thread.end_access();
            return None;
        };
        let count = thread.count.get().wrapping_add(1);
        thread.count.set(count);
        slot.access.swap(u64::from(count) << 32 | u64::from(index + 1), Ordering::SeqCst);
        if open.window.load(Ordering::SeqCst) == window && get(fd).is_some_and(|now| std::ptr::eq(now, open))
        {
            // SAFETY: the window is in use by the open file, and whoever replaces it sees the announcement.
            let window = unsafe { &*window };
            if window.lease.file == index
                && file.generation.load(Ordering::SeqCst) == window.lease.generation
                && window.lease.generation != 0
            {
                return Some(Self { thread, slot, window, file });
            }
        }
        slot.access.store(0, Ordering::Release);
        thread.end_access();
        None
    }
}

impl Drop for Access {
    #[inline]
    fn drop(&mut self) {
        self.slot.access.store(0, Ordering::Release);
        self.thread.end_access();
    }
}

/// Result of a direct access.
pub(super) enum Direct {
    /// Number of bytes.
    Done(usize),
    /// The buffer is not mapped, and nothing was copied.
    Fault,
    /// The mount has failed, and the error number is set.
    Failed,
}

/// An access of the program: buffers, their total length, and the position. Without a position the access is at
/// the position of the open file, and moves it.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) buffers: &'a [IoVec],
    pub(super) len: usize,
    pub(super) at: Option<u64>,
}

/// Reason why an access with a valid lease goes through the mount.
enum Refused {
    NoLease,
    /// The extents at this position are not known, or have no blocks for a write.
    Unknown(u64),
    /// The file has no append space here.
    Behind,
    /// The lease has ended before a write at this position became a part of the file. The position of the open file
    /// is behind it.
    Late(u64),
    Other,
}

impl Access {
    /// Returns the size of the file.
    #[inline]
    fn size(&self) -> u64 {
        self.file.size.load(Ordering::Acquire) & !SIZE_FIXED
    }
}

/// Reads from a file. `None`: the read goes through the mount.
#[inline]
pub(super) fn read(fd: Fd, open: &'static Open, request: Request<'_>) -> Option<Direct> {
    if !process::is_active() || !open.reads() {
        return None;
    }
    sys::test_cancel();
    match try_read(fd, open, request) {
        Ok(done) => Some(done),
        Err(refused) => read_later(fd, open, request, &refused),
    }
}

#[cold]
fn read_later(fd: Fd, open: &'static Open, request: Request<'_>, refused: &Refused) -> Option<Direct> {
    let is_granted = match refused {
        Refused::NoLease => {
            let at = request.at.or_else(|| open.position.peek(fd))?;
            open.is_due(request.len) && open.ask(fd, at)
        }
        Refused::Unknown(at) => open.renew(fd, *at),
        Refused::Behind | Refused::Late(_) | Refused::Other => false,
    };
    if !is_granted {
        return None;
    }
    match try_read(fd, open, request) {
        Ok(done) => Some(done),
        Err(Refused::Unknown(_)) => {
            // More extents than a window has: later accesses ask less often.
            open.lose();
            None
        }
        Err(_) => None,
    }
}

#[inline]
fn try_read(fd: Fd, open: &'static Open, request: Request<'_>) -> Result<Direct, Refused> {
    let access = Access::begin(fd, open).ok_or(Refused::NoLease)?;
    let lease = &access.window.lease;
    let (from, len) = loop {
        let from = request.at.or_else(|| open.position.get_back(fd)).ok_or(Refused::Other)?;
        // The kernel refuses a read up to a position that it cannot count.
        if from > i64::MAX as u64 - request.len as u64 {
            return Err(Refused::Other);
        }
        let len = access.size().saturating_sub(from).min(request.len as u64) as usize;
        if len > 0 && (from < lease.from || from + len as u64 > lease.to) {
            return Err(Refused::Unknown(from));
        }
        if request.at.is_some() || open.position.replace(from, from + len as u64) {
            break (from, len);
        }
    };
    let done = each_buffer(request.buffers, len, |buffer, wanted, done| {
        copy_out(&access, open, from + done as u64, buffer, wanted)
    });
    if access.file.read.load(Ordering::Relaxed) == 0 {
        access.file.read.store(1, Ordering::Relaxed);
    }
    count(&access.slot.reads);
    drop(access);
    Ok(finish(open, request.at.is_some(), from, len, done))
}

/// Adds one to a counter of this thread.
#[inline]
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Calls `copy` for the buffers up to `len` bytes, with the number of bytes before each; it returns the number of
/// bytes copied. Returns the total.
#[inline]
fn each_buffer(buffers: &[IoVec], len: usize, mut copy: impl FnMut(*mut u8, usize, usize) -> usize) -> usize {
    let mut done = 0;
    for buffer in buffers {
        let wanted = buffer.len.min(len - done);
        let copied = copy(buffer.base.cast(), wanted, done);
        done += copied;
        if copied < wanted {
            break;
        }
    }
    done
}

/// Counts an access, and corrects the position if it ended early.
#[inline]
fn finish(open: &Open, is_positional: bool, from: u64, len: usize, done: usize) -> Direct {
    open.count(done);
    if done == len {
        return Direct::Done(done);
    }
    if !is_positional {
        open.position.replace(from + len as u64, from + done as u64);
    }
    if done == 0 { Direct::Fault } else { Direct::Done(done) }
}

/// Copies a known range to the program; returns the number of bytes copied.
#[inline]
fn copy_out(access: &Access, open: &Open, from: u64, into: *mut u8, len: usize) -> usize {
    let mut done = 0;
    while done < len {
        let (at, rest) = (from + done as u64, len - done);
        let (source, wanted) = match access.window.find(at, &open.hint) {
            Some(Piece::Written(extent)) => {
                let Some(source) = open.mount().address(extent, at - extent.at) else { break };
                (source.cast_const(), rest.min((extent.end() - at) as usize))
            }
            Some(Piece::Zeros(to)) => (ZEROS.as_ptr(), rest.min((to - at).min(ZEROS.len() as u64) as usize)),
            None => break,
        };
        // SAFETY: the source is in the medium, or static; a bad target ends the copy.
        let copied = unsafe { copy_from_medium(into.wrapping_add(done), source, wanted) };
        done += copied;
        if copied < wanted {
            break;
        }
    }
    done
}

/// Writes to a file: to blocks that are written, and to append space. `None`: the write goes through the mount.
#[inline]
pub(super) fn write(fd: Fd, open: &'static Open, request: Request<'_>) -> Option<Direct> {
    if request.len == 0 || !process::is_active() || !open.writes() {
        return None;
    }
    sys::test_cancel();
    match try_write(fd, open, request) {
        Ok(done) => Some(done),
        Err(refused) => write_later(fd, open, request, &refused),
    }
}

#[cold]
fn write_later(fd: Fd, open: &'static Open, request: Request<'_>, refused: &Refused) -> Option<Direct> {
    let at = match refused {
        Refused::Late(from) => return Some(write_late(fd, open, request, *from)),
        _ => request.at.or_else(|| open.position.peek(fd))?,
    };
    let end = at.checked_add(request.len as u64)?;
    let is_granted = match refused {
        Refused::NoLease if !open.is_due(request.len) => false,
        Refused::NoLease => match file_status(fd) {
            Some(status) if end <= status.size => open.ask(fd, at),
            status => {
                // A write that extends the file has no use for a lease without append space.
                let is_near = status.is_some_and(|status| at <= status.size.saturating_add(GAP_MAX));
                let may_extend = open.may_extend() && is_near;
                if !may_extend {
                    open.not_due();
                }
                may_extend && open.ask_to_extend(fd, at, end)
            }
        },
        Refused::Unknown(_) => open.fill(fd, at, end),
        Refused::Behind => open.extend(fd, at, end),
        Refused::Late(_) | Refused::Other => false,
    };
    if !is_granted {
        return None;
    }
    match write_again(fd, open, request) {
        // The first lease of a file with holes.
        Err(Refused::Unknown(_)) if matches!(refused, Refused::NoLease) && open.fill(fd, at, end) => {
            write_again(fd, open, request).ok()
        }
        done => done.ok(),
    }
}

fn write_again(fd: Fd, open: &'static Open, request: Request<'_>) -> Result<Direct, Refused> {
    match try_write(fd, open, request) {
        Err(Refused::Late(from)) => Ok(write_late(fd, open, request, from)),
        done => done,
    }
}

/// Makes a write through the mount that was lost before it became a part of the file.
#[cold]
fn write_late(fd: Fd, open: &'static Open, request: Request<'_>, from: u64) -> Direct {
    count_through_mount();
    let (buffers, count, at) = (request.buffers.as_ptr(), request.buffers.len() as i32, from as i64);
    let done = next!(pwritev64(fd: Fd, buffers: *const IoVec, count: i32, at: i64) -> isize);
    if request.at.is_none() {
        let end = from + request.len as u64;
        open.position.replace(end, from + done.max(0) as u64);
    }
    usize::try_from(done).map_or(Direct::Failed, Direct::Done)
}

#[inline]
fn try_write(fd: Fd, open: &'static Open, request: Request<'_>) -> Result<Direct, Refused> {
    let access = Access::begin(fd, open).ok_or(Refused::NoLease)?;
    let from = request.at.or_else(|| open.position.get_back(fd)).ok_or(Refused::Other)?;
    let end = from.checked_add(request.len as u64).ok_or(Refused::Other)?;
    // Only the kernel cuts a write at the limit, and sends SIGXFSZ.
    if !open.mount().is_writable() || end > process::size_limit() {
        return Err(Refused::Other);
    }
    // What is within the size of the lease stays within it.
    let extends = end > access.window.lease.size && end > access.size();
    if extends && (!open.may_extend() || from > access.size().saturating_add(GAP_MAX)) {
        return Err(Refused::Other);
    }
    if extends && end > access.window.lease.size_max {
        return Err(Refused::Behind);
    }
    if !is_written(access.window, from, request.len, open) {
        return Err(if extends { Refused::Behind } else { Refused::Unknown(from) });
    }
    let lock = WriterLock::take(&access, open.mount()).ok_or(Refused::Other)?;
    if extends {
        zero_gap(&access, open, from)?;
    }
    // Another thread may have moved the position.
    if request.at.is_none() && !open.position.replace(from, end) {
        return Err(Refused::Other);
    }
    let done = each_buffer(request.buffers, request.len, |buffer, wanted, done| {
        copy_in(&access, open, from + done as u64, buffer, wanted)
    });
    access.file.written_at.store(sys::coarse_time(), Ordering::Release);
    let is_in_file = !extends || done == 0 || extend_to(access.file, from + done as u64);
    drop(lock);
    if !is_in_file {
        return Err(Refused::Late(from));
    }
    count(&access.slot.writes);
    drop(access);
    Ok(finish(open, request.at.is_some(), from, request.len, done))
}

/// Writes zeros between the end of the file and a position behind it.
#[inline]
fn zero_gap(access: &Access, open: &Open, to: u64) -> Result<(), Refused> {
    let mut at = access.size();
    if at < to && !is_written(access.window, at, (to - at) as usize, open) {
        return Err(Refused::Behind);
    }
    while at < to {
        let part = (to - at).min(ZEROS.len() as u64) as usize;
        if copy_in(access, open, at, ZEROS.as_ptr(), part) < part {
            return Err(Refused::Other);
        }
        at += part as u64;
    }
    Ok(())
}

/// Moves the size of a file to the end of a write. Returns `false` if it changes no more, because the lease has
/// ended. The caller holds the lock of writers.
#[inline]
fn extend_to(file: &FileState, end: u64) -> bool {
    let size = file.size.load(Ordering::Acquire);
    let is_fixed = size & SIZE_FIXED != 0;
    if end <= size & !SIZE_FIXED {
        return true;
    }
    !is_fixed && file.size.compare_exchange(size, end, Ordering::SeqCst, Ordering::Relaxed).is_ok()
}

/// Returns `true` if all blocks of a range are written.
#[inline]
fn is_written(window: &Window, from: u64, len: usize, open: &Open) -> bool {
    let (mut at, end) = (from, from + len as u64);
    while at < end {
        match window.find(at, &open.hint) {
            Some(Piece::Written(extent)) => at = extent.end(),
            _ => return false,
        }
    }
    true
}

/// Excludes other writers of a file until it is dropped.
struct WriterLock<'a>(&'a Access);

impl<'a> WriterLock<'a> {
    /// Returns `None` if another writer takes long.
    #[inline]
    fn take(access: &'a Access, mount: &Mount) -> Option<Self> {
        let me = slots::writer(mount, access.slot);
        let writer = &access.file.writer;
        let try_lock = || writer.compare_exchange(0, me, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        (try_lock() || wait_for_writer(try_lock)).then(|| Self(access))
    }
}

impl Drop for WriterLock<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.file.writer.store(0, Ordering::Release);
    }
}

#[cold]
fn wait_for_writer(try_lock: impl Fn() -> bool) -> bool {
    for _ in 0..WRITER_SPINS {
        std::hint::spin_loop();
        if try_lock() {
            return true;
        }
    }
    for _ in 0..WRITER_YIELDS {
        // SAFETY: the call has no arguments.
        unsafe { sys::sched_yield() };
        if try_lock() {
            return true;
        }
    }
    false
}

/// Copies from the program to written blocks; returns the number of bytes copied.
#[inline]
fn copy_in(access: &Access, open: &Open, from: u64, data: *const u8, len: usize) -> usize {
    let mut done = 0;
    while done < len {
        let at = from + done as u64;
        let Some(Piece::Written(extent)) = access.window.find(at, &open.hint) else { break };
        let wanted = (len - done).min((extent.end() - at) as usize);
        let Some(target) = open.mount().address(extent, at - extent.at) else { break };
        // SAFETY: the target is in the medium; a bad source ends the copy.
        let copied = unsafe { copy_to_medium(target, data.wrapping_add(done), wanted) };
        done += copied;
        if copied < wanted {
            break;
        }
    }
    done
}
