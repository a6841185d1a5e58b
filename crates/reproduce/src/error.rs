//! Why something could not be reproduced.

/// Shorthand for results with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be reproduced. The doc comment of each variant is what it means; its message is what the
/// user sees.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No experiment has such an id.
    #[error("no experiment is called '{pattern}'; there are {known}")]
    Unknown {
        /// What was asked for.
        pattern: String,
        /// The ids that there are.
        known: String,
    },
    /// A description of an experiment cannot be.
    #[error("experiment '{name}': {why}")]
    Description {
        /// The experiment.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file or device failed.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A volume did not come up from a crash as it should, or could not be crashed.
    #[error("recovery: {0}")]
    Recovery(String),
    /// A run failed.
    #[error(transparent)]
    Replay(#[from] frit_replay::Error),
    /// A stack cannot be composed.
    #[error(transparent)]
    Stack(#[from] Box<frit_stack::StackError>),
    /// A workload cannot be read.
    #[error(transparent)]
    Trace(#[from] frit_trace::Error),
    /// A layer failed.
    #[error(transparent)]
    Layer(#[from] frit_core::Error),
}
