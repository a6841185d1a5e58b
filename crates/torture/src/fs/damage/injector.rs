//! Kinds of damage to a page in use of a file system.

use super::access_paths::AccessPath;
use super::checksums;
use super::image::PopulatedImage;
use frit_fs::Geometry;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::BTreeSet;
use std::ops::Range;
use strum::{EnumIter, IntoStaticStr};

/// Bytes of a page.
const PAGE: usize = 4096;

/// Words of an inode: type with mode and links, parent, and command file.
const KIND_WORD: u64 = 1;
const PARENT_WORD: u64 = 12;
const COMMAND_WORD: u64 = 14;

/// A kind of damage.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum DamageKind {
    /// One bit is flipped.
    Bit,
    /// A page, or a sector or line of it, is zeros.
    Zeros,
    /// A page, or a sector or line of it, is random bytes.
    Garbage,
    /// Two pages are swapped.
    Swapped,
    /// The image is truncated.
    Truncated,
    /// A page has the contents of some operations earlier.
    OlderPage,
    /// The whole image has the contents of some operations earlier.
    OlderImage,
    /// A command file, or the reference of its directory, is missing or another one, with valid
    /// checksums.
    Command,
}

impl DamageKind {
    /// Returns `true` if reads may return an earlier state: a check cannot detect an old page that
    /// was once valid.
    #[must_use]
    pub fn is_older(self) -> bool {
        matches!(self, DamageKind::OlderPage | DamageKind::OlderImage)
    }

    /// Returns `true` if an access of this kind has to report the damage. Pieces of metadata that are valid
    /// by themselves are compared with each other only by checks and repairs.
    #[must_use]
    pub fn is_for(self, path: AccessPath) -> bool {
        self != DamageKind::Command || matches!(path, AccessPath::Check | AccessPath::Repair)
    }
}

/// Damages images of one file system.
#[derive(Debug)]
pub struct DamageInjector<'a> {
    made: &'a PopulatedImage,
    geometry: Geometry,
    pages: Vec<usize>,
    /// Pages that hold checksums of contents.
    sums: Range<usize>,
}

impl<'a> DamageInjector<'a> {
    /// Creates one that damages pages in use, except the `spared` blocks.
    #[must_use]
    pub fn new(made: &'a PopulatedImage, geometry: &Geometry, spared: &BTreeSet<u64>) -> Self {
        let g = geometry;
        let word = |at: u64| {
            let at = at as usize;
            u64::from_le_bytes(made.image[at..at + 8].try_into().unwrap_or_default())
        };
        let pages = |from: u64, to: u64| from as usize / PAGE..(to as usize).div_ceil(PAGE);
        let mut all: BTreeSet<usize> = pages(0, 4096).collect();
        all.extend(pages(Geometry::REGISTERS_AT, Geometry::REGISTERS_AT + 4096));
        all.extend(pages(g.ledger_at, g.inodes_at + word(g.ledger_at + 16) * 256));
        all.extend(pages(g.bitmap_at, g.bitmap_at + g.lines * 512));
        let sums = if g.has_sums() { pages(g.sums_at, g.sums_at + g.data_blocks * 8) } else { 0..0 };
        all.extend(sums.clone());
        all.extend(pages(g.copy_at(), g.copy_at() + 4096));
        let used = |block: &u64| word(g.bitmap_at + block / 64 * 8) >> (block % 64) & 1 == 1;
        all.extend((0..g.data_blocks).filter(used).map(|block| (g.data_first + block) as usize));
        all.retain(|page| !spared.contains(&(*page as u64)));
        Self { made, geometry: *geometry, pages: all.into_iter().collect(), sums }
    }

    /// Draws a page to swap with another one. Pages of checksums are swapped only among themselves:
    /// zeros in the place of checksums leave blocks without a checksum, so wrong contents would be
    /// a second, undetectable damage.
    fn other(&self, page: usize, rng: &mut SmallRng) -> usize {
        let of_sums = |page: &usize| self.sums.contains(page);
        loop {
            let other = self.pages[rng.random_range(0..self.pages.len())];
            if of_sums(&other) == of_sums(&page) {
                return other;
            }
        }
    }

    /// Damages a copy of the image. Returns it with a description of the damage.
    pub fn inject(&self, kind: DamageKind, rng: &mut SmallRng) -> (Vec<u8>, String) {
        let mut image = self.made.image.clone();
        let page = self.pages[rng.random_range(0..self.pages.len())];
        let at = page * PAGE;
        // The size is that of a page, a sector or a line.
        let len = [PAGE, 512, 64][rng.random_range(0..3)];
        let from = at + rng.random_range(0..PAGE / len) * len;
        let old = &self.made.history[rng.random_range(0..self.made.history.len())];
        let what = match kind {
            DamageKind::Bit => {
                let (byte, bit) = (at + rng.random_range(0..PAGE), rng.random_range(0..8));
                image[byte] ^= 1 << bit;
                format!("bit {bit} of byte {byte:#x}")
            }
            DamageKind::Zeros => {
                image[from..from + len].fill(0);
                format!("{len} zeros at {from:#x}")
            }
            DamageKind::Garbage => {
                rng.fill(&mut image[from..from + len]);
                format!("{len} bytes at random at {from:#x}")
            }
            DamageKind::Swapped => {
                let other = self.other(page, rng);
                for i in 0..PAGE {
                    image.swap(at + i, other * PAGE + i);
                }
                format!("pages {page} and {other} swapped")
            }
            DamageKind::Truncated => {
                image.truncate(at + rng.random_range(0..PAGE));
                format!("{} bytes left", image.len())
            }
            DamageKind::OlderPage => {
                image[at..at + PAGE].copy_from_slice(&old[at..at + PAGE]);
                format!("an older page {page}")
            }
            DamageKind::OlderImage => {
                image.copy_from_slice(old);
                "an older image".to_string()
            }
            DamageKind::Command => self.damage_command(&mut image, rng),
        };
        (image, what)
    }

    /// Changes a directory or its command file.
    fn damage_command(&self, image: &mut [u8], rng: &mut SmallRng) -> String {
        let (g, all) = (&self.geometry, &self.made.commands);
        let draw = |rng: &mut SmallRng| all[rng.random_range(0..all.len())];
        let (dir, command) = draw(rng);
        let (other_dir, other) = loop {
            let other = draw(rng);
            if other.0 != dir {
                break other;
            }
        };
        // A replay would undo a part of the damage. All transactions were applied.
        for slot in 0..g.slots {
            let at = (g.journal_at + slot * g.slot_bytes) as usize;
            image[at..at + 64].fill(0);
        }
        let mut put = |ino: u64, word: u64, value: u64| {
            let at = (g.inodes_at + (ino - 1) * 256 + word * 8) as usize;
            image[at..at + 8].copy_from_slice(&value.to_le_bytes());
            checksums::inode(image, g, ino);
        };
        match rng.random_range(0..6) {
            0 => {
                put(dir, COMMAND_WORD, 0);
                put(command, KIND_WORD, 0);
                let at = g.ledger_at as usize + 8;
                let inodes = u64::from_le_bytes(image[at..at + 8].try_into().unwrap_or_default());
                image[at..at + 8].copy_from_slice(&(inodes - 1).to_le_bytes());
                checksums::ledger(image, g);
                format!("inode {dir} has no command file")
            }
            1 => {
                put(dir, COMMAND_WORD, 0);
                format!("inode {dir} does not refer to its command file")
            }
            2 => {
                put(dir, COMMAND_WORD, other);
                format!("inode {dir} refers to the command file of inode {other_dir}")
            }
            3 => {
                put(command, PARENT_WORD, other_dir);
                format!("inode {command} is the command file of inode {other_dir}")
            }
            4 => {
                let number = rng.random_range(1..=g.inodes + 2);
                let number = if number == command { u64::MAX } else { number };
                put(dir, COMMAND_WORD, number);
                format!("inode {dir} refers to inode {number}")
            }
            _ => {
                put(command, KIND_WORD, 0);
                format!("inode {command}, a command file, is free")
            }
        }
    }
}
