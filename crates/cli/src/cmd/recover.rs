//! `frit recover`.

use super::volume::{begin_phase, not_opened, open, recovery};
use crate::output::{print, print_json};
use miette::{IntoDiagnostic, Result};
use std::path::PathBuf;
use std::process::ExitCode;

/// Recover a volume after a crash or power loss, read all of its data, report the result, and close
/// it.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit recover vol
  frit recover vol --json

Any opening recovers; this command also verifies all data, and reports the result. Exits with 0 when nothing is lost, 1 when \
pages are lost or the volume could not be closed, 2 when it cannot be opened. See docs/guide/volumes.md.")]
pub(crate) struct Args {
    /// The volume.
    volume: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// The volume cannot be closed.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut volume = match open(&args.volume, false, args.json) {
        Ok(v) => v,
        Err(e) => return not_opened(e),
    };
    let length = volume.mapped_bytes().into_diagnostic()?;
    begin_phase(&mut volume, "checking data", Some(length));
    let looked = volume.find_lost_pages();
    let found = volume.recovery().clone();
    let page_bytes = volume.page_bytes();
    // The volume is closed before any error is reported, so that the recovery persists.
    let closed = volume.close();
    if args.json {
        print_json(&found)?;
    } else {
        print(&recovery(&found, page_bytes))?;
    }
    closed?;
    looked.into_diagnostic()?;
    Ok(if !found.recovery.lost_any() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
