//! Summary of a stack as tables.

use super::tree;
use crate::output::{right, table, text};
use frit_core::size;
use frit_stack::{LayerSummary, MediumSummary, StackSummary};
use std::fmt::Write;

/// Timing values of a medium, in the order of the output.
const TIMES: [(&str, &str); 28] = [
    ("t_read", "read"),
    ("t_write", "write"),
    ("t_flush", "flush"),
    ("read_mb_per_s", "MB/s of reads"),
    ("write_mb_per_s", "MB/s of writes"),
    ("t_prog", "program"),
    ("t_erase", "erase"),
    ("t_read_slc", "read with one bit a cell"),
    ("t_prog_slc", "program with one bit a cell"),
    ("cell", "cells"),
    ("page_order", "order of pages"),
    ("suspend", "suspends"),
    ("bus_per_byte", "bus a byte"),
    ("read", "read"),
    ("write", "write"),
    ("write_clean", "clean write"),
    ("t_put", "put"),
    ("t_get", "get"),
    ("t_delete", "delete"),
    ("connection_mb_per_s", "MB/s of a connection"),
    ("link_mb_per_s", "MB/s of the link"),
    ("latency", "access"),
    ("per_byte", "a byte"),
    ("write_back", "write cache"),
    ("order", "order"),
    ("queue_depth", "queue depth"),
    ("max_wait", "longest wait"),
    ("background", "background"),
];

/// Geometry values of a medium, in the order of the output.
const SHAPE: [(&str, &str); 11] = [
    ("chips_per_channel", "chips a channel"),
    ("dies_per_chip", "dies a chip"),
    ("planes_per_die", "planes a die"),
    ("blocks_per_plane", "blocks a plane"),
    ("pages_per_block", "pages a block"),
    ("page_bytes", "a page"),
    ("chip_bytes", "a chip"),
    ("drive", "drive"),
    ("write_unit", "write unit"),
    ("interleave_bytes", "interleaved"),
    ("object_bytes", "an object"),
];

/// Returns the summary as text; `all` adds sources and meanings.
pub(super) fn summary(s: &StackSummary, all: bool) -> String {
    let mut out = format!("{}\n", s.name);
    if !s.about.is_empty() {
        let _ = writeln!(out, "{}", s.about);
    }
    let _ = writeln!(out, "sha256 {}\n", s.sha256);
    let _ = writeln!(out, "{}", media(&s.media));
    if s.layers.len() > 1 {
        let _ = writeln!(out, "{}", tree::drawing(s));
    }
    for layer in &s.layers {
        let _ = writeln!(out, "{}", sizes(s, layer));
        let _ = writeln!(out, "{}", parameters(layer, all));
    }
    let _ = writeln!(out, "{}", engine(s));
    if all {
        for m in &s.media {
            let _ = writeln!(out, "\n{}", values(m));
        }
    }
    out
}

fn media(all: &[MediumSummary]) -> String {
    let mut t = table(&["medium", "size", "channels", "units", "profile, shape, times"]);
    for m in all {
        let used = if m.used { "" } else { " (unused)" };
        let kind: &str = m.kind.into();
        let name = if m.name == kind { m.name.clone() } else { format!("{} ({kind})", m.name) };
        t.add_row([
            format!("{name}{used}"),
            size::format(m.bytes),
            m.channels.to_string(),
            m.units.to_string(),
            [profile(m), said(m, &SHAPE), said(m, &TIMES)]
                .into_iter()
                .filter(|line| !line.is_empty())
                .collect::<Vec<_>>()
                .join("\n"),
        ]);
    }
    for column in 1..4 {
        right(&mut t, column);
    }
    text(&t)
}

/// Returns the profile, and the keys in which the medium differs from it.
fn profile(m: &MediumSummary) -> String {
    if m.profile.is_empty() {
        return "no profile".into();
    }
    let own: Vec<&str> = m.values.iter().filter(|v| v.given && v.key != "medium").map(|v| v.key).collect();
    if own.is_empty() { m.profile.clone() } else { format!("{}, with its own {}", m.profile, own.join(", ")) }
}

fn said(m: &MediumSummary, keys: &[(&str, &str)]) -> String {
    let found = keys.iter().filter_map(|(key, words)| {
        let value = &m.values.iter().find(|v| v.key == *key)?.value;
        // One chip, die or plane is the default and not shown; a queue depth of one is.
        (value != "1" || *key == "queue_depth").then(|| match (*key, &value[..]) {
            ("write_back", "true") => format!("{words} on"),
            ("write_back", "false") => format!("{words} off"),
            _ => format!("{words} {value}"),
        })
    });
    found.collect::<Vec<_>>().join("; ")
}

fn sizes(s: &StackSummary, l: &LayerSummary) -> String {
    let on: Vec<String> = l.on.iter().map(|(role, names)| format!("{role} = {}", names.join(", "))).collect();
    let kind = if l.kind == l.name { String::new() } else { format!(" ({})", l.kind) };
    let is_top = s.layers.first().is_some_and(|top| top.name == l.name);
    let mut t = table(&[]);
    t.add_row(["layer".to_owned(), format!("{}{kind} on {}", l.name, on.join("; "))]);
    let bytes = format!("{} ({} bytes)", size::format(l.capacity_bytes), l.capacity_bytes);
    let pages = l.capacity_bytes / u64::from(l.page_bytes).max(1);
    let page = size::format(u64::from(l.page_bytes));
    let name = if is_top { "volume" } else { "capacity" };
    t.add_row([name.to_owned(), format!("{bytes}, {pages} pages of {page}")]);
    if l.dram_bytes > 0 {
        let each = format!("{:.1} bytes a mapped page", l.dram_bytes_per_page);
        t.add_row(["DRAM".to_owned(), format!("{}, {each}", size::format(l.dram_bytes))]);
    }
    t.add_row(["map".to_owned(), map(s, l)]);
    text(&t)
}

/// Returns the location of a layer's map.
fn map(s: &StackSummary, l: &LayerSummary) -> String {
    let named = l.on.get("pcm").and_then(|names| names.first());
    let pcm = named.and_then(|name| s.media.iter().find(|m| m.name == *name));
    let device = ["map", "device"].into_iter().find_map(|role| l.on.get(role)?.first());
    match pcm {
        Some(m) if l.durable_map_bytes > 0 => {
            let share = 100.0 * l.durable_map_bytes as f64 / m.bytes as f64;
            format!("{} of '{}' ({share:.0} %)", size::format(l.durable_map_bytes), m.name)
        }
        None if l.durable_map_bytes > 0 => {
            let of = device.map_or_else(String::new, |name| format!(" of '{name}'"));
            format!("{}{of}, in two copies", size::format(l.durable_map_bytes))
        }
        _ if l.on.contains_key("nand") => "in DRAM only; rebuilt from the spare areas of NAND".into(),
        _ => "none: addresses are computed".into(),
    }
}

fn parameters(l: &LayerSummary, all: bool) -> String {
    let mut t = table(if all { &["parameter", "value", "", "meaning"] } else { &["parameter", "value", ""] });
    for p in &l.parameters {
        let given = if p.given { "given" } else { "" };
        if all {
            t.add_row([&*p.key, &p.value, given, p.help]);
        } else {
            t.add_row([&*p.key, &p.value, given]);
        }
    }
    text(&t)
}

fn engine(s: &StackSummary) -> String {
    let e = &s.engine;
    let params: Vec<String> = e.parameters.iter().map(|(k, v)| format!(", {k} = {v}")).collect();
    format!("engine {}, scheduler {}{}", e.kind, e.scheduler, params.concat())
}

fn values(m: &MediumSummary) -> String {
    let mut t = table(&[&format!("media.{}", m.name), "value", "source"]);
    for v in &m.values {
        t.add_row([v.key, &v.value, &v.source]);
    }
    text(&t)
}
