//! `fsck --repair`: mending what a check finds, and saying so. Data are never made up: what cannot be told apart from
//! damage goes, and what only lost its name gets one in `lost+found`.
//!
//! The journal is carried out and emptied first: what is mended in place must not be undone by the next start. A
//! repair that is cut off is begun again, by another repair.

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

/// How often everything is gone through: once is enough unless blocks that became free in it were needed for
/// `lost+found`.
const ROUNDS: usize = 3;

/// What was done, for people.
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

/// One round of a repair.
struct Mender<'a, M> {
    medium: &'a M,
    geometry: Geometry,
    salt: u32,
    /// The time of what is made.
    now: Time,
    told: &'a mut Told,
    /// Blocks that belong to an inode which is kept.
    blocks: Blocks,
    inodes: Inodes,
    /// The highest generation of an inode.
    generation: u32,
}

/// Mends a file system that nobody has open, and checks it again: what the report finds is what is left.
///
/// # Errors
/// There is none on the medium, or neither of its superblocks can be read; what the system says to a sync.
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
        carry_out_last(medium, &geometry, salt);
        told.tell(format_args!("{error}: the last one was carried out, and the journal emptied"));
        forget(medium, &geometry);
    }
    let mut report = check(medium)?;
    for _ in 0..ROUNDS {
        if report.is_clean() {
            break;
        }
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
        let highest = highest(self.medium, &self.geometry, self.salt).max(known);
        self.mend_inodes(highest);
        self.mend_root();
        self.mend_orphans();
        self.mend_names(vec![Ino::ROOT]);
        let lost = self.find_lost();
        self.mend_counts();
        self.mend_links(&lost);
        self.medium.fence();
        self.mend_space(ledger.ok(), highest);
        self.medium.fence();
        self.name_lost(&lost)
    }

    fn place(&self, ino: Ino) -> String {
        place(&self.geometry, ino)
    }

    /// Gives names to those without, by transactions of the file system, which is in order but for them.
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
                Ok(()) => format!("{place} had no name, and is in lost+found now"),
                Err(error) => format!("{place} has no name, and cannot get one in lost+found: {error}"),
            });
        }
        fs.close()?;
        Ok(())
    }
}
