//! FUSE passthrough: the kernel reads, writes and maps the contents of files itself. The contents
//! are in separate files, which are registered when a file is opened.
//!
//! All users of an inode have it open in the same way, which the first one determines: the kernel
//! refuses to mix passthrough with its page cache, and a second backing file of an inode. It does
//! not report writes through memory maps, so attributes of inodes that were ever opened for writing
//! are not cached.

use super::setup;
use super::unreported::UnreportedChanges;
use frit_fs::{Attr, FileSystem, Ino, InodeType};
use frit_fuse::{BackingId, Kernel, KernelConfig};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// State of passthrough.
#[derive(Debug)]
pub(super) struct Passthrough {
    /// Passthrough is requested.
    wanted: bool,
    /// The kernel gathers writes.
    writeback: bool,
    /// Passthrough is active; determined at mounting.
    on: OnceLock<bool>,
    /// Reason why passthrough is not active although requested.
    inactive_reason: Arc<OnceLock<&'static str>>,
    open: Mutex<HashMap<Ino, OpenInode>>,
    /// Inodes that were opened for writing since mounting.
    unreported: Arc<UnreportedChanges>,
    /// Connection for invalidation of cached attributes.
    kernel: Arc<OnceLock<Kernel>>,
}

/// An open inode.
#[derive(Debug)]
struct OpenInode {
    users: u64,
    /// Backing file as registered with the kernel. `None`: contents are transferred by requests.
    backing: Option<Arc<BackingId>>,
}

impl Passthrough {
    pub(super) fn new(wanted: bool, writeback: bool, unreported: Arc<UnreportedChanges>) -> Passthrough {
        Passthrough {
            wanted,
            writeback,
            on: OnceLock::new(),
            inactive_reason: Arc::default(),
            open: Mutex::default(),
            unreported,
            kernel: Arc::default(),
        }
    }

    /// Requests passthrough from the kernel, if it is wanted.
    pub(super) fn negotiate(&self, config: &mut KernelConfig) {
        if !self.wanted {
            return;
        }
        let why = match missing_right() {
            None if setup::negotiate_passthrough(config) => {
                let _ = self.on.set(true);
                return;
            }
            None => "it requires Linux 6.9 with CONFIG_FUSE_PASSTHROUGH",
            Some(why) => why,
        };
        let _ = self.inactive_reason.set(why);
    }

    pub(super) fn is_on(&self) -> bool {
        self.on.get() == Some(&true)
    }

    /// Returns the cell with the reason why passthrough is not active. It is filled at mounting.
    pub(super) fn inactive_reason(&self) -> Arc<OnceLock<&'static str>> {
        Arc::clone(&self.inactive_reason)
    }

    /// Returns the cell for the kernel's side of the connection, to be filled when it exists.
    pub(super) fn kernel(&self) -> Arc<OnceLock<Kernel>> {
        Arc::clone(&self.kernel)
    }

    /// Adds a user to a pinned inode. Returns the kernel's ID of the backing file if passthrough is
    /// used for this inode.
    pub(super) fn open<F: FileSystem>(&self, files: &F, ino: Ino, writes: bool) -> Option<Arc<BackingId>> {
        if !self.is_on() {
            return None;
        }
        let backing = {
            let mut open = self.open.lock();
            let opened = open.entry(ino).or_insert_with(|| {
                // If registration fails, for example for lack of descriptors, contents are
                // transferred by requests.
                let kernel = self.kernel.get();
                let register = |content_file| kernel?.open_backing(content_file).ok();
                let backing = files.content_file(ino).and_then(register);
                OpenInode { users: 0, backing: backing.map(Arc::new) }
            });
            opened.users += 1;
            opened.backing.clone()
        };
        if writes && backing.is_some() && self.unreported.mark(ino) {
            // The kernel's cached attributes must no longer be used. An error means that it has
            // none.
            let _ = self.kernel.get().map(|kernel| kernel.inval_inode(ino.0, -1, 0));
        }
        backing
    }

    /// Removes a user of an inode.
    pub(super) fn release(&self, ino: Ino) {
        if !self.is_on() {
            return;
        }
        let mut open = self.open.lock();
        let Some(opened) = open.get_mut(&ino) else { return };
        opened.users -= 1;
        if opened.users == 0 {
            let last = open.remove(&ino);
            drop(open);
            // This closes the registration with the kernel, outside the lock.
            drop(last);
        }
    }

    /// Returns `true` if the contents of an inode may change without a request. Its attributes are sent to the
    /// kernel next.
    pub(super) fn changes_unreported(&self, attr: &Attr) -> bool {
        // A file without a block may get one in the kernel's cache as soon as it is opened.
        if self.writeback && attr.kind == InodeType::File && attr.sectors == 0 {
            return true;
        }
        let is_marked = self.unreported.contains(attr.ino);
        if is_marked {
            self.unreported.report(attr);
        }
        is_marked
    }
}

/// Returns the reason why this process may not register backing files, or `None` if it may.
fn missing_right() -> Option<&'static str> {
    use rustix::thread::{CapabilitySet, capabilities};

    let held = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    (!held.contains(CapabilitySet::SYS_ADMIN)).then_some("it requires CAP_SYS_ADMIN")
}
