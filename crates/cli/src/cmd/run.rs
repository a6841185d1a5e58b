//! `frit run`: runs workloads over stacks.

mod inputs;
mod namespaces;
mod progress;

use super::trace::ReadArgs;
use crate::output::{print, print_stderr, report};
use clap::error::ErrorKind;
use clap::{ArgAction, CommandFactory};
use frit_core::files::{self, OutputFile};
use frit_core::{HintRange, SECTOR_BYTES};
use frit_engine::LoopMode;
use frit_replay::report::{compare, text, write_json};
use frit_replay::{Error, Job, Percentiles, Report, RequestLog, RunOptions, WarmUp, html, sectors};
use frit_stack::Stack;
use frit_trace::{DeviceMapping, Fit};
use inputs::Inputs;
use miette::{IntoDiagnostic, Result, miette};
use progress::RunProgress;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run workloads over stacks in virtual time, and report.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit run hfsl-paper pgbench.csv.zst
  frit run no-pcm hfsl-paper hfsl-cache pgbench.csv.zst mail.csv.zst   one table of both
  frit run mine.toml gen:uniform,count=2M,size=4K,span=1G --qd 32 --warm steady
  frit run hfsl-small Financial1.spc --compact --verify
  frit run hfsl-paper msr_web_3.csv --open --speed 10 --json report.json
  frit run hfsl-paper fin1.trace --set SSW=1024 --warm fill+10%
  frit run hfsl-small,placement=hint fin1.trace --hint 0+64M=metadata --hint 1G+4M=hot
  frit run hfsl-paper hfsl-paper,SSW=512 hfsl-paper,SSW=1024,gc=fifo fin1.trace   three variants

Exits with 0 on success, 1 when a run failed or verification found mismatches, 2 when the command \
line is wrong. See docs/guide/run.md; docs/reference/report.md describes the JSON.")]
pub(crate) struct Args {
    /// Stacks and workloads in any order. A stack is a .toml file or the name of a built-in stack
    /// (`frit check` lists them), with overrides after commas (NAME,key=value,…). A workload is a
    /// trace file, '-' for standard input, or gen:NAME,key=value,… (`frit trace generate --list`).
    #[arg(value_name = "STACK|WORKLOAD")]
    inputs: Vec<String>,
    /// Stack whose name is ambiguous. Can be given again.
    #[arg(long, value_name = "STACK")]
    stack: Vec<String>,
    /// Workload whose name is ambiguous. Can be given again.
    #[arg(long, value_name = "WORKLOAD")]
    trace: Vec<String>,
    /// Override a key of every stack: hfsl.SSW=1024, or SSW=1024 where only one table has the key. Can be given again.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Queue depth: number of outstanding requests; with --open the maximum, without a limit by
    /// default. [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    qd: Option<u32>,
    /// Open loop: requests arrive at their times, instead of when another completes.
    #[arg(long)]
    open: bool,
    /// Divide arrival times by this factor.
    #[arg(long, value_name = "X", allow_hyphen_values = true, default_value_t = 1.0, requires = "open", value_parser = speed)]
    speed: f64,
    /// Warm-up, excluded from the results: none, fill (every page written once), fill:50% (half of
    /// them), steady (state
    /// after long random overwriting, exact for gc = greedy and fifo), trace (the whole workload
    /// once), N or N% (its first requests); two joined by +, such as fill+10%.
    #[arg(long, value_name = "HOW", default_value_t = WarmUp::default())]
    warm: WarmUp,
    /// Store data, verify every byte that is read, and read everything back at the end, before and
    /// after a recovery.
    #[arg(long)]
    verify: bool,
    /// Seed of `--warm steady`, of the contents of --verify, and of generators without a seed.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Take addresses modulo the size of the volume.
    #[arg(long, conflicts_with = "compact")]
    wrap: bool,
    /// Pack the chunks that a trace accesses, in order of first access; chunks have this size.
    #[arg(long, value_name = "CHUNK", num_args = 0..=1, require_equals = true, default_missing_value = "1M",
          value_parser = frit_core::size::parse)]
    compact: Option<u64>,
    /// Direct the requests to each device of a trace to the name space of the same name. The stacks need
    /// name spaces.
    #[arg(long, conflicts_with_all = ["wrap", "compact", "devices"])]
    namespaces: bool,
    /// Give writes to a range of the volume a hint: metadata, hot or cold, such as 0+64M=metadata.
    /// Can be given again.
    #[arg(long, value_name = "OFFSET+LENGTH=HINT")]
    hint: Vec<HintRange>,
    /// Percentiles of latency that a report shows, at most eight.
    #[arg(long, value_name = "P,…", default_value = "50,99,99.9")]
    percentiles: Percentiles,
    /// Write the reports as JSON to a file, or to standard output ('-') instead of tables.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write one self-contained HTML page with plots. See docs/guide/html.md.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write arrival, start and end of every measured request to a CSV file, in nanoseconds from the
    /// start of the measurement; /dev/stdout for standard output.
    #[arg(long, value_name = "FILE")]
    requests: Option<PathBuf>,
    /// Show no progress.
    #[arg(long, short, action = ArgAction::SetTrue)]
    quiet: bool,
    #[command(flatten)]
    read: ReadArgs,
}

/// Parses a speed-up factor.
fn speed(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err("a speed-up is a number above 0; 1 is the speed of the trace".into()),
    }
}

impl Args {
    fn options(&self) -> RunOptions {
        let mode = match self.open {
            true => LoopMode::Open { speed: self.speed, depth: self.qd },
            false => LoopMode::Closed { depth: self.qd.unwrap_or(1) },
        };
        let seed = self.seed.unwrap_or(RunOptions::default().seed);
        let percentiles = self.percentiles;
        RunOptions { mode, warm: self.warm, seed, verify: self.verify, percentiles }
    }

    fn fit(&self) -> Fit {
        match (self.wrap, self.compact) {
            (true, _) => Fit::Wrap,
            (_, Some(chunk)) => Fit::Compact { chunk },
            _ => Fit::Strict,
        }
    }

    fn to_stdout(&self) -> bool {
        self.json.as_deref() == Some(Path::new("-"))
    }
}

/// Runs the command.
///
/// # Errors
/// The error that ended the run, in one message. A wrong command line ends the program.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let inputs = match Inputs::sort(&args.inputs, &args.stack, &args.trace) {
        Ok(inputs) => inputs,
        Err(why) => usage_error(&why),
    };
    let stacks = load(&inputs.stacks, &args.set)?;
    let json = args.json.as_deref().filter(|_| !args.to_stdout());
    // An unwritable output is reported before the run. An existing file stays unchanged until the
    // end.
    for path in json.into_iter().chain(args.html.as_deref()).filter(|p| !is_special(p)) {
        OutputFile::create(path).into_diagnostic()?;
    }
    let mut log = args.requests.as_deref().map(RequestLog::create).transpose().into_diagnostic()?;
    let mut reports = Vec::new();
    let ran = all(args, &inputs.workloads, &stacks, &mut reports, log.as_mut());
    // If the run failed before its first report, the output files stay unchanged.
    let written = ran.is_ok() || !reports.is_empty();
    if let Some(log) = log.filter(|_| written) {
        log.commit().into_diagnostic()?;
    }
    if let Some(path) = json.filter(|_| written) {
        let mut out = Vec::new();
        write_json(&reports, stacks.len(), &mut out).into_diagnostic()?;
        files::write(path, &out).into_diagnostic()?;
    }
    if let Some(path) = args.html.as_ref().filter(|_| written) {
        html::write(&reports, path).map_err(explain)?;
    }
    show(args, &reports, stacks.len())?;
    ran?;
    Ok(if reports.iter().all(Report::passed) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns `true` for a pipe or a device: opening it may block, and its reader would notice.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Ends the program with exit code 2, as clap does for a wrong command line.
fn usage_error(why: &str) -> ! {
    let mut cli = crate::Cli::command();
    cli.build();
    let run = cli.find_subcommand_mut("run").cloned();
    run.unwrap_or(cli).error(ErrorKind::ValueValidation, why).exit()
}

fn load(names: &[String], sets: &[String]) -> Result<Vec<Stack>> {
    let one = |given: &String| {
        let (name, own) = super::split_overrides(given);
        // The stack's own overrides come last, so that they take precedence.
        let stack = Stack::load(name, &[sets, &own].concat())?;
        Ok::<_, miette::Report>(if own.is_empty() { stack } else { stack.named(given) })
    };
    let stacks: Vec<Stack> = names.iter().map(one).collect::<Result<_>>()?;
    for warning in stacks.iter().flat_map(Stack::warnings) {
        report(&miette::Report::new(warning.clone()))?;
    }
    Ok(stacks)
}

/// Runs every workload over every stack. Reports that are complete before an error are kept.
fn all(
    args: &Args,
    workloads: &[String],
    stacks: &[Stack],
    reports: &mut Vec<Report>,
    mut log: Option<&mut RequestLog>,
) -> Result<()> {
    let options = args.options();
    let devices =
        if args.namespaces { namespaces::mapping(workloads, stacks)? } else { DeviceMapping::Concat };
    let read = args.read.options(devices);
    let mut jobs = Vec::new();
    for spec in workloads {
        let bar = RunProgress::new(args.quiet, &format!("reading {spec}"), None);
        let spec = inputs::seeded(spec, args.seed);
        let job = Job::open(&spec, &read, args.fit(), &mut |p| bar.at(p)).map_err(explain)?;
        jobs.push(job.with_hints(&args.hint).with_records());
    }
    check_record_files(stacks, workloads.len())?;
    // A workload that does not fit is reported before any run starts.
    for stack in stacks {
        let sectors = sectors(stack).map_err(explain)?;
        if let Some(range) = args.hint.iter().find(|r| r.end() > sectors * SECTOR_BYTES) {
            let (name, bytes) = (stack.name(), sectors * SECTOR_BYTES);
            return Err(miette!("--hint {range} ends beyond the volume of {name}, which has {bytes} bytes"));
        }
        jobs.iter().try_for_each(|job| job.check(sectors)).map_err(explain)?;
    }
    for (job, workload) in jobs.iter().zip(workloads) {
        for stack in stacks {
            let bar =
                RunProgress::new(args.quiet, &format!("{workload} over {}", stack.name()), job.requests());
            let log = log.as_deref_mut();
            let report = job.run_logged(stack, &options, &mut |p| bar.at(p), log).map_err(explain)?;
            drop(bar);
            reports.push(report);
        }
    }
    Ok(())
}

/// Checks that no two runs record to the same file.
fn check_record_files(stacks: &[Stack], workloads: usize) -> Result<()> {
    let mut files: Vec<&str> = stacks.iter().flat_map(Stack::record_files).collect();
    files.sort_unstable();
    let twice = files.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    match twice.or_else(|| files.first().copied().filter(|_| workloads > 1)) {
        None => Ok(()),
        Some(file) => Err(miette!(
            help = "run them one after the other, each with another file: --set LAYER.file=FILE",
            "several runs would record requests to {file}"
        )),
    }
}

/// Returns an error with its positions in the stack file, if it has any.
fn explain(e: Error) -> miette::Report {
    match e {
        Error::Build(stack) => (*stack).into(),
        // The message already contains its causes.
        other => miette!("{other}"),
    }
}

fn show(args: &Args, reports: &[Report], stacks: usize) -> Result<()> {
    let mut told: Vec<String> = Vec::new();
    for r in reports {
        for remark in text::remarks(r) {
            let line = format!("frit: {}: {remark}\n", r.workload.identity.name);
            if !told.contains(&line) {
                print_stderr(&line)?;
                told.push(line);
            }
        }
    }
    if args.to_stdout() {
        let mut out = Vec::new();
        write_json(reports, stacks, &mut out).into_diagnostic()?;
        return print(&String::from_utf8_lossy(&out));
    }
    match reports {
        [] => Ok(()),
        [one] => print(&text::report(one)),
        several => {
            print(&compare::compare(several, stacks))?;
            several.iter().filter_map(|r| Some((r, r.verification.as_ref()?))).try_for_each(|(r, v)| {
                print(&format!(
                    "\n {} over {}\n{}",
                    r.workload.identity.name,
                    r.stack.name,
                    text::verification(v)
                ))
            })
        }
    }
}
