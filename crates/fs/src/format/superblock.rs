//! The superblock: parameters of `mkfs`, in two copies. Only the feature of command files can be added later.

use super::{BLOCK, Geometry, crc_words, read_words, write_words};
use crate::error::{Error, Result};
use crate::medium::Medium;
use crate::types::Time;
use std::hash::{BuildHasher, RandomState};

/// First bytes of every file system.
const MAGIC: u64 = u64::from_le_bytes(*b"frit-fs\0");
/// Format version of a file system with contents on the medium.
const VERSION: u64 = 1;
/// Format version with contents of regular files in an external store. The separate version
/// prevents older programs from treating the files as empty.
const VERSION_EXTERNAL: u64 = 2;
/// Format version with checksums of contents. Programs that do not know it must not write contents
/// without updating the checksums.
const VERSION_SUMS: u64 = 3;
/// Format version with a word of features, each of which a program has to know. It is used only with
/// such a feature, so that older programs open all other file systems.
const VERSION_FEATURES: u64 = 4;
/// Feature: contents of regular files are on a nameless-write device.
const FEATURE_NAMELESS: u64 = 1;
/// Feature: each directory has a command file for in-storage processing.
const FEATURE_COMMAND_FILES: u64 = 2;
/// Feature: contents of regular files are in an external store, as in [`VERSION_EXTERNAL`].
const FEATURE_EXTERNAL: u64 = 4;
/// Feature: contents have checksums, as in [`VERSION_SUMS`].
const FEATURE_SUMS: u64 = 8;
/// Features that this program knows, in the order of their bits, with the names in the superblock.
const FEATURES: [(u64, &[u8; NAME]); 4] = [
    (FEATURE_NAMELESS, b"nameless\0\0\0\0\0\0\0\0"),
    (FEATURE_COMMAND_FILES, b"command-files\0\0\0"),
    (FEATURE_EXTERNAL, b"pool\0\0\0\0\0\0\0\0\0\0\0\0"),
    (FEATURE_SUMS, b"data-checksums\0\0"),
];
/// Length of the name of a feature in bytes, with zeros at its end.
const NAME: usize = 16;
/// Position of the names of the features of a file system, in words. They follow each other in the order
/// of their bits, so that a program can name a feature that it does not know.
const NAMES_AT: usize = 26;
/// Number of words used in the superblock.
const WORDS: usize = 64;

/// Contents of the superblock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Superblock {
    pub(crate) geometry: Geometry,
    pub(crate) uuid: [u64; 2],
    pub(crate) label: [u8; 32],
    pub(crate) created: Time,
    /// `true` if contents of regular files are in an external store.
    pub(crate) external: bool,
    /// `true` if each directory has a command file.
    pub(crate) command_files: bool,
}

/// Returns a random UUID. The hasher of the standard library is seeded from the system's random
/// source.
pub(crate) fn fresh_uuid() -> [u64; 2] {
    [RandomState::new().hash_one(1), RandomState::new().hash_one(2)]
}

impl Superblock {
    /// Returns the seed of all checksums of this file system, so that metadata of another one is
    /// detected.
    pub(crate) fn salt(&self) -> u32 {
        crc_words(0, &self.uuid)
    }

    /// Returns the word of features: 0 if an older format version describes the file system.
    fn features(&self) -> u64 {
        let bit = |set: bool, feature: u64| if set { feature } else { 0 };
        let new = bit(self.geometry.device_pages > 0, FEATURE_NAMELESS)
            | bit(self.command_files, FEATURE_COMMAND_FILES);
        if new == 0 {
            return 0;
        }
        new | bit(self.external, FEATURE_EXTERNAL) | bit(self.geometry.has_sums(), FEATURE_SUMS)
    }

    fn encode(&self) -> [u64; WORDS] {
        let g = &self.geometry;
        let mut w = [0; WORDS];
        w[0] = MAGIC;
        let features = self.features();
        let version = match (self.external, g.has_sums()) {
            _ if features != 0 => VERSION_FEATURES,
            (true, _) => VERSION_EXTERNAL,
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
        w[23] = features;
        w[24] = g.device_pages;
        let names = FEATURES.iter().filter(|(bit, _)| features & bit != 0);
        for (pair, (_, name)) in w[NAMES_AT..].chunks_exact_mut(2).zip(names) {
            bytemuck::cast_slice_mut(pair).copy_from_slice(*name);
        }
        w[WORDS - 1] = u64::from(crc_words(0, &w[..WORDS - 1]));
        w
    }

    fn decode(w: &[u64; WORDS], of_medium: u64) -> Result<Self, String> {
        if w[0] != MAGIC {
            return Err("not a frit file system: its first bytes are not `frit-fs`".into());
        }
        if w[WORDS - 1] != u64::from(crc_words(0, &w[..WORDS - 1])) {
            return Err("its superblock does not match its checksum".into());
        }
        let is = |version: u64| w[1] == version | BLOCK << 32;
        if ![VERSION, VERSION_EXTERNAL, VERSION_SUMS, VERSION_FEATURES].into_iter().any(is) {
            return Err(format!(
                "format version {} with blocks of {} bytes: this program knows versions {VERSION} to \
                 {VERSION_FEATURES} with {BLOCK}",
                w[1] & 0xFFFF_FFFF,
                w[1] >> 32
            ));
        }
        let features = if is(VERSION_FEATURES) { w[23] } else { 0 };
        if let Some(unknown) = unknown_features(w, features) {
            return Err(format!(
                "it has features that this program does not know ({unknown}): a newer frit opens it"
            ));
        }
        let sums = is(VERSION_SUMS) || features & FEATURE_SUMS != 0;
        let external = is(VERSION_EXTERNAL) || features & FEATURE_EXTERNAL != 0;
        let command_files = features & FEATURE_COMMAND_FILES != 0;
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
            device_pages: if features & FEATURE_NAMELESS != 0 { w[24] } else { 0 },
        };
        if features & FEATURE_NAMELESS != 0 && geometry.device_pages == 0 {
            return Err("its superblock describes a nameless-write device without pages".into());
        }
        if !geometry.sound() || geometry.has_sums() != sums {
            return Err("its superblock describes regions that overlap".into());
        }
        if geometry.bytes > of_medium {
            return Err(format!(
                "it was formatted with {} bytes, but the medium has {of_medium}: the image was truncated",
                geometry.bytes
            ));
        }
        let mut label = [0; 32];
        label.copy_from_slice(bytemuck::cast_slice(&w[4..8]));
        Ok(Self { geometry, uuid: [w[2], w[3]], label, created: Time(w[21] as i64), external, command_files })
    }

    /// Writes both copies, the second one first, so that one of them is valid at any time.
    pub(crate) fn write<M: Medium>(&self, medium: &M) {
        let words = self.encode();
        write_words(medium, self.geometry.copy_at(), &words);
        medium.fence();
        write_words(medium, Geometry::SUPERBLOCK_AT, &words);
        medium.fence();
    }

    /// Reads the first copy, or the second if the first is damaged.
    ///
    /// # Errors
    /// Neither copy is valid. The error describes the first.
    pub(crate) fn read<M: Medium>(medium: &M) -> Result<Self> {
        match Self::read_at(medium, Geometry::SUPERBLOCK_AT) {
            Ok(superblock) => Ok(superblock),
            Err(first) => {
                // The size in the first copy is unreliable, so the last whole block of the medium
                // is used.
                let at = (medium.bytes() / BLOCK).saturating_sub(1) * BLOCK;
                Self::read_at(medium, at).map_err(|_| Error::Image(first))
            }
        }
    }

    /// Reads one copy.
    pub(crate) fn read_at<M: Medium>(medium: &M, at: u64) -> Result<Self, String> {
        Self::decode(&read_words(medium, at), medium.bytes())
    }

    /// Returns the label as text.
    pub(crate) fn label(&self) -> String {
        let end = self.label.iter().position(|b| *b == 0).unwrap_or(self.label.len());
        String::from_utf8_lossy(&self.label[..end]).into_owned()
    }
}

/// Returns the names of the features that this program does not know, or `None` if it knows all.
fn unknown_features(w: &[u64; WORDS], features: u64) -> Option<String> {
    let known = FEATURES.iter().fold(0, |all, (bit, _)| all | bit);
    if features & !known == 0 {
        return None;
    }
    let bits = (0..u64::BITS).filter(|bit| features >> bit & 1 != 0);
    let mut names = w[NAMES_AT..WORDS - 1].chunks_exact(2);
    let described = bits.filter_map(|bit| {
        let name = names.next().map(|pair| {
            let name: &[u8] = bytemuck::cast_slice(pair);
            String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
        });
        let printable = name.filter(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic()));
        (known >> bit & 1 == 0).then(|| printable.unwrap_or_else(|| format!("bit {bit}")))
    });
    Some(described.collect::<Vec<_>>().join(", "))
}

/// Returns `true` if a medium begins with the magic number of a file system, whatever follows.
pub(crate) fn present<M: Medium>(medium: &M) -> bool {
    read_words::<M, 1>(medium, Geometry::SUPERBLOCK_AT) == [MAGIC]
}

/// Returns the UUID in the first block of a medium, lower half first, or zeros if there is no file
/// system.
pub(crate) fn uuid_in(first: &[u8]) -> [u64; 2] {
    let word = |i: usize| first[8 * i..][..8].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
    if word(0) == MAGIC { [word(2), word(3)] } else { [0; 2] }
}

#[cfg(test)]
#[cfg(not(feature = "shuttle"))]
mod tests {
    use super::*;

    fn superblock(device_pages: u64, command_files: bool) -> Superblock {
        let geometry = Geometry { device_pages, ..Geometry::divide_for(1 << 20, None, true).unwrap() };
        let (label, created) = ([0; 32], Time(3));
        Superblock { geometry, uuid: [1, 2], label, created, external: false, command_files }
    }

    fn decode(mut words: [u64; WORDS]) -> Result<Superblock, String> {
        words[WORDS - 1] = u64::from(crc_words(0, &words[..WORDS - 1]));
        Superblock::decode(&words, 1 << 20)
    }

    #[test]
    fn older_versions_describe_what_they_can() {
        assert_eq!(superblock(0, false).encode()[1] & 0xFFFF, VERSION_SUMS);
        for known in [superblock(1000, false), superblock(0, true), superblock(1000, true)] {
            let words = known.encode();
            assert_eq!(words[1] & 0xFFFF, VERSION_FEATURES);
            assert_eq!(decode(words).unwrap(), known);
        }
        let mut without = superblock(1000, false).encode();
        without[24] = 0;
        assert!(decode(without).unwrap_err().contains("without pages"));
    }

    #[test]
    fn unknown_features_are_refused_by_name() {
        let mut words = superblock(0, true).encode();
        // Command files and checksums have the first two names.
        words[23] |= 1 << 40 | 1 << 41;
        let name = NAMES_AT + 4;
        bytemuck::cast_slice_mut(&mut words[name..name + 2]).copy_from_slice(b"compressed-data\0");
        let refused = decode(words).unwrap_err();
        assert!(refused.contains("(compressed-data, bit 41)"), "{refused}");
    }
}
