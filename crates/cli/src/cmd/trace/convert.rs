//! `frit trace convert`.

use super::read_args::sectors;
use super::{ReadArgs, remark};
use frit_core::size;
use frit_trace::write::{WriteFormat, WriteSummary, Writer};
use frit_trace::{DeviceMapping, Fit, Scan, Workload};
use miette::{IntoDiagnostic, Result, bail};
use std::path::Path;

/// Write a workload in another format.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Devices are kept separate if the output format has a device column, unless --devices or --volume is given.

Examples:
  frit trace convert Financial1.spc fin1.csv.zst
  frit trace convert --to fio3 mail.csv.zst mail.iolog
  frit trace convert --to mqsim --volume 8G --compact msr_src1_0.csv.gz src1.trace
  frit trace convert --to msr --limit 100000 trace.blkparse.xz - | head"
)]
pub(super) struct Args {
    /// Workload: a file, '-', or gen:NAME,key=value,…
    workload: String,
    /// Output: a file (.gz and .zst compress), or '-'.
    output: String,
    /// Output format: recorded (keeps everything), msr, disksim (ms), mqsim (ns), spc, fio2, fio3.
    #[arg(long, value_name = "FORMAT", default_value = "recorded")]
    to: WriteFormat,
    /// Fit the addresses to a volume of this size; an error if they do not fit, unless --wrap or
    /// --compact.
    #[arg(long, value_name = "SIZE", value_parser = sectors)]
    volume: Option<u64>,
    /// Take addresses modulo the size of the volume.
    #[arg(long, requires = "volume", conflicts_with = "compact")]
    wrap: bool,
    /// Pack the accessed chunks, in order of first access.
    #[arg(long, requires = "volume")]
    compact: bool,
    /// Chunk size for --compact.
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = size::parse)]
    chunk: u64,
    /// Overwrite the output.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    read: ReadArgs,
}

pub(super) fn run(args: &Args) -> Result<()> {
    // Devices keep their own addresses, unless all are mapped to one address space.
    let apart = args.volume.is_none() && args.read.devices.is_none();
    let options = args.read.options(if apart { DeviceMapping::Merge } else { DeviceMapping::Concat });
    let mut workload = match args.volume {
        None => Workload::open(&args.workload, &options).into_diagnostic()?,
        Some(capacity) => {
            let fit = match (args.wrap, args.compact) {
                (true, _) => Fit::Wrap,
                (_, true) => Fit::Compact { chunk: args.chunk },
                _ => Fit::Strict,
            };
            if args.workload == "-" {
                let w = Workload::open(&args.workload, &options).into_diagnostic()?;
                w.fit(fit, capacity, None).into_diagnostic()?
            } else {
                let scan = Scan::of(&args.workload, &options).into_diagnostic()?;
                let w = Workload::open_scanned(&args.workload, &options, &scan).into_diagnostic()?;
                w.fit(fit, capacity, Some(&scan)).into_diagnostic()?
            }
        }
    };
    let has_devices = workload.reading().get("device").is_some();
    write(&mut workload, &args.output, args.to, apart && has_devices, args.force)
}

/// Writes a workload to a file and prints a summary.
pub(super) fn write(
    workload: &mut Workload,
    output: &str,
    to: WriteFormat,
    devices: bool,
    force: bool,
) -> Result<()> {
    if output != "-" && !force && Path::new(output).exists() {
        bail!("{output} exists; choose another name, or --force to overwrite it");
    }
    let bar = super::stat::spinner();
    let result = copy(workload, output, to, devices, &bar);
    bar.finish_and_clear();
    match result {
        Ok(written) => {
            let mut lines = vec![format!("read {}: {}", workload.identity(), workload.reading())];
            lines.extend(workload.problems().sentences());
            lines.extend(written.sentences(to));
            lines.push(format!("wrote {} requests to {output} as {}", written.requests, to.name()));
            remark(&lines)
        }
        Err(frit_trace::Error::Write { source, .. })
            if output == "-" && source.kind() == std::io::ErrorKind::BrokenPipe =>
        {
            Ok(())
        }
        // An unfinished writer leaves an existing output unchanged.
        Err(e) => Err(e).into_diagnostic(),
    }
}

fn copy(
    workload: &mut Workload,
    output: &str,
    to: WriteFormat,
    devices: bool,
    bar: &indicatif::ProgressBar,
) -> frit_trace::Result<WriteSummary> {
    // The first batch is read before the file is created: a workload without requests creates no
    // file.
    let mut batch = Vec::new();
    let mut more = workload.fill(&mut batch)?;
    let mut writer = Writer::create(output, to, devices)?;
    while more {
        writer.write(&batch, workload.devices())?;
        bar.inc(batch.len() as u64);
        more = workload.fill(&mut batch)?;
    }
    writer.finish()
}
