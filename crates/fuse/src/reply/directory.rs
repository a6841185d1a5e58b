//! Listings of directories.

use crate::answer::Answer;
use crate::protocol::abi::Dirent;
use crate::protocol::{Entry, FileAttr};
use fuser::{Errno, FileType};
use zerocopy::IntoBytes;

/// Entries of a listing are aligned to this number of bytes.
const ALIGN: usize = 8;

/// Entries up to the size that the kernel requested.
#[derive(Debug)]
struct Listing {
    bytes: Vec<u8>,
    max: usize,
}

impl Listing {
    /// Adds an entry of a directory after a prefix. Returns `true` if there is no room for it.
    fn add(&mut self, prefix: &[u8], ino: u64, next: u64, kind: u32, name: &[u8]) -> bool {
        let bytes = prefix.len() + (size_of::<Dirent>() + name.len()).next_multiple_of(ALIGN);
        if self.bytes.len() + bytes > self.max {
            return true;
        }
        let end = self.bytes.len() + bytes;
        let dirent = Dirent { ino, off: next, namelen: name.len() as u32, kind };
        self.bytes.extend_from_slice(prefix);
        self.bytes.extend_from_slice(dirent.as_bytes());
        self.bytes.extend_from_slice(name);
        self.bytes.resize(end, 0);
        false
    }
}

/// Returns the type of an entry as readdir(3) has it: the upper bits of the mode.
fn entry_type(kind: FileType) -> u32 {
    match kind {
        FileType::NamedPipe => 1,
        FileType::CharDevice => 2,
        FileType::Directory => 4,
        FileType::BlockDevice => 6,
        FileType::RegularFile => 8,
        FileType::Symlink => 10,
        FileType::Socket => 12,
    }
}

/// Reply with names.
#[derive(Debug)]
pub struct ReplyDirectory(Answer, Listing);

impl ReplyDirectory {
    pub(crate) fn new(answer: Answer, max: u32) -> ReplyDirectory {
        ReplyDirectory(answer, Listing { bytes: Vec::new(), max: max as usize })
    }

    /// Adds a name. `next` is the position behind it. Returns `true` if the reply is full.
    #[must_use]
    pub fn add(&mut self, ino: u64, next: u64, kind: FileType, name: &[u8]) -> bool {
        self.1.add(&[], ino, next, entry_type(kind), name)
    }

    /// Answers with the names added.
    pub fn ok(self) {
        self.0.bytes(&self.1.bytes);
    }

    /// Answers with an error.
    pub fn error(self, error: Errno) {
        self.0.error(error);
    }
}

/// Reply with names and attributes.
#[derive(Debug)]
pub struct ReplyDirectoryPlus(Answer, Listing);

impl ReplyDirectoryPlus {
    pub(crate) fn new(answer: Answer, max: u32) -> ReplyDirectoryPlus {
        ReplyDirectoryPlus(answer, Listing { bytes: Vec::new(), max: max as usize })
    }

    /// Adds a name with its inode. `next` is the position behind it. Returns `true` if the reply is
    /// full.
    #[must_use]
    pub fn add(&mut self, next: u64, name: &[u8], entry: &Entry) -> bool {
        let FileAttr { ino, mode, .. } = entry.attr;
        self.1.add(entry.encode().as_bytes(), ino, next, mode >> 12, name)
    }

    /// Answers with the names added.
    pub fn ok(self) {
        self.0.bytes(&self.1.bytes);
    }

    /// Answers with an error.
    pub fn error(self, error: Errno) {
        self.0.error(error);
    }
}
