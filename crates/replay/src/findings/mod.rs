//! Findings: what the values of a report say, and what makes them doubtful.
//!
//! A rule is a function over a [`Report`] and one entry of [`RULES`]. A finding names its rule and
//! carries the figures it rests on. Causes of doubt come first: a run with one of them does not
//! show what its metrics seem to show. Explanations follow: they say why the metrics are as they
//! are. Within a kind, findings are in the order of the list. `docs/reference/findings.md` has the
//! list as a table, which a test compares.
//!
//! A wrong finding is worse than a missing one. Thresholds are therefore far from borderline cases,
//! and a rule says nothing if its figures are not in the report.

mod comparison;
mod latency;
mod load;
mod reads;
mod show;
mod state;
mod storage;
mod wear;

#[cfg(test)]
mod tests;

pub use comparison::{COMPARISON_RULES, ComparisonFindings, ComparisonRule, FindingOfRuns, of_comparison};
pub(crate) use show::text;

use crate::report::Report;
use frit_core::MediumKind;
use serde::Serialize;

/// Kind of a finding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// The metrics do not mean what they seem to mean.
    Doubt,
    /// The metrics are valid, and this is a reason for them.
    Explanation,
}

/// A value that a finding rests on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// Name of the value.
    pub name: &'static str,
    /// Value.
    pub value: f64,
    /// Unit of the value; empty for a count or a ratio.
    pub unit: &'static str,
    /// Stack that has the value, in the conclusion of a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

/// A statement about a run or a comparison.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// Name of the rule.
    pub rule: &'static str,
    /// Cause of doubt, or explanation.
    pub kind: FindingKind,
    /// The statement, with its figures, and a remedy if there is one.
    pub text: String,
    /// Metric that the figures are values of, in the conclusion of a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<&'static str>,
    /// The figures.
    pub figures: Vec<Figure>,
}

/// A statement of a rule, before it has a name.
#[derive(Debug)]
pub struct Evidence {
    text: String,
    metric: Option<&'static str>,
    figures: Vec<Figure>,
}

impl Evidence {
    fn new(text: impl Into<String>) -> Evidence {
        Evidence { text: text.into(), metric: None, figures: Vec::new() }
    }

    /// Adds a figure.
    fn with(mut self, name: &'static str, value: f64, unit: &'static str) -> Evidence {
        self.figures.push(Figure { name, value, unit, stack: None });
        self
    }

    /// Adds a figure of one of the compared stacks.
    fn with_stack(mut self, name: &'static str, value: f64, unit: &'static str, stack: &str) -> Evidence {
        self.figures.push(Figure { name, value, unit, stack: Some(stack.to_owned()) });
        self
    }

    /// Names the metric of the figures.
    fn of_metric(mut self, metric: &'static str) -> Evidence {
        self.metric = Some(metric);
        self
    }

    fn named(self, rule: &'static str, kind: FindingKind) -> Finding {
        Finding { rule, kind, text: self.text, metric: self.metric, figures: self.figures }
    }
}

/// A rule about one run.
#[derive(Debug)]
pub struct Rule {
    /// Name of the rule.
    pub name: &'static str,
    /// Kind of its findings.
    pub kind: FindingKind,
    /// Description of the condition, with its thresholds.
    pub condition: fn() -> String,
    /// Reason for which a user should know.
    pub reason: &'static str,
    /// Applies the rule.
    pub find: fn(&Report) -> Option<Evidence>,
}

/// All rules about one run, in the order of their findings.
pub const RULES: &[Rule] = &[
    state::VERIFICATION,
    reads::NOTHING_MEASURED,
    reads::UNWRITTEN_READS,
    storage::PCM_UNUSED,
    storage::MEDIUM_UNUSED,
    storage::PCM_TOO_SMALL,
    load::OVERLOADED,
    load::DEPTH_LIMITS,
    state::WRAPPED,
    reads::NOTHING_READ,
    reads::NEVER_REREAD,
    state::NO_CLEANING,
    state::TOO_SHORT,
    state::NOT_STEADY,
    latency::TAIL_MEAN,
    load::BOTTLENECK,
    load::IDLE,
    storage::PCM_ABSORBS,
    storage::PARTIAL_WRITES,
    state::CLEANING_DOMINATES,
    latency::FLUSH_TIME,
    latency::FREE_FLUSHES,
    wear::UNEVEN,
    reads::NOTHING_WRITTEN,
];

/// Returns the findings of a run: causes of doubt, then explanations.
#[must_use]
pub fn of_run(r: &Report) -> Vec<Finding> {
    let all = || RULES.iter().filter_map(|rule| Some((rule.find)(r)?.named(rule.name, rule.kind)));
    let of = |kind| all().filter(move |f| f.kind == kind);
    of(FindingKind::Doubt).chain(of(FindingKind::Explanation)).collect()
}

/// Returns the value of a key of the stack. Keys with default values may be missing: the text of a
/// stack is canonical, with one key in a line.
pub(crate) fn setting<'a>(r: &'a Report, key: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix(key)?.strip_prefix(" = ");
    r.stack.toml.lines().find_map(value).map(|v| v.trim_matches('"'))
}

/// Returns `true` if every page of the volume was written before the run.
fn filled(r: &Report) -> bool {
    r.run.warm.split('+').any(|part| matches!(part, "fill" | "steady"))
}

/// Returns the name of a kind of medium for a sentence.
fn kind_name(kind: MediumKind) -> &'static str {
    match kind {
        MediumKind::Nand => "NAND",
        MediumKind::Pcm => "PCM",
        MediumKind::Dram => "DRAM",
        MediumKind::Disk => "Disk",
        MediumKind::Object => "Object store",
    }
}

fn share(n: u64, d: u64) -> f64 {
    if d == 0 { 0.0 } else { n as f64 / d as f64 }
}

/// Returns the bytes of an operation on all media for a cause.
fn bytes(r: &Report, op: frit_core::Op, cause: frit_core::Cause) -> u64 {
    let (op, cause): (&str, &str) = (op.into(), cause.into());
    r.counts.iter().filter(|c| c.op == op && c.cause == cause).map(|c| c.count.bytes).sum()
}
