//! A metric over a sweep: rows, verdicts, means.

mod explain;
mod outcome;
mod present;

pub use outcome::{BandVerdict, FigureOutcome, FigureRow, FigureTable, MeanRow, Verdict};

use super::{Measure, Subject};
use crate::describe::{Claim, Column, ParameterSweep, SweepState, WorkloadSpec};
use crate::sweep::{AvailableWorkload, RunMetrics, SweepCell, SweepRunner, WorkloadLookup, WorkloadStats};
use crate::workbench::Workbench;
use crate::workloads::WorkloadOutcome;
use crate::{Result, builtin};
use explain::{RowRuns, explain};
use frit_trace::identity::WorkloadKind;
use serde::Deserialize;
use std::rc::Rc;

/// A metric over a sweep.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigurePlan {
    /// Name of the sweep.
    pub sweep: String,
    /// Name of the metric: see [`crate::sweep::RunMetrics`].
    pub metric: String,
    /// Baseline column, to which the others are relative; absent: absolute values.
    pub by: Option<String>,
    /// States of the sweep in the output; absent: all.
    pub states: Option<Vec<String>>,
}

impl Measure for FigurePlan {
    type Data = FigureOutcome;

    fn is_about_time(&self, _: &[Claim]) -> bool {
        RunMetrics::is_about_time(&self.metric)
    }

    fn measure(
        &self,
        subject: Subject<'_>,
        bench: &mut Workbench,
        note: &mut dyn FnMut(&str),
    ) -> Result<FigureOutcome> {
        let sweep = builtin::sweep(&self.sweep)?;
        let shown = |s: &&SweepState| self.states.as_ref().is_none_or(|only| only.contains(&s.name));
        let workloads: Vec<WorkloadSpec> = bench.sweeps.workloads(&sweep).cloned().collect();
        let mut tables = Vec::new();
        for state in sweep.states.iter().filter(shown) {
            let mut rows = Vec::new();
            for w in &workloads {
                let Some(found) = available(&sweep, &workloads, w, bench)? else { continue };
                let WorkloadLookup::Available(input) = &*found else { continue };
                for hints in SweepRunner::rows(w, input, state) {
                    let cell = SweepCell { sweep: &sweep, workload: w, hints, state };
                    let facts = bench.sweeps.facts(cell, input)?;
                    bench.log.note(WorkloadOutcome::of(&sweep.sizes, w, input, &facts));
                    rows.push(row(subject.claims, self, cell, input, &facts, &mut bench.sweeps, note)?);
                }
            }
            tables.push(table(subject.claims, &sweep, state, rows));
        }
        Ok(FigureOutcome {
            sweep: self.sweep.clone(),
            metric: self.metric.clone(),
            by: self.by.clone(),
            readings: sweep.readings.clone(),
            tables,
        })
    }
}

/// Returns a workload; `None` if it is missing, which is recorded, or if an available one contains
/// it.
fn available(
    sweep: &ParameterSweep,
    workloads: &[WorkloadSpec],
    w: &WorkloadSpec,
    bench: &mut Workbench,
) -> Result<Option<Rc<WorkloadLookup>>> {
    let found = bench.sweeps.input(sweep, w)?;
    if let WorkloadLookup::Missing(why) = &*found {
        bench.log.note_missing(&w.name, why);
        return Ok(None);
    }
    if let Some(whole) = w.unless.as_ref().and_then(|n| workloads.iter().find(|o| o.name == *n))
        && matches!(&*bench.sweeps.input(sweep, whole)?, WorkloadLookup::Available(_))
    {
        return Ok(None);
    }
    Ok(Some(found))
}

/// Returns the table of a state, with the verdicts on means if its sizes are the paper's.
fn table(claims: &[Claim], sweep: &ParameterSweep, state: &SweepState, rows: Vec<FigureRow>) -> FigureTable {
    let columns: Vec<&Column> = sweep.columns_of(state).collect();
    let judged = claims.iter().filter(|_| state.has_paper_sizes());
    FigureTable {
        state: state.name.clone(),
        about: state.about.clone(),
        means: judged.flat_map(|c| means(c, &columns, &rows)).collect(),
        columns: columns.iter().map(|c| c.head(state)).collect(),
        rows,
    }
}

fn row(
    claims: &[Claim],
    plan: &FigurePlan,
    cell: SweepCell<'_>,
    input: &AvailableWorkload,
    facts: &WorkloadStats,
    runner: &mut SweepRunner,
    note: &mut dyn FnMut(&str),
) -> Result<FigureRow> {
    let mut runs: Vec<(&str, Rc<RunMetrics>)> = Vec::new();
    for column in cell.sweep.columns_of(cell.state) {
        runs.push((&column.name, runner.run(cell, column, input, note)?));
    }
    let value = |name: &str| runs.iter().find(|(n, _)| *n == name).map(|(_, f)| f.get(&plan.metric));
    let values: Vec<f64> = runs.iter().map(|(_, f)| f.get(&plan.metric)).collect();
    let base = plan.by.as_deref().and_then(value).filter(|b| *b != 0.0);
    let relative = base.map(|b| values.iter().map(|v| v / b).collect::<Vec<_>>());
    // Without a baseline, bands are about the values themselves.
    let unit = if plan.by.is_none() { Some(1.0) } else { base };
    let stands_for = cell.workload.stands_for.as_deref();
    let about = claims.iter().filter(|c| c.is_about(stands_for));
    // Published values are comparable only at the paper's sizes; elsewhere only directions are
    // judged.
    let verdicts: Vec<Verdict> = about
        .map(|c| verdict(c, stands_for, &value, unit.filter(|_| cell.state.has_paper_sizes())))
        .collect();
    let threshold = cell.sweep.columns_of(cell.state).map(|c| c.threshold).max().unwrap_or(0);
    let last = cell.sweep.columns_of(cell.state).find(|c| c.threshold == threshold).map(|c| c.name.as_str());
    let at = |name: Option<&str>| runs.iter().find(|(n, _)| Some(*n) == name).map(|(_, f)| &**f);
    let more = cell.sweep.columns_of(cell.state).find(|c| c.pcm > 1.0).map(|c| c.name.as_str());
    let over = claims.iter().find_map(|c| c.direction.as_ref()).map_or(&[][..], |d| &d.over);
    let over = over.iter().filter_map(|c| at(Some(c))).collect();
    // Explanations are given only for rows in which a claim fails or cannot be judged.
    let open = verdicts.iter().any(|v| v.differs() || (v.judged && v.direction.is_none()));
    let why = match (at(runs.first().map(|(n, _)| *n)), at(last)) {
        (Some(first), Some(last)) if open => {
            let runs = RowRuns { first, last, over, more: at(more) };
            let threshold = u64::from(threshold) * u64::from(cell.state.times);
            explain(&plan.metric, threshold, facts, cell.hints, &runs)
        }
        _ => Vec::new(),
    };
    let of = |name: &str| runs.iter().map(|(_, f)| f.get(name)).fold(0.0, f64::max) as u64;
    let pcm =
        runs.iter().find(|(n, _)| Some(*n) != runs.first().map(|(f, _)| *f)).map(|(_, f)| f.get("bytes.pcm"));
    Ok(FigureRow {
        workload: cell.workload.name.clone(),
        kind: input.kind,
        stands_for: cell.workload.stands_for.clone(),
        hints: cell.hints,
        relative,
        volume_bytes: of("bytes.volume"),
        pcm_bytes: pcm.unwrap_or(0.0) as u64,
        values,
        verdicts,
        why,
    })
}

/// Returns the verdict on a claim in one row. Bands are judged only with a baseline; bands about
/// means are judged in `means`.
fn verdict(
    claim: &Claim,
    stands_for: Option<&str>,
    value: &dyn Fn(&str) -> Option<f64>,
    base: Option<f64>,
) -> Verdict {
    let direction = claim.direction.as_ref().and_then(|d| {
        let over: Option<Vec<f64>> = d.over.iter().map(|c| value(c)).collect();
        over.and_then(|o| d.holds(&o))
    });
    // Bands are about values relative to the baseline. A value of zero is nothing to judge.
    let bands = claim.bands.iter().filter(|b| !b.mean && b.is_about(claim, stands_for)).filter_map(|b| {
        let v = value(&b.column).filter(|v| *v > 0.0 || claim.direction.is_some())? / base?;
        Some(BandVerdict {
            column: b.column.clone(),
            value: v,
            least: b.least,
            most: b.most.is_finite().then_some(b.most),
            holds: b.holds(v),
        })
    });
    Verdict { claim: claim.id.clone(), direction, judged: claim.direction.is_some(), bands: bands.collect() }
}

/// Returns the means over the workloads of a claim, separately for recorded and generated ones.
fn means(claim: &Claim, columns: &[&Column], rows: &[FigureRow]) -> Vec<MeanRow> {
    let mut out = Vec::new();
    for band in claim.bands.iter().filter(|b| b.mean) {
        let Some(at) = columns.iter().position(|c| c.name == band.column) else { continue };
        for kind in [WorkloadKind::Real, WorkloadKind::Generated] {
            let about =
                |r: &&FigureRow| r.kind == kind && !r.hints && band.is_about(claim, r.stands_for.as_deref());
            let of: Vec<(&str, f64)> = rows
                .iter()
                .filter(about)
                .filter_map(|r| Some((r.workload.as_str(), *r.relative.as_ref()?.get(at)?)))
                .collect();
            if of.is_empty() {
                continue;
            }
            let value = of.iter().map(|(_, v)| v).sum::<f64>() / of.len() as f64;
            let held = BandVerdict {
                column: band.column.clone(),
                value,
                least: band.least,
                most: band.most.is_finite().then_some(band.most),
                holds: band.holds(value),
            };
            let verdict =
                Verdict { claim: claim.id.clone(), direction: None, judged: false, bands: vec![held] };
            let of = of.iter().map(|(n, _)| (*n).to_owned()).collect();
            out.push(MeanRow { kind, of, column: band.column.clone(), value, verdict });
        }
    }
    out
}
