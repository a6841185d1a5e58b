//! The bytes of a name: a word with inode, kind and length; a word of check; the name, up to 16 bytes in the first slot
//! and 32 in each further one. A first word of 0 is a free slot.

use crate::format::{BLOCK, crc_words};
use crate::types::{Ino, Kind, NAME_MAX};

/// Bytes of a slot.
pub(crate) const SLOT: u64 = 32;
/// Slots of a block.
pub(crate) const SLOTS: u32 = (BLOCK / SLOT) as u32;
/// Bytes of a name in its first slot.
const FIRST: usize = 16;
/// Words of the longest record.
const WORDS_MAX: usize = slots_for(NAME_MAX) as usize * 4;

/// Slots that a name takes.
pub(crate) const fn slots_for(name: usize) -> u32 {
    1 + name.saturating_sub(FIRST).div_ceil(SLOT as usize) as u32
}

/// A name on the medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    words: [u64; WORDS_MAX],
}

impl Record {
    /// A name at a slot of a directory.
    pub(crate) fn new(salt: u32, dir: Ino, slot: u32, name: &[u8], ino: Ino, kind: Kind) -> Self {
        let mut record = Self { words: [0; WORDS_MAX] };
        record.words[0] = ino.0 | (kind as u64) << 48 | (name.len() as u64) << 56;
        bytemuck::cast_slice_mut(&mut record.words[2..])[..name.len()].copy_from_slice(name);
        record.words[1] = record.check(salt, dir, slot);
        record
    }

    /// Nothing but zeros, to be read into.
    pub(crate) const fn blank() -> Self {
        Self { words: [0; WORDS_MAX] }
    }

    /// The words of its first slot, to be filled.
    pub(crate) fn first(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..SLOT as usize]
    }

    /// The words of its other slots, to be filled when the first is.
    pub(crate) fn others(&mut self) -> &mut [u8] {
        let slots = self.slots() as usize;
        &mut bytemuck::cast_slice_mut(&mut self.words[..slots * 4])[SLOT as usize..]
    }

    fn check(&self, salt: u32, dir: Ino, slot: u32) -> u64 {
        let len = self.slots() as usize * 4;
        u64::from(crc_words(crc_words(salt, &[dir.0, u64::from(slot), self.words[0]]), &self.words[2..len]))
    }

    /// Whether it matches its check.
    pub(crate) fn sound(&self, salt: u32, dir: Ino, slot: u32) -> bool {
        let name = self.name();
        self.words[1] == self.check(salt, dir, slot)
            && self.kind().is_some()
            && !name.is_empty()
            && !name.contains(&0)
            && !name.contains(&b'/')
    }

    /// Whether its slot is free.
    pub(crate) fn is_free(&self) -> bool {
        self.words[0] == 0
    }

    pub(crate) fn ino(&self) -> Ino {
        Ino(self.words[0] & ((1 << 48) - 1))
    }

    pub(crate) fn kind(&self) -> Option<Kind> {
        Kind::from_repr((self.words[0] >> 48) as u8)
    }

    pub(crate) fn name(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words[2..])[..(self.words[0] >> 56) as usize]
    }

    /// Slots that it takes.
    pub(crate) fn slots(&self) -> u32 {
        slots_for((self.words[0] >> 56) as usize)
    }

    /// Its words, as the medium has them.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words[..self.slots() as usize * 4]
    }
}
