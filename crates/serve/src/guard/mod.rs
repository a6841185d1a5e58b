//! Limits on the resources of clients: connections, memory and time.
//!
//! NBD, the control socket and the metrics port share these limits, so that a silent, slow or
//! malicious client does not affect the others. docs/serve.md describes them under "Limits".

mod budget;
mod buffer;
mod places;
mod timed;

pub(crate) use budget::{Budget, Grant};
pub(crate) use buffer::Buffer;
pub(crate) use places::{HangUp, Peer, Place, Places};
pub(crate) use timed::{BYTES_PER_SECOND_MIN, is_timeout, read_before, write_before};
