//! A request, and whether it can be: the one place where clients' numbers are checked.

use super::wire::{Errno, REQUEST_BYTES, REQUEST_MAGIC, Reader, flag};
use crate::device::REQUEST_BYTES_MAX;

/// What a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum Command {
    /// Bytes.
    Read = 0,
    /// Take bytes.
    Write = 1,
    /// End the session.
    Disc = 2,
    /// Make durable what was acknowledged.
    Flush = 3,
    /// Forget a range.
    Trim = 4,
    /// Fetch a range into the machine's memory.
    Cache = 5,
    /// Set a range to zero.
    WriteZeroes = 6,
    /// Where a range lies.
    BlockStatus = 7,
}

impl Command {
    fn from_number(n: u16) -> Option<Command> {
        Some(match n {
            0 => Command::Read,
            1 => Command::Write,
            2 => Command::Disc,
            3 => Command::Flush,
            4 => Command::Trim,
            5 => Command::Cache,
            6 => Command::WriteZeroes,
            7 => Command::BlockStatus,
            // 8 is RESIZE, an extension that is not offered.
            _ => return None,
        })
    }

    /// Flags that it may carry. FUA is allowed with all: the protocol says so.
    fn flags(self, structured: bool) -> u16 {
        let own = match self {
            Command::Read if structured => flag::DF,
            Command::WriteZeroes => flag::NO_HOLE | flag::FAST_ZERO,
            Command::BlockStatus => flag::REQ_ONE,
            _ => 0,
        };
        own | flag::FUA
    }
}

/// The head of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Flags.
    pub flags: u16,
    /// The number of the command, known or not.
    pub number: u16,
    /// What the reply is to be called.
    pub cookie: u64,
    /// First byte.
    pub at: u64,
    /// Bytes.
    pub len: u32,
}

/// What a request is measured by.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The export's size, in bytes.
    pub bytes: u64,
    /// Replies may come in chunks.
    pub structured: bool,
    /// Contexts were chosen.
    pub contexts: bool,
}

/// Why a request cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wrong(pub Errno, pub &'static str);

impl Request {
    /// From the wire; `None` when it does not begin as a request has to.
    pub fn decode(head: &[u8; REQUEST_BYTES]) -> Option<Request> {
        let mut r = Reader(head);
        if r.u32()? != REQUEST_MAGIC {
            return None;
        }
        Some(Request { flags: r.u16()?, number: r.u16()?, cookie: r.u64()?, at: r.u64()?, len: r.u32()? })
    }

    /// Bytes that follow the head.
    pub fn payload(&self) -> usize {
        if self.number == Command::Write as u16 { self.len as usize } else { 0 }
    }

    /// Whether it carries a flag.
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// The command, if all its numbers can be.
    ///
    /// # Errors
    /// What the protocol says for each way in which they cannot.
    pub fn validate(&self, limits: &Limits) -> Result<Command, Wrong> {
        let Some(command) = Command::from_number(self.number) else {
            return Err(Wrong(Errno::Inval, "this command is not known"));
        };
        if command == Command::Disc {
            return Ok(command);
        }
        if self.flags & !command.flags(limits.structured) != 0 {
            return Err(Wrong(Errno::Inval, "a flag does not belong to this command"));
        }
        if command == Command::Flush {
            return if self.at == 0 && self.len == 0 {
                Ok(command)
            } else {
                Err(Wrong(Errno::Inval, "a flush has neither offset nor length"))
            };
        }
        if self.len == 0 {
            return Err(Wrong(Errno::Inval, "the length is zero"));
        }
        self.range(command, limits)?;
        if command == Command::BlockStatus && !limits.contexts {
            return Err(Wrong(Errno::Inval, "no metadata context was chosen"));
        }
        Ok(command)
    }

    fn range(&self, command: Command, limits: &Limits) -> Result<(), Wrong> {
        let inside = self.at.checked_add(u64::from(self.len)).is_some_and(|end| end <= limits.bytes);
        if !inside {
            return Err(match command {
                Command::Write | Command::WriteZeroes => {
                    Wrong(Errno::NoSpc, "the write ends past the end of the export")
                }
                _ => Wrong(Errno::Inval, "the range ends past the end of the export"),
            });
        }
        let too_long = self.len > REQUEST_BYTES_MAX;
        match command {
            Command::Read if too_long && self.has(flag::DF) => {
                Err(Wrong(Errno::Overflow, "the read is longer than one chunk may be, 32 MiB"))
            }
            Command::Read | Command::Write if too_long => {
                Err(Wrong(Errno::Inval, "the request is longer than 32 MiB"))
            }
            _ => Ok(()),
        }
    }
}
