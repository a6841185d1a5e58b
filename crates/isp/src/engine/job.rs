//! Instruction in execution: its parts, which threads scan in parallel and merge in order.
//!
//! The results depend neither on the number of threads nor on their speed. The part behind the merged
//! ones is scanned into the total at once. A later one has results of its own, which occupy a share of
//! the memory of the instruction; if they exceed it, the part is scanned again when its turn comes.

mod completion;
mod state;
mod thread;

use super::Request;
use super::control::{Control, cancelled, cpu_ns};
use super::pool::{Step, Steps};
use crate::outcome::{Failure, Status};
use crate::scan::{self, Begin, Flow, Operation, Role, StepTime};
use parking_lot::{Mutex, MutexGuard};
use state::{Phase, State};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
pub(super) use thread::guarded;

pub(super) struct Job<O: Operation> {
    operation: O,
    request: Request,
    control: Arc<Control>,
    submitted: Instant,
    state: Mutex<State<O::Results>>,
}

impl<O: Operation> Job<O> {
    pub(super) fn new(operation: O, request: Request, control: Arc<Control>) -> Self {
        let state = State::new(operation.sequential());
        Self { operation, request, control, submitted: Instant::now(), state: Mutex::new(state) }
    }

    /// Number of parts that may be ahead of the merged ones.
    fn window(&self) -> u64 {
        2 * self.control.options.threads as u64
    }

    fn begin(&self, role: Role, sequential: bool) -> O::Results {
        let memory = self.request.instruction.memory_bytes;
        let memory = if role == Role::Total { memory } else { memory / self.window() as usize };
        let account = self.control.account();
        let account = if role == Role::Total { account.clone() } else { account.ahead() };
        self.operation.begin(Begin { role, sequential, memory, account })
    }

    /// Determines the range and its parts. It runs without the lock of the state.
    fn prepare(&self, state: &mut MutexGuard<'_, State<O::Results>>) {
        state.phase = Phase::Preparing;
        let prepared = MutexGuard::unlocked(state, || {
            guarded(|| {
                let version = self.request.source.version();
                let range = self.request.instruction.range.within(self.request.source.len());
                self.operation.prepare(&self.reader(range.clone()))?;
                Ok((version, range))
            })
        });
        state.phase = Phase::Scanning;
        match prepared {
            Ok((version, range)) => {
                (state.version, state.range) = (Some(version), range);
                // It may follow from what the preparation has read.
                state.sequential = self.operation.sequential();
                self.divide(state);
            }
            Err(failure) => state.failure = Some(failure),
        }
    }

    /// Divides the range into parts.
    fn divide(&self, state: &mut State<O::Results>) {
        let bytes = state.range.end - state.range.start;
        state.part_bytes = match self.operation.unit() {
            _ if state.sequential => bytes.max(1),
            scan::Unit::Blocks(size) => self.control.options.part_bytes.next_multiple_of(size as u64),
            _ => self.control.options.part_bytes,
        };
        state.parts = bytes.div_ceil(state.part_bytes);
        (state.next, state.merged, state.restart) = (0, 0, false);
        state.waiting.clear();
        state.total = Some(self.begin(Role::Total, state.sequential));
        self.control.stopped.store(false, Ordering::Relaxed);
    }

    /// Scans a part without the lock of the state.
    fn scan(
        &self,
        state: &mut MutexGuard<'_, State<O::Results>>,
        part: u64,
        mut results: O::Results,
    ) -> Result<(O::Results, Flow), Failure> {
        let begin = state.range.start + part * state.part_bytes;
        let end = begin.saturating_add(state.part_bytes).min(state.range.end);
        let (range, sequential) = (state.range.clone(), state.sequential);
        MutexGuard::unlocked(state, || {
            guarded(|| {
                let mut reader = self.reader(range.clone());
                let record_max = self.control.options.record_bytes_max;
                let flow = scan::scan(
                    &self.operation,
                    &mut results,
                    &mut reader,
                    &(begin..end),
                    &range,
                    (record_max, sequential),
                )?;
                Ok((results, flow))
            })
        })
    }

    /// Records the end of a scan or merge that has changed the total.
    fn advance(&self, state: &mut State<O::Results>, changed: Result<(O::Results, Flow), Failure>) {
        match changed {
            Ok((total, flow)) => {
                state.total = Some(total);
                state.merged += 1;
                match flow {
                    Flow::Done => state.parts = state.merged,
                    Flow::Sequential => state.restart = true,
                    Flow::Continue | Flow::Overflow => {}
                }
                if flow == Flow::Done || flow == Flow::Sequential {
                    self.control.stopped.store(true, Ordering::Relaxed);
                }
            }
            Err(failure) => self.fail(state, failure),
        }
    }

    fn fail(&self, state: &mut State<O::Results>, failure: Failure) {
        let was_stopped = self.control.stopped.swap(true, Ordering::Relaxed);
        if was_stopped && failure.status == Status::Cancelled && !self.control.ticket.is_cancelled() {
            // The scan of a part ended early, because its results are not needed.
            return;
        }
        state.failure.get_or_insert(failure);
    }

    /// Merges results that wait, in order.
    fn merge(&self, state: &mut MutexGuard<'_, State<O::Results>>) {
        while state.failure.is_none() && !state.restart && state.merged < state.parts {
            let part = state.merged;
            if !state.waiting.contains_key(&part) {
                return;
            }
            let Some(mut total) = state.total.take() else { return };
            let changed = match state.waiting.remove(&part).flatten() {
                Some(next) => MutexGuard::unlocked(state, || {
                    guarded(|| {
                        let flow = self.operation.merge(&mut total, next)?;
                        Ok((total, flow))
                    })
                }),
                None => self.scan(state, part, total),
            };
            self.advance(state, changed);
        }
    }

    /// Scans the next part.
    fn work(&self, state: &mut MutexGuard<'_, State<O::Results>>) {
        let part = state.next;
        state.next += 1;
        let total = if part == state.merged { state.total.take() } else { None };
        if let Some(total) = total {
            let changed = self.scan(state, part, total);
            self.advance(state, changed);
        } else {
            let results = self.begin(Role::Part, state.sequential);
            match self.scan(state, part, results) {
                Ok((_, Flow::Sequential)) => {
                    state.restart = true;
                    self.control.stopped.store(true, Ordering::Relaxed);
                }
                Ok((_, Flow::Overflow)) => _ = state.waiting.insert(part, None),
                Ok((results, Flow::Continue | Flow::Done)) => _ = state.waiting.insert(part, Some(results)),
                Err(failure) => self.part_failed(state, part, failure),
            }
        }
        self.merge(state);
    }

    /// A failure of a part may be none of the instruction, which may be done before. The part is
    /// scanned again in its turn, and fails again.
    fn part_failed(&self, state: &mut State<O::Results>, part: u64, failure: Failure) {
        if matches!(failure.status, Status::Cancelled | Status::Internal) {
            self.fail(state, failure);
        } else {
            state.waiting.insert(part, None);
        }
    }
}

impl<O: Operation> Steps for Job<O> {
    fn step(&self) -> Step {
        let mut state = self.state.lock();
        if self.control.ticket.is_cancelled() && state.failure.is_none() && state.phase != Phase::Complete {
            self.fail(&mut state, cancelled());
        }
        let began = cpu_ns();
        state.busy += 1;
        let mut step = Step::Blocked;
        if state.phase == Phase::New && state.failure.is_none() {
            match self.control.has_room(self.submitted) {
                Ok(true) => {
                    self.prepare(&mut state);
                    step = Step::Worked;
                }
                Ok(false) => step = Step::Waits,
                Err(failure) => state.failure = Some(failure),
            }
        }
        let scanning = state.phase == Phase::Scanning && state.failure.is_none() && !state.restart;
        if scanning && state.next < state.parts && state.next < state.merged + self.window() {
            self.work(&mut state);
            step = Step::Worked;
        }
        state.busy -= 1;
        self.control.count_cpu(cpu_ns().saturating_sub(began));
        if state.busy > 0 {
            return if state.phase == Phase::Complete { Step::Finished } else { step };
        }
        if state.restart && state.failure.is_none() {
            state.sequential = true;
            self.divide(&mut state);
            return Step::Worked;
        }
        let ended = state.phase == Phase::Scanning && state.merged == state.parts;
        if state.phase != Phase::Complete && (state.failure.is_some() || ended) {
            self.complete(&mut state);
        }
        if state.phase == Phase::Complete { Step::Finished } else { step }
    }

    fn cancel(&self) {
        self.control.ticket.cancel();
    }

    fn step_time(&self) -> StepTime {
        self.operation.step_time()
    }
}
