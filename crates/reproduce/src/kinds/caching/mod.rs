//! Metrics over studies of caches.

mod judge;
mod outcome;
mod present;
mod split;
mod workloads;

pub use outcome::{CachedWorkload, CachingOutcome, CachingRow, CachingView, MeanChange, MetricChange};
pub use split::{ConstantsSplit, SplitOutcome, SplitRow};
pub(super) use workloads::{StudyWorkload, cache_bytes, study_workloads};

use super::{Measure, Subject};
use crate::caching::{CacheMetric, CacheRun, CacheRunResults, CheckedRun};
use crate::describe::{Claim, PolicySpec, Study, View};
use crate::pool::PoolJob;
use crate::workbench::Workbench;
use crate::{Error, Result, builtin};
use frit_trace::identity::WorkloadKind;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Metrics over a study: for each view and metric a table of workloads by policies.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CachingPlan {
    /// Name of the study.
    pub study: String,
    /// Views in the output.
    pub views: Vec<String>,
    /// Policies in the output.
    pub policies: Vec<String>,
    /// Names of the metrics: see [`crate::caching::CacheMetric`].
    pub metrics: Vec<String>,
    /// Workloads in the output; absent: all.
    pub workloads: Option<Vec<String>>,
    /// Sizes of caches, as multiples of the workload's.
    #[serde(default = "as_it_is")]
    pub sizes: Vec<f64>,
    /// Baseline policy, to which the others are relative, in the first metric.
    pub by: Option<String>,
    /// Claim to be judged.
    pub judged: Option<JudgedChange>,
    /// Policy whose evictions are shown by reason.
    pub reasons: Option<String>,
    /// Choice of the best policy on some workloads, and its result on the others.
    pub split: Option<ConstantsSplit>,
}

/// A claim about the first metric of a policy relative to that of the baseline `by`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JudgedChange {
    /// The policy.
    pub policy: String,
    /// Published changes in percent, by the paper's workload.
    pub published: BTreeMap<String, f64>,
    /// Tolerance in percentage points.
    pub within: f64,
}

fn as_it_is() -> Vec<f64> {
    vec![1.0]
}

impl Measure for CachingPlan {
    type Data = CachingOutcome;

    fn is_about_time(&self, _claims: &[Claim]) -> bool {
        let about_time = |m: &String| matches!(m.parse(), Ok(CacheMetric::Time | CacheMetric::Response));
        self.metrics.iter().any(about_time)
    }

    fn measure(
        &self,
        subject: Subject<'_>,
        bench: &mut Workbench,
        note: &mut dyn FnMut(&str),
    ) -> Result<CachingOutcome> {
        let bad = |why: String| Error::Description { name: subject.id.into(), why };
        let study = builtin::study(&self.study)?;
        let metric =
            |m: &String| m.parse::<CacheMetric>().map_err(|_| bad(format!("there is no metric '{m}'")));
        let metrics: Vec<CacheMetric> = self.metrics.iter().map(metric).collect::<Result<_>>()?;
        let policy = |n: &String| study.policy(n).ok_or_else(|| bad(format!("there is no policy '{n}'")));
        let policies: Vec<&PolicySpec> = self.policies.iter().map(policy).collect::<Result<_>>()?;
        let view = |n: &String| study.view(n).ok_or_else(|| bad(format!("there is no view '{n}'")));
        let views: Vec<&View> = self.views.iter().map(view).collect::<Result<_>>()?;
        let here = study_workloads(&study, self.workloads.as_deref(), bench)?;
        let quick = bench.options.quick;
        let mut sizes = self.sizes.clone();
        if quick {
            sizes.truncate(2);
        }
        let runs = StudyRuns { study: &study, policies, sizes, quick };
        let mut jobs = Vec::new();
        for h in &here {
            for view in &views {
                jobs.extend(runs.jobs(h, view));
            }
        }
        bench.caches.run(jobs, note)?;
        let mut shown = Vec::new();
        for view in views {
            let mut rows: Vec<CachingRow> =
                here.iter().flat_map(|h| runs.rows(h, view, &bench.caches)).collect();
            for row in &mut rows {
                row.judged = self.judged.as_ref().and_then(|j| judge(j, self, metrics.first(), row));
            }
            let mean = mean(&rows);
            let split = self.split.as_ref().map(|s| s.of(self, metrics.first(), &rows));
            shown.push(CachingView { view: view.name.clone(), about: view.about.clone(), rows, mean, split });
        }
        let claims = judge::claims(subject, self, metrics.first().copied(), &shown)?;
        Ok(CachingOutcome {
            claims,
            reasons: self.reasons.clone(),
            study: study.name.clone(),
            readings: study.readings.clone(),
            metrics,
            policies: self.policies.clone(),
            by: self.by.clone(),
            workloads: here.into_iter().map(|h| h.facts).collect(),
            views: shown,
        })
    }
}

/// Runs of an experiment over a study: for each workload and view a run of each size and policy.
struct StudyRuns<'a> {
    study: &'a Study,
    policies: Vec<&'a PolicySpec>,
    /// Sizes of caches, as multiples of the workload's.
    sizes: Vec<f64>,
    quick: bool,
}

impl StudyRuns<'_> {
    fn run(&self, h: &StudyWorkload<'_>, view: &View, policy: &PolicySpec, times: f64) -> CacheRun {
        CacheRun {
            stack: self.study.stack.clone(),
            set: [&self.study.set, &view.set, &policy.set].into_iter().flatten().cloned().collect(),
            cache_bytes: cache_bytes(self.study, h, times, self.quick),
            host: view.host,
        }
    }

    /// Returns the runs of a workload in a view as jobs.
    fn jobs<'a>(&self, h: &'a StudyWorkload<'_>, view: &View) -> Vec<PoolJob<'a, CheckedRun>> {
        let mut out = Vec::new();
        for &times in &self.sizes {
            for policy in &self.policies {
                let mut about = format!("{}, {}, {}", h.spec.name, view.name, policy.name);
                if self.sizes.len() > 1 {
                    about += &format!(", cache × {times}");
                }
                out.push(self.run(h, view, policy, times).job(&h.spec.name, about, &h.input));
            }
        }
        out
    }

    /// Returns the rows of a workload in a view, one for each size, without a judgement.
    fn rows(&self, h: &StudyWorkload<'_>, view: &View, results: &CacheRunResults) -> Vec<CachingRow> {
        let mut rows = Vec::new();
        for &times in &self.sizes {
            let result = |p: &&PolicySpec| {
                let run = self.run(h, view, p, times);
                results.get(&run.key(&h.spec.name)).map(|run| run.result)
            };
            rows.push(CachingRow {
                workload: h.spec.name.clone(),
                kind: h.input.kind,
                stands_for: h.spec.stands_for.clone(),
                times,
                cache_bytes: cache_bytes(self.study, h, times, self.quick),
                found: self.policies.iter().filter_map(result).collect(),
                judged: None,
            });
        }
        rows
    }
}

/// Returns the judged change of a row; `None` without a base above zero.
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
