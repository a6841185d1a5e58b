//! Outcome of a job.

use super::super::control::cancelled;
use super::Job;
use super::state::{Phase, State};
use super::thread::guarded;
use crate::outcome::{Failure, Outcome, Status, Work};
use crate::scan::{Finished, Operation};
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;

/// Returns the result of a scan of data that changed meanwhile.
fn after_change<T>(result: Result<T, Failure>, fails: bool) -> Result<T, Failure> {
    use Status::{Format, Io, OutOfFuel, OutOfMemory, OutOfTime, Program, RecordTooLong, Trap};
    const CHANGED: &str = "the data changed during the scan";
    // Others do not depend on the data.
    let may_be_caused = |status| {
        let of_data = [Io, RecordTooLong, Format, Trap, OutOfFuel, OutOfTime, OutOfMemory, Program];
        of_data.contains(&status)
    };
    match result {
        Ok(_) if fails => Err(Failure::new(
            Status::Changed,
            format!(
                "{CHANGED}; give the instruction again, or without \"fail_if_changed\" for results of a mixture \
                 of their states"
            ),
        )),
        Err(Failure { status, message }) if may_be_caused(status) => {
            let status = if fails { Status::Changed } else { status };
            Err(Failure::new(status, format!("{CHANGED}, which may be the cause: {message}")))
        }
        other => other,
    }
}

impl<O: Operation> Job<O> {
    /// Completes the instruction.
    pub(super) fn complete(&self, state: &mut MutexGuard<'_, State<O::Results>>) {
        state.phase = Phase::Complete;
        let (failure, total, version) = (state.failure.take(), state.total.take(), state.version);
        state.waiting.clear();
        MutexGuard::unlocked(state, || {
            let finished = guarded(|| match (failure, total) {
                (None, Some(total)) => self.operation.finish(total),
                (failure, _) => Err(failure.unwrap_or_else(cancelled)),
            });
            // Without a version, no byte was scanned.
            let changed = version.is_some_and(|version| self.request.source.version() != version);
            let (mut result, truncated, charge) = match finished {
                Ok(Finished { answer, truncated, charge }) => (Ok(answer), truncated, charge),
                Err(failure) => (Err(failure), false, None),
            };
            if changed {
                result = after_change(result, self.request.instruction.fail_if_changed);
            }
            let outcome = Outcome { result, changed, truncated, work: self.work_done() };
            self.control.ticket.complete(outcome, charge);
        });
    }

    fn work_done(&self) -> Work {
        let counters = &self.control.counters;
        Work {
            bytes_scanned: counters.bytes.load(Ordering::Relaxed),
            wall_ns: self.submitted.elapsed().as_nanos() as u64,
            cpu_ns: counters.cpu_ns.load(Ordering::Relaxed),
            yields: counters.yields.load(Ordering::Relaxed),
            yielded_ns: counters.yielded_ns.load(Ordering::Relaxed),
        }
    }
}
