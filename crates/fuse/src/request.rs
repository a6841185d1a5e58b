//! Whoever sent a request.

use crate::protocol::abi::InHeader;

/// Header of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request(InHeader);

impl Request {
    pub(crate) fn new(header: InHeader) -> Request {
        Request(header)
    }

    /// Returns the number of the request among those that wait for a reply.
    #[must_use]
    pub fn unique(&self) -> u64 {
        self.0.unique
    }

    /// Returns the user of the program.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.0.uid
    }

    /// Returns the group of the program.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.0.gid
    }

    /// Returns the thread that sent the request, or 0 if it is in another PID namespace.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    pub(crate) fn opcode(&self) -> u32 {
        self.0.opcode
    }

    pub(crate) fn node(&self) -> fuser::INodeNo {
        fuser::INodeNo(self.0.nodeid)
    }
}
