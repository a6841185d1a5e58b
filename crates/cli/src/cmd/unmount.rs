//! `frit unmount`.

mod left;

use super::image;
use crate::output::{complain, print};
use frit_serve::fuse::unmount;
use frit_serve::mount::{Mounted, mounted};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Unmount a file system that frit mount mounted, and wait until its image is closed.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit unmount /mnt
  frit unmount /mnt --lazy      now, even while programs use it: they keep what they have open
  frit unmount /mnt --save /other/copy.img   where the disk of the image is full or broken

An image on a disk is synced first. If that fails the file system stays mounted, unless --force or --save is given: what
is not synced is in memory alone. umount and fusermount3 -u neither sync nor wait for the image. See docs/mount.md.")]
pub(crate) struct Args {
    /// Where it is mounted.
    directory: PathBuf,
    /// Unmount it also while programs use it; do not wait for them.
    #[arg(long, short)]
    lazy: bool,
    /// How long syncing the image may take, and closing it.
    #[arg(long, value_name = "S", default_value_t = 120)]
    timeout: u64,
    /// Unmount it also when its image cannot be synced: the last changes stay in memory until the machine stops.
    #[arg(long)]
    force: bool,
    /// When its image cannot be synced, unmount it and write the whole file system to a new file, on another disk.
    #[arg(long, value_name = "FILE", conflicts_with = "lazy")]
    save: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// Nothing is mounted there, or programs use it; the image cannot be synced, or could not be closed.
pub(crate) fn run(args: &Args) -> Result<()> {
    let directory = args.directory.display();
    let found: Option<Mounted> = mounted(&args.directory).into_diagnostic()?;
    let found = found.ok_or_else(|| miette!("{directory}: no file system of frit is mounted there"))?;
    if args.save.is_some() && Path::new(&found.source).is_dir() {
        return Err(miette!(
            "{directory} is a pool, whose contents are beside its image: --save writes images only"
        ));
    }
    let image = image::of(found.source.as_ref());
    // What is found while it is mounted: when its server has ended only a name is left.
    let overlay = left::overlay_of(&image);
    let patience = Duration::from_secs(args.timeout);
    let synced = left::sync(&found.mountpoint, patience);
    if let (Err(e), false, None) = (&synced, args.force, &args.save) {
        return Err(miette!(
            help = "make room on its disk and unmount again. Or unmount with --save FILE, which writes the whole file \
                    system to another disk; or with --force: the next frit mount or frit fsck goes on with the \
                    changes, until the machine stops",
            "{directory} stays mounted: {} cannot be synced ({e}). Its last changes are in memory alone{}",
            image.display(),
            overlay.as_ref().map(|at| format!(", in {}", at.display())).unwrap_or_default()
        ));
    }
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
        image::wait_closed(&image, patience)?;
        if let Some(overlay) = overlay.filter(|overlay| overlay.exists()) {
            left::take_care(&image, &overlay, args.save.as_deref()).wrap_err_with(|| {
                format!("{directory} is unmounted, and {} is not up to date", image.display())
            })?;
        }
    }
    if matches!(synced, Ok(false)) {
        complain(&format!(
            "frit unmount: the server of {directory} was killed: frit mount or frit fsck goes on with what it had not \
             synced, until the machine stops\n"
        ))?;
    }
    print(&format!("{directory} is unmounted\n"))
}
