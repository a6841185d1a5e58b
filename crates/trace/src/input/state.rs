//! State of an input that its nested readers share.

use sha2::Sha256;
use std::io::{self, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// State that the nested readers of an input share.
#[derive(Default)]
pub(crate) struct InputState {
    /// Containers that were unpacked, outermost first.
    pub(super) layers: Vec<String>,
    /// Number of bytes read from the file.
    pub(super) compressed: u64,
    /// Number of bytes after the outermost decompression.
    pub(super) plain: u64,
    /// Hash of those bytes.
    pub(super) hash: Option<Sha256>,
    /// A tar archive is read to its end, for the hash.
    pub(super) drain: bool,
    /// Set if a tar archive ends inside a file.
    pub(super) tar_truncation: Option<String>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

impl InputState {
    /// Returns `true` if an error means that the compressed input is truncated.
    pub(super) fn is_truncated(&self, e: &io::Error) -> bool {
        e.kind() == ErrorKind::UnexpectedEof
    }
}

/// Locks the shared state. No holder of the lock can panic, so it is never poisoned.
pub(crate) fn lock(shared: &Mutex<InputState>) -> MutexGuard<'_, InputState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
