//! Workloads of a study of caches, and the sizes of their caches.

use super::CachedWorkload;
use crate::Result;
use crate::describe::{CacheSize, Study, WorkloadSpec};
use crate::sweep::{AvailableWorkload, share};
use crate::workbench::Workbench;
use frit_trace::ReqOp;

/// Minimum cache size, in bytes: a smaller cache holds less than a bucket's blocks.
const CACHE_LEAST: u64 = 1 << 20;

/// An available workload.
pub(crate) struct StudyWorkload<'a> {
    pub(crate) spec: &'a WorkloadSpec,
    pub(crate) input: Box<AvailableWorkload>,
    pub(crate) facts: CachedWorkload,
}

/// Returns the available workloads of an experiment: those with these names, or all.
pub(crate) fn study_workloads<'a>(
    study: &'a Study,
    only: Option<&[String]>,
    bench: &mut Workbench,
) -> Result<Vec<StudyWorkload<'a>>> {
    let Workbench { options, log, .. } = bench;
    let limit = options.quick.then_some(study.quick.requests);
    let shown = |w: &&WorkloadSpec| only.is_none_or(|only| only.contains(&w.name));
    let wanted = |w: &&WorkloadSpec| options.includes(w, &study.quick.workloads);
    let specs = study.workloads.iter().filter(shown).filter(wanted);
    let here = log.find(specs, &options.traces, limit)?.into_iter();
    here.map(|(spec, input)| Ok(StudyWorkload { spec, facts: facts(spec, &input)?, input })).collect()
}

/// Returns the characteristics of a workload.
fn facts(spec: &WorkloadSpec, input: &AvailableWorkload) -> Result<CachedWorkload> {
    let (mut workload, mut batch) = (input.open()?, Vec::new());
    let (mut requests, mut writes, mut bytes) = (0, 0, 0);
    while workload.fill(&mut batch)? {
        for r in batch.iter().filter(|r| matches!(r.op, ReqOp::Read | ReqOp::Write)) {
            requests += 1;
            writes += u64::from(r.op == ReqOp::Write);
            bytes += r.bytes();
        }
    }
    Ok(CachedWorkload {
        name: spec.name.clone(),
        about: spec.about.clone(),
        kind: input.kind,
        stands_for: spec.stands_for.clone(),
        identity: input.identity.clone(),
        requests,
        write_ratio: share(writes, requests),
        mean_bytes: share(bytes, requests),
        asked_bytes: bytes,
    })
}

/// Returns the size of the cache of a workload, as a multiple of the workload's own, in bytes.
pub(crate) fn cache_bytes(study: &Study, h: &StudyWorkload<'_>, times: f64, quick: bool) -> u64 {
    let bytes = match h.spec.cache {
        Some(CacheSize::Bytes(n)) if quick => n / study.quick.cache_by,
        Some(CacheSize::Bytes(n)) => n,
        Some(CacheSize::Share(s)) => (h.facts.asked_bytes as f64 * s) as u64,
        None => 0,
    };
    // Whole blocks of 4 KiB.
    ((bytes as f64 * times) as u64).max(CACHE_LEAST) / 4096 * 4096
}
