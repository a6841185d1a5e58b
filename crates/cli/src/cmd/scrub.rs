//! `frit scrub`.

use super::volume::check::{CheckOptions, check};
use crate::output::print_json;
use miette::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Read all data of a volume and verify it, with its map and spare areas.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit scrub vol
  frit scrub vol --repair
  frit scrub vol --json

It is the same as frit check --data. Without --repair nothing is changed. Exits with 0 when nothing was found or all was repaired, 1 when \
findings are left, 2 when the volume cannot be opened. See docs/guide/volumes.md.")]
pub(crate) struct Args {
    /// The volume.
    volume: PathBuf,
    /// Repair damage where possible.
    #[arg(long)]
    repair: bool,
    /// With --repair: replace a lost page by an older version if there is one. The page then reads
    /// without an error, but its latest data is lost.
    #[arg(long, requires = "repair")]
    older: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// The volume cannot be read.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut outcomes = Vec::new();
    let how = CheckOptions { data: true, repair: args.repair, older: args.older, json: args.json };
    let code = check(&args.volume, how, &mut outcomes)?;
    if let Some(outcome) = outcomes.first() {
        print_json(outcome)?;
    }
    Ok(ExitCode::from(code))
}
