//! The memory that a mount shares with the programs that access its files directly.
//!
//! It is a file beside the image, `IMAGE.direct`, with the owner and the mode of the image. A thread
//! announces an access in its [`Slot`] before it looks at the generation in the [`FileState`], and the mount
//! changes the generation before it looks at the slots (both sequentially consistent), so one of them
//! sees the other. All fields are atomic: any process with access to the image can write any value at
//! any time, and the mount must survive all of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

/// First word of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"fritdir3");
/// Number of threads that can have a slot.
pub const SLOTS: usize = 4096;
/// Number of files that programs can access directly at once.
pub const FILES: usize = 16384;
/// Suffix of the name of the file, after the name of the image.
pub const SUFFIX: &str = ".direct";

/// Bit of [`FileState::size`]: the size changes no more.
pub const SIZE_FIXED: u64 = 1 << 63;

/// Largest distance in bytes between the end of a file and a direct write behind it, which is filled with zeros. A
/// file with larger gaps stays sparse.
pub const GAP_MAX: u64 = 64 << 10;

/// Start of the segment.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Head {
    /// [`MAGIC`], written last.
    pub magic: AtomicU64,
    /// Not 0: the mount has ended, and no access is allowed.
    pub closed: AtomicU32,
    /// Number of slots that were ever in use: later ones need not be looked at.
    pub slots_used: AtomicU32,
    /// Identity of the boot of the machine. After another boot, sizes may be newer than contents.
    pub boot: [AtomicU64; 2],
    /// UUID of the file system.
    pub uuid: [AtomicU64; 2],
    /// Random identity of this file: another mount can get the device number of a killed one.
    pub identity: AtomicU64,
}

/// Announcement of one thread.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Slot {
    /// 0, or the access: a count in the upper half, so that each access has another value, and the index
    /// of the file plus 1 in the lower half.
    pub access: AtomicU64,
    /// 0 if the slot is free; else the client in the upper half, and its process in the lower half, as the mount sees it.
    pub owner: AtomicU64,
    /// Thread that uses the slot, as its process sees it.
    pub thread: AtomicU64,
    /// Number of direct reads of threads that had the slot.
    pub reads: AtomicU64,
    /// Number of direct writes.
    pub writes: AtomicU64,
}

/// Shared state of a file with direct access.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct FileState {
    /// 0: no access is allowed. Otherwise extents and size that were granted under this number are valid.
    pub generation: AtomicU64,
    /// Time of the last direct write that the mount has not noted, in nanoseconds since 1970, or 0.
    pub written_at: AtomicI64,
    /// Not 0: there was a direct read that the mount has not noted.
    pub read: AtomicU32,
    /// 0, or the number of the slot of the thread that writes, plus 1. Writes of a file exclude one another.
    pub writer: AtomicU32,
    /// Size of the file, and [`SIZE_FIXED`]. The writer that extends the file replaces the old size by the new
    /// one when the bytes are there.
    pub size: AtomicU64,
}

/// Free blocks behind the end of a file, for programs that extend it. The next mount needs this record if
/// this one is killed.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct AppendSpace {
    /// Inode of the file, written last; 0: no append space.
    pub inode: AtomicU64,
    /// Generation of the inode.
    pub generation: AtomicU64,
    /// Size of the file when it got the space.
    pub size: AtomicU64,
    /// First block in the file.
    pub at: AtomicU64,
    /// First block on the medium.
    pub start: AtomicU64,
    /// Number of blocks.
    pub blocks: AtomicU64,
}

/// The whole file.
#[repr(C)]
#[derive(Debug)]
pub struct Segment {
    /// Start.
    pub head: Head,
    /// Slots of threads.
    pub slots: [Slot; SLOTS],
    /// Files with direct access.
    pub files: [FileState; FILES],
    /// Append space of each of these files.
    pub appends: [AppendSpace; FILES],
}

/// Returns the path of the file of an image.
#[must_use]
pub fn path_of(image: &Path) -> PathBuf {
    let mut path = image.as_os_str().to_owned();
    path.push(SUFFIX);
    path.into()
}

impl Slot {
    /// Value of [`Slot::owner`] for a client and its process.
    #[must_use]
    pub const fn owner_of(client: u32, process: u32) -> u64 {
        (client as u64) << 32 | process as u64
    }
}
