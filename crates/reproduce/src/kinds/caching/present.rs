//! Results of studies of caches in generic parts.

use super::{CachedWorkload, CachingOutcome, CachingRow, CachingView, MetricChange, SplitOutcome};
use crate::caching::CacheMetric;
use crate::kinds::Present;
use crate::kinds::claim_verdict::claim_table;
use crate::outcome::{
    Cell, Deviation, JudgedAspect, Judgement, Outcome, OutcomePart, OutcomeTable, SharedEntry, SharedPlace,
    SharedSection, change, generated,
};

impl Present for CachingOutcome {
    fn present(&self) -> Outcome {
        let title = format!("Assumptions of the study `{}`", self.study);
        let claims = (!self.claims.is_empty()).then(|| OutcomePart::Table(claim_table(&self.claims)));
        let views = self.views.iter().flat_map(|v| view_parts(self, v));
        Outcome {
            parts: claims.into_iter().chain(views).collect(),
            blank_end: true,
            shared: vec![
                SharedSection::assumptions(SharedPlace::Studies, title, &self.readings),
                workload_section(&self.workloads),
            ],
            ..Outcome::default()
        }
    }
}

fn view_parts(o: &CachingOutcome, v: &CachingView) -> Vec<OutcomePart> {
    let mut parts = vec![OutcomePart::section(&v.view, Some(&v.about))];
    if v.rows.is_empty() {
        parts.push(OutcomePart::no_workload());
        return parts;
    }
    for (i, m) in o.metrics.iter().enumerate() {
        let by = o.by.as_deref().filter(|_| i == 0);
        let relative =
            by.map_or(String::new(), |by| format!("; {by} as measured, the others relative to it"));
        parts.push(OutcomePart::Text(format!("{}{relative}:", m.about())));
        parts.push(OutcomePart::Table(metric_table(o, v, *m, by)));
    }
    if let Some(m) = &v.mean {
        parts.push(OutcomePart::Text(format!(
            "Mean change over {}: measured {}, published {} for the same workloads.",
            m.of.join(", "),
            points(m.measured),
            points(m.published)
        )));
    }
    if let Some(column) = o.reasons.as_ref().and_then(|n| o.policies.iter().position(|p| p == n)) {
        let about = format!("victim selections of {} by reason:", o.policies[column]);
        parts.extend([OutcomePart::Text(about), OutcomePart::Table(reasons_table(v, column))]);
    }
    parts.extend(v.split.iter().flat_map(split_parts));
    parts
}

/// Returns the evictions of a policy by reason.
fn reasons_table(v: &CachingView, column: usize) -> OutcomeTable {
    let head = [
        "workload",
        "stands for",
        "cache",
        "filled",
        "thresholds",
        "lowered thresholds",
        "outdated",
        "end of scan",
    ];
    let mut table = OutcomeTable::new(2, &head, Vec::new());
    for (r, found) in v.rows.iter().filter_map(|r| Some((r, r.found.get(column)?))) {
        let e = found.evictions;
        let counts = [e.thresholds, e.lowered_thresholds, e.outdated, e.end_of_scan];
        table.rows.push(names(r).into_iter().chain(counts.map(Cell::Count)).collect());
    }
    table
}

/// Returns the mean changes over the two parts of the workloads.
fn split_parts(s: &SplitOutcome) -> [OutcomePart; 3] {
    let mean = |m: Option<f64>| m.map_or(Cell::Missing, |m| Cell::Change(1.0 + m / 100.0));
    let row = |r: &super::SplitRow| vec![Cell::text(&r.policy), mean(r.choice), mean(r.report)];
    let head = ["column", "mean over the choice", "mean over the report"];
    let of = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let about = format!("Mean changes. Choice: {}. Report: {}.", of(&s.chosen_on), of(&s.reported_on));
    let best = s.chosen.as_deref().unwrap_or("none");
    [
        OutcomePart::Text(about),
        OutcomePart::Table(OutcomeTable::new(1, &head, s.rows.iter().map(row).collect())),
        OutcomePart::Text(format!("Best over the workloads of the choice: {best}.")),
    ]
}

fn metric_table(o: &CachingOutcome, v: &CachingView, metric: CacheMetric, by: Option<&str>) -> OutcomeTable {
    let judged = by.is_some() && v.rows.iter().any(|r| r.judged.is_some());
    let mut table = OutcomeTable::new(2, &["workload", "stands for", "cache", "filled"], Vec::new());
    table.head.extend(o.policies.iter().map(|p| Cell::text(p)));
    if judged {
        table.head.extend(["published", "verdict"].map(Cell::text));
    }
    let base = by.and_then(|by| o.policies.iter().position(|p| p == by));
    for r in &v.rows {
        let mut row = names(r);
        let values: Vec<f64> = r.values(metric).collect();
        let of_base = base.and_then(|b| values.get(b)).copied().filter(|b| *b > 0.0);
        for (i, value) in values.iter().enumerate() {
            row.push(match of_base {
                Some(b) if Some(i) != base => Cell::Change(value / b),
                _ => number(metric, *value),
            });
        }
        if judged {
            row.extend(verdict(r.judged.as_ref()));
        }
        table.rows.push(row);
    }
    table
}

fn names(r: &CachingRow) -> Vec<Cell> {
    let filled = r.found.iter().map(|f| f.turnovers).fold(0.0, f64::max);
    vec![
        Cell::Text(generated(&r.workload, r.kind)),
        Cell::name(r.stands_for.as_deref()),
        Cell::with_unit(r.cache_bytes as f64 / f64::from(1 << 20), 1, " MiB"),
        Cell::with_unit(filled, 1, "×"),
    ]
}

fn number(metric: CacheMetric, value: f64) -> Cell {
    match metric {
        CacheMetric::Time if value < 100.0 => Cell::number(value, 2),
        CacheMetric::Time => Cell::number(value, 0),
        CacheMetric::Response => Cell::number(value, 3),
        CacheMetric::Traffic | CacheMetric::Hits => Cell::number(value, 4),
        CacheMetric::Distance if value >= 100.0 => Cell::Count(value.round() as u64),
        CacheMetric::Distance | CacheMetric::Destage => Cell::number(value, 2),
    }
}

/// Formats a change in percent, with its sign.
fn points(percent: f64) -> String {
    change(1.0 + percent / 100.0)
}

/// Returns the published change and the verdict.
fn verdict(c: Option<&MetricChange>) -> [Cell; 2] {
    let Some((c, published)) = c.and_then(|c| Some((c, c.published?))) else {
        return [Cell::Missing, Cell::Missing];
    };
    let mut judgements = vec![Judgement::of(JudgedAspect::Direction, Some(c.direction == Some(true)))];
    judgements.extend(c.value.map(|holds| Judgement {
        aspect: JudgedAspect::Value,
        holds: Some(holds),
        deviation: Some(Deviation::Points(c.measured - published)),
    }));
    [Cell::Change(1.0 + published / 100.0), Cell::verdict(judgements)]
}

/// Returns the section with the characteristics of the workloads.
fn workload_section(all: &[CachedWorkload]) -> SharedSection {
    let entry = |w: &CachedWorkload| SharedEntry {
        key: w.name.clone(),
        row: vec![
            Cell::Text(generated(&w.name, w.kind)),
            Cell::name(w.stands_for.as_deref()),
            Cell::Count(w.requests),
            Cell::percent(w.write_ratio, 1),
            Cell::with_unit(w.mean_bytes / 1024.0, 2, " KB"),
            Cell::Size(w.asked_bytes >> 20 << 20),
        ],
        item: format!("{}: {}; `{}`", w.name, w.about, w.identity),
    };
    SharedSection {
        place: SharedPlace::StudyWorkloads,
        title: "Workloads of the cache studies".to_owned(),
        about: None,
        names: 2,
        head: ["workload", "stands for", "reads and writes", "writes", "mean size", "requested"]
            .map(Cell::text)
            .into(),
        entries: all.iter().map(entry).collect(),
    }
}
