//! `frit fsck`.

use super::image::{self, LockedImage, OverlayArgs};
use crate::output::{print, print_json, print_stderr};
use frit_fs::{
    Clock, Error, Image, Medium, Pool, Report, check, check_contents, check_placed, check_pool, repair,
    repair_placed, repair_pool,
};
use miette::{Result, miette};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Exit code if no file system could be checked.
const NOT_CHECKED: u8 = 2;

/// Check a file system that is not mounted, and optionally repair it.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit fsck img
  frit fsck img --json
  frit fsck /dev/shm/pool   a pool
  frit fsck vol             a file system on a volume
  frit fsck img --repair    repair the problems, and list the repairs
  frit fsck img --data      read all files, and compare them with their checksums

Inodes, blocks, names, links and the list of open files are compared with each other. Operations that a crash interrupted are \
completed first, as at every mount. Exits with 0 when no problem was found or all were repaired, 1 when problems are left, \
2 when no file system could be checked, or it is mounted. See docs/guide/mount.md.")]
pub(crate) struct Args {
    /// Image, the directory of a pool, or a volume.
    image: PathBuf,
    /// Repair the problems. Data that is damaged beyond repair is given up: copy the image first if
    /// it matters.
    #[arg(long)]
    repair: bool,
    /// Read the contents of all files as well: for a file system made with --data-checksums, or on a
    /// volume.
    #[arg(long, conflicts_with = "repair")]
    data: bool,
    #[command(flatten)]
    changes: OverlayArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct FsckJson<'a> {
    image: &'a Path,
    /// `true` if no problems were found, or none are left.
    ok: bool,
    directories: u64,
    /// Number of inodes other than directories and command files.
    files: u64,
    /// Number of command files.
    commands: u64,
    /// Number of blocks of directories and files.
    blocks: u64,
    /// Number of blocks of contents on a nameless-write device.
    #[serde(skip_serializing_if = "is_zero")]
    placed: u64,
    /// Number of orphans: inodes without names, which the next mount frees.
    orphans: u64,
    /// Number of content files of a pool that belong to no inode.
    strays: u64,
    /// `true` if the file system was unmounted cleanly.
    closed: bool,
    /// Number of blocks with valid checksums, with --data.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<u64>,
    /// Number of blocks of files without a checksum: not synced since they were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    unsummed: Option<u64>,
    /// Number of problems found; with --repair, those that are left.
    found: u64,
    /// The first thousand problems.
    problems: &'a [String],
    /// Number of repairs.
    repaired: u64,
    /// The first thousand repairs, each as a sentence.
    repairs: &'a [String],
    seconds: f64,
}

// The signature is that of serde.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Runs the command.
///
/// # Errors
/// The output cannot be written. A damaged file system is reported by the exit code.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let start = Instant::now();
    let checked = if image::is_volume(&args.image) { check_volume(args) } else { check_image(args) };
    let report = match checked {
        Ok(report) => report,
        Err(e) => {
            print_stderr(&format!("{e:?}\n"))?;
            return Ok(ExitCode::from(NOT_CHECKED));
        }
    };
    tell(args, &report, start.elapsed().as_secs_f64())?;
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks or repairs the file system on a volume.
fn check_volume(args: &Args) -> Result<Report> {
    let placed = image::open_placed(&args.image, !args.repair)?;
    let checked = match args.repair {
        false => check_placed(&placed, args.data),
        true => repair_placed(&placed, Clock::Wall),
    };
    checked.map_err(|e| miette!("{}: {e}", args.image.display()))
}

/// Checks or repairs the file system of an image, or of a pool.
fn check_image(args: &Args) -> Result<Report> {
    image::open_pool(&args.image).and_then(|pool| {
        let image = image::image_path(&args.image);
        let _locked = LockedImage::open(&image)?;
        image::warn_exposed(&image, pool.as_ref().map(|_| args.image.as_path()))?;
        let checked = Image::open(&image, &args.changes.overlay()).and_then(|medium| {
            image::print_notes(&medium);
            let report = check_or_repair(args, &medium, pool.as_deref())?;
            // Opening the image may have completed interrupted operations, and a repair has changed
            // it: both are synced.
            medium.sync().map(|()| report).map_err(|e| unsynced(&medium, e))
        });
        checked.map_err(|e: Error| miette!("{}: {e}", args.image.display()))
    })
}

/// Adds the location of unsynced changes to an error.
fn unsynced(medium: &Image, error: Error) -> Error {
    match medium.overlay() {
        Some(overlay) => Error::Image(format!(
            "{error}. Unsynced changes are only in memory, in {}: free space on the disk, and check again",
            overlay.display()
        )),
        None => error,
    }
}

fn check_or_repair(args: &Args, medium: &Image, pool: Option<&Pool>) -> frit_fs::Result<Report> {
    match (pool, args.repair) {
        // For a pool, this returns the error that pools have no checksums of contents.
        (_, false) if args.data => check_contents(medium),
        (None, false) => check(medium),
        (None, true) => repair(medium, &Clock::Wall),
        (Some(pool), false) => check_pool(medium, pool),
        (Some(pool), true) => repair_pool(medium, pool, &Clock::Wall),
    }
}

fn tell(args: &Args, r: &Report, seconds: f64) -> Result<()> {
    if args.json {
        return print_json(&FsckJson {
            image: &args.image,
            ok: r.is_clean(),
            directories: r.directories,
            files: r.files,
            commands: r.commands,
            blocks: r.blocks,
            placed: r.placed,
            orphans: r.orphans,
            strays: r.strays,
            closed: r.closed,
            verified: args.data.then_some(r.verified),
            unsummed: args.data.then_some(r.unsummed),
            found: r.found,
            problems: &r.problems,
            repaired: r.repaired,
            repairs: &r.repairs,
            seconds,
        });
    }
    let image = args.image.display();
    let mut out = list(&r.repairs, r.repaired) + &list(&r.problems, r.found);
    let (directories, files, blocks) = (r.directories, r.files, r.blocks);
    out += &format!("{image}: {directories} directories, {files} files, {blocks} blocks");
    if r.placed > 0 {
        out += &format!(", {} blocks of contents on the device", r.placed);
    }
    out += if r.closed { "; it was unmounted in order\n" } else { "; it was not unmounted in order\n" };
    if args.data && !image::is_volume(&args.image) {
        out += &format!("{} blocks of files are what was written", r.verified);
        out += &if r.unsummed > 0 { format!(", {} have no checksum\n", r.unsummed) } else { "\n".into() };
    }
    if r.orphans > 0 {
        out += &format!("{} files were removed while they were open: the next mount frees them\n", r.orphans);
    }
    if r.strays > 0 && !r.closed {
        out += &format!("{} bodies belong to no file: the next mount removes them\n", r.strays);
    }
    out += &match r.found {
        0 if r.repaired > 0 => format!("{} repairs; nothing is left ({seconds:.3} s).\n", r.repaired),
        0 => format!("Nothing is wrong ({seconds:.3} s).\n"),
        n if args.repair => format!("{} repairs; {n} problems are left ({seconds:.3} s).\n", r.repaired),
        n => format!("{n} problems ({seconds:.3} s). frit fsck --repair repairs them.\n"),
    };
    print(&out)
}

/// Returns the sentences, one a line, and the number of further ones of `all`.
fn list(sentences: &[String], all: u64) -> String {
    let mut out: String = sentences.iter().map(|sentence| format!("{sentence}\n")).collect();
    let more = all - sentences.len() as u64;
    if more > 0 {
        out += &format!("... and {more} more\n");
    }
    out
}
