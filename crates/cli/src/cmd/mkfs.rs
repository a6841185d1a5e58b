//! `frit mkfs`.

mod pool;

use super::image::{self, LockedImage, OverlayArgs};
use super::mount::hint;
use super::volume::sizes;
use crate::output::{print, print_json};
use frit_core::{paths, size};
use frit_fs::{ContentStore, FileSystem, FormatOptions, Fs, Image, Pool};
use frit_volume::access::{foreign_owner, make_private_dir};
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use uuid::Uuid;

/// Make a file system in a file.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit mkfs img --size 4G
  frit mkfs img --size 64G --inodes 1000000 --label scratch
  frit mkfs /mnt/pmem/img --size 16G      a file on a DAX file system, which is persistent memory
  frit mkfs img --size 4G --data-checksums
  frit mkfs --pool /dev/shm/pool          contents in files of a tmpfs, for FUSE passthrough
  frit mkfs img --force                   overwrites the contents, keeps the size
  frit mkfs vol                           on a volume of frit create --stack nameless-files
  frit mount img /mnt

All of it is allocated at once. The root directory belongs to the user of the command. See docs/guide/mount.md.")]
pub(crate) struct Args {
    /// Image file, which is created if it is missing; or a volume whose layer is a nameless-write
    /// device.
    #[arg(required_unless_present = "pool")]
    image: Option<PathBuf>,
    /// Make a pool of this directory, which is created if it is missing: names and attributes are
    /// in an image in it, the contents of each file in a file of their own.
    #[arg(long, value_name = "DIR", conflicts_with = "image")]
    pool: Option<PathBuf>,
    /// Size of the image, such as 4G. [default: size of the file; in a pool 512 bytes an inode and
    /// 16 MiB]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    size: Option<u64>,
    /// Number of inodes: the limit of files and directories. [default: one for each 16 KiB; in a
    /// pool one for each 32 KiB of its file system, up to 4 Mi]
    #[arg(long, value_name = "N")]
    inodes: Option<u64>,
    /// Label for users, at most 32 bytes.
    #[arg(long, value_name = "NAME", default_value = "")]
    label: String,
    /// Keep checksums of file contents, 8 bytes for each 4 KiB: damage is detected on reads.
    #[arg(long, conflicts_with = "pool")]
    data_checksums: bool,
    /// Make no command files, one in each directory, for in-storage processing. They take an inode each,
    /// and older versions of frit cannot mount a file system that has them.
    #[arg(long)]
    no_isp: bool,
    /// Overwrite the contents of the file, unless it is in use.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    changes: OverlayArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct MkfsJson<'a> {
    image: &'a Path,
    bytes: u64,
    uuid: String,
    label: &'a str,
    block_bytes: u32,
    /// Number of blocks for files.
    blocks: u64,
    inodes: u64,
}

/// Runs the command.
///
/// # Errors
/// The file system cannot be created.
pub(crate) fn run(args: &Args) -> Result<()> {
    if let Some(volume) = args.image.as_deref().filter(|image| image::is_volume(image)) {
        return make_on_volume(args, volume);
    }
    let plan = match (&args.pool, &args.image) {
        (Some(directory), _) => plan_pool(args, directory)?,
        (None, image) => {
            let image = image.clone().unwrap_or_default();
            FormatPlan { image, size: args.size, inodes: args.inodes, pool: None }
        }
    };
    let (locked, new) = LockedImage::make(&plan.image, plan.size, args.force)?;
    image::warn_exposed(&plan.image, plan.pool)?;
    let made = make(args, &plan, &locked);
    if made.is_err() && new {
        paths::remove_file(&plan.image).into_diagnostic()?;
    }
    made
}

/// Creates a file system on a volume whose layer is a nameless-write device.
fn make_on_volume(args: &Args, volume: &Path) -> Result<()> {
    if args.size.is_some() || args.data_checksums {
        let option = if args.size.is_some() { "--size" } else { "--data-checksums" };
        return Err(miette!(
            help = "the volume has its size, and checksums of its pages",
            "{option} is for images, and {} is a volume",
            volume.display()
        ));
    }
    let placed = image::open_placed(volume, false)?;
    let format = FormatOptions {
        inodes: args.inodes,
        label: args.label.clone(),
        force: args.force,
        root: owner(),
        placed: Some(Arc::clone(&placed)),
        command_files: !args.no_isp,
        ..FormatOptions::default()
    };
    finish(args, volume, Fs::format(Image::Virtual(placed.medium()), format), None)
}

/// Returns the owner of the root directory, and its permission bits.
fn owner() -> (u32, u32, u16) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw(), 0o755)
}

/// The file system to be created.
struct FormatPlan<'a> {
    image: PathBuf,
    size: Option<u64>,
    inodes: Option<u64>,
    /// The directory of a pool.
    pool: Option<&'a Path>,
}

/// Creates the directory of a pool, and determines the size of its image.
fn plan_pool<'a>(args: &Args, directory: &'a Path) -> Result<FormatPlan<'a>> {
    let at = || format!("cannot make a pool of {}", directory.display());
    if let Some(user) = foreign_owner(directory).filter(|_| !args.force) {
        return Err(miette!(
            help = "name another one; --force makes a pool of it anyway",
            "{} belongs to user {user}, who could read and change what is stored in it",
            directory.display()
        ));
    }
    if !directory.is_dir() {
        make_private_dir(directory, true).into_diagnostic().wrap_err_with(at)?;
    }
    let image = Pool::image(directory);
    let found = rustix::fs::statvfs(directory).into_diagnostic().wrap_err_with(at)?;
    let there = std::fs::metadata(&image).map(|found| found.len()).ok().filter(|_| args.size.is_none());
    let place = found.f_blocks.saturating_mul(found.f_frsize);
    let (size, inodes) = pool::sizes(place, args.size.or(there), args.inodes);
    Ok(FormatPlan { image, size: Some(size), inodes: Some(inodes), pool: Some(directory) })
}

fn make(args: &Args, plan: &FormatPlan<'_>, locked: &LockedImage) -> Result<()> {
    let shown = plan.pool.unwrap_or(&plan.image);
    let pool = plan.pool.map(|directory| Pool::make(directory, None)).transpose().into_diagnostic()?;
    if let Some(pool) = &pool {
        hint(pool)?;
    }
    let format = FormatOptions {
        inodes: plan.inodes,
        content_store: pool.map(|pool| Arc::new(pool) as Arc<dyn ContentStore>),
        label: args.label.clone(),
        // `LockedImage::make` has already checked the contents of the file.
        force: true,
        root: owner(),
        sums: args.data_checksums,
        command_files: !args.no_isp,
        ..FormatOptions::default()
    };
    let medium = Image::fresh(&plan.image, &args.changes.overlay());
    let made = medium.and_then(|medium| Fs::format(medium, format));
    finish(args, shown, made, Some(locked.bytes()?))
}

/// Closes a new file system, and prints its sizes. Without `bytes` its size is that of its blocks.
fn finish(args: &Args, shown: &Path, made: frit_fs::Result<Fs<Image>>, bytes: Option<u64>) -> Result<()> {
    let fs = made
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot make a file system in {}", shown.display()))?;
    let usage = fs.usage().into_diagnostic()?;
    let uuid = fs.uuid();
    fs.close().into_diagnostic()?;
    let made = MkfsJson {
        image: shown,
        bytes: bytes.unwrap_or(usage.blocks * u64::from(usage.block_bytes)),
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
        shown.display(),
        sizes(made.bytes),
        size::format(made.blocks * u64::from(made.block_bytes)),
        made.block_bytes,
        made.inodes,
        made.uuid
    ))
}
