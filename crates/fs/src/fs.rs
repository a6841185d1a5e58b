//! The file system: what all operations share.

use crate::bodies::Bodies;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::extents::{self, Change, LineReader};
use crate::format::{Geometry, Superblock};
use crate::inode::{Cache, Inode, Node, Numbers, State};
use crate::journal::{Journal, Txn};
use crate::medium::Medium;
use crate::orphans::Orphans;
use crate::space::{Allocator, Want};
use crate::sync::{Mutex, RwLock};
use crate::types::{Ino, Kind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A file system on a medium.
#[derive(Debug)]
pub struct Fs<M> {
    pub(crate) medium: M,
    /// Contents of regular files, where they are not on the medium.
    pub(crate) bodies: Option<Arc<dyn Bodies>>,
    pub(crate) superblock: Superblock,
    pub(crate) geometry: Geometry,
    pub(crate) salt: u32,
    pub(crate) journal: Journal,
    pub(crate) space: Box<dyn Allocator<M>>,
    pub(crate) numbers: Numbers,
    pub(crate) cache: Cache,
    pub(crate) orphans: Mutex<Orphans>,
    /// Held for writing while something moves from one directory to another, else for reading while names change.
    pub(crate) names: RwLock<()>,
    pub(crate) clock: Clock,
    pub(crate) read_only: bool,
    /// Whether it was closed in order when it was opened: all contents that can have sums have them.
    pub(crate) was_closed: bool,
}

impl<M: Medium> Fs<M> {
    /// The medium.
    pub fn medium(&self) -> &M {
        &self.medium
    }

    /// The regions of the medium.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The label that it was made with.
    pub fn label(&self) -> String {
        self.superblock.label()
    }

    /// Numbers that inodes may have: all that are in use, and others.
    pub fn inodes(&self) -> impl Iterator<Item = Ino> + use<M> {
        (1..=self.numbers.highest()).map(Ino)
    }

    /// Its identity.
    pub fn uuid(&self) -> u128 {
        u128::from(self.superblock.uuid[0]) | u128::from(self.superblock.uuid[1]) << 64
    }

    /// Whether nothing can be changed.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Refuses changes of a file system that is open for reading.
    pub(crate) fn writable(&self) -> Result<()> {
        if self.read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }

    /// Makes a transaction durable, and what it freed available.
    pub(crate) fn commit(&self, txn: Txn) {
        if txn.is_empty() {
            return;
        }
        for run in &txn.freed {
            self.space.expect(&self.medium, *run);
        }
        for run in self.journal.commit(&self.medium, txn) {
            self.space.release(run);
        }
    }

    /// The node of an inode.
    ///
    /// # Errors
    /// There is none of this number, or it is damaged.
    pub(crate) fn node(&self, ino: Ino) -> Result<Arc<Node>> {
        let load = || {
            // Beyond it the table was never written: whatever the medium held before is there.
            if ino.0 > self.numbers.highest() {
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
            // Nobody else has the node: it is only in the cache, whose lock is held.
            if let Some(mut state) = node.state.try_write() {
                self.settle_sums(&mut state);
                self.save_times(node, &mut state);
            }
            self.space.forget_ahead(node.ino);
            true
        })
    }

    /// Puts an inode into a transaction that is committed next.
    pub(crate) fn put_inode(&self, txn: &mut Txn, node: &Node, state: &mut State) {
        state.inode.atime = crate::types::Time(node.atime.load(Ordering::Relaxed));
        node.newer_times.store(false, Ordering::Relaxed);
        let words = state.inode.encode(self.salt, node.ino);
        txn.write_changed(self.geometry.inode_at(node.ino.0), &state.saved, &words);
        state.saved = words;
    }

    /// Writes times that are in DRAM only.
    pub(crate) fn save_times(&self, node: &Node, state: &mut State) {
        if !node.newer_times.load(Ordering::Relaxed) || state.dead || self.read_only {
            return;
        }
        let mut txn = Txn::new();
        self.put_inode(&mut txn, node, state);
        self.commit(txn);
    }

    /// Reads the extents of a file, if that was not done.
    pub(crate) fn load_map(&self, ino: Ino, state: &mut State) -> Result<()> {
        if state.map.is_none() {
            let mut map = extents::load(&self.lines_of(ino), &state.inode)?;
            if !self.was_closed && self.has_sums() && state.inode.kind == Kind::File {
                // What a stop left without a sum gets one with the next sync.
                map.unsummed.add(0, u64::MAX);
            }
            state.map = Some(map);
        }
        Ok(())
    }

    /// Reads lines of extents of one file.
    pub(crate) fn lines_of(&self, ino: Ino) -> LineReader<'_, M> {
        LineReader { medium: &self.medium, geometry: &self.geometry, salt: self.salt, ino }
    }

    /// The extents of a file, to be changed. They were loaded before.
    pub(crate) fn change<'a>(&'a self, ino: Ino, state: &'a mut State) -> Change<'a, M> {
        let map = state.map.get_or_insert_with(extents::Map::empty);
        Change::new(self.lines_of(ino), map, &mut state.inode)
    }

    /// Makes room for two more places of extents.
    ///
    /// # Errors
    /// No block is free.
    pub(crate) fn make_room(&self, change: &mut Change<'_, M>, txn: &mut Txn) -> Result<()> {
        while !change.has_room(2) {
            let block = self.space.reserve(&self.medium, Want::blocks(1))?;
            change.make_room(txn, block)?;
        }
        Ok(())
    }
}
