//! Reads and panics of the threads of a job.

use super::super::reader::Reader;
use super::Job;
use crate::outcome::{Failure, Status};
use crate::scan::Operation;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Converts a panic into a failure, so that a bug in one instruction does not end the engine.
pub(in crate::engine) fn guarded<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        let message =
            "the engine failed in this instruction; please report it with the instruction and the file";
        Err(Failure::new(Status::Internal, message))
    })
}

impl<O: Operation> Job<O> {
    /// Access to the bytes of the job.
    pub(super) fn reader(&self, range: Range<u64>) -> Reader<'_> {
        Reader {
            source: &*self.request.source,
            control: &self.control,
            range,
            copy: self.operation.detached().then(Vec::new),
        }
    }
}
