//! Files that the kernel reads, writes and maps itself (FUSE passthrough): their contents are in files of their own,
//! which it is told of when they are opened.
//!
//! All users of an inode have it in the same way, which the first one decides: the kernel refuses to mix it with its
//! own page cache, and a second backing file of an inode. It tells nobody of writes through maps, so attributes of
//! inodes that were ever opened for writing are not kept by it.

use super::reply::TTL;
use super::setup;
use frit_fs::{Attr, Files, Ino};
use fuser::{BackingId, INodeNo, KernelConfig, Notifier};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// What the kernel reads and writes itself.
#[derive(Debug, Default)]
pub(super) struct Passthrough {
    /// Whether it is to do so.
    wanted: bool,
    /// Whether it does; told when it is mounted.
    on: bool,
    /// Why it does not although it is to.
    without: Arc<OnceLock<&'static str>>,
    open: Mutex<HashMap<Ino, Opened>>,
    /// Inodes that were opened for writing since it was mounted: a bit each.
    written: Box<[AtomicU64]>,
    /// Where the kernel is told to forget attributes.
    notifier: Arc<OnceLock<Notifier>>,
}

/// An inode that is open.
#[derive(Debug)]
struct Opened {
    users: u64,
    /// The kernel's name of its contents; without, they come through requests.
    backing: Option<Arc<BackingId>>,
}

impl Passthrough {
    pub(super) fn new(wanted: bool) -> Passthrough {
        Passthrough { wanted, ..Passthrough::default() }
    }

    /// Asks the kernel for it, where it is wanted.
    pub(super) fn ask<F: Files>(&mut self, config: &mut KernelConfig, files: &F) {
        if !self.wanted {
            return;
        }
        let why = match refused() {
            None if setup::ask_passthrough(config) => return self.enable(files),
            None => "it takes Linux 6.9 with CONFIG_FUSE_PASSTHROUGH",
            Some(why) => why,
        };
        let _ = self.without.set(why);
    }

    /// The kernel can do it, and this process has the right to.
    fn enable<F: Files>(&mut self, files: &F) {
        let inodes = files.usage().map_or(0, |usage| usage.inodes);
        self.written = (0..=inodes / 64).map(|_| AtomicU64::new(0)).collect();
        self.on = true;
    }

    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// Where it is said, once it is mounted, why the kernel does not do it.
    pub(super) fn without(&self) -> Arc<OnceLock<&'static str>> {
        Arc::clone(&self.without)
    }

    /// Where the notifier is to be put when there is a connection.
    pub(super) fn notifier(&self) -> Arc<OnceLock<Notifier>> {
        Arc::clone(&self.notifier)
    }

    /// An inode that is pinned gets one more user. How the kernel calls its contents if it reads and writes them
    /// itself; `register` names them.
    pub(super) fn open<F: Files>(
        &self,
        files: &F,
        ino: Ino,
        writes: bool,
        register: impl FnOnce(&OwnedFd) -> io::Result<BackingId>,
    ) -> Option<Arc<BackingId>> {
        if !self.on {
            return None;
        }
        let backing = {
            let mut open = self.open.lock();
            let opened = open.entry(ino).or_insert_with(|| {
                // What cannot be registered, for want of descriptors for example, takes the way through requests.
                let backing = files.body(ino).and_then(|body| register(&body).ok());
                Opened { users: 0, backing: backing.map(Arc::new) }
            });
            opened.users += 1;
            opened.backing.clone()
        };
        if writes && backing.is_some() && self.mark(ino) {
            // What it keeps of the inode is from before. It may well know nothing of it.
            let _ = self.notifier.get().map(|kernel| kernel.inval_inode(INodeNo(ino.0), -1, 0));
        }
        backing
    }

    /// A user less.
    pub(super) fn release(&self, ino: Ino) {
        if !self.on {
            return;
        }
        let mut open = self.open.lock();
        let Some(opened) = open.get_mut(&ino) else { return };
        opened.users -= 1;
        if opened.users == 0 {
            let last = open.remove(&ino);
            drop(open);
            // The kernel is asked to forget it.
            drop(last);
        }
    }

    /// Notes that an inode is written; whether that is new.
    fn mark(&self, ino: Ino) -> bool {
        let bit = 1 << (ino.0 % 64);
        self.written
            .get((ino.0 / 64) as usize)
            .is_some_and(|word| word.fetch_or(bit, Ordering::Relaxed) & bit == 0)
    }

    /// How long the kernel may believe attributes.
    pub(super) fn ttl(&self, attr: &Attr) -> Duration {
        let ino = attr.ino.0;
        let changes = self.written.get((ino / 64) as usize);
        let changes = changes.is_some_and(|word| word.load(Ordering::Relaxed) >> (ino % 64) & 1 == 1);
        if changes { Duration::ZERO } else { TTL }
    }
}

/// Why this process may not tell the kernel of backing files, in words; nothing where it may.
fn refused() -> Option<&'static str> {
    use rustix::thread::{CapabilitySet, capabilities};

    let held = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    (!held.contains(CapabilitySet::SYS_ADMIN)).then_some("it takes CAP_SYS_ADMIN")
}
