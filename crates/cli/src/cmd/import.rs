//! `frit import`.

mod format;

use super::volume::{ByteProgress, not_opened, open};
use crate::output::{print, print_json};
use format::{HEAD_BYTES, ImageFormat};
use frit_core::{size, text::shown};
use frit_volume::{ImageSource, import, inspect, is_blank};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::fs::File;
use std::io::{Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Import a raw image into a volume.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit import vol disk.img
  zstd -dc disk.img.zst | frit import vol -
  frit import vol disk.img --force         overwrites the contents of the volume

Afterwards the volume holds the image, and zeros behind it: its previous contents are lost. A volume that holds anything but \
zeros is only overwritten with --force. Holes and zeros of the image take no space. Exits with 0, with 1 on an error, and with 2 when the volume cannot be opened (it must not be in \
use). See docs/guide/volumes.md.")]
pub(crate) struct Args {
    /// Volume, at least as large as the image.
    volume: PathBuf,
    /// Image: a file or a block device; - is standard input.
    image: PathBuf,
    /// Overwrite a volume that holds data.
    #[arg(long)]
    force: bool,
    /// Format of the image. Without it, an image whose first bytes identify another format (qcow2,
    /// vmdk, gzip ...) is refused; with it, the bytes are taken as they are.
    #[arg(long, value_name = "FORMAT", value_parser = ["raw"])]
    format: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// The image cannot be read or does not fit.
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
    if let Some(file) = &file {
        check_format(args, &head_of(file).into_diagnostic().wrap_err_with(cannot)?)?;
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
    let mut head = Vec::new();
    if file.is_none() {
        // The volume stays locked while standard input is read.
        let read = std::io::stdin().lock().take(HEAD_BYTES as u64).read_to_end(&mut head);
        let checked = read.into_diagnostic().wrap_err_with(cannot).and_then(|_| check_format(args, &head));
        if let Err(e) = checked {
            volume.close()?;
            return Err(e);
        }
    }
    let length = file.as_ref().and_then(|f| f.metadata().ok()).map(|m| m.len()).filter(|&n| n > 0);
    let bar = ByteProgress::bytes(args.json, "importing", length);
    let mut progress = |done| bar.at(done);
    let imported = match &file {
        Some(f) => import(&mut volume, &mut ImageSource::File(f), &mut progress),
        None => {
            let mut all = Cursor::new(head).chain(std::io::stdin().lock());
            import(&mut volume, &mut ImageSource::Stream(&mut all), &mut progress)
        }
    };
    drop(bar);
    // The volume is closed in every case, so that the bytes imported so far are durable.
    let closed = volume.close();
    let moved = imported?;
    closed?;
    if args.json {
        print_json(&moved)?;
    } else {
        print(&format!(
            "{} imported, {} of them data; the rest reads as zeros\n",
            size::format(moved.bytes),
            size::format(moved.data_bytes)
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Refuses an image whose first bytes identify a format other than raw.
fn check_format(args: &Args, head: &[u8]) -> Result<()> {
    let Some(format) = ImageFormat::of(head).filter(|_| args.format.is_none()) else { return Ok(()) };
    Err(miette!(
        help = format.hint(&args.image, &args.volume),
        "{} is not a raw image, but {}",
        shown(&args.image),
        format.name()
    ))
}

/// Returns the first bytes of a regular file; none of a pipe or a device.
fn head_of(file: &File) -> std::io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD_BYTES];
    let n = if file.metadata()?.is_file() { file.read_at(&mut head, 0)? } else { 0 };
    head.truncate(n);
    Ok(head)
}
