//! Format of a name: a word with inode, type and length; a checksum word; the name, with up to 16
//! bytes in the first slot and 32 in each further one. A first word of 0 marks a free slot.

use crate::format::{BLOCK, crc_words};
use crate::types::{Ino, InodeType, NAME_MAX};

/// Size of a slot in bytes.
pub(crate) const SLOT: u64 = 32;
/// Number of slots in a block.
pub(crate) const SLOTS: u32 = (BLOCK / SLOT) as u32;
/// Number of bytes of a name in its first slot.
const FIRST: usize = 16;
/// Number of words of the longest record.
const WORDS_MAX: usize = slots_for(NAME_MAX) as usize * 4;

/// Returns the number of slots for a name of this length.
pub(crate) const fn slots_for(name: usize) -> u32 {
    1 + name.saturating_sub(FIRST).div_ceil(SLOT as usize) as u32
}

/// A name, as stored on the medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DirRecord {
    words: [u64; WORDS_MAX],
}

impl DirRecord {
    /// Creates the record of a name at a slot of a directory.
    pub(crate) fn new(salt: u32, dir: Ino, slot: u32, name: &[u8], ino: Ino, kind: InodeType) -> Self {
        let mut record = Self { words: [0; WORDS_MAX] };
        record.words[0] = ino.0 | (kind as u64) << 48 | (name.len() as u64) << 56;
        bytemuck::cast_slice_mut(&mut record.words[2..])[..name.len()].copy_from_slice(name);
        record.words[1] = record.check(salt, dir, slot);
        record
    }

    /// Creates a record of zeros to read into.
    pub(crate) const fn blank() -> Self {
        Self { words: [0; WORDS_MAX] }
    }

    /// Returns the bytes of the first slot, to read into.
    pub(crate) fn first(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..SLOT as usize]
    }

    /// Returns the bytes of the other slots, to read into. The first slot must be valid.
    pub(crate) fn others(&mut self) -> &mut [u8] {
        let slots = self.slots() as usize;
        &mut bytemuck::cast_slice_mut(&mut self.words[..slots * 4])[SLOT as usize..]
    }

    fn check(&self, salt: u32, dir: Ino, slot: u32) -> u64 {
        let len = self.slots() as usize * 4;
        u64::from(crc_words(crc_words(salt, &[dir.0, u64::from(slot), self.words[0]]), &self.words[2..len]))
    }

    /// Returns `true` if the record matches its checksum and has a valid name.
    pub(crate) fn sound(&self, salt: u32, dir: Ino, slot: u32) -> bool {
        let name = self.name();
        self.words[1] == self.check(salt, dir, slot)
            && self.kind().is_some()
            && !name.is_empty()
            && !name.contains(&0)
            && !name.contains(&b'/')
    }

    /// Returns `true` if the slot is free.
    pub(crate) fn is_free(&self) -> bool {
        self.words[0] == 0
    }

    pub(crate) fn ino(&self) -> Ino {
        Ino(self.words[0] & ((1 << 48) - 1))
    }

    pub(crate) fn kind(&self) -> Option<InodeType> {
        InodeType::from_repr((self.words[0] >> 48) as u8)
    }

    pub(crate) fn name(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words[2..])[..(self.words[0] >> 56) as usize]
    }

    /// Returns the number of slots of the record.
    pub(crate) fn slots(&self) -> u32 {
        slots_for((self.words[0] >> 56) as usize)
    }

    /// Returns the words of the record, as stored on the medium.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words[..self.slots() as usize * 4]
    }
}
