//! The header that a device keeps in its store. It identifies the device, so that the store of
//! another device is refused.

use crate::{AnyStore, Store};

/// Size of a header in bytes. Its layout is: magic (offset 0, 8 bytes), description of the device
/// (8, 40 bytes), serial number (48, 8 bytes, little endian), zeros (56, 4 bytes), CRC32C over the
/// bytes before it (60, 4 bytes).
pub(crate) const HEADER_BYTES: usize = 64;

/// Offset of the serial number in the header.
const SERIAL_AT: usize = 48;

/// The bytes of a header.
pub(crate) type HeaderBytes = [u8; HEADER_BYTES];

/// Returns `header` with the serial number (little endian) and the checksum filled in.
pub(crate) fn finish_header(mut header: HeaderBytes, serial: u64) -> HeaderBytes {
    header[SERIAL_AT..SERIAL_AT + 8].copy_from_slice(&serial.to_le_bytes());
    let crc = crate::checksum::crc32c(&header[..HEADER_BYTES - 4]);
    header[HEADER_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// Checks that the store holds at `at` the header `expected` with serial number `serial`. `what`
/// describes the device in error messages.
///
/// # Errors
/// A message for a damaged header, another kind of device, another geometry, or another device.
pub(crate) fn verify_header(
    store: &AnyStore,
    at: u64,
    expected: HeaderBytes,
    serial: u64,
    what: &str,
) -> Result<(), String> {
    let mut found = [0; HEADER_BYTES];
    store.read(at, &mut found).map_err(|e| e.to_string())?;
    check(&found, expected, serial, what)
}

fn check(found: &HeaderBytes, expected: HeaderBytes, serial: u64, what: &str) -> Result<(), String> {
    if *found == finish_header(expected, serial) {
        return Ok(());
    }
    if found[..8] != expected[..8] {
        return Err(format!("the store contains data, but no {what}"));
    }
    let mut number = [0; 8];
    number.copy_from_slice(&found[SERIAL_AT..SERIAL_AT + 8]);
    let theirs = u64::from_le_bytes(number);
    if *found == finish_header(expected, theirs) {
        return Err(format!(
            "the store is that of another device: serial number {theirs:016x}, expected {serial:016x}; it belongs to \
             another volume, put the right file back"
        ));
    }
    Err(format!("the store's header is damaged, or describes a device other than {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_difference_has_its_words() {
        let mut expected = [0; HEADER_BYTES];
        expected[..8].copy_from_slice(b"fritTEST");
        expected[8] = 1;
        let check = |found: HeaderBytes| check(&found, expected, 7, "NAND of 2 blocks");
        assert_eq!(check(finish_header(expected, 7)), Ok(()));
        assert!(
            check(finish_header(expected, 8))
                .unwrap_err()
                .contains("another device: serial number 0000000000000008")
        );
        assert!(check([0; HEADER_BYTES]).unwrap_err().contains("no NAND of 2 blocks"));
        let mut wider = expected;
        wider[8] = 2;
        assert!(check(finish_header(wider, 7)).unwrap_err().contains("a device other than NAND of 2 blocks"));
        let mut damaged = finish_header(expected, 7);
        damaged[SERIAL_AT + 1] ^= 1;
        assert!(check(damaged).unwrap_err().contains("damaged"));
    }
}
