//! `frit trace stat`.

use super::{ReadArgs, remark, show};
use comfy_table::{CellAlignment, Table, presets};
use frit_core::{SECTOR_BYTES, size};
use frit_trace::scan::SizeStats;
use frit_trace::{DeviceMapping, Scan, WorkloadKind};
use indicatif::{ProgressBar, ProgressStyle};
use miette::{IntoDiagnostic, Result};
use std::fmt::Write;

/// Show the statistics of a workload.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit trace stat Financial1.spc.gz
  frit trace stat --json pgbench.csv.zst | jq .write_ratio
  frit trace stat --time-unit ms --size-unit pages fin1.trace
  frit trace stat --columns device=1,op=2,offset=3,bytes=4,time=5:us io_traces.csv
  zcat big.gz | frit trace stat -
  frit trace stat gen:hfsl-fin1,count=100k")]
pub(super) struct Args {
    /// Workload: a file, '-', or gen:NAME,key=value,…
    workload: String,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let bar = spinner();
    let options = args.read.options(DeviceMapping::Concat);
    let scan = Scan::with_progress(&args.workload, &options, |n| bar.set_position(n));
    bar.finish_and_clear();
    let scan = scan.into_diagnostic()?;
    if args.json {
        let json = serde_json::to_string_pretty(&scan).into_diagnostic()?;
        return show(&format!("{json}\n"));
    }
    show(&text(&scan))?;
    remark(&scan.problems.sentences())
}

/// Returns a spinner that shows the progress; it is hidden when standard error is no terminal.
pub(crate) fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} requests, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

fn table() -> Table {
    let mut t = Table::new();
    t.load_preset(presets::NOTHING);
    t
}

fn text(s: &Scan) -> String {
    let mut out = String::new();
    let kind = if s.identity.kind == WorkloadKind::Real { "real" } else { "GENERATED" };
    let _ = writeln!(out, "{} ({kind})", s.identity.name);
    if let Some(sha) = &s.identity.sha256 {
        let _ = writeln!(out, "sha256 {sha} (uncompressed)");
    }
    if let Some(spec) = &s.identity.generator {
        let _ = writeln!(out, "{spec}");
    }
    let _ = writeln!(out, "read as {}\n", s.reading.lines().join("\n  "));
    let _ = writeln!(out, "{}\n", sizes(s).trim_fmt());
    let _ = writeln!(out, "{}", facts(s).trim_fmt());
    if s.devices.len() > 1 {
        let _ = writeln!(out, "\n{} devices, in order of appearance{}", s.devices.len(), places(s));
    }
    out
}

/// Returns the start address of each device in the common address space.
fn places(s: &Scan) -> String {
    let place = |(i, name): (usize, &String)| {
        let base = u16::try_from(i).ok().and_then(|i| s.layout.base(i)).unwrap_or(0);
        format!("\n  {name} at {}", size::format(base * SECTOR_BYTES))
    };
    s.devices.iter().enumerate().map(place).collect()
}

fn sizes(s: &Scan) -> Table {
    let mut t = table();
    t.set_header(["", "requests", "share", "bytes", "min", "mean", "p50", "p90", "p99", "max"]);
    let share = |n: u64| format!("{:.1} %", 100.0 * n as f64 / s.requests.max(1) as f64);
    let mut row = |name: &str, z: &SizeStats| {
        if z.count > 0 {
            let cells = [z.min, z.mean.round() as u64, z.p50, z.p90, z.p99, z.max].map(size::format);
            let mut all = vec![name.to_owned(), z.count.to_string(), share(z.count), size::format(z.bytes)];
            all.extend(cells);
            t.add_row(all);
        }
    };
    row("reads", &s.reads);
    row("writes", &s.writes);
    row("discards", &s.discards);
    if s.flushes > 0 {
        t.add_row(["flushes".to_owned(), s.flushes.to_string(), share(s.flushes)]);
    }
    for c in &s.commands {
        let cells = [c.command.to_owned(), c.requests.to_string(), share(c.requests), size::format(c.bytes)];
        t.add_row(cells);
    }
    t.add_row(["all".to_owned(), s.requests.to_string()]);
    t.column_iter_mut().skip(1).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    t
}

fn facts(s: &Scan) -> Table {
    let mut t = table();
    let percent = |f: f64| format!("{:.1} %", 100.0 * f);
    let pages = |n: u64| size::format(n * 4096);
    t.add_row(["write ratio", &percent(s.write_ratio)]);
    t.add_row(["address space", &format!("{} (sector {})", size::format(s.end_bytes()), s.end_sector)]);
    t.add_row([
        "footprint",
        &format!(
            "{} in pages of 4 KiB; {} in chunks of 1 MiB",
            pages(s.footprint_pages),
            size::format(s.chunks << 20)
        ),
    ]);
    t.add_row([
        "written",
        &format!("{}; {} of page writes overwrite", pages(s.written_pages), percent(s.overwrite_ratio)),
    ]);
    t.add_row([
        "sequential",
        &format!(
            "{} follow the request before, {} one of the last 16",
            percent(s.sequential),
            percent(s.streams)
        ),
    ]);
    t.add_row(["aligned to 4 KiB", &percent(s.aligned_4k)]);
    if s.metadata + s.fua + s.sync > 0 {
        t.add_row(["marked", &format!("{} metadata, {} FUA, {} synchronous", s.metadata, s.fua, s.sync)]);
    }
    t.add_row(["duration", &s.duration.to_string()]);
    t.add_row([
        "arrivals",
        &format!("{:.1} a second, at most {}", s.arrivals.mean_per_s, s.arrivals.peak_per_s),
    ]);
    t.add_row([
        "gaps",
        &format!("p50 {}, p99 {}, longest {}", s.arrivals.gap_p50, s.arrivals.gap_p99, s.arrivals.gap_max),
    ]);
    t
}
