//! State of this process: its mounts, its registration, and the slots of its threads.

use super::copy;
use super::sys::{self, Fd, next};
use crate::messages::{Extent, INFO, Info, POSSIBLE, REGISTER, Registration};
use crate::segment::{MAGIC, SLOTS, SUFFIX, Segment, Slot};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Environment variable with the devices of the mounts, as hexadecimal numbers separated by commas.
pub(super) const DEVICES: &std::ffi::CStr = c"FRIT_DIRECT";
/// Maximum number of mounts.
const MOUNTS: usize = 8;
/// Number of bytes whose page table entries are made at once.
const TOUCH: u64 = 2 << 20;

/// Phase of the process.
const FORKED: u32 = 0;
const ACTIVE: u32 = 1;
/// A child of vfork(2) may use this memory.
const SHARED: u32 = 2;
/// Direct access is off, because descriptors may change without this library.
const OFF: u32 = 3;

/// Page that a child of fork(2) finds zeroed.
static PHASE: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());
/// Process that registered, thread that called vfork(2), and the number of processes before this one that had this memory.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static VFORK_THREAD: AtomicU32 = AtomicU32::new(0);
static ANCESTORS: AtomicU32 = AtomicU32::new(0);
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// Lock of rare changes. It is never waited for: whoever does not get it does without direct access.
static BUSY: AtomicBool = AtomicBool::new(false);

/// Holds [`BUSY`].
pub(super) struct Exclusive;

impl Exclusive {
    pub(super) fn try_new() -> Option<Self> {
        (!BUSY.swap(true, Ordering::Acquire)).then_some(Self)
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        BUSY.store(false, Ordering::Release);
    }
}

/// A mount whose files this process accesses directly.
pub(super) struct Mount {
    pub(super) device: AtomicU64,
    /// Start of the image in memory, or null.
    base: AtomicPtr<u8>,
    bytes: AtomicUsize,
    is_writable: AtomicBool,
    segment: AtomicPtr<Segment>,
    /// Bitmap of the parts of the image with page table entries.
    touched: AtomicPtr<AtomicU64>,
    client: AtomicU32,
    process: AtomicU32,
    /// Value of [`ANCESTORS`] at the registration, plus 1.
    registered: AtomicU32,
    is_refused: AtomicBool,
}

impl Mount {
    const fn new() -> Self {
        Self {
            device: AtomicU64::new(0),
            base: AtomicPtr::new(std::ptr::null_mut()),
            bytes: AtomicUsize::new(0),
            is_writable: AtomicBool::new(false),
            segment: AtomicPtr::new(std::ptr::null_mut()),
            touched: AtomicPtr::new(std::ptr::null_mut()),
            client: AtomicU32::new(0),
            process: AtomicU32::new(0),
            registered: AtomicU32::new(0),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Returns the shared memory. The mount is registered.
    #[inline]
    pub(super) fn segment(&self) -> &'static Segment {
        // SAFETY: the mapping has this size, all its fields are atomic, and it is never unmapped.
        unsafe { &*self.segment.load(Ordering::Acquire) }
    }

    pub(super) fn is_writable(&self) -> bool {
        self.is_writable.load(Ordering::Relaxed)
    }

    /// Returns the address of a range of an extent of the image, or `None` if the extent is outside of it.
    #[inline]
    pub(super) fn address(&self, extent: &Extent, offset: u64) -> Option<*mut u8> {
        let end = extent.medium.checked_add(extent.len)?;
        if end > self.bytes.load(Ordering::Relaxed) as u64 {
            return None;
        }
        let at = extent.medium + offset;
        self.touch(at, extent);
        // SAFETY: the range is within the mapping.
        Some(unsafe { self.base.load(Ordering::Relaxed).add(at as usize) })
    }

    /// Makes page table entries for the part of an extent that is accessed next: one call costs less than
    /// a fault for each page.
    #[inline]
    fn touch(&self, at: u64, extent: &Extent) {
        let part = at / TOUCH;
        // SAFETY: the bitmap has a bit for each part of the image.
        let word = unsafe { &*self.touched.load(Ordering::Relaxed).add((part / 64) as usize) };
        if word.load(Ordering::Relaxed) >> (part % 64) & 1 == 0 {
            word.fetch_or(1 << (part % 64), Ordering::Relaxed);
            let range =
                (part * TOUCH).max(extent.medium)..((part + 1) * TOUCH).min(extent.medium + extent.len);
            self.touch_part(range);
        }
    }

    #[cold]
    fn touch_part(&self, range: std::ops::Range<u64>) {
        let advice = if self.is_writable() { sys::MADV_POPULATE_WRITE } else { sys::MADV_POPULATE_READ };
        let errno = sys::errno();
        // SAFETY: the range is within the mapping, and the file system has allocated it.
        unsafe {
            let base = self.base.load(Ordering::Relaxed).add(range.start as usize);
            sys::madvise(base.cast(), (range.end - range.start) as usize, advice);
        }
        sys::set_errno(errno);
    }

    /// Registers this process through a descriptor of the mount, and maps the image, if that was not done.
    /// Returns `false` if direct access is not possible.
    pub(super) fn prepare(&self, fd: Fd) -> bool {
        if self.is_refused.load(Ordering::Acquire) {
            return false;
        }
        let now = ANCESTORS.load(Ordering::Acquire) + 1;
        if self.registered.load(Ordering::Acquire) == now {
            return true;
        }
        let Some(_exclusive) = Exclusive::try_new() else { return false };
        if self.base.load(Ordering::Acquire).is_null() && self.map(fd).is_none() {
            self.is_refused.store(true, Ordering::Release);
            return false;
        }
        let mut registration = Registration::default();
        // SAFETY: the request has this argument.
        if unsafe { sys::ioctl(fd, u64::from(REGISTER), &raw mut registration) } != 0 {
            return false;
        }
        copy::install();
        self.client.store(registration.client, Ordering::Relaxed);
        self.process.store(registration.process, Ordering::Relaxed);
        self.registered.store(now, Ordering::Release);
        true
    }

    /// Maps the image and the shared memory.
    fn map(&self, fd: Fd) -> Option<()> {
        let info = sys::allocate(size_of::<Info>()).cast::<Info>();
        if info.is_null() {
            return None;
        }
        // The first registration creates the shared memory.
        let mut registration = Registration::default();
        // SAFETY: the requests have these arguments; `info` is zeroed memory of the size of an `Info`.
        let info = unsafe {
            if sys::ioctl(fd, u64::from(INFO), info) != 0
                || (*info).status != POSSIBLE
                || sys::ioctl(fd, u64::from(REGISTER), &raw mut registration) != 0
            {
                return None;
            }
            &mut *info
        };
        let len = info.path_len as usize;
        if len + SUFFIX.len() >= info.path.len() {
            return None;
        }
        info.path[len] = 0;
        let (base, bytes, is_writable) = map_file(info.path.as_ptr(), Some((info.device, info.inode)))?;
        info.path[len..len + SUFFIX.len()].copy_from_slice(SUFFIX.as_bytes());
        info.path[len + SUFFIX.len()] = 0;
        let (segment, segment_bytes, shared) = map_file(info.path.as_ptr(), None)?;
        let segment = segment.cast::<Segment>();
        if segment_bytes != size_of::<Segment>() || !shared {
            return None;
        }
        // SAFETY: the mapping has the size of a segment, and all its fields are atomic.
        if unsafe { &*segment }.head.magic.load(Ordering::Acquire) != MAGIC {
            return None;
        }
        let touched = sys::allocate((bytes as u64).div_ceil(TOUCH * 64) as usize * 8);
        if touched.is_null() {
            return None;
        }
        // SAFETY: the range is the mapping.
        unsafe { sys::madvise(base.cast(), bytes, sys::MADV_HUGEPAGE) };
        self.touched.store(touched.cast(), Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        self.is_writable.store(is_writable, Ordering::Relaxed);
        self.segment.store(segment, Ordering::Relaxed);
        self.base.store(base, Ordering::Release);
        Some(())
    }
}

/// Maps a file for reading and writing, or only for reading if this user may not write it. Returns its
/// address, its size in bytes, and whether it may be written. The file must be the one with these
/// numbers of device and inode.
fn map_file(path: *const u8, expected: Option<(u64, u64)>) -> Option<(*mut u8, usize, bool)> {
    for (flags, protection) in
        [(sys::O_RDWR, sys::PROT_READ | sys::PROT_WRITE), (sys::O_RDONLY, sys::PROT_READ)]
    {
        let flags = flags | sys::O_CLOEXEC;
        let mode = 0;
        let fd = next!(open(path: *const u8, flags: c_int, mode: u32) -> c_int);
        if fd < 0 {
            continue;
        }
        let stat = file_status(fd);
        let matches = |stat: &FileStatus| expected.is_none_or(|is| is == (stat.device, stat.inode));
        let map = stat.filter(matches).and_then(|stat| {
            let (at, bytes, zero) = (std::ptr::null_mut::<c_void>(), stat.size as usize / 4096 * 4096, 0_i64);
            let shared = sys::MAP_SHARED;
            let map = next!(mmap(at: *mut c_void, bytes: usize, protection: c_int, shared: c_int, fd: c_int, zero: i64) -> *mut c_void);
            (map as usize != usize::MAX).then_some((map.cast(), bytes, protection & sys::PROT_WRITE != 0))
        });
        next!(close(fd: c_int) -> c_int);
        return map;
    }
    None
}

/// Parts of `struct stat`.
pub(super) struct FileStatus {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) mode: u32,
    pub(super) size: u64,
}

/// `struct stat` of x86-64 (`bits/struct_stat.h`).
#[repr(C)]
struct Stat {
    device: u64,
    inode: u64,
    links: u64,
    mode: u32,
    owner: [u32; 3],
    special: u64,
    size: u64,
    rest: [u64; 11],
}

/// Returns the status of an open file.
pub(super) fn file_status(fd: Fd) -> Option<FileStatus> {
    const SYS_FSTAT: i64 = 5;
    let mut stat = std::mem::MaybeUninit::<Stat>::zeroed();
    // SAFETY: the kernel fills a `struct stat`, for which all bits are valid.
    let stat = unsafe {
        if sys::raw_call(SYS_FSTAT, fd as usize, stat.as_mut_ptr() as usize, 0) != 0 {
            return None;
        }
        stat.assume_init()
    };
    Some(FileStatus { device: stat.device, inode: stat.inode, mode: stat.mode, size: stat.size })
}

static LIST: [Mount; MOUNTS] = [const { Mount::new() }; MOUNTS];
static LISTED: AtomicI32 = AtomicI32::new(-1);

/// Returns the mount with a device number.
pub(super) fn mount_of(device: u64) -> Option<&'static Mount> {
    let count = match LISTED.load(Ordering::Acquire) {
        -1 => read_environment(),
        count => count,
    };
    LIST[..count as usize].iter().find(|mount| mount.device.load(Ordering::Relaxed) == device)
}

/// Returns `true` if there are mounts with direct access.
#[inline]
pub(super) fn has_mounts() -> bool {
    match LISTED.load(Ordering::Acquire) {
        -1 => read_environment() > 0,
        count => count > 0,
    }
}

/// Returns `true` if this is a child of vfork(2), which uses the memory of its parent.
pub(super) fn is_other_process() -> bool {
    let owner = PROCESS.load(Ordering::Relaxed);
    owner != 0 && owner != sys::process()
}

/// Reads the list of mounts; returns their number.
#[cold]
fn read_environment() -> i32 {
    let mut count = 0;
    // SAFETY: the name is a C string, and so is the value.
    let value = unsafe { sys::getenv(DEVICES.as_ptr()) };
    if !value.is_null() {
        // SAFETY: as above.
        let value = unsafe { std::ffi::CStr::from_ptr(value) }.to_bytes();
        for word in value.split(|byte| *byte == b',') {
            let number = std::str::from_utf8(word).ok().and_then(|word| u64::from_str_radix(word, 16).ok());
            if let (Some(number), Some(mount)) = (number, LIST.get(count)) {
                mount.device.store(number, Ordering::Relaxed);
                count += 1;
            }
        }
    }
    LISTED.store(count as i32, Ordering::Release);
    count as i32
}

thread_local! {
    /// Slot of this thread with the mount that it belongs to and [`ANCESTORS`] at that time.
    static SLOT: Cell<(*const Slot, *const Mount, u32)> =
        const { Cell::new((std::ptr::null(), std::ptr::null(), 0)) };
}

/// Returns the slot of this thread for a mount that was prepared.
#[inline]
pub(super) fn slot(mount: &'static Mount) -> Option<&'static Slot> {
    let (slot, of, ancestors) = SLOT.get();
    if std::ptr::eq(of, mount) && ancestors == ANCESTORS.load(Ordering::Relaxed) {
        // SAFETY: slots are in shared memory, which is never unmapped.
        return Some(unsafe { &*slot });
    }
    find_slot(mount)
}

#[cold]
fn find_slot(mount: &'static Mount) -> Option<&'static Slot> {
    if mount.registered.load(Ordering::Acquire) != ANCESTORS.load(Ordering::Acquire) + 1 {
        return None;
    }
    let (old, _, ancestors) = SLOT.get();
    if !old.is_null() && ancestors == ANCESTORS.load(Ordering::Relaxed) {
        // SAFETY: as in `slot`. A thread that uses several mounts has one slot at a time.
        let old = unsafe { &*old };
        if old.access.load(Ordering::Relaxed) != 0 {
            return None;
        }
        old.owner.store(0, Ordering::Release);
        SLOT.set((std::ptr::null(), std::ptr::null(), 0));
    }
    let segment = mount.segment();
    let owner = Slot::owner_of(mount.client.load(Ordering::Relaxed), mount.process.load(Ordering::Relaxed));
    let free = |slot: &Slot| {
        let is_taken = slot.owner.load(Ordering::Relaxed) == 0
            && slot.owner.compare_exchange(0, owner, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if is_taken {
            slot.reads.store(0, Ordering::Relaxed);
            slot.writes.store(0, Ordering::Relaxed);
        }
        is_taken
    };
    let ended = |slot: &Slot| {
        // A thread of this process that has ended.
        let thread = slot.thread.load(Ordering::Relaxed);
        slot.owner.load(Ordering::Relaxed) == owner
            && slot.access.load(Ordering::Relaxed) == 0
            && thread != 0
            // SAFETY: signal 0 only tests for the thread.
            && unsafe { sys::raw_call(sys::SYS_TGKILL, sys::process() as usize, thread as usize, 0) } != 0
            && slot.thread.compare_exchange(thread, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    let (index, slot) = segment
        .slots
        .iter()
        .enumerate()
        .take(SLOTS / 4)
        .find(|(_, slot)| free(slot))
        .or_else(|| segment.slots.iter().enumerate().find(|(_, slot)| ended(slot) || free(slot)))?;
    slot.thread.store(u64::from(sys::thread()), Ordering::Release);
    segment.head.slots_used.fetch_max(index as u32 + 1, Ordering::SeqCst);
    copy::unblock();
    SLOT.set((slot, mount, ANCESTORS.load(Ordering::Relaxed)));
    Some(slot)
}

/// Returns the numbers of direct reads and writes of this process.
pub(super) fn direct_accesses() -> (u64, u64) {
    let mut sum = (0, 0);
    for mount in &LIST {
        if mount.registered.load(Ordering::Acquire) != ANCESTORS.load(Ordering::Acquire) + 1 {
            continue;
        }
        let owner =
            Slot::owner_of(mount.client.load(Ordering::Relaxed), mount.process.load(Ordering::Relaxed));
        for slot in mount.segment().slots.iter().filter(|slot| slot.owner.load(Ordering::Relaxed) == owner) {
            sum.0 += slot.reads.load(Ordering::Relaxed);
            sum.1 += slot.writes.load(Ordering::Relaxed);
        }
    }
    sum
}

/// Returns `true` if another thread of this process may be in an access to a file.
pub(super) fn is_accessed(mount: &Mount, file: u32) -> bool {
    let segment = mount.segment.load(Ordering::Acquire);
    if segment.is_null() {
        return false;
    }
    let segment = mount.segment();
    let used = (segment.head.slots_used.load(Ordering::SeqCst) as usize).min(SLOTS);
    segment.slots[..used].iter().any(|slot| slot.access.load(Ordering::SeqCst) as u32 == file + 1)
}

/// Returns `true` if this process may access files directly, and its table of descriptors is right.
#[inline]
pub(super) fn is_active() -> bool {
    let phase = PHASE.load(Ordering::Relaxed);
    // SAFETY: the page is never unmapped.
    !phase.is_null() && unsafe { &*phase }.load(Ordering::Relaxed) == ACTIVE || check_phase()
}

#[cold]
fn check_phase() -> bool {
    let mut phase = PHASE.load(Ordering::Acquire);
    if phase.is_null() {
        let page = sys::allocate(4096);
        // SAFETY: the page was just allocated.
        if page.is_null() || unsafe { sys::madvise(page, 4096, sys::MADV_WIPEONFORK) } != 0 {
            return false;
        }
        PROCESS.store(sys::process(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { &*page.cast::<AtomicU32>() }.store(ACTIVE, Ordering::Release);
        match PHASE.compare_exchange(std::ptr::null_mut(), page.cast(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => phase = page.cast(),
            Err(other) => phase = other,
        }
    }
    // SAFETY: the page is never unmapped.
    let phase = unsafe { &*phase };
    match phase.load(Ordering::Acquire) {
        ACTIVE => true,
        FORKED if IS_OFF.load(Ordering::Acquire) => {
            phase.store(OFF, Ordering::Release);
            false
        }
        FORKED => {
            // The only thread of a child. What others held in the parent is free here.
            BUSY.store(false, Ordering::Release);
            ANCESTORS.fetch_add(1, Ordering::AcqRel);
            PROCESS.store(sys::process(), Ordering::Relaxed);
            phase.store(ACTIVE, Ordering::Release);
            true
        }
        SHARED => {
            // The thread that called vfork continues when its child no longer uses this memory.
            let is_over = sys::process() == PROCESS.load(Ordering::Relaxed)
                && sys::thread() == VFORK_THREAD.load(Ordering::Relaxed);
            if is_over {
                phase.store(ACTIVE, Ordering::Release);
            }
            is_over
        }
        _ => false,
    }
}

/// Notes that this thread calls vfork(2).
pub(super) fn begin_vfork() {
    if is_active() {
        VFORK_THREAD.store(sys::thread(), Ordering::Relaxed);
        let phase = PHASE.load(Ordering::Acquire);
        // SAFETY: the page is never unmapped, and exists after `is_active`.
        unsafe { &*phase }.store(SHARED, Ordering::Release);
    }
}

/// Turns direct access off for good.
pub(super) fn turn_off() {
    IS_OFF.store(true, Ordering::Release);
    if is_active() {
        let phase = PHASE.load(Ordering::Acquire);
        // SAFETY: the page is never unmapped, and exists after `is_active`.
        unsafe { &*phase }.store(OFF, Ordering::Release);
    }
}
