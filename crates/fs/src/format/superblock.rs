//! The superblock: what never changes after `mkfs`, in two copies.

use super::{BLOCK, Geometry, crc_words, read_words, write_words};
use crate::error::{Error, Result};
use crate::medium::Medium;
use crate::types::Time;
use std::hash::{BuildHasher, RandomState};

/// The first bytes of every file system.
const MAGIC: u64 = u64::from_le_bytes(*b"frit-fs\0");
/// The version of the format.
const VERSION: u64 = 1;
/// The same with contents of regular files outside of the medium: a version of its own, so that who does not know it
/// does not take files for empty.
const VERSION_OUTSIDE: u64 = 2;
/// The first with checksums of contents: who writes bytes without them must not.
const VERSION_SUMS: u64 = 3;
/// Words of the superblock that are used.
const WORDS: usize = 64;

/// What the superblock says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Superblock {
    pub(crate) geometry: Geometry,
    pub(crate) uuid: [u64; 2],
    pub(crate) label: [u8; 32],
    pub(crate) created: Time,
    /// Whether contents of regular files are outside of the medium.
    pub(crate) outside: bool,
}

/// A random identity. The standard library's hasher takes its keys from the system's random source.
pub(crate) fn fresh_uuid() -> [u64; 2] {
    [RandomState::new().hash_one(1), RandomState::new().hash_one(2)]
}

impl Superblock {
    /// What every checksum of this file system begins with: metadata of another one is not taken for its own.
    pub(crate) fn salt(&self) -> u32 {
        crc_words(0, &self.uuid)
    }

    fn encode(&self) -> [u64; WORDS] {
        let g = &self.geometry;
        let mut w = [0; WORDS];
        w[0] = MAGIC;
        let version = match (self.outside, g.has_sums()) {
            (true, _) => VERSION_OUTSIDE,
            (false, true) => VERSION_SUMS,
            (false, false) => VERSION,
        };
        w[1] = version | BLOCK << 32;
        w[2..4].copy_from_slice(&self.uuid);
        w[4..8].copy_from_slice(bytemuck::cast_slice(&[self.label]));
        w[8] = g.bytes;
        w[9] = g.ledger_at;
        w[10] = g.orphans_at;
        w[11] = g.orphans;
        w[12] = g.journal_at;
        w[13] = g.slots;
        w[14] = g.slot_bytes;
        w[15] = g.inodes_at;
        w[16] = g.inodes;
        w[17] = g.bitmap_at;
        w[18] = g.lines;
        w[19] = g.data_first;
        w[20] = g.data_blocks;
        w[21] = self.created.0 as u64;
        w[22] = g.sums_at;
        w[WORDS - 1] = u64::from(crc_words(0, &w[..WORDS - 1]));
        w
    }

    fn decode(w: &[u64; WORDS], of_medium: u64) -> Result<Self, String> {
        if w[0] != MAGIC {
            return Err("no frit file system: its first bytes are not `frit-fs`".into());
        }
        if w[WORDS - 1] != u64::from(crc_words(0, &w[..WORDS - 1])) {
            return Err("its superblock does not match its checksum".into());
        }
        let sums = w[1] == VERSION_SUMS | BLOCK << 32;
        let outside = w[1] == VERSION_OUTSIDE | BLOCK << 32;
        if !sums && !outside && w[1] != VERSION | BLOCK << 32 {
            return Err(format!(
                "format version {} with blocks of {} bytes: this program knows versions {VERSION} to {VERSION_SUMS} \
                 with {BLOCK}",
                w[1] & 0xFFFF_FFFF,
                w[1] >> 32
            ));
        }
        let geometry = Geometry {
            bytes: w[8],
            ledger_at: w[9],
            orphans_at: w[10],
            orphans: w[11],
            journal_at: w[12],
            slots: w[13],
            slot_bytes: w[14],
            inodes_at: w[15],
            inodes: w[16],
            bitmap_at: w[17],
            lines: w[18],
            data_first: w[19],
            data_blocks: w[20],
            sums_at: w[22],
        };
        if !geometry.sound() || geometry.has_sums() != sums {
            return Err("its superblock describes regions that overlap".into());
        }
        if geometry.bytes > of_medium {
            return Err(format!(
                "it was made on {} bytes, and there are {of_medium}: the image was cut",
                geometry.bytes
            ));
        }
        let mut label = [0; 32];
        label.copy_from_slice(bytemuck::cast_slice(&w[4..8]));
        Ok(Self { geometry, uuid: [w[2], w[3]], label, created: Time(w[21] as i64), outside })
    }

    /// Writes both copies, the second one first.
    pub(crate) fn write<M: Medium>(&self, medium: &M) {
        let words = self.encode();
        write_words(medium, self.geometry.copy_at(), &words);
        medium.fence();
        write_words(medium, Geometry::SUPERBLOCK_AT, &words);
        medium.fence();
    }

    /// Reads the first copy, or the second where the first is damaged.
    ///
    /// # Errors
    /// Neither can be used; what is wrong with the first.
    pub(crate) fn read<M: Medium>(medium: &M) -> Result<Self> {
        match Self::read_at(medium, Geometry::SUPERBLOCK_AT) {
            Ok(superblock) => Ok(superblock),
            Err(first) => {
                let at = (medium.bytes() / BLOCK).saturating_sub(1) * BLOCK;
                Self::read_at(medium, at).map_err(|_| Error::Image(first))
            }
        }
    }

    /// Reads one copy.
    pub(crate) fn read_at<M: Medium>(medium: &M, at: u64) -> Result<Self, String> {
        Self::decode(&read_words(medium, at), medium.bytes())
    }

    /// The label as text.
    pub(crate) fn label(&self) -> String {
        let end = self.label.iter().position(|b| *b == 0).unwrap_or(self.label.len());
        String::from_utf8_lossy(&self.label[..end]).into_owned()
    }
}

/// Whether a medium begins with a file system's magic, whatever else it says.
pub(crate) fn present<M: Medium>(medium: &M) -> bool {
    read_words::<M, 1>(medium, Geometry::SUPERBLOCK_AT) == [MAGIC]
}

/// The UUID that the first block of a medium has, lower half first; zeros where there is no file system.
pub(crate) fn uuid_in(first: &[u8]) -> [u64; 2] {
    let word = |i: usize| first[8 * i..][..8].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    if word(0) == MAGIC { [word(2), word(3)] } else { [0; 2] }
}
