//! `frit trace head`.

use super::{ReadArgs, remark, show};
use comfy_table::{CellAlignment, Table, presets};
use frit_core::Hints;
use frit_trace::{DeviceMapping, Request, Workload};
use miette::{IntoDiagnostic, Result};

/// Show the first requests.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit trace head msr_web_3.csv.zst
  frit trace head -n 100 --format disksim --time-unit us DTRS.trace
  frit trace head gen:zipf,read=0.3")]
pub(super) struct Args {
    /// Workload: a file, '-', or gen:NAME,key=value,…
    workload: String,
    /// Number of requests.
    #[arg(short = 'n', long, default_value_t = 20)]
    requests: u64,
    #[command(flatten)]
    read: ReadArgs,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let mut options = args.read.options(DeviceMapping::Merge);
    options.limit = Some(args.read.limit.unwrap_or(u64::MAX).min(args.requests));
    let mut workload = Workload::open(&args.workload, &options).into_diagnostic()?;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["time", "op", "sector", "sectors", "hints", "device"]);
    let mut batch = Vec::new();
    while workload.fill(&mut batch).into_diagnostic()? {
        for r in &batch {
            let device = workload.devices().get(usize::from(r.device)).cloned().unwrap_or_default();
            table.add_row(row(r, device));
        }
    }
    for column in [0, 2, 3] {
        if let Some(c) = table.column_mut(column) {
            c.set_cell_alignment(CellAlignment::Right);
        }
    }
    show(&format!("{}: {}\n\n{table}\n", workload.identity(), workload.reading()))?;
    remark(&workload.problems().sentences())
}

fn row(r: &Request, device: String) -> [String; 6] {
    let names = [
        (Hints::METADATA, "metadata"),
        (Hints::HOT, "hot"),
        (Hints::COLD, "cold"),
        (Hints::FUA, "fua"),
        (Hints::SYNC, "sync"),
    ];
    let hints: Vec<&str> = names.into_iter().filter(|(h, _)| r.hints.has(*h)).map(|(_, name)| name).collect();
    let op = r.op.name().to_owned();
    let at = format!("{}.{:09}", r.at.0 / 1_000_000_000, r.at.0 % 1_000_000_000);
    let (sector, sectors) = if r.is_whole() {
        (r.sector.0.to_string(), r.sectors.to_string())
    } else {
        (format!("{} + {} B", r.sector.0, r.cut.head), format!("{} B", r.bytes()))
    };
    [at, op, sector, sectors, hints.join(" "), device]
}
