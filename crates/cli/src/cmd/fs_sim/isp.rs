//! `frit fs-sim --isp`: a query by in-storage processing and by software, as tables.

use crate::output::{print, print_json, right, table, text};
use frit_core::size;
use frit_fs_sim::isp::{self, ForegroundLatency, IspMachine, IspOptions, IspReport, MachineReport, QueryRow};
use miette::{Result, miette};
use std::fmt::Write as _;
use std::process::ExitCode;

/// Runs a comparison, and prints it.
///
/// # Errors
/// The error that ended the run.
pub(super) fn run(options: &IspOptions, json: bool) -> Result<ExitCode> {
    let report = isp::run(options).map_err(|e| miette!("{e}"))?;
    match json {
        true => print_json(&report)?,
        false => print(&tables(&report))?,
    }
    Ok(if report.mismatches().next().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the machines of a command line: those of the paper and of today, or a given one.
pub(super) fn machines(given: Option<(&str, &str)>, files: &[u64]) -> Vec<IspMachine> {
    let mut machines = match given {
        Some((profile, host)) => {
            vec![IspMachine { profile: profile.into(), host: host.into(), ..IspMachine::paper() }]
        }
        None => vec![IspMachine::paper(), IspMachine::modern()],
    };
    if !files.is_empty() {
        machines.iter_mut().for_each(|machine| machine.files = files.to_vec());
    }
    machines
}

fn tables(r: &IspReport) -> String {
    let mut out = String::from("word query by in-storage processing (ISP) and by software; virtual time\n");
    for (name, machine) in ('A'..).zip(&r.machines) {
        let _ = writeln!(out, "{name}: {} on {}", machine.host.name, machine.profile);
    }
    let _ = writeln!(out, "words: {}; seed {}\n", r.words.join(", "), r.seed);
    out.push_str(&times(r));
    out.push_str("\nrequests of the program, share of the processor, bytes over the link\n");
    out.push_str(&resources(r));
    out.push_str("\nthe engine: what it read, and utilization of its units and of those of the memory\n");
    out.push_str(&engine(r));
    if r.rows.iter().any(|row| row.foreground.is_some()) {
        out.push_str("\nresponse time of reads of the host, without the engine and while it runs\n");
        out.push_str(&foreground(r));
    }
    for row in r.mismatches() {
        let (a, b) = (row.isp.counts, row.software.counts);
        let _ = writeln!(out, "\n{}: the engine counted {a:?}, software {b:?}", head(r, row).join(" "));
    }
    out
}

/// Returns the first cells of a row: the letter of its machine, and the file.
fn head(r: &IspReport, row: &QueryRow) -> [String; 2] {
    let is_own = |m: &MachineReport| m.profile == row.profile && m.host.name == row.host;
    let name = ('A'..).zip(&r.machines).find(|(_, m)| is_own(m)).map_or('?', |(name, _)| name);
    [name.into(), size::format(row.file_bytes)]
}

fn filled<const N: usize>(heads: &[&str], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut t = table(heads);
    rows.for_each(|row| {
        t.add_row(row);
    });
    (1..N).for_each(|column| right(&mut t, column));
    text(&t)
}

fn times(r: &IspReport) -> String {
    let heads =
        ["", "file", "engine", "MB/s", "program", "MB/s", "software", "MB/s", "engine ×", "program ×"];
    let rows = r.rows.iter().map(|row| {
        let [machine, file] = head(r, row);
        [
            machine,
            file,
            row.isp.engine_ns.to_string(),
            format!("{:.1}", row.isp.mb_s),
            row.isp.total_ns.to_string(),
            format!("{:.1}", row.isp.total_mb_s),
            row.software.total_ns.to_string(),
            format!("{:.1}", row.software.mb_s),
            format!("{:.2}", row.ratio),
            format!("{:.2}", row.total_ratio),
        ]
    });
    filled(&heads, rows)
}

fn resources(r: &IspReport) -> String {
    let heads = [
        "",
        "file",
        "ISP",
        "polls",
        "software",
        "fewer",
        "CPU ISP",
        "CPU software",
        "link ISP",
        "link software",
    ];
    let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "–".into(), |b| b.to_string());
    let rows = r.rows.iter().map(|row| {
        let [machine, file] = head(r, row);
        let fewer = 1.0 - row.isp.requests as f64 / row.software.requests as f64;
        [
            machine,
            file,
            row.isp.requests.to_string(),
            row.isp.polls.to_string(),
            row.software.requests.to_string(),
            format!("{:.1} %", 100.0 * fewer),
            format!("{:.3} %", 100.0 * row.isp.cpu_share),
            format!("{:.0} %", 100.0 * row.software.cpu_share),
            bytes(row.isp.link_bytes),
            bytes(row.software.link_bytes),
        ]
    });
    filled(&heads, rows)
}

fn engine(r: &IspReport) -> String {
    let heads = ["", "file", "extents", "contents", "metadata", "commands", "engine", "memory", "words"];
    let rows = r.rows.iter().map(|row| {
        let [machine, file] = head(r, row);
        [
            machine,
            file,
            row.extents.to_string(),
            row.isp.contents_bytes.to_string(),
            row.isp.metadata_bytes.to_string(),
            row.isp.commands.to_string(),
            format!("{:.1} %", 100.0 * row.isp.engine_busy),
            format!("{:.1} %", 100.0 * row.isp.memory_busy),
            row.isp.counts.iter().sum::<u64>().to_string(),
        ]
    });
    filled(&heads, rows)
}

fn foreground(r: &IspReport) -> String {
    let heads = ["", "file", "load", "engine", "reads", "mean", "p50", "p99", "p99.9", "max", "p99 ×"];
    let mut t = table(&heads);
    for row in &r.rows {
        let Some(f) = &row.foreground else { continue };
        for (name, latency, ratio) in [("idle", f.idle, None), ("runs", f.running, f.p99_ratio())] {
            let Some(l) = latency else { continue };
            let [machine, file] = head(r, row);
            let load = format!("{}@{}", size::format(f.load.read_bytes), f.load.reads_per_second);
            let ratio = ratio.map_or_else(String::new, |x| format!("{x:.3}"));
            t.add_row([vec![machine, file, load, name.into()], latencies(&l), vec![ratio]].concat());
        }
    }
    (3..heads.len()).for_each(|column| right(&mut t, column));
    text(&t)
}

fn latencies(l: &ForegroundLatency) -> Vec<String> {
    let ns = |ns: u64| frit_core::Nanos(ns).to_string();
    let mean = ns(l.mean_ns.round() as u64);
    vec![l.reads.to_string(), mean, ns(l.p50_ns), ns(l.p99_ns), ns(l.p999_ns), ns(l.max_ns)]
}
