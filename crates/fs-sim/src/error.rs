//! Errors of runs.

/// Shorthand for results with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Error of a run. The doc comment of each variant is its meaning; its message is the text for the
/// user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter is invalid.
    #[error(transparent)]
    Param(#[from] frit_core::Error),
    /// The devices cannot be built.
    #[error("{0}")]
    Build(String),
    /// The file system refused an operation.
    #[error("{what}: {source}")]
    Fs {
        /// Operation that failed.
        what: &'static str,
        /// Error of the file system.
        source: frit_fs::Error,
    },
}

impl Error {
    /// Returns a function for `map_err` that adds the failed operation to an error of the file
    /// system.
    pub(crate) fn fs(what: &'static str) -> impl Fn(frit_fs::Error) -> Error {
        move |source| Error::Fs { what, source }
    }
}
