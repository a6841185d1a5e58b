//! Serves FUSE file systems, with requests through the device `/dev/fuse` or through io_uring.
//!
//! A [`Server`] has a function for each request, which gets a reply of the type that belongs to it.
//! [`Connection`] mounts, and calls the server in several threads. `protocol` has the structures of
//! linux/fuse.h, `dispatch` calls the function for a request, and `transport` has the two ways of
//! requests and replies. fuser mounts and answers the first request; its types of numbers and flags
//! are used as they are.
//!
//! docs/design/fuse.md describes the rings.

mod answer;
mod backing;
mod connection;
mod dispatch;
mod kernel;
mod mountpoint;
mod protocol;
mod reply;
mod request;
mod server;
mod transport;

pub use backing::BackingId;
pub use connection::{Connection, ConnectionError, ConnectionOptions, Rings, request_capabilities};
pub use fuser::{
    Config, Errno, FileHandle, FileType, FopenFlags, INodeNo, InitFlags, KernelConfig, LockOwner,
    MountOption, OpenAccMode, OpenFlags, PollEvents, RenameFlags, SessionACL, WriteFlags,
};
pub use kernel::{Kernel, PollToken};
pub use mountpoint::Mountpoint;
pub use protocol::{Entry, FileAttr, Timestamp};
pub use reply::{
    Opened, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyIoctl, ReplyLseek, ReplyOpen, ReplyPoll, ReplyRead, ReplyStatfs, ReplyWrite, ReplyXattr, Usage,
};
pub use request::Request;
pub use server::{CopyRange, Fallocate, NewTime, Read, Server, SetAttr, Write};
pub use transport::ring::on_all_processors;
