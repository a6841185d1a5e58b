//! Requests of programs to a mount: `ioctl` on a descriptor of the mount.

/// Longest path of an image, in bytes.
pub const PATH_MAX: usize = 4000;
/// Number of extents in an answer.
pub const EXTENTS: usize = 400;
/// Letter of the requests.
const LETTER: u32 = b'F' as u32;
/// Directions of the data of a request: to the kernel, and to the program (`asm-generic/ioctl.h`).
const WRITE: u32 = 1;
const READ: u32 = 2;

/// Returns the number of a request (`_IOC`).
const fn request(direction: u32, number: u32, bytes: usize) -> u32 {
    assert!(bytes < 1 << 14);
    direction << 30 | (bytes as u32) << 16 | LETTER << 8 | number
}

/// Asks for the image of the mount; answered by an [`Info`].
pub const INFO: u32 = request(READ, 0x71, size_of::<Info>());
/// Registers a process; the argument is a [`Registration`].
pub const REGISTER: u32 = request(READ | WRITE, 0x72, size_of::<Registration>());
/// Position of an lseek(2) with SEEK_DATA that prepares a lease, before [`LEASE`]; it fails with ENXIO, as behind any
/// end of a file. The kernel holds its lock of the inode meanwhile, so that no write through its page cache is in progress.
pub const PREPARE_AT: i64 = i64::MAX - 0x7269_7466;
/// SEEK_DATA.
pub const PREPARE_WHENCE: i32 = 3;
/// Asks for direct access to the file of the descriptor, which was prepared; the argument is a [`Lease`].
pub const LEASE: u32 = request(READ | WRITE, 0x73, size_of::<Lease>());

/// Ends direct access to the file of the descriptor; answered by its size, a `u64`.
pub const END: u32 = request(READ, 0x74, size_of::<u64>());

/// Opens a command file for instructions of the process that opened it; the argument is a `u32`, 0 or [`SHARE`].
/// No program sends it that does not mean a command file, such as one that copies files.
pub const BEGIN: u32 = request(WRITE, 0x75, size_of::<u32>());
/// Argument of [`BEGIN`]: other processes that have the descriptor give instructions as well.
pub const SHARE: u32 = 1;

/// Value of [`Info::status`] if direct access is possible. Otherwise `path` is the reason why not.
pub const POSSIBLE: u32 = 0;

/// Answer to [`INFO`].
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Info {
    /// [`POSSIBLE`], or another number.
    pub status: u32,
    /// Length of `path` in bytes.
    pub path_len: u32,
    /// Device of the image.
    pub device: u64,
    /// Inode of the image.
    pub inode: u64,
    /// Path of the image, or the reason.
    pub path: [u8; PATH_MAX],
}

/// Argument of [`REGISTER`], and its answer.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Registration {
    /// In the answer: number of the client.
    pub client: u32,
    /// In the answer: the process as the mount sees it.
    pub process: u32,
}

/// Bytes of a file in the image.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Position in the file.
    pub at: u64,
    /// Length in bytes.
    pub len: u64,
    /// Position in the image.
    pub medium: u64,
}

impl Extent {
    /// Position behind the extent in the file.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.at + self.len
    }
}

/// Argument of [`LEASE`], and its answer.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Lease {
    /// Position in the file from which extents are wanted. In the answer: the position from which
    /// `extents` is complete.
    pub from: u64,
    /// 0, or the end of a range from `from` that the program is about to write: holes in it are filled
    /// with zeros, and behind the end of the file there is append space. In the answer: the position up
    /// to which `extents` is complete.
    pub to: u64,
    /// In the answer: generation for which the answer holds.
    pub generation: u64,
    /// In the answer: size of the file. The shared memory has the current one.
    pub size: u64,
    /// In the answer: the size up to which the program may extend the file; 0: not at all.
    pub size_max: u64,
    /// In the answer: identity of the segment ([`Head::identity`](crate::segment::Head::identity)) of the mount.
    pub segment: u64,
    /// In the answer: index of the file in the segment.
    pub file: u32,
    /// In the answer: number of extents.
    pub count: u32,
    /// In the answer: written extents in file order, and append space as the last one. Between them are
    /// zeros.
    pub extents: [Extent; EXTENTS],
}

impl Lease {
    /// Returns the request for extents from a position.
    #[must_use]
    pub const fn request(from: u64) -> Self {
        const NONE: Extent = Extent { at: 0, len: 0, medium: 0 };
        Self {
            from,
            to: 0,
            generation: 0,
            size: 0,
            size_max: 0,
            segment: 0,
            file: 0,
            count: 0,
            extents: [NONE; EXTENTS],
        }
    }
}
