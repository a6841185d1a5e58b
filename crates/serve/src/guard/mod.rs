//! Limits on what clients of any server here may take: places, memory and time.
//!
//! NBD, the control socket and the metrics port share these rules, so that a client that is silent,
//! slow or malicious costs the others nothing. docs/serve.md describes them under "Limits".

mod budget;
mod buffer;
mod places;
mod timed;

pub(crate) use budget::{Budget, Grant};
pub(crate) use buffer::Buffer;
pub(crate) use places::{HangUp, Peer, Place, Places};
pub(crate) use timed::{BYTES_PER_SECOND_MIN, is_timeout, read_before, write_before};
