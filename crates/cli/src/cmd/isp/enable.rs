//! `frit isp enable`.

use crate::cmd::image::{self, LockedImage, OverlayArgs};
use crate::output::print;
use miette::{IntoDiagnostic, Result, WrapErr};
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of the command.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit isp enable img
  frit isp enable /srv/pool

A file system that was made by an older version of frit, or with --no-isp, has no command files. Each directory takes \
an inode for its command file. A crash at any moment leaves a file system that works, and a second run completes it. \
Older versions of frit cannot mount it afterwards.")]
pub(crate) struct Args {
    /// Image of a file system that is not mounted, or directory of a pool.
    image: PathBuf,
    #[command(flatten)]
    changes: OverlayArgs,
}

/// Runs the command.
///
/// # Errors
/// The image cannot be opened or closed; it has too few free inodes, or a file with the name of command files.
pub(crate) fn run(args: &Args) -> Result<()> {
    let pool = image::open_pool(&args.image)?;
    let path = image::image_path(&args.image);
    let _locked = LockedImage::open(&path)?;
    let mut fs = image::open(&path, pool, false, &args.changes)?;
    let enabled = fs.enable_command_files();
    image::close(Arc::new(fs))?;
    let place = args.image.display();
    let added =
        enabled.into_diagnostic().wrap_err_with(|| format!("{place}: no command files were added"))?;
    print(&match added {
        0 => format!("{place}: each directory has a command file\n"),
        1 => format!("{place}: 1 command file added\n"),
        _ => format!("{place}: {added} command files added\n"),
    })
}
