//! Errors of reproducing a published result.

/// Shorthand for results with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error of reproducing a result. Its message is shown to the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No experiment has this ID.
    #[error("no experiment is called '{pattern}'; there are {known}")]
    Unknown {
        /// The requested pattern.
        pattern: String,
        /// The known IDs.
        known: String,
    },
    /// The description of an experiment is invalid.
    #[error("experiment '{name}': {why}")]
    Description {
        /// The experiment.
        name: String,
        /// The defect.
        why: String,
    },
    /// An access to a file or device failed.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A volume did not recover correctly from a crash, or could not be crashed.
    #[error("recovery: {0}")]
    Recovery(String),
    /// A measurement on this machine failed, or its results are wrong.
    #[error("measurement on this machine: {0}")]
    ThisMachine(String),
    /// A file system on this machine failed.
    #[error(transparent)]
    Fs(#[from] frit_fs::Error),
    /// A run failed.
    #[error(transparent)]
    Replay(#[from] frit_replay::Error),
    /// A run of a file system on modelled memory failed.
    #[error(transparent)]
    FsSim(#[from] frit_fs_sim::Error),
    /// A stack cannot be built.
    #[error(transparent)]
    Stack(#[from] Box<frit_stack::StackError>),
    /// A workload cannot be read.
    #[error(transparent)]
    Trace(#[from] frit_trace::Error),
    /// A layer failed.
    #[error(transparent)]
    Layer(#[from] frit_core::Error),
}
