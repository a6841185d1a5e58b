//! Recomputes checksums after bytes were changed. Without it, no test reaches the code that runs
//! after a checksum matches.

use frit_fs::Geometry;

/// Bytes of a block.
const BLOCK: usize = 4096;

fn crc(start: u32, words: &[u64]) -> u32 {
    words.iter().fold(start, |crc, word| frit_media::checksum::crc32c_append(crc, &word.to_le_bytes()))
}

fn word(image: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(image.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn words(image: &[u8], at: usize, count: usize) -> Option<Vec<u64>> {
    (0..count).map(|i| word(image, at + i * 8)).collect()
}

fn put(image: &mut [u8], at: usize, word: u64) {
    if let Some(to) = image.get_mut(at..at + 8) {
        to.copy_from_slice(&word.to_le_bytes());
    }
}

/// Returns the initial value of every checksum, from the superblock's UUID.
fn salt(image: &[u8]) -> u32 {
    words(image, 16, 2).map_or(0, |uuid| crc(0, &uuid))
}

/// Updates the checksum of the superblock, without its copy.
pub fn superblock(image: &mut [u8]) {
    if let Some(all) = words(image, 0, 63) {
        put(image, 63 * 8, u64::from(crc(0, &all)));
    }
}

/// Updates the checksum of an inode, given its number.
pub fn inode(image: &mut [u8], g: &Geometry, ino: u64) {
    let at = (g.inodes_at + (ino - 1) * 256) as usize;
    if let Some(all) = words(image, at, 32) {
        let high = all[0] >> 32;
        let check = crc(crc(salt(image), &[ino, high]), &all[1..]);
        put(image, at, high << 32 | u64::from(check));
    }
}

/// Updates the checksum of the ledger.
pub fn ledger(image: &mut [u8], g: &Geometry) {
    if let Some(all) = words(image, g.ledger_at as usize, 7) {
        let check = crc(salt(image), &all);
        put(image, g.ledger_at as usize + 56, u64::from(check));
    }
}

/// Updates the checksum of a line of the bitmap.
pub fn bitmap(image: &mut [u8], g: &Geometry, line: u64) {
    let at = (g.bitmap_at + line * 512) as usize;
    if let Some(all) = words(image, at, 63) {
        let check = crc(crc(salt(image), &[line]), &all);
        put(image, at + 504, u64::from(check));
    }
}

/// Updates the checksums of a block of extents of an inode.
pub fn extents(image: &mut [u8], block: u64, ino: u64) {
    for at in (0..BLOCK).step_by(256).map(|line| block as usize * BLOCK + line) {
        if let Some(all) = words(image, at, 32) {
            let check = crc(crc(salt(image), &[ino, at as u64]), &all[1..]);
            put(image, at, u64::from(check));
        }
    }
}

/// Updates the checksum of a directory's name at a slot of block `page`.
pub fn name(image: &mut [u8], block: u64, (dir, page): (u64, u64), slot: usize) {
    let at = block as usize * BLOCK + slot * 32;
    let Some(first) = word(image, at) else { return };
    let slots = 1 + ((first >> 56) as usize).saturating_sub(16).div_ceil(32);
    if let Some(all) = words(image, at, slots * 4) {
        let number = page * 128 + slot as u64;
        let check = crc(crc(salt(image), &[dir, number, first]), &all[2..]);
        put(image, at + 8, u64::from(check));
    }
}
