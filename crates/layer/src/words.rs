//! Numbers in words of 8 bytes, which PCM writes atomically.

use frit_media::checksum::crc32c;

/// Bits of a word that hold the number. The others hold the check.
const NUMBER: u64 = u64::MAX >> 16;

/// Encodes a number of 48 bits with a check of 16 bits. The check also covers `kind`, if there is
/// one, so that a word is not taken for one of another kind.
pub(crate) fn seal(number: u64, kind: Option<u8>) -> u64 {
    let number = number & NUMBER;
    let mut b = [0; 9];
    b[..8].copy_from_slice(&number.to_le_bytes());
    b[8] = kind.unwrap_or(0);
    let covered = if kind.is_some() { 9 } else { 8 };
    number | u64::from(crc32c(&b[..covered]) >> 16) << 48
}

/// Decodes a number. Returns `None` if the word is damaged or of another kind.
pub(crate) fn unseal(word: u64, kind: Option<u8>) -> Option<u64> {
    let number = word & NUMBER;
    (seal(number, kind) == word).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_check_themselves() {
        for kind in [None, Some(1), Some(2)] {
            let word = seal(0x1234_5678, kind);
            assert_eq!(unseal(word, kind), Some(0x1234_5678));
            for bit in 0..64 {
                assert_eq!(unseal(word ^ 1 << bit, kind), None, "{kind:?} bit {bit}");
            }
        }
        assert_eq!(unseal(seal(77, Some(1)), Some(2)), None);
        assert_eq!(unseal(0, Some(1)), None, "zeros are no number");
    }
}
