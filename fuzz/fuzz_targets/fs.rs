//! Changes of the image of a small file system; most inputs get valid checksums afterwards. The image
//! is checked, opened, walked and repaired. Every step ends, without a panic, and a check after the
//! repair is clean.

#![no_main]

use frit_fs::{Geometry, Mapped, Medium};
use frit_torture::fs::damage::{PopulatedImage, exercise, populate, checksums};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, OnceLock};

static MADE: OnceLock<PopulatedImage> = OnceLock::new();

/// Bytes of one change: which piece of metadata, where in it, the form, a value.
const CHANGE: usize = 12;

/// One change: bytes of the value at a place of a piece of metadata, and what seals it.
fn change(image: &mut [u8], made: &PopulatedImage, g: &Geometry, bytes: &[u8]) {
    let (_, range) = &made.metadata[usize::from(bytes[0]) % made.metadata.len()];
    let offset = u64::from(u16::from_le_bytes([bytes[1], bytes[2]])) % (range.end - range.start);
    let at = (range.start + offset) as usize / 8 * 8;
    let len = usize::from(bytes[3] & 7) + 1;
    image[at..at + len].copy_from_slice(&bytes[4..4 + len]);
    if bytes[3] & 0x80 != 0 {
        return;
    }
    let inodes = g.inodes_at as usize..(g.inodes_at + g.inodes * 256) as usize;
    let block = at as u64 / 4096;
    match bytes[3] >> 5 & 3 {
        _ if inodes.contains(&at) => checksums::inode(image, g, (at - inodes.start) as u64 / 256 + 1),
        0 => checksums::extents(image, block, u64::from(bytes[3] >> 3 & 3) + 12),
        1 => checksums::name(image, block, (u64::from(bytes[3] >> 3 & 3) + 1, 0), at % 4096 / 32),
        2 => checksums::name(image, block, (11, u64::from(bytes[3] >> 3 & 3)), at % 4096 / 32),
        _ => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    let made = MADE.get_or_init(|| populate().expect("the image can be made"));
    let Ok(g) = Geometry::divide(made.image.len() as u64, Some(32)) else { return };
    let mut image = made.image.clone();
    let Some((&form, bytes)) = bytes.split_first() else { return };
    bytes.chunks_exact(CHANGE).take(64).for_each(|bytes| change(&mut image, made, &g, bytes));
    if form % 8 < 6 {
        checksums::superblock(&mut image);
        checksums::ledger(&mut image, &g);
        (0..g.lines).for_each(|line| checksums::bitmap(&mut image, &g, line));
    }
    let Ok(medium) = Mapped::anonymous(image.len() as u64) else { return };
    medium.write_data(0, &image);
    let medium = Arc::new(medium);
    exercise(&medium);
    if let Ok(report) = frit_fs::check(&medium) {
        assert!(report.is_clean(), "after a repair: {report:#?}");
    }
});
