//! Requests that are read from the device, one for each read(2).

use super::REQUEST_BYTES_MAX;
use crate::answer::{Answer, Route};
use crate::dispatch::dispatch;
use crate::protocol::Arguments;
use crate::protocol::abi::InHeader;
use crate::request::Request;
use crate::server::Server;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use zerocopy::FromBytes;

/// Room for headers and names, besides the contents of a write.
const HEADER_BYTES_MAX: usize = 4096;

/// A descriptor of a connection.
#[derive(Clone, Debug)]
pub(crate) struct DeviceFd(pub(crate) Arc<OwnedFd>);

impl AsFd for DeviceFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Serves requests of the device until the file system is unmounted.
///
/// # Errors
/// The connection failed.
pub(crate) fn serve(server: &impl Server, device: &DeviceFd) -> io::Result<()> {
    let mut buffer = vec![0; REQUEST_BYTES_MAX as usize + HEADER_BYTES_MAX];
    loop {
        let len = match rustix::io::read(device, &mut buffer) {
            Ok(len) => len,
            // A request was interrupted before it was read, or this thread was.
            Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => continue,
            // It is unmounted, or the connection was aborted.
            Err(Errno::NODEV | Errno::CONNABORTED) => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        let Ok((header, arguments)) = InHeader::read_from_prefix(&buffer[..len]) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a request of FUSE has no header"));
        };
        let request = Request::new(header);
        let answer = Answer::new(header.unique, Route::Device(device.clone()));
        dispatch(server, &request, Arguments::contiguous(header.opcode, arguments), answer);
    }
}
