//! `fsck`: verifies that the metadata on the medium is consistent.
//!
//! The journal is replayed first, as in each open. Then everything is read: each inode with its
//! extents and extended attributes, each directory with its names, the bitmap, the counters and the
//! orphan list. A check takes 24 bytes of DRAM for each inode ever used, and a bit for each block.

mod blocks;
mod commands;
mod inodes;
mod names;
mod placed;
mod pool;
mod repair;

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::format::{Geometry, Superblock};
use crate::inode::Inode;
use crate::journal::replay;
use crate::medium::Medium;
use crate::orphans::Orphans;
use crate::registers;
use crate::types::Ino;
use blocks::Blocks;
use inodes::CheckedInodes;
pub use placed::{check_placed, repair_placed};
pub use pool::{check_pool, repair_pool};
pub use repair::repair;
use std::fmt;

/// Maximum number of problems that are described individually.
const REPORTED_MAX: usize = 1000;

/// Result of a check.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// Number of directories.
    pub directories: u64,
    /// Number of inodes that are neither directories nor command files.
    pub files: u64,
    /// Number of command files: one for each directory, in a file system that has them.
    pub commands: u64,
    /// Number of blocks in use.
    pub blocks: u64,
    /// Number of blocks of contents on a nameless-write device.
    pub placed: u64,
    /// Number of inodes without names, which the next open frees.
    pub orphans: u64,
    /// Number of content files of a pool without an inode, which the next open removes.
    pub strays: u64,
    /// `true` if the file system was closed cleanly.
    pub closed: bool,
    /// Number of blocks whose contents match their checksum; only [`check_contents`] verifies
    /// contents.
    pub verified: u64,
    /// Number of blocks without a checksum: written since the last sync or close of their file.
    pub unsummed: u64,
    /// Descriptions of problems with their positions, one sentence each; at most a thousand.
    pub problems: Vec<String>,
    /// Total number of problems.
    pub found: u64,
    /// Descriptions of repairs made before the check, one sentence each; at most a thousand.
    pub repairs: Vec<String>,
    /// Total number of repairs.
    pub repaired: u64,
}

impl Report {
    /// Returns `true` if no problem was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.found == 0
    }

    fn add_message(&mut self, problem: impl fmt::Display) {
        self.found += 1;
        if self.problems.len() < REPORTED_MAX {
            self.problems.push(problem.to_string());
        }
    }
}

/// Context of a check.
#[derive(Debug)]
struct CheckContext<'a, M> {
    medium: &'a M,
    geometry: Geometry,
    salt: u32,
    /// `true` if contents are verified against their checksums.
    contents: bool,
    /// `true` if each directory has a command file.
    command_files: bool,
    report: Report,
}

/// Checks a file system, which must not be open.
///
/// # Errors
/// The medium contains no file system, or neither of its superblocks is readable.
pub fn check(medium: &dyn Medium) -> Result<Report> {
    check_all(medium, false)
}

/// Checks a file system as [`check`], and verifies the contents of all files against their
/// checksums.
///
/// # Errors
/// As for [`check`]; the file system was formatted without checksums of contents.
pub fn check_contents(medium: &dyn Medium) -> Result<Report> {
    if !Superblock::read(&medium)?.geometry.has_sums() {
        return Err(Error::Image("the file system has no checksums of contents (--data-checksums)".into()));
    }
    check_all(medium, true)
}

/// Compiled once, and not for each medium.
fn check_all(medium: &dyn Medium, contents: bool) -> Result<Report> {
    let medium = &medium;
    let superblock = Superblock::read(medium)?;
    let (geometry, salt) = (superblock.geometry, superblock.salt());
    let command_files = superblock.command_files;
    let mut checked =
        CheckContext { medium, geometry, salt, contents, command_files, report: Report::default() };
    for (which, at) in [("first", Geometry::SUPERBLOCK_AT), ("second", geometry.copy_at())] {
        match Superblock::read_at(medium, at) {
            Ok(copy) if copy == superblock => {}
            // A power loss between the copies, in `Fs::enable_command_files`.
            Ok(copy)
                if !command_files && copy == (Superblock { command_files: true, ..superblock.clone() }) => {}
            Ok(_) => {
                checked.report.add_message(format_args!("the {which} superblock differs from the other one"));
            }
            Err(why) => {
                checked.report.add_message(format_args!("the {which} superblock at byte {at:#x}: {why}"));
            }
        }
    }
    if let Err(error) = replay(medium, &geometry, salt) {
        checked.report.add_message(error);
    }
    let read = Counters::read(medium, &geometry, salt);
    let sound = read.is_ok();
    let counters = read.unwrap_or_else(|error| {
        checked.report.add_message(error);
        Counters { highest: highest(medium, &geometry, salt), ..Counters::default() }
    });
    checked.report.closed = counters.closed;
    if let Some(what) = registers::damage(medium, command_files, counters.closed) {
        checked.report.add_message(what);
    }
    let mut blocks = Blocks::new(&geometry);
    let mut inodes = CheckedInodes::read(&mut checked, &mut blocks, counters.highest);
    inodes.follow_names(&mut checked);
    inodes.match_commands(&mut checked);
    let (list, orphans) = Orphans::read(medium, &geometry);
    inodes.match_orphans(&mut checked, &orphans);
    if list.has_overflow() {
        inodes.add_orphans(&mut checked);
    }
    inodes.match_links(&mut checked);
    let used = blocks.match_bitmap(&mut checked);
    checked.report.blocks = used;
    let counted = checked.report.directories + checked.report.files + checked.report.commands;
    for (what, found, recorded) in [("blocks", used, counters.blocks), ("inodes", counted, counters.inodes)] {
        if sound && found != recorded {
            // Without valid counters, their damage is the only problem to report.
            checked.report.add_message(format_args!(
                "the ledger counts {recorded} {what} in use, but {found} are in use"
            ));
        }
    }
    Ok(checked.report)
}

/// Returns the highest inode in use that matches its checksum, by a scan of the whole table.
/// Entries that were never used may contain arbitrary data.
fn highest<M: Medium>(medium: &M, geometry: &Geometry, salt: u32) -> u64 {
    let used = |number: &u64| matches!(Inode::read(medium, geometry, salt, Ino(*number)), Ok(Some(_)));
    (1..=geometry.inodes).rev().find(used).unwrap_or(1)
}

/// Describes an inode and its position, for messages.
fn place(geometry: &Geometry, ino: Ino) -> String {
    format!("inode {} at byte {:#x}", ino.0, geometry.inode_at(ino.0))
}

impl<M: Medium> CheckContext<'_, M> {
    fn place(&self, ino: Ino) -> String {
        place(&self.geometry, ino)
    }
}
