//! Why a run ended.

/// Shorthand for results with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a run ended without a report. The doc comment of each variant is what it means; its message is what the user
/// sees.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A parameter is wrong.
    #[error(transparent)]
    Param(#[from] frit_core::Error),
    /// The board cannot be built.
    #[error("{0}")]
    Build(String),
    /// The file system refused an operation.
    #[error("{what}: {source}")]
    Fs {
        /// What was being done.
        what: &'static str,
        /// What it said.
        source: frit_fs::Error,
    },
}

impl Error {
    /// For `map_err`: what was being done when the file system refused.
    pub(crate) fn fs(what: &'static str) -> impl Fn(frit_fs::Error) -> Error {
        move |source| Error::Fs { what, source }
    }
}
