//! Comparisons of variants of a stack: runs, tables, claims.

use super::{ReproduceOptions, crossing, find, note_workload, workload_outcome};
use crate::caching::pcm_chips;
use crate::describe::{
    Check, Comparison, ComparisonPlan, Experiment, MetricExpr, RunView, TablePlan, WorkloadSpec,
};
use crate::outcome::{CheckVerdict, ComparedRow, ComparedTable, ComparisonOutcome, Reproduction};
use crate::pool::{Job, JobPool};
use crate::sweep::{Input, RunMetrics, WorkloadStats};
use crate::{Result, catalogue};
use frit_engine::LoopMode;
use frit_replay::{RunOptions, Session};
use frit_stack::Stack;
use frit_trace::Fit;

/// Chip sizes are multiples of this, in bytes.
const CHIP_STEP: u64 = 4 << 20;

/// An available workload.
pub(super) struct ComparisonWorkload<'a> {
    pub(super) spec: &'a WorkloadSpec,
    pub(super) input: Box<Input>,
    facts: WorkloadStats,
}

/// Parameters of a run: view, workload, and overrides in addition to the view's.
pub(super) type RunRequest<'a> = (&'a RunView, &'a ComparisonWorkload<'a>, Vec<String>);

/// Runs of a comparison, with their results.
pub(super) struct ComparisonRuns<'a> {
    comparison: &'a Comparison,
    pool: &'a mut JobPool<RunMetrics>,
    seed: u64,
}

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

impl<'a> ComparisonRuns<'a> {
    /// Adds the runs that a metric of a variant needs.
    fn want<'h>(
        &self,
        view: &str,
        variant: &str,
        value: &MetricExpr,
        h: &'h ComparisonWorkload<'h>,
        wanted: &mut Vec<RunRequest<'h>>,
    ) -> Result<()>
    where
        'a: 'h,
    {
        let view = self.comparison.view(view)?;
        // A relative value needs the run of its baseline as well.
        for name in [Some(variant), value.against.as_deref()].into_iter().flatten() {
            wanted.push((view, h, self.comparison.variant(name)?.set.clone()));
        }
        Ok(())
    }

    fn want_table<'h>(
        &self,
        t: &TablePlan,
        here: &'h [ComparisonWorkload<'h>],
        wanted: &mut Vec<RunRequest<'h>>,
    ) -> Result<()>
    where
        'a: 'h,
    {
        for h in here.iter().filter(|h| includes_workload(t.workloads.as_deref(), h)) {
            for view in &t.views {
                for variant in &t.variants {
                    for c in &t.columns {
                        self.want(view, variant, &c.value, h, wanted)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Runs the jobs that have no result yet.
    pub(super) fn run(&mut self, wanted: &[RunRequest<'_>], note: &mut dyn FnMut(&str)) -> Result<()> {
        let jobs: Result<Vec<_>> = wanted.iter().map(|w| self.job(w)).collect();
        self.pool.run(jobs?, note)
    }

    /// Returns the metrics of a run; zeros if it was not made.
    pub(super) fn figures(&self, wanted: &RunRequest<'_>) -> Result<RunMetrics> {
        let key = self.key(&self.stack(wanted)?, wanted);
        Ok(self.pool.get(&key).cloned().unwrap_or_default())
    }

    fn value(
        &self,
        view: &str,
        variant: &str,
        value: &MetricExpr,
        h: &ComparisonWorkload<'_>,
    ) -> Result<Option<f64>> {
        let view = self.comparison.view(view)?;
        let of = |name: &str| -> Result<RunMetrics> {
            self.figures(&(view, h, self.comparison.variant(name)?.set.clone()))
        };
        let figures = of(variant)?;
        let base = value.against.as_deref().map(of).transpose()?;
        let get = |f: &RunMetrics, n: &str| f.get(n);
        let base = base.as_ref().map(|b| move |n: &str| get(b, n));
        Ok(value.of(&|n| figures.get(n), base.as_ref().map(|b| b as &dyn Fn(&str) -> f64)))
    }

    fn table(&self, t: &TablePlan, here: &[ComparisonWorkload<'_>]) -> Result<ComparedTable> {
        let mut rows = Vec::new();
        for h in here.iter().filter(|h| includes_workload(t.workloads.as_deref(), h)) {
            for view in &t.views {
                let row = |variant: Option<&String>, values| ComparedRow {
                    workload: h.spec.name.clone(),
                    kind: h.input.kind,
                    stands_for: h.spec.stands_for.clone(),
                    view: view.clone(),
                    variant: variant.cloned(),
                    values,
                };
                let mut all = Vec::new();
                for variant in &t.variants {
                    let values = t.columns.iter().map(|c| self.value(view, variant, &c.value, h));
                    all.push((variant, values.collect::<Result<Vec<_>>>()?));
                }
                if t.wide {
                    rows.push(row(None, all.into_iter().flat_map(|(_, v)| v).collect()));
                } else {
                    rows.extend(all.into_iter().map(|(variant, values)| row(Some(variant), values)));
                }
            }
        }
        let columns = t.columns.iter().map(|c| (c.head.clone(), c.digits));
        let digits = t.columns.first().map_or(0, |c| c.digits);
        Ok(ComparedTable {
            about: t.about.clone(),
            columns: match t.wide {
                true => t.variants.iter().map(|v| (v.clone(), digits)).collect(),
                false => columns.collect(),
            },
            rows,
        })
    }

    fn stack(&self, (view, h, set): &RunRequest<'_>) -> Result<Stack> {
        let c = self.comparison;
        let mut sets: Vec<String> =
            [&c.set, &view.set, set, &h.spec.set].into_iter().flatten().cloned().collect();
        let plain = Stack::load(&c.stack, &sets).map_err(Box::new)?;
        let Some(packed) = view.packed else { return Ok(plain) };
        let bytes = (h.facts.chunks.bytes() as f64 * packed.times) as u64;
        let chip = bytes.div_ceil(pcm_chips(&plain)).next_multiple_of(CHIP_STEP);
        sets.push(format!("media.pcm.chip_bytes={chip}"));
        Ok(Stack::load(&c.stack, &sets).map_err(Box::new)?)
    }

    fn key(&self, stack: &Stack, (view, h, _): &RunRequest<'_>) -> String {
        let packed = view.packed.is_some();
        // Runs of different variants with equal stacks share a key, and so a result.
        format!("{} {} {} {packed} {}", h.spec.name, stack.identity().sha256, view.depth, self.seed)
    }

    fn job<'h>(&self, wanted: &RunRequest<'h>) -> Result<Job<'h, RunMetrics>> {
        let stack = self.stack(wanted)?;
        let key = self.key(&stack, wanted);
        let (view, h, set) = wanted;
        let about = format!("{}, {}, {}", h.spec.name, view.name, set.join(" "));
        let mode = LoopMode::Closed { depth: view.depth };
        let options = RunOptions { mode, seed: self.seed, ..RunOptions::default() };
        let (h, packed) = (*h, view.packed.is_some());
        let run = move || {
            let session = Session::new(&stack, &options)?;
            let workload = if packed { h.input.packed(&h.facts.chunks, false)? } else { h.input.open()? };
            let mut workload = workload.fit(Fit::Strict, session.sectors(), None)?;
            Ok(RunMetrics::of(&session.measure(&mut workload, &mut |_| {})?))
        };
        Ok(Job { key, about, run: Box::new(run) })
    }
}

/// Returns `true` if a list contains a workload, or if there is no list.
pub(super) fn includes_workload(list: Option<&[String]>, h: &ComparisonWorkload<'_>) -> bool {
    list.is_none_or(|l| l.contains(&h.spec.name))
}
