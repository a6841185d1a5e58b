//! `frit import`.

use super::volume::{Bar, not_opened, open};
use crate::output::{print, print_json};
use frit_core::size;
use frit_volume::{ImageIn, import, inspect};
use miette::{IntoDiagnostic, Result, WrapErr};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Fill a volume from a raw image.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit import vol disk.img
  zstd -dc disk.img.zst | frit import vol -

Afterwards the volume holds the image, and zeros behind it: all that it held before is gone. Holes and zeros of the image
take no room. Exits with 0, with 1 when something went wrong, and with 2 when the volume cannot be opened (it must not be in
use). See docs/volumes.md.")]
pub(crate) struct Args {
    /// The volume, at least as large as the image.
    volume: PathBuf,
    /// The image: a file or a block device; - is standard input.
    image: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// An image that cannot be read or does not fit.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Err(e) = inspect(&args.volume) {
        return not_opened(e);
    }
    let file = if args.image == Path::new("-") {
        None
    } else {
        let file = File::open(&args.image);
        Some(file.into_diagnostic().wrap_err_with(|| format!("cannot read {}", args.image.display()))?)
    };
    let mut volume = match open(&args.volume, false, args.json) {
        Ok(v) => v,
        Err(e) => return not_opened(e),
    };
    let length = file.as_ref().and_then(|f| f.metadata().ok()).map(|m| m.len()).filter(|&n| n > 0);
    let bar = Bar::bytes(args.json, "importing", length);
    let mut progress = |done| bar.at(done);
    let imported = match &file {
        Some(f) => import(&mut volume, &mut ImageIn::File(f), &mut progress),
        None => import(&mut volume, &mut ImageIn::Stream(&mut std::io::stdin().lock()), &mut progress),
    };
    drop(bar);
    // What is in the volume by now stays whole, whatever the image was.
    let closed = volume.close();
    let moved = imported?;
    closed?;
    if args.json {
        print_json(&moved)?;
    } else {
        print(&format!(
            "{} imported, {} of them data; the rest reads as zeros\n",
            size::show(moved.bytes),
            size::show(moved.data_bytes)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
