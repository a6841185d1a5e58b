//! Choice of the request that a drive serves next.

use super::drive::{Drive, DriveRequest};
use super::spec::DriveScheduler;
use frit_core::Nanos;

/// Properties of a queued request that a scheduler uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// The request; `None` for a flush.
    pub request: Option<DriveRequest>,
    /// Cylinder of the request.
    pub cylinder: u32,
}

/// A scheduler with its state: the elevator remembers its direction.
#[derive(Clone, Debug)]
pub(super) struct SchedulerState {
    scheduler: DriveScheduler,
    up: bool,
}

impl SchedulerState {
    pub(super) fn new(scheduler: DriveScheduler) -> SchedulerState {
        SchedulerState { scheduler, up: true }
    }

    /// Returns the index of the request that is served next if service begins at `at`. `waiting` is
    /// ordered from the oldest on; among requests of equal cost the oldest is served.
    ///
    /// A flush has no location on the disk. It is served when no older request waits, since a drive
    /// finishes the commands that it has before it executes a command that it does not queue (FLUSH
    /// CACHE of ATA).
    pub(super) fn choose<'a, I>(&mut self, drive: &Drive, at: Nanos, waiting: &I) -> Option<usize>
    where
        I: Iterator<Item = &'a Candidate> + Clone,
    {
        let first = waiting.clone().next()?;
        if self.scheduler == DriveScheduler::Fifo || first.request.is_none() {
            return Some(0);
        }
        let here = drive.arm_cylinder();
        let ahead = |c: u32, up: bool| if up { c >= here } else { c <= here };
        let accesses = || waiting.clone().enumerate().filter_map(|(i, c)| Some((i, c, c.request?)));
        if self.scheduler == DriveScheduler::Scan && !accesses().any(|(_, c, _)| ahead(c.cylinder, self.up)) {
            self.up = !self.up;
        }
        let cost = |c: &Candidate, request: &DriveRequest| -> u64 {
            let distance = u64::from(c.cylinder.abs_diff(here));
            match self.scheduler {
                DriveScheduler::Fifo => 0,
                DriveScheduler::Sstf => distance,
                DriveScheduler::Scan if ahead(c.cylinder, self.up) => distance,
                DriveScheduler::Scan => u64::MAX,
                DriveScheduler::CLook if c.cylinder >= here => distance,
                DriveScheduler::CLook => (1 << 32) + u64::from(c.cylinder),
                DriveScheduler::Sptf => drive.positioning(request, at).0,
            }
        };
        accesses().min_by_key(|(i, c, r)| (cost(c, r), *i)).map(|(i, _, _)| i)
    }
}
