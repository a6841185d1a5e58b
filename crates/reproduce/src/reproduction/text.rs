//! Results as text.

use super::{ExperimentOutcome, Reproduction};
use crate::outcome::{outcome_text, shared_text};
use crate::workloads::workload_section;
use frit_replay::findings::{Finding, FindingKind};

pub(super) fn text(r: &Reproduction) -> String {
    let commit = r.frit.commit.as_deref().unwrap_or("unknown");
    let seed = r.seed.map_or(String::new(), |s| format!(", seed {s}"));
    let mut out = format!("Measured by frit {}, commit {commit}{seed}.\n\n", r.frit.version);
    if r.quick {
        out += "--quick: only the first requests of a few workloads, few rounds, few cases. These are not results.\n\n";
    }
    out += &findings(r);
    for e in &r.experiments {
        out += &heading(e);
        let shown = outcome_text(&e.outcome);
        if !shown.is_empty() {
            out += &shown;
            out.push('\n');
        }
    }
    let shared = r.experiments.iter().flat_map(|e| e.outcome.shared.iter().cloned());
    out += &shared_text(shared.chain([workload_section(&r.workloads)]));
    for m in &r.missing {
        out += &format!("SKIPPED {}: {}\n", m.name, m.why);
    }
    out
}

/// Returns what the results of all experiments say. Experiments share runs, and a finding that
/// several experiments have is printed once, where the first of them has it.
fn findings(r: &Reproduction) -> String {
    let mut found: Vec<(Vec<&str>, &Finding)> = Vec::new();
    for e in &r.experiments {
        for f in &e.findings {
            match found.iter_mut().find(|(_, other)| *other == f) {
                Some((ids, _)) => ids.push(&e.id),
                None => found.push((vec![&e.id], f)),
            }
        }
    }
    let line = |(ids, f): &(Vec<&str>, &Finding)| {
        let kind = if f.kind == FindingKind::Doubt { "doubt" } else { "finding" };
        format!("- {}, {kind}: {} [{}]\n", ids.join(", "), f.text, f.rule)
    };
    let out: String = found.iter().map(line).collect();
    if out.is_empty() { out } else { format!("## Findings\n\n{out}\n") }
}

/// Returns the title of an experiment, with the published text, the rules and the readings.
fn heading(e: &ExperimentOutcome) -> String {
    let mut out = format!("## {}: {}\n\n{}\n\n", e.id, e.title, e.source);
    for c in &e.claims {
        out += &format!("- published, {}: {}\n", c.id, c.published);
        if let Some(rule) = &c.rule {
            out += &format!("- rule, {}: {rule}\n", c.id);
        }
    }
    for reading in &e.readings {
        out += &format!("- reading: {reading}\n");
    }
    out.push('\n');
    out
}
