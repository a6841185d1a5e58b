//! An inode in DRAM, and the order of locks.
//!
//! Who takes several locks takes them in this order: the lock of names (for writing to move between directories, else
//! for reading), directories from the root downwards, other inodes by number, then those of the orphans, of numbers,
//! of the allocator and of the journal, which are held for short and never together but for the orphans' outermost.

use super::raw::{Inode, WORDS};
use crate::bodies::Body;
use crate::dir::Index;
use crate::error::{Error, Result};
use crate::extents::Map;
use crate::sync::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, RwLock, RwLockWriteGuard};
use crate::types::{Attr, Ino, Kind, Time};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An inode that is in use.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) ino: Ino,
    /// What changes with it.
    pub(crate) state: RwLock<State>,
    /// How often it is held open.
    pub(crate) pins: AtomicU32,
    /// Of a directory: the one it is in, to be read without its lock.
    pub(crate) parent: AtomicU64,
    /// The last access, which readers move on under a shared lock.
    pub(crate) atime: AtomicI64,
    /// Whether times here are newer than those on the medium.
    pub(crate) newer_times: AtomicBool,
    /// Whether it was used since the cache last looked for one to drop.
    pub(crate) used: AtomicBool,
}

/// A node locked for writing.
pub(crate) type Guard<'a> = RwLockWriteGuard<'a, State>;

/// What is known of an inode.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) inode: Inode,
    /// The words that are on the medium.
    pub(crate) saved: [u64; WORDS],
    /// Where its blocks are, once that was read.
    pub(crate) map: Option<Map>,
    /// Of a directory: where its names are, once that was read.
    pub(crate) index: Option<Box<Index>>,
    /// Its contents where they are outside of the medium, while it is pinned.
    pub(crate) body: Option<Arc<dyn Body>>,
    /// Its place among the orphans.
    pub(crate) orphan: Option<u32>,
    /// Whether it is free again: who still holds the node must not use it.
    pub(crate) dead: bool,
}

/// How old an access time may become before a read moves it on although nothing changed: a day, as `relatime` of
/// Linux has it.
const ATIME_AGE: i64 = 24 * 3600 * 1_000_000_000;

impl Node {
    pub(crate) fn new(ino: Ino, inode: Inode, saved: [u64; WORDS]) -> Self {
        let atime = AtomicI64::new(inode.atime.0);
        let parent = AtomicU64::new(inode.parent.0);
        let state = State { inode, saved, map: None, index: None, body: None, orphan: None, dead: false };
        Self {
            ino,
            state: RwLock::new(state),
            pins: AtomicU32::new(0),
            parent,
            atime,
            newer_times: AtomicBool::new(false),
            used: AtomicBool::new(true),
        }
    }

    /// What stat(2) says.
    pub(crate) fn attr(&self, state: &State) -> Attr {
        state.inode.attr(self.ino, Time(self.atime.load(Ordering::Relaxed)))
    }

    /// A read happened: as `relatime` has it.
    #[inline]
    pub(crate) fn accessed(&self, state: &State, now: Time) {
        let atime = self.atime.load(Ordering::Relaxed);
        let changed = state.inode.mtime.max(state.inode.ctime).0;
        if (atime <= changed && atime != now.0) || now.0.saturating_sub(atime) >= ATIME_AGE {
            self.set_atime(now);
        }
    }

    pub(crate) fn set_atime(&self, to: Time) {
        self.atime.store(to.0, Ordering::Relaxed);
        self.newer_times.store(true, Ordering::Relaxed);
    }

    /// A directory moves, and its node is locked: it is in another one now.
    pub(crate) fn move_to(&self, state: &mut State, parent: Ino) {
        state.inode.parent = parent;
        self.parent.store(parent.0, Ordering::Relaxed);
    }

    /// Whether anybody holds it open.
    pub(crate) fn pinned(&self) -> bool {
        self.pins.load(Ordering::Acquire) > 0
    }
}

impl State {
    /// Refuses what was freed.
    pub(crate) fn alive(&self) -> Result<()> {
        if self.dead { Err(Error::Stale) } else { Ok(()) }
    }

    /// Refuses what is no directory, or one that was removed.
    pub(crate) fn directory(&self) -> Result<()> {
        self.alive()?;
        if self.inode.kind != Kind::Directory {
            return Err(Error::NotDirectory);
        }
        if self.inode.links == 0 { Err(Error::NotFound) } else { Ok(()) }
    }

    /// Refuses what has no bytes to read or write.
    pub(crate) fn file(&self) -> Result<()> {
        self.alive()?;
        match self.inode.kind {
            Kind::File => Ok(()),
            Kind::Directory => Err(Error::IsDirectory),
            _ => Err(Error::Invalid("not a regular file")),
        }
    }
}
