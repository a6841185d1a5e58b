//! Names for inodes that have lost theirs, for repair.

use super::create::update_dir;
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::journal::Txn;
use crate::medium::Medium;
use crate::types::{Caller, Ino, InodeType, NewInode};

/// Name of the directory for such inodes.
const PLACE: &str = "lost+found";
/// Maximum number of names to try if earlier ones are taken.
const TRIED: u32 = 100;

impl<M: Medium> Fs<M> {
    /// Returns the directory for inodes without names, which is created if necessary.
    ///
    /// # Errors
    /// No space or no inode is left for it.
    pub(crate) fn lost_and_found(&self) -> Result<Ino> {
        self.first_free(PLACE, |name| {
            match self.create_in(&Caller::ROOT, Ino::ROOT, name, NewInode::directory(0o700)) {
                Err(Error::Exists) => {
                    let existing = self.lookup_attr(&Caller::ROOT, Ino::ROOT, name)?;
                    if existing.kind == InodeType::Directory { Ok(existing.ino) } else { Err(Error::Exists) }
                }
                made => made.map(|attr| attr.ino),
            }
        })
    }

    /// Adds a name to an inode without names in `dir`, derived from its number. Its link count is
    /// already correct.
    ///
    /// # Errors
    /// No space is left for the name.
    pub(crate) fn adopt(&self, ino: Ino, dir: Ino) -> Result<()> {
        self.first_free(&format!("#{}", ino.0), |name| self.adopt_as(ino, dir, name))
    }

    fn first_free<T>(&self, name: &str, mut with: impl FnMut(&[u8]) -> Result<T>) -> Result<T> {
        for i in 1..TRIED {
            let name = if i == 1 { name.to_string() } else { format!("{name}.{i}") };
            match with(name.as_bytes()) {
                Err(Error::Exists) => {}
                done => return done,
            }
        }
        Err(Error::Exists)
    }

    fn adopt_as(&self, ino: Ino, dir: Ino, name: &[u8]) -> Result<()> {
        let node = self.node(ino)?;
        let parent = self.node(dir)?;
        let mut dir = parent.state.write();
        self.load_index(&parent, &mut dir)?;
        self.check_may_create(&Caller::ROOT, &dir, name)?;
        let mut state = node.state.write();
        let mut txn = Txn::new();
        let slot = self.place(&parent, &mut dir, &mut txn, name)?;
        self.put_name(&parent, &dir, &mut txn, slot, name, (ino, state.inode.kind));
        update_dir(&mut dir, self.clock.now(), 1);
        if state.inode.kind == InodeType::Directory {
            dir.inode.links = dir.inode.links.saturating_add(1);
            node.set_parent(&mut state, parent.ino);
        }
        self.put_inode(&mut txn, &parent, &mut dir);
        self.put_inode(&mut txn, &node, &mut state);
        self.commit(txn);
        if let Some(index) = dir.index.as_deref_mut() {
            index.insert(name, slot);
        }
        Ok(())
    }
}
