//! Fuzz test of the superblock: any bytes give a result or an error, never a panic or a formatted
//! medium. `PROPTEST_CASES=1000000 cargo test --release -p frit-volume --test all fuzz::` runs more
//! cases.

use crate::common::{self, create, open_read_only};
use frit_core::Hints;
use frit_volume::inspect;
use frit_volume::superblock::{COPY_BYTES, decode_newest};
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Returns a volume to be damaged, and its valid superblock.
fn volume() -> &'static (tempfile::TempDir, PathBuf, Vec<u8>) {
    static MADE: OnceLock<(tempfile::TempDir, PathBuf, Vec<u8>)> = OnceLock::new();
    MADE.get_or_init(|| {
        let (dir, volume) = common::place_in_memory();
        let mut v = create(&volume);
        v.write(0, &[9; 4096], Hints::NONE).unwrap();
        v.set_param("SSW", "1024").unwrap();
        v.close().unwrap();
        let bytes = std::fs::read(volume.join("frit.volume")).unwrap();
        (dir, volume, bytes)
    })
}

/// Corrects the checksums where the lengths allow it.
fn seal(bytes: &mut [u8]) {
    for copy in bytes.chunks_mut(COPY_BYTES) {
        let len = copy.get(12..16).map_or(0, |b| u32::from_le_bytes(b.try_into().unwrap()) as usize);
        if (20..=copy.len()).contains(&len) {
            let crc = frit_media::checksum::crc32c(&copy[..len - 4]);
            copy[len - 4..len].copy_from_slice(&crc.to_le_bytes());
        }
    }
}

/// Strategy of small, large and arbitrary values.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..300, Just(u32::MAX), Just(1 << 31), Just(65_536), any::<u32>()]
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..2000), magic in any::<bool>()) {
        let mut bytes = bytes;
        if magic && bytes.len() > 16 {
            bytes[..12].copy_from_slice(b"fritVOL\0\x01\0\0\0");
            let len = bytes.len() as u32;
            bytes[12..16].copy_from_slice(&len.to_le_bytes());
        }
        bytes.resize(COPY_BYTES, 0);
        seal(&mut bytes);
        if let Err(why) = decode_newest(&bytes) {
            prop_assert!(!why.is_empty());
        }
    }

    #[test]
    fn well_formed_changes_are_answered(
        words in prop::collection::vec((0usize..64, word()), 0..4),
        bytes in prop::collection::vec((0usize..3000, any::<u8>()), 0..6),
        both in any::<bool>(),
        sealed in any::<bool>(),
    ) {
        let (_, dir, good) = volume();
        let mut bad = good.clone();
        for base in [0, COPY_BYTES].into_iter().take(if both { 2 } else { 1 }) {
            for &(n, value) in &words {
                bad[base + 4 * n..][..4].copy_from_slice(&value.to_le_bytes());
            }
            for &(at, value) in &bytes {
                bad[base + at] = value;
            }
        }
        if sealed {
            seal(&mut bad);
        }
        let path = dir.join("frit.volume");
        std::fs::write(&path, &bad).unwrap();
        drop(inspect(dir));
        if let Ok(mut v) = open_read_only(dir) {
            prop_assert!(sealed || common::read(&mut v, 0, 4096) == [9; 4096]);
        }
        prop_assert!(std::fs::read(&path).unwrap() == bad, "looking at it changed it");
        std::fs::write(&path, good).unwrap();
    }
}

#[test]
fn the_volume_is_there_after_all_of_it() {
    let (_, dir, _) = volume();
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 4);
}
