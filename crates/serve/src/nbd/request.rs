//! Requests and their validation. All numbers sent by clients are checked here.

use super::wire::{Errno, REQUEST_BYTES, REQUEST_MAGIC, WireReader, flag};
use crate::device::REQUEST_BYTES_MAX;

/// Command of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum NbdCommand {
    /// Reads data.
    Read = 0,
    /// Writes data.
    Write = 1,
    /// Ends the session.
    Disc = 2,
    /// Makes all acknowledged writes durable.
    Flush = 3,
    /// Discards a range.
    Trim = 4,
    /// Loads a range into the host's memory.
    Cache = 5,
    /// Sets a range to zero.
    WriteZeroes = 6,
    /// Queries the extents of a range.
    BlockStatus = 7,
}

impl NbdCommand {
    fn from_number(n: u16) -> Option<NbdCommand> {
        Some(match n {
            0 => NbdCommand::Read,
            1 => NbdCommand::Write,
            2 => NbdCommand::Disc,
            3 => NbdCommand::Flush,
            4 => NbdCommand::Trim,
            5 => NbdCommand::Cache,
            6 => NbdCommand::WriteZeroes,
            7 => NbdCommand::BlockStatus,
            // Number 8 is RESIZE, an extension that this server does not support.
            _ => return None,
        })
    }

    /// Returns the flags allowed for this command. The protocol allows FUA for all commands.
    fn flags(self, structured: bool) -> u16 {
        let command_flags = match self {
            NbdCommand::Read if structured => flag::DF,
            NbdCommand::WriteZeroes => flag::NO_HOLE | flag::FAST_ZERO,
            NbdCommand::BlockStatus => flag::REQ_ONE,
            _ => 0,
        };
        command_flags | flag::FUA
    }
}

/// Header of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NbdRequest {
    /// Command flags.
    pub flags: u16,
    /// Number of the command, which may be unknown.
    pub number: u16,
    /// Identifier that the reply repeats.
    pub cookie: u64,
    /// Address of the first byte.
    pub at: u64,
    /// Length in bytes.
    pub len: u32,
}

/// Limits used to validate requests.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Size of the export in bytes.
    pub bytes: u64,
    /// Structured replies were negotiated.
    pub structured: bool,
    /// Metadata contexts were selected.
    pub contexts: bool,
}

/// Error number and message of an invalid request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidRequest(pub Errno, pub &'static str);

impl NbdRequest {
    /// Decodes a request. Returns `None` if the magic number is wrong.
    pub fn decode(head: &[u8; REQUEST_BYTES]) -> Option<NbdRequest> {
        let mut r = WireReader(head);
        if r.u32()? != REQUEST_MAGIC {
            return None;
        }
        Some(NbdRequest { flags: r.u16()?, number: r.u16()?, cookie: r.u64()?, at: r.u64()?, len: r.u32()? })
    }

    /// Returns the number of payload bytes after the header.
    pub fn payload(&self) -> usize {
        if self.number == NbdCommand::Write as u16 { self.len as usize } else { 0 }
    }

    /// Returns `true` if the request has a flag.
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Validates the request and returns its command.
    ///
    /// # Errors
    /// The error that the protocol specifies for each kind of invalid request.
    pub fn validate(&self, limits: &Limits) -> Result<NbdCommand, InvalidRequest> {
        let Some(command) = NbdCommand::from_number(self.number) else {
            return Err(InvalidRequest(Errno::Inval, "this command is not known"));
        };
        if command == NbdCommand::Disc {
            return Ok(command);
        }
        if self.flags & !command.flags(limits.structured) != 0 {
            return Err(InvalidRequest(Errno::Inval, "a flag does not belong to this command"));
        }
        if command == NbdCommand::Flush {
            return if self.at == 0 && self.len == 0 {
                Ok(command)
            } else {
                Err(InvalidRequest(Errno::Inval, "a flush has neither offset nor length"))
            };
        }
        if self.len == 0 {
            return Err(InvalidRequest(Errno::Inval, "the length is zero"));
        }
        self.range(command, limits)?;
        if command == NbdCommand::BlockStatus && !limits.contexts {
            return Err(InvalidRequest(Errno::Inval, "no metadata context was chosen"));
        }
        Ok(command)
    }

    fn range(&self, command: NbdCommand, limits: &Limits) -> Result<(), InvalidRequest> {
        let inside = self.at.checked_add(u64::from(self.len)).is_some_and(|end| end <= limits.bytes);
        if !inside {
            return Err(match command {
                NbdCommand::Write | NbdCommand::WriteZeroes => {
                    InvalidRequest(Errno::NoSpc, "the write ends past the end of the export")
                }
                _ => InvalidRequest(Errno::Inval, "the range ends past the end of the export"),
            });
        }
        let too_long = self.len > REQUEST_BYTES_MAX;
        match command {
            NbdCommand::Read if too_long && self.has(flag::DF) => {
                Err(InvalidRequest(Errno::Overflow, "the read is longer than one chunk may be, 32 MiB"))
            }
            NbdCommand::Read | NbdCommand::Write if too_long => {
                Err(InvalidRequest(Errno::Inval, "the request is longer than 32 MiB"))
            }
            _ => Ok(()),
        }
    }
}
