//! `frit calibrate`: fits a NAND profile to a trace with measured service times.

mod show;

use super::trace::ReadArgs;
use crate::output::{print, print_json, print_stderr};
use frit_calibrate::{Calibration, FitOptions, Model, Parameter, Sample, profile_text, stack_text};
use frit_core::files;
use frit_trace::{DeviceMapping, MeasuredTrace};
use indicatif::{ProgressBar, ProgressStyle};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::path::{Path, PathBuf};
use strum::VariantNames;

/// Fit the latencies of a NAND profile to a trace with measured service times.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The trace is replayed over a model of the drive: the NAND of the profile under the layer ftl, and a \
time of commands outside the NAND. The result has a row for each parameter: its value in the profile, the fitted one, \
and its interval at 95 %, or that the trace does not tell it. Values that the trace does not exclude are kept. Errors \
are shown for the fitted part and for the part that was held out.

Examples:
  frit calibrate tlc-pages-2018 Booting_log176.txt.zst
  frit calibrate tlc-2020 msr_web_3.csv.zst --output web3.toml --stack web3-drive.toml
  frit calibrate ./mine.toml t.csv --columns time=t:us,op=op,sector=lba,sectors=n,service=us:us
  frit calibrate tlc-2020 msr_web_3.csv.zst --fit read_us,write_us,t_read,t_prog --hold-out 0.5

Formats with measured times: biotracer, msr, diskmon, csv (service=COLUMN:UNIT). A calibration has no random numbers: \
it repeats exactly. docs/reference/calibrate.md describes the method and its limits."
)]
pub(crate) struct Args {
    /// Profile of a NAND (see: frit profiles), or a .toml file.
    profile: String,
    /// Trace with measured service times.
    trace: String,
    /// Share of the requests, the last in time, that is not used for the fit.
    #[arg(long, value_name = "SHARE", default_value_t = 0.3, value_parser = share)]
    hold_out: f64,
    /// Maximum number of replays of the fitted part.
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    evaluations: u64,
    /// Parameters that are fitted; the others keep the values of the profile. [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = Parameter::VARIANTS.to_vec())]
    fit: Vec<String>,
    /// Write the calibrated NAND as a profile.
    #[arg(long, value_name = "FILE.toml")]
    output: Option<PathBuf>,
    /// Write the calibrated drive as a stack, as large as the trace needs.
    #[arg(long, value_name = "FILE.toml")]
    stack: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    read: ReadArgs,
}

fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|x| (0.01..=0.9).contains(x)).ok_or("should be a share from 0.01 to 0.9".into())
}

/// Runs the command.
///
/// # Errors
/// A profile or a trace that cannot be used; files that cannot be written.
pub(crate) fn run(args: &Args) -> Result<()> {
    let options = FitOptions { evaluations: args.evaluations, parameters: parameters(&args.fit)? };
    // The profile is checked before the trace is read, which may take long.
    Model::check(&args.profile, Path::new("")).map_err(|e| report(&e))?;
    let trace = MeasuredTrace::read(&args.trace, &args.read.options(DeviceMapping::Concat))
        .map_err(|e| miette!("{e}"))?;
    for remark in trace.problems.sentences() {
        print_stderr(&format!("frit: {remark}\n"))?;
    }
    let sample = Sample::new(&trace, args.hold_out).map_err(|e| report(&e))?;
    let model = Model::new(&args.profile, Path::new(""), &sample).map_err(|e| report(&e))?;
    let bar = bar(args.evaluations);
    let calibration = Calibration::run(&model, &sample, &options, &mut |n| bar.set_position(n));
    bar.finish_and_clear();
    let calibration = calibration.map_err(|e| report(&e))?;
    if let Some(path) = &args.output {
        let name = path.file_stem().map_or_else(|| "calibrated".into(), |s| s.to_string_lossy());
        write(path, &profile_text(&model, &calibration, &name))?;
    }
    if let Some(path) = &args.stack {
        write(path, &stack_text(&model, &calibration))?;
    }
    if args.json { print_json(&calibration) } else { print(&show::text_of(&calibration, &sample)) }
}

fn parameters(names: &[String]) -> Result<Vec<Parameter>> {
    if names.is_empty() {
        return Ok(FitOptions::default().parameters);
    }
    let mut all = Vec::new();
    for name in names {
        let p = name.parse::<Parameter>().map_err(|e| miette!("--fit {name}: {e}"))?;
        if !all.contains(&p) {
            all.push(p);
        }
    }
    Ok(all)
}

fn write(path: &Path, text: &str) -> Result<()> {
    files::write(path, text.as_bytes())
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot write {}", path.display()))
}

fn bar(evaluations: u64) -> ProgressBar {
    let bar = ProgressBar::new(evaluations);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos} of at most {len} replays, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

fn report(e: &frit_calibrate::Error) -> miette::Report {
    miette!("{e}")
}
