//! Bodies: contents of regular files that are kept outside of the medium, one for each inode.
//!
//! Names, attributes, directories, extended attributes and the journal stay on the medium as they are. A body that
//! does not exist is an empty file, so that neither making an inode nor a stop behind that needs one.

mod ground;
mod owners;
mod pool;

pub use ground::Ground;
pub(crate) use owners::{match_bodies, strays};
pub use pool::Pool;

use crate::error::Result;
use crate::types::{Allocate, Ino, Seek, Time};
use std::fmt::Debug;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Whose body it is. With the generation a number that is used again never leads to what another inode held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BodyId {
    /// The inode.
    pub ino: Ino,
    /// Which use of the number.
    pub generation: u32,
}

/// What is known of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// Bytes.
    pub size: u64,
    /// Blocks of 512 bytes that it takes.
    pub sectors: u64,
    /// Last read.
    pub atime: Time,
    /// Last change of its bytes.
    pub mtime: Time,
    /// Last change of its bytes or of what is known of it.
    pub ctime: Time,
}

/// How full the place is where bodies are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks.
    pub blocks: u64,
    /// Those that are free.
    pub blocks_free: u64,
}

/// The bytes of one regular file. Errors are those of the place where they are: no space, a quota, too large.
pub trait Body: Send + Sync + Debug {
    /// Reads from byte `at`; fewer bytes only at the end.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize>;

    /// Writes from byte `at`; fewer bytes only when space ran out on the way.
    fn write(&self, at: u64, data: &[u8]) -> Result<usize>;

    /// Sets the size; what it grows by reads as zeros.
    fn resize(&self, to: u64) -> Result<()>;

    /// Allocates, punches or zeroes a range.
    fn allocate(&self, how: Allocate, at: u64, len: u64) -> Result<()>;

    /// The first byte from `at` on that is data, or is in a hole.
    fn seek(&self, what: Seek, at: u64) -> Result<u64>;

    /// Size, blocks and times.
    fn look(&self) -> Result<Look>;

    /// Sets the times of the last read and of the last change; `None` stays.
    fn set_times(&self, atime: Option<Time>, mtime: Option<Time>) -> Result<()>;

    /// What was written outlives the machine, as far as the place has that.
    fn sync(&self, data_only: bool) -> Result<()>;

    /// The open file that it is, where it is one.
    fn descriptor(&self) -> Option<Arc<OwnedFd>>;
}

/// Where bodies are. Who calls sees to it that nobody uses a body while it is removed.
pub trait Bodies: Send + Sync + Debug {
    /// The identity of the file system that they belong to.
    fn uuid(&self) -> u128;

    /// Opens a body; `None` where there is none and `make` is not set.
    fn open(&self, of: BodyId, make: bool) -> Result<Option<Arc<dyn Body>>>;

    /// What is known of a body that is not open; `None`: there is none.
    fn look(&self, of: BodyId) -> Result<Option<Look>>;

    /// Removes a body, if there is one.
    fn remove(&self, of: BodyId) -> Result<()>;

    /// All bodies that there are, in no order.
    fn all(&self) -> Result<Vec<BodyId>>;

    /// How full the place is.
    fn room(&self) -> Result<Room>;

    /// All that was written to bodies outlives the machine, as far as the place has that.
    fn sync(&self) -> Result<()>;
}
