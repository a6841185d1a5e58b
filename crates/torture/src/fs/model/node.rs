//! Inodes of the model.

use super::contents::Contents;
use frit_fs::{Attr, Ino, InodeType, Time};
use std::collections::BTreeMap;

/// An entry of a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedInode {
    /// Position in a listing. It does not change while the name exists.
    pub(super) position: u64,
    /// Inode that the name refers to.
    pub(super) ino: Ino,
}

/// An inode.
#[derive(Clone, Debug)]
pub(super) struct ModelInode {
    pub(super) kind: InodeType,
    pub(super) mode: u16,
    pub(super) links: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) rdev: u32,
    pub(super) atime: Time,
    pub(super) mtime: Time,
    pub(super) ctime: Time,
    pub(super) btime: Time,
    /// Contents of a regular file.
    pub(super) data: Contents,
    /// Target of a symbolic link.
    pub(super) target: Vec<u8>,
    /// Names of a directory, without `.` and `..`.
    pub(super) names: BTreeMap<Vec<u8>, NamedInode>,
    /// Position of the next new name. `.` and `..` have positions 0 and 1.
    pub(super) position: u64,
    /// Parent of a directory, or directory of a command file.
    pub(super) parent: Ino,
    /// Command file of a directory.
    pub(super) command: Option<Ino>,
    pub(super) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) pins: u32,
}

impl ModelInode {
    /// Creates an inode without a name. The link count of a directory includes its own `.`.
    pub(super) fn new(kind: InodeType, mode: u16, (uid, gid): (u32, u32), parent: Ino, now: Time) -> Self {
        Self {
            kind,
            mode,
            links: if kind == InodeType::Directory { 2 } else { 1 },
            uid,
            gid,
            rdev: 0,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
            data: Contents::default(),
            target: Vec::new(),
            names: BTreeMap::new(),
            position: 2,
            parent,
            command: None,
            xattrs: BTreeMap::new(),
            pins: 0,
        }
    }

    pub(super) fn is_dir(&self) -> bool {
        self.kind == InodeType::Directory
    }

    /// Sets the times for a change of contents.
    pub(super) fn modified(&mut self, now: Time) {
        (self.mtime, self.ctime) = (now, now);
    }

    /// Adds or replaces a name. A replaced name keeps its position in listings.
    pub(super) fn put(&mut self, name: &[u8], ino: Ino) {
        let position = self.names.get(name).map_or(self.position, |n| n.position);
        self.position = self.position.max(position + 1);
        self.names.insert(name.to_vec(), NamedInode { position, ino });
    }

    pub(super) fn attr(&self, ino: Ino) -> Attr {
        let size = match self.kind {
            InodeType::File => self.data.size,
            InodeType::Symlink => self.target.len() as u64,
            InodeType::Directory => self.names.len() as u64,
            _ => 0,
        };
        Attr {
            ino,
            generation: 0,
            kind: self.kind,
            mode: self.mode,
            links: self.links,
            uid: self.uid,
            gid: self.gid,
            rdev: self.rdev,
            size,
            sectors: self.data.sectors(),
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
            btime: self.btime,
        }
    }
}
