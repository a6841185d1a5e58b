//! CRC32C (Castagnoli), of the data of pages: half of what a live volume does with its bytes.

use crc_fast::{CrcAlgorithm, checksum};

/// From here on vectors of carry-less products are faster than the processor's CRC instruction:
/// 4 KiB take 90 ns instead of 190 ns, 512 bytes 15 ns instead of 49 ns.
const VECTORS_FROM: usize = 256;

/// The checksum of some bytes.
#[inline]
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    if bytes.len() < VECTORS_FROM {
        return crc32c::crc32c(bytes);
    }
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

/// The checksum of the bytes whose checksum is `crc`, and a few more behind them.
#[inline]
#[must_use]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_agree_with_the_published_value() {
        // RFC 3720, appendix B.4, and the check value of the CRC catalogue.
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        let bytes: Vec<u8> = (0..5000u32).map(|i| ((i * 31) >> 3) as u8).collect();
        for len in [0, 1, 255, 256, 257, 512, 4095, 4096, 5000] {
            assert_eq!(crc32c(&bytes[..len]), ::crc32c::crc32c(&bytes[..len]), "{len}");
            assert_eq!(crc32c_append(crc32c(&bytes[..len]), &bytes[len..]), crc32c(&bytes));
        }
    }
}
