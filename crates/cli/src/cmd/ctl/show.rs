//! Tables of `frit ctl`.

use crate::output::{right, table, text};
use frit_core::size;
use frit_serve::ctl::{HintList, Param, ParamChange, Setting};
use frit_serve::metrics::{ChannelStat, HintStat, MediumStat, ServerStat, Stat};
use std::fmt::Write;

/// Returns the parameters as a table.
pub(super) fn params(all: &[Param]) -> String {
    let mut t = table(&["parameter", "value", "default", "", "meaning"]);
    for p in all {
        let default = p.default.as_deref().unwrap_or("");
        let changed = if p.default.as_ref().is_some_and(|d| *d != p.value) { default } else { "same" };
        t.add_row([&p.key[..], &p.value, changed, if p.live { "live" } else { "fixed" }, &p.help]);
    }
    format!(
        "{}\nlive: can be changed with `frit ctl VOLUME set`; default: as the stack of the volume has it\n",
        text(&t)
    )
}

/// Parameters that change how much HFSL writes to PCM.
const TO_PCM: [&str; 4] = ["FUSION_METHOD", "SSW", "cache_ratio", "placement"];

/// Returns the result of a `set`, one line a parameter.
pub(super) fn changes(asked: &[Setting], changed: &[ParamChange]) -> String {
    let mut out = String::new();
    for s in asked {
        // A setting may name its parameter without the layer.
        let named = |c: &&ParamChange| c.key == s.key || last_part(&c.key) == s.key;
        let _ = match changed.iter().find(named) {
            Some(c) => writeln!(out, "{}: {} -> {}", c.key, c.old, c.new),
            None => writeln!(out, "{}: had this value already", s.key),
        };
    }
    out
}

/// Returns the name of a parameter without the name of its layer.
fn last_part(path: &str) -> &str {
    path.split_once('.').map_or(path, |(_, key)| key)
}

/// Returns a note if a change can send more writes to PCM than before. A smaller SSW cannot.
pub(super) fn note(changed: &[ParamChange]) -> Option<&'static str> {
    let more = |c: &ParamChange| {
        let size = |text: &str| text.parse::<u64>().ok();
        let key = last_part(&c.key);
        TO_PCM.contains(&key) && (key != "SSW" || size(&c.new) > size(&c.old))
    };
    changed.iter().any(more).then_some(
        "if clients write much to a small PCM, their writes wait for flushes for space, which `frit ctl VOLUME top` \
         shows (docs/guide/control.md, \"Flushes for space\")",
    )
}

/// Returns the complete statistics as tables.
pub(super) fn stat(s: &Stat) -> String {
    let v = &s.volume;
    let mut out = format!("{} ({}), stack {}\n", v.path, size::format(v.bytes), v.stack);
    if let Some(why) = &v.refuses {
        let _ = writeln!(out, "refuses writes: {why}");
    }
    if let Some(server) = &s.server {
        out += &served(server);
        out += &requests(s);
        out += &hints(&s.hints);
    }
    out += &media(&s.media);
    out += &channels(&s.channels);
    out += &residence(s);
    out += &figures(s);
    out
}

fn served(s: &ServerStat) -> String {
    let mut out = format!(
        "served by process {} (frit {}) for {}, {} connected, at {}\n",
        s.pid,
        s.version,
        duration(s.uptime_s),
        s.connections,
        s.exports.join(" and ")
    );
    let Some(pace) = &s.pace else { return out };
    out += "paced by the model";
    out += if pace.is_empty() { "; no replies so far\n" } else { ":\n" };
    let mut t = table(&["op", "replies", "p50", "model", "error", "p99", "model", "error"]);
    for p in pace {
        let error = |e: f64| format!("{:+.1} %", e * 100.0);
        t.add_row([
            p.op.clone(),
            p.replies.to_string(),
            time(p.p50_ns),
            time(p.model_p50_ns),
            error(p.p50_error),
            time(p.p99_ns),
            time(p.model_p99_ns),
            error(p.p99_error),
        ]);
    }
    (1..8).for_each(|c| right(&mut t, c));
    if !pace.is_empty() {
        out += &text(&t);
    }
    out
}

fn requests(s: &Stat) -> String {
    let mut t = table(&["requests", "number", "bytes", "failed", "p50", "p99", "longest"]);
    for o in s.requests.iter().filter(|o| o.requests > 0) {
        t.add_row([
            o.op.clone(),
            o.requests.to_string(),
            size::format(o.bytes),
            o.errors.to_string(),
            time(o.latency.p50_ns),
            time(o.latency.p99_ns),
            time(o.latency.max_ns),
        ]);
    }
    (1..7).for_each(|c| right(&mut t, c));
    format!("\n{}{}", text(&t), amplification(s))
}

/// Returns the writes with hints, by the source of the hint.
fn hints(all: &[HintStat]) -> String {
    let mut t = table(&["writes with a hint", "by", "number", "bytes"]);
    for h in all {
        t.add_row([h.hint.clone(), h.by.clone(), h.requests.to_string(), size::format(h.bytes)]);
    }
    (2..4).for_each(|c| right(&mut t, c));
    if all.is_empty() { String::new() } else { format!("\n{}", text(&t)) }
}

/// Returns the hints in effect, one line each.
pub(super) fn hint_list(list: &HintList) -> String {
    let kept = |saved: bool| if saved { "" } else { "   (until the server ends)" };
    let mut out = String::new();
    for range in &list.ranges {
        let _ = writeln!(out, "{}{}", range.rule, kept(range.saved));
    }
    if list.detect {
        let _ = writeln!(out, "metadata is detected{}", kept(list.detect_saved));
    }
    for fs in &list.file_systems {
        let _ = writeln!(out, "detected: {fs}");
    }
    if out.is_empty() { "no hints: no range, and metadata is not detected\n".into() } else { out }
}

/// Returns the write amplification of NAND and PCM; a disk has none of its own.
fn amplification(s: &Stat) -> String {
    let a = &s.write_amplification;
    let of = |kind, name: &str, r: Option<f64>| {
        let there = s.media.iter().any(|m| m.kind == kind);
        there.then(|| r.map_or_else(|| format!("{name} -"), |r| format!("{name} {r:.3}")))
    };
    let parts: Vec<String> =
        [of("nand", "NAND", a.nand), of("pcm", "PCM", a.pcm)].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!("write amplification: {}\n", parts.join(", ")) }
}

fn media(all: &[MediumStat]) -> String {
    let mut t = table(&[
        "medium",
        "kind",
        "size",
        "channels",
        "units",
        "wear min",
        "mean",
        "max",
        "limit",
        "bad or over",
        "of",
    ]);
    let mut commands = table(&["medium", "command", "cause", "number", "bytes"]);
    for m in all {
        let w = &m.wear;
        // Writes do not wear a disk or an object store.
        let wears = !["disk", "object"].contains(&m.kind.as_str());
        let worn = |value: String| if wears { value } else { "-".into() };
        t.add_row([
            m.name.clone(),
            m.kind.clone(),
            size::format(m.bytes),
            m.channels.to_string(),
            m.units.to_string(),
            worn(w.min.to_string()),
            worn(format!("{:.2}", w.mean)),
            worn(w.max.to_string()),
            worn(w.limit.to_string()),
            worn(w.bad.to_string()),
            worn(w.per.clone()),
        ]);
        for c in &m.commands {
            commands.add_row([
                m.name.clone(),
                c.op.clone(),
                c.cause.clone(),
                c.commands.to_string(),
                size::format(c.bytes),
            ]);
        }
    }
    (2..10).for_each(|c| right(&mut t, c));
    (3..5).for_each(|c| right(&mut commands, c));
    format!("\n{}\n{}", text(&t), text(&commands))
}

/// Returns the channels of the modelled device, or nothing without a model.
fn channels(all: &[ChannelStat]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut t = table(&["channel", "state", "units with work", "idle in", "transfers so far"]);
    for c in all {
        t.add_row([
            format!("{} {}", c.medium, c.channel),
            if c.busy_units > 0 { "busy".into() } else { "idle".into() },
            format!("{} of {}", c.busy_units, c.units),
            if c.busy_units > 0 { time(c.idle_in_ns) } else { "-".into() },
            time(c.busy_ns),
        ]);
    }
    (2..5).for_each(|c| right(&mut t, c));
    format!("\n{}", text(&t))
}

fn residence(s: &Stat) -> String {
    let r = s.residence();
    let all = (r.unmapped + r.nand + r.pcm_level + r.pcm_cache + r.disk).max(1);
    let mut t = table(&["where pages lie", "pages", "share"]);
    let rows = [
        ("nowhere (zeros)", r.unmapped),
        ("NAND", r.nand),
        ("PCM as storage", r.pcm_level),
        ("PCM as a cache", r.pcm_cache),
        ("disk", r.disk),
    ];
    for (name, pages) in rows.into_iter().filter(|(_, pages)| *pages > 0) {
        t.add_row([name.into(), pages.to_string(), format!("{:.1} %", pages as f64 * 100.0 / all as f64)]);
    }
    (1..3).for_each(|c| right(&mut t, c));
    format!("\n{}", text(&t))
}

fn figures(s: &Stat) -> String {
    let mut out = String::new();
    for l in &s.layers {
        let mut t = table(&[&l.name, "", "unit", "meaning"]);
        for f in &l.figures {
            // `size::format` adds the unit itself.
            let unit = if f.unit == "B" { String::new() } else { f.unit.clone() };
            t.add_row([f.name.clone(), figure(f.value, &f.unit), unit, f.help.clone()]);
        }
        right(&mut t, 1);
        out += &format!("\n{}", text(&t));
    }
    out
}

/// Formats a metric: counts as integers, sizes with their unit, ratios and means with four
/// decimals.
fn figure(value: f64, unit: &str) -> String {
    match value {
        v if unit == "B" && (0.0..u64::MAX as f64).contains(&v) => size::format(v as u64),
        v if v.fract() == 0.0 => v.to_string(),
        v => format!("{v:.4}"),
    }
}

/// Formats a time with about three digits.
pub(super) fn time(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.1} µs", n / 1e3),
        n if n < 1e9 => format!("{:.1} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}

fn duration(s: f64) -> String {
    let all = s as u64;
    let (h, m, s) = (all / 3600, all / 60 % 60, all % 60);
    if h > 0 { format!("{h} h {m} min") } else { format!("{m} min {s} s") }
}
