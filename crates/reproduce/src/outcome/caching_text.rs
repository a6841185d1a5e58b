//! Results of studies of caches as text.

use super::caching::{CachingOutcome, CachingRow, CachingView, MetricChange};
use super::format::{change, count, generated, percent, table};
use crate::caching::CacheMetric;
use frit_core::size;
use std::fmt::Write as _;

/// Returns all tables of a figure.
pub(super) fn caching(o: &CachingOutcome) -> String {
    let mut out = String::new();
    for v in &o.views {
        let _ = writeln!(out, "**{}**: {}.\n", v.view, v.about);
        if v.rows.is_empty() {
            out += "No workload is available.\n\n";
            continue;
        }
        for (i, m) in o.metrics.iter().enumerate() {
            let by = o.by.as_deref().filter(|_| i == 0);
            let relative =
                by.map_or(String::new(), |by| format!("; {by} as measured, the others relative to it"));
            let _ = writeln!(out, "{}{relative}:\n", m.about());
            out += &metric_table(o, v, *m, by);
            out.push('\n');
        }
        if let Some(m) = &v.mean {
            let _ = writeln!(
                out,
                "Mean change over {}: measured {}, published {} for the same workloads.\n",
                m.of.join(", "),
                points(m.measured),
                points(m.published)
            );
        }
    }
    out
}

fn metric_table(o: &CachingOutcome, v: &CachingView, metric: CacheMetric, by: Option<&str>) -> String {
    let judged = by.is_some() && v.rows.iter().any(|r| r.judged.is_some());
    let mut head: Vec<String> = ["workload", "stands for", "cache", "filled"].map(String::from).into();
    head.extend(o.policies.iter().cloned());
    if judged {
        head.extend(["published", "verdict"].map(String::from));
    }
    let base = by.and_then(|by| o.policies.iter().position(|p| p == by));
    let mut rows = Vec::new();
    for r in &v.rows {
        let mut row = name(r);
        let values: Vec<f64> = r.values(metric).collect();
        let of_base = base.and_then(|b| values.get(b)).copied().filter(|b| *b > 0.0);
        for (i, value) in values.iter().enumerate() {
            row.push(match of_base {
                Some(b) if Some(i) != base => change(value / b),
                _ => number(metric, *value),
            });
        }
        if judged {
            row.extend(verdict(r.judged.as_ref()));
        }
        rows.push(row);
    }
    table(&head, 2, &rows)
}

fn name(r: &CachingRow) -> Vec<String> {
    let filled = r.found.iter().map(|f| f.turnovers).fold(0.0, f64::max);
    vec![
        generated(&r.workload, r.kind),
        r.stands_for.clone().unwrap_or_else(|| "–".into()),
        format!("{:.1} MiB", r.cache_bytes as f64 / f64::from(1 << 20)),
        format!("{filled:.1}×"),
    ]
}

fn number(metric: CacheMetric, value: f64) -> String {
    match metric {
        CacheMetric::Time if value < 100.0 => format!("{value:.2}"),
        CacheMetric::Time => format!("{value:.0}"),
        CacheMetric::Response => format!("{value:.3}"),
        CacheMetric::Traffic | CacheMetric::Hits => format!("{value:.4}"),
        CacheMetric::Distance if value >= 100.0 => count(value.round() as u64),
        CacheMetric::Distance | CacheMetric::Destage => format!("{value:.2}"),
    }
}

/// Formats a change in percent, with its sign.
fn points(percent: f64) -> String {
    change(1.0 + percent / 100.0)
}

fn verdict(c: Option<&MetricChange>) -> [String; 2] {
    let Some((c, published)) = c.and_then(|c| Some((c, c.published?))) else {
        return ["–".into(), "–".into()];
    };
    let direction = match c.direction {
        Some(true) => "direction agrees",
        _ => "direction DIFFERS",
    };
    let value = match c.value {
        Some(true) => ", value agrees".to_owned(),
        Some(false) => format!(", value DIFFERS by {:+.1} points", c.measured - published).replace('-', "−"),
        None => String::new(),
    };
    [points(published), format!("{direction}{value}")]
}

/// Returns the characteristics of the workloads, each once, and the assumptions of the studies.
pub(super) fn studies<'a>(all: impl Iterator<Item = &'a CachingOutcome>) -> String {
    let (mut readings, mut rows, mut about) = (String::new(), Vec::new(), String::new());
    let (mut told, mut seen) = (Vec::new(), Vec::new());
    for o in all {
        if !told.contains(&&o.study) {
            told.push(&o.study);
            let _ = writeln!(readings, "## Assumptions of the study `{}`\n", o.study);
            for r in &o.readings {
                let _ = writeln!(readings, "- {r}");
            }
            readings.push('\n');
        }
        for w in &o.workloads {
            if seen.contains(&&w.name) {
                continue;
            }
            seen.push(&w.name);
            rows.push(vec![
                generated(&w.name, w.kind),
                w.stands_for.clone().unwrap_or_else(|| "–".into()),
                count(w.requests),
                percent(w.write_ratio),
                format!("{:.2} KB", w.mean_bytes / 1024.0),
                size::format(w.asked_bytes >> 20 << 20),
            ]);
            let _ = writeln!(about, "- {}: {}; `{}`", w.name, w.about, w.identity);
        }
    }
    if rows.is_empty() {
        return readings;
    }
    let head =
        ["workload", "stands for", "reads and writes", "writes", "mean size", "requested"].map(String::from);
    format!("{readings}## Workloads of the cache studies\n\n{}\n{about}\n", table(&head, 2, &rows))
}
