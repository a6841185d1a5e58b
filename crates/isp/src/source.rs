//! Data that the engine reads and writes, and the names by which instructions refer to it.

use crate::engine::Ticket;
use crate::instructions::Instruction;
use std::path::{Component, PathBuf};
use std::sync::Arc;

/// Error of a read or write of data.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);

/// Bytes that the engine reads: the contents of a file, or extents of a volume.
pub trait Source: Send + Sync {
    /// Size in bytes.
    fn len(&self) -> u64;

    /// Returns `true` if there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `each` with consecutive pieces that together are the bytes `at..at + len`. Holes are
    /// zeros. A call sees one state of these bytes, and two calls may see different ones.
    ///
    /// # Errors
    /// The bytes cannot be read, or are not all below the size.
    fn read(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError>;

    /// Number that differs after each change of bytes or size.
    fn version(&self) -> u64;
}

/// Place where `copy` writes bytes.
pub trait Destination: Send + Sync {
    /// Writes `data` at the position `at`.
    ///
    /// # Errors
    /// The bytes cannot be written.
    fn write(&self, at: u64, data: &[u8]) -> Result<(), SourceError>;

    /// Largest size of the file in bytes. A copy that would exceed it is not valid.
    fn bytes_max(&self) -> u64 {
        i64::MAX as u64
    }
}

impl Source for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        let piece = usize::try_from(at).ok().and_then(|at| self.get(at..at.checked_add(len)?));
        each(piece.ok_or_else(|| SourceError(format!("bytes {at}+{len} are behind the end")))?);
        Ok(())
    }

    fn version(&self) -> u64 {
        0
    }
}

/// File that an instruction refers to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Path below the directory of the command file, without `..`.
    Name(PathBuf),
    /// Inode number.
    Inode(u64),
    /// Extents of a volume.
    Extents(Box<Extents>),
}

/// Extents of a volume. The data are their bytes, one extent after the other.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Extents {
    /// Name space that the addresses belong to; `None`: they are those of the volume.
    pub namespace: Option<String>,
    /// First byte and length of each extent; `None`: one extent with all bytes.
    pub list: Option<Vec<(u64, u64)>>,
}

impl Target {
    /// Creates a target from a path below the directory of the command file.
    ///
    /// # Errors
    /// A message for the user if the path is empty, absolute, has `..` or a zero byte, or ends as that of a
    /// directory.
    pub fn name(path: impl Into<PathBuf>) -> Result<Self, String> {
        let path = path.into();
        let below = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let normal = path.components().any(|part| matches!(part, Component::Normal(_)));
        let bytes = path.as_os_str().as_encoded_bytes();
        if bytes.ends_with(b"/") || bytes.ends_with(b"/.") {
            return Err(format!("the path {path:?} ends as that of a directory; name a file in it"));
        }
        if bytes.contains(&0) {
            return Err(format!("the path {path:?} has a zero byte"));
        }
        if below && normal {
            return Ok(Self::Name(path));
        }
        Err(format!(
            "the path {path:?} is not below the directory of the command file; name a file in it or in its \
             subdirectories, without a leading / and without .."
        ))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(path) => write!(f, "{path:?}"),
            Self::Inode(inode) => write!(f, "inode {inode}"),
            Self::Extents(extents) => match &extents.namespace {
                Some(name) => write!(f, "name space {name:?}"),
                None => f.write_str("the volume"),
            },
        }
    }
}

/// Failure to find a target, or to get access to it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResolveError {
    /// there is no such file
    #[error("there is no such file")]
    NotFound,
    /// the path leads through a file that is not a directory
    #[error("the path leads through a file that is not a directory")]
    NotDirectory,
    /// the caller has no right to access the file
    #[error("the caller has no right to access the file")]
    Denied,
    /// the caller may not use the file, for a reason that the message says
    #[error("{0}")]
    Refused(String),
    /// the file is not a regular file
    #[error("the file is not a regular file")]
    NotFile,
    /// the instruction cannot be executed with this file, with a message
    #[error("{0}")]
    Invalid(String),
    /// a failure of input or output, with a message
    #[error("{0}")]
    Other(String),
}

/// Finds targets of instructions, with the rights of the caller that wrote them.
pub trait Resolver {
    /// Finds a file to read.
    ///
    /// # Errors
    /// The file does not exist, or the caller may not read it.
    fn source(&self, target: &Target) -> Result<Arc<dyn Source>, ResolveError>;

    /// Finds a file to write.
    ///
    /// # Errors
    /// The file does not exist, or the caller may not write it.
    fn destination(&self, target: &Target) -> Result<Arc<dyn Destination>, ResolveError>;

    /// Notes that an instruction was submitted, whose files were found before.
    fn started(&self, _instruction: &Instruction, _ticket: &Ticket) {}
}
