//! `fsck --repair`: repairs the problems that a check finds, and reports each repair. Data is never
//! invented: damaged data is removed, and an inode that only lost its name is moved to
//! `lost+found`.
//!
//! The journal is replayed and erased first, because a later replay would undo repairs made in
//! place. An interrupted repair is completed by running another one.

mod extents;
mod inodes;
mod links;
mod names;
mod space;

use super::blocks::Blocks;
use super::inodes::Inodes;
use super::{Report, TOLD_MAX, check, highest, place};
use crate::clock::Clock;
use crate::error::Result;
use crate::format::{Geometry, Superblock};
use crate::fs::Fs;
use crate::journal::{carry_out_last, forget, replay};
use crate::ledger::Ledger;
use crate::medium::Medium;
use crate::open::Open;
use crate::types::{Ino, Time};
use std::fmt;

/// Maximum number of rounds. One is sufficient unless `lost+found` needs blocks that become free
/// during the round.
const ROUNDS: usize = 3;

/// Log of repairs, for the report.
#[derive(Default, Debug)]
struct Told {
    sentences: Vec<String>,
    count: u64,
}

impl Told {
    fn tell(&mut self, what: impl fmt::Display) {
        self.count += 1;
        if self.sentences.len() < TOLD_MAX {
            self.sentences.push(what.to_string());
        }
    }
}

/// State of one round of a repair.
struct Mender<'a, M> {
    medium: &'a M,
    geometry: Geometry,
    salt: u32,
    /// Timestamp for new inodes.
    now: Time,
    told: &'a mut Told,
    /// Blocks that belong to inodes that are kept.
    blocks: Blocks,
    inodes: Inodes,
    /// The highest generation of any inode.
    generation: u32,
}

/// Repairs a file system, which must not be open, and checks it again. The report contains the
/// problems that remain.
///
/// # Errors
/// The medium contains no file system, or neither of its superblocks is readable; a sync failed.
pub fn repair<M: Medium>(medium: &M, clock: &Clock) -> Result<Report> {
    let mut told = Told::default();
    let superblock = Superblock::read(medium)?;
    let (geometry, salt) = (superblock.geometry, superblock.salt());
    for (which, at) in [("first", Geometry::SUPERBLOCK_AT), ("second", geometry.copy_at())] {
        if Superblock::read_at(medium, at).as_ref() != Ok(&superblock) {
            told.tell(format_args!("the {which} superblock was written anew from the other one"));
            superblock.write(medium);
        }
    }
    if let Err(error) = replay(medium, &geometry, salt) {
        // The transaction before the last is lost, but the last one can still be applied.
        carry_out_last(medium, &geometry, salt);
        told.tell(format_args!("{error}: the last one was replayed, and the journal emptied"));
        forget(medium, &geometry);
    }
    let mut report = check(medium)?;
    for _ in 0..ROUNDS {
        if report.is_clean() {
            break;
        }
        // The repairs below are made in place, without the journal.
        forget(medium, &geometry);
        let mut round = Mender {
            medium,
            geometry,
            salt,
            now: clock.now(),
            told: &mut told,
            blocks: Blocks::new(&geometry),
            inodes: Inodes::blank(0),
            generation: 0,
        };
        round.run()?;
        report = check(medium)?;
    }
    medium.fence();
    medium.sync()?;
    Ok(Report { repairs: told.sentences, repaired: told.count, ..report })
}

impl<M: Medium> Mender<'_, M> {
    fn run(&mut self) -> Result<()> {
        let ledger = Ledger::read(self.medium, &self.geometry, self.salt);
        let known = ledger.as_ref().map_or(1, |ledger| ledger.highest);
        // The scan ignores damaged inodes, so the range also covers the counted maximum.
        let highest = highest(self.medium, &self.geometry, self.salt).max(known);
        // The inodes come first: names, link counts and the bitmap are derived from those that are
        // kept.
        self.mend_inodes(highest);
        self.mend_root();
        self.mend_orphans();
        self.mend_names(vec![Ino::ROOT]);
        let lost = self.find_lost();
        self.mend_counts();
        self.mend_links(&lost);
        // The inodes and names become durable before the bitmap that is derived from them.
        self.medium.fence();
        self.mend_space(ledger.ok(), highest);
        self.medium.fence();
        self.name_lost(&lost)
    }

    fn place(&self, ino: Ino) -> String {
        place(&self.geometry, ino)
    }

    /// Moves inodes without names to `lost+found`, by regular transactions on the file system,
    /// which is otherwise consistent at this point.
    fn name_lost(&mut self, lost: &[Ino]) -> Result<()> {
        if lost.is_empty() {
            return Ok(());
        }
        let open = Open { clock: Clock::counted(self.now.0), ..Open::default() };
        let fs = Fs::open_any(self.medium, open)?;
        for ino in lost {
            let named = fs.lost_and_found().and_then(|dir| fs.adopt(*ino, dir));
            let place = self.place(*ino);
            self.told.tell(match named {
                Ok(()) => format!("{place} had no name: it was moved to lost+found"),
                Err(error) => format!("{place} has no name, and cannot be moved to lost+found: {error}"),
            });
        }
        fs.close()?;
        Ok(())
    }
}
