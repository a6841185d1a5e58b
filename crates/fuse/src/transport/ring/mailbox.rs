//! Replies on their way to the thread that owns their entry.

use crate::answer::ReplyBytes;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::thread::ThreadId;

/// Contents of a reply.
#[derive(Debug)]
pub(super) enum Contents {
    /// To be copied to the entry.
    Bytes(ReplyBytes),
    /// In the entry already, so many bytes.
    Filled(usize),
}

/// A reply for an entry.
#[derive(Debug)]
pub(super) struct Completion {
    /// Number of the entry within its thread.
    pub(super) entry: usize,
    pub(super) unique: u64,
    pub(super) error: i32,
    pub(super) contents: Contents,
}

/// Replies for the entries of one thread. Only that thread may give entries back to the kernel,
/// because the kernel copies requests in the context of the thread that submitted the entry.
#[derive(Debug)]
pub(super) struct Mailbox {
    replies: Mutex<Vec<Completion>>,
    owner: ThreadId,
    /// Wakes the owner.
    bell: OwnedFd,
}

impl Mailbox {
    /// Creates the mailbox of the calling thread.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub(super) fn new() -> io::Result<Mailbox> {
        // One completion of the poll may stand for several replies, or for none that is left.
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let owner = std::thread::current().id();
        Ok(Mailbox { replies: Mutex::default(), owner, bell })
    }

    /// Adds a reply. The owner takes it when the function of the server has returned, or is woken.
    pub(super) fn put(&self, completion: Completion) {
        self.replies.lock().push(completion);
        if self.owner != std::thread::current().id() {
            // The counter of an eventfd is never full here.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }

    /// Takes a reply, the newest first.
    pub(super) fn take(&self) -> Option<Completion> {
        self.replies.lock().pop()
    }

    pub(super) fn bell(&self) -> RawFd {
        self.bell.as_raw_fd()
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
