//! `frit mkfs`.

use super::image::{Changes, Locked};
use super::volume::sizes;
use crate::output::{print, print_json};
use frit_core::size;
use frit_fs::{Files, Format, Fs, Image};
use miette::{IntoDiagnostic, Result, WrapErr};
use serde::Serialize;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Make a file system in a file.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit mkfs img --size 4G
  frit mkfs img --size 64G --inodes 1000000 --label scratch
  frit mkfs /mnt/pmem/img --size 16G      a file on a DAX file system is memory itself
  frit mkfs img --size 4G --data-checksums
  frit mkfs img --force                   over what it holds, as large as it is
  frit mount img /mnt

All of it is allocated at once. The root directory belongs to who makes it. See docs/mount.md.")]
pub(crate) struct Args {
    /// The file; it is made when it is missing.
    image: PathBuf,
    /// Its size, such as 4G. [default: as large as the file is]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    size: Option<u64>,
    /// Inodes: files and directories that there can be. [default: one for each 16 KiB]
    #[arg(long, value_name = "N")]
    inodes: Option<u64>,
    /// A name for people, at most 32 bytes.
    #[arg(long, value_name = "NAME", default_value = "")]
    label: String,
    /// Give contents of files checksums, 8 bytes for each 4 KiB: damage is told when they are read.
    #[arg(long)]
    data_checksums: bool,
    /// Make it over what the file holds, unless it is in use.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    changes: Changes,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Made<'a> {
    image: &'a Path,
    bytes: u64,
    uuid: String,
    label: &'a str,
    block_bytes: u32,
    /// Blocks for files.
    blocks: u64,
    inodes: u64,
}

/// Runs the command.
///
/// # Errors
/// What keeps the file system from being made.
pub(crate) fn run(args: &Args) -> Result<()> {
    let (locked, new) = Locked::make(&args.image, args.size, args.force)?;
    let made = make(args, &locked);
    if made.is_err() && new {
        std::fs::remove_file(&args.image).into_diagnostic()?;
    }
    made
}

fn make(args: &Args, locked: &Locked) -> Result<()> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let format = Format {
        inodes: args.inodes,
        label: args.label.clone(),
        // What the file holds was looked at when it was opened.
        force: true,
        root: (uid, gid, 0o755),
        sums: args.data_checksums,
        ..Format::default()
    };
    let medium = Image::fresh(&args.image, &args.changes.overlay());
    let made = medium.and_then(|medium| Fs::format(medium, format));
    let fs = made
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot make a file system in {}", args.image.display()))?;
    let usage = fs.usage().into_diagnostic()?;
    let uuid = fs.uuid();
    fs.close().into_diagnostic()?;
    let made = Made {
        image: &args.image,
        bytes: locked.bytes()?,
        uuid: Uuid::from_u128(uuid).to_string(),
        label: &args.label,
        block_bytes: usage.block_bytes,
        blocks: usage.blocks,
        inodes: usage.inodes,
    };
    if args.json {
        return print_json(&made);
    }
    print(&format!(
        "{}: a file system of {}\n{} for files in blocks of {} bytes, {} inodes, UUID {}\n",
        args.image.display(),
        sizes(made.bytes),
        size::show(made.blocks * u64::from(made.block_bytes)),
        made.block_bytes,
        made.inodes,
        made.uuid
    ))
}
