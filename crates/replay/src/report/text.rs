//! A report as text for a terminal.

use super::show::{count, figure, lines, percent, ratio_or_dash, table, time};
use super::{ClassLatency, DiskReport, Distribution, LinkLatency, MediumReport, PercentileTime, Report};
use crate::findings::{self, setting};
use crate::hinted::{HintReport, MarkedWrites};
use crate::steady::{SteadyVerdict, Test};
use crate::verify::{Verification, VerifyPhase};
use frit_core::{MediumKind, size};
use std::fmt::Write;

/// Formats a report: findings, inputs, latency, commands, and other metrics.
#[must_use]
pub fn report(r: &Report) -> String {
    let mut out = findings::text(&r.findings);
    out.push('\n');
    let mut line = |name: &str, text: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(out, " {name:<14}{text}");
    };
    line(
        "stack",
        format!(
            "{}, volume of {}, sha256 {}",
            r.stack.name,
            size::format(r.stack.volume_bytes),
            short(&r.stack.sha256)
        ),
    );
    line("workload", workload(r));
    line("run", run(r));
    if let Some(h) = &r.hints {
        line("hints", hints(h));
    }
    out.push('\n');
    out.push_str(&latency(r));
    out.push('\n');
    if !r.commands.is_empty() {
        out.push_str(&device_commands(r));
        out.push('\n');
    }
    out.push_str(&commands(r));
    out.push('\n');
    if !r.links.is_empty() {
        out.push_str(&links(r));
        out.push('\n');
        out.push_str(&link_latencies(r));
        out.push('\n');
    }
    for (name, text) in figures(r) {
        let _ = writeln!(out, " {name:<20}{text}");
    }
    if let Some(v) = &r.verification {
        out.push_str(&verification(v));
    }
    out
}

/// Returns notes for the user: problems of the trace, assumptions about its format, and requests
/// out of order.
#[must_use]
pub fn remarks(r: &Report) -> Vec<String> {
    let mut all = r.workload.problems.sentences();
    let assumed = |f: &&frit_trace::Fact| matches!(f.how, frit_trace::FactSource::Assumed(_));
    for fact in r.workload.reading.facts.iter().filter(assumed) {
        if let frit_trace::FactSource::Assumed(why) = &fact.how {
            all.push(format!("{}: {} is assumed: {why}", fact.what, fact.value));
        }
    }
    all.extend(preconditioned_for_greedy(r));
    all.extend(r.records.iter().map(|record| match &record.error {
        None => format!("{} requests of a layer are recorded in {}", count(record.requests), record.file),
        Some(why) => format!("the requests of a layer are not recorded in {}: {why}", record.file),
    }));
    if r.run.mode == "open" && r.run.unordered > 0 {
        all.push(format!(
            "{} requests have an arrival time before that of the previous request, and arrived together with it",
            count(r.run.unordered)
        ));
    }
    all
}

/// Garbage-collection policies whose distribution of valid pages `--warm steady` sets up.
const STEADY_GC: [&str; 2] = ["greedy", "fifo"];

/// Returns a note if the run began with the steady state of another garbage-collection policy.
fn preconditioned_for_greedy(r: &Report) -> Option<String> {
    if r.run.warm != "steady" {
        return None;
    }
    // Without the key, the policy is the default, greedy.
    let gc = setting(r, "gc")?;
    (!STEADY_GC.contains(&gc)).then(|| {
        format!(
            "--warm steady begins with the distribution of valid pages of gc = greedy, and not with that of \
             gc = {gc}; add a warm-up, such as --warm steady+25%"
        )
    })
}

fn short(sha: &str) -> &str {
    sha.get(..16).unwrap_or(sha)
}

fn workload(r: &Report) -> String {
    let problems = match r.workload.problems.malformed {
        0 => String::new(),
        n => format!("; {} of {} lines malformed", count(n), count(r.workload.problems.lines)),
    };
    let read = if r.workload.identity.generator.is_some() {
        String::new()
    } else {
        format!(", {}", r.workload.reading.about)
    };
    format!("{}{read}{problems}", r.workload.identity)
}

fn run(r: &Report) -> String {
    let mode = match (r.run.queue_depth, r.run.speed) {
        (Some(depth), None) => format!("queue depth {depth}"),
        (depth, speed) => {
            let most = depth.map_or(String::new(), |d| format!(", at most {d} outstanding"));
            format!("open loop at {}× speed{most}", speed.unwrap_or(1.0))
        }
    };
    let engine = match &r.run.scheduler {
        Some(s) => format!("{} engine ({s})", r.run.engine),
        None => format!("{} engine", r.run.engine),
    };
    let warm = match r.run.warm_requests {
        0 => r.run.warm.clone(),
        n => format!("{} ({} requests)", r.run.warm, count(n)),
    };
    format!("{} requests, {mode}, {engine}, warm-up: {warm}, seed {}", count(r.asked.requests), r.run.seed)
}

fn hints(h: &HintReport) -> String {
    let marked =
        |m: &MarkedWrites| format!("{}: {} writes, {}", m.hint, count(m.writes), size::format(m.bytes));
    let marked: Vec<String> = h.marked.iter().map(marked).collect();
    let marked = if marked.is_empty() { "no write".to_owned() } else { marked.join("; ") };
    format!("{} ranges marked {marked}", h.ranges.len())
}

fn latency(r: &Report) -> String {
    let open = r.run.mode == "open";
    let percentiles = r.latency.first().map_or(&[][..], |l| &l.response.percentiles);
    let names: Vec<String> = percentiles.iter().map(PercentileTime::name).collect();
    let head: Vec<&str> = ["latency", "requests", "mean"]
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .chain(["max"])
        .collect();
    let mut t = table(&head, 1);
    let mut rows = |what: &str, of: fn(&ClassLatency) -> &Distribution| {
        for l in &r.latency {
            let f = &of(l).figures;
            let name = if l.class == "all" { "reads, writes" } else { l.class };
            let mut row = vec![format!("{name}{what}"), count(f.count), time(f.mean_ns)];
            row.extend(of(l).percentiles.iter().map(|p| time(p.ns as f64)));
            row.push(time(f.max_ns.0 as f64));
            t.add_row(row);
        }
    };
    rows("", |l| &l.response);
    if open {
        rows(", service", |l| &l.service);
    }
    lines(&t)
}

/// Formats the commands of a cache or a zoned device in the workload.
fn device_commands(r: &Report) -> String {
    let mut t = table(&["command", "requests", "bytes", "blocks present", "blocks absent"], 1);
    let number = |n: Option<u64>| n.map_or("–".into(), count);
    for c in &r.commands {
        t.add_row([
            c.command.to_owned(),
            count(c.requests),
            size::format(c.bytes),
            number(c.hits),
            number(c.misses),
        ]);
    }
    lines(&t)
}

/// Formats the commands: one row per operation, one column per cause.
fn commands(r: &Report) -> String {
    let mut causes: Vec<&str> = Vec::new();
    let mut rows: Vec<(&str, &str)> = Vec::new();
    for c in &r.counts {
        if !causes.contains(&c.cause) {
            causes.push(c.cause);
        }
        if !rows.contains(&(&c.medium, c.op)) {
            rows.push((&c.medium, c.op));
        }
    }
    let head: Vec<&str> =
        ["medium", "commands"].into_iter().chain(causes.iter().copied()).chain(["all", "bytes"]).collect();
    let mut t = table(&head, 2);
    for (medium, op) in rows {
        let of = |cause: Option<&str>| {
            r.counts
                .iter()
                .filter(|c| c.medium == medium && c.op == op && cause.is_none_or(|x| x == c.cause))
                .fold((0, 0), |a, c| (a.0 + c.count.commands, a.1 + c.count.bytes))
        };
        let mut row = vec![medium.to_owned(), op.to_owned()];
        row.extend(causes.iter().map(|c| match of(Some(c)).0 {
            0 => "–".into(),
            n => count(n),
        }));
        let (commands, bytes) = of(None);
        row.extend([count(commands), size::format(bytes)]);
        t.add_row(row);
    }
    lines(&t)
}

/// Returns the table of the requests between layers, and to media. The product of the ratios on a path
/// is the number of bytes written to its end for each byte of the client.
fn links(r: &Report) -> String {
    let head = [
        "from",
        "to",
        "reads",
        "bytes",
        "writes",
        "bytes",
        "discards",
        "flushes",
        "written per byte to `from`",
    ];
    let mut t = table(&head, 2);
    let number = |n: u64| if n == 0 { "–".into() } else { count(n) };
    let bytes = |n: u64| if n == 0 { "–".into() } else { size::format(n) };
    for l in &r.links {
        t.add_row([
            l.from.clone(),
            l.to.clone(),
            number(l.reads.commands),
            bytes(l.reads.bytes),
            number(l.writes.commands),
            bytes(l.writes.bytes),
            number(l.discards.commands),
            number(l.flushes),
            ratio_or_dash(l.written_per_byte),
        ]);
    }
    lines(&t)
}

/// Returns the table of the times of the requests between layers, and of the commands of media.
fn link_latencies(r: &Report) -> String {
    let mut t = table(&["from", "to", "kind", "requests", "mean", "p50", "p99", "max"], 3);
    for l in &r.links {
        for LinkLatency { kind, figures: f } in &l.latency {
            let mut row = vec![l.from.clone(), l.to.clone(), (*kind).to_owned(), count(f.count)];
            row.push(time(f.mean_ns));
            row.extend([f.p50_ns, f.p99_ns, f.max_ns].map(|n| time(n.0 as f64)));
            t.add_row(row);
        }
    }
    lines(&t)
}

fn figures(r: &Report) -> Vec<(&'static str, String)> {
    let t = &r.throughput;
    let mut all = vec![(
        "throughput",
        format!(
            "{} requests/s, {} MB/s in {} of virtual time",
            figure(t.requests_per_s),
            figure(t.mb_per_s),
            time(t.duration_ns as f64)
        ),
    )];
    if r.has(MediumKind::Nand) || r.has(MediumKind::Pcm) {
        all.push(("write amplification", write_amplification(r)));
    }
    if let Some(n) = r.flash_updates {
        all.push(("flash updates", format!("{} writes of part of a page in NAND", count(n))));
    }
    if let Some(text) = parallel(r) {
        all.push(("parallel writes", text));
    }
    if let Some(text) = log(r) {
        all.push(("log", text));
    }
    for m in &r.media {
        if m.wears() {
            all.push(("wear", wear(m)));
        }
        all.push(("utilisation", utilisation(m)));
        if let Some(d) = &m.disk {
            all.push(("disk", disk(m, d)));
            all.push(("disk distance", distance(m, d)));
        }
    }
    for l in r.layers.iter().filter(|l| !l.residence.is_empty()) {
        let p = &l.residence_total;
        let whole = (p.unmapped + p.mapped()).max(1) as f64;
        let parts = [
            ("NAND", p.nand),
            ("PCM storage", p.pcm_level),
            ("PCM cache", p.pcm_cache),
            ("disk", p.disk),
            ("unmapped", p.unmapped),
        ];
        let text: Vec<String> = parts
            .iter()
            .filter(|p| p.1 > 0)
            .map(|(n, v)| format!("{n} {}", percent(*v as f64 / whole)))
            .collect();
        let of = if r.links.is_empty() { String::new() } else { format!("{}: ", l.name) };
        all.push(("residence", format!("{of}{}", text.join(", "))));
    }
    let m = &r.memory;
    let mapped =
        m.dram_bytes_a_mapped_page.map_or(String::new(), |b| format!(", {} B per mapped page", figure(b)));
    all.push((
        "mapping",
        format!("{} of DRAM: {} B per page{mapped}", size::format(m.dram_bytes), figure(m.dram_bytes_a_page)),
    ));
    all.push(("steady state", steady(r)));
    let s = &r.software;
    let with = if s.includes_verification { " with verification" } else { "" };
    all.push((
        "software",
        format!("{} per request{with}, {} in total", time(s.ns_per_request), time(s.wall_ns as f64)),
    ));
    all
}

/// Formats the rounds in which the chips write a page each, for a layer that counts them.
fn parallel(r: &Report) -> Option<String> {
    let of = |name| r.counted(name);
    Some(format!(
        "{} clean, {} dirty; {} if executed one after another",
        count(of("parallel_clean_writes")? as u64),
        count(of("parallel_dirty_writes")? as u64),
        time(of("parallel_time")? * 1e9)
    ))
}

/// Formats the activity of a log of updates, if the layer has one.
fn log(r: &Report) -> Option<String> {
    let of = |name| r.counted(name);
    let writes = of("log_writes").filter(|&n| n > 0.0)?;
    Some(format!(
        "{} of {} updates; {} merges wrote back {} pages, {} refreshes: {} if executed one after another",
        count(writes as u64),
        count(of("updates")? as u64),
        count(of("merges")? as u64),
        count(of("merged_pages")? as u64),
        count(of("refreshes")? as u64),
        time(of("merge_time")? * 1e9)
    ))
}

fn write_amplification(r: &Report) -> String {
    let w = &r.write_amplification;
    let parts: Vec<String> = w.nand_by_cause.iter().map(|c| format!("{} {:.3}", c.cause, c.ratio)).collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let pcm = w.pcm.filter(|p| *p > 0.0).map_or(String::new(), |p| format!("; PCM {p:.3}"));
    if !r.has(MediumKind::Nand) {
        return format!("PCM {}", ratio_or_dash(w.pcm));
    }
    format!("NAND {}{parts}; flash only {}{pcm}", ratio_or_dash(w.nand), ratio_or_dash(w.flash))
}

fn disk(m: &MediumReport, d: &DiskReport) -> String {
    let flushes = if d.flushes > 0 { format!(", {} flushes", count(d.flushes)) } else { String::new() };
    let each = d.served_mean_ns.map_or(String::new(), |t| format!(", {} per request", time(t)));
    format!(
        "{}: {} reads, {} writes{flushes}; busy {}{each}; {} requests/s, {} MB/s",
        m.name,
        count(m.reads.commands),
        count(m.writes.commands),
        time(d.busy_ns as f64),
        figure(d.requests_per_s),
        figure(d.mb_per_s)
    )
}

fn distance(m: &MediumReport, d: &DiskReport) -> String {
    let sequential = d.sequential().map_or(String::new(), |s| format!(", {} sequential", percent(s)));
    format!(
        "{}: mean {} sectors{sequential}; traffic rate {}",
        m.name,
        d.distance_mean_sectors.map_or_else(|| "–".into(), figure),
        ratio_or_dash(d.traffic_rate)
    )
}

fn wear(m: &MediumReport) -> String {
    let (run, total) = (&m.wear.run, &m.wear.total);
    let erases = if m.erases > 0 { format!("{} erases, ", count(m.erases)) } else { String::new() };
    let bad = match (m.wear.bad, m.kind) {
        (0, _) => String::new(),
        (n, MediumKind::Nand) => format!(", {n} out of use"),
        // No write of a worn line fails, so it stays in use.
        (n, _) => format!(", {n} written beyond the endurance and still in use"),
    };
    let one_bit = match &m.wear.one_bit {
        Some(w) => format!(
            "; with one bit a cell {}, since new {} of {}",
            figure(w.run.mean),
            figure(w.total.mean),
            count(w.limit)
        ),
        None => String::new(),
    };
    format!(
        "{}: {erases}{} cycles per {} (maximum {}, standard deviation {}); since new {} of {}{bad}{one_bit}",
        m.name,
        figure(run.mean),
        m.wear.per,
        run.max,
        figure(run.deviation),
        figure(total.mean),
        count(m.wear.limit)
    )
}

fn utilisation(m: &MediumReport) -> String {
    let span = |v: &[f64]| {
        let mean = v.iter().sum::<f64>() / v.len().max(1) as f64;
        let (low, high) = v.iter().fold((f64::MAX, 0.0f64), |(l, h), &x| (l.min(x), h.max(x)));
        if v.len() > 1 {
            format!("{} ({} to {})", percent(mean), percent(low), percent(high))
        } else {
            percent(mean)
        }
    };
    let named = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!(
        "{}: {} {}, {} {}",
        m.name,
        named(m.channel_busy.len(), "channel"),
        span(&m.channel_busy),
        named(m.unit_busy.len(), "unit"),
        span(&m.unit_busy)
    )
}

fn steady(r: &Report) -> String {
    let s = &r.steady_state;
    let test = |name: &str, t: Option<Test>| {
        t.map(|t| {
            format!("{name} {}, range {}, slope {}", figure(t.mean), percent(t.range), percent(t.slope))
        })
    };
    let window: Vec<String> = s
        .window
        .iter()
        .flat_map(|w| {
            [test("write amplification", w.write_amplification), test("requests/s", w.requests_per_s)]
        })
        .flatten()
        .collect();
    let of = format!("{} rounds of {} requests", s.rounds.len(), count(s.requests_a_round));
    let why =
        if window.is_empty() { String::new() } else { format!("; the last five: {}", window.join("; ")) };
    match (s.verdict, s.round) {
        (SteadyVerdict::TooShort, _) => format!("too short to tell: {of}, five are needed"),
        (SteadyVerdict::Reached, Some(k)) => format!("reached at round {k} of {of}{why}"),
        _ => format!("not reached in {of}{why}"),
    }
}

/// Formats the results of verification.
#[must_use]
pub fn verification(v: &Verification) -> String {
    let mut out = format!(
        " {:<20}{} mismatches; {} reads ({} sectors) checked, {} sectors read back, {} again after halt and boot\n",
        "verification",
        count(v.mismatches),
        count(v.reads_checked),
        count(v.sectors_checked),
        count(v.sectors_read_back),
        count(v.sectors_after_boot)
    );
    for m in &v.first {
        let stage = match m.stage {
            VerifyPhase::Run => "in the run",
            VerifyPhase::ReadBack => "read back",
            VerifyPhase::AfterBoot => "after boot",
        };
        let _ = writeln!(out, "   {stage}: sector {}: expected {}, found {}", m.sector, m.expected, m.found);
    }
    if v.mismatches > v.first.len() as u64 {
        let _ = writeln!(out, "   … and {} more", count(v.mismatches - v.first.len() as u64));
    }
    out
}
