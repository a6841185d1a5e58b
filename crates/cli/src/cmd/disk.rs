//! `frit disk`: disk drives, their metrics, and comparison of their models with measurements.

mod list;
mod score;
mod show;

use clap::Subcommand;
use frit_core::Error;
use frit_media::disk::DiskProfile;
use frit_media::disk::diskspecs::{self, LoadedDrive};
use miette::{Result, miette};
use std::path::Path;

/// Show disk drives: profiles, metrics, and models compared with measurements.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A DRIVE is a profile (see: frit disk list), a profile of your own (.toml), or DiskSim's \
                  description of one (.diskspecs, with the .model and .seek files that it names beside it). \
docs/reference/disk.md describes the model."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// List the drives that come with frit.
    List(list::Args),
    /// Show a drive: zones, seeks, transfer rates, random requests a second.
    Show(show::Args),
    /// Compare a drive's model with measured service times.
    Score(score::Args),
}

/// Runs the command.
///
/// # Errors
/// An error message for the user.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::List(a) => list::run(a),
        Command::Show(a) => show::run(a),
        Command::Score(a) => score::run(a),
    }
}

/// Loads a drive by name, or from a file.
fn drive(name: &str) -> Result<LoadedDrive> {
    let path = Path::new(name);
    match path.extension().and_then(|e| e.to_str()) {
        Some("diskspecs" | "parv" | "model") => diskspecs::load(path).map_err(|e| miette!("{e}")),
        Some("toml") => of_profile(&DiskProfile::load(path).map_err(|e| report(&e))?),
        _ if name.contains('/') => {
            Err(miette!("'{name}' is not a drive; a drive is a profile, or a .toml or .diskspecs file"))
        }
        _ => of_profile(&DiskProfile::builtin(name).map_err(|e| report(&e))?),
    }
}

fn of_profile(p: &DiskProfile) -> Result<LoadedDrive> {
    Ok(LoadedDrive { spec: p.spec().map_err(|e| report(&e))?, notes: Vec::new() })
}

fn report(e: &Error) -> miette::Report {
    match e {
        Error::Param { key, value, why } if key == "disk" => miette!("'{value}': {why}"),
        other => miette!("{other}"),
    }
}
