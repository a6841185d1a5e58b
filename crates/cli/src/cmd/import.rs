//! `frit import`.

mod format;

use super::volume::{Bar, not_opened, open};
use crate::output::{print, print_json};
use format::{Format, HEAD_BYTES};
use frit_core::{size, text::shown};
use frit_volume::{ImageIn, import, inspect, is_blank};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::fs::File;
use std::io::{Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Fill a volume from a raw image.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit import vol disk.img
  zstd -dc disk.img.zst | frit import vol -
  frit import vol disk.img --force         over what the volume holds

Afterwards the volume holds the image, and zeros behind it: all that it held before is gone. A volume that holds anything but
zeros is only overwritten with --force. Holes and zeros of the image take no room. Exits with 0, with 1 when something went wrong, and with 2 when the volume cannot be opened (it must not be in
use). See docs/volumes.md.")]
pub(crate) struct Args {
    /// The volume, at least as large as the image.
    volume: PathBuf,
    /// The image: a file or a block device; - is standard input.
    image: PathBuf,
    /// Overwrite a volume that holds data.
    #[arg(long)]
    force: bool,
    /// The image's format. Without it an image that is known by its first bytes not to be raw (qcow2, vmdk, gzip ...) is
    /// refused; with it, its bytes are taken as they are.
    #[arg(long, value_name = "FORMAT", value_parser = ["raw"])]
    format: Option<String>,
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
    let cannot = || format!("cannot read {}", shown(&args.image));
    let file = if args.image == Path::new("-") {
        None
    } else {
        Some(File::open(&args.image).into_diagnostic().wrap_err_with(cannot)?)
    };
    let head = head(file.as_ref()).into_diagnostic().wrap_err_with(cannot)?;
    if let Some(format) = Format::of(&head).filter(|_| args.format.is_none()) {
        return Err(miette!(
            help = format.hint(&args.image, &args.volume),
            "{} is no raw image, but {}",
            shown(&args.image),
            format.name()
        ));
    }
    let mut volume = match open(&args.volume, false, args.json) {
        Ok(v) => v,
        Err(e) => return not_opened(e),
    };
    if !args.force && !is_blank(&mut volume) {
        volume.close()?;
        return Err(miette!(
            help = "--force overwrites it; frit export VOLUME FILE keeps a copy",
            "{} holds data, and an import replaces all of it",
            shown(&args.volume)
        ));
    }
    let length = file.as_ref().and_then(|f| f.metadata().ok()).map(|m| m.len()).filter(|&n| n > 0);
    let bar = Bar::bytes(args.json, "importing", length);
    let mut progress = |done| bar.at(done);
    let imported = match &file {
        Some(f) => import(&mut volume, &mut ImageIn::File(f), &mut progress),
        None => {
            let mut all = Cursor::new(head).chain(std::io::stdin().lock());
            import(&mut volume, &mut ImageIn::Stream(&mut all), &mut progress)
        }
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

/// The first bytes of the image: of standard input they are taken, and have to be put before the rest.
fn head(file: Option<&File>) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    match file {
        None => std::io::stdin().lock().take(HEAD_BYTES as u64).read_to_end(&mut head)?,
        // A pipe has no places, and gives its bytes once: it is not looked into.
        Some(file) if !file.metadata()?.is_file() => 0,
        Some(file) => {
            head.resize(HEAD_BYTES, 0);
            let n = file.read_at(&mut head, 0)?;
            head.truncate(n);
            n
        }
    };
    Ok(head)
}
