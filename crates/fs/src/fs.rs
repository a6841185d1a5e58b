//! The state of an open file system, which all operations share.

use crate::clock::Clock;
use crate::content_store::ContentStore;
use crate::direct::Leases;
use crate::error::{Error, Result};
use crate::extents::{self, ExtentChange, LineReader};
use crate::format::{Geometry, Superblock};
use crate::inode::{Inode, InodeAllocator, Node, NodeCache, NodeState};
use crate::journal::{Journal, Txn};
use crate::medium::Medium;
use crate::nameless::PlacedContents;
use crate::orphans::Orphans;
use crate::registers::RegisterAllocator;
use crate::removed::RemovedInodes;
use crate::space::{AllocRequest, Allocator};
use crate::sync::{Mutex, RwLock};
use crate::types::{Ino, InodeType};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// An open file system on a medium.
#[derive(Debug)]
pub struct Fs<M> {
    pub(crate) medium: M,
    /// Store of the contents of regular files; `None` if contents are on the medium.
    pub(crate) content_store: Option<Arc<dyn ContentStore>>,
    /// Contents of regular files on a nameless-write device; `None` if they are elsewhere.
    pub(crate) placed: Option<Arc<PlacedContents>>,
    pub(crate) superblock: Superblock,
    pub(crate) geometry: Geometry,
    pub(crate) salt: u32,
    pub(crate) journal: Journal,
    pub(crate) space: Box<dyn Allocator<M>>,
    pub(crate) inode_allocator: InodeAllocator,
    pub(crate) cache: NodeCache,
    pub(crate) orphans: Mutex<Orphans>,
    pub(crate) removed: RemovedInodes,
    pub(crate) registers: RegisterAllocator,
    /// Leases of programs with direct access, created with the first one.
    pub(crate) leases: OnceLock<Leases>,
    /// Held while the leases are created.
    pub(crate) leases_creation: Mutex<()>,
    /// Exclusive while an inode moves from one directory to another, shared while names change in
    /// one.
    pub(crate) names: RwLock<()>,
    pub(crate) clock: Clock,
    pub(crate) read_only: bool,
    /// `true` if the file system had been closed cleanly before this open: all blocks of contents
    /// that can have a checksum have one.
    pub(crate) was_closed: bool,
}

impl<M: Medium> Fs<M> {
    /// The medium.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// The contents of files on a nameless-write device, if they are on one.
    pub fn placed_contents(&self) -> Option<&Arc<PlacedContents>> {
        self.placed.as_ref()
    }

    /// The regions of the medium.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The label given at format time.
    pub fn label(&self) -> String {
        self.superblock.label()
    }

    /// All inode numbers up to the highest one ever used; some of them may be free.
    pub fn inodes(&self) -> impl Iterator<Item = Ino> + use<M> {
        (1..=self.inode_allocator.highest()).map(Ino)
    }

    /// The UUID of the file system.
    pub fn uuid(&self) -> u128 {
        u128::from(self.superblock.uuid[0]) | u128::from(self.superblock.uuid[1]) << 64
    }

    /// Returns `true` if the file system is open read-only.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Fails with [`Error::ReadOnly`] if the file system is open read-only.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }

    /// Makes a transaction durable and then releases the blocks that it freed.
    pub(crate) fn commit(&self, mut txn: Txn) {
        if txn.is_empty() {
            return;
        }
        let unplaced = std::mem::take(&mut txn.unplaced);
        let _no_snapshot = self.placed.as_ref().map(|placed| placed.snapshot.read());
        for (ino, run) in unplaced {
            if let Some(placed) = &self.placed {
                placed.hold(ino, run);
            }
        }
        for run in &txn.freed {
            self.space.prepare_release(&self.medium, *run);
        }
        for run in self.journal.commit(&self.medium, txn) {
            self.space.release(run);
        }
    }

    /// Returns the node of an inode, from the cache or read from the inode table.
    ///
    /// # Errors
    /// The inode is free or damaged.
    pub(crate) fn node(&self, ino: Ino) -> Result<Arc<Node>> {
        let load = || {
            // The inode table is initialized only up to the highest number in use. Entries beyond
            // it may contain data from an earlier use of the medium.
            if ino.0 > self.inode_allocator.highest() {
                return Err(Error::Stale);
            }
            let inode = Inode::read(&self.medium, &self.geometry, self.salt, ino)?;
            let inode = inode.ok_or_else(|| match ino {
                Ino::ROOT => Error::Damaged {
                    what: "the root directory, whose inode is free",
                    at: self.geometry.inode_at(ino.0),
                },
                _ => Error::Stale,
            })?;
            let saved = inode.encode(self.salt, ino);
            Ok(Node::new(ino, inode, saved))
        };
        self.cache.get(ino, load, |node| {
            // No other thread can hold the node: it is referenced by the cache alone, whose lock is
            // held.
            if let Some(mut state) = node.state.try_write() {
                self.write_missing_checksums(&mut state);
                self.save_times(node, &mut state);
            }
            self.space.drop_reservation(node.ino);
            true
        })
    }

    /// Adds the inode to a transaction, which the caller commits next.
    pub(crate) fn put_inode(&self, txn: &mut Txn, node: &Node, state: &mut NodeState) {
        state.inode.atime = crate::types::Time(node.atime.load(Ordering::Relaxed));
        node.newer_times.store(false, Ordering::Relaxed);
        let words = state.inode.encode(self.salt, node.ino);
        txn.write_changed(self.geometry.inode_at(node.ino.0), &state.saved, &words);
        state.saved = words;
    }

    /// Writes timestamps that are held in DRAM only.
    pub(crate) fn save_times(&self, node: &Node, state: &mut NodeState) {
        self.note_accesses(node, state);
        if !node.newer_times.load(Ordering::Relaxed) || state.dead || self.read_only {
            return;
        }
        let mut txn = Txn::new();
        self.put_inode(&mut txn, node, state);
        self.commit(txn);
    }

    /// Loads the extents of a file, if they are not in DRAM yet.
    pub(crate) fn load_map(&self, ino: Ino, state: &mut NodeState) -> Result<()> {
        if state.map.is_none() {
            let mut map = extents::load(&self.lines_of(ino), &state.inode)?;
            if !self.was_closed && self.has_sums() && state.inode.kind == InodeType::File {
                // A crash leaves blocks without a checksum. The next sync computes one for each.
                map.unsummed.add(0, u64::MAX);
            }
            state.map = Some(map);
        }
        Ok(())
    }

    /// Returns a reader for the extent lines of one file.
    pub(crate) fn lines_of(&self, ino: Ino) -> LineReader<'_, M> {
        LineReader { medium: &self.medium, geometry: &self.geometry, salt: self.salt, ino }
    }

    /// Returns the extents of a file for modification. The caller has loaded them.
    pub(crate) fn change<'a>(&'a self, ino: Ino, state: &'a mut NodeState) -> ExtentChange<'a, M> {
        let map = state.map.get_or_insert_with(extents::ExtentMap::empty);
        ExtentChange::new(self.lines_of(ino), map, &mut state.inode)
    }

    /// Ensures that the file has two free extent slots, and adds an extent block if it does not.
    ///
    /// # Errors
    /// No block is free.
    pub(crate) fn ensure_free_slots(&self, change: &mut ExtentChange<'_, M>, txn: &mut Txn) -> Result<()> {
        while !change.has_free_slots(2) {
            let block = self.reserve_blocks(AllocRequest::blocks(1))?;
            change.add_extent_block(txn, block)?;
        }
        Ok(())
    }
}
