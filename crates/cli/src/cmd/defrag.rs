//! `frit defrag`.

use super::image::{self, LockedImage, OverlayArgs};
use crate::output::{print, print_json};
use frit_fs::{DefragResult, FileSystem, InodeType};
use miette::{IntoDiagnostic, Result, miette};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Defragment the files of a file system that is not mounted.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit defrag img
  frit defrag img --json

Contents, names and times stay; a crash at any moment loses nothing. Files are moved in runs of up to 32 MiB, where contiguous \
free space allows. See docs/guide/mount.md.")]
pub(crate) struct Args {
    /// Image of the file system.
    image: PathBuf,
    #[command(flatten)]
    changes: OverlayArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct DefragJson<'a> {
    image: &'a Path,
    /// Number of files with contents.
    files: u64,
    /// Number of files with fewer extents than before.
    changed: u64,
    /// Number of extents of all files, before and after.
    pieces_before: u64,
    pieces_after: u64,
    /// Number of damaged files, which are left unchanged.
    damaged: u64,
}

/// Runs the command.
///
/// # Errors
/// The image cannot be opened or closed cleanly; some files are damaged (all others are done).
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.image.is_dir() {
        return Err(miette!(
            "{}: a pool stores contents outside its image, so there is nothing to defragment",
            args.image.display()
        ));
    }
    let _locked = LockedImage::open(&args.image)?;
    let fs = Arc::new(image::open(&args.image, None, false, &args.changes)?);
    let mut done = DefragJson {
        image: &args.image,
        files: 0,
        changed: 0,
        pieces_before: 0,
        pieces_after: 0,
        damaged: 0,
    };
    let mut failed = None;
    for ino in fs.inodes() {
        match fs.attr(ino).and_then(|attr| match attr.kind {
            InodeType::File => fs.gather(ino),
            _ => Ok(DefragResult::default()),
        }) {
            Ok(gathered) if gathered.before > 0 => {
                done.files += 1;
                done.changed += u64::from(gathered.after < gathered.before);
                done.pieces_before += gathered.before;
                done.pieces_after += gathered.after;
            }
            Ok(_) | Err(frit_fs::Error::Stale) => {}
            Err(frit_fs::Error::Damaged { .. }) => done.damaged += 1,
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    image::close(fs)?;
    if let Some(error) = failed {
        return Err(error).into_diagnostic();
    }
    if args.json {
        print_json(&done)?;
    } else {
        print(&format!(
            "{}: {} files in {} pieces, {} before; {} of them changed\n",
            args.image.display(),
            done.files,
            done.pieces_after,
            done.pieces_before,
            done.changed
        ))?;
    }
    match done.damaged {
        0 => Ok(()),
        n => Err(miette!(
            help = "frit fsck --repair repairs damaged files; frit fsck --data lists damaged contents",
            "{n} damaged files were not changed"
        )),
    }
}
