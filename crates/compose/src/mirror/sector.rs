//! Sectors of the metadata area: the superblock and the bitmap of marked regions.
//!
//! Each sector is atomic on the device and describes itself: magic, sequence number, CRC32C.
//! `docs/reference/composers/mirror.md` draws every byte.

use super::layout::REGIONS_PER_SECTOR;
use crc_fast::{CrcAlgorithm, checksum};

/// Bytes of a sector of metadata.
pub(super) const SECTOR: usize = 512;

/// Contents of a sector of metadata.
pub(super) type SectorBytes = [u8; SECTOR];

const SUPERBLOCK_MAGIC: &[u8; 8] = b"fritMIRR";
const BITMAP_MAGIC: &[u8; 8] = b"fritMBIT";
const VERSION: u32 = 1;
/// Place of the checksum, which covers the bytes before it.
const CRC_AT: usize = SECTOR - 4;
/// Place of the bits in a sector of the bitmap.
const BITS_AT: usize = 32;

/// State of a mirror as a side knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Superblock {
    /// Identity of the mirror.
    pub(super) identity: u64,
    /// Number of the side.
    pub(super) side: u32,
    /// Number of sides.
    pub(super) sides: u32,
    /// Number of changes of the set of sides in service, at the last of which this was written.
    pub(super) events: u64,
    /// Size of the data, in bytes.
    pub(super) data: u64,
    /// Size of a region, in bytes.
    pub(super) region: u64,
    /// Sides that are stale, one bit each.
    pub(super) stale: u32,
}

/// What a sector of metadata holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found<T> {
    /// A valid sector.
    Valid(T),
    /// Zeros.
    Blank,
    /// Other contents.
    Damaged,
}

fn u32_at(b: &SectorBytes, at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn u64_at(b: &SectorBytes, at: usize) -> u64 {
    u64::from(u32_at(b, at)) | u64::from(u32_at(b, at + 4)) << 32
}

fn crc(b: &SectorBytes) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, &b[..CRC_AT]) as u32
}

fn seal(mut b: SectorBytes) -> SectorBytes {
    let crc = crc(&b);
    b[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
    b
}

fn is_sealed(b: &SectorBytes, magic: &[u8; 8]) -> bool {
    b[..8] == *magic && u32_at(b, CRC_AT) == crc(b)
}

impl Superblock {
    /// Returns the sector.
    pub(super) fn encode(&self) -> SectorBytes {
        let mut b = [0; SECTOR];
        b[..8].copy_from_slice(SUPERBLOCK_MAGIC);
        b[8..12].copy_from_slice(&VERSION.to_le_bytes());
        b[12..16].copy_from_slice(&self.side.to_le_bytes());
        b[16..24].copy_from_slice(&self.identity.to_le_bytes());
        b[24..32].copy_from_slice(&self.events.to_le_bytes());
        b[32..40].copy_from_slice(&self.data.to_le_bytes());
        b[40..48].copy_from_slice(&self.region.to_le_bytes());
        b[48..52].copy_from_slice(&self.sides.to_le_bytes());
        b[52..56].copy_from_slice(&self.stale.to_le_bytes());
        seal(b)
    }

    /// Reads a sector.
    pub(super) fn decode(b: &SectorBytes) -> Found<Superblock> {
        if b.iter().all(|&x| x == 0) {
            return Found::Blank;
        }
        if !is_sealed(b, SUPERBLOCK_MAGIC) || u32_at(b, 8) != VERSION {
            return Found::Damaged;
        }
        Found::Valid(Superblock {
            side: u32_at(b, 12),
            identity: u64_at(b, 16),
            events: u64_at(b, 24),
            data: u64_at(b, 32),
            region: u64_at(b, 40),
            sides: u32_at(b, 48),
            stale: u32_at(b, 52),
        })
    }

    /// Combines the two copies of a side: the newer one, if both are valid.
    pub(super) fn newer(a: Found<Superblock>, b: Found<Superblock>) -> Found<Superblock> {
        match (a, b) {
            (Found::Valid(x), Found::Valid(y)) => Found::Valid(if x.events >= y.events { x } else { y }),
            (Found::Valid(x), _) | (_, Found::Valid(x)) => Found::Valid(x),
            (Found::Blank, Found::Blank) => Found::Blank,
            _ => Found::Damaged,
        }
    }
}

/// Returns a sector of the bitmap. `marked` returns `true` for a marked region, by its number in
/// the sector.
pub(super) fn encode_bitmap(
    identity: u64,
    sequence: u64,
    index: usize,
    marked: impl Fn(usize) -> bool,
) -> SectorBytes {
    let mut b = [0; SECTOR];
    b[..8].copy_from_slice(BITMAP_MAGIC);
    b[8..16].copy_from_slice(&identity.to_le_bytes());
    b[16..24].copy_from_slice(&sequence.to_le_bytes());
    b[24..28].copy_from_slice(&(index as u32).to_le_bytes());
    for i in (0..REGIONS_PER_SECTOR).filter(|&i| marked(i)) {
        b[BITS_AT + i / 8] |= 1 << (i % 8);
    }
    seal(b)
}

/// Reads a sector of the bitmap. Returns its sequence number and the numbers of its marked regions,
/// or `None` if it is not this sector of this mirror.
pub(super) fn decode_bitmap(
    b: &SectorBytes,
    identity: u64,
    index: usize,
) -> Option<(u64, impl Iterator<Item = usize> + '_)> {
    let own = is_sealed(b, BITMAP_MAGIC) && u64_at(b, 8) == identity && u32_at(b, 24) as usize == index;
    let marked = (0..REGIONS_PER_SECTOR).filter(|i| b[BITS_AT + i / 8] >> (i % 8) & 1 == 1);
    own.then_some((u64_at(b, 16), marked))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUPERBLOCK: Superblock = Superblock {
        identity: 7 << 40,
        side: 1,
        sides: 3,
        events: 9 << 33,
        data: 1 << 41,
        region: 4096,
        stale: 4,
    };

    #[test]
    fn superblocks_come_back_and_damage_is_seen() {
        let b = SUPERBLOCK.encode();
        assert_eq!(Superblock::decode(&b), Found::Valid(SUPERBLOCK));
        assert_eq!(Superblock::decode(&[0; SECTOR]), Found::Blank);
        for bit in 0..SECTOR * 8 {
            let mut c = b;
            c[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Superblock::decode(&c), Found::Damaged, "bit {bit}");
        }
    }

    #[test]
    fn the_newer_valid_copy_counts() {
        let newer = Superblock { events: SUPERBLOCK.events + 1, ..SUPERBLOCK };
        let valid = Found::Valid;
        assert_eq!(Superblock::newer(valid(SUPERBLOCK), valid(newer)), valid(newer));
        assert_eq!(Superblock::newer(valid(SUPERBLOCK), Found::Damaged), valid(SUPERBLOCK));
        assert_eq!(Superblock::newer(Found::Blank, valid(newer)), valid(newer));
        assert_eq!(Superblock::newer(Found::Blank, Found::Damaged), Found::Damaged);
    }

    #[test]
    fn bitmaps_come_back_from_their_own_place_only() {
        let marks = [0, 8, 471, REGIONS_PER_SECTOR - 1];
        let b = encode_bitmap(5, 6, 2, |i| marks.contains(&i));
        let (sequence, found) = decode_bitmap(&b, 5, 2).unwrap();
        assert_eq!((sequence, found.collect::<Vec<_>>()), (6, marks.to_vec()));
        assert!(decode_bitmap(&b, 4, 2).is_none() && decode_bitmap(&b, 5, 3).is_none());
        assert!(decode_bitmap(&[0; SECTOR], 5, 2).is_none());
        let mut c = b;
        c[100] ^= 1;
        assert!(decode_bitmap(&c, 5, 2).is_none());
    }
}
