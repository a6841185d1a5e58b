//! Tables: layers, media, memory, and the inputs of the run.

use super::numbers::tick;
use crate::report::show::{count, figure as number, percent};
use crate::report::{MediumReport, MetricRow, Report};
use frit_core::size;
use maud::{Markup, html};

/// Draws the metrics of the layers and the engine, the use of media, and memory.
pub(super) fn section(r: &Report) -> Markup {
    html! {
        @for l in &r.layers { (metrics(&format!("Layer {}", l.name), &l.metrics)) }
        (metrics(&format!("Engine {}", r.run.engine), &r.engine))
        (media(r))
        (memory(r))
    }
}

/// Formats a value with its unit, without loss of precision.
fn value(v: f64, unit: &str) -> String {
    match unit {
        "bytes" if v >= 0.0 => size::format(v as u64),
        _ if v.fract() == 0.0 && (0.0..1e15).contains(&v) => count(v as u64),
        _ if v.fract() == 0.0 && v.abs() < 1e15 => format!("−{}", count(v.abs() as u64)),
        _ => format!("{v:.4}"),
    }
}

fn metrics(name: &str, rows: &[MetricRow]) -> Markup {
    if rows.is_empty() {
        return html! {};
    }
    html! {
        figure {
            figcaption { strong { (name) } }
            div class="scroll" { table {
                thead { tr { th { "metric" } th class="num" { "at the end" } th class="num" { "in the measured part" } th { "unit" } th { "what it is" } } }
                tbody { @for m in rows { tr {
                    td { code { (m.name) } } td class="num" { (value(m.value, m.unit)) } td class="num" { (value(m.change, m.unit)) }
                    td class="soft" { (m.unit) } td { (m.help) }
                } } }
            } }
        }
    }
}

/// Formats mean, minimum and maximum of shares.
fn span(shares: &[f64]) -> String {
    let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let (low, high) = shares.iter().fold((f64::MAX, 0.0f64), |(l, h), &s| (l.min(s), h.max(s)));
    match shares.len() {
        0 => "–".into(),
        1 => percent(mean),
        n => format!("{} ({} to {} over {n})", percent(mean), percent(low), percent(high)),
    }
}

fn media(r: &Report) -> Markup {
    let kind =
        |m: &MediumReport| serde_json::to_value(m.kind).ok().and_then(|v| v.as_str().map(str::to_owned));
    html! {
        figure {
            figcaption { strong { "Media" } }
            div class="scroll" { table {
                thead { tr { th { "medium" } th { "kind" } th class="num" { "size" } th class="num" { "channels busy" } th class="num" { "units busy" } } }
                tbody { @for m in &r.media { tr {
                    td { (m.name) } td { (kind(m).unwrap_or_default()) } td class="num" { (size::format(m.bytes)) }
                    td class="num" { (span(&m.channel_busy)) } td class="num" { (span(&m.unit_busy)) }
                } } }
            } }
            @for m in &r.media {
                details {
                    summary { "Geometry of " (m.name) }
                    p { @for (i, (name, v)) in m.geometry.iter().enumerate() {
                        @if i > 0 { ", " }
                        code { (name) " = " (count(*v)) }
                    } }
                }
            }
        }
    }
}

fn memory(r: &Report) -> Markup {
    let m = &r.memory;
    html! {
        p { "Mapping takes " (size::format(m.dram_bytes)) " of DRAM (" (number(m.dram_bytes_a_page)) " bytes a page"
            @if let Some(b) = m.dram_bytes_a_mapped_page { ", " (number(b)) " a mapped page" }
            ") and reserves " (size::format(m.durable_map_bytes)) " of durable memory, for " (count(m.pages)) " pages of "
            (size::format(u64::from(m.page_bytes))) ", of which " (count(m.mapped_pages)) " are mapped." }
    }
}

/// Draws the full stack, and how the workload was read.
pub(super) fn inputs(r: &Report) -> Markup {
    let w = &r.workload;
    html! {
        details {
            summary { "The stack in canonical TOML: a file that builds the same stack" }
            p class="soft" { "sha256 " code { (r.stack.sha256) } }
            pre { (r.stack.toml) }
        }
        details {
            summary { "How the workload was read" }
            ul { @for line in w.reading.lines() { li { (line) } } }
            @if w.problems.malformed > 0 {
                p { (count(w.problems.malformed)) " of " (count(w.problems.lines)) " lines could not be understood; the first:" }
                ul { @for m in &w.problems.shown { li { "line " (count(m.line)) ": " (m.reason) ": " code { (m.text) } } } }
            }
            @if let Some(x) = r.run.speed { p { "Arrival times were divided by " (tick(x)) "." } }
        }
    }
}
