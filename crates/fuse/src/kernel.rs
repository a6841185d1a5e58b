//! Notifications to the kernel, which no request precedes.

use crate::backing::BackingId;
use crate::protocol::abi::{NOTIFY_RETRIEVE, NotifyRetrieveOut, OutHeader};
use fuser::{INodeNo, Notifier, PollHandle};
use std::ffi::OsStr;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zerocopy::IntoBytes;

/// The kernel's side of a connection.
#[derive(Clone, Debug)]
pub struct Kernel {
    device: Arc<OwnedFd>,
    notifier: Notifier,
}

impl Kernel {
    pub(crate) fn new(device: Arc<OwnedFd>, notifier: Notifier) -> Kernel {
        Kernel { device, notifier }
    }

    /// Makes the kernel drop the pages of a range of an inode, and its attributes. With a negative
    /// offset, only the attributes are dropped. This waits for locks of pages, so a thread that
    /// answers requests must not call it.
    ///
    /// # Errors
    /// The kernel refused the notification. It is no error that it does not know the inode.
    pub fn inval_inode(&self, ino: u64, at: i64, len: i64) -> io::Result<()> {
        self.notifier.inval_inode(INodeNo(ino), at, len)
    }

    /// Makes the kernel forget a name. A thread that answers requests must not call it.
    ///
    /// # Errors
    /// The kernel refused the notification. It is no error that it does not know the name.
    pub fn inval_entry(&self, directory: u64, name: &OsStr) -> io::Result<()> {
        self.notifier.inval_entry(INodeNo(directory), name)
    }

    /// Ends a poll(2), which asks again then.
    ///
    /// # Errors
    /// The kernel refused the notification.
    pub fn poll_ready(&self, poll: PollToken) -> io::Result<()> {
        self.notifier.poll(PollHandle(poll.0))
    }

    /// Registers a file that the kernel may read and write itself.
    ///
    /// # Errors
    /// The kernel has no passthrough, or this process lacks the capability for it.
    pub fn open_backing(&self, file: impl AsFd) -> io::Result<BackingId> {
        BackingId::open(&self.device, file.as_fd())
    }
}

/// A poll(2) that waits for a notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PollToken(pub(crate) u64);

/// First number of requests for pages. The kernel counts its own requests from 0, and uses even
/// numbers only, because the lowest bit marks interruptions.
const RETRIEVE_FROM: u64 = 1 << 62;

/// Makes the kernel send a request to the ring of this processor: it asks for no page of a file. The
/// reply to any request makes the kernel look for others that wait, for which there was no entry.
///
/// The kernel refuses inodes that are no files. Only requests for files are answered late.
pub(crate) fn wake_queue(device: impl AsFd, file: INodeNo) {
    static NEXT: AtomicU64 = AtomicU64::new(RETRIEVE_FROM);
    let notify_unique = NEXT.fetch_add(2, Ordering::Relaxed);
    let body = NotifyRetrieveOut { notify_unique, nodeid: file.0, ..NotifyRetrieveOut::default() };
    let len = (size_of::<OutHeader>() + size_of::<NotifyRetrieveOut>()) as u32;
    let header = OutHeader { len, error: NOTIFY_RETRIEVE, unique: 0 };
    // If the kernel has forgotten the inode, nobody waits for the late reply.
    let _ = rustix::io::writev(device, &[IoSlice::new(header.as_bytes()), IoSlice::new(body.as_bytes())]);
}
