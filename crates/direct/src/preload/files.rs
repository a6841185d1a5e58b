//! Open files: the table of descriptors, the position of each open file, and what is known of its
//! extents. Memory of open files and windows is never returned to the kernel, so that a thread that
//! comes late finds a value that it can check.

use super::mounts::{self, Mount};
use super::position::Position;
use super::process::{self, Exclusive, Opening};
use super::slots;
use super::status::file_status;
use super::sys::{self, Fd};
use super::thread::Thread;
use crate::messages::{END, EXTENTS, Extent, LEASE, Lease, PREPARE_AT, PREPARE_WHENCE};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Descriptors from this number on are left to the kernel.
const FDS: usize = 1 << 16;
/// First descriptor that is looked at: the C library closes and replaces the standard ones itself.
const FIRST: Fd = 3;
/// Accesses of a file before a lease is asked for, and the length of an access that needs no others
/// before it. A lease costs about as much as ten requests.
const ACCESSES_MIN: u32 = 8;
const LEN_AT_ONCE: usize = 256 << 10;
/// Maximum number of accesses before a lease is asked for again, when leases end early.
const ACCESSES_MAX: u32 = 1 << 14;
/// Number of pages accessed with a lease that count as a success.
const ACCESSES_GOOD: u64 = 1 << 12;

/// Extents of a file, valid under one generation.
pub(super) struct Window {
    pub(super) lease: Lease,
    mount: &'static Mount,
    next: *mut Window,
}

impl Window {
    /// Returns the extent that contains `at`, or the range of zeros around it. `None`: unknown.
    #[inline]
    pub(super) fn find(&self, at: u64, hint: &AtomicU32) -> Option<Piece<'_>> {
        if at < self.lease.from || at >= self.lease.to {
            return None;
        }
        let extents = &self.lease.extents[..(self.lease.count as usize).min(EXTENTS)];
        if let Some(extent) = extents.get(hint.load(Ordering::Relaxed) as usize)
            && extent.at <= at
            && at < extent.end()
        {
            return Some(Piece::Written(extent));
        }
        let after = extents.partition_point(|extent| extent.at <= at);
        if let Some(extent) = after.checked_sub(1).map(|before| &extents[before])
            && at < extent.end()
        {
            hint.store(after as u32 - 1, Ordering::Relaxed);
            return Some(Piece::Written(extent));
        }
        Some(Piece::Zeros(extents.get(after).map_or(self.lease.to, |extent| extent.at)))
    }
}

/// Part of a file.
pub(super) enum Piece<'a> {
    Written(&'a Extent),
    /// Zeros up to this position.
    Zeros(u64),
}

/// An open file (`struct file` of the kernel), which several descriptors can refer to.
#[repr(align(64))]
pub(super) struct Open {
    /// Position of read(2) and write(2).
    pub(super) position: Position,
    pub(super) window: AtomicPtr<Window>,
    /// Index of the extent that was used last.
    pub(super) hint: AtomicU32,
    /// Number of descriptors.
    users: AtomicU32,
    reads: AtomicBool,
    writes: AtomicBool,
    /// The program has mapped the file with the kernel, which then has its pages.
    is_mapped: AtomicBool,
    /// The program may extend the file directly.
    extends: AtomicBool,
    /// The program has asked for append space, so that the kernel may not know the size.
    has_extended: AtomicBool,
    /// Accesses without a lease since it was last asked for, and their number before it is asked for.
    accesses: AtomicU32,
    wait: AtomicU32,
    /// Pages accessed with a lease.
    direct: AtomicU64,
    mount: AtomicPtr<Mount>,
    next: AtomicPtr<Open>,
}

static TABLE: [AtomicPtr<Open>; FDS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; FDS];
/// All descriptors in the table are lower.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);
static FREE_OPENS: AtomicPtr<Open> = AtomicPtr::new(std::ptr::null_mut());
/// Windows that are not in use, and those that may still be read. Changed under [`Exclusive`].
static FREE_WINDOWS: AtomicPtr<Window> = AtomicPtr::new(std::ptr::null_mut());
static OLD_WINDOWS: AtomicPtr<Window> = AtomicPtr::new(std::ptr::null_mut());

/// Returns the open file of a descriptor.
#[inline]
pub(super) fn get(fd: Fd) -> Option<&'static Open> {
    let open = TABLE.get(fd as usize)?.load(Ordering::SeqCst);
    // SAFETY: memory of open files is never freed.
    if open.is_null() { None } else { Some(unsafe { &*open }) }
}

/// Enters a descriptor that open(2) has just returned.
pub(super) fn opened(fd: Fd, flags: c_int, opening: &Opening) {
    const REGULAR: u32 = 0o100_000;
    const TYPE: u32 = 0o170_000;
    let access = flags & sys::O_ACCMODE;
    let other = sys::O_APPEND | sys::O_DSYNC | (sys::O_SYNC & !sys::O_DSYNC) | sys::O_PATH;
    if fd < FIRST || fd as usize >= FDS || flags & other != 0 || access > sys::O_RDWR || !mounts::has_mounts()
    {
        return;
    }
    let Some(status) = file_status(fd) else { return };
    if status.mode & TYPE != REGULAR || !process::is_active() || process::is_other_process() {
        return;
    }
    let Some(mount) = mounts::mount_of(status.device) else { return };
    let Some(open) = take_open() else { return };
    // Otherwise the memory is not used again.
    if !open.position.reset() {
        return;
    }
    open.window.store(std::ptr::null_mut(), Ordering::Relaxed);
    open.hint.store(0, Ordering::Relaxed);
    open.users.store(1, Ordering::Relaxed);
    open.reads.store(access != sys::O_WRONLY, Ordering::Relaxed);
    open.writes.store(access != sys::O_RDONLY, Ordering::Relaxed);
    open.is_mapped.store(false, Ordering::Relaxed);
    open.extends.store(access != sys::O_RDONLY && flags & sys::O_DIRECT == 0, Ordering::Relaxed);
    open.has_extended.store(false, Ordering::Relaxed);
    open.accesses.store(0, Ordering::Relaxed);
    open.wait.store(ACCESSES_MIN, Ordering::Relaxed);
    open.direct.store(0, Ordering::Relaxed);
    open.mount.store(std::ptr::from_ref(mount).cast_mut(), Ordering::Relaxed);
    HIGHEST.fetch_max(fd as usize + 1, Ordering::SeqCst);
    TABLE[fd as usize].store(std::ptr::from_ref(open).cast_mut(), Ordering::SeqCst);
    // In this order: a fork begins before positions are given to the kernel.
    if opening.is_in_child() {
        open.demote(fd);
    }
}

/// Number of open files that are allocated at once.
const OPENS: usize = 64;

fn take_open() -> Option<&'static Open> {
    let _exclusive = Exclusive::try_new()?;
    let mut open = FREE_OPENS.load(Ordering::Relaxed);
    if open.is_null() {
        let block = sys::allocate(OPENS * size_of::<Open>()).cast::<Open>();
        if block.is_null() {
            return None;
        }
        for index in 0..OPENS {
            // SAFETY: the block has this many; zeros are a valid `Open`.
            let each = unsafe { &*block.add(index) };
            each.next.store(open, Ordering::Relaxed);
            open = std::ptr::from_ref(each).cast_mut();
        }
    }
    // SAFETY: the pointer is not null, and memory of open files is never freed.
    let open = unsafe { &*open };
    FREE_OPENS.store(open.next.load(Ordering::Relaxed), Ordering::Relaxed);
    Some(open)
}

/// Removes a descriptor, which is about to be closed or replaced.
pub(super) fn forget(fd: Fd) {
    if get(fd).is_none() {
        return;
    }
    // A child of fork is another process from now on, and one of vfork must not change the table.
    process::is_active();
    if process::is_other_process() {
        return;
    }
    let open = TABLE[fd as usize].swap(std::ptr::null_mut(), Ordering::SeqCst);
    if open.is_null() {
        return;
    }
    // SAFETY: memory of open files is never freed.
    let open = unsafe { &*open };
    open.position.wait_for_move();
    if open.users.fetch_sub(1, Ordering::AcqRel) > 1 {
        return;
    }
    // Without the lock the memory is not used again.
    let Some(_exclusive) = Exclusive::try_new() else { return };
    retire(open.window.swap(std::ptr::null_mut(), Ordering::SeqCst));
    open.next.store(FREE_OPENS.load(Ordering::Relaxed), Ordering::Relaxed);
    FREE_OPENS.store(std::ptr::from_ref(open).cast_mut(), Ordering::Relaxed);
}

/// Removes a descriptor that a call may replace, or leave as it is if it fails: the kernel gets the position.
pub(super) fn give_up(fd: Fd) {
    if let Some(open) = get(fd) {
        let errno = sys::errno();
        // In a child of fork(2), the positions are those of the kernel.
        process::is_active();
        open.demote(fd);
        forget(fd);
        sys::set_errno(errno);
    }
}

/// Removes the descriptors from `first` to `last`, as [`give_up`] does.
pub(super) fn give_up_range(first: u32, last: u32) {
    let end = (last as usize).saturating_add(1).min(HIGHEST.load(Ordering::Acquire));
    for fd in first as usize..end {
        give_up(fd as Fd);
    }
}

/// Puts the table in order in a child of fork(2): moves of other threads of the parent never end.
pub(super) fn begin_child() {
    for open in &TABLE[..HIGHEST.load(Ordering::Acquire)] {
        let open = open.load(Ordering::Acquire);
        if !open.is_null() {
            // SAFETY: memory of open files is never freed.
            unsafe { &*open }.position.begin_child();
        }
    }
}

/// Returns `true` if there may be descriptors in the table.
pub(super) fn has_opens() -> bool {
    HIGHEST.load(Ordering::Acquire) > 0
}

/// Enters `new` as another descriptor of the open file of `old`.
pub(super) fn duplicated(old: Fd, new: Fd) {
    let Some(open) = get(old) else { return };
    process::is_active();
    if process::is_other_process() {
        return;
    }
    if new < FIRST || new as usize >= FDS {
        // The position is shared with a descriptor that only the kernel knows.
        open.demote(old);
        return;
    }
    open.users.fetch_add(1, Ordering::AcqRel);
    HIGHEST.fetch_max(new as usize + 1, Ordering::AcqRel);
    TABLE[new as usize].store(std::ptr::from_ref(open).cast_mut(), Ordering::Release);
}

/// Gives the positions of all open files to the kernel.
pub(super) fn demote_all() {
    if !mounts::has_mounts() || !process::is_active() {
        return;
    }
    let errno = sys::errno();
    for (fd, open) in TABLE[..HIGHEST.load(Ordering::SeqCst)].iter().enumerate() {
        let open = open.load(Ordering::SeqCst);
        if !open.is_null() {
            // SAFETY: memory of open files is never freed.
            unsafe { &*open }.demote(fd as Fd);
        }
    }
    sys::set_errno(errno);
}

impl Open {
    /// Returns `true` if there may be a lease, and this thread has a slot, so that it can receive faults.
    #[inline]
    pub(super) fn has_slot(&self) -> bool {
        !self.window.load(Ordering::Acquire).is_null()
            && Thread::get().may_access()
            && slots::slot(Thread::get(), self.mount()).is_some()
    }

    pub(super) fn reads(&self) -> bool {
        self.reads.load(Ordering::Relaxed)
    }

    pub(super) fn writes(&self) -> bool {
        self.writes.load(Ordering::Relaxed)
    }

    pub(super) fn mount(&self) -> &'static Mount {
        // SAFETY: mounts are static, and an open file in the table has one.
        unsafe { &*self.mount.load(Ordering::Relaxed) }
    }

    /// Gives the position to the kernel for good, and the size with it.
    pub(super) fn demote(&self, fd: Fd) {
        self.position.give(fd, || self.report_size(fd));
    }

    /// Notes that the program maps the file.
    pub(super) fn note_map(&self, fd: Fd) {
        if !self.is_mapped.swap(true, Ordering::SeqCst) {
            self.report_size(fd);
        }
    }

    /// Lets the kernel know the size of a file that the program may have extended, and extends no more: maps
    /// and appends of the kernel rely on the size.
    fn report_size(&self, fd: Fd) {
        if self.has_extended.load(Ordering::SeqCst) {
            let mut size = 0_u64;
            // SAFETY: the request has this argument.
            unsafe { sys::ioctl(fd, u64::from(END), &raw mut size) };
            self.refresh_size(fd);
        }
    }

    /// Lets the kernel know the present size of a file that the program may have extended.
    pub(super) fn refresh_size(&self, fd: Fd) {
        if self.has_extended.load(Ordering::SeqCst) {
            // The kernel asks for attributes that it does not keep.
            file_status(fd);
        }
    }

    /// Returns `true` if the program may extend the file directly: the kernel has neither its position nor a
    /// map, and the size is not limited.
    pub(super) fn may_extend(&self) -> bool {
        self.extends.load(Ordering::Relaxed)
            && !self.position.is_given()
            && !self.is_mapped.load(Ordering::SeqCst)
            && process::size_limit() == process::UNLIMITED
    }

    /// Notes an access without a lease. Returns `true` if it is time to ask for one.
    #[cold]
    pub(super) fn is_due(&self, len: usize) -> bool {
        let accesses = self.accesses.fetch_add(1, Ordering::Relaxed) + 1;
        let wait = self.wait.load(Ordering::Relaxed);
        let is_long = len >= LEN_AT_ONCE && wait <= ACCESSES_MIN;
        (accesses >= wait || is_long) && !self.is_mapped.load(Ordering::Relaxed)
    }

    /// Notes that a lease is of no use now.
    pub(super) fn not_due(&self) {
        self.accesses.store(0, Ordering::Relaxed);
    }

    /// Counts an access with a lease.
    #[inline]
    pub(super) fn count(&self, len: usize) {
        let pages = 1 + len as u64 / 4096;
        self.direct.store(self.direct.load(Ordering::Relaxed) + pages, Ordering::Relaxed);
    }

    /// Asks for a lease. Returns `true` if there is one.
    #[cold]
    pub(super) fn ask(&self, fd: Fd, at: u64) -> bool {
        self.ask_for(fd, at, 0)
    }

    /// Asks for a lease with append space up to `to`. Returns `true` if there is a lease.
    #[cold]
    pub(super) fn ask_to_extend(&self, fd: Fd, at: u64, to: u64) -> bool {
        self.has_extended.store(true, Ordering::SeqCst);
        self.may_extend() && self.ask_for(fd, at, to)
    }

    fn ask_for(&self, fd: Fd, at: u64, to: u64) -> bool {
        self.accesses.store(0, Ordering::Relaxed);
        // A lease that was soon lost is not worth its cost.
        let is_good = self.direct.swap(0, Ordering::Relaxed) >= ACCESSES_GOOD;
        let wait = self.wait.load(Ordering::Relaxed);
        let next = if is_good { ACCESSES_MIN } else { (wait * 2).min(ACCESSES_MAX) };
        self.wait.store(next, Ordering::Relaxed);
        let errno = sys::errno();
        let is_granted = self.mount().prepare(fd) && self.request(fd, at, to, true);
        sys::set_errno(errno);
        is_granted
    }

    /// Gives up the lease.
    #[cold]
    pub(super) fn lose(&self) {
        if let Some(_exclusive) = Exclusive::try_new() {
            retire(self.window.swap(std::ptr::null_mut(), Ordering::SeqCst));
        }
    }

    /// Asks for the extents around `at`. Returns `true` if there are new ones.
    #[cold]
    pub(super) fn renew(&self, fd: Fd, at: u64) -> bool {
        self.request(fd, at, 0, false)
    }

    /// Asks for blocks in the holes of a range. Returns `true` if there are new extents.
    #[cold]
    pub(super) fn fill(&self, fd: Fd, at: u64, to: u64) -> bool {
        let errno = sys::errno();
        let is_filled = self.request(fd, at, to, false);
        sys::set_errno(errno);
        is_filled
    }

    /// Asks for append space up to `to`. Returns `true` if there are new extents.
    #[cold]
    pub(super) fn extend(&self, fd: Fd, at: u64, to: u64) -> bool {
        self.has_extended.store(true, Ordering::SeqCst);
        self.may_extend() && self.fill(fd, at, to)
    }

    /// Asks for a lease, or for more of one that is not new.
    fn request(&self, fd: Fd, at: u64, to: u64, is_new: bool) -> bool {
        let Some(_exclusive) = Exclusive::try_new() else { return false };
        if is_new {
            // It fails, so the position of the kernel stays.
            // SAFETY: the call uses no memory of the program.
            unsafe {
                sys::raw_call(sys::SYS_LSEEK, fd as usize, PREPARE_AT as usize, PREPARE_WHENCE as usize)
            };
        }
        let window = take_window(self.mount());
        if window.is_null() {
            return false;
        }
        // SAFETY: no other thread has the pointer.
        let lease = unsafe { &mut (*window).lease };
        lease.from = at;
        lease.to = to;
        // SAFETY: the request has this argument.
        let answered = unsafe { sys::ioctl(fd, u64::from(LEASE), std::ptr::from_mut(lease)) } == 0;
        let is_same_mount = answered && self.mount().is_mount_of(lease);
        let granted = is_same_mount && (lease.file as usize) < crate::segment::FILES;
        let old = if granted { self.window.swap(window, Ordering::SeqCst) } else { window };
        retire(old);
        granted
    }
}

/// Returns a window that no thread reads, or null. The caller holds [`Exclusive`].
fn take_window(mount: &'static Mount) -> *mut Window {
    free_old_windows();
    let mut window = FREE_WINDOWS.load(Ordering::Relaxed);
    if window.is_null() {
        window = sys::allocate(size_of::<Window>()).cast::<Window>();
        if window.is_null() {
            return window;
        }
        // SAFETY: the memory is new, and has the size of a window.
        unsafe { window.write(Window { lease: Lease::request(0), mount, next: std::ptr::null_mut() }) };
    } else {
        // SAFETY: windows on the list are valid.
        FREE_WINDOWS.store(unsafe { (*window).next }, Ordering::Relaxed);
    }
    // SAFETY: no other thread has the pointer.
    unsafe { (*window).mount = mount };
    window
}

/// Keeps a window until no thread reads it. The caller holds [`Exclusive`], and has removed it from
/// its open file before.
fn retire(window: *mut Window) {
    if !window.is_null() {
        // SAFETY: readers do not use `next`.
        unsafe { (*window).next = OLD_WINDOWS.load(Ordering::Relaxed) };
        OLD_WINDOWS.store(window, Ordering::Relaxed);
    }
}

/// Frees the windows that no thread reads: a reader announces the file first, and then finds that its
/// open file has another window.
fn free_old_windows() {
    let mut window = OLD_WINDOWS.swap(std::ptr::null_mut(), Ordering::Relaxed);
    while !window.is_null() {
        // SAFETY: windows on the list are valid, and only their readers use them besides.
        let (next, is_read) =
            unsafe { ((*window).next, slots::is_accessed((*window).mount, (*window).lease.file)) };
        let list = if is_read { &OLD_WINDOWS } else { &FREE_WINDOWS };
        // SAFETY: as above.
        unsafe { (*window).next = list.load(Ordering::Relaxed) };
        list.store(window, Ordering::Relaxed);
        window = next;
    }
}
