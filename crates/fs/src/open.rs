//! Making, opening and closing a file system.

use crate::bodies::{Bodies, match_bodies};
use crate::clock::Clock;
use crate::contents::resize::After;
use crate::error::{Error, Result};
use crate::format::{BLOCK, Geometry, LINE_BLOCKS, Superblock, fresh_uuid, present, write_words};
use crate::fs::Fs;
use crate::inode::{Cache, Inode, Numbers};
use crate::journal::{Journal, Txn, replay};
use crate::ledger::Ledger;
use crate::medium::Medium;
use crate::orphans::Orphans;
use crate::space::{Bitmap, line};
use crate::sync::{Mutex, RwLock};
use crate::types::{Ino, Kind};
use frit_core::planted::{Bug, is};
use std::sync::Arc;

/// Fewest words of the list of orphans.
const ORPHANS_MIN: u64 = 4;

/// How a file system is made.
#[derive(Debug)]
pub struct Format {
    /// Inodes that there can be; `None`: one for each 16 KiB.
    pub inodes: Option<u64>,
    /// A name for people, at most 32 bytes.
    pub label: String,
    /// Whether what the medium holds may be lost.
    pub force: bool,
    /// Who owns the root directory, and its permissions.
    pub root: (u32, u32, u16),
    /// Its identity; `None`: a random one.
    pub uuid: Option<u128>,
    /// Where its times come from.
    pub clock: Clock,
    /// Inodes that the list of orphans names at most, 4 or more; `None`: as the size of the medium has it. More are
    /// found in the inode table by a start that looks at all of it.
    pub orphans: Option<u64>,
    /// Contents have checksums, a word a block: 0.2 % of the medium.
    pub sums: bool,
    /// Where contents of regular files are; `None`: on the medium. The file system gets their identity, and they are
    /// emptied.
    pub bodies: Option<Arc<dyn Bodies>>,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            inodes: None,
            label: String::new(),
            force: false,
            root: (0, 0, 0o755),
            uuid: None,
            clock: Clock::Wall,
            orphans: None,
            sums: false,
            bodies: None,
        }
    }
}

/// How a file system is opened.
#[derive(Debug)]
pub struct Open {
    /// Nothing may be changed, but for what a stop left half done.
    pub read_only: bool,
    /// Where its times come from.
    pub clock: Clock,
    /// Inodes that are kept in DRAM although nobody uses them, about 700 bytes each without extents and names.
    pub nodes: usize,
    /// Where contents of regular files are; `None`: on the medium.
    pub bodies: Option<Arc<dyn Bodies>>,
}

impl Default for Open {
    fn default() -> Self {
        Self { read_only: false, clock: Clock::Wall, nodes: 64 << 10, bodies: None }
    }
}

impl<M: Medium> Fs<M> {
    /// Makes an empty file system on a medium and opens it.
    ///
    /// # Errors
    /// The medium holds something and `force` is not set, is too small or too large, or has no room for so many
    /// inodes.
    pub fn format(medium: M, options: Format) -> Result<Self> {
        let mut geometry = Geometry::divide_for(medium.bytes(), options.inodes, options.sums)?;
        geometry.orphans = options.orphans.unwrap_or(geometry.orphans).clamp(ORPHANS_MIN, geometry.orphans);
        if options.sums && options.bodies.is_some() {
            return Err(Error::Image("checksums are of contents on the medium: a pool has none".into()));
        }
        if options.label.len() > 32 {
            return Err(Error::Image(format!("the label `{}` has more than 32 bytes", options.label)));
        }
        if !options.force {
            refuse_used(&medium)?;
        }
        let uuid = options.bodies.as_ref().map(|bodies| bodies.uuid()).or(options.uuid);
        let uuid = uuid.map_or_else(fresh_uuid, |id| [id as u64, (id >> 64) as u64]);
        let outside = options.bodies.is_some();
        let mut label = [0; 32];
        label[..options.label.len()].copy_from_slice(options.label.as_bytes());
        let superblock = Superblock { geometry, uuid, label, created: options.clock.now(), outside };
        // Until the superblocks are written there is no file system: one that was here is gone first.
        medium.zero(Geometry::SUPERBLOCK_AT, BLOCK);
        medium.zero(geometry.copy_at(), BLOCK);
        medium.fence();
        if let Some(bodies) = &options.bodies {
            // Generations begin anew: nothing of what was here may be found by one.
            bodies.all()?.into_iter().try_for_each(|of| bodies.remove(of))?;
        }
        let salt = superblock.salt();
        medium.zero(Geometry::REGISTERS_AT, geometry.journal_at - Geometry::REGISTERS_AT);
        for slot in 0..geometry.slots {
            medium.zero(geometry.journal_at + slot * geometry.slot_bytes, 64);
        }
        for number in 0..geometry.lines {
            line::write(&medium, &geometry, salt, number, &[0; line::WORDS]);
        }
        if geometry.has_sums() {
            medium.zero(geometry.sums_at, geometry.data_blocks * 8);
        }
        let ledger = Ledger { inodes: 1, highest: 1, made: 1, closed: true, ..Ledger::default() };
        ledger.write(&medium, &geometry, salt);
        let (uid, gid, mode) = options.root;
        let mut root = Inode::new(Kind::Directory, mode, (uid, gid), 0, superblock.created);
        root.parent = Ino::ROOT;
        write_words(&medium, geometry.inode_at(1), &root.encode(salt, Ino::ROOT));
        medium.fence();
        superblock.write(&medium);
        medium.sync()?;
        Self::open(medium, Open { clock: options.clock, bodies: options.bodies, ..Open::default() })
    }

    /// Opens a file system and completes what a stop cut off.
    ///
    /// # Errors
    /// There is none on the medium, or it is damaged beyond what a start can mend.
    /// Contents outside of the medium are missing, or belong to another one.
    pub fn open(medium: M, options: Open) -> Result<Self> {
        match_bodies(&Superblock::read(&medium)?, options.bodies.as_deref())?;
        Self::open_any(medium, options)
    }

    /// Opens a file system of which contents may be missing: for who does not look at them.
    pub(crate) fn open_any(medium: M, options: Open) -> Result<Self> {
        let superblock = Superblock::read(&medium)?;
        let (geometry, salt) = (superblock.geometry, superblock.salt());
        if Superblock::read_at(&medium, Geometry::SUPERBLOCK_AT).as_ref() != Ok(&superblock) {
            superblock.write(&medium);
        }
        let replayed = replay(&medium, &geometry, salt)?;
        let ledger = Ledger::read(&medium, &geometry, salt)?;
        let (orphans, found) = Orphans::read(&medium, &geometry);
        let fs = Self {
            superblock,
            geometry,
            salt,
            journal: Journal::new(geometry, salt, replayed.next, ledger),
            space: Box::new(Bitmap::new(geometry, salt, ledger.blocks)),
            numbers: Numbers::new(geometry, ledger.highest),
            cache: Cache::new(options.nodes),
            orphans: Mutex::new(orphans),
            names: RwLock::new(()),
            clock: options.clock,
            read_only: options.read_only,
            was_closed: ledger.closed,
            bodies: options.bodies,
            medium,
        };
        if !fs.read_only {
            let mut txn = Txn::new();
            txn.counts.closed = Some(false);
            fs.commit(txn);
        }
        for (slot, ino) in found.into_iter().filter(|_| !is(Bug::FsOrphansForgotten)) {
            match fs.settle(slot, ino) {
                // It stays on the list, for a check to find; everything else can be used.
                Err(Error::Damaged { .. }) => {}
                settled => settled?,
            }
        }
        if fs.orphans.lock().has_more() && !is(Bug::FsMoreOrphansForgotten) {
            fs.settle_more()?;
        }
        if !fs.read_only && !ledger.closed {
            fs.sweep()?;
        }
        Ok(fs)
    }

    /// Frees the orphans that the list had no room for: all inodes without links.
    fn settle_more(&self) -> Result<()> {
        for ino in self.inodes() {
            // One that is damaged stays, for a check to find.
            let Ok(Some(inode)) = Inode::read(&self.medium, &self.geometry, self.salt, ino) else { continue };
            if inode.links == 0 {
                let node = self.node(ino)?;
                let mut state = node.state.write();
                match self.cut(&node, &mut state, Txn::new(), 0, After::Free) {
                    Err(Error::Damaged { .. }) => {}
                    freed => freed?,
                }
            }
        }
        self.forget_more();
        Ok(())
    }

    /// No inode is without links but those on the list.
    fn forget_more(&self) {
        let mut orphans = self.orphans.lock();
        let mut txn = Txn::new();
        if let Some(slot) = orphans.say_all(&mut txn) {
            self.commit(txn);
            orphans.give(slot);
        }
    }

    /// Frees an orphan that nobody can have open any more, or goes on cutting it.
    fn settle(&self, slot: u32, ino: Ino) -> Result<()> {
        let node = match self.node(ino) {
            Ok(node) => node,
            Err(Error::Stale) => {
                let mut txn = Txn::new();
                self.orphans.lock().remove(&mut txn, slot);
                self.commit(txn);
                self.orphans.lock().give(slot);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let mut state = node.state.write();
        state.orphan = Some(slot);
        if state.inode.links == 0 {
            return self.cut(&node, &mut state, Txn::new(), 0, After::Free);
        }
        let from = crate::contents::block_from(state.inode.size);
        self.cut(&node, &mut state, Txn::new(), from, After::Keep)
    }

    /// Writes the times that are in DRAM only, and the sums of contents that have none.
    pub(crate) fn save_all(&self) {
        for node in self.cache.all() {
            if self.has_sums() {
                self.settle_sums(&mut node.state.write());
            }
            if node.newer_times.load(std::sync::atomic::Ordering::Relaxed) {
                self.save_times(&node, &mut node.state.write());
            }
        }
    }

    /// Makes everything outlive the machine.
    ///
    /// # Errors
    /// What the operating system says of the medium's file.
    pub fn sync_all(&self) -> Result<()> {
        self.save_all();
        self.medium.fence();
        if let Some(bodies) = &self.bodies {
            bodies.sync()?;
        }
        self.medium.sync()
    }

    /// Closes the file system in order; the medium is left. Without it nothing is lost but the times of reads, of
    /// listings and of overwrites since the last sync.
    ///
    /// # Errors
    /// As [`Fs::sync_all`].
    pub fn close(self) -> Result<M> {
        self.save_all();
        // Files that were unlinked while they were open are free now.
        let mut all_freed = true;
        for node in self.cache.all() {
            let mut state = node.state.write();
            if state.inode.links == 0 && !state.dead && !self.read_only {
                node.pins.store(0, std::sync::atomic::Ordering::Release);
                match self.cut(&node, &mut state, Txn::new(), 0, After::Free) {
                    Err(Error::Damaged { .. }) => all_freed = false,
                    freed => freed?,
                }
            }
        }
        if all_freed && !self.read_only {
            self.forget_more();
        }
        if let Some(bodies) = self.bodies.as_ref().filter(|_| !self.read_only) {
            bodies.sync()?;
        }
        if !self.read_only {
            let mut txn = Txn::new();
            txn.counts.closed = Some(true);
            self.commit(txn);
        }
        self.medium.fence();
        self.medium.sync()?;
        Ok(self.medium)
    }
}

/// Refuses a medium that holds anything.
fn refuse_used<M: Medium>(medium: &M) -> Result<()> {
    if present(medium) {
        return Err(Error::Image(
            "it holds a frit file system already; --force makes a new one over it".into(),
        ));
    }
    let mut first = [0; BLOCK as usize];
    for at in [0, BLOCK] {
        medium.read(at, &mut first);
        if first.iter().any(|byte| *byte != 0) {
            return Err(Error::Image(
                "it holds something already; --force makes a file system over it".into(),
            ));
        }
    }
    Ok(())
}

const _: () = assert!(LINE_BLOCKS == line::WORDS as u64 * 64);
