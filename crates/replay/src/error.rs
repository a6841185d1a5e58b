//! Errors that end a run without a report.

/// Shorthand for results with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error that ends a run without a report. The doc comment of each variant is its meaning; the
/// message is for the user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stack refused a request.
    #[error("stack '{stack}', request {number} ({what}): {source}")]
    Request {
        /// Name of the stack.
        stack: String,
        /// Number of the request in this run, warm-up included, from 1.
        number: u64,
        /// Description of the request.
        what: String,
        /// Error of the stack.
        source: Box<frit_core::Error>,
    },
    /// The stack failed outside of a request: in preparation, in background work, or when it was
    /// halted or booted.
    #[error("stack '{stack}', {what}: {source}")]
    Stack {
        /// Name of the stack.
        stack: String,
        /// Description of the operation that failed.
        what: String,
        /// Error of the stack.
        source: Box<frit_core::Error>,
    },
    /// The stack cannot be built.
    #[error(transparent)]
    Build(#[from] Box<frit_stack::StackError>),
    /// The workload cannot be read, or does not fit the volume.
    #[error(transparent)]
    Workload(Box<frit_trace::Error>),
    /// The warm-up consumed all requests of the workload.
    #[error(
        "'{name}' has {requests} requests, and the warm-up took all of them; use a shorter warm-up, or --warm trace"
    )]
    WorkloadExhausted {
        /// Name of the workload.
        name: String,
        /// Number of requests that the warm-up consumed.
        requests: u64,
    },
    /// The warm-up is a share of a workload whose length is not known.
    #[error(
        "--warm with a share needs the length of '{name}', which can be read only once; use a number of requests instead"
    )]
    UnknownLength {
        /// Name of the workload.
        name: String,
    },
    /// The warm-up is the whole workload, which cannot be read a second time.
    #[error(
        "--warm trace runs '{name}' twice, and it can be read only once; use a number of requests instead, or a file"
    )]
    ReadOnce {
        /// Name of the workload.
        name: String,
    },
    /// A report cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
}

impl From<frit_trace::Error> for Error {
    fn from(e: frit_trace::Error) -> Error {
        Error::Workload(Box::new(e))
    }
}
