//! Rules about several runs of one workload.

use super::{Evidence, Finding, FindingKind};
use crate::report::Report;
use crate::report::compare::{compared_metrics, numbered};
use crate::report::show::figure;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Smallest ratio at which one stack is better than another.
const BETTER_MIN: f64 = 1.02;
/// Largest number of runs whose explanations are shown; of more runs only doubts are.
const EXPLAINED_RUNS_MAX: usize = 6;
/// Largest number of settings that are named.
const SETTINGS_MAX: usize = 4;
/// The metric that depends on the machine on which frit runs.
const SOFTWARE: &str = "software per request";

/// A rule about the runs of one workload over several stacks, of which the first is the baseline.
#[derive(Debug)]
pub struct ComparisonRule {
    /// Name of the rule.
    pub name: &'static str,
    /// Kind of its findings.
    pub kind: FindingKind,
    /// Description of the condition, with its thresholds.
    pub condition: fn() -> String,
    /// Reason for which a user should know.
    pub reason: &'static str,
    /// Applies the rule to the runs, which have these names.
    pub find: fn(&[Report], &[String]) -> Vec<Evidence>,
}

/// All rules about comparisons.
pub const COMPARISON_RULES: &[ComparisonRule] = &[NOTHING_DIFFERS, BEST];

/// Findings of a comparison.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct ComparisonFindings {
    /// Findings of the runs, and doubts about the comparison.
    #[serde(rename = "findings")]
    pub of_runs: Vec<FindingOfRuns>,
    /// The best stack for each purpose.
    pub conclusion: Vec<Finding>,
}

/// A finding of one or more runs of a comparison.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FindingOfRuns {
    /// The runs: the workload, and the stack or stacks.
    pub runs: String,
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
}

const NOTHING_DIFFERS: ComparisonRule = ComparisonRule {
    name: "nothing-differs",
    kind: FindingKind::Doubt,
    condition: || {
        "a stack has the same value as the baseline in every compared metric, software time aside".into()
    },
    reason: "The settings in which the stacks differ have no effect on this workload.",
    find: |runs, names| {
        let Some((first, others)) = runs.split_first() else { return Vec::new() };
        let same = |r: &&(usize, &Report)| metrics(first) == metrics(r.1);
        let pairs: Vec<_> = others.iter().enumerate().collect();
        let text = |&(i, r): &(usize, &Report)| {
            let why = match differences(&first.stack.toml, &r.stack.toml) {
                none if none.is_empty() => "the stacks are the same".to_owned(),
                some => format!("{} has no effect on this workload", some.join(", ")),
            };
            let n = metrics(first).iter().flatten().count();
            Evidence::new(format!(
                "{} and {} do not differ in any of {n} metrics: {why}.",
                names[0],
                names[i + 1]
            ))
            .with("metrics", n as f64, "")
        };
        pairs.iter().filter(same).map(text).collect()
    },
};

const BEST: ComparisonRule = ComparisonRule {
    name: "best",
    kind: FindingKind::Explanation,
    condition: || {
        format!(
            "for throughput, latencies, write amplification and wear: the best stack, if it is better than the \
             next by a factor of at least {BETTER_MIN}"
        )
    },
    reason: "The purpose decides which stack is the best.",
    find: |runs, names| {
        let found: Vec<Evidence> = PURPOSES.iter().filter_map(|p| best(p, runs, names)).collect();
        if found.is_empty() && runs.len() > 1 {
            let ratio = figure((BETTER_MIN - 1.0) * 100.0);
            return vec![Evidence::new(format!(
                "No stack is better than the others by {ratio} % in any metric."
            ))];
        }
        found
    },
};

/// A purpose for which a stack can be the best.
struct Purpose {
    /// Name of a metric of [`compared_metrics`].
    metric: &'static str,
    /// Unit of the metric; empty for a count or a ratio.
    unit: &'static str,
    higher_is_better: bool,
}

const fn lower(metric: &'static str, unit: &'static str) -> Purpose {
    Purpose { metric, unit, higher_is_better: false }
}

const PURPOSES: [Purpose; 7] = [
    Purpose { metric: "requests/s", unit: "1/s", higher_is_better: true },
    lower("read latency, mean", "ns"),
    lower("write latency, mean", "ns"),
    lower("latency, p99", "ns"),
    lower("write amplification, NAND", ""),
    lower("NAND erases", ""),
    lower("disk, busy time", "ns"),
];

/// Returns the findings of the runs of one workload.
#[must_use]
pub fn of_comparison(runs: &[Report]) -> ComparisonFindings {
    let names: Vec<&str> = runs.iter().map(|r| short(&r.stack.name)).collect();
    let names = numbered(&names);
    let workload = runs.first().map_or("", |r| r.workload.identity.name.as_str());
    let mut all = ComparisonFindings::default();
    for rule in COMPARISON_RULES {
        for e in (rule.find)(runs, &names) {
            let finding = e.named(rule.name, rule.kind);
            match rule.kind {
                FindingKind::Doubt => all.of_runs.push(FindingOfRuns { runs: workload.to_owned(), finding }),
                FindingKind::Explanation => all.conclusion.push(finding),
            }
        }
    }
    for kind in [FindingKind::Doubt, FindingKind::Explanation] {
        if kind == FindingKind::Doubt || runs.len() <= EXPLAINED_RUNS_MAX {
            add_of_runs(runs, &names, kind, &mut all.of_runs);
        }
    }
    all
}

/// Adds the findings of all runs of a kind; those of one rule about all runs become one.
fn add_of_runs(runs: &[Report], names: &[String], kind: FindingKind, all: &mut Vec<FindingOfRuns>) {
    for rule in super::RULES.iter().filter(|rule| rule.kind == kind) {
        let found: Vec<(&String, &Finding)> = runs
            .iter()
            .zip(names)
            .filter_map(|(r, name)| Some((name, r.findings.iter().find(|f| f.rule == rule.name)?)))
            .collect();
        let workload = runs.first().map_or("", |r| r.workload.identity.name.as_str());
        let about = |name: &str, f: &Finding| FindingOfRuns {
            runs: format!("{workload} over {name}"),
            finding: f.clone(),
        };
        match found.as_slice() {
            [] => {}
            [(_, first), rest @ ..]
                if found.len() == runs.len() && rest.iter().all(|f| f.1.text == first.text) =>
            {
                all.push(about("all stacks", first));
            }
            // Doubts about every stack differ in their numbers only.
            [(name, first), ..]
                if found.len() == runs.len() && kind == FindingKind::Doubt && runs.len() > 1 =>
            {
                all.push(about(&format!("all stacks, such as {name}"), first));
            }
            some => all.extend(some.iter().map(|(name, f)| about(name, f))),
        }
    }
}

/// Returns the file name of a stack without directories and extension.
fn short(name: &str) -> &str {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.strip_suffix(".toml").unwrap_or(file)
}

/// Returns the values of all compared metrics that do not depend on the machine.
fn metrics(r: &Report) -> Vec<Option<f64>> {
    compared_metrics().filter(|m| m.name != SOFTWARE).map(|m| (m.value)(r)).collect()
}

/// Returns the keys of a canonical TOML text, with their tables.
fn keys(toml: &str) -> BTreeMap<String, &str> {
    let mut table = "";
    let mut all = BTreeMap::new();
    for line in toml.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            table = name;
        } else if let Some((key, value)) = line.split_once(" = ") {
            all.insert(format!("{table}.{key}"), value);
        }
    }
    all
}

/// Returns the settings in which two stacks differ, with both values.
fn differences(a: &str, b: &str) -> Vec<String> {
    let (a, b) = (keys(a), keys(b));
    let both: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value = |of: &BTreeMap<String, &str>, key: &String| of.get(key).map_or("default", |v| v).to_owned();
    let differing = both.into_iter().filter(|k| a.get(*k) != b.get(*k));
    let mut all: Vec<String> =
        differing.map(|k| format!("{k} ({} and {})", value(&a, k), value(&b, k))).collect();
    if all.len() > SETTINGS_MAX {
        let more = all.len() - SETTINGS_MAX;
        all.truncate(SETTINGS_MAX);
        all.push(format!("and {more} more"));
    }
    all
}

fn best(purpose: &Purpose, runs: &[Report], names: &[String]) -> Option<Evidence> {
    let metric = compared_metrics().find(|m| m.name == purpose.metric)?;
    let value = |(r, name)| Some((name, (metric.value)(r)?));
    let mut values: Vec<(&String, f64)> = runs.iter().zip(names).filter_map(value).collect();
    // A stack without a value has no ratio to the others.
    if values.len() < runs.len() || values.len() < 2 {
        return None;
    }
    if values.iter().any(|(_, v)| *v <= 0.0) {
        return zeros(purpose, &values).filter(|_| !purpose.higher_is_better);
    }
    values.sort_by(|a, b| if purpose.higher_is_better { b.1.total_cmp(&a.1) } else { a.1.total_cmp(&b.1) });
    let [(name, value), (next, next_value), ..] = values.as_slice() else { return None };
    let ratio = if purpose.higher_is_better { value / next_value } else { next_value / value };
    let worst = values.last().filter(|_| values.len() > 2);
    let to_worst = worst.map_or(String::new(), |(n, v)| {
        let ratio = if purpose.higher_is_better { value / v } else { v / value };
        format!(", {}× better than {n}", figure(ratio))
    });
    (ratio >= BETTER_MIN).then(|| {
        Evidence::new(format!(
            "{}: {name} ({}), {}× better than {next} ({}){to_worst}.",
            purpose.metric,
            (metric.show)(*value),
            figure(ratio),
            (metric.show)(*next_value),
        ))
        .of_metric(purpose.metric)
        .with_stack("best", *value, purpose.unit, name)
        .with_stack("next", *next_value, purpose.unit, next)
        .with("ratio", ratio, "")
    })
}

/// Names the stacks whose value is zero, if some are and others are not: there is no ratio then.
fn zeros(purpose: &Purpose, values: &[(&String, f64)]) -> Option<Evidence> {
    let zero = values.iter().filter(|(_, v)| *v <= 0.0);
    let least = values.iter().map(|(_, v)| *v).filter(|v| *v > 0.0).min_by(f64::total_cmp)?;
    let names: Vec<&str> = zero.map(|(name, _)| name.as_str()).collect();
    let evidence = Evidence::new(format!(
        "{}: 0 on {}, at least {} on the others.",
        purpose.metric,
        names.join(", "),
        figure(least)
    ))
    .of_metric(purpose.metric);
    let evidence = names.iter().fold(evidence, |e, name| e.with_stack("best", 0.0, purpose.unit, name));
    Some(evidence.with("least_of_others", least, purpose.unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_settings_are_named_with_both_values() {
        let (a, b) = (
            "[hfsl]\nSSW = 4096\nkind = \"hfsl\"\n",
            "[hfsl]\nkind = \"hfsl\"\n\n[engine]\nkind = \"event\"\n",
        );
        assert_eq!(differences(a, b), ["engine.kind (default and \"event\")", "hfsl.SSW (4096 and default)"]);
        assert!(differences(a, a).is_empty());
    }

    #[test]
    fn stacks_have_short_names() {
        assert_eq!(["stacks/demo-hfsl.toml", "no-pcm,gc=fifo"].map(short), ["demo-hfsl", "no-pcm,gc=fifo"]);
    }
}
