//! Reports and plans as tables.

use crate::output::{right, table, text};
use frit_core::{Nanos, size};
use frit_fs_sim::bench::{BenchReport, BenchVerification, PatternMetrics};
use frit_fs_sim::plan::{Plan, PlanCommand, PlanStep};
use std::fmt::Write as _;

/// Maximum number of dependencies that are shown of a command or call.
const AFTER_MAX: usize = 4;

/// Returns the title of a pattern.
fn title(m: &PatternMetrics) -> String {
    match m.record {
        Some(record) => format!("{} {}", m.name, size::format(record)),
        None => m.name.into(),
    }
}

/// Returns the tables of a run.
pub(super) fn report(r: &BenchReport) -> String {
    let mut out = format!(
        "file system of {} on {}, host {}; file of {}, {} names, seed {}; virtual time\n\n",
        size::format(r.bytes),
        r.profile,
        r.host.name,
        size::format(r.file_bytes),
        r.names,
        r.seed
    );
    out.push_str(&speeds(&r.measured));
    out.push_str("\nmemory accesses and written bytes of an operation\n");
    out.push_str(&areas(&r.measured));
    out.push_str(
        "\nutilization of the parts (c: a channel or controller of the memory, g: a group of its chips)\n",
    );
    out.push_str(&busy(&r.measured));
    if let Some(v) = &r.verified {
        out.push_str(&verified(v));
    }
    out
}

fn speeds(measured: &[PatternMetrics]) -> String {
    let mut t = table(&["pattern", "MB/s", "operations/s", "mean", "p50", "p99", "max", "fences"]);
    for m in measured {
        let l = &m.latency;
        let mb_s = if m.bytes > 0 { format!("{:.2}", m.mb_s) } else { String::new() };
        t.add_row([
            title(m),
            mb_s,
            format!("{:.0}", m.operations_s),
            Nanos(l.mean_ns.round() as u64).to_string(),
            l.p50_ns.to_string(),
            l.p99_ns.to_string(),
            l.max_ns.to_string(),
            format!("{:.2}", m.fences as f64 / l.count.max(1) as f64),
        ]);
    }
    (1..8).for_each(|column| right(&mut t, column));
    text(&t)
}

fn areas(measured: &[PatternMetrics]) -> String {
    let mut t =
        table(&["pattern", "area", "cause", "reads", "writes", "bytes written", "all metadata", "× data"]);
    for m in measured {
        let an_operation = |n: u64| format!("{:.2}", n as f64 / m.operations.max(1) as f64);
        for (i, row) in m.areas.iter().enumerate() {
            let cause: &str = row.cause.into();
            let first = |text: String| if i == 0 { text } else { String::new() };
            t.add_row([
                first(title(m)),
                row.area.name().into(),
                cause.into(),
                an_operation(row.count.reads),
                an_operation(row.count.writes),
                an_operation(row.count.medium_bytes),
                first(an_operation(m.metadata_bytes)),
                first(m.write_amplification.map_or_else(String::new, |a| format!("{a:.3}"))),
            ]);
        }
    }
    (3..8).for_each(|column| right(&mut t, column));
    text(&t)
}

fn busy(measured: &[PatternMetrics]) -> String {
    let Some(first) = measured.first() else { return String::new() };
    let parts: Vec<&str> = first.busy.iter().map(|b| b.part.as_str()).collect();
    let mut t = table(&[&["pattern"], &parts[..]].concat());
    for m in measured {
        let mut row = vec![title(m)];
        row.extend(m.busy.iter().map(|b| format!("{:.1} %", 100.0 * b.share)));
        t.add_row(row);
    }
    (1..=parts.len()).for_each(|column| right(&mut t, column));
    text(&t)
}

fn verified(v: &BenchVerification) -> String {
    let mut out = format!(
        "\nverified: {} mismatches; {} and {} answers about names compared\n",
        v.mismatches,
        size::format(v.bytes),
        v.names
    );
    for what in &v.first {
        let _ = writeln!(out, "  {what}");
    }
    if v.mismatches > v.first.len() as u64 {
        let _ = writeln!(out, "  … and {} more", v.mismatches - v.first.len() as u64);
    }
    out
}

/// Returns the plan of an operation.
pub(super) fn plan(p: &Plan, every: bool) -> String {
    let mut out = format!("{} on {}, host {}\n", p.operation, p.profile, p.host);
    let _ = writeln!(
        out,
        "answered after {}; the last command is done after {}",
        Nanos(p.latency_ns),
        Nanos(p.done_ns)
    );
    if p.steps.is_empty() {
        out.push_str("no access to the memory: its data is in DRAM\n");
        return out;
    }
    out.push('\n');
    out.push_str(&steps(&p.steps));
    out.push_str("\ncommands\n");
    out.push_str(&sums(p));
    if every {
        out.push('\n');
        out.push_str(&commands(&p.commands));
    }
    out
}

fn steps(all: &[PlanStep]) -> String {
    let mut t = table(&["call", "", "area", "at", "bytes", "commands", "waits for", "start", "end"]);
    for (i, s) in all.iter().enumerate() {
        let fence = s.area.is_none();
        let call = format!("{:?}", s.call).to_lowercase();
        t.add_row([
            i.to_string(),
            call,
            s.area.map_or("", |a| a.name()).into(),
            if fence { String::new() } else { s.at.to_string() },
            if fence { String::new() } else { s.bytes.to_string() },
            (s.end - s.first).to_string(),
            after(&s.after),
            Nanos(s.start_ns).to_string(),
            Nanos(s.end_ns).to_string(),
        ]);
    }
    [0, 3, 4, 5, 7, 8].into_iter().for_each(|column| right(&mut t, column));
    text(&t)
}

/// Returns the last few dependencies.
fn after<N: ToString>(all: &[N]) -> String {
    let left = all.len().saturating_sub(AFTER_MAX);
    let mut shown: Vec<String> = all[left..].iter().map(N::to_string).collect();
    if left > 0 {
        shown.insert(0, format!("{left} more"));
    }
    shown.join(", ")
}

fn sums(p: &Plan) -> String {
    let mut t = table(&["unit", "operation", "cause", "commands", "bytes", "busy"]);
    for s in &p.sums {
        t.add_row([
            s.unit.as_str(),
            s.op,
            s.cause.into(),
            &s.commands.to_string(),
            &s.bytes.to_string(),
            &Nanos(s.busy_ns).to_string(),
        ]);
    }
    let all: u64 = p.sums.iter().map(|s| s.commands).sum();
    let bytes: u64 = p.sums.iter().map(|s| s.bytes).sum();
    let busy: u64 = p.sums.iter().map(|s| s.busy_ns).sum();
    t.add_row(["sum", "", "", &all.to_string(), &bytes.to_string(), &Nanos(busy).to_string()]);
    (3..6).for_each(|column| right(&mut t, column));
    text(&t)
}

fn commands(all: &[PlanCommand]) -> String {
    let mut t =
        table(&["command", "unit", "operation", "cause", "at", "bytes", "waits for", "start ns", "end ns"]);
    for (i, c) in all.iter().enumerate() {
        let cause: &str = c.cause.into();
        t.add_row([
            i.to_string(),
            c.unit.clone(),
            c.op.into(),
            cause.into(),
            c.at.to_string(),
            c.bytes.to_string(),
            after(&c.after),
            c.start_ns.to_string(),
            c.end_ns.to_string(),
        ]);
    }
    [0, 4, 5, 7, 8].into_iter().for_each(|column| right(&mut t, column));
    text(&t)
}
