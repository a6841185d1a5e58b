//! Wear of a cache's PCM.

use super::caching::{cache_bytes, study_workloads};
use super::{Measure, Present, Subject};
use crate::caching::{self, CacheRun};
use crate::describe::HostLoop;
use crate::outcome::{Cell, Outcome, OutcomePart, OutcomeTable, generated};
use crate::workbench::Workbench;
use crate::{Error, Result, builtin};
use frit_trace::identity::WorkloadKind;
use frit_wear::LevelerKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Measurement of the wear of a cache's PCM, by wear leveler.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WearPlan {
    /// Name of the study.
    pub study: String,
    /// Policy of the cache.
    pub policy: String,
    /// Workloads.
    pub workloads: Vec<String>,
    /// Levelers.
    pub levelers: Vec<String>,
    /// Published life rates, means over the paper's traces, by leveler.
    pub published: BTreeMap<String, f64>,
    /// Lifetime factor: the life rate of the first leveler divided by that of the second, and its
    /// published value.
    pub factor: (String, String, f64),
}

/// Life rates by workload and leveler.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WearOutcome {
    /// The levelers, by column.
    pub levelers: Vec<String>,
    /// Rows, one for each workload.
    pub rows: Vec<WearRow>,
    /// Mean life rates.
    pub means: Vec<f64>,
    /// Published means; `None` for levelers that the paper does not have.
    pub published: Vec<Option<f64>>,
    /// Lifetime factor: mean over the workloads of one leveler's life rate divided by another's.
    pub factor: f64,
    /// The two levelers of the factor.
    pub factor_of: (String, String),
    /// Published lifetime factor.
    pub factor_published: f64,
}

/// Life rates of a workload.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WearRow {
    /// Name of the workload.
    pub workload: String,
    /// Recorded or generated.
    pub kind: WorkloadKind,
    /// Size of the cache, in bytes.
    pub cache_bytes: u64,
    /// Number of blocks written to PCM.
    pub writes: u64,
    /// Life rates by leveler: mean writes of a bank divided by those of the most written one.
    pub rates: Vec<f64>,
    /// Lifetime factor of this workload: see [`WearOutcome::factor_of`].
    pub factor: f64,
}

impl Measure for WearPlan {
    type Data = WearOutcome;

    fn measure(
        &self,
        subject: Subject<'_>,
        bench: &mut Workbench,
        note: &mut dyn FnMut(&str),
    ) -> Result<WearOutcome> {
        let bad = |why: String| Error::Description { name: subject.id.into(), why };
        let study = builtin::study(&self.study)?;
        let policy =
            study.policy(&self.policy).ok_or_else(|| bad(format!("there is no policy '{}'", self.policy)))?;
        let leveler = |n: &String| n.parse().map_err(|_| bad(format!("there is no wear leveling '{n}'")));
        let levelers: Vec<LevelerKind> = self.levelers.iter().map(leveler).collect::<Result<_>>()?;
        let column = |n: &String| {
            let at = self.levelers.iter().position(|l| l == n);
            at.ok_or_else(|| bad(format!("'{n}' is none of the levelers")))
        };
        let (high, low) = (column(&self.factor.0)?, column(&self.factor.1)?);
        let quick = bench.options.quick;
        let mut rows = Vec::new();
        for h in study_workloads(&study, Some(&self.workloads), bench)? {
            note(&h.spec.name);
            let cell = CacheRun {
                stack: study.stack.clone(),
                set: [&study.set, &policy.set].into_iter().flatten().cloned().collect(),
                // A bank has at least 16 stripes.
                cache_bytes: cache_bytes(&study, &h, 1.0, quick).max(64 << 20),
                host: HostLoop::Counted,
            };
            let found = caching::wear(&cell, &h.input, &levelers)?;
            let rates: Vec<f64> = found.iter().map(|r| r.life_rate).collect();
            rows.push(WearRow {
                workload: h.spec.name.clone(),
                kind: h.input.kind,
                cache_bytes: cell.cache_bytes,
                writes: found.first().map_or(0, |r| r.writes),
                factor: rates[high] / rates[low],
                rates,
            });
        }
        let n = rows.len().max(1) as f64;
        let mean = |of: &dyn Fn(&WearRow) -> f64| rows.iter().map(of).sum::<f64>() / n;
        Ok(WearOutcome {
            means: (0..levelers.len()).map(|i| mean(&|r| r.rates[i])).collect(),
            published: self.levelers.iter().map(|l| self.published.get(l).copied()).collect(),
            levelers: self.levelers.clone(),
            factor: mean(&|r| r.factor),
            factor_of: (self.factor.0.clone(), self.factor.1.clone()),
            factor_published: self.factor.2,
            rows,
        })
    }
}

impl Present for WearOutcome {
    fn present(&self) -> Outcome {
        let mut table = OutcomeTable::new(1, &["workload", "cache", "blocks written"], Vec::new());
        table.head.extend(self.levelers.iter().map(|l| Cell::text(l)));
        table.head.push(Cell::Text(format!("{} / {}", self.factor_of.0, self.factor_of.1)));
        let rates = |rates: &[f64]| rates.iter().map(|r| Cell::number(*r, 4)).collect::<Vec<_>>();
        for r in &self.rows {
            let names = [
                Cell::Text(generated(&r.workload, r.kind)),
                Cell::Size(r.cache_bytes >> 20 << 20),
                Cell::Count(r.writes),
            ];
            table.rows.push(rate_row(names, rates(&r.rates), r.factor));
        }
        let summary = |name: &str| [Cell::text(name), Cell::text(""), Cell::text("")];
        table.rows.push(rate_row(summary("mean"), rates(&self.means), self.factor));
        let published = self.published.iter().map(|p| p.map_or(Cell::Missing, |p| Cell::number(p, 4)));
        table.rows.push(rate_row(summary("published"), published.collect(), self.factor_published));
        let about = "Life rate: mean writes of a bank divided by the maximum.";
        let parts = vec![OutcomePart::Text(about.to_owned()), OutcomePart::Table(table)];
        Outcome { blank_end: true, ..Outcome::of(parts) }
    }
}

/// Returns a row of names, life rates and lifetime factor.
fn rate_row(names: [Cell; 3], rates: Vec<Cell>, factor: f64) -> Vec<Cell> {
    names.into_iter().chain(rates).chain([Cell::number(factor, 2)]).collect()
}
