//! Entries of the map: the object of a chunk, its place in the object, and its checksum.

use super::config::ENTRY_BYTES;
use frit_core::ObjectId;

/// Epoch of a chunk whose entry is lost. No opening has this number.
const LOST: u32 = u32::MAX;

/// Entry of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Entry {
    /// The object. Epoch 0: the chunk was never written, or was discarded.
    pub(super) object: ObjectId,
    /// Place in the object, in chunks.
    pub(super) index: u16,
    /// CRC32C of the contents.
    pub(super) crc: u32,
}

impl Entry {
    /// Entry of a chunk whose sector of the table is lost.
    pub(super) const LOST: Entry = Entry { object: ObjectId { epoch: LOST, number: 0 }, index: 0, crc: 0 };

    /// Returns `true` for a chunk that reads as zeros.
    pub(super) fn is_hole(&self) -> bool {
        self.object.epoch == 0
    }

    /// Returns `true` if the place of the chunk is lost.
    pub(super) fn is_lost(&self) -> bool {
        self.object.epoch == LOST
    }

    /// Returns `true` if the chunk has a place.
    pub(super) fn is_mapped(&self) -> bool {
        !self.is_hole() && !self.is_lost()
    }

    /// Epoch (4 bytes), number (4), index (2), zeros (2), CRC (4).
    pub(super) fn encode(&self, into: &mut [u8]) {
        into[..4].copy_from_slice(&self.object.epoch.to_le_bytes());
        into[4..8].copy_from_slice(&self.object.number.to_le_bytes());
        into[8..10].copy_from_slice(&self.index.to_le_bytes());
        into[12..16].copy_from_slice(&self.crc.to_le_bytes());
    }

    /// Reads an entry.
    pub(super) fn decode(b: &[u8; ENTRY_BYTES]) -> Entry {
        let word = |at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        Entry {
            object: ObjectId { epoch: word(0), number: word(4) },
            index: u16::from_le_bytes([b[8], b[9]]),
            crc: word(12),
        }
    }
}
