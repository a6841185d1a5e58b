//! `frit unmount`.

mod unsynced_changes;

use super::image;
use crate::output::{print, print_stderr};
use frit_serve::fuse::file_system::{MountInfo, mounted};
use frit_serve::fuse::{unmount, unmount_with_timeout};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time that programs have to end after errors of a killed server.
const TIME_TO_END: Duration = Duration::from_secs(2);

/// Unmount a file system of frit mount, and wait until its image is closed.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit unmount /mnt
  frit unmount /mnt --lazy      at once, even while programs use it: open files stay usable
  frit unmount /mnt --save /other/copy.img   if the disk of the image is full or fails

An image on a disk is synced first. If that fails, the file system stays mounted, because unsynced changes are only in \
memory: --save writes them elsewhere, and --force drops them. umount and fusermount3 -u neither sync nor wait for \
the image. See docs/guide/mount.md.")]
pub(crate) struct Args {
    /// Directory where it is mounted.
    directory: PathBuf,
    /// Unmount also while programs use it; do not wait for them.
    #[arg(long, short)]
    lazy: bool,
    /// Time limit for syncing and closing the image, in seconds.
    #[arg(long, value_name = "S", default_value_t = 120)]
    timeout: u64,
    /// Unmount also if the image cannot be synced: the last changes stay in memory until the
    /// machine stops.
    #[arg(long)]
    force: bool,
    /// If the image cannot be synced, unmount and write the whole file system to a new file on
    /// another disk.
    #[arg(long, value_name = "FILE", conflicts_with = "lazy")]
    save: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// Nothing is mounted there, or programs use it; the image cannot be synced or closed.
pub(crate) fn run(args: &Args) -> Result<()> {
    let directory = args.directory.display();
    let found: Option<MountInfo> = mounted(&args.directory).into_diagnostic()?;
    let found = found.ok_or_else(|| miette!("{directory}: no file system of frit is mounted there"))?;
    if args.save.is_some() && Path::new(&found.source).is_dir() {
        return Err(miette!(
            "{directory} is a pool, whose contents are beside its image: --save writes images only"
        ));
    }
    let image = image::image_path(found.source.as_ref());
    // It would not answer the sync below.
    let is_killed = image::end_killed_server(&image)?;
    // This is determined while the image is mounted: after the server has ended, only the name is
    // left.
    let overlay = unsynced_changes::overlay_of(&image);
    let timeout = Duration::from_secs(args.timeout);
    // The image is synced while it is still mounted: if the sync fails, it stays mounted and
    // nothing is lost.
    let synced = unsynced_changes::sync(&found.mountpoint, timeout);
    if let (Err(e), false, None) = (&synced, args.force, &args.save) {
        return Err(miette!(
            help = "free space on its disk and unmount again. Or unmount with --save FILE, which writes the whole file \
                    system to another disk; or with --force: the next frit mount or frit fsck recovers the \
                    changes, until the machine stops",
            "{directory} stays mounted: {} cannot be synced ({e}). Its last changes are only in memory{}",
            image.display(),
            overlay.as_ref().map(|at| format!(", in {}", at.display())).unwrap_or_default()
        ));
    }
    let unmounted = match args.lazy {
        true => unmount(&found.mountpoint, true),
        false => {
            unmount_with_timeout(&found.mountpoint, if is_killed { TIME_TO_END } else { Duration::ZERO })
        }
    };
    match unmounted {
        // The end of a killed server may have unmounted it.
        Err(_) if mounted(&args.directory).is_ok_and(|left| left.is_none()) => {}
        Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {
            let at = found.mountpoint.display();
            return Err(miette!(
                help = format!(
                    "fuser -vm {at} lists them; or use --lazy, which unmounts it now and keeps open files usable"
                ),
                "programs still use {at}"
            ));
        }
        other => other.into_diagnostic().wrap_err_with(|| format!("cannot unmount {directory}"))?,
    }
    if !args.lazy {
        image::wait_closed(&image, timeout)?;
        if let Some(overlay) = overlay.filter(|overlay| overlay.exists()) {
            unsynced_changes::sync_or_save(&image, &overlay, args.save.as_deref()).wrap_err_with(|| {
                format!("{directory} is unmounted, and {} is not up to date", image.display())
            })?;
        }
    }
    if matches!(synced, Ok(false)) {
        print_stderr(&format!(
            "frit unmount: the server of {directory} was killed: frit mount or frit fsck recovers what it had not \
             synced, until the machine stops\n"
        ))?;
    }
    print(&format!("{directory} is unmounted\n"))
}
