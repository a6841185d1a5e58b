//! What keeps a volume from being made, opened or closed.

use frit_stack::StackError;
use std::path::PathBuf;

/// Shorthand for results with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a volume as a whole. Its message is what the user sees.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory is no volume.
    #[error("{}: no volume here ({why})", dir.display())]
    NotAVolume {
        /// The directory.
        dir: PathBuf,
        /// What is missing.
        why: String,
    },
    /// The superblock cannot be read.
    #[error("{}: {why}", path.display())]
    Superblock {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another program has the volume open.
    #[error("{}: in use{by}; stop that program, or wait until it is done", dir.display())]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// By whom, when it can be told.
        by: String,
    },
    /// Something is where a volume should be made.
    #[error("{}: {why}", dir.display())]
    Exists {
        /// The directory.
        dir: PathBuf,
        /// What is there, and what to do.
        why: String,
    },
    /// A medium's file is missing, or not as the superblock says.
    #[error("medium '{name}' ({}): {why}", path.display())]
    Medium {
        /// The medium's name in the stack.
        name: String,
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The stack cannot carry a volume.
    #[error("a volume needs {what}")]
    Stack {
        /// What it lacks, and what to add.
        what: String,
    },
    /// The volume was closed without being marked clean.
    #[error("the volume stays marked dirty, since {why}; frit check says what is left of it")]
    LeftDirty {
        /// Why.
        why: String,
    },
    /// The stack is wrong.
    #[error(transparent)]
    Parse(#[from] StackError),
    /// A layer, a medium or the host.
    #[error(transparent)]
    Core(#[from] frit_core::Error),
}

impl miette::Diagnostic for Error {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        if let Error::Parse(e) = self { e.help() } else { None }
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
        if let Error::Parse(e) = self { e.related() } else { None }
    }
}

/// An error of the host.
pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.into();
    move |source| Error::Core(frit_core::Error::Io { what, source })
}
