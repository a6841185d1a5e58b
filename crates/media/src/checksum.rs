//! Checksums: CRC32C for records, and a 64-bit digest for the data of pages. The digest accounts
//! for half of the work that a live volume does on its bytes.
//!
//! Page data uses another polynomial than CRC32C, because users' data may itself contain CRC32C
//! values: all sectors that end with the CRC32C of their other bytes have the same CRC32C, so
//! CRC32C could not distinguish two versions of such a sector.

use crc_fast::{CrcAlgorithm, Digest, checksum};
use frit_core::convert::bounded_u32;

// None of these functions is inlined: the code of crc-fast is large, and a call takes about 1 ns.

/// Returns the CRC32C (Castagnoli, RFC 3720, 12.1) of `bytes`. 64 bytes take about 15 ns, 4 KiB
/// about 60 ns.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    // A CRC of 32 bits is in the lower half.
    bounded_u32(checksum(CrcAlgorithm::Crc32Iscsi, bytes))
}

/// Returns the CRC32C of the bytes with the CRC32C `crc` and the bytes in `more`, one after the
/// other.
#[must_use]
pub fn crc32c_append(crc: u32, more: &[u8]) -> u32 {
    // The register of the algorithm is the complement of the CRC.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(more);
    bounded_u32(digest.finalize())
}

/// Returns the digest of a page or of a part of it: CRC-64/NVME (NVM Express NVM Command Set
/// Specification 1.0, 5.2.1.3.4), computed with vectors of carry-less products; 4 KiB take about
/// 65 ns.
#[must_use]
pub fn digest(data: &[u8]) -> u64 {
    checksum(CrcAlgorithm::Crc64Nvme, data)
}

/// Returns the stored form of a digest: a CRC32C over the digest and over `owner`, which identifies
/// the owner of the data. Random damage remains undetected with a probability of 1 in 2^32.
#[must_use]
pub fn seal(digest: u64, owner: &[u8]) -> u32 {
    crc32c_append(crc32c(&digest.to_le_bytes()), owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn published_values() {
        // Sources: RFC 3720, appendix B.4; the NVMe specification's first example, 4 KiB of zeros.
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(digest(&[0; 4096]), 0x6482_D367_EB22_B64E);
        // The check value of the catalogue of parametrised CRC algorithms.
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    }

    /// CRC32C, a bit at a time.
    fn crc32c_by_bits(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ ((crc & 1) * 0x82F6_3B78))
        })
    }

    #[test]
    fn crc32c_of_any_length_and_in_parts_is_that_of_the_definition() {
        let bytes: Vec<u8> = (0..1500u32).map(|i| ((i * i) >> 5) as u8).collect();
        for len in (0..300).chain([508, 512, 1023, 1500]) {
            let whole = crc32c_by_bits(&bytes[..len]);
            assert_eq!(crc32c(&bytes[..len]), whole, "{len} bytes");
            for at in [0, 1, 7, 8, 60, 255].into_iter().filter(|at| *at <= len) {
                assert_eq!(
                    crc32c_append(crc32c(&bytes[..at]), &bytes[at..len]),
                    whole,
                    "{at} of {len} bytes"
                );
            }
        }
    }

    #[test]
    fn one_or_two_flipped_bits_of_a_page_are_seen() {
        let mut page: Vec<u8> = (0..4096u32).map(|i| ((i * 31) >> 3) as u8).collect();
        let whole = seal(digest(&page), b"owner");
        // A CRC is linear: two flips cancel each other only if each of them alone gives the same
        // result.
        let mut seen = HashSet::new();
        for bit in 0..page.len() * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(seen.insert(seal(digest(&page), b"owner") ^ whole), "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(!seen.contains(&0));
    }

    #[test]
    fn data_that_ends_with_its_own_crc32c_has_a_digest_of_its_own() {
        let stamped = |n: u8| {
            let mut sector = vec![n; 508];
            let crc = crc32c(&sector);
            sector.extend(crc.to_le_bytes());
            sector
        };
        assert_eq!(crc32c(&stamped(1)), crc32c(&stamped(2)));
        assert_ne!(digest(&stamped(1)), digest(&stamped(2)));
    }
}
