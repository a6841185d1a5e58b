//! Repair of each inode by itself.

use super::RepairRound;
use crate::check::inodes::CheckedInodes;
use crate::format::write_words;
use crate::inode::Inode;
use crate::journal::BlockRun;
use crate::medium::Medium;
use crate::types::{Ino, InodeType};
use crate::xattr;

/// Permissions of a newly created root directory.
const ROOT_MODE: u16 = 0o755;

impl<M: Medium> RepairRound<'_, M> {
    /// Repairs all inodes in the order of the table. If two inodes claim the same block, the one
    /// with the lower number keeps it.
    pub(super) fn repair_inodes(&mut self, highest: u64) {
        self.inodes = CheckedInodes::blank(highest);
        for number in 1..=highest {
            let ino = Ino(number);
            match Inode::read(self.medium, &self.geometry, self.salt, ino) {
                Ok(None) => {}
                Ok(Some(inode)) => self.repair_inode(ino, inode),
                Err(_) => {
                    let place = self.place(ino);
                    self.log.add_message(format_args!("{place} does not match its checksum: it was freed"));
                    self.free(ino);
                }
            }
        }
    }

    /// Repairs a readable inode and marks its blocks as used.
    fn repair_inode(&mut self, ino: Ino, mut inode: Inode) {
        let before = inode.encode(self.salt, ino);
        let Some(extents) = self.repair_extents(ino, &mut inode) else {
            let place = self.place(ino);
            self.log
                .add_message(format_args!("{place}: the target of the symbolic link is lost: it was freed"));
            self.free(ino);
            return;
        };
        self.repair_xattrs(ino, &mut inode);
        let count = extents + inode.xattrs.len;
        let place = self.place(ino);
        if inode.blocks != count {
            self.log.add_message(format_args!("{place} recorded {} blocks, but has {count}", inode.blocks));
            inode.blocks = count;
        }
        let sizeless = !matches!(inode.kind, InodeType::File | InodeType::Directory | InodeType::Symlink);
        if sizeless && inode.size != 0 {
            self.log.add_message(format_args!("{place} had a size of {}, but must have none", inode.size));
            inode.size = 0;
        }
        if inode.encode(self.salt, ino) != before {
            self.write(ino, &inode);
        }
        // The counters are rebuilt so that new inodes get a higher generation than all existing
        // ones.
        self.generation = self.generation.max(inode.generation);
        if let Some(seen) = self.inodes.get(ino) {
            seen.kind = Some(inode.kind);
            seen.links = inode.links;
            seen.parent = inode.parent;
            seen.command = inode.command;
        }
    }

    fn repair_xattrs(&mut self, ino: Ino, inode: &mut Inode) {
        let run = inode.xattrs;
        if run.len == 0 {
            return;
        }
        let sound = xattr::read(self.medium, &self.geometry, self.salt, ino, inode).is_ok();
        if !sound || !self.blocks.claim(&self.geometry, run) {
            let place = self.place(ino);
            self.log.add_message(format_args!(
                "{place} has lost its extended attributes at byte {:#x}",
                run.at()
            ));
            inode.xattrs = BlockRun::default();
        }
    }

    /// Ensures that inode 1 is a valid root directory.
    pub(super) fn repair_root(&mut self) {
        let found = Inode::read(self.medium, &self.geometry, self.salt, Ino::ROOT).ok().flatten();
        let mut root = match found {
            Some(root) if root.kind == InodeType::Directory => root,
            _ => {
                self.log.add_message("inode 1 is not a directory: a new, empty root directory was created");
                Inode::new(InodeType::Directory, ROOT_MODE, (0, 0), 0, self.now)
            }
        };
        if root.parent != Ino::ROOT {
            root.parent = Ino::ROOT;
            self.write(Ino::ROOT, &root);
        }
        if let Some(seen) = self.inodes.get(Ino::ROOT) {
            (seen.kind, seen.links, seen.parent) = (Some(InodeType::Directory), root.links, Ino::ROOT);
            seen.command = root.command;
        }
    }

    /// Frees an inode by setting its type to 0.
    pub(super) fn free(&mut self, ino: Ino) {
        write_words(self.medium, self.geometry.inode_at(ino.0), &[0, 0]);
    }

    pub(super) fn write(&mut self, ino: Ino, inode: &Inode) {
        write_words(self.medium, self.geometry.inode_at(ino.0), &inode.encode(self.salt, ino));
    }

    /// Changes an inode that is otherwise valid.
    pub(super) fn rewrite(&mut self, ino: Ino, change: impl FnOnce(&mut Inode)) {
        if let Ok(Some(mut inode)) = Inode::read(self.medium, &self.geometry, self.salt, ino) {
            change(&mut inode);
            self.write(ino, &inode);
        }
    }
}
