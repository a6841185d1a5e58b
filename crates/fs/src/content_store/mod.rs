//! External content store: contents of regular files that are kept outside the medium, in one
//! content file for each inode.
//!
//! Names, attributes, directories, extended attributes and the journal stay on the medium. A
//! content file that does not exist counts as empty, so the creation of an inode needs none, and
//! neither does recovery after a crash.

mod backing_fs;
mod owners;
mod pool;

pub use backing_fs::BackingFs;
pub(crate) use owners::{check_content_store, strays};
pub use pool::Pool;

use crate::error::Result;
use crate::types::{Allocate, Ino, Seek, Time};
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Identifies the content file of an inode. The generation ensures that a reused inode number never
/// refers to the contents of an earlier inode.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ContentId {
    /// Inode number.
    pub ino: Ino,
    /// Generation of the inode.
    pub generation: u32,
}

/// Attributes of a content file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContentMetadata {
    /// Size in bytes.
    pub size: u64,
    /// Allocated space in blocks of 512 bytes.
    pub sectors: u64,
    /// Time of the last read.
    pub atime: Time,
    /// Time of the last change of its data.
    pub mtime: Time,
    /// Time of the last change of its data or attributes.
    pub ctime: Time,
}

/// Space usage of the file system that holds a content store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StatFs {
    /// Block size in bytes.
    pub block_bytes: u32,
    /// Total number of blocks.
    pub blocks: u64,
    /// Number of free blocks.
    pub blocks_free: u64,
}

/// Open content file of one regular file. Errors are those of the store: no space, a quota, too
/// large.
pub trait ContentFile: Send + Sync + Debug {
    /// Reads from byte `at`; returns fewer bytes only at the end.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize>;

    /// Writes from byte `at`; returns fewer bytes only if space ran out.
    fn write(&self, at: u64, data: &[u8]) -> Result<usize>;

    /// Sets the size. Added bytes read as zeros.
    fn resize(&self, to: u64) -> Result<()>;

    /// Allocates, punches or zeroes a range.
    fn allocate(&self, mode: Allocate, at: u64, len: u64) -> Result<()>;

    /// Returns the first position at or after `at` that is data, or is in a hole.
    fn seek(&self, what: Seek, at: u64) -> Result<u64>;

    /// Returns size, blocks and times.
    fn look(&self) -> Result<ContentMetadata>;

    /// Sets the times of the last read and of the last change; a time that is `None` stays
    /// unchanged.
    fn set_times(&self, atime: Option<Time>, mtime: Option<Time>) -> Result<()>;

    /// Makes written data durable, if the store is durable at all.
    fn sync(&self, data_only: bool) -> Result<()>;

    /// Returns the descriptor of the content file, if it is an open file of the system.
    fn descriptor(&self) -> Option<Arc<OwnedFd>>;
}

/// Store of content files. The caller ensures that a content file is not in use when it is removed.
pub trait ContentStore: Send + Sync + Debug {
    /// Returns the UUID of the file system that the content files belong to.
    fn uuid(&self) -> u128;

    /// Opens a content file; returns `None` if it does not exist and `make` is not set.
    fn open(&self, of: ContentId, make: bool) -> Result<Option<Arc<dyn ContentFile>>>;

    /// Returns the attributes of a content file that is not open, or `None` if it does not exist.
    fn look(&self, of: ContentId) -> Result<Option<ContentMetadata>>;

    /// Removes a content file, if it exists.
    fn remove(&self, of: ContentId) -> Result<()>;

    /// Lists all content files, in no particular order.
    fn all(&self) -> Result<Vec<ContentId>>;

    /// Returns the space usage.
    fn usage(&self) -> Result<StatFs>;

    /// Makes all content files durable, if the store is durable at all.
    fn sync(&self) -> Result<()>;
}
