//! Errors of creating, opening and closing a volume.

use frit_stack::StackError;
use std::path::PathBuf;

/// Shorthand for results with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a volume as a whole. Its message is shown to the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory is not a volume.
    #[error("{}: no volume here ({why})", dir.display())]
    NotAVolume {
        /// The directory.
        dir: PathBuf,
        /// The missing part.
        why: String,
    },
    /// The superblock cannot be read.
    #[error("{}: {why}", path.display())]
    Superblock {
        /// The file.
        path: PathBuf,
        /// The defect.
        why: String,
    },
    /// Another program has the volume open.
    #[error("{}: in use{by}; stop that program, or wait until it is done", dir.display())]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// The process that holds the volume, if it is known.
        by: String,
    },
    /// The target directory of a new volume is not empty.
    #[error("{}: {why}", dir.display())]
    Exists {
        /// The directory.
        dir: PathBuf,
        /// The existing contents, and the remedy.
        why: String,
    },
    /// A medium's file is missing, or differs from what the superblock records.
    #[error("medium '{name}' ({}): {why}", path.display())]
    Medium {
        /// The medium's name in the stack.
        name: String,
        /// Its file.
        path: PathBuf,
        /// The defect.
        why: String,
    },
    /// The stack does not meet a requirement of volumes.
    #[error("a volume needs {requirement}")]
    Unsupported {
        /// The missing feature, and the setting that adds it.
        requirement: String,
    },
    /// The volume was closed without being marked clean.
    #[error("the volume stays marked dirty, since {why}; frit check verifies its contents")]
    LeftDirty {
        /// The reason.
        why: String,
    },
    /// The stack description is invalid.
    #[error(transparent)]
    InvalidStack(#[from] StackError),
    /// An error of a layer, a medium or the host.
    #[error(transparent)]
    Core(#[from] frit_core::Error),
}

impl miette::Diagnostic for Error {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        if let Error::InvalidStack(e) = self { e.help() } else { None }
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        if let Error::InvalidStack(e) = self { e.related() } else { None }
    }
}

/// Wraps an I/O error of the host; `what` names the failed operation.
pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.into();
    move |source| Error::Core(frit_core::Error::Io { what, source })
}
