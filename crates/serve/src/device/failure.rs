//! Why a request failed, and in which class each protocol finds its error number.

use crate::backend::is_full;
use frit_core::Error;
use std::sync::Arc;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The server is stopping.
    #[error("the server is stopping")]
    Stopping,
    /// The device refuses writes.
    #[error("read-only: {0}")]
    ReadOnly(Arc<str>),
    /// The backend failed.
    #[error(transparent)]
    Backend(#[from] Error),
    /// The recording cannot be written.
    #[error("the recording cannot be written: {0}")]
    Record(#[from] frit_trace::Error),
}

/// The classes of failures that protocols tell apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// The server is stopping: `ESHUTDOWN`.
    Stopping,
    /// Writes are refused: `EPERM` in NBD, `EROFS` in file systems.
    ReadOnly,
    /// No room, in the volume or on the host: `ENOSPC`.
    NoSpace,
    /// A request that cannot be: `EINVAL`.
    Invalid,
    /// A medium cannot give the bytes back, or take them: `EIO`.
    Media,
}

impl Failure {
    /// Its class.
    pub fn kind(&self) -> FailureKind {
        match self {
            Failure::Stopping => FailureKind::Stopping,
            Failure::ReadOnly(_) | Failure::Backend(Error::ReadOnly { .. }) => FailureKind::ReadOnly,
            Failure::Backend(Error::NoSpace { .. }) => FailureKind::NoSpace,
            Failure::Backend(Error::Io { source, .. }) if is_full(source) => FailureKind::NoSpace,
            Failure::Backend(Error::OutOfRange { .. } | Error::Param { .. }) => FailureKind::Invalid,
            Failure::Backend(_) | Failure::Record(_) => FailureKind::Media,
        }
    }
}
