//! Comparisons of variants of a stack: tables, claims and break-even points of an experiment.

mod crossing;
mod outcome;
mod plan;
mod present;
mod runs;

pub use outcome::{
    BreakEven, CheckVerdict, ComparedRow, ComparedTable, ComparisonOutcome, Crossing, CrossingLine,
    CrossingPoint,
};
pub use plan::{Axis, ComparisonPlan, CrossingPlan, MetricColumn, ReferencePrice, TablePlan};

use super::{Measure, Subject};
use crate::describe::{Check, Claim, Comparison, MetricExpr, WorkloadSpec};
use crate::sweep::WorkloadStats;
use crate::workbench::Workbench;
use crate::workloads::WorkloadOutcome;
use crate::{Result, builtin};
use crossing::crossing;
use frit_replay::RunOptions;
use runs::{ComparisonRuns, ComparisonWorkload};

impl Measure for ComparisonPlan {
    type Data = ComparisonOutcome;

    fn is_about_time(&self, claims: &[Claim]) -> bool {
        let columns = self.tables.iter().flat_map(|t| &t.columns).map(|c| &c.value);
        let checks = claims.iter().flat_map(|c| &c.checks).map(|k| &k.value);
        columns.chain(checks).any(MetricExpr::is_about_time)
    }

    fn measure(
        &self,
        subject: Subject<'_>,
        bench: &mut Workbench,
        note: &mut dyn FnMut(&str),
    ) -> Result<ComparisonOutcome> {
        let comparison = builtin::comparison(&self.of)?;
        let here = available(self, subject.claims, &comparison, bench)?;
        let quick = bench.options.quick;
        let seed = bench.options.seed.unwrap_or(RunOptions::default().seed);
        let mut sheet = ComparisonRuns { comparison: &comparison, pool: &mut bench.comparisons, seed };
        let checks: Vec<(&str, &Check)> =
            subject.claims.iter().flat_map(|c| c.checks.iter().map(|k| (c.id.as_str(), k))).collect();
        let mut wanted = Vec::new();
        for t in &self.tables {
            sheet.want_table(t, &here, &mut wanted)?;
        }
        for (_, k) in &checks {
            for h in here.iter().filter(|h| k.workloads.contains(&h.spec.name)) {
                sheet.want((&k.view, &k.variant, &k.value), h, &here, &mut wanted)?;
            }
        }
        sheet.run(&wanted, note)?;
        let tables = self.tables.iter().map(|t| sheet.table(t, &here)).collect::<Result<_>>()?;
        let mut checked = Vec::new();
        for (claim, k) in checks {
            for h in here.iter().filter(|h| k.workloads.contains(&h.spec.name)) {
                let value = sheet.value((&k.view, &k.variant, &k.value), h, &here)?;
                let counts = match &k.needs {
                    Some(name) => sheet.metric(&k.view, &k.variant, name, h)? != 0.0,
                    None => true,
                };
                checked.push(judge(claim, k, h, value, counts));
            }
        }
        let mut crossings = Vec::new();
        for x in &self.crossings {
            crossings.push(crossing(x, &comparison, &here, &mut sheet, quick, note)?);
        }
        Ok(ComparisonOutcome {
            of: self.of.clone(),
            readings: comparison.readings.clone(),
            tables,
            crossings,
            checks: checked,
        })
    }
}

/// Returns the available workloads of an experiment.
fn available<'a>(
    plan: &ComparisonPlan,
    claims: &[Claim],
    comparison: &'a Comparison,
    bench: &mut Workbench,
) -> Result<Vec<ComparisonWorkload<'a>>> {
    let lists = plan.tables.iter().map(|t| &t.workloads).chain(plan.crossings.iter().map(|x| &x.workloads));
    let lists: Vec<_> = lists.collect();
    let checked: Vec<&String> = claims.iter().flat_map(|c| &c.checks).flat_map(|k| &k.workloads).collect();
    let columns = plan.tables.iter().flat_map(|t| &t.columns).map(|c| &c.value);
    let values = columns.chain(claims.iter().flat_map(|c| &c.checks).map(|k| &k.value));
    let baselines: Vec<&String> = values.filter_map(|v| v.against_workload.as_ref()).collect();
    let shown = |w: &&WorkloadSpec| {
        lists.iter().any(|l| l.as_ref().is_none_or(|l| l.contains(&w.name)))
            || checked.contains(&&w.name)
            || baselines.contains(&&w.name)
    };
    let Workbench { options, log, .. } = bench;
    let quick = &comparison.quick;
    let wanted = |w: &&WorkloadSpec| options.includes(w, &quick.workloads);
    let limit = if options.quick { Some(quick.requests) } else { comparison.limit };
    let chunk = comparison.views.iter().find_map(|v| v.packed).map_or(comparison.page, |p| p.chunk);
    let mut here = Vec::new();
    let specs = comparison.workloads.iter().filter(shown).filter(wanted);
    for (spec, input) in log.find(specs, &options.traces, limit)? {
        let facts = WorkloadStats::of(&mut input.open()?, comparison.page, chunk)?;
        log.note(WorkloadOutcome::of(&comparison.sizes, spec, &input, &facts));
        here.push(ComparisonWorkload { spec, input, facts });
    }
    Ok(here)
}

/// Returns the verdict on a value; none if the run has nothing to judge.
fn judge(
    claim: &str,
    k: &Check,
    h: &ComparisonWorkload<'_>,
    value: Option<f64>,
    counts: bool,
) -> CheckVerdict {
    CheckVerdict {
        claim: claim.to_owned(),
        what: k.what.clone(),
        workload: h.spec.name.clone(),
        kind: h.input.kind,
        variant: k.variant.clone(),
        value,
        published: k.published,
        rule: k.rule(),
        input: k.input,
        holds: value.filter(|_| counts).map(|v| k.holds(v)),
    }
}
