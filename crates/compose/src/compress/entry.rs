//! Entries of the table: the place and the digest of a chunk.

use super::config::ENTRY_BYTES;

/// Number of the algorithm of a chunk whose entry is lost.
const LOST: u8 = u8::MAX;

/// Entry of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Entry {
    /// First sector on the device.
    pub(super) first: u64,
    /// CRC-64/NVME of the contents.
    pub(super) digest: u64,
    /// Length of the stored form, in bytes.
    pub(super) stored: u32,
    /// Number of sectors; 0 if the chunk was never written, was discarded or holds zeros.
    pub(super) sectors: u16,
    /// Number of the algorithm of the stored form.
    pub(super) algorithm: u8,
}

impl Entry {
    /// Entry of a chunk whose table sector is lost.
    pub(super) const LOST: Entry = Entry { first: 0, digest: 0, stored: 0, sectors: 0, algorithm: LOST };

    /// Returns `true` for a chunk that reads as zeros.
    pub(super) fn is_hole(&self) -> bool {
        self.sectors == 0 && self.algorithm != LOST
    }

    /// Returns `true` if the place of the chunk is lost.
    pub(super) fn is_lost(&self) -> bool {
        self.algorithm == LOST
    }

    /// First sector (6 bytes), sectors (2), stored bytes (4), algorithm (1), zeros (3), digest (8).
    pub(super) fn encode(&self, into: &mut [u8]) {
        into[..6].copy_from_slice(&self.first.to_le_bytes()[..6]);
        into[6..8].copy_from_slice(&self.sectors.to_le_bytes());
        into[8..12].copy_from_slice(&self.stored.to_le_bytes());
        into[12] = self.algorithm;
        into[16..24].copy_from_slice(&self.digest.to_le_bytes());
    }

    /// Reads an entry.
    pub(super) fn decode(b: &[u8; ENTRY_BYTES]) -> Entry {
        let number = |range: std::ops::Range<usize>| {
            b[range].iter().rev().fold(0u64, |n, &byte| n << 8 | u64::from(byte))
        };
        Entry {
            first: number(0..6),
            sectors: number(6..8) as u16,
            stored: number(8..12) as u32,
            algorithm: b[12],
            digest: number(16..24),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_their_documented_bytes() {
        let e = Entry {
            first: 0x0102_0304_0506,
            digest: 0x1122_3344_5566_7788,
            stored: 700,
            sectors: 2,
            algorithm: 1,
        };
        let mut b = [0; ENTRY_BYTES];
        e.encode(&mut b);
        let digest = [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11];
        assert_eq!(b[..16], [6, 5, 4, 3, 2, 1, 2, 0, 188, 2, 0, 0, 1, 0, 0, 0]);
        assert_eq!(b[16..], digest);
        assert_eq!(Entry::decode(&b), e);
        assert!(Entry::decode(&[0; ENTRY_BYTES]).is_hole());
    }
}
