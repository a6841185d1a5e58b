//! Ways of requests from the kernel and of replies back: the device, and rings of io_uring.

pub(crate) mod device;
pub(crate) mod ring;

pub(crate) use device::DeviceFd;
pub(crate) use ring::Ticket;

/// Maximum number of bytes that a request writes or reads: the maximum that the kernel allows
/// without further settings (fs.fuse.max_pages_limit is 256).
pub(crate) const REQUEST_BYTES_MAX: u32 = 1 << 20;
