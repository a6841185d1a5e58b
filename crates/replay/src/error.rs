//! Why a run ended without a report.

/// Shorthand for results with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a run ended without a report. The doc comment of each variant is what it means; its message is
/// what the user sees.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stack refused a request.
    #[error("stack '{stack}', request {number} ({what}): {source}")]
    Request {
        /// The stack.
        stack: String,
        /// The request's number in this run, warm-up included, from 1.
        number: u64,
        /// What it asked for.
        what: String,
        /// What went wrong.
        source: Box<frit_core::Error>,
    },
    /// The stack failed outside of a request: in preparation, in background work, when it was halted or booted.
    #[error("stack '{stack}', {what}: {source}")]
    Stack {
        /// The stack.
        stack: String,
        /// What was being done.
        what: String,
        /// What went wrong.
        source: Box<frit_core::Error>,
    },
    /// The stack cannot be built.
    #[error(transparent)]
    Build(#[from] Box<frit_stack::StackError>),
    /// The workload cannot be read, or does not fit.
    #[error(transparent)]
    Workload(Box<frit_trace::Error>),
    /// The warm-up took all that there was.
    #[error(
        "'{name}' has {requests} requests, and the warm-up took all of them; use a shorter warm-up, or --warm trace"
    )]
    NothingLeft {
        /// The workload.
        name: String,
        /// What the warm-up took.
        requests: u64,
    },
    /// A warm-up by a share of a workload whose length is not known.
    #[error(
        "--warm with a share needs to know how long '{name}' is, and it can be read only once; give a number of requests"
    )]
    NoLength {
        /// The workload.
        name: String,
    },
    /// A report cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
}

impl From<frit_trace::Error> for Error {
    fn from(e: frit_trace::Error) -> Error {
        Error::Workload(Box::new(e))
    }
}
