//! Requests through io_uring (Linux 6.14; Documentation/filesystems/fuse/fuse-io-uring.rst).
//!
//! The kernel has a queue of requests for each processor, and puts a request into the queue of the
//! processor on which the program runs. Each queue has *entries*: memory of this process into which
//! the kernel writes one request, and from which it takes the reply. A reply and the wait for the
//! next request are one system call. The threads of a queue are bound to its processor, so that the
//! kernel changes from the program to the thread and back without waking another processor.
//!
//! A reply may be sent later, and by another thread ([`Mailbox`]). Meanwhile, the thread gives the
//! kernel another entry, so that requests that the late reply waits for are served.
//! FORGET and INTERRUPT still come from the device.

mod affinity;
mod entry;
mod mailbox;
mod processors;
mod worker;

pub(crate) use affinity::ProcessorSet;
pub use affinity::on_all_processors;
pub(crate) use entry::Ticket;
pub(crate) use processors::Processors;
pub(crate) use worker::{Seats, check_available, start};
