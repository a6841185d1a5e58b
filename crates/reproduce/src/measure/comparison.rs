//! Comparisons of variants of a stack: tables, claims and break-even points of an experiment.

use super::comparison_runs::{ComparisonRuns, ComparisonWorkload};
use super::{ReproduceOptions, crossing, find, note_workload, workload_outcome};
use crate::describe::{Check, Comparison, ComparisonPlan, Experiment, WorkloadSpec};
use crate::outcome::{CheckVerdict, ComparisonOutcome, Reproduction};
use crate::pool::JobPool;
use crate::sweep::{RunMetrics, WorkloadStats};
use crate::{Result, catalogue};
use frit_replay::RunOptions;

pub(super) fn comparison(
    e: &Experiment,
    plan: &ComparisonPlan,
    how: &ReproduceOptions,
    pool: &mut JobPool<RunMetrics>,
    out: &mut Reproduction,
    note: &mut dyn FnMut(&str),
) -> Result<ComparisonOutcome> {
    let comparison = catalogue::comparison(&plan.of)?;
    let here = here(e, plan, &comparison, how, out)?;
    let seed = how.seed.unwrap_or(RunOptions::default().seed);
    let mut sheet = ComparisonRuns { comparison: &comparison, pool, seed };
    let checks: Vec<(&str, &Check)> =
        e.claims.iter().flat_map(|c| c.checks.iter().map(|k| (c.id.as_str(), k))).collect();
    let mut wanted = Vec::new();
    for t in &plan.tables {
        sheet.want_table(t, &here, &mut wanted)?;
    }
    for (_, k) in &checks {
        for h in here.iter().filter(|h| k.workloads.contains(&h.spec.name)) {
            sheet.want(&k.view, &k.variant, &k.value, h, &mut wanted)?;
        }
    }
    sheet.run(&wanted, note)?;
    let tables = plan.tables.iter().map(|t| sheet.table(t, &here)).collect::<Result<_>>()?;
    let mut checked = Vec::new();
    for (claim, k) in checks {
        for h in here.iter().filter(|h| k.workloads.contains(&h.spec.name)) {
            let value = sheet.value(&k.view, &k.variant, &k.value, h)?;
            checked.push(judge(claim, k, h, value));
        }
    }
    let mut crossings = Vec::new();
    for x in &plan.crossings {
        crossings.push(crossing::crossing(x, &comparison, &here, &mut sheet, how.quick, note)?);
    }
    Ok(ComparisonOutcome {
        of: plan.of.clone(),
        readings: comparison.readings.clone(),
        tables,
        crossings,
        checks: checked,
    })
}

/// Returns the available workloads of an experiment.
fn here<'a>(
    e: &Experiment,
    plan: &ComparisonPlan,
    comparison: &'a Comparison,
    how: &ReproduceOptions,
    out: &mut Reproduction,
) -> Result<Vec<ComparisonWorkload<'a>>> {
    let lists = plan.tables.iter().map(|t| &t.workloads).chain(plan.crossings.iter().map(|x| &x.workloads));
    let lists: Vec<_> = lists.collect();
    let checked: Vec<&String> = e.claims.iter().flat_map(|c| &c.checks).flat_map(|k| &k.workloads).collect();
    let shown = |w: &&WorkloadSpec| {
        lists.iter().any(|l| l.as_ref().is_none_or(|l| l.contains(&w.name))) || checked.contains(&&w.name)
    };
    let named = |w: &WorkloadSpec| how.traces.named.contains_key(&w.name);
    let quick = &comparison.quick;
    let wanted = |w: &&WorkloadSpec| !how.quick || quick.workloads.contains(&w.name) || named(w);
    let limit = if how.quick { Some(quick.requests) } else { comparison.limit };
    let chunk = comparison.views.iter().find_map(|v| v.packed).map_or(comparison.page, |p| p.chunk);
    let mut here = Vec::new();
    let specs = comparison.workloads.iter().filter(shown).filter(wanted);
    for (spec, input) in find(specs, &how.traces, limit, out)? {
        let facts = WorkloadStats::of(&mut input.open()?, comparison.page, chunk)?;
        note_workload(out, workload_outcome(&comparison.sizes, spec, &input, &facts));
        here.push(ComparisonWorkload { spec, input, facts });
    }
    Ok(here)
}

fn judge(claim: &str, k: &Check, h: &ComparisonWorkload<'_>, value: Option<f64>) -> CheckVerdict {
    CheckVerdict {
        claim: claim.to_owned(),
        what: k.what.clone(),
        workload: h.spec.name.clone(),
        kind: h.input.kind,
        variant: k.variant.clone(),
        value,
        published: k.published,
        rule: k.rule(),
        holds: value.map(|v| k.holds(v)),
    }
}
