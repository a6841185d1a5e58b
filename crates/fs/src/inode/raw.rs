//! Format of an inode: 256 bytes.

use crate::error::{Error, Result};
use crate::format::{Geometry, crc_words, read_words};
use crate::journal::BlockRun;
use crate::medium::Medium;
use crate::types::{Attr, FILE_MAX, Ino, InodeType, Time};

/// Number of words of an inode.
pub(crate) const WORDS: usize = 32;
/// Number of words at its end for eight extents, or for the target of a symbolic link.
pub(crate) const AREA: usize = 16;

/// Maximum length of a symbolic link target stored in the inode, in bytes.
pub(crate) const FAST_SYMLINK_MAX: usize = AREA * 8;

/// Permission bits of a new command file.
const COMMAND_MODE: u16 = 0o666;

/// Flag of a directory's name count: the count is valid.
const COUNTED: u64 = 1 << 63;

/// The words at the end of an inode.
pub(crate) type InodeArea = [u64; AREA];

/// An inode, decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Inode {
    pub(crate) generation: u32,
    pub(crate) kind: InodeType,
    /// Permission bits: 0o7777.
    pub(crate) mode: u16,
    pub(crate) links: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u32,
    pub(crate) size: u64,
    /// Blocks of the data space in use, including those for extents and extended attributes.
    pub(crate) blocks: u64,
    pub(crate) atime: Time,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
    pub(crate) btime: Time,
    /// First extent block, or 0.
    pub(crate) extents: u64,
    /// Blocks of the extended attributes; length 0 if there are none.
    pub(crate) xattrs: BlockRun,
    /// Parent of a directory, or the directory of a command file.
    pub(crate) parent: Ino,
    /// Command file of a directory; 0 if it has none.
    pub(crate) command: Ino,
    /// Number of names of a directory; `None` if an older version of the program created or changed
    /// it without counting.
    pub(crate) names: Option<u64>,
    /// Eight extents, or the target of a fast symlink.
    pub(crate) inline_area: InodeArea,
}

/// Computes the checksum of an inode: over its words except the low half of the first, which holds
/// it.
pub(crate) fn check(salt: u32, ino: Ino, words: &[u64; WORDS]) -> u32 {
    crc_words(crc_words(salt, &[ino.0, words[0] >> 32]), &words[1..])
}

impl Inode {
    /// Creates an inode.
    pub(crate) fn new(kind: InodeType, mode: u16, owner: (u32, u32), generation: u32, now: Time) -> Self {
        Self {
            generation,
            kind,
            mode: mode & 0o7777,
            links: if kind == InodeType::Directory { 2 } else { 1 },
            uid: owner.0,
            gid: owner.1,
            rdev: 0,
            size: 0,
            blocks: 0,
            atime: now,
            mtime: now,
            ctime: now,
            btime: now,
            extents: 0,
            xattrs: BlockRun::default(),
            parent: Ino(0),
            command: Ino(0),
            names: (kind == InodeType::Directory).then_some(0),
            inline_area: [0; AREA],
        }
    }

    /// Creates the inode of the command file of a directory with this inode. Every user may write an
    /// instruction: it reads its target with the rights of its author.
    pub(crate) fn new_command(&self, dir: Ino, generation: u32, now: Time) -> Self {
        let mut command = Self::new(InodeType::Command, COMMAND_MODE, (self.uid, self.gid), generation, now);
        command.parent = dir;
        command
    }

    pub(crate) fn encode(&self, salt: u32, ino: Ino) -> [u64; WORDS] {
        let mut w = [0; WORDS];
        w[0] = u64::from(self.generation) << 32;
        w[1] = self.kind as u64 | u64::from(self.mode) << 16 | u64::from(self.links) << 32;
        w[2] = u64::from(self.uid) | u64::from(self.gid) << 32;
        w[3] = self.size;
        w[4] = self.blocks;
        w[5] = self.atime.0 as u64;
        w[6] = self.mtime.0 as u64;
        w[7] = self.ctime.0 as u64;
        w[8] = self.btime.0 as u64;
        w[9] = u64::from(self.rdev);
        w[10] = self.extents;
        w[11] = self.xattrs.start | self.xattrs.len << 48;
        w[12] = self.parent.0;
        w[13] = self.names.map_or(0, |names| names | COUNTED);
        w[14] = self.command.0;
        w[WORDS - AREA..].copy_from_slice(&self.inline_area);
        w[0] |= u64::from(check(salt, ino, &w));
        w
    }

    /// Decodes the words of an inode; returns `None` if it is free.
    pub(crate) fn decode(geometry: &Geometry, salt: u32, ino: Ino, w: &[u64; WORDS]) -> Result<Option<Self>> {
        // A type of 0 is free whatever the checksum, because freeing writes only the first two
        // words.
        if w[1] == 0 {
            return Ok(None);
        }
        let damaged = Error::Damaged { what: "an inode", at: geometry.inode_at(ino.0) };
        if w[0] as u32 != check(salt, ino, w) {
            return Err(damaged);
        }
        let Some(kind) = InodeType::from_repr(w[1] as u8).filter(|_| w[3] <= FILE_MAX) else {
            return Err(damaged);
        };
        let mut inline_area = [0; AREA];
        inline_area.copy_from_slice(&w[WORDS - AREA..]);
        Ok(Some(Self {
            generation: (w[0] >> 32) as u32,
            kind,
            mode: (w[1] >> 16) as u16 & 0o7777,
            links: (w[1] >> 32) as u32,
            uid: w[2] as u32,
            gid: (w[2] >> 32) as u32,
            rdev: w[9] as u32,
            size: w[3],
            blocks: w[4],
            atime: Time(w[5] as i64),
            mtime: Time(w[6] as i64),
            ctime: Time(w[7] as i64),
            btime: Time(w[8] as i64),
            extents: w[10],
            xattrs: BlockRun { start: w[11] & ((1 << 48) - 1), len: w[11] >> 48 },
            parent: Ino(w[12]),
            command: Ino(w[14]),
            names: (kind == InodeType::Directory && w[13] & COUNTED != 0).then_some(w[13] & !COUNTED),
            inline_area,
        }))
    }

    /// Reads an inode; returns `None` if it is free or its number is out of range.
    pub(crate) fn read<M: Medium>(
        medium: &M,
        geometry: &Geometry,
        salt: u32,
        ino: Ino,
    ) -> Result<Option<Self>> {
        if ino.0 == 0 || ino.0 > geometry.inodes {
            return Ok(None);
        }
        Self::decode(geometry, salt, ino, &read_words(medium, geometry.inode_at(ino.0)))
    }

    /// Returns `true` if the inline area holds extents. Otherwise it holds the target of a symbolic
    /// link, or nothing.
    pub(crate) fn has_extents(&self) -> bool {
        match self.kind {
            InodeType::File | InodeType::Directory => true,
            InodeType::Symlink => self.size > FAST_SYMLINK_MAX as u64,
            _ => false,
        }
    }

    /// Returns the attributes for stat(2).
    pub(crate) fn attr(&self, ino: Ino, atime: Time) -> Attr {
        Attr {
            ino,
            generation: self.generation,
            kind: self.kind,
            mode: self.mode,
            links: self.links,
            uid: self.uid,
            gid: self.gid,
            rdev: self.rdev,
            size: self.size,
            sectors: self.blocks.saturating_mul(8),
            atime,
            mtime: self.mtime,
            ctime: self.ctime,
            btime: self.btime,
        }
    }
}
