//! Counts and violations of a campaign.

use crate::block::case::TortureCase;
use crate::block::oracle::ImageState;
use crate::block::violation::{Oracle, Violation};
use serde::Serialize;
use std::collections::HashSet;

/// A violation and the case that reproduces it.
#[derive(Clone, Debug, Serialize)]
pub struct FailedCase {
    /// Case that reproduces the violation.
    pub case: TortureCase,
    /// Promise that does not hold.
    pub violation: Violation,
    /// The same case with fewer requests, if it was reduced.
    pub shrunk: Option<TortureCase>,
    /// Description of the requests that are left, or of the commands around the cut.
    pub requests: Vec<String>,
}

/// Counts of one work item.
#[derive(Default, Debug)]
pub struct Tally {
    pub(crate) images: u64,
    pub(crate) image_hashes: Vec<u64>,
    pub(crate) state_hashes: Vec<u64>,
    pub(crate) read_bytes: u64,
    pub(crate) cuts: u64,
    pub(crate) repeated: u64,
    pub(crate) nested: u64,
    pub(crate) requests: u64,
    pub(crate) commands: u64,
    pub(crate) faults: u64,
    pub(crate) faults_struck: u64,
    pub(crate) faults_seen: u64,
    pub(crate) found: Vec<FailedCase>,
}

impl Tally {
    /// Counts an examined image.
    pub(crate) fn image(&mut self, seen: &ImageState) {
        self.images += 1;
        self.image_hashes.push(seen.image);
        self.state_hashes.push(seen.state);
        self.read_bytes += seen.read_bytes;
    }
}

/// Result of a campaign.
#[derive(Clone, Default, Debug, Serialize)]
pub struct CampaignReport {
    /// Number of workloads.
    pub workloads: u32,
    /// Number of recorded requests of clients.
    pub requests: u64,
    /// Number of media commands that the requests issued.
    pub commands: u64,
    /// Number of cuts that were chosen.
    pub cuts: u64,
    /// Number of images equal to an earlier one, with the same acknowledgements. They are not
    /// examined again.
    pub repeated: u64,
    /// Number of images that were recovered and examined.
    pub images: u64,
    /// Number of these images that come from cuts of recoveries.
    pub nested: u64,
    /// Number of images that differ in what recovery read.
    pub distinct_images: usize,
    /// Number of images that differ in their contents after recovery.
    pub distinct_states: usize,
    /// Bytes that recoveries read.
    pub read_bytes: u64,
    /// Number of planned faults.
    pub faults: u64,
    /// Number of planned faults that struck.
    pub faults_struck: u64,
    /// Number of faults that an error or a check reported; the others did no harm.
    pub faults_seen: u64,
    /// Elapsed wall-clock time in seconds.
    pub seconds: f64,
    /// Violations, in the order of their cases.
    pub violations: Vec<FailedCase>,
}

impl CampaignReport {
    /// Returns the number of violations of each oracle, highest first.
    #[must_use]
    pub fn by_oracle(&self) -> Vec<(Oracle, usize)> {
        let mut all: Vec<(Oracle, usize)> = Vec::new();
        for f in &self.violations {
            match all.iter_mut().find(|(o, _)| *o == f.violation.oracle) {
                Some((_, n)) => *n += 1,
                None => all.push((f.violation.oracle, 1)),
            }
        }
        all.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
        all
    }

    /// Returns the number of images examined per second.
    #[must_use]
    pub fn images_per_second(&self) -> f64 {
        self.images as f64 / self.seconds.max(1e-9)
    }
}

/// Sum of the counts of work items.
#[derive(Default)]
pub(crate) struct Total {
    pub(crate) report: CampaignReport,
    images: HashSet<u64>,
    states: HashSet<u64>,
}

impl Total {
    /// Adds the counts of a work item.
    pub(crate) fn add(&mut self, t: Tally) {
        let r = &mut self.report;
        r.workloads += 1;
        r.requests += t.requests;
        r.commands += t.commands;
        r.cuts += t.cuts;
        r.repeated += t.repeated;
        r.images += t.images;
        r.nested += t.nested;
        r.read_bytes += t.read_bytes;
        r.faults += t.faults;
        r.faults_struck += t.faults_struck;
        r.faults_seen += t.faults_seen;
        r.violations.extend(t.found);
        self.images.extend(t.image_hashes);
        self.states.extend(t.state_hashes);
        r.distinct_images = self.images.len();
        r.distinct_states = self.states.len();
    }
}
