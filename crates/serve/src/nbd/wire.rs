//! Constants of the NBD protocol, and decoding of its messages.
//!
//! Source: the NBD protocol as its project documents it (NetworkBlockDevice/nbd, doc/proto.md). All
//! numbers on the wire are big-endian.

/// Magic number at the start of the server's greeting.
pub const MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Magic number after `MAGIC` in the greeting, and at the start of each option.
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// Magic number of the reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Magic number of a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Magic number of a simple reply.
pub const SIMPLE_MAGIC: u32 = 0x6744_6698;
/// Magic number of a chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Length of a request without its payload, in bytes.
pub const REQUEST_BYTES: usize = 28;
/// Length of an option without its data, in bytes.
pub const OPTION_BYTES: usize = 16;
/// Maximum length of a string of the protocol, in bytes.
pub const STRING_MAX: usize = 4096;

/// Handshake flags, of server and client.
pub mod handshake {
    /// Options other than `EXPORT_NAME` are supported.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// The 124 zeros after the reply to `EXPORT_NAME` are omitted.
    pub const NO_ZEROES: u16 = 2;
}

/// Transmission flags of an export.
pub mod export {
    /// The transmission flags are valid.
    pub const HAS_FLAGS: u16 = 1;
    /// Writes are refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH is supported.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// FUA is supported.
    pub const SEND_FUA: u16 = 1 << 3;
    /// TRIM is supported.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// `WRITE_ZEROES` is supported.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// DF is supported.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers the acknowledged writes of all connections.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// CACHE is supported.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// `FAST_ZERO` is supported.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Options of the handshake.
pub mod option {
    /// Selects an export; has no error reply.
    pub const EXPORT_NAME: u32 = 1;
    /// Ends the session.
    pub const ABORT: u32 = 2;
    /// Lists the exports.
    pub const LIST: u32 = 3;
    /// Starts TLS.
    pub const STARTTLS: u32 = 5;
    /// Requests information about an export.
    pub const INFO: u32 = 6;
    /// Requests information about an export, and selects it.
    pub const GO: u32 = 7;
    /// Enables structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Lists metadata contexts.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Selects metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of replies to options.
pub mod reply {
    /// Success.
    pub const ACK: u32 = 1;
    /// Name of an export.
    pub const SERVER: u32 = 2;
    /// Information about an export.
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// The option is unknown.
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    /// The option is forbidden by policy.
    pub const ERR_POLICY: u32 = 1 << 31 | 2;
    /// The option data is invalid.
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    /// The export does not exist.
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    /// The server is shutting down.
    pub const ERR_SHUTDOWN: u32 = 1 << 31 | 7;
    /// The option data is too long.
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
}

/// Types of information about an export.
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// Full name.
    pub const NAME: u16 = 1;
    /// Description for human readers.
    pub const DESCRIPTION: u16 = 2;
    /// Minimum, preferred and maximum size of requests.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Command flags of requests.
pub mod flag {
    /// The write must be durable before the reply.
    pub const FUA: u16 = 1;
    /// The zeroed range must stay allocated.
    pub const NO_HOLE: u16 = 1 << 1;
    /// The reply to a read must be a single chunk.
    pub const DF: u16 = 1 << 2;
    /// The reply has only one extent per context.
    pub const REQ_ONE: u16 = 1 << 3;
    /// The request fails unless it is faster than writing zeros.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Types and flags of the chunks of a structured reply.
pub mod chunk {
    /// Flag of the last chunk of a reply.
    pub const DONE: u16 = 1;
    /// Data at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// Extents of a context.
    pub const BLOCK_STATUS: u16 = 5;
    /// An error with a message.
    pub const ERROR: u16 = 1 << 15 | 1;
}

/// Error number of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Errno {
    /// `EPERM`: writes are refused.
    Perm = 1,
    /// `EIO`: a medium failed.
    Io = 5,
    /// `ENOMEM`: not enough memory for a request of this length at present.
    NoMem = 12,
    /// `EINVAL`: the request is invalid.
    Inval = 22,
    /// `ENOSPC`: no space is left, or a write ends past the end.
    NoSpc = 28,
    /// `EOVERFLOW`: longer than the maximum length of a chunk.
    Overflow = 75,
    /// `ENOTSUP`: not faster than writing zeros.
    NotSup = 95,
    /// `ESHUTDOWN`: the server is shutting down.
    Shutdown = 108,
}

/// Decoder of big-endian numbers and strings.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireReader<'a>(pub(super) &'a [u8]);

impl<'a> WireReader<'a> {
    pub(super) fn bytes(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(n)?;
        self.0 = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Decodes a string, which follows its length.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let n = self.u32()? as usize;
        if n > STRING_MAX {
            return None;
        }
        self.bytes(n)
    }
}
