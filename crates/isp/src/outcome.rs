//! Outcome of an instruction.

use crate::instructions::Answer;
use serde::Serialize;

/// Status of a completed instruction. The number is the code in the binary form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, strum::FromRepr, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
#[repr(u32)]
pub enum Status {
    /// The results are complete, except for what `truncated` says.
    Ok = 0,
    /// The instruction is not valid.
    Invalid = 1,
    /// A file does not exist.
    NotFound = 2,
    /// The caller has no right to access a file.
    Denied = 3,
    /// The file changed during the scan, and the instruction asked to fail in this case.
    Changed = 4,
    /// The instruction was cancelled.
    Cancelled = 5,
    /// Data could not be read or written.
    Io = 6,
    /// A record is longer than the engine allows.
    RecordTooLong = 7,
    /// The data is not of the format that the instruction names.
    Format = 8,
    /// The engine failed; this is a bug.
    Internal = 9,
    /// The module of a program is not valid, or does not have the functions of a program.
    BadModule = 10,
    /// A program did something that WebAssembly or the engine does not allow.
    Trap = 11,
    /// A program used more fuel than the instruction allows.
    OutOfFuel = 12,
    /// A program used more time of processors than the instruction allows.
    OutOfTime = 13,
    /// A program asked for more memory than the instruction allows.
    OutOfMemory = 14,
    /// A program reported a failure of its own.
    Program = 15,
    /// The results of other instructions occupy the memory of the engine.
    Busy = 16,
    /// This build of the engine has no such instruction.
    Unsupported = 17,
}

/// Reason why an instruction has no results.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Kind of the failure; not `Ok`.
    pub status: Status,
    /// Message for the user: what failed, where, and what helps.
    pub message: String,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn no_thread(error: &std::io::Error) -> Self {
        Self::new(Status::Internal, format!("no thread can be started: {error}"))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Status::Invalid, message)
    }
}

/// Work that an instruction has caused.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Work {
    /// Bytes that were read from the source. A few are read twice, at the borders of parts.
    pub bytes_scanned: u64,
    /// Time from the submission to the completion, in nanoseconds.
    pub wall_ns: u64,
    /// Time of the processors in the threads of the engine, in nanoseconds.
    pub cpu_ns: u64,
    /// Number of waits for foreground requests.
    pub yields: u64,
    /// Time of these waits, in nanoseconds, summed over the threads.
    pub yielded_ns: u64,
}

/// Outcome of an instruction.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Results, or the reason why there are none.
    pub result: Result<Answer, Failure>,
    /// `true` if the file changed during the scan. The results are those of some mixture of its states.
    pub changed: bool,
    /// `true` if results were cut at the limit of memory.
    pub truncated: bool,
    /// Work that the instruction has caused.
    pub work: Work,
}

impl Outcome {
    /// Creates the outcome of an instruction that was not executed.
    #[must_use]
    pub fn failed(failure: Failure) -> Self {
        Self { result: Err(failure), changed: false, truncated: false, work: Work::default() }
    }

    /// Memory of the results in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.result.as_ref().map_or(0, |answer| answer.bytes() as u64)
    }

    /// Status of the instruction.
    #[must_use]
    pub fn status(&self) -> Status {
        self.result.as_ref().map_or_else(|failure| failure.status, |_| Status::Ok)
    }
}
