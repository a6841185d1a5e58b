//! Threads that execute the loop of a personality.

use super::file_set::FileSet;
use super::file_system::FileSystem;
use super::personality::{FlowOp, Personality};
use crate::Request;
use crate::generate::random::Random;
use frit_core::Nanos;

/// Sizes of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilebenchSetup {
    pub(super) personality: &'static Personality,
    pub(super) files: u32,
    pub(super) mean_file_bytes: u32,
    pub(super) dir_width: u32,
    pub(super) preallocated: f64,
    pub(super) threads: u32,
    pub(super) append_bytes: u32,
    pub(super) seed: u64,
}

/// A thread: the operation that comes next, and the open file.
#[derive(Clone, Copy, Default)]
struct Thread {
    next: u32,
    open: Option<u32>,
}

/// A personality on a file system.
pub(in crate::generate) struct FilebenchRun {
    operations: &'static [FlowOp],
    set: FileSet,
    fs: FileSystem,
    threads: Vec<Thread>,
    append_bytes: u32,
    /// The log of the webserver.
    log: u32,
    random: Random,
}

impl FilebenchRun {
    /// Puts the files on the disk that exist at the start; `None` if they fill more than nine
    /// tenths of it.
    pub(super) fn new(setup: &FilebenchSetup, mut fs: FileSystem) -> Option<FilebenchRun> {
        let mut random = Random::new(setup.seed);
        let set = FileSet::new(setup.files, setup.mean_file_bytes, setup.preallocated, &mut random);
        let sizes = || (0..setup.files).map(|f| u64::from(set.planned_bytes(f)));
        let bytes: u64 = sizes().sum::<u64>() + u64::from(setup.files) * super::BLOCK_BYTES;
        if bytes > u64::from(fs.layout.data.blocks) * super::BLOCK_BYTES / 10 * 9 {
            return None;
        }
        for file in set.existing() {
            fs.preset(file, u64::from(set.planned_bytes(file)));
        }
        // The allocations before the workload are durable, and the page cache is empty.
        fs.start_cold();
        Some(FilebenchRun {
            operations: setup.personality.operations,
            set,
            fs,
            threads: vec![Thread::default(); setup.threads as usize],
            append_bytes: setup.append_bytes,
            log: setup.files,
            random,
        })
    }

    /// Returns the next request. `next_at` returns the time of each operation.
    pub(in crate::generate) fn next(&mut self, mut next_at: impl FnMut(&mut Random) -> Nanos) -> Request {
        loop {
            if let Some(request) = self.fs.out.pop_front() {
                return request;
            }
            let at = next_at(&mut self.random);
            self.operate(at);
        }
    }

    /// Executes the next operation of a thread drawn at random. Returns the operation and the bytes
    /// that it read or wrote; `None` if it was skipped.
    pub(super) fn operate(&mut self, at: Nanos) -> (FlowOp, Option<u64>) {
        self.fs.begin(at.0);
        let i = self.random.below(self.threads.len() as u64) as usize;
        let mut thread = self.threads[i];
        let done = self.step(&mut thread);
        self.threads[i] = thread;
        done
    }

    /// Executes the next operation of a thread. An operation without a file is skipped.
    fn step(&mut self, thread: &mut Thread) -> (FlowOp, Option<u64>) {
        let op = self.operations[thread.next as usize];
        thread.next = (thread.next + 1) % self.operations.len() as u32;
        let bytes = match (op, thread.open) {
            (FlowOp::Create, _) => {
                thread.open = self.set.create();
                thread.open.map(|file| {
                    self.fs.create(file);
                    0
                })
            }
            (FlowOp::Open, _) => {
                thread.open = self.set.open();
                thread.open.map(|file| {
                    self.fs.look_up(file);
                    0
                })
            }
            (FlowOp::WriteWhole, Some(file)) => {
                Some(self.fs.append(file, u64::from(self.set.planned_bytes(file))))
            }
            (FlowOp::Append, Some(file)) => Some(self.append(file)),
            (FlowOp::AppendLog, _) => Some(self.append(self.log)),
            (FlowOp::ReadWhole, Some(file)) => Some(self.fs.read(file)),
            (FlowOp::Fsync, Some(file)) => {
                self.fs.fsync(file);
                Some(0)
            }
            (FlowOp::Close, Some(file)) => {
                self.set.close(file);
                thread.open = None;
                Some(0)
            }
            (FlowOp::Delete, _) => self.set.delete().map(|file| {
                self.fs.delete(file);
                0
            }),
            (FlowOp::Stat, _) => self.set.pick().map(|file| {
                self.fs.look_up(file);
                0
            }),
            (_, None) => None,
        };
        (op, bytes)
    }

    /// Drops the requests so far, for tests of the operations.
    #[cfg(test)]
    pub(super) fn forget_requests(&mut self) {
        self.fs.out.clear();
    }

    fn append(&mut self, file: u32) -> u64 {
        let bytes = self.random.below(u64::from(self.append_bytes));
        self.fs.append(file, bytes)
    }
}
