//! Work items: a case, its requests, and the run in its mode.

use crate::block::case::{TortureCase, TortureMode};
use crate::block::crash_image::TearGranularity;
use crate::block::medium::SharedMedium;
use crate::block::options::CampaignOptions;
use crate::block::report::{FailedCase, Tally};
use crate::block::self_describing::PER_BLOCK;
use crate::block::target::TortureTarget;
use crate::block::violation::{Oracle, Violation};
use crate::block::workload::{ClientRequest, ClientRequestKind, WorkloadMix};
use frit_core::split_mix::mix;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A work item: one case of a target, and its counts.
pub(crate) struct WorkItem<'a> {
    pub(crate) target: &'a dyn TortureTarget,
    pub(crate) options: &'a CampaignOptions,
    pub(crate) case: TortureCase,
    pub(crate) tally: Tally,
}

/// Runs code of the layer and reports a panic as a violation.
pub(crate) fn guarded<T>(f: impl FnOnce() -> Result<T, Violation>) -> Result<T, Violation> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string()))
            .unwrap_or_default();
        Err(Violation::new(Oracle::Panic, format!("panicked: {text}")))
    })
}

impl WorkItem<'_> {
    /// Returns the seed of a part of this item.
    pub(crate) fn seed(&self, part: u64) -> u64 {
        let number = u64::from(self.case.number) << 8 | self.case.mode.letter() as u64;
        mix(mix(self.options.seed ^ mix(number)) ^ part)
    }

    pub(crate) fn found(&mut self, case: TortureCase, violation: Violation) {
        self.tally.found.push(FailedCase { case, violation, shrunk: None, requests: Vec::new() });
    }

    pub(crate) fn done(&self) -> bool {
        self.options.first_only && !self.tally.found.is_empty() || self.tally.found.len() >= 20
    }

    /// Returns the granularity at which a power cut tears writes.
    pub(crate) fn tearing(&self) -> TearGranularity {
        // A quarter of the workloads assume that whole cache lines persist or are lost.
        let word_bytes = if self.seed(3).is_multiple_of(4) { 64 } else { 8 };
        TearGranularity { word_bytes: self.options.word_bytes.unwrap_or(word_bytes), paired_pages: false }
    }

    /// Returns all requests of an epoch.
    fn all_requests(&self, epoch: u32, blocks: u64) -> Vec<ClientRequest> {
        let mut rng = SmallRng::seed_from_u64(self.seed(100 + u64::from(epoch)));
        let mix = WorkloadMix::draw(&mut rng, self.case.mode == TortureMode::Exhaustive);
        let mut all = mix.requests(&mut rng, blocks);
        if self.case.mode == TortureMode::Files {
            for _ in 0..rng.random_range(0..6) {
                let at = rng.random_range(0..=all.len());
                all.insert(at, ClientRequestKind::Flush.without_range());
            }
        }
        // The layer is halted once or twice. The data that is certain after a halt must not depend
        // on an earlier halt, even if the requests between the two only discard blocks.
        if rng.random_bool(0.4) {
            let at = rng.random_range(0..=all.len());
            let mut halts = vec![ClientRequestKind::Halt.without_range()];
            if rng.random_bool(0.5) {
                let first = rng.random_range(0..blocks) * PER_BLOCK as u64;
                let sectors =
                    (rng.random_range(1..9) * PER_BLOCK as u64).min(blocks * PER_BLOCK as u64 - first);
                halts.push(ClientRequest { first, sectors, ..ClientRequestKind::Discard.without_range() });
                halts.push(ClientRequestKind::Step(rng.random_range(1..60)).without_range());
                halts.push(ClientRequestKind::Halt.without_range());
            }
            all.splice(at..at, halts);
        }
        all
    }

    /// Returns the requests of an epoch, without those that were removed by shrinking.
    pub(crate) fn requests(&self, epoch: u32, blocks: u64) -> Vec<ClientRequest> {
        let all = self.all_requests(epoch, blocks);
        if epoch != self.case.epoch || self.case.keep.is_empty() {
            return all;
        }
        self.case.keep.iter().filter_map(|&i| all.get(i as usize).copied()).collect()
    }

    /// Runs the item in its mode.
    pub(crate) fn run(&mut self) {
        match self.case.mode {
            TortureMode::Cuts | TortureMode::Exhaustive => self.cuts(),
            TortureMode::Files => self.files(),
            TortureMode::Damage => self.damage(),
            TortureMode::Errors => self.errors(),
            TortureMode::Wear => self.wear(),
        }
    }
}

/// Returns the requests of a case before shrinking.
pub(crate) fn original_requests(
    target: &dyn TortureTarget,
    options: &CampaignOptions,
    case: &TortureCase,
) -> Option<Vec<ClientRequest>> {
    let layer = target.build(&target.blank_stores()).ok()?;
    let blocks = layer.info().sectors / PER_BLOCK as u64;
    let item = WorkItem { target, options, case: case.clone(), tally: Tally::default() };
    Some(item.all_requests(case.epoch, blocks))
}

/// Returns media whose base has the same contents.
pub(crate) fn copy(stores: &[SharedMedium], target: &dyn TortureTarget) -> Vec<SharedMedium> {
    let copies = target.blank_stores();
    for (to, from) in copies.iter().zip(stores) {
        let from = from.lock();
        let mut to = to.lock();
        to.volatile = from.volatile;
        to.copy_from(&from);
    }
    copies
}
