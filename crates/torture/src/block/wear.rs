//! Program and erase failures, factory bad blocks, and worn-out blocks, with and without power
//! cuts, until no spare block is left.

use crate::block::case::TortureCase;
use crate::block::command_set::CommandSet;
use crate::block::history::History;
use crate::block::options::CampaignOptions;
use crate::block::oracle::{ExamineOptions, examine};
use crate::block::recording::add_divisible;
use crate::block::self_describing::PER_BLOCK;
use crate::block::target::TortureTarget;
use crate::block::violation::{Oracle, Violation};
use crate::block::work_item::{WorkItem, guarded};
use crate::block::workload::{Clients, RequestFailure, WorkloadMix, fill_requests, forget_unflushed};
use frit_core::{CrashKind, DurabilityPoint, Error, Sink};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Number of requests after which the run ends if the volume still works.
const REQUESTS: u32 = 4_000;

impl WorkItem<'_> {
    /// Runs the workload on media that wear out.
    pub(crate) fn wear(&mut self) {
        let mut rng = SmallRng::seed_from_u64(self.seed(1));
        let rate = [0.001, 0.004, 0.01][rng.random_range(0..3usize)];
        let Some(nand) = self.target.media().iter().find(|m| m.nand.is_some()) else { return };
        let key = |key: &str, value: String| format!("media.{}.{key}={value}", nand.name);
        let sets = [
            key("program_fail", rate.to_string()),
            key("erase_fail", rate.to_string()),
            key("endurance", rng.random_range(20..200).to_string()),
            key("seed", rng.random_range(1..1_000_000).to_string()),
        ];
        let Some(target) = self.target.variant(&sets) else { return };
        if self.case.cut.is_none() {
            match guarded(|| self.to_the_end(target.as_ref(), &mut rng)) {
                Ok(failures) => {
                    self.tally.faults += failures;
                    self.tally.faults_struck += failures;
                }
                Err(v) => {
                    self.found(self.case.clone(), Violation { what: format!("{sets:?}: {}", v.what), ..v });
                }
            }
        }
        self.under_cuts(target.as_ref());
    }

    /// Runs the usual power cuts on these media.
    fn under_cuts(&mut self, target: &dyn TortureTarget) {
        let options: &CampaignOptions = self.options;
        let case: TortureCase = self.case.clone();
        let mut inner = WorkItem { target, options, case, tally: std::mem::take(&mut self.tally) };
        inner.cuts();
        self.tally = inner.tally;
    }

    /// Writes until the volume refuses writes. All acknowledged data must be readable then, before
    /// and after a restart. Returns the number of bad blocks.
    fn to_the_end(&self, target: &dyn TortureTarget, rng: &mut SmallRng) -> Result<u64, Violation> {
        let stores = target.blank_stores();
        let failed = |doing: &'static str| move |e| Violation::error(Oracle::Alive, doing, &e);
        let mut layer = target.build(&stores).map_err(failed("opening"))?;
        layer.format(&mut Sink::untimed()).map_err(failed("format"))?;
        let blocks = layer.info().sectors / PER_BLOCK as u64;
        let mut clients = Clients::new(History::empty(blocks as usize), 0);
        let mix =
            WorkloadMix { requests: REQUESTS, clients: 2, hot_blocks: 12, most_sectors: 24, discards: 20 };
        let mut requests = fill_requests(blocks);
        requests.extend(mix.requests(rng, blocks));
        let mut lasted = CommandSet::new(requests.len());
        let mut refusals = 0;
        let promise = layer.write_guarantee();
        let late = promise.durable_at == DurabilityPoint::OnFlush;
        let mut flushed = 0;
        for (n, r) in requests.iter().enumerate() {
            match clients.perform(layer.as_mut(), &mut Sink::untimed(), r, n as u32) {
                Ok(()) => {
                    lasted.add(n);
                    if r.kind.makes_certain() {
                        flushed = n;
                    }
                }
                Err(RequestFailure::Error(Error::ReadOnly { .. } | Error::NoSpace { .. })) => {
                    if layer.refuses().is_none() {
                        let what = format!("{r} was refused, and the volume gives no reason");
                        return Err(Violation::new(Oracle::Poisoned, what));
                    }
                    refusals += 1;
                    if refusals > 20 {
                        break;
                    }
                }
                // After a failed flush, a table may name places that were not written, and a cache may refuse
                // to read dirty blocks.
                Err(RequestFailure::Error(Error::Corrupt { .. } | Error::Medium { .. }))
                    if target.commits_at_flush() && layer.refuses().is_some() =>
                {
                    refusals += 1;
                }
                Err(RequestFailure::Error(e)) => {
                    return Err(Violation::error(Oracle::Alive, &r.to_string(), &e));
                }
                Err(RequestFailure::Violation(v)) if refusals == 0 => return Err(v),
                Err(RequestFailure::Violation(_)) => {}
            }
        }
        let mut view = frit_core::visible::StackView::default();
        layer.visible(&mut view);
        let bad = view.media.iter().map(|m| u64::from(m.wear.bad)).sum();
        drop(layer);
        // A request that failed leaves each sector old or new (docs/reference/composition.md, failure).
        let mut divisible = CommandSet::new(requests.len());
        add_divisible(&mut divisible, promise, &requests);
        (0..requests.len()).filter(|&n| !lasted.has(n)).for_each(|n| divisible.add(n));
        clients.history.split(&divisible);
        if late {
            forget_unflushed(&mut lasted, &requests, flushed);
        }
        let depth = ExamineOptions {
            twice: true,
            alive: true,
            worn: true,
            stop: CrashKind::Process,
            seed: rng.random(),
        };
        examine(target, &stores, &clients.history, &lasted, depth)
            .map_err(|v| Violation { what: format!("worn out: {}", v.what), ..v })?;
        Ok(bad)
    }
}
