//! `frit unmount`.

use super::image;
use crate::output::print;
use frit_serve::fuse::unmount;
use frit_serve::mount::{Mounted, mounted};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Unmount a file system that frit mount mounted, and wait until its image is closed.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit unmount /mnt
  frit unmount /mnt --lazy      now, even while programs use it: they keep what they have open

umount and fusermount3 -u do the same without waiting for the image. See docs/mount.md.")]
pub(crate) struct Args {
    /// Where it is mounted.
    directory: PathBuf,
    /// Unmount it also while programs use it; do not wait for them.
    #[arg(long, short)]
    lazy: bool,
    /// How long closing the image may take.
    #[arg(long, value_name = "S", default_value_t = 120)]
    timeout: u64,
}

/// Runs the command.
///
/// # Errors
/// Nothing is mounted there, or programs use it.
pub(crate) fn run(args: &Args) -> Result<()> {
    let directory = args.directory.display();
    let found: Option<Mounted> = mounted(&args.directory).into_diagnostic()?;
    let found = found.ok_or_else(|| miette!("{directory}: no file system of frit is mounted there"))?;
    match unmount(&found.mountpoint, args.lazy) {
        Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {
            let at = found.mountpoint.display();
            return Err(miette!(
                help = format!(
                    "fuser -vm {at} lists who; or --lazy, which takes it away from under new users only"
                ),
                "programs still use {at}"
            ));
        }
        other => other.into_diagnostic().wrap_err_with(|| format!("cannot unmount {directory}"))?,
    }
    if !args.lazy {
        image::wait_closed(&image::of(found.source.as_ref()), Duration::from_secs(args.timeout))?;
    }
    print(&format!("{directory} is unmounted\n"))
}
