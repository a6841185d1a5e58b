//! `frit reproduce`.

use crate::output::{print, print_json, print_stderr, table, text};
use clap::ArgAction;
use frit_core::files::{self, OutputFile};
use frit_core::paths;
use frit_reproduce::{ReproduceOptions, Reproduction, Traces, catalogue, reproduce};
use indicatif::{ProgressBar, ProgressStyle};
use miette::{IntoDiagnostic, Result, miette};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Default directory of recordings, if `--traces` is not given: its place in the project's own
/// checkout.
const TRACES: &str = "../shared/traces";

/// Reproduce published results, and compare them with measured ones.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit reproduce --list
  frit reproduce 'hfsl.*'                        all results of a paper
  frit reproduce hfsl.f16 hfsl.f17               figures
  frit reproduce hfsl.f15 --trace fin1-spc=Financial1.spc --json f15.json
  frit reproduce 'wa.*'                          garbage collection compared with theory

A missing recording is skipped and reported. A difference from the paper is no failure: the exit code is 1 \
only when something could not be run. See docs/guide/reproduce.md.")]
pub(crate) struct Args {
    /// IDs as listed, the beginning of one up to a dot, or patterns with * and ?.
    #[arg(required_unless_present = "list")]
    ids: Vec<String>,
    /// List the IDs, with the published results.
    #[arg(long)]
    list: bool,
    /// Directory of recordings. [default: ../shared/traces, if it exists]
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,
    /// File of a recorded workload, instead of the one in the directory. Can be given again.
    #[arg(long, value_name = "NAME=FILE", value_parser = named)]
    trace: Vec<(String, PathBuf)>,
    /// Run only a little of everything, as a smoke test: the output is no result.
    #[arg(long)]
    quick: bool,
    /// Seed of the volumes' initial states, instead of the one in the experiments.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write JSON to a file, or to standard output ('-') instead of tables.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the plots of figures that have one (ntl.log) into a directory, as ID.svg. Creates the directory.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Show no progress.
    #[arg(long, short, action = ArgAction::SetTrue)]
    quiet: bool,
}

/// Parses NAME=FILE.
fn named(text: &str) -> std::result::Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.into(), file.into())),
        _ => Err("write NAME=FILE, such as fin1-spc=Financial1.spc".into()),
    }
}

/// Runs the command.
///
/// # Errors
/// An error message for the user.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.list {
        list()?;
        return Ok(ExitCode::SUCCESS);
    }
    let experiments = catalogue::select(&args.ids).into_diagnostic()?;
    check_outputs(args)?;
    let plan = ReproduceOptions { traces: traces(args)?, quick: args.quick, seed: args.seed };
    let bar = if args.quiet { ProgressBar::hidden() } else { ProgressBar::new(0) };
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg} {elapsed}") {
        bar.set_style(style);
    }
    let done = reproduce(&experiments, &plan, &mut |done, of, what| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
        bar.set_message(what.to_owned());
    });
    bar.finish_and_clear();
    let done = done.into_diagnostic()?;
    for m in &done.missing {
        print_stderr(&format!("frit: skipped {}: {}\n", m.name, m.why))?;
    }
    if let Some(dir) = &args.plots {
        let plots = done.plots();
        if plots.is_empty() {
            print_stderr("frit: none of these results has a plot\n")?;
        }
        for (name, drawing) in plots {
            let path = dir.join(name);
            files::write(&path, drawing.as_bytes()).into_diagnostic()?;
        }
    }
    match args.json.as_deref() {
        Some(path) if path == Path::new("-") => print_json(&done)?,
        Some(path) => {
            write_json(path, &done)?;
            print(&done.text())?;
        }
        None => print(&done.text())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports outputs that cannot be written before a run that may take an hour.
fn check_outputs(args: &Args) -> Result<()> {
    if let Some(dir) = &args.plots {
        paths::create_dir_all(dir, 0o777)
            .map_err(|e| miette!("cannot create the directory {} for plots: {e}", dir.display()))?;
    }
    match args.json.as_deref().filter(|p| *p != Path::new("-")) {
        Some(path) if path.metadata().is_ok_and(|m| !m.is_file() && !m.is_dir()) => Ok(()),
        Some(path) => OutputFile::create(path).map(drop).into_diagnostic(),
        None => Ok(()),
    }
}

fn write_json(path: &Path, done: &Reproduction) -> Result<()> {
    let mut out = serde_json::to_vec_pretty(done).into_diagnostic()?;
    out.push(b'\n');
    files::write(path, &out).into_diagnostic()
}

/// Returns the location of recordings. Paths given by the user have to exist.
fn traces(args: &Args) -> Result<Traces> {
    if let Some(dir) = &args.traces
        && !dir.is_dir()
    {
        return Err(miette!("--traces {}: no such directory", dir.display()));
    }
    let fallback = || Some(PathBuf::from(TRACES)).filter(|d| d.is_dir());
    let known = catalogue::recorded().into_diagnostic()?;
    for (name, file) in &args.trace {
        if !known.contains(name) {
            return Err(miette!(
                "--trace {name}=…: no recorded workload has this name; there are {}",
                known.join(", ")
            ));
        }
        if !file.is_file() {
            return Err(miette!("--trace {name}={}: no such file", file.display()));
        }
    }
    let named: BTreeMap<String, PathBuf> = args.trace.iter().cloned().collect();
    Ok(Traces { dir: args.traces.clone().or_else(fallback), named })
}

fn list() -> Result<()> {
    let mut t = table(&["id", "what", "published"]);
    for e in catalogue::experiments().into_diagnostic()? {
        for c in &e.claims {
            t.add_row([c.id.as_str(), e.title.as_str(), c.published.as_str()]);
        }
    }
    let known = catalogue::recorded().into_diagnostic()?.join(", ");
    print(&format!("{}\nrecorded workloads, for --trace NAME=FILE: {known}\n", text(&t)))
}
