//! The protocol's numbers, and messages as bytes.
//!
//! Source: the NBD protocol as its project documents it (NetworkBlockDevice/nbd, doc/proto.md). All
//! numbers on the wire are big-endian.

/// The first eight bytes of a server.
pub const MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// The second eight bytes of a server, and the first eight of each option.
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// Begins the reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Begins a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Begins a simple reply.
pub const SIMPLE_MAGIC: u32 = 0x6744_6698;
/// Begins a chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Bytes of a request without its payload.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of an option without its data.
pub const OPTION_BYTES: usize = 16;
/// The longest string of the protocol, in bytes.
pub const STRING_MAX: usize = 4096;

/// Handshake flags of both sides.
pub mod handshake {
    /// Options beyond the export's name.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// No 124 zeros after an export chosen by name.
    pub const NO_ZEROES: u16 = 2;
}

/// What a server announces of an export.
pub mod export {
    /// The other flags mean something.
    pub const HAS_FLAGS: u16 = 1;
    /// Writes are refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// FLUSH is there.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// FUA is there.
    pub const SEND_FUA: u16 = 1 << 3;
    /// TRIM is there.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// `WRITE_ZEROES` is there.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// DF is understood.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers what others have written.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// CACHE is there.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// `FAST_ZERO` is understood.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Options of the handshake.
pub mod option {
    /// Take an export, without a chance of an error.
    pub const EXPORT_NAME: u32 = 1;
    /// End the session.
    pub const ABORT: u32 = 2;
    /// List exports.
    pub const LIST: u32 = 3;
    /// Begin TLS.
    pub const STARTTLS: u32 = 5;
    /// Describe an export.
    pub const INFO: u32 = 6;
    /// Describe an export and take it.
    pub const GO: u32 = 7;
    /// Replies in chunks.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// List metadata contexts.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Kinds of replies to options.
pub mod reply {
    /// Done.
    pub const ACK: u32 = 1;
    /// An export's name.
    pub const SERVER: u32 = 2;
    /// Something about an export.
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// The option is not known.
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    /// The option is known and not allowed.
    pub const ERR_POLICY: u32 = 1 << 31 | 2;
    /// The option's data is wrong.
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    /// The server is stopping.
    pub const ERR_SHUTDOWN: u32 = 1 << 31 | 7;
    /// The option's data is too long.
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
}

/// What may be told about an export.
pub mod info {
    /// Size and flags.
    pub const EXPORT: u16 = 0;
    /// Its full name.
    pub const NAME: u16 = 1;
    /// A text for people.
    pub const DESCRIPTION: u16 = 2;
    /// Least, preferred and largest size of requests.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Flags of requests.
pub mod flag {
    /// Durable before the reply.
    pub const FUA: u16 = 1;
    /// Zeros stay allocated.
    pub const NO_HOLE: u16 = 1 << 1;
    /// One chunk of data.
    pub const DF: u16 = 1 << 2;
    /// One extent a context.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Zero faster than by writing, or not at all.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Kinds of chunks of a structured reply.
pub mod chunk {
    /// The last chunk of its reply.
    pub const DONE: u16 = 1;
    /// Bytes at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// Extents of a context.
    pub const BLOCK_STATUS: u16 = 5;
    /// An error, with words.
    pub const ERROR: u16 = 1 << 15 | 1;
}

/// An error as clients see it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Errno {
    /// `EPERM`: writes are refused.
    Perm = 1,
    /// `EIO`: a medium failed.
    Io = 5,
    /// `ENOMEM`: no memory for so long a request now.
    NoMem = 12,
    /// `EINVAL`: the request cannot be.
    Inval = 22,
    /// `ENOSPC`: no room, or a write past the end.
    NoSpc = 28,
    /// `EOVERFLOW`: more than may come in one chunk.
    Overflow = 75,
    /// `ENOTSUP`: not faster than writing zeros.
    NotSup = 95,
    /// `ESHUTDOWN`: the server is stopping.
    Shutdown = 108,
}

/// Reads big-endian numbers and strings from an option's data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
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

    /// A string after its length.
    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let n = self.u32()? as usize;
        if n > STRING_MAX {
            return None;
        }
        self.bytes(n)
    }
}
