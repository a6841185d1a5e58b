//! Errors of a calibration.

use frit_core::Nanos;

/// Shorthand for results with [`enum@Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a calibration. The doc comment of each variant is its meaning; the message is for the
/// user.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] frit_trace::Error),
    /// The profile cannot be read.
    #[error(transparent)]
    Profile(#[from] frit_core::Error),
    /// The profile is not that of a NAND.
    #[error(
        "the profile '{profile}' describes {kind} medium, and a calibration needs NAND; `frit profiles` lists \
         profiles with their kinds{hint}"
    )]
    NotNand {
        /// Name of the profile.
        profile: String,
        /// Kind of the medium, with its article.
        kind: &'static str,
        /// Another command for this kind of medium; empty, or a text that begins with a semicolon.
        hint: &'static str,
    },
    /// No request of the trace has a measured time.
    #[error(
        "{trace} has no measured service times; formats that have them: {}",
        frit_trace::measured::MEASURED_FORMATS
    )]
    NoTimes {
        /// Name of the trace.
        trace: String,
    },
    /// Measured times are zero or negative.
    #[error(
        "{trace}: {count} of {all} service times are not above zero; the first is {ns} ns, of request {number}. \
         Remove these lines: a time of zero means that the clock of the recorder was too coarse"
    )]
    BadTime {
        /// Name of the trace.
        trace: String,
        /// Number of such times.
        count: usize,
        /// Number of measured requests.
        all: usize,
        /// Number of the first such request in the trace, from 1.
        number: u64,
        /// Its time.
        ns: i64,
    },
    /// A part of the trace has too few requests.
    #[error(
        "{trace} has {fitted} measured reads and writes to fit and {held_out} to hold out; each part needs at least \
         {least}. Use a longer trace, or another --hold-out"
    )]
    TooFew {
        /// Name of the trace.
        trace: String,
        /// Requests of the fitted part.
        fitted: usize,
        /// Requests of the part that is held out.
        held_out: usize,
        /// Least number of requests of a part.
        least: usize,
    },
    /// The limit of evaluations does not allow a fit.
    #[error("{evaluations} evaluations are too few for a fit; use at least {least}")]
    TooFewEvaluations {
        /// The limit that was given.
        evaluations: u64,
        /// The least limit.
        least: u64,
    },
    /// The model of the drive cannot be built.
    #[error("the model of the drive cannot be built: {0}")]
    Model(#[from] Box<frit_stack::StackError>),
    /// The model of the drive refuses a request.
    #[error("the model of the drive fails at request {number}, at {at}: {source}")]
    Replay {
        /// Number of the request in the sample, from 1.
        number: usize,
        /// Time of the request.
        at: Nanos,
        /// Error of the layer.
        source: frit_core::Error,
    },
}
