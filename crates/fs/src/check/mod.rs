//! `fsck`: whether what is on the medium agrees with itself.
//!
//! The journal is carried out first, as every start does. Then everything is read: each inode with its extents and
//! attributes, each directory with its names, the bitmap, the ledger, the list of orphans. It takes 24 bytes of DRAM
//! for each inode that was ever used, and a bit for each block.

mod blocks;
mod bodies;
mod inodes;
mod names;
mod repair;

use crate::error::{Error, Result};
use crate::format::{Geometry, Superblock};
use crate::inode::Inode;
use crate::journal::replay;
use crate::ledger::Ledger;
use crate::medium::Medium;
use crate::orphans::Orphans;
use crate::types::Ino;
use blocks::Blocks;
pub use bodies::{check_pool, repair_pool};
use inodes::Inodes;
pub use repair::repair;
use std::fmt;

/// Most problems that are told one by one.
const TOLD_MAX: usize = 1000;

/// What a check found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// Directories.
    pub directories: u64,
    /// Inodes that are no directories.
    pub files: u64,
    /// Blocks that they use.
    pub blocks: u64,
    /// Inodes without names that the next start frees.
    pub orphans: u64,
    /// Bodies of a pool that no inode has and that the next start removes.
    pub strays: u64,
    /// Whether it was closed in order.
    pub closed: bool,
    /// Blocks whose contents were read and are what was written: [`check_contents`] reads them.
    pub verified: u64,
    /// Blocks whose contents have no checksum: written since the file was synced or closed.
    pub unsummed: u64,
    /// What is wrong, each in a sentence that says where: the first thousand.
    pub problems: Vec<String>,
    /// How many problems there are.
    pub found: u64,
    /// What a repair did before it looked, each in a sentence: the first thousand.
    pub repairs: Vec<String>,
    /// How much it did.
    pub repaired: u64,
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.found == 0
    }

    fn tell(&mut self, problem: impl fmt::Display) {
        self.found += 1;
        if self.problems.len() < TOLD_MAX {
            self.problems.push(problem.to_string());
        }
    }
}

/// What all parts of a check look at.
#[derive(Debug)]
struct Checked<'a, M> {
    medium: &'a M,
    geometry: Geometry,
    salt: u32,
    /// Whether contents are read and compared with their checksums.
    contents: bool,
    report: Report,
}

/// Checks a file system that nobody has open.
///
/// # Errors
/// There is none on the medium, or neither of its superblocks can be read.
pub fn check<M: Medium>(medium: &M) -> Result<Report> {
    check_all(medium, false)
}

/// The same, and compares what all files hold with its checksums.
///
/// # Errors
/// As for [`check`]; the file system was made without checksums of contents.
pub fn check_contents<M: Medium>(medium: &M) -> Result<Report> {
    if !Superblock::read(medium)?.geometry.has_sums() {
        return Err(Error::Image("it was made without checksums of contents (--data-checksums)".into()));
    }
    check_all(medium, true)
}

fn check_all<M: Medium>(medium: &M, contents: bool) -> Result<Report> {
    let superblock = Superblock::read(medium)?;
    let (geometry, salt) = (superblock.geometry, superblock.salt());
    let mut checked = Checked { medium, geometry, salt, contents, report: Report::default() };
    for (which, at) in [("first", Geometry::SUPERBLOCK_AT), ("second", geometry.copy_at())] {
        match Superblock::read_at(medium, at) {
            Ok(copy) if copy == superblock => {}
            Ok(_) => checked.report.tell(format_args!("the {which} superblock differs from the other one")),
            Err(why) => checked.report.tell(format_args!("the {which} superblock at byte {at:#x}: {why}")),
        }
    }
    if let Err(error) = replay(medium, &geometry, salt) {
        checked.report.tell(error);
    }
    let read = Ledger::read(medium, &geometry, salt);
    let sound = read.is_ok();
    let ledger = read.unwrap_or_else(|error| {
        checked.report.tell(error);
        Ledger { highest: highest(medium, &geometry, salt), ..Ledger::default() }
    });
    checked.report.closed = ledger.closed;
    let mut blocks = Blocks::new(&geometry);
    let mut inodes = Inodes::read(&mut checked, &mut blocks, ledger.highest);
    inodes.follow_names(&mut checked);
    let (list, orphans) = Orphans::read(medium, &geometry);
    inodes.match_orphans(&mut checked, &orphans);
    if list.has_more() {
        inodes.add_orphans(&mut checked);
    }
    inodes.match_links(&mut checked);
    let used = blocks.match_bitmap(&mut checked);
    checked.report.blocks = used;
    let counted = checked.report.directories + checked.report.files;
    for (what, found, said) in [("blocks", used, ledger.blocks), ("inodes", counted, ledger.inodes)] {
        if sound && found != said {
            checked
                .report
                .tell(format_args!("the ledger counts {said} {what} in use, and there are {found}"));
        }
    }
    Ok(checked.report)
}

/// The highest inode of the table that is in use and matches its check. What was never used holds anything.
fn highest<M: Medium>(medium: &M, geometry: &Geometry, salt: u32) -> u64 {
    let used = |number: &u64| matches!(Inode::read(medium, geometry, salt, Ino(*number)), Ok(Some(_)));
    (1..=geometry.inodes).rev().find(used).unwrap_or(1)
}

/// Where an inode is, for people.
fn place(geometry: &Geometry, ino: Ino) -> String {
    format!("inode {} at byte {:#x}", ino.0, geometry.inode_at(ino.0))
}

impl<M: Medium> Checked<'_, M> {
    fn place(&self, ino: Ino) -> String {
        place(&self.geometry, ino)
    }
}
