//! Bytes of a superblock. Most inputs get valid checksums, so that the code behind the checks is
//! reached. The superblock may be refused, but without a panic.

#![no_main]

use frit_volume::superblock::{COPY_BYTES, decode_newest};
use libfuzzer_sys::fuzz_target;

/// Sets the checksums, where the lengths allow it.
fn set_checksums(bytes: &mut [u8]) {
    for copy in bytes.chunks_mut(COPY_BYTES) {
        let Some(len) = copy.get(12..16).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize) else { return };
        if (20..=copy.len()).contains(&len) {
            let crc = frit_media::checksum::crc32c(&copy[..len - 4]);
            copy[len - 4..len].copy_from_slice(&crc.to_le_bytes());
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&form, bytes)) = bytes.split_first() else { return };
    let mut bytes = bytes.to_vec();
    bytes.resize(if form % 2 == 0 { COPY_BYTES } else { 2 * COPY_BYTES }, 0);
    if form % 8 < 6 {
        set_checksums(&mut bytes);
    }
    match decode_newest(&bytes) {
        Ok((s, _)) => {
            let _ = (s.uuid_text(), s.sha256_text(), frit_stack::Stack::parse(&s.name, &s.stack, &[]));
        }
        Err(why) => assert!(!why.is_empty()),
    }
});
