//! Pages of the kernel's cache that a direct write makes old.
//!
//! The kernel drops the pages of a direct write's range before it sends the write. A reader can fill such a page again
//! with the old bytes while the write is under way. So the pages must go once more behind the write; the kernel does
//! that for a write that it waits for, and not for one that ends asynchronously (FUSE_ASYNC_DIO). Here it is told to
//! drop them (FUSE_NOTIFY_INVAL_INODE), for both, after the write took effect and before it is answered.
//!
//! Every order is right. A page that is filled is locked in the cache from before its READ is sent until it has its
//! bytes. If the READ is executed before the write, the page is in the cache before the notice: dropping it waits for
//! its lock. If it is executed after the write, it has the new bytes. The same holds for a buffered write, which puts
//! its bytes into the cache before it is sent. Inodes of which neither was ever executed have no pages that could be
//! old, so no notice is sent for them; READ and WRITE mark the inode before they are executed, and a direct write looks
//! for the mark after it was.
//!
//! No order waits for itself. A notice waits for locks of pages, which are held by requests that wait for an answer:
//! READ, and WRITE from the page cache. So a thread of its own sends notices, and the threads that answer requests
//! never wait for it. A direct write, whose answer does wait for the notice, holds no lock of a page. The kernel marks
//! it by the owner of its locks (FUSE_WRITE_LOCKOWNER), which writes from the page cache do not have. The flag
//! O_DIRECT of the open file says nothing: fcntl(2) changes it while a write is under way.

use frit_fs::{Files, Ino};
use fuser::{INodeNo, LockOwner, Notifier, ReplyWrite, WriteFlags};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

/// A direct write that took effect, to be answered when the kernel has dropped the pages of its range.
struct Written {
    ino: Ino,
    at: u64,
    bytes: usize,
    reply: ReplyWrite,
}

/// Which inodes have pages in the kernel's cache, and the thread that has pages dropped.
#[derive(Debug)]
pub(super) struct Pages {
    /// Inodes that had pages in the cache since it was mounted: a bit each.
    filled: Box<[AtomicU64]>,
    written: Sender<Written>,
}

impl Pages {
    /// Starts the thread, which ends with this value.
    ///
    /// # Errors
    /// No thread.
    pub(super) fn start<F: Files>(files: &F, kernel: Arc<OnceLock<Notifier>>) -> io::Result<Pages> {
        let (written, next) = channel();
        std::thread::Builder::new().name("pages".into()).spawn(move || drop_pages(&next, &kernel))?;
        let inodes = files.usage().map_or(0, |usage| usage.inodes);
        let filled = (0..=inodes / 64).map(|_| AtomicU64::new(0)).collect();
        Ok(Pages { filled, written })
    }

    /// Notes that a request fills pages of an inode, unless it is a direct one: to be called before it is executed.
    pub(super) fn fill(&self, ino: Ino, owner: Option<LockOwner>) {
        let word = self.filled.get((ino.0 / 64) as usize);
        let bit = 1 << (ino.0 % 64);
        if let (Some(word), None) = (word, owner)
            && word.load(Ordering::SeqCst) & bit == 0
        {
            word.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Returns `true` if an inode may have pages in the cache. One that the table has no place for may.
    fn may_have(&self, ino: Ino) -> bool {
        let word = self.filled.get((ino.0 / 64) as usize);
        word.is_none_or(|word| word.load(Ordering::SeqCst) >> (ino.0 % 64) & 1 == 1)
    }

    /// Answers a write that took effect.
    pub(super) fn answer(&self, reply: ReplyWrite, ino: Ino, at: u64, bytes: usize, flags: WriteFlags) {
        let cached = flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let direct = flags.contains(WriteFlags::FUSE_WRITE_LOCKOWNER) && !cached;
        if bytes > 0 && direct && self.may_have(ino) {
            // Without the thread, which ends with this value only, the reply is an error.
            let _ = self.written.send(Written { ino, at, bytes, reply });
        } else {
            // Never more than a request can ask for, which is a u32.
            reply.written(bytes as u32);
        }
    }
}

/// Has pages dropped and answers, until there are no more requests.
fn drop_pages(next: &Receiver<Written>, kernel: &OnceLock<Notifier>) {
    while let Ok(Written { ino, at, bytes, reply }) = next.recv() {
        if let Some(kernel) = kernel.get() {
            // The kernel may well know nothing of the inode any more, which is an error that means nothing.
            let _ = kernel.inval_inode(INodeNo(ino.0), at as i64, bytes as i64);
        }
        reply.written(bytes as u32);
    }
}
