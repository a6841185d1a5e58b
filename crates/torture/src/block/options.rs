//! Parameters of a campaign.

use crate::block::case::{TortureCase, TortureMode};
use crate::block::recording_sink::Mutation;
use std::time::Duration;

/// Parameters of a campaign.
#[derive(Clone, Debug)]
pub struct CampaignOptions {
    /// Seed of all random choices.
    pub seed: u64,
    /// Modes to run, in turn.
    pub modes: Vec<TortureMode>,
    /// Number of threads.
    pub threads: usize,
    /// Time after which no further workload begins.
    pub time: Option<Duration>,
    /// Number of workloads after which no further one begins.
    pub items: Option<u32>,
    /// Number of distinct images after which no further workload begins.
    pub images: Option<usize>,
    /// Largest number of cuts of a workload.
    pub cuts_most: Option<usize>,
    /// Interval, in images, at which an image is also rewritten in full.
    pub alive_every: u32,
    /// Interval, in images, at which the recovery of an image is cut as well.
    pub nested_every: u32,
    /// Bytes of PCM that persist as a unit; drawn for each workload if `None`.
    pub word_bytes: Option<u64>,
    /// Stop at the first violation.
    pub first_only: bool,
    /// Report the requests and commands around a violation.
    pub explain: bool,
    /// Reduce failing cases to fewer requests.
    pub shrink: bool,
    /// Bug that the recording sink plants on purpose.
    pub mutation: Option<Mutation>,
}

impl CampaignOptions {
    /// Returns the case of the `n`-th workload. Modes take turns; a mode that is listed twice has
    /// two turns.
    pub(crate) fn case(&self, n: u32) -> TortureCase {
        let turn = n as usize % self.modes.len();
        let mode = self.modes[turn];
        let same = |m: &&TortureMode| **m == mode;
        let all = self.modes.iter().filter(same).count() as u32;
        let before = self.modes[..turn].iter().filter(same).count() as u32;
        TortureCase::workload(mode, n / self.modes.len() as u32 * all + before)
    }
}

impl Default for CampaignOptions {
    fn default() -> Self {
        CampaignOptions {
            seed: 1,
            modes: vec![TortureMode::Cuts],
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            time: None,
            items: None,
            images: None,
            cuts_most: None,
            alive_every: 16,
            nested_every: 64,
            word_bytes: None,
            first_only: false,
            explain: false,
            shrink: false,
            mutation: None,
        }
    }
}
