//! The record of a cached block in PCM: complete in itself, so that nothing has to be followed or trusted.
//!
//! ```text
//!  0  LBN (4)         4  valid fragments (1)   5  zero (3)
//!  8  sequence number (8)
//! 16  digest of the valid fragments (8)
//! 24  zero (4)       28  CRC32C of the 28 bytes before; 0 stands for no record
//! ```
//!
//! A stop can tear a record between words of 8 bytes: then its CRC is wrong, and it is none. Zeroing the
//! last word takes a record away.

use frit_media::checksum::crc32c;

/// Bytes of a record.
pub(super) const RECORD_BYTES: u64 = 32;

/// Where the word with the CRC lies in it.
pub(super) const CRC_WORD_AT: u64 = 24;

/// What a record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub(super) lbn: u32,
    /// Fragments of 512 bytes, bit 0 the first.
    pub(super) valid: u8,
    /// Later records of a block have higher numbers.
    pub(super) seq: u64,
    /// Of the valid fragments, one behind the other.
    pub(super) digest: u64,
}

/// The CRC as it is stored.
fn crc(bytes: &[u8]) -> u32 {
    crc32c(bytes).max(1)
}

impl Record {
    pub(super) fn bytes(&self) -> [u8; RECORD_BYTES as usize] {
        let mut b = [0; RECORD_BYTES as usize];
        b[..4].copy_from_slice(&self.lbn.to_le_bytes());
        b[4] = self.valid;
        b[8..16].copy_from_slice(&self.seq.to_le_bytes());
        b[16..24].copy_from_slice(&self.digest.to_le_bytes());
        let crc = crc(&b[..28]);
        b[28..].copy_from_slice(&crc.to_le_bytes());
        b
    }

    /// The record that bytes hold, if they hold one.
    pub(super) fn read(b: &[u8; RECORD_BYTES as usize]) -> Option<Record> {
        let word = |at: usize| {
            u64::from_le_bytes([
                b[at],
                b[at + 1],
                b[at + 2],
                b[at + 3],
                b[at + 4],
                b[at + 5],
                b[at + 6],
                b[at + 7],
            ])
        };
        let stored = (word(24) >> 32) as u32;
        if stored == 0 || stored != crc(&b[..28]) || b[4] == 0 {
            return None;
        }
        Some(Record { lbn: word(0) as u32, valid: b[4], seq: word(8), digest: word(16) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_and_no_part_of_it_does() {
        let r = Record { lbn: 0xDEAD_BEEF, valid: 0x81, seq: 1 << 40, digest: 77 };
        let whole = r.bytes();
        assert_eq!(Record::read(&whole), Some(r));
        let other = Record { lbn: 5, valid: 0xFF, seq: (1 << 40) + 1, digest: 78 }.bytes();
        for words in 1..15_u8 {
            let mut torn = whole;
            for w in (0..4).filter(|w| words >> w & 1 == 1) {
                torn[8 * w..8 * w + 8].copy_from_slice(&other[8 * w..8 * w + 8]);
            }
            assert_eq!(Record::read(&torn), None, "{words:04b}");
        }
        let mut gone = whole;
        gone[CRC_WORD_AT as usize..].fill(0);
        assert_eq!(Record::read(&gone), None);
        assert_eq!(Record::read(&[0; 32]), None);
    }
}
