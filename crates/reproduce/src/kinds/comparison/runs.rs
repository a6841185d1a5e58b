//! Runs of a comparison, and the tables of their results.

use super::{ComparedRow, ComparedTable, TablePlan};
use crate::caching::pcm_chips;
use crate::describe::{Comparison, MetricExpr, RunView, Variant, WorkloadSpec};
use crate::pool::{JobPool, PoolJob};
use crate::sweep::{AvailableWorkload, RunMetrics, WorkloadStats};
use crate::{Error, Result};
use frit_core::HintRange;
use frit_engine::LoopMode;
use frit_replay::{RunOptions, Session, WarmUp};
use frit_stack::Stack;
use frit_trace::Fit;

/// Chip sizes are multiples of this, in bytes.
const CHIP_STEP: u64 = 4 << 20;

/// An available workload.
pub(super) struct ComparisonWorkload<'a> {
    pub(super) spec: &'a WorkloadSpec,
    pub(super) input: Box<AvailableWorkload>,
    pub(super) facts: WorkloadStats,
}

/// Parameters of a run: view, workload, and variant.
pub(super) type RunRequest<'a> = (&'a RunView, &'a ComparisonWorkload<'a>, Variant);

/// A value of a run: view, variant, and expression.
pub(super) type RunValue<'a> = (&'a str, &'a str, &'a MetricExpr);

/// Runs of a comparison, with their results.
pub(super) struct ComparisonRuns<'a> {
    pub(super) comparison: &'a Comparison,
    pub(super) pool: &'a mut JobPool<RunMetrics>,
    pub(super) seed: u64,
}

impl<'a> ComparisonRuns<'a> {
    /// Adds the runs that a metric of a variant needs.
    pub(super) fn want<'h>(
        &self,
        (view, variant, value): RunValue<'_>,
        h: &'h ComparisonWorkload<'h>,
        here: &'h [ComparisonWorkload<'h>],
        wanted: &mut Vec<RunRequest<'h>>,
    ) -> Result<()>
    where
        'a: 'h,
    {
        let view = self.comparison.view(view)?;
        wanted.push((view, h, self.comparison.variant(variant)?.clone()));
        // A relative value needs the run of its baseline as well.
        if let Some((variant, h)) = baseline(variant, value, h, here) {
            wanted.push((view, h, self.comparison.variant(variant)?.clone()));
        }
        Ok(())
    }

    pub(super) fn want_table<'h>(
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
                        self.want((view, variant, &c.value), h, here, wanted)?;
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

    /// Returns a metric of a run.
    pub(super) fn metric(
        &self,
        view: &str,
        variant: &str,
        name: &str,
        h: &ComparisonWorkload<'_>,
    ) -> Result<f64> {
        let (view, variant) = (self.comparison.view(view)?, self.comparison.variant(variant)?);
        Ok(self.figures(&(view, h, variant.clone()))?.get(name))
    }

    pub(super) fn value(
        &self,
        (view, variant, value): RunValue<'_>,
        h: &ComparisonWorkload<'_>,
        here: &[ComparisonWorkload<'_>],
    ) -> Result<Option<f64>> {
        let view = self.comparison.view(view)?;
        let of = |name: &str, h: &ComparisonWorkload<'_>| -> Result<RunMetrics> {
            self.figures(&(view, h, self.comparison.variant(name)?.clone()))
        };
        let figures = of(variant, h)?;
        let base = match baseline(variant, value, h, here) {
            Some((variant, h)) => Some(of(variant, h)?),
            None if value.against_workload.is_some() => return Ok(None),
            None => None,
        };
        let get = |f: &RunMetrics, n: &str| f.get(n);
        let base = base.as_ref().map(|b| move |n: &str| get(b, n));
        Ok(value.of(&|n| figures.get(n), base.as_ref().map(|b| b as &dyn Fn(&str) -> f64)))
    }

    pub(super) fn table(&self, t: &TablePlan, here: &[ComparisonWorkload<'_>]) -> Result<ComparedTable> {
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
                    let values = t.columns.iter().map(|c| self.value((view, variant, &c.value), h, here));
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

    fn stack(&self, (view, h, variant): &RunRequest<'_>) -> Result<Stack> {
        let c = self.comparison;
        let mut sets: Vec<String> =
            [&c.set, &view.set, &variant.set, &h.spec.set].into_iter().flatten().cloned().collect();
        let name = variant.stack.as_ref().unwrap_or(&c.stack);
        let plain = Stack::load(name, &sets).map_err(Box::new)?;
        let Some(packed) = view.packed else { return Ok(plain) };
        let bytes = (h.facts.chunks.bytes() as f64 * packed.times) as u64;
        let chip = bytes.div_ceil(pcm_chips(&plain)).next_multiple_of(CHIP_STEP);
        sets.push(format!("media.pcm.chip_bytes={chip}"));
        Ok(Stack::load(name, &sets).map_err(Box::new)?)
    }

    fn key(&self, stack: &Stack, (view, h, _): &RunRequest<'_>) -> String {
        let packed = view.packed.is_some();
        // Runs of different variants with equal stacks share a key, and so a result.
        let warm = view.warm.as_deref().unwrap_or_default();
        let (name, hash) = (h.spec.name.as_str(), stack.identity().sha256);
        let (depth, open) = (view.depth, if view.open { "open" } else { "closed" });
        format!("{name} {hash} {depth} {open} {packed} {warm} {}", self.seed)
    }

    fn job<'h>(&self, wanted: &RunRequest<'h>) -> Result<PoolJob<'h, RunMetrics>> {
        let stack = self.stack(wanted)?;
        let key = self.key(&stack, wanted);
        let (view, h, variant) = wanted;
        let of: Vec<&str> = variant.stack.iter().chain(&variant.set).map(String::as_str).collect();
        let of = if of.is_empty() { String::new() } else { format!(", {}", of.join(" ")) };
        let about = format!("{}, {}{of}", h.spec.name, view.name);
        let mode = if view.open {
            LoopMode::Open { speed: 1.0, depth: Some(view.depth) }
        } else {
            LoopMode::Closed { depth: view.depth }
        };
        let described = |why: String| Error::Description { name: self.comparison.name.clone(), why };
        let warm: WarmUp =
            view.warm.as_deref().map_or(Ok(WarmUp::default()), str::parse).map_err(described)?;
        let hints: Vec<HintRange> = h
            .spec
            .hinted
            .iter()
            .map(|text| text.parse())
            .collect::<std::result::Result<_, _>>()
            .map_err(described)?;
        let options = RunOptions { mode, warm, seed: self.seed, ..RunOptions::default() };
        let (h, packed) = (*h, view.packed.is_some());
        let run = move || {
            let mut session = Session::new(&stack, &options)?;
            session.set_hints(&hints);
            let workload = if packed { h.input.packed(&h.facts.chunks, false)? } else { h.input.open()? };
            let mut workload = workload.fit(Fit::Strict, session.sectors(), None)?;
            Ok(RunMetrics::of(&session.measure(&mut workload, &mut |_| {})?))
        };
        Ok(PoolJob { key, about, run: Box::new(run) })
    }
}

/// Returns the variant and workload of the baseline of a value; `None` if it has none, or if the
/// workload is not available.
fn baseline<'h, 'v>(
    variant: &'v str,
    value: &'v MetricExpr,
    h: &'h ComparisonWorkload<'h>,
    here: &'h [ComparisonWorkload<'h>],
) -> Option<(&'v str, &'h ComparisonWorkload<'h>)> {
    let workload = match &value.against_workload {
        Some(name) => here.iter().find(|h| h.spec.name == *name)?,
        None => h,
    };
    let given = value.against.is_some() || value.against_workload.is_some();
    given.then(|| (value.against.as_deref().unwrap_or(variant), workload))
}

/// Returns `true` if a list contains a workload, or if there is no list.
pub(super) fn includes_workload(list: Option<&[String]>, h: &ComparisonWorkload<'_>) -> bool {
    list.is_none_or(|l| l.contains(&h.spec.name))
}
