//! Verdicts on the bands of a study of caches.

use super::{CachingPlan, CachingRow, CachingView};
use crate::caching::CacheMetric;
use crate::describe::{Band, Claim};
use crate::kinds::{ClaimVerdict, Subject};
use crate::{Error, Result};
use frit_trace::identity::WorkloadKind;

/// Number of values that are shown one by one; more are only counted.
const VALUES_SHOWN_MAX: usize = 8;

/// Returns the verdicts on the bands of all claims, about the first metric, for each view.
pub(super) fn claims(
    subject: Subject<'_>,
    plan: &CachingPlan,
    metric: Option<CacheMetric>,
    views: &[CachingView],
) -> Result<Vec<ClaimVerdict>> {
    let mut out = Vec::new();
    for (claim, band) in subject.claims.iter().flat_map(|c| c.bands.iter().map(move |b| (c, b))) {
        let base = band.against.as_ref().or(plan.by.as_ref());
        let column = |name: Option<&String>| {
            let at = name.and_then(|n| plan.policies.iter().position(|p| p == n));
            let why = || format!("a band of {} names no policy of the experiment, or no baseline", claim.id);
            at.ok_or_else(|| Error::Description { name: subject.id.into(), why: why() })
        };
        let columns = (column(Some(&band.column))?, column(base)?);
        for view in views {
            out.push(verdict(claim, band, columns, metric, view, views.len() > 1));
        }
    }
    Ok(out)
}

fn verdict(
    claim: &Claim,
    band: &Band,
    (column, base): (usize, usize),
    metric: Option<CacheMetric>,
    view: &CachingView,
    named: bool,
) -> ClaimVerdict {
    // Recordings are only parts of the paper's workloads, so their values are not judged.
    let about = |r: &&CachingRow| {
        r.kind == WorkloadKind::Generated
            && band.is_about(claim, r.stands_for.as_deref())
            && (band.sizes.is_empty() || band.sizes.contains(&r.times))
    };
    let ratio = |r: &CachingRow| {
        let of = |column: usize| Some(metric?.of(r.found.get(column)?));
        let base = of(base).filter(|b| *b > 0.0)?;
        Some((r.stands_for.clone().unwrap_or_default(), of(column)? / base))
    };
    let values: Vec<(String, f64)> = view.rows.iter().filter(about).filter_map(ratio).collect();
    let agree = values.iter().filter(|(_, v)| band.holds(*v)).count();
    let needed = claim.agree.unwrap_or(1.0);
    let mut measured = format!("{agree} of {}", values.len());
    if values.len() <= VALUES_SHOWN_MAX && !values.is_empty() {
        let each: Vec<String> = values.iter().map(|(name, v)| format!("{name} {v:.3}")).collect();
        measured += &format!(": {}", each.join(", "));
    }
    let mut rule = band.words();
    if !band.of.is_empty() {
        rule += &format!(" in {}", band.of.join(", "));
    }
    if !band.sizes.is_empty() {
        let sizes: Vec<String> = band.sizes.iter().map(f64::to_string).collect();
        rule += &format!(", sizes {}", sizes.join(", "));
    }
    if needed < 1.0 {
        rule += &format!(", in at least {:.0} % of the rows", needed * 100.0);
    }
    if named {
        rule += &format!(" ({})", view.view);
    }
    let holds = (!values.is_empty()).then_some(agree as f64 >= needed * values.len() as f64);
    ClaimVerdict { claim: claim.id.clone(), rule, measured, holds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caching::CacheRunResult;

    #[test]
    fn bands_are_judged_over_generated_rows_of_their_workloads_and_sizes() {
        let row = |stands_for: &str, kind, times, sectors: [u64; 2]| CachingRow {
            workload: "w".into(),
            kind,
            stands_for: Some(stands_for.into()),
            times,
            cache_bytes: 1,
            found: sectors
                .map(|s| CacheRunResult { disk_sectors: s, asked_sectors: 100, ..CacheRunResult::default() })
                .into(),
            judged: None,
        };
        let generated = WorkloadKind::Generated;
        let rows = vec![
            row("A", generated, 1.0, [100, 92]),
            row("A", generated, 2.0, [100, 50]),
            row("B", generated, 1.0, [100, 99]),
            row("C", generated, 1.0, [100, 1]),
            row("A", WorkloadKind::Real, 1.0, [100, 1]),
            row("A", generated, 1.0, [0, 1]),
        ];
        let view = CachingView { view: "v".into(), about: String::new(), rows, mean: None, split: None };
        let judged = |rest: &str| {
            let text = format!("id = \"x\"\npublished = \"p\"\nof = [\"A\", \"B\"]\n{rest}");
            let claim: Claim = toml::from_str(&text).unwrap();
            let v = verdict(&claim, &claim.bands[0], (1, 0), Some(CacheMetric::Traffic), &view, false);
            (v.measured, v.holds)
        };
        let band = "[[band]]\ncolumn = \"halo\"\nagainst = \"lru\"\nleast = 0.9\nmost = 0.95\n";
        assert_eq!(judged(band), ("1 of 3: A 0.920, A 0.500, B 0.990".into(), Some(false)));
        assert_eq!(judged(&format!("agree = 0.3\n{band}")).1, Some(true));
        assert_eq!(
            judged(&format!("{band}of = [\"A\"]\nsizes = [1]\n")),
            ("1 of 1: A 0.920".into(), Some(true))
        );
        assert_eq!(judged(&format!("{band}of = [\"D\"]\n")), ("0 of 0".into(), None), "nothing to judge");
    }
}
