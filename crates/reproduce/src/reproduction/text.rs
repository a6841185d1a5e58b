//! Results as text.

use super::{ExperimentOutcome, Reproduction};
use crate::outcome::{Outcome, outcome_text, shared_text};
use crate::workloads::workload_section;
use frit_replay::findings::FindingKind;

pub(super) fn text(r: &Reproduction) -> String {
    let commit = r.frit.commit.as_deref().unwrap_or("unknown");
    let seed = r.seed.map_or(String::new(), |s| format!(", seed {s}"));
    let mut out = format!("Measured by frit {}, commit {commit}{seed}.\n\n", r.frit.version);
    if r.quick {
        out += "--quick: only the first requests of a few workloads, few rounds, few cases. These are not results.\n\n";
    }
    out += &findings(r);
    let outcomes: Vec<Outcome> = r.experiments.iter().map(|e| e.measured.outcome()).collect();
    for (e, outcome) in r.experiments.iter().zip(&outcomes) {
        out += &heading(e);
        out += &outcome_text(outcome);
        out.push('\n');
    }
    let shared = outcomes.into_iter().flat_map(|o| o.shared);
    out += &shared_text(shared.chain([workload_section(&r.workloads)]));
    for m in &r.missing {
        out += &format!("SKIPPED {}: {}\n", m.name, m.why);
    }
    out
}

/// Returns what the results of all experiments say.
fn findings(r: &Reproduction) -> String {
    let mut out = String::new();
    for e in &r.experiments {
        for f in &e.findings {
            let kind = if f.kind == FindingKind::Doubt { "doubt" } else { "finding" };
            out += &format!("- {}, {kind}: {} [{}]\n", e.id, f.text, f.rule);
        }
    }
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
