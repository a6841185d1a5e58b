//! Options of a reproduction, and everything that its experiments share.

use crate::caching::CacheRunResults;
use crate::describe::WorkloadSpec;
use crate::findings::RunDoubts;
use crate::pool::JobPool;
use crate::sweep::{RunMetrics, SweepRunner, Traces};
use crate::workloads::WorkloadLog;

/// Parameters of a reproduction.
#[derive(Clone, Default, Debug)]
pub struct ReproduceOptions {
    /// Locations of recordings.
    pub traces: Traces,
    /// `true`: reduced requests, workloads, rounds and cases.
    pub quick: bool,
    /// Seed of the volumes' initial states, instead of the sweeps' own.
    pub seed: Option<u64>,
}

/// State that the experiments of a reproduction share.
pub(crate) struct Workbench {
    pub(crate) options: ReproduceOptions,
    /// Runs of sweeps.
    pub(crate) sweeps: SweepRunner,
    /// Runs of studies of caches.
    pub(crate) caches: CacheRunResults,
    /// Runs of comparisons.
    pub(crate) comparisons: JobPool<RunMetrics>,
    /// Workloads that were run, and missing ones.
    pub(crate) log: WorkloadLog,
}

impl ReproduceOptions {
    /// Returns `true` if a workload is run. A quick run has only these, and those of the user.
    pub(crate) fn includes(&self, w: &WorkloadSpec, quick: &[String]) -> bool {
        !self.quick || quick.contains(&w.name) || self.traces.named.contains_key(&w.name)
    }
}

impl Workbench {
    /// Returns a workbench without results.
    pub(crate) fn new(options: ReproduceOptions) -> Workbench {
        Workbench {
            sweeps: SweepRunner::new(options.traces.clone(), options.quick, options.seed),
            caches: CacheRunResults::default(),
            comparisons: JobPool::default(),
            log: WorkloadLog::default(),
            options,
        }
    }

    /// Returns the runs since the last call, with the doubts about them.
    pub(crate) fn take_runs(&mut self) -> Vec<RunDoubts> {
        let compared = self.comparisons.take_asked();
        let compared = compared.map(|(about, run)| RunDoubts { about, doubts: run.doubts().to_vec() });
        let cached = self.caches.take_asked();
        let cached = cached.filter_map(|(about, run)| Some(RunDoubts { about, doubts: run.doubts.clone()? }));
        self.sweeps.take_runs().into_iter().chain(compared).chain(cached).collect()
    }
}
