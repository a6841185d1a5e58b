//! HTML parts: findings of a run, and of a comparison.

use crate::findings::{Finding, FindingKind, of_comparison};
use crate::report::Report;
use maud::{Markup, html};

/// Draws the findings of a run.
pub(super) fn of_run(r: &Report) -> Markup {
    html! {
        @if r.findings.is_empty() { p class="soft" { "No finding." } }
        @else { ul class="findings" { @for f in &r.findings { (item("", f)) } } }
    }
}

/// Draws the findings of the runs of one workload: doubts about all of them, and the best stacks.
pub(super) fn of_runs(runs: &[Report]) -> Markup {
    let all = of_comparison(runs);
    html! {
        @if !all.of_runs.is_empty() {
            ul class="findings" { @for f in &all.of_runs { (item(&f.runs, &f.finding)) } }
        }
        @if !all.conclusion.is_empty() {
            p { strong { "The best stack for each purpose" } }
            ul class="findings" { @for f in &all.conclusion { li { (f.text) } } }
        }
    }
}

fn item(runs: &str, f: &Finding) -> Markup {
    let class = match f.kind {
        FindingKind::Doubt => "doubt",
        FindingKind::Explanation => "finding",
    };
    html! {
        li class=(class) data-rule=(f.rule) {
            @if f.kind == FindingKind::Doubt { strong { "Doubt: " } }
            @if !runs.is_empty() { em { (runs) ": " } }
            (f.text) " " span class="soft" { "[" (f.rule) "]" }
        }
    }
}
