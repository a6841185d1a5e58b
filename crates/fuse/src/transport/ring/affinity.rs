//! Processors on which threads may run.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::OnceLock;

/// Processors on which the threads of this process may run, as it was started.
static OF_PROCESS: OnceLock<CpuSet> = OnceLock::new();

/// Processors on which this process may run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessorSet(CpuSet);

impl ProcessorSet {
    /// Returns the processors of this process. Must be called first by a thread that is not bound.
    pub(crate) fn of_process() -> ProcessorSet {
        ProcessorSet(*OF_PROCESS.get_or_init(|| sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new())))
    }

    pub(crate) fn contains(&self, processor: usize) -> bool {
        processor < CpuSet::MAX_CPU && self.0.is_set(processor)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.count() as usize
    }
}

/// Binds the calling thread to a processor. If that is not possible, the thread runs anywhere, which
/// costs time only.
pub(crate) fn bind(processor: usize) {
    let mut only = CpuSet::new();
    only.set(processor);
    let _ = sched_setaffinity(None, &only);
}

/// Calls a function that starts threads, so that they may run on all processors of this process. A
/// thread inherits the processors of the one that starts it, and threads that answer requests may be
/// bound to one.
pub fn on_all_processors<R>(start: impl FnOnce() -> R) -> R {
    let (Some(all), Ok(own)) = (OF_PROCESS.get(), sched_getaffinity(None)) else { return start() };
    let _ = sched_setaffinity(None, all);
    let result = start();
    let _ = sched_setaffinity(None, &own);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_bound_thread_may_be_free() {
        let all = ProcessorSet::of_process();
        std::thread::spawn(move || {
            let first = (0..CpuSet::MAX_CPU).find(|&i| all.contains(i)).unwrap();
            bind(first);
            let count = || sched_getaffinity(None).unwrap().count() as usize;
            assert_eq!(count(), 1);
            let started = on_all_processors(|| std::thread::spawn(count));
            assert_eq!(started.join().unwrap(), all.len());
            assert_eq!(std::thread::spawn(count).join().unwrap(), 1, "inherited otherwise");
            assert_eq!(count(), 1);
        })
        .join()
        .unwrap();
    }
}
