//! Choice of constants on some workloads, and their result on the others.
//!
//! Constants that are chosen on the workloads on which they are reported look better than they are.
//! A split names the workloads of the choice. All other generated workloads that stand for one of
//! the paper's are those of the report.

use super::{CachingPlan, CachingRow};
use crate::caching::CacheMetric;
use frit_trace::identity::WorkloadKind;
use serde::{Deserialize, Serialize};

/// Workloads on which the best policy is chosen.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConstantsSplit {
    /// Their names.
    pub chosen_on: Vec<String>,
}

/// Mean changes of all policies over the two parts of the workloads.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SplitOutcome {
    /// Workloads of the choice.
    pub chosen_on: Vec<String>,
    /// Workloads of the report.
    pub reported_on: Vec<String>,
    /// Rows, one for each policy.
    pub rows: Vec<SplitRow>,
    /// Policy with the best mean over the workloads of the choice.
    pub chosen: Option<String>,
}

/// Mean changes of a policy relative to the baseline, in percent.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SplitRow {
    /// The policy.
    pub policy: String,
    /// Mean over the workloads of the choice.
    pub choice: Option<f64>,
    /// Mean over the workloads of the report.
    pub report: Option<f64>,
}

impl ConstantsSplit {
    /// Computes the means of the first metric.
    pub(super) fn of(
        &self,
        plan: &CachingPlan,
        metric: Option<&CacheMetric>,
        rows: &[CachingRow],
    ) -> SplitOutcome {
        let base = plan.by.as_ref().and_then(|by| plan.policies.iter().position(|p| p == by));
        let change = |r: &CachingRow, column: usize| {
            let of = |column: usize| Some(metric?.of(r.found.get(column)?));
            let base = of(base?).filter(|b| *b > 0.0)?;
            Some((of(column)? / base - 1.0) * 100.0)
        };
        let chooses = |r: &&CachingRow| self.chosen_on.contains(&r.workload);
        let reports =
            |r: &&CachingRow| !chooses(r) && r.kind == WorkloadKind::Generated && r.stands_for.is_some();
        let choice: Vec<&CachingRow> = rows.iter().filter(chooses).collect();
        let report: Vec<&CachingRow> = rows.iter().filter(reports).collect();
        let mean = |rows: &[&CachingRow], column: usize| {
            let all: Vec<f64> = rows.iter().filter_map(|r| change(r, column)).collect();
            (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
        };
        let row = |(column, policy): (usize, &String)| SplitRow {
            policy: policy.clone(),
            choice: mean(&choice, column),
            report: mean(&report, column),
        };
        let means: Vec<SplitRow> = plan.policies.iter().enumerate().map(row).collect();
        let best = means
            .iter()
            .filter(|r| r.choice.is_some())
            .min_by(|a, b| a.choice.unwrap_or(f64::MAX).total_cmp(&b.choice.unwrap_or(f64::MAX)));
        let names = |rows: &[&CachingRow]| rows.iter().map(|r| r.workload.clone()).collect();
        SplitOutcome {
            chosen_on: names(&choice),
            reported_on: names(&report),
            chosen: best.map(|r| r.policy.clone()),
            rows: means,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caching::CacheRunResult;

    #[test]
    fn the_choice_does_not_see_the_workloads_of_the_report() {
        let plan: CachingPlan = toml::from_str(
            "study = \"s\"\nviews = []\npolicies = [\"a\", \"b\", \"c\"]\nmetrics = []\nby = \"a\"\n\
             [split]\nchosen_on = [\"w\"]\n",
        )
        .unwrap();
        let row = |workload: &str, stands_for: Option<&str>, times: [u64; 3]| CachingRow {
            workload: workload.into(),
            kind: WorkloadKind::Generated,
            stands_for: stands_for.map(str::to_owned),
            times: 1.0,
            cache_bytes: 1,
            found: times.map(|time_ns| CacheRunResult { time_ns, ..CacheRunResult::default() }).into(),
            judged: None,
        };
        let rows =
            [row("w", None, [100, 90, 80]), row("x", Some("X"), [100, 50, 150]), row("y", None, [100, 1, 1])];
        let found = plan.split.as_ref().unwrap().of(&plan, Some(&CacheMetric::Time), &rows);
        assert_eq!((found.chosen.as_deref(), &found.reported_on[..]), (Some("c"), &["x".to_owned()][..]));
        let means: Vec<_> = found.rows.iter().map(|r| (r.choice.unwrap(), r.report.unwrap())).collect();
        for (mean, want) in means.iter().zip([(0.0, 0.0), (-10.0, -50.0), (-20.0, 50.0)]) {
            assert!((mean.0 - want.0).abs() < 1e-9 && (mean.1 - want.1).abs() < 1e-9, "{means:?}");
        }
    }
}
