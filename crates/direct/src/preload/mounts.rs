//! The mounts whose files this process accesses directly, and the maps of their images.

use super::faults;
use super::process::{self, Exclusive};
use super::status::{FileStatus, file_status};
use super::sys::{self, Fd, next};
use crate::environment::DEVICES;
use crate::messages::{Extent, INFO, Info, Lease, POSSIBLE, REGISTER, Registration};
use crate::segment::{MAGIC, SUFFIX, Segment, Slot};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Maximum number of mounts.
pub(super) const MOUNTS: usize = 8;
/// Number of bytes whose page table entries are made at once.
const TOUCH: u64 = 2 << 20;

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
    /// Position in the list.
    index: AtomicU32,
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
            index: AtomicU32::new(0),
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

    /// Returns the position in the list of mounts.
    #[inline]
    pub(super) fn index(&self) -> usize {
        self.index.load(Ordering::Relaxed) as usize
    }

    /// Returns `true` if this process is registered.
    #[inline]
    pub(super) fn is_registered(&self) -> bool {
        self.registered.load(Ordering::Acquire) == process::ancestors() + 1
    }

    /// Returns the owner of the slots of this process.
    pub(super) fn owner(&self) -> u64 {
        Slot::owner_of(self.client.load(Ordering::Relaxed), self.process.load(Ordering::Relaxed))
    }

    /// Returns `true` if a lease is for the image that is mapped. If another mount has got the device number of a
    /// killed one, direct access ends in this process.
    pub(super) fn is_mount_of(&self, lease: &Lease) -> bool {
        let is_same = self.segment().head.identity.load(Ordering::Relaxed) == lease.segment;
        if !is_same {
            self.is_refused.store(true, Ordering::Release);
        }
        is_same
    }

    /// Returns `true` if the shared memory is mapped.
    pub(super) fn is_mapped(&self) -> bool {
        !self.segment.load(Ordering::Acquire).is_null()
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
        let now = process::ancestors() + 1;
        if self.registered.load(Ordering::Acquire) == now {
            return true;
        }
        let Some(_exclusive) = Exclusive::try_new() else { return false };
        let mut registration = Registration::default();
        // The first registration of all creates the shared memory.
        // SAFETY: the request has this argument.
        let is_registered = unsafe { sys::ioctl(fd, u64::from(REGISTER), &raw mut registration) } == 0;
        let is_mapped = !self.base.load(Ordering::Acquire).is_null();
        if !is_mapped && (!is_registered || self.map(fd).is_none()) {
            self.is_refused.store(true, Ordering::Release);
            return false;
        }
        if !is_registered {
            return false;
        }
        if !faults::install() {
            self.is_refused.store(true, Ordering::Release);
            return false;
        }
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
        // SAFETY: the request has this argument; `info` is zeroed memory of the size of an `Info`.
        let info = unsafe {
            if sys::ioctl(fd, u64::from(INFO), info) != 0 || (*info).status != POSSIBLE {
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

static LIST: [Mount; MOUNTS] = [const { Mount::new() }; MOUNTS];
static LISTED: AtomicI32 = AtomicI32::new(-1);

/// Returns the mounts, also those that are not in use.
pub(super) fn mounts() -> &'static [Mount] {
    &LIST
}

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

/// Reads the list of mounts; returns their number.
#[cold]
fn read_environment() -> i32 {
    let mut count = 0;
    // SAFETY: the C library has the variable. It is set after the first functions of the program (.preinit_array).
    if unsafe { (&raw const sys::environ).read().is_null() } {
        return 0;
    }
    // SAFETY: the name is a C string, and so is the value.
    let value = unsafe { sys::getenv(DEVICES.as_ptr()) };
    if !value.is_null() {
        // SAFETY: as above.
        let value = unsafe { std::ffi::CStr::from_ptr(value) }.to_bytes();
        for word in value.split(|byte| *byte == b',') {
            let number = std::str::from_utf8(word).ok().and_then(|word| u64::from_str_radix(word, 16).ok());
            if let (Some(number), Some(mount)) = (number, LIST.get(count)) {
                mount.device.store(number, Ordering::Relaxed);
                mount.index.store(count as u32, Ordering::Relaxed);
                count += 1;
            }
        }
    }
    LISTED.store(count as i32, Ordering::Release);
    count as i32
}
