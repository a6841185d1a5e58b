//! Attributes of an inode in replies.

use super::abi;
use fuser::INodeNo;
use std::time::Duration;

/// A time: seconds since 1970, rounded down, and the nanoseconds that follow them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds, below 10^9.
    pub nanoseconds: u32,
}

/// Attributes of an inode.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FileAttr {
    /// Number of the inode.
    pub ino: u64,
    /// Bytes.
    pub size: u64,
    /// Allocated space in units of 512 bytes.
    pub blocks: u64,
    /// Last access.
    pub atime: Timestamp,
    /// Last change of the contents.
    pub mtime: Timestamp,
    /// Last change of the attributes.
    pub ctime: Timestamp,
    /// Type and permissions, as in inode(7).
    pub mode: u32,
    /// Names.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Numbers of a device file.
    pub rdev: u32,
    /// Size for efficient I/O, in bytes.
    pub blksize: u32,
}

/// An entry of a directory, with the inode that it names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Number by which requests name the inode. With 0, the kernel caches that the name does not exist.
    pub node: INodeNo,
    /// Attributes of the inode.
    pub attr: FileAttr,
    /// Generation of the number of the inode.
    pub generation: u64,
    /// Lifetime of the attributes in the kernel's cache.
    pub attr_ttl: Duration,
    /// Lifetime of the name in the kernel's cache.
    pub name_ttl: Duration,
}

impl FileAttr {
    pub(crate) fn encode(&self) -> abi::Attr {
        abi::Attr {
            ino: self.ino,
            size: self.size,
            blocks: self.blocks,
            atime: self.atime.seconds as u64,
            mtime: self.mtime.seconds as u64,
            ctime: self.ctime.seconds as u64,
            atimensec: self.atime.nanoseconds,
            mtimensec: self.mtime.nanoseconds,
            ctimensec: self.ctime.nanoseconds,
            mode: self.mode,
            nlink: self.nlink,
            uid: self.uid,
            gid: self.gid,
            rdev: self.rdev,
            blksize: self.blksize,
            flags: 0,
        }
    }

    pub(crate) fn encode_with(&self, ttl: Duration) -> abi::AttrOut {
        abi::AttrOut {
            attr_valid: ttl.as_secs(),
            attr_valid_nsec: ttl.subsec_nanos(),
            dummy: 0,
            attr: self.encode(),
        }
    }
}

impl Entry {
    pub(crate) fn encode(&self) -> abi::EntryOut {
        abi::EntryOut {
            nodeid: self.node.0,
            generation: self.generation,
            entry_valid: self.name_ttl.as_secs(),
            attr_valid: self.attr_ttl.as_secs(),
            entry_valid_nsec: self.name_ttl.subsec_nanos(),
            attr_valid_nsec: self.attr_ttl.subsec_nanos(),
            attr: self.attr.encode(),
        }
    }
}
