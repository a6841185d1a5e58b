//! Measurement of the wear of a cache's PCM.

use super::caching::{cache_bytes, find};
use crate::caching::{self, CacheRun};
use crate::describe::{Experiment, HostLoop, WearPlan};
use crate::outcome::{Reproduction, WearOutcome, WearRow};
use crate::sweep::Traces;
use crate::{Error, Result, catalogue};
use frit_wear::LevelerKind;

pub(super) fn wear(
    e: &Experiment,
    plan: &WearPlan,
    (traces, quick): (&Traces, bool),
    out: &mut Reproduction,
    note: &mut dyn FnMut(&str),
) -> Result<WearOutcome> {
    let bad = |why: String| Error::Description { name: e.id.clone(), why };
    let study = catalogue::study(&plan.study)?;
    let policy =
        study.policy(&plan.policy).ok_or_else(|| bad(format!("there is no policy '{}'", plan.policy)))?;
    let leveler = |n: &String| n.parse().map_err(|_| bad(format!("there is no wear leveling '{n}'")));
    let levelers: Vec<LevelerKind> = plan.levelers.iter().map(leveler).collect::<Result<_>>()?;
    let column = |n: &String| {
        plan.levelers.iter().position(|l| l == n).ok_or_else(|| bad(format!("'{n}' is none of the levelers")))
    };
    let (high, low) = (column(&plan.factor.0)?, column(&plan.factor.1)?);
    let mut rows = Vec::new();
    for h in find(&study, Some(&plan.workloads), traces, quick, out)? {
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
        published: plan.levelers.iter().map(|l| plan.published.get(l).copied()).collect(),
        levelers: plan.levelers.clone(),
        factor: mean(&|r| r.factor),
        factor_of: (plan.factor.0.clone(), plan.factor.1.clone()),
        factor_published: plan.factor.2,
        rows,
    })
}
