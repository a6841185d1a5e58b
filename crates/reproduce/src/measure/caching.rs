//! Measurement of metrics over studies of caches.

use crate::caching::{CacheMetric, CacheRun, CacheRunResults};
use crate::describe::{
    CacheSize, CachingPlan, Experiment, JudgedChange, PolicySpec, Study, View, WorkloadSpec,
};
use crate::outcome::{
    CachedWorkload, CachingOutcome, CachingRow, CachingView, MeanChange, MetricChange, Reproduction,
};
use crate::sweep::{AvailableWorkload, Traces, share};
use crate::{Error, Result, catalogue};
use frit_trace::ReqOp;
use frit_trace::identity::WorkloadKind;

/// Minimum cache size, in bytes: a smaller cache holds less than a bucket's blocks.
const CACHE_LEAST: u64 = 1 << 20;

/// An available workload.
pub(super) struct StudyWorkload<'a> {
    pub(super) spec: &'a WorkloadSpec,
    pub(super) input: Box<AvailableWorkload>,
    pub(super) facts: CachedWorkload,
}

pub(super) fn caching(
    e: &Experiment,
    plan: &CachingPlan,
    (traces, quick): (&Traces, bool),
    cells: &mut CacheRunResults,
    out: &mut Reproduction,
    note: &mut dyn FnMut(&str),
) -> Result<CachingOutcome> {
    let bad = |why: String| Error::Description { name: e.id.clone(), why };
    let study = catalogue::study(&plan.study)?;
    let metric = |m: &String| m.parse::<CacheMetric>().map_err(|_| bad(format!("there is no metric '{m}'")));
    let metrics: Vec<CacheMetric> = plan.metrics.iter().map(metric).collect::<Result<_>>()?;
    let policy = |n: &String| study.policy(n).ok_or_else(|| bad(format!("there is no policy '{n}'")));
    let policies: Vec<&PolicySpec> = plan.policies.iter().map(policy).collect::<Result<_>>()?;
    let view = |n: &String| study.view(n).ok_or_else(|| bad(format!("there is no view '{n}'")));
    let views: Vec<&View> = plan.views.iter().map(view).collect::<Result<_>>()?;
    let here = find(&study, plan.workloads.as_deref(), traces, quick, out)?;
    let mut sizes = plan.sizes.clone();
    if quick {
        sizes.truncate(2);
    }
    let cell = |h: &StudyWorkload<'_>, view: &View, policy: &PolicySpec, times: f64| CacheRun {
        stack: study.stack.clone(),
        set: [&study.set, &view.set, &policy.set].into_iter().flatten().cloned().collect(),
        cache_bytes: cache_bytes(&study, h, times, quick),
        host: view.host,
    };
    let mut jobs = Vec::new();
    for h in &here {
        for view in &views {
            for &times in &sizes {
                jobs.extend(policies.iter().map(|p| cell(h, view, p, times).job(&h.spec.name, &h.input)));
            }
        }
    }
    cells.run(jobs, note)?;
    let mut shown = Vec::new();
    for view in views {
        let mut rows = Vec::new();
        for h in &here {
            for &times in &sizes {
                let cell = |p: &&PolicySpec| cell(h, view, p, times);
                let found =
                    policies.iter().filter_map(|p| cells.get(&cell(p).key(&h.spec.name))).copied().collect();
                let mut row = CachingRow {
                    workload: h.spec.name.clone(),
                    kind: h.input.kind,
                    stands_for: h.spec.stands_for.clone(),
                    cache_bytes: cache_bytes(&study, h, times, quick),
                    found,
                    judged: None,
                };
                row.judged = plan.judged.as_ref().and_then(|j| judge(j, plan, metrics.first(), &row));
                rows.push(row);
            }
        }
        let mean = mean(&rows);
        shown.push(CachingView { view: view.name.clone(), about: view.about.clone(), rows, mean });
    }
    Ok(CachingOutcome {
        study: study.name.clone(),
        readings: study.readings.clone(),
        metrics,
        policies: plan.policies.clone(),
        by: plan.by.clone(),
        workloads: here.into_iter().map(|h| h.facts).collect(),
        views: shown,
    })
}

/// Returns the available workloads of a figure.
pub(super) fn find<'a>(
    study: &'a Study,
    only: Option<&[String]>,
    traces: &Traces,
    quick: bool,
    out: &mut Reproduction,
) -> Result<Vec<StudyWorkload<'a>>> {
    let limit = quick.then_some(study.quick.requests);
    let shown = |w: &&WorkloadSpec| only.is_none_or(|only| only.contains(&w.name));
    let named = |w: &WorkloadSpec| traces.named.contains_key(&w.name);
    let wanted = |w: &&WorkloadSpec| !quick || study.quick.workloads.contains(&w.name) || named(w);
    let specs = study.workloads.iter().filter(shown).filter(wanted);
    let here = super::find(specs, traces, limit, out)?.into_iter();
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

pub(super) fn cache_bytes(study: &Study, h: &StudyWorkload<'_>, times: f64, quick: bool) -> u64 {
    let bytes = match h.spec.cache {
        Some(CacheSize::Bytes(n)) if quick => n / study.quick.cache_by,
        Some(CacheSize::Bytes(n)) => n,
        Some(CacheSize::Share(s)) => (h.facts.asked_bytes as f64 * s) as u64,
        None => 0,
    };
    // Whole blocks of 4 KiB.
    ((bytes as f64 * times) as u64).max(CACHE_LEAST) / 4096 * 4096
}

fn judge(
    j: &JudgedChange,
    plan: &CachingPlan,
    metric: Option<&CacheMetric>,
    row: &CachingRow,
) -> Option<MetricChange> {
    let at = |name: &str| {
        let column = plan.policies.iter().position(|p| p == name)?;
        Some(metric?.of(row.found.get(column)?))
    };
    // Without a base above zero there is no relative change.
    let base = at(plan.by.as_deref()?).filter(|b| *b > 0.0)?;
    let measured = (at(&j.policy)? / base - 1.0) * 100.0;
    let published = row.stands_for.as_ref().and_then(|s| j.published.get(s)).copied();
    let near = |p: f64| (measured - p).abs() <= j.within;
    Some(MetricChange {
        measured,
        published,
        direction: published.map(|p| (p < 0.0) == (measured < 0.0)),
        // Recordings are only parts of the paper's workloads, so their values are not judged.
        value: published.filter(|_| row.kind == WorkloadKind::Generated).map(near),
    })
}

/// Returns the mean over generated workloads that stand for the paper's.
fn mean(rows: &[CachingRow]) -> Option<MeanChange> {
    let about = |r: &CachingRow| {
        let j = r.judged?;
        Some((r.workload.clone(), j.measured, j.published?))
    };
    let of: Vec<_> = rows.iter().filter(|r| r.kind == WorkloadKind::Generated).filter_map(about).collect();
    let n = of.len() as f64;
    (!of.is_empty()).then(|| MeanChange {
        measured: of.iter().map(|o| o.1).sum::<f64>() / n,
        published: of.iter().map(|o| o.2).sum::<f64>() / n,
        of: of.into_iter().map(|o| o.0).collect(),
    })
}
