//! Sizing of the image of a pool.

/// Bytes of the pool's file system for each inode, by default: its files are mostly large.
const BYTES_PER_INODE: u64 = 32 << 10;
/// Minimum number of inodes, and the maximum by default.
const INODES: (u64, u64) = (16 << 10, 4 << 20);
/// Bytes of the image for each inode: half is the inode, the other half is for names, directories
/// and extended attributes.
const BYTES: u64 = 512;
/// Further bytes of the image: the journal, and initial blocks.
const BASE: u64 = 16 << 20;

/// Returns the size of an image and its number of inodes, for a pool on a file system of `place`
/// bytes.
pub(super) fn sizes(place: u64, bytes: Option<u64>, inodes: Option<u64>) -> (u64, u64) {
    match (bytes, inodes) {
        (Some(bytes), Some(inodes)) => (bytes, inodes),
        (Some(bytes), None) => (bytes, (bytes - BASE.min(bytes / 2)) / BYTES),
        (None, inodes) => {
            let inodes = inodes.unwrap_or((place / BYTES_PER_INODE).clamp(INODES.0, INODES.1));
            ((inodes.saturating_mul(BYTES) + BASE).next_multiple_of(4096), inodes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_a_small_part_of_its_place() {
        for place in [4 << 30, 64 << 30, 1 << 40] {
            let (bytes, inodes) = sizes(place, None, None);
            assert!(bytes < place / 30 && inodes >= INODES.0, "{place}: {bytes}");
        }
        assert_eq!(sizes(1 << 30, None, Some(1000)), (BASE + 512_000, 1000));
        assert_eq!(sizes(1 << 30, Some(48 << 20), None), (48 << 20, 64 << 10));
        assert_eq!(sizes(1 << 30, Some(48 << 20), Some(7)), (48 << 20, 7));
    }
}
