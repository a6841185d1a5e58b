//! State of the disk behind the cache, and its counts of failures.

/// Number of steps between two attempts to reach a disk that failed.
const RETRY_STEPS: u32 = 64;

/// State of the disk.
#[derive(Clone, Default, Debug)]
pub(super) struct DiskHealth {
    /// Error of a disk that fails. Dirty blocks stay in the cache, and writes go on while slots are
    /// free.
    pub(super) failure: Option<String>,
    /// `true` if the error of the current request is an error of the disk.
    pub(super) of_request: bool,
    steps: u32,
    /// Number of failures of the disk.
    pub(super) failures: u64,
    /// Number of recoveries of the disk.
    pub(super) recovered: u64,
}

impl DiskHealth {
    /// Returns `true` if it is time to try a failed disk again.
    pub(super) fn retry(&mut self) -> bool {
        self.steps += 1;
        self.steps % RETRY_STEPS == 1
    }
}
