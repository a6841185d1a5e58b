//! The built-in experiments, and their selection by ID.

use crate::builtin::{comparisons, files, studies, sweeps};
use crate::experiment::Experiment;
use crate::{Error, Result};
use wildmatch::WildMatch;

/// The experiments, one file each. A new experiment needs a line here.
const EXPERIMENTS: &[(&str, &str)] = files!(
    "hfsl.t7.pcm",
    "hfsl.t7.nand",
    "hfsl.f12.host",
    "hfsl.f12.firmware",
    "hfsl.f15",
    "hfsl.f16",
    "hfsl.f17",
    "hfsl.f18",
    "hfsl.f19",
    "hfsl.f19.life",
    "hfsl.f19.leveled",
    "hfsl.f20",
    "hfsl.scheduler",
    "halo.f5",
    "halo.f6",
    "halo.f8",
    "halo.policies",
    "halo.sweep",
    "halo.own",
    "halo.user",
    "halo.f9",
    "halo.recovery",
    "ntl.f2",
    "ntl.f3",
    "ntl.eq1",
    "ntl.block",
    "ntl.log",
    "ntl.user",
    "ispfs.f7",
    "ispfs.f8",
    "ispfs.f9",
    "ossd.base.randread",
    "ossd.f3",
    "ossd.f4",
    "ossd.t2",
    "nameless.f8",
    "nameless.t4",
    "ftl.mapping",
    "ftl.slc",
    "ftl.slc-dynamic",
    "ftl.pacing",
    "ftl.suspend",
    "ftl.streams",
    "zns.open",
    "ssc",
    "ssc.memory",
    "caches",
    "wa.greedy",
    "wa.fifo",
    "wa.ftl",
);

/// Returns all experiments.
///
/// # Errors
/// None: a test parses all of them.
pub fn experiments() -> Result<Vec<Experiment>> {
    EXPERIMENTS.iter().map(|(name, text)| Experiment::parse(name, text)).collect()
}

/// Returns the names of recorded workloads, for which the user can give a file.
///
/// # Errors
/// None: a test parses all of them.
pub fn recorded() -> Result<Vec<String>> {
    let sweeps = sweeps()?.into_iter().flat_map(|s| s.workloads);
    let studied = studies()?.into_iter().flat_map(|s| s.workloads);
    let compared = comparisons()?.into_iter().flat_map(|c| c.workloads);
    let all = sweeps.chain(studied).chain(compared);
    let mut names = Vec::new();
    for w in all.filter(|w| w.generator.is_none()) {
        if !names.contains(&w.name) {
            names.push(w.name);
        }
    }
    Ok(names)
}

/// Returns the experiments with claims whose IDs match any of the patterns, reduced to those
/// claims. A pattern is an ID, the beginning of one up to a dot, or contains `*` or `?`.
///
/// # Errors
/// A pattern matches nothing.
pub fn select(patterns: &[String]) -> Result<Vec<Experiment>> {
    let all = experiments()?;
    let matches = |pattern: &str, id: &str| {
        WildMatch::new(pattern).matches(id)
            || id.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.'))
    };
    for pattern in patterns {
        if !all.iter().flat_map(|e| &e.claims).any(|c| matches(pattern, &c.id)) {
            let ids: Vec<&str> = all.iter().flat_map(|e| &e.claims).map(|c| c.id.as_str()).collect();
            return Err(Error::Unknown { pattern: pattern.clone(), known: ids.join(", ") });
        }
    }
    let wanted = |id: &str| patterns.iter().any(|p| matches(p, id));
    let chosen = all.into_iter().filter_map(|mut e| {
        e.claims.retain(|c| wanted(&c.id));
        (!e.claims.is_empty()).then_some(e)
    });
    Ok(chosen.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::{comparison, study, sweep};
    use crate::describe::{MetricExpr, Study};
    use crate::experiment::MeasurementPlan;
    use crate::sweep::RunMetrics;
    use std::collections::BTreeSet;

    fn ids(patterns: &[&str]) -> Vec<String> {
        let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
        select(&patterns).unwrap().into_iter().flat_map(|e| e.claims).map(|c| c.id).collect()
    }

    #[test]
    fn everything_that_is_described_can_be() {
        let all = experiments().unwrap();
        let ids: BTreeSet<&str> = all.iter().flat_map(|e| &e.claims).map(|c| c.id.as_str()).collect();
        assert_eq!(ids.len(), all.iter().map(|e| e.claims.len()).sum::<usize>(), "ids are unique");
        for e in &all {
            let MeasurementPlan::Figure(figure) = &e.plan else { continue };
            let sweep = sweep(&figure.sweep).unwrap();
            assert!(RunMetrics::is_known(&figure.metric), "{}: {}", e.id, figure.metric);
            let columns: Vec<&str> = sweep.columns.iter().map(|c| c.name.as_str()).collect();
            let states: Vec<&str> = sweep.states.iter().map(|s| s.name.as_str()).collect();
            let stands: Vec<&str> = sweep.workloads.iter().filter_map(|w| w.stands_for.as_deref()).collect();
            if let Some(name) = &figure.by {
                assert!(columns.contains(&name.as_str()), "{}: {name}", e.id);
            }
            for name in figure.states.iter().flatten() {
                assert!(states.contains(&name.as_str()), "{}: {name}", e.id);
            }
            for c in &e.claims {
                let over = c.direction.iter().flat_map(|d| &d.over).chain(c.bands.iter().map(|b| &b.column));
                for name in over {
                    assert!(columns.contains(&name.as_str()), "{}: {name}", c.id);
                }
                for name in c.of.iter().chain(c.bands.iter().flat_map(|b| &b.of)) {
                    assert!(stands.contains(&name.as_str()), "{}: {name}", c.id);
                }
            }
        }
    }

    #[test]
    fn figures_over_studies_name_what_there_is() {
        let has = |s: &Study, n: &String| s.workloads.iter().any(|w| w.name == *n);
        for e in experiments().unwrap() {
            if let MeasurementPlan::Caching(c) = &e.plan {
                let s = study(&c.study).unwrap();
                assert!(c.views.iter().all(|n| s.view(n).is_some()), "{}", e.id);
                assert!(c.policies.iter().all(|n| s.policy(n).is_some()), "{}", e.id);
                assert!(c.workloads.iter().flatten().all(|n| has(&s, n)), "{}", e.id);
                assert!(
                    c.metrics.iter().all(|m| m.parse::<crate::caching::CacheMetric>().is_ok()),
                    "{}",
                    e.id
                );
                let of = c.by.iter().chain(c.judged.iter().map(|j| &j.policy));
                assert!(of.clone().all(|n| c.policies.contains(n)), "{}", e.id);
                let stands = |n: &String| s.workloads.iter().any(|w| w.stands_for.as_ref() == Some(n));
                assert!(c.judged.iter().flat_map(|j| j.published.keys()).all(stands), "{}", e.id);
            }
            if let MeasurementPlan::Wear(w) = &e.plan {
                let s = study(&w.study).unwrap();
                assert!(w.workloads.iter().all(|n| has(&s, n)) && s.policy(&w.policy).is_some(), "{}", e.id);
                assert!(w.published.keys().all(|l| w.levelers.contains(l)), "{}", e.id);
            }
        }
    }

    #[test]
    fn comparisons_are_read_by_names_that_there_are() {
        for e in experiments().unwrap() {
            let MeasurementPlan::Comparison(plan) = &e.plan else {
                assert!(e.claims.iter().all(|c| c.checks.is_empty()), "{}: checks are of comparisons", e.id);
                continue;
            };
            let c = comparison(&plan.of).unwrap();
            let workload = |n: &String| c.workloads.iter().any(|w| w.name == *n);
            let value = |v: &MetricExpr| {
                let names: Vec<&str> = v.names().collect();
                assert!(names.iter().all(|n| RunMetrics::is_known(n)), "{}: {names:?}", e.id);
                assert!(v.against.iter().all(|n| c.variant(n).is_ok()), "{}: {v:?}", e.id);
                assert!(v.against_workload.iter().all(workload), "{}: {v:?}", e.id);
            };
            for t in &plan.tables {
                assert!(t.views.iter().all(|n| c.view(n).is_ok()), "{}: {:?}", e.id, t.views);
                assert!(t.variants.iter().all(|n| c.variant(n).is_ok()), "{}: {:?}", e.id, t.variants);
                assert!(t.workloads.iter().flatten().all(workload), "{}: {:?}", e.id, t.workloads);
                assert!(!t.wide || t.columns.len() == 1, "{}: a wide table has one figure", e.id);
                t.columns.iter().for_each(|c| value(&c.value));
            }
            for x in &plan.crossings {
                assert!(c.view(&x.view).is_ok() && c.variant(&x.base).is_ok(), "{}", e.id);
                assert!(x.variants.iter().all(|n| c.variant(n).is_ok()), "{}: {:?}", e.id, x.variants);
                assert!(x.workloads.iter().flatten().all(workload), "{}: {:?}", e.id, x.workloads);
                assert!(x.axis.values.iter().all(|v| frit_core::size::parse(v).is_ok()), "{}", e.id);
                [&x.cost, &x.per].into_iter().for_each(value);
            }
            for k in e.claims.iter().flat_map(|c| &c.checks) {
                assert!(c.view(&k.view).is_ok() && c.variant(&k.variant).is_ok(), "{}: {}", e.id, k.what);
                assert!(k.workloads.iter().all(workload), "{}: {:?}", e.id, k.workloads);
                assert!(!k.rule().is_empty(), "{}: {} cannot fail", e.id, k.what);
                value(&k.value);
                assert!(k.needs.iter().all(|n| RunMetrics::is_known(n)), "{}: {:?}", e.id, k.needs);
            }
        }
    }

    #[test]
    fn patterns_choose_by_id_prefix_and_glob() {
        assert_eq!(ids(&["hfsl.f15"]), ["hfsl.f15"]);
        assert_eq!(ids(&["hfsl.f17"]), ["hfsl.f17.fin2", "hfsl.f17.others"]);
        assert_eq!(ids(&["hfsl.f17.fin2"]), ["hfsl.f17.fin2"]);
        assert_eq!(ids(&["wa.*"]), ["wa.greedy", "wa.fifo", "wa.ftl"]);
        assert!(ids(&["hfsl.*"]).len() >= 11);
        let e = select(&["hfsl.f99".to_owned()]).unwrap_err().to_string();
        assert!(e.contains("hfsl.f99") && e.contains("hfsl.f17.fin2"), "{e}");
    }
}
