//! `frit torture`.

use crate::output::{print, print_json, print_stderr, right, table, text};
use frit_stack::Stack;
use frit_torture::block::campaign::run as torture;
use frit_torture::block::case::{TortureCase, TortureMode};
use frit_torture::block::options::CampaignOptions;
use frit_torture::block::replay::{current, replay};
use frit_torture::block::report::{CampaignReport, FailedCase};
use frit_torture::block::small_stack;
use frit_torture::block::target::StackTarget;
use indicatif::{ProgressBar, ProgressStyle};
use miette::{Result, miette};
use std::process::ExitCode;
use std::time::Duration;

/// Test a stack with power cuts at every media operation and with damaged media.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit torture                                     hfsl-small, for a minute
  frit torture --stack mine.toml --minutes 20      a stack of your own
  frit torture --stack mine.toml --mode cuts,files --seed 7
  frit torture --stack mine.toml --seed 7 --replay c12.0.345

Media are made small first (a few hundred pages; policies, page sizes and fusion are kept), unless \
--full-size is given. Exits with 1 on violations; each is printed with the command line that \
reproduces it. \
See docs/design/torture.md.")]
pub(crate) struct Args {
    /// Stack file, or the name of a built-in stack.
    #[arg(long, default_value = "hfsl-small")]
    stack: String,
    /// Override a key of the stack, as for `frit check`. Can be given again.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Minutes during which new workloads are started.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Seed of all choices: seed and version reproduce everything.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Kinds of tests, in turns: cuts, exhaustive, files, damage, errors, wear. Default: all.
    #[arg(long, value_delimiter = ',', value_parser = mode)]
    mode: Vec<TortureMode>,
    /// Replay one case of a violation, and show the commands around it.
    #[arg(long, value_name = "CASE")]
    replay: Option<String>,
    /// Number of threads; default: number of cores.
    #[arg(long)]
    threads: Option<usize>,
    /// Keep the media sizes of the stack.
    #[arg(long)]
    full_size: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// The stack or the case is invalid. Violations are reported by the exit code.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let target = target(args)?;
    let mut options = CampaignOptions {
        seed: args.seed,
        modes: if args.mode.is_empty() { TortureMode::all() } else { args.mode.clone() },
        time: Some(Duration::from_secs_f64(args.minutes.max(0.0) * 60.0)),
        shrink: true,
        ..CampaignOptions::default()
    };
    options.threads = args.threads.unwrap_or(options.threads);
    quiet_panics();
    let report = match &args.replay {
        Some(case) => {
            let case: TortureCase = case.parse().map_err(|e: String| miette!("{e}"))?;
            let report = replay(&target, &CampaignOptions { explain: true, ..options }, case.clone());
            if report.images == 0 && report.faults == 0 && report.violations.is_empty() {
                return Err(miette!(
                    help =
                        "a case belongs to a stack, its --set and --full-size, a seed and a version of frit",
                    "there is no case {case} here"
                ));
            }
            report
        }
        None => with_progress(args, &target, &options),
    };
    if args.json {
        print_json(&report)?;
    } else {
        print(&show(args, &report))?;
    }
    Ok(if report.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn mode(word: &str) -> std::result::Result<TortureMode, String> {
    word.parse().map_err(|_| {
        let names = TortureMode::all().iter().map(|&m| <&str>::from(m)).collect::<Vec<_>>().join(", ");
        format!("there are {names}")
    })
}

fn target(args: &Args) -> Result<StackTarget> {
    if let Some(requirement) = Stack::load(&args.stack, &args.set)?.missing_for_durability() {
        return Err(frit_volume::Error::Unsupported { requirement }.into());
    }
    let name = args.stack.clone();
    let mut sets = match args.full_size {
        true => Vec::new(),
        false => small_stack::overrides(|more| Stack::load(&name, &[more, &args.set[..]].concat()))?,
    };
    sets.extend(args.set.iter().cloned());
    Ok(StackTarget::new(move |more| {
        let all: Vec<String> = sets.iter().chain(more).cloned().collect();
        Stack::load(&name, &all)
    })?)
}

/// Replaces the panic message: a panic of the layer is a violation, which the report shows with its
/// case.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        // A failed write to a closed terminal cannot be handled.
        let _ = print_stderr(&format!("a panic in workload {}: {info}\n", current()));
    }));
}

fn with_progress(args: &Args, target: &StackTarget, options: &CampaignOptions) -> CampaignReport {
    let seconds = (args.minutes * 60.0) as u64;
    let bar = if args.json { ProgressBar::hidden() } else { ProgressBar::new(seconds.max(1)) };
    if let Ok(style) = ProgressStyle::with_template("{elapsed:>4} {wide_bar} {msg}") {
        bar.set_style(style);
    }
    let report = torture(target, options, &|r| {
        bar.set_position(r.seconds as u64);
        bar.set_message(format!(
            "{} images, {} distinct, {:.0}/s, {} violations",
            r.images,
            r.distinct_images,
            r.images_per_second(),
            r.violations.len()
        ));
    });
    bar.finish_and_clear();
    report
}

fn show(args: &Args, r: &CampaignReport) -> String {
    let mut t = table(&[]);
    let mut row = |name: &str, value: String| {
        t.add_row([name.to_string(), value]);
    };
    row("workloads", r.workloads.to_string());
    row("requests recorded", r.requests.to_string());
    row("media commands recorded", r.commands.to_string());
    row("cuts chosen", r.cuts.to_string());
    row("the same as another", r.repeated.to_string());
    row("images recovered", r.images.to_string());
    row("of these, cuts of recoveries", r.nested.to_string());
    row("distinct images", r.distinct_images.to_string());
    row("distinct recovered states", r.distinct_states.to_string());
    row("faults planned / struck / seen", format!("{} / {} / {}", r.faults, r.faults_struck, r.faults_seen));
    row("seconds", format!("{:.1}", r.seconds));
    row("images per second", format!("{:.0}", r.images_per_second()));
    row("violations", r.violations.len().to_string());
    right(&mut t, 1);
    let mut out = text(&t);
    for (oracle, n) in r.by_oracle() {
        let name: &'static str = oracle.into();
        out.push_str(&format!("\n{name}: {n}\n"));
        for f in r.violations.iter().filter(|f| f.violation.oracle == oracle).take(3) {
            out.push_str(&violation(args, f));
        }
    }
    out
}

fn violation(args: &Args, f: &FailedCase) -> String {
    let mut out = format!("  {}\n    {}\n", f.violation.what, command(args, &f.case));
    if let Some(case) = &f.shrunk {
        out.push_str(&format!("    with fewer requests: {}\n", command(args, case)));
    }
    for line in &f.requests {
        out.push_str(&format!("      {line}\n"));
    }
    out
}

/// Returns the command line that reproduces a case, with the version for which it is valid.
fn command(args: &Args, case: &TortureCase) -> String {
    let sets: String = args.set.iter().map(|s| format!(" --set {s}")).collect();
    let size = if args.full_size { " --full-size" } else { "" };
    format!(
        "frit torture --stack {}{sets}{size} --seed {} --replay {case}   # frit {}",
        args.stack,
        args.seed,
        env!("CARGO_PKG_VERSION")
    )
}
