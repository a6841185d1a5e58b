//! Entries of the map: the object of a chunk, its place in the object, and its checksum.

use super::config::ENTRY_BYTES;
use frit_core::ObjectId;
use frit_media::checksum::{digest, seal};

/// Epoch of a chunk whose entry is lost. No opening has this number.
const LOST: u32 = u32::MAX;

/// Checksum of a chunk: of its contents and its number. A CRC32C of the contents alone is the same
/// for all contents that end with their own CRC32C.
pub(super) fn checksum(contents: &[u8], chunk: u32) -> u32 {
    seal(digest(contents), &chunk.to_le_bytes())
}

/// Entry of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Entry {
    /// The object. Epoch 0: the chunk was never written, or was discarded.
    pub(super) object: ObjectId,
    /// Place in the object, in chunks.
    pub(super) index: u16,
    /// [`checksum`] of the contents.
    pub(super) sum: u32,
}

impl Entry {
    /// Entry of a chunk whose sector of the table is lost.
    pub(super) const LOST: Entry = Entry { object: ObjectId { epoch: LOST, number: 0 }, index: 0, sum: 0 };

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

    /// Epoch (4 bytes), number (4), index (2), zeros (2), checksum (4).
    pub(super) fn encode(&self, into: &mut [u8]) {
        into[..4].copy_from_slice(&self.object.epoch.to_le_bytes());
        into[4..8].copy_from_slice(&self.object.number.to_le_bytes());
        into[8..10].copy_from_slice(&self.index.to_le_bytes());
        into[12..16].copy_from_slice(&self.sum.to_le_bytes());
    }

    /// Reads an entry.
    pub(super) fn decode(b: &[u8; ENTRY_BYTES]) -> Entry {
        let word = |at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        Entry {
            object: ObjectId { epoch: word(0), number: word(4) },
            index: u16::from_le_bytes([b[8], b[9]]),
            sum: word(12),
        }
    }
}
