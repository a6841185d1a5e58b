//! Invalidation of pages in the kernel's cache that are stale after a direct write.
//!
//! The kernel drops the pages of a direct write's range before it sends the write. A reader can
//! fill such a page again with the old bytes while the write is in progress. So the pages must be
//! dropped once more after the write. The kernel does so for a synchronous write, but not for one
//! that ends asynchronously (FUSE_ASYNC_DIO). This module tells it to drop them
//! (FUSE_NOTIFY_INVAL_INODE), for both kinds, after the write took effect and before it is
//! answered.
//!
//! Every order of requests is correct. A page that is filled is locked in the cache from before its
//! READ is sent until it has its bytes. If the READ is executed before the write, the page is in
//! the cache before the notification, and dropping it waits for its lock. If it is executed after
//! the write, it has the new bytes. The same holds for a buffered write, which puts its bytes into
//! the cache before it is sent. An inode for which neither request was ever executed has no pages
//! that could be stale, so no notification is sent for it: READ and WRITE mark the inode before
//! they are executed, and a direct write checks the mark after it was executed.
//!
//! No order deadlocks. A notification waits for page locks, which are held by requests that wait
//! for an answer: READ, and WRITE from the page cache. So notifications are sent by a separate
//! thread, and the threads that answer requests never wait for it. A direct write, whose answer
//! waits for the notification, holds no page lock. The kernel marks it by its lock owner
//! (FUSE_WRITE_LOCKOWNER), which writes from the page cache do not have. The flag O_DIRECT of the
//! open file is no reliable mark, since fcntl(2) can change it during a write.

use frit_fs::{FileSystem, Ino};
use frit_fuse::{Kernel, LockOwner, ReplyWrite, WriteFlags};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

/// A direct write that took effect. It is answered after the kernel has dropped the pages of its
/// range.
struct CompletedWrite {
    ino: Ino,
    at: u64,
    bytes: usize,
    reply: ReplyWrite,
}

/// The inodes with pages in the kernel's cache, and the thread that invalidates pages.
#[derive(Debug)]
pub(super) struct PageInvalidator {
    /// Bitmap of the inodes that have had pages in the cache since mounting.
    filled: Box<[AtomicU64]>,
    written: Sender<CompletedWrite>,
}

impl PageInvalidator {
    /// Starts the thread, which ends when this value is dropped.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start<F: FileSystem>(
        files: &F,
        kernel: Arc<OnceLock<Kernel>>,
    ) -> io::Result<PageInvalidator> {
        let (written, next) = channel();
        std::thread::Builder::new().name("pages".into()).spawn(move || drop_pages(&next, &kernel))?;
        let inodes = files.usage().map_or(0, |usage| usage.inodes);
        let filled = (0..=inodes / 64).map(|_| AtomicU64::new(0)).collect();
        Ok(PageInvalidator { filled, written })
    }

    /// Marks an inode whose pages a request fills, unless the request is direct. Must be called
    /// before the request is executed.
    pub(super) fn fill(&self, ino: Ino, owner: Option<LockOwner>) {
        let word = self.filled.get((ino.0 / 64) as usize);
        let bit = 1 << (ino.0 % 64);
        if let (Some(word), None) = (word, owner)
            && word.load(Ordering::SeqCst) & bit == 0
        {
            word.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Returns `true` if an inode may have pages in the cache, or is outside the bitmap.
    fn may_have(&self, ino: Ino) -> bool {
        let word = self.filled.get((ino.0 / 64) as usize);
        word.is_none_or(|word| word.load(Ordering::SeqCst) >> (ino.0 % 64) & 1 == 1)
    }

    /// Answers a write that took effect.
    pub(super) fn answer(&self, reply: ReplyWrite, ino: Ino, at: u64, bytes: usize, flags: WriteFlags) {
        let cached = flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let direct = flags.contains(WriteFlags::FUSE_WRITE_LOCKOWNER) && !cached;
        if bytes > 0 && direct && self.may_have(ino) {
            // The thread lives as long as this value. If it is gone, the reply is dropped, which
            // answers with an error.
            let _ = self.written.send(CompletedWrite { ino, at, bytes, reply });
        } else {
            // The length never exceeds that of the request, which is a u32.
            reply.written(bytes as u32);
        }
    }
}

/// Invalidates pages and answers writes, until the channel is closed.
fn drop_pages(next: &Receiver<CompletedWrite>, kernel: &OnceLock<Kernel>) {
    while let Ok(CompletedWrite { ino, at, bytes, reply }) = next.recv() {
        if let Some(kernel) = kernel.get() {
            // The kernel may have forgotten the inode already. Its error then has no consequence.
            let _ = kernel.inval_inode(ino.0, at as i64, bytes as i64);
        }
        reply.written(bytes as u32);
    }
}
