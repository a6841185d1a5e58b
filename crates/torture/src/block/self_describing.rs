//! Self-describing sectors: each sector that the harness writes holds its address and its version.
//!
//! ```text
//! 0   8  the sector's address, xor MARK        16 492  filler that follows from address and version
//! 8   8  version: the request that wrote it   508   4  CRC32C of the 508 bytes before, masked when even
//! ```
//! All data that ends with its own CRC32C has the same CRC32C, so a layer with no other checksum
//! cannot distinguish such sectors. Programs write such data, so sectors of odd versions are like
//! that. In sectors of even versions the checksum is masked, as in LevelDB.
//!
//! A sector of zeros was never written, or was discarded: version 0. Stamps on sectors instead of
//! 4 KiB blocks reveal torn and mixed blocks: a block is the versions of its eight sectors, and all
//! of them must come from one state that the block once had.

use frit_core::split_mix::mix;

/// Bytes of a sector.
pub const SECTOR: usize = 512;
/// Number of sectors of a 4 KiB block, which must be old or new as a whole.
pub const PER_BLOCK: usize = 8;
/// Bytes of a block.
pub const BLOCK: usize = SECTOR * PER_BLOCK;

const MARK: u64 = 0x6672_6974_746F_7274;

/// Versions of the sectors of a block.
pub type Versions = [u32; PER_BLOCK];

fn checksum(bytes: &[u8]) -> [u8; 4] {
    let crc = frit_media::checksum::crc32c(&bytes[..508]);
    let masked = if bytes[8] & 1 == 0 { crc.rotate_right(15).wrapping_add(0x5EED_0FF5) } else { crc };
    masked.to_le_bytes()
}

/// Fills a sector with its stamp.
pub fn fill(sector: u64, version: u32, into: &mut [u8]) {
    into[..8].copy_from_slice(&(sector ^ MARK).to_le_bytes());
    into[8..16].copy_from_slice(&u64::from(version).to_le_bytes());
    let mut x = mix(sector ^ u64::from(version) << 32);
    for word in into[16..504].chunks_exact_mut(8) {
        x = x.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        word.copy_from_slice(&x.to_le_bytes());
    }
    into[504..508].fill(version as u8);
    let sum = checksum(into);
    into[508..].copy_from_slice(&sum);
}

/// Fills several sectors with their stamps.
pub fn fill_all(first: u64, version: u32, into: &mut [u8]) {
    for (i, s) in into.chunks_exact_mut(SECTOR).enumerate() {
        fill(first + i as u64, version, s);
    }
}

/// Error of a sector's contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadSector {
    /// Neither zeros nor a stamp with a matching checksum: torn, mixed or damaged.
    Torn,
    /// A valid stamp of another sector.
    Other {
        /// Address of that sector.
        sector: u64,
        /// Version of that sector.
        version: u32,
    },
}

/// Returns the version of a sector from its bytes.
///
/// # Errors
/// Contents that this sector never had.
pub fn version(sector: u64, bytes: &[u8]) -> Result<u32, BadSector> {
    let word = |at: usize| {
        let mut w = [0; 8];
        w.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(w)
    };
    if word(0) == 0 && bytes == [0; SECTOR] {
        return Ok(0);
    }
    if checksum(bytes) != bytes[508..512] || word(8) > u64::from(u32::MAX) {
        return Err(BadSector::Torn);
    }
    let (is, version) = (word(0) ^ MARK, word(8) as u32);
    if is == sector { Ok(version) } else { Err(BadSector::Other { sector: is, version }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_come_back_and_damage_is_seen() {
        let mut s = [0u8; SECTOR];
        assert_eq!(version(9, &s), Ok(0));
        fill(9, 77, &mut s);
        assert_eq!(version(9, &s), Ok(77));
        assert_eq!(version(8, &s), Err(BadSector::Other { sector: 9, version: 77 }));
        for bit in [0, 70, 200 * 8, 507 * 8 + 1, 511 * 8] {
            let mut t = s;
            t[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(version(9, &t), Err(BadSector::Torn), "bit {bit}");
        }
    }
}
