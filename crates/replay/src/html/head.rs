//! Head of a report: its inputs and its key metrics.

use super::steady;
use crate::report::show::{count, figure as number, percent, ratio_or_dash, time};
use crate::report::{Report, text};
use crate::steady::SteadyVerdict;
use crate::verify::{Verification, VerifyPhase};
use frit_core::{MediumKind, Op, size};
use frit_trace::WorkloadKind;
use maud::{Markup, html};

/// Returns a short name of a stack: its file name without the directory.
pub(super) fn stack(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().filter(|n| !n.is_empty()).unwrap_or(name)
}

/// Returns a badge for the origin of the workload: recorded or generated.
pub(super) fn kind(r: &Report) -> Markup {
    match r.workload.identity.kind {
        WorkloadKind::Real => html! { span class="badge real" { "REAL TRACE" } },
        WorkloadKind::Generated => html! { span class="badge generated" { "GENERATED" } },
    }
}

/// Returns a badge for the result of verification, if there was one.
pub(super) fn verdict(r: &Report) -> Markup {
    match &r.verification {
        None => html! {},
        Some(v) if v.passed() => html! { " " span class="badge pass" { "VERIFIED" } },
        Some(_) => html! { " " span class="badge fail" { "MISMATCHES" } },
    }
}

/// Draws stack, workload and run, important notes, and key metrics.
pub(super) fn identity(r: &Report) -> Markup {
    let w = &r.workload.identity;
    html! {
        p { (kind(r)) (verdict(r)) }
        dl class="id" {
            dt { "Stack" } dd { strong { (r.stack.name) } ", volume of " (size::format(r.stack.volume_bytes)) ", sha256 " code { (short(&r.stack.sha256)) } }
            dt { "Workload" } dd {
                strong { (w.name) }
                @if let Some(spec) = &w.generator {
                    ", generated, not recorded: " code { (spec) }
                    @if let Some(v) = w.version { " (generators version " (v) ")" }
                }
                @else { ", " (r.workload.reading.about) @if let Some(sha) = &w.sha256 { ", sha256 " code { (short(sha)) } } }
            }
            dt { "Requests" } dd { (asked(r)) }
            dt { "Run" } dd { (run(r)) }
            dt { "Warm-up" } dd { (warm(r)) }
            dt { "Program" } dd { "frit " (r.frit.version) @if let Some(c) = &r.frit.commit { ", commit " code { (c) } } }
        }
        (remarks(r))
        (tiles(r))
        @if let Some(v) = &r.verification { (verification(v)) }
    }
}

fn short(sha: &str) -> &str {
    sha.get(..16).unwrap_or(sha)
}

fn asked(r: &Report) -> String {
    let a = &r.asked;
    let mut parts = vec![format!("{} measured", count(a.requests))];
    for (n, name, bytes) in [
        (a.reads, "reads", a.read_bytes),
        (a.writes, "writes", a.written_bytes),
        (a.discards, "discards", a.discarded_bytes),
    ] {
        if n > 0 {
            parts.push(format!("{} {name} of {}", count(n), size::format(bytes)));
        }
    }
    if a.flushes > 0 {
        parts.push(format!("{} flushes", count(a.flushes)));
    }
    for c in &r.commands {
        let part = format!("{} {} of {}", count(c.requests), c.command, size::format(c.bytes));
        parts.push(match (c.hits, c.misses) {
            (Some(hits), Some(misses)) => {
                format!("{part} ({} blocks present, {} absent)", count(hits), count(misses))
            }
            _ => part,
        });
    }
    parts.join(", ")
}

fn run(r: &Report) -> String {
    let engine = match &r.run.scheduler {
        Some(s) => format!("{} engine, {s} scheduler", r.run.engine),
        None => format!("{} engine", r.run.engine),
    };
    let mode = match (r.run.speed, r.run.queue_depth) {
        (None, depth) => format!("closed loop, queue depth {}", depth.unwrap_or(1)),
        (Some(x), None) => format!("open loop at {x}× the speed of arrival"),
        (Some(x), Some(d)) => format!("open loop at {x}× the speed of arrival, at most {d} outstanding"),
    };
    format!("{engine}; {mode}; seed {}", r.run.seed)
}

fn warm(r: &Report) -> String {
    match (r.run.warm.as_str(), r.run.warm_requests) {
        ("none", _) => "none: a new volume".into(),
        (how, 0) => how.into(),
        (how, n) => format!("{how} ({} requests, excluded from results)", count(n)),
    }
}

fn remarks(r: &Report) -> Markup {
    let all = text::remarks(r);
    html! { @if !all.is_empty() { ul { @for remark in &all { li { (remark) } } } } }
}

struct Tile {
    name: &'static str,
    value: String,
    note: String,
}

fn tiles(r: &Report) -> Markup {
    let all = [latency(r), throughput(r), amplification(r), erases(r), disks(r), residence(r), software(r)];
    let steady = Tile {
        name: "steady state",
        value: match r.steady_state.verdict {
            SteadyVerdict::Reached => "reached".into(),
            SteadyVerdict::NotReached => "not reached".into(),
            SteadyVerdict::TooShort => "unknown".into(),
        },
        note: steady::verdict(&r.steady_state),
    };
    html! {
        div class="tiles" {
            @for t in all.into_iter().flatten().chain([steady]) {
                div class="tile" { div class="name" { (t.name) } div class="value" { (t.value) } div class="note" { (t.note) } }
            }
        }
    }
}

fn latency(r: &Report) -> Vec<Tile> {
    let Some(all) = r.class("all").filter(|l| l.response.figures.count > 0) else { return Vec::new() };
    let f = &all.response.figures;
    let of = |class: &str| {
        r.class(class)
            .filter(|l| l.response.figures.count > 0)
            .map(|l| format!("{class} {}", time(l.response.figures.mean_ns)))
    };
    let parts: Vec<String> = ["read", "write"].into_iter().filter_map(of).collect();
    vec![
        Tile { name: "mean latency", value: time(f.mean_ns), note: parts.join(", ") },
        Tile {
            name: "99th percentile",
            value: time(f.p99_ns.0 as f64),
            note: format!("p50 {}, p99.9 {}", time(f.p50_ns.0 as f64), time(f.p999_ns.0 as f64)),
        },
    ]
}

fn throughput(r: &Report) -> Vec<Tile> {
    let t = &r.throughput;
    let note = format!("{} MB/s over {} of virtual time", number(t.mb_per_s), time(t.duration_ns as f64));
    vec![Tile { name: "requests/s", value: number(t.requests_per_s), note }]
}

fn amplification(r: &Report) -> Vec<Tile> {
    let w = &r.write_amplification;
    if !r.has(MediumKind::Nand) {
        let note = "PCM bytes per byte of the host".to_owned();
        let tile = |p| Tile { name: "write amplification", value: ratio_or_dash(Some(p)), note };
        return w.pcm.filter(|_| r.has(MediumKind::Pcm)).map(tile).into_iter().collect();
    }
    let pcm = w.pcm.map_or(String::new(), |p| format!(", PCM {p:.3}"));
    vec![Tile {
        name: "write amplification",
        value: ratio_or_dash(w.nand),
        note: format!("NAND; flash only {}{pcm}", ratio_or_dash(w.flash)),
    }]
}

fn erases(r: &Report) -> Vec<Tile> {
    let nand = || r.media.iter().filter(|m| m.kind == MediumKind::Nand);
    let Some(most) = nand().map(|m| m.wear.run.max).max() else { return Vec::new() };
    let note = format!(
        "{} programs; most erases of a block {}",
        count(r.of(Op::NandProgram).commands),
        count(u64::from(most))
    );
    vec![Tile { name: "NAND erases", value: count(nand().map(|m| m.erases).sum()), note }]
}

fn disks(r: &Report) -> Vec<Tile> {
    let Some((m, d)) = r.media.iter().find_map(|m| Some((m, m.disk.as_ref()?))) else { return Vec::new() };
    let note = format!(
        "{} requests to {}, {} each; traffic rate {}",
        count(m.reads.commands + m.writes.commands),
        m.name,
        d.served_mean_ns.map_or_else(|| "–".into(), time),
        ratio_or_dash(d.traffic_rate)
    );
    vec![Tile { name: "disk busy", value: time(d.busy_ns as f64), note }]
}

fn residence(r: &Report) -> Vec<Tile> {
    if !r.has(MediumKind::Pcm) {
        return Vec::new();
    }
    let Some(p) = r.layers.iter().map(|l| l.residence_total).find(|p| p.mapped() > 0) else {
        return Vec::new();
    };
    let pcm = p.pcm_level + p.pcm_cache;
    let note = format!("{} of {} mapped pages", count(pcm), count(p.mapped()));
    vec![Tile { name: "pages in PCM", value: percent(pcm as f64 / p.mapped() as f64), note }]
}

fn software(r: &Report) -> Vec<Tile> {
    let s = &r.software;
    let with = if s.includes_verification { "wall clock, with verification" } else { "wall clock" };
    vec![Tile {
        name: "software per request",
        value: time(s.ns_per_request),
        note: format!("{with}; {} in all", time(s.wall_ns as f64)),
    }]
}

fn verification(v: &Verification) -> Markup {
    let checked = format!(
        "{} reads ({} sectors) checked, {} sectors read back at the end, {} again after halt and boot",
        count(v.reads_checked),
        count(v.sectors_checked),
        count(v.sectors_read_back),
        count(v.sectors_after_boot)
    );
    if v.passed() {
        return html! { p { strong { "Verification: no mismatch." } " " (checked) "." } };
    }
    let stage = |s| match s {
        VerifyPhase::Run => "in the run",
        VerifyPhase::ReadBack => "read back",
        VerifyPhase::AfterBoot => "after boot",
    };
    html! {
        div class="alarm" {
            p { strong { "Verification: " (count(v.mismatches)) " sectors had wrong contents." } " " (checked) "." }
            ul { @for m in &v.first { li { (stage(m.stage)) ": sector " (m.sector) ": expected " (m.expected) ", found " (m.found) } } }
        }
    }
}
