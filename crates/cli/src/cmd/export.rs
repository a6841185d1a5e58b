//! `frit export`.

use super::volume::{ByteProgress, not_opened, open};
use crate::output::{print_json, print_stderr};
use frit_core::files::OutputFile;
use frit_core::size;
use frit_core::text::shown;
use frit_volume::{ImageSink, TransferReport, export};
use miette::{IntoDiagnostic, Report, Result, bail, miette};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Export a volume as a raw image.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit export vol disk.img                       unwritten ranges become holes
  frit export vol - | zstd > disk.img.zst
  frit export vol disk.img --rescue              from a damaged volume: as much as can be read

The volume is not changed, and must not be in use. Exits with 0, with 1 on an error or when --rescue left ranges as \
zeros, and with 2 when the volume cannot be opened. See docs/guide/volumes.md.")]
pub(crate) struct Args {
    /// The volume.
    volume: PathBuf,
    /// Image, a file that does not exist yet; - is standard output.
    image: PathBuf,
    /// Overwrite an existing file or a block device.
    #[arg(long)]
    force: bool,
    /// Write zeros for data that cannot be read, and list those ranges.
    #[arg(long)]
    rescue: bool,
    /// Print JSON (to standard error when the image goes to standard output).
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// Data is damaged, or the image cannot be written.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let to_stdout = args.image == Path::new("-");
    let mut volume = match open(&args.volume, true, args.json) {
        Ok(v) => v,
        Err(e) => return not_opened(e),
    };
    let bar = ByteProgress::bytes(args.json, "exporting", Some(volume.bytes()));
    let mut progress = |done| bar.at(done);
    let moved = if to_stdout {
        let mut out = std::io::stdout().lock();
        export(&mut volume, &mut ImageSink::Stream(&mut out), args.rescue, &mut progress)?
    } else {
        let file = create(&args.image, args.force)?;
        let mut writer = file.file();
        // A block device has no holes, so every byte is written.
        let mut out =
            if file.is_in_place() { ImageSink::Stream(&mut writer) } else { ImageSink::Sparse(file.file()) };
        match export(&mut volume, &mut out, args.rescue, &mut progress) {
            Ok(moved) => {
                file.commit().into_diagnostic()?;
                moved
            }
            Err(e) => return Err(unfinished(args, file.is_in_place(), &e)),
        }
    };
    drop(bar);
    volume.close()?;
    tell(args, &moved, to_stdout)?;
    Ok(if moved.damaged.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the error of a failed export. A truncated image is not left behind, because it would
/// look complete.
fn unfinished(args: &Args, in_place: bool, e: &frit_volume::Error) -> Report {
    let image = shown(&args.image);
    let left = if in_place {
        format!("the contents of {image} are incomplete")
    } else {
        format!("nothing was written to {image}")
    };
    let rescue = "--rescue puts zeros where data cannot be read";
    let damaged = matches!(e, frit_volume::Error::Core(frit_core::Error::Corrupt { .. }));
    let help = if damaged { format!("{left}; {rescue}") } else { left };
    miette!(help = help, "{image}: {e}")
}

/// Creates the image file. A symbolic link is not followed, but replaced with --force.
fn create(image: &Path, force: bool) -> Result<OutputFile> {
    if image.symlink_metadata().is_ok() && !force {
        bail!("{} is there already; --force overwrites it", shown(image));
    }
    // The image holds the same data as the volume, so it gets the same access rights.
    OutputFile::create_private(image).into_diagnostic()
}

fn tell(args: &Args, moved: &TransferReport, to_stdout: bool) -> Result<()> {
    if args.json && !to_stdout {
        return print_json(moved);
    }
    let mut out = format!(
        "{} exported, {} of them written data\n",
        size::format(moved.bytes),
        size::format(moved.data_bytes)
    );
    for (at, len, why) in &moved.damaged {
        out += &format!("zeros instead of {len} bytes at {at}: {why}\n");
    }
    print_stderr(&out)
}
