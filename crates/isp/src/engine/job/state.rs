//! Progress of a job, which its threads share.

use crate::outcome::Failure;
use std::collections::BTreeMap;
use std::ops::Range;

/// Progress of a job.
pub(super) struct State<R> {
    pub(super) phase: Phase,
    pub(super) range: Range<u64>,
    pub(super) version: Option<u64>,
    pub(super) part_bytes: u64,
    /// `true` if the range is scanned as one part.
    pub(super) sequential: bool,
    /// Number of parts.
    pub(super) parts: u64,
    /// Number of the next part to scan.
    pub(super) next: u64,
    /// Number of parts whose results are in the total.
    pub(super) merged: u64,
    /// Results of parts behind those that are merged, or `None` if they exceeded their memory.
    pub(super) waiting: BTreeMap<u64, Option<R>>,
    /// Results of the merged parts, unless a thread is using them.
    pub(super) total: Option<R>,
    /// Number of threads that are busy with the job.
    pub(super) busy: usize,
    /// `true` if the range has to be scanned again as one part.
    pub(super) restart: bool,
    pub(super) failure: Option<Failure>,
}

/// Phase of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    New,
    Preparing,
    Scanning,
    Complete,
}

impl<R> State<R> {
    pub(super) fn new(sequential: bool) -> Self {
        Self {
            phase: Phase::New,
            range: 0..0,
            version: None,
            part_bytes: 1,
            sequential,
            parts: 0,
            next: 0,
            merged: 0,
            waiting: BTreeMap::new(),
            total: None,
            busy: 0,
            restart: false,
            failure: None,
        }
    }
}
