//! `frit disk list`.

use super::report;
use crate::output::{print, print_json, right, table, text};
use frit_core::SECTOR_BYTES;
use frit_media::disk::DiskProfile;
use miette::Result;
use serde::Serialize;
use std::collections::BTreeMap;

/// List the built-in drives.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit disk list            names, sizes, descriptions
  frit disk list --json     every value with its source")]
pub(crate) struct Args {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct DriveJson {
    name: String,
    about: String,
    bytes: u64,
    values: BTreeMap<String, DriveValueJson>,
}

#[derive(Serialize)]
struct DriveValueJson {
    value: String,
    source: String,
}

/// Runs the command.
///
/// # Errors
/// The output cannot be written.
pub(super) fn run(args: &Args) -> Result<()> {
    let all = DiskProfile::builtins().map_err(|e| report(&e))?;
    if args.json {
        let json: Vec<DriveJson> = all.iter().map(json).collect::<Result<_>>()?;
        return print_json(&json);
    }
    let mut t = table(&["drive", "GB", "rpm", "about"]);
    for p in &all {
        let about = p.about.trim();
        let about = about.split_once(": ").or(about.split_once(". ")).map_or(about, |(first, _)| first);
        let gb = (p.values.sectors * SECTOR_BYTES) / 1_000_000_000;
        t.add_row([p.name.clone(), gb.to_string(), p.values.rpm.to_string(), about.into()]);
    }
    right(&mut t, 1);
    right(&mut t, 2);
    print(&format!(
        "{}\nfrit disk show DRIVE shows what it does, and every value with its source.\n",
        text(&t)
    ))
}

fn json(p: &DiskProfile) -> Result<DriveJson> {
    let rows = p.rows().map_err(|e| report(&e))?;
    let values =
        rows.into_iter().map(|(key, value, source)| (key, DriveValueJson { value, source })).collect();
    let (name, about) = (p.name.clone(), p.about.trim().into());
    Ok(DriveJson { name, about, bytes: p.values.sectors * SECTOR_BYTES, values })
}
