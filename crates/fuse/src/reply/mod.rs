//! Replies, one type for each kind of request. Each is sent once, by any thread; one that is dropped
//! answers with EIO.

mod directory;

pub use directory::{ReplyDirectory, ReplyDirectoryPlus};

use crate::answer::Answer;
use crate::backing::BackingId;
use crate::protocol::abi::{self, FOPEN_PASSTHROUGH};
use crate::protocol::{Entry, FileAttr};
use fuser::{Errno, FileHandle, FopenFlags, PollEvents};
use std::time::Duration;
use zerocopy::IntoBytes;

/// Defines types of replies.
macro_rules! replies {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(pub(crate) Answer);

        impl $name {
            /// Answers with an error.
            pub fn error(self, error: Errno) {
                self.0.error(error);
            }
        }
    )*};
}

replies! {
    /// Reply without data.
    ReplyEmpty
    /// Reply with bytes.
    ReplyData
    /// Reply with a name and its inode.
    ReplyEntry
    /// Reply with attributes.
    ReplyAttr
    /// Reply with an open file.
    ReplyOpen
    /// Reply with a new, open file.
    ReplyCreate
    /// Reply with a number of bytes written.
    ReplyWrite
    /// Reply with an extended attribute, or with their names.
    ReplyXattr
    /// Reply with the usage of the file system.
    ReplyStatfs
    /// Reply to ioctl(2).
    ReplyIoctl
    /// Reply to poll(2).
    ReplyPoll
    /// Reply with a position.
    ReplyLseek
}

/// An open file, as the kernel uses it.
#[derive(Clone, Copy, Debug)]
pub enum Opened<'a> {
    /// Contents are transferred by requests, which have this handle.
    Requests(FileHandle, FopenFlags),
    /// The kernel reads and writes a file of its own.
    Passthrough(FileHandle, FopenFlags, &'a BackingId),
}

impl Opened<'_> {
    fn encode(self) -> abi::OpenOut {
        match self {
            Opened::Requests(handle, flags) => {
                abi::OpenOut { fh: handle.0, open_flags: flags.bits() & !FOPEN_PASSTHROUGH, backing_id: 0 }
            }
            Opened::Passthrough(handle, flags, id) => abi::OpenOut {
                fh: handle.0,
                open_flags: flags.bits() | FOPEN_PASSTHROUGH,
                backing_id: id.number() as i32,
            },
        }
    }
}

/// Usage of a file system, as statfs(2) returns it. Blocks have the size `bsize`.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Blocks.
    pub blocks: u64,
    /// Free blocks.
    pub blocks_free: u64,
    /// Inodes.
    pub files: u64,
    /// Free inodes.
    pub files_free: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bytes of the longest name.
    pub name_max: u32,
}

impl ReplyEmpty {
    /// Answers that the request was executed.
    pub fn ok(self) {
        self.0.bytes(&[]);
    }
}

impl ReplyData {
    /// Answers with bytes.
    pub fn data(self, data: &[u8]) {
        self.0.bytes(data);
    }
}

/// Reply to a request that reads contents. Bytes beyond those that were requested are cut.
#[derive(Debug)]
pub struct ReplyRead {
    answer: Answer,
    /// Bytes requested.
    max: u32,
}

impl ReplyRead {
    pub(crate) fn new(answer: Answer, max: u32) -> ReplyRead {
        ReplyRead { answer, max }
    }

    /// Answers with an error.
    pub fn error(self, error: Errno) {
        self.answer.error(error);
    }

    /// Answers with bytes.
    pub fn data(self, data: &[u8]) {
        self.fill(|buffer| {
            let len = data.len().min(buffer.len());
            buffer[..len].copy_from_slice(&data[..len]);
            Ok(len)
        });
    }

    /// Answers with what `read` puts into a buffer that has room for the bytes requested. It returns
    /// the number of bytes. This saves a copy.
    pub fn fill(self, read: impl FnOnce(&mut [u8]) -> Result<usize, Errno>) {
        // `None` is never returned, so nothing is left.
        drop(self.try_fill(|buffer| read(buffer).map(Some)));
    }

    /// Answers as [`fill`](Self::fill), or returns the reply if `read` returns `None`.
    #[must_use]
    pub fn try_fill(self, read: impl FnOnce(&mut [u8]) -> Result<Option<usize>, Errno>) -> Option<ReplyRead> {
        let max = self.max;
        self.answer.fill(max as usize, read).map(|answer| ReplyRead { answer, max })
    }
}

impl ReplyEntry {
    /// Answers with an entry.
    pub fn entry(self, entry: &Entry) {
        self.0.structure(&entry.encode());
    }
}

impl ReplyAttr {
    /// Answers with attributes, and their lifetime in the kernel's cache.
    pub fn attr(self, ttl: Duration, attr: &FileAttr) {
        self.0.structure(&attr.encode_with(ttl));
    }
}

impl ReplyOpen {
    /// Answers with an open file.
    pub fn opened(self, opened: Opened<'_>) {
        self.0.structure(&opened.encode());
    }
}

impl ReplyCreate {
    /// Answers with a new, open file.
    pub fn created(self, entry: &Entry, opened: Opened<'_>) {
        self.0.structure(&abi::CreateOut { entry: entry.encode(), open: opened.encode() });
    }
}

impl ReplyWrite {
    /// Answers with the number of bytes written.
    pub fn written(self, size: u32) {
        self.0.structure(&abi::WriteOut { size, padding: 0 });
    }
}

impl ReplyXattr {
    /// Answers with the number of bytes of the value.
    pub fn size(self, size: u32) {
        self.0.structure(&abi::GetxattrOut { size, padding: 0 });
    }

    /// Answers with the value, at most as many bytes as the program has room for.
    pub fn data(self, data: &[u8]) {
        self.0.bytes(data);
    }
}

impl ReplyStatfs {
    /// Answers with the usage.
    pub fn statfs(self, usage: &Usage) {
        self.0.structure(&abi::StatfsOut {
            blocks: usage.blocks,
            bfree: usage.blocks_free,
            bavail: usage.blocks_free,
            files: usage.files,
            ffree: usage.files_free,
            bsize: usage.block_bytes,
            namelen: usage.name_max,
            frsize: usage.block_bytes,
            ..abi::StatfsOut::default()
        });
    }
}

impl ReplyIoctl {
    /// Answers with a result, and bytes for the program.
    pub fn ioctl(self, result: i32, data: &[u8]) {
        let header = abi::IoctlOut { result, ..abi::IoctlOut::default() };
        self.0.bytes(&[header.as_bytes(), data].concat());
    }
}

impl ReplyPoll {
    /// Answers with the events that have occurred.
    pub fn poll(self, events: PollEvents) {
        self.0.structure(&abi::PollOut { revents: events.bits(), padding: 0 });
    }
}

impl ReplyLseek {
    /// Answers with a position.
    pub fn offset(self, at: i64) {
        self.0.structure(&abi::LseekOut { offset: at as u64 });
    }
}
