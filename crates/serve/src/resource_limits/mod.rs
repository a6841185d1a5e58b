//! Limits on the resources of clients: connections, memory and time.
//!
//! NBD, the control socket and the metrics port share these limits, so that a silent, slow or
//! malicious client does not affect the others. docs/guide/serve.md describes them under "Limits".

mod budget;
mod buffer;
mod connection_slots;
mod deadlines;
mod tcp_peer;

pub(crate) use budget::{Budget, Grant, Share};
pub(crate) use buffer::MappedBuffer;
pub(crate) use connection_slots::{ConnectionSlot, ConnectionSlots, Disconnect, Peer, SlotLimits};
pub(crate) use deadlines::{BYTES_PER_SECOND_MIN, ReadTimeout, is_timeout, read_before, write_before};
pub(crate) use tcp_peer::tcp_peer;
