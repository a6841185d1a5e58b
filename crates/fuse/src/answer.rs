//! The way of one reply back to the kernel.

use crate::protocol::abi::OutHeader;
use crate::transport::{DeviceFd, Ticket};
use fuser::Errno;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::io::IoSlice;
use zerocopy::IntoBytes;

/// Bytes of a reply without the header. The largest fixed structure, of CREATE, has 144 bytes.
pub(crate) type ReplyBytes = SmallVec<[u8; 144]>;

thread_local! {
    /// Buffer for contents of replies that are sent through the device.
    static CONTENTS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Transport that a request came from.
#[derive(Debug)]
pub(crate) enum Route {
    /// A descriptor of the device. A reply has to take the one of its request.
    Device(DeviceFd),
    /// An entry of a ring.
    Ring(Ticket),
}

/// A reply that was not sent yet. Dropping it answers with EIO, so that no program waits forever.
#[derive(Debug)]
pub(crate) struct Answer {
    unique: u64,
    route: Option<Route>,
}

impl Answer {
    pub(crate) fn new(unique: u64, route: Route) -> Answer {
        Answer { unique, route: Some(route) }
    }

    /// Answers with an error.
    pub(crate) fn error(mut self, error: Errno) {
        self.send(-error.code(), &[]);
    }

    /// Answers with a structure.
    pub(crate) fn structure(mut self, structure: &(impl IntoBytes + zerocopy::Immutable)) {
        self.send(0, structure.as_bytes());
    }

    /// Answers with bytes.
    pub(crate) fn bytes(mut self, bytes: &[u8]) {
        self.send(0, bytes);
    }

    /// Answers a request that has no contents with what `fill` puts into a buffer of `len` bytes. It
    /// returns the number of bytes, or `None` to answer later.
    pub(crate) fn fill(
        mut self,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<Option<usize>, Errno>,
    ) -> Option<Answer> {
        match self.route.take()? {
            Route::Ring(ticket) => {
                let ticket = ticket.fill(self.unique, len, fill)?;
                Some(Answer::new(self.unique, Route::Ring(ticket)))
            }
            Route::Device(device) => CONTENTS.with_borrow_mut(|buffer| {
                if buffer.len() < len {
                    buffer.resize(len, 0);
                }
                match fill(&mut buffer[..len]) {
                    Ok(Some(bytes)) => send(&device, self.unique, 0, &buffer[..bytes.min(len)]),
                    Ok(None) => return Some(Answer::new(self.unique, Route::Device(device))),
                    Err(error) => send(&device, self.unique, -error.code(), &[]),
                }
                None
            }),
        }
    }

    /// Sends nothing: the request has no reply. An entry of a ring goes back to the kernel all the
    /// same.
    pub(crate) fn none(mut self) {
        if let Some(Route::Ring(ticket)) = self.route.take() {
            ticket.complete(self.unique, 0, ReplyBytes::new());
        }
    }

    fn send(&mut self, error: i32, bytes: &[u8]) {
        match self.route.take() {
            Some(Route::Ring(ticket)) => ticket.complete(self.unique, error, ReplyBytes::from_slice(bytes)),
            Some(Route::Device(device)) => send(&device, self.unique, error, bytes),
            None => {}
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.send(-Errno::EIO.code(), &[]);
    }
}

/// Writes a reply to the device. The only errors are that the request was interrupted, or that the
/// file system is unmounted: nobody waits for the reply then.
fn send(device: &DeviceFd, unique: u64, error: i32, bytes: &[u8]) {
    let header = OutHeader { len: (size_of::<OutHeader>() + bytes.len()) as u32, error, unique };
    let parts = [IoSlice::new(header.as_bytes()), IoSlice::new(bytes)];
    let parts = if bytes.is_empty() { &parts[..1] } else { &parts[..] };
    let _ = rustix::io::writev(device, parts);
}
