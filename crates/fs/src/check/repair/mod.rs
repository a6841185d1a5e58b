//! `fsck --repair`: repairs the problems that a check finds, and reports each repair. Data is never
//! invented: damaged data is removed, and an inode that only lost its name is moved to
//! `lost+found`.
//!
//! The journal is replayed and erased first, because a later replay would undo repairs made in
//! place. An interrupted repair is completed by running another one.

mod commands;
mod extents;
mod inodes;
mod links;
mod names;
mod space;

use super::blocks::Blocks;
use super::inodes::CheckedInodes;
use super::{REPORTED_MAX, Report, check, highest, place};
use crate::clock::Clock;
use crate::counters::Counters;
use crate::direct::end_left_accesses;
use crate::error::Result;
use crate::format::{Geometry, Superblock};
use crate::fs::Fs;
use crate::journal::{erase, replay, replay_last};
use crate::medium::Medium;
use crate::open::FsOptions;
use crate::registers;
use crate::types::{Ino, Time};
use std::fmt;

/// Maximum number of rounds. One is sufficient unless `lost+found` needs blocks that become free
/// during the round.
const ROUNDS: usize = 3;

/// Log of repairs, for the report.
#[derive(Default, Debug)]
struct RepairLog {
    sentences: Vec<String>,
    count: u64,
}

impl RepairLog {
    fn add_message(&mut self, what: impl fmt::Display) {
        self.count += 1;
        if self.sentences.len() < REPORTED_MAX {
            self.sentences.push(what.to_string());
        }
    }
}

/// State of one round of a repair.
struct RepairRound<'a, M> {
    medium: &'a M,
    geometry: Geometry,
    salt: u32,
    /// Timestamp for new inodes.
    now: Time,
    log: &'a mut RepairLog,
    /// Blocks that belong to inodes that are kept.
    blocks: Blocks,
    inodes: CheckedInodes,
    /// `true` if each directory has a command file.
    command_files: bool,
    /// The highest generation of any inode.
    generation: u32,
}

/// Repairs a file system, which must not be open, and checks it again. The report contains the
/// problems that remain.
///
/// # Errors
/// The medium contains no file system, or neither of its superblocks is readable; a sync failed.
pub fn repair(medium: &dyn Medium, clock: &Clock) -> Result<Report> {
    let medium = &medium;
    end_left_accesses(medium)?;
    let mut log = RepairLog::default();
    let superblock = Superblock::read(medium)?;
    let (geometry, salt) = (superblock.geometry, superblock.salt());
    for (which, at) in [("first", Geometry::SUPERBLOCK_AT), ("second", geometry.copy_at())] {
        if Superblock::read_at(medium, at).as_ref() != Ok(&superblock) {
            log.add_message(format_args!("the {which} superblock was written anew from the other one"));
            superblock.write(medium);
        }
    }
    if let Err(error) = replay(medium, &geometry, salt) {
        // The transaction before the last is lost, but the last one can still be applied.
        replay_last(medium, &geometry, salt);
        log.add_message(format_args!("{error}: the last one was replayed, and the journal emptied"));
        erase(medium, &geometry);
    }
    let closed = Counters::read(medium, &geometry, salt).is_ok_and(|counters| counters.closed);
    if let Some(what) = registers::damage(medium, superblock.command_files, closed) {
        log.add_message(format_args!("{what}: they were cleared"));
        registers::reset(medium, superblock.command_files);
    }
    let mut report = check(medium)?;
    for _ in 0..ROUNDS {
        if report.is_clean() {
            break;
        }
        // The repairs below are made in place, without the journal.
        erase(medium, &geometry);
        let mut round = RepairRound {
            medium,
            geometry,
            salt,
            now: clock.now(),
            log: &mut log,
            blocks: Blocks::new(&geometry),
            inodes: CheckedInodes::blank(0),
            command_files: superblock.command_files,
            generation: 0,
        };
        round.run()?;
        report = check(medium)?;
    }
    medium.fence();
    medium.sync()?;
    Ok(Report { repairs: log.sentences, repaired: log.count, ..report })
}

impl<M: Medium> RepairRound<'_, M> {
    fn run(&mut self) -> Result<()> {
        let counters = Counters::read(self.medium, &self.geometry, self.salt);
        let known = counters.as_ref().map_or(1, |counters| counters.highest);
        // The scan ignores damaged inodes, so the range also covers the counted maximum.
        let highest = highest(self.medium, &self.geometry, self.salt).max(known);
        // The inodes come first: names, link counts and the bitmap are derived from those that are
        // kept.
        self.repair_inodes(highest);
        self.repair_root();
        self.repair_orphans();
        self.repair_names(vec![Ino::ROOT]);
        let without_command = self.repair_commands();
        let lost = self.repair_unconnected();
        self.repair_name_counts();
        self.repair_links(&lost);
        // The inodes and names become durable before the bitmap that is derived from them.
        self.medium.fence();
        self.repair_space(counters.ok(), highest);
        self.medium.fence();
        self.complete(&lost, &without_command)
    }

    fn place(&self, ino: Ino) -> String {
        place(&self.geometry, ino)
    }

    /// Creates missing command files and moves inodes without names to `lost+found`, by regular
    /// transactions on the file system, which is otherwise consistent at this point.
    fn complete(&mut self, lost: &[Ino], without_command: &[Ino]) -> Result<()> {
        if lost.is_empty() && without_command.is_empty() {
            return Ok(());
        }
        let open = FsOptions { clock: Clock::counted(self.now.0), ..FsOptions::default() };
        let fs = Fs::open_any(self.medium, open)?;
        self.add_commands(&fs, without_command);
        for ino in lost {
            let named = fs.lost_and_found().and_then(|dir| fs.adopt(*ino, dir));
            let place = self.place(*ino);
            self.log.add_message(match named {
                Ok(()) => format!("{place} had no name: it was moved to lost+found"),
                Err(error) => format!("{place} has no name, and cannot be moved to lost+found: {error}"),
            });
        }
        fs.close()?;
        Ok(())
    }
}
