//! Errors of requests, and their classes, from which each protocol derives its error numbers.

use crate::backend::is_full;
use frit_core::{Error, ZoneFault};
use std::sync::Arc;

/// Error of a request.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The server is shutting down.
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
    Record(Arc<frit_trace::Error>),
}

/// Classes of errors that protocols distinguish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// The server is shutting down: `ESHUTDOWN`.
    Stopping,
    /// Writes are refused: `EPERM` in NBD, `EROFS` in file systems.
    ReadOnly,
    /// No space is left, in the volume or on the host: `ENOSPC`.
    NoSpace,
    /// The request is invalid: `EINVAL`.
    Invalid,
    /// A medium cannot return the bytes, or cannot store them: `EIO`.
    Media,
}

impl Failure {
    /// Returns the class of the error.
    pub fn kind(&self) -> FailureKind {
        match self {
            Failure::Stopping => FailureKind::Stopping,
            Failure::ReadOnly(_) | Failure::Backend(Error::ReadOnly { .. }) => FailureKind::ReadOnly,
            Failure::Backend(Error::NoSpace { .. }) => FailureKind::NoSpace,
            Failure::Backend(Error::Io { source, .. }) if is_full(source) => FailureKind::NoSpace,
            Failure::Backend(Error::OutOfRange { .. } | Error::Param { .. }) => FailureKind::Invalid,
            Failure::Backend(Error::Zone { fault, .. }) => of_zone(*fault),
            Failure::Backend(_) | Failure::Record(_) => FailureKind::Media,
        }
    }
}

/// Returns the class of a conflict with a zone. A limit is space that another zone can free; a zone that is
/// read-only or offline is damage, as it has lost blocks.
fn of_zone(fault: ZoneFault) -> FailureKind {
    match fault {
        ZoneFault::IsFull | ZoneFault::TooManyActive | ZoneFault::TooManyOpen => FailureKind::NoSpace,
        ZoneFault::InvalidWrite
        | ZoneFault::BoundaryError
        | ZoneFault::InvalidTransition
        | ZoneFault::Unwritten => FailureKind::Invalid,
        ZoneFault::IsReadOnly | ZoneFault::IsOffline => FailureKind::Media,
    }
}
