//! Tests of the superblock: it survives power cuts and refuses unknown versions and features.

use super::encoding::{decode, encode};
use super::*;
use crate::lock::VolumeLock;
use std::path::Path;

fn sample(sequence: u64) -> Superblock {
    let medium = |name: &str, kind, path: &str| MediumRecord {
        name: name.into(),
        kind,
        backing: Backing::File,
        bytes: 1 << 20,
        path: path.into(),
        access: FileAccess::default(),
    };
    Superblock {
        sequence,
        features: Features { compatible: 5, ..Features::default() },
        state: VolumeState::Dirty,
        uuid: [7; 16],
        boot_id: [9; 16],
        created_unix: 1_795_238_589,
        created_by: "0.1.0".into(),
        name: "a stack".into(),
        stack: "[hfsl]\nSSW = 2048\n".repeat(40),
        sha256: [3; 32],
        media: vec![
            medium("nand", MediumKind::Nand, "/dev/x"),
            medium("pcm", MediumKind::Pcm, ""),
            MediumRecord { access: FileAccess::IoUring, ..medium("disk", MediumKind::Disk, "") },
            MediumRecord {
                backing: Backing::ObjectStore,
                ..medium("remote", MediumKind::Object, "s3://bucket/prefix?timeout_s=5")
            },
        ],
        params: vec![("SSW".into(), "1024".into()), ("gc".into(), "fi=fo".into())],
        recovery: Some(RecoveryRecord {
            unix: 1,
            power_loss: true,
            lost: 3,
            micros: 12,
            ..Default::default()
        }),
    }
}

/// Writes a superblock file with these two copies.
fn file(dir: &Path, copies: [&[u8]; 2]) {
    let mut bytes = vec![0; 2 * COPY_BYTES];
    for (n, copy) in copies.iter().enumerate() {
        bytes[n * COPY_BYTES..][..copy.len()].copy_from_slice(copy);
    }
    std::fs::write(dir.join(FILE_NAME), bytes).unwrap();
}

fn opened(dir: &Path) -> Superblock {
    SuperblockFile::open(dir, true).unwrap().current().clone()
}

fn refused(dir: &Path) -> String {
    SuperblockFile::open(dir, false).unwrap_err().to_string()
}

/// Returns an encoded superblock with a change and a valid checksum.
fn changed(s: &Superblock, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut b = encode(s);
    b.truncate(b.len() - 4);
    change(&mut b);
    let crc = frit_media::checksum::crc32c(&b);
    b.extend(crc.to_le_bytes());
    b
}

#[test]
fn what_is_written_is_read() {
    for recovery in [None, sample(1).recovery] {
        let s = Superblock { recovery, ..sample(1) };
        assert_eq!(decode(&encode(&s)), Ok(s));
    }
}

#[test]
fn the_bytes_are_where_the_manual_draws_them() {
    let s = sample(0x0102_0304);
    let b = encode(&s);
    let u32_at = |at: usize| u32::from_le_bytes(b[at..at + 4].try_into().unwrap()) as usize;
    assert_eq!((&b[..8], u32_at(8), u32_at(12)), (&b"fritVOL\0"[..], 1, b.len()));
    assert_eq!((u32_at(16), u32_at(24), u32_at(36)), (0x0102_0304, 5, 2));
    assert_eq!((&b[40..56], &b[56..72], &b[80..112]), (&[7; 16][..], &[9; 16][..], &[3; 32][..]));
    assert_eq!(u32_at(72), 1_795_238_589);
    assert_eq!([112, 116, 120, 124, 128].map(u32_at), [4, 5, 7, s.stack.len(), 18]);
    assert_eq!((u32_at(132), u32_at(136), u32_at(168), u32_at(188)), (3, 1, 12, 3));
    assert_eq!(b[192..196], [0, 0, 2, 0], "the access to each medium");
    assert!(b[196..224].iter().all(|&b| b == 0));
    assert_eq!((&b[224..228], u32_at(228), u32_at(232)), (&[1, 0, 4, 0][..], 6, 1 << 20));
    assert_eq!(&b[240..250], b"nand/dev/x");
    assert_eq!(u32_at(b.len() - 4) as u32, frit_media::checksum::crc32c(&b[..b.len() - 4]));
}

#[test]
fn an_unknown_access_is_the_page_cache() {
    let mut b = encode(&sample(1));
    b[194] = 77;
    let end = b.len() - 4;
    let crc = frit_media::checksum::crc32c(&b[..end]);
    b[end..].copy_from_slice(&crc.to_le_bytes());
    let accesses: Vec<FileAccess> = decode(&b).unwrap().media.iter().map(|m| m.access).collect();
    assert_eq!(accesses, [FileAccess::PageCache; 4]);
}

#[test]
fn the_newer_copy_counts_and_updates_take_turns() {
    let dir = tempfile::tempdir().unwrap();
    let mut made =
        SuperblockFile::create(dir.path(), sample(1), VolumeLock::acquire(dir.path(), false).unwrap())
            .unwrap();
    for n in 2..6 {
        made.update(|s| s.set_param("SSW", &n.to_string())).unwrap();
        assert_eq!(made.current().sequence, n);
    }
    assert_eq!(made.current().params, [("gc".to_owned(), "fi=fo".to_owned()), ("SSW".into(), "5".into())]);
    let expected = made.current().clone();
    drop(made);
    assert_eq!(opened(dir.path()), expected);
    let bytes = std::fs::read(dir.path().join(FILE_NAME)).unwrap();
    let sequence = |n: usize| decode(&bytes[n * COPY_BYTES..][..COPY_BYTES]).unwrap().sequence;
    assert_eq!((sequence(0), sequence(1)), (4, 5));
}

#[test]
fn a_power_cut_at_any_byte_of_an_update_leaves_the_old_or_the_new() {
    let dir = tempfile::tempdir().unwrap();
    let (old, older) = (sample(2), encode(&Superblock { state: VolumeState::Clean, ..sample(1) }));
    let new = Superblock { state: VolumeState::Clean, ..sample(3) };
    let bytes = encode(&new);
    for cut in 0..=bytes.len() {
        // The copy with the odd sequence number is overwritten: its head is new, its tail old.
        let mut torn = older.clone();
        torn.resize(torn.len().max(bytes.len()), 0);
        torn[..cut].copy_from_slice(&bytes[..cut]);
        file(dir.path(), [&encode(&old), &torn]);
        let found = opened(dir.path());
        assert!(found == old || found == new, "cut at {cut}: {found:?}");
        assert!(cut < bytes.len() || found == new);
    }
    // Sectors reach the medium in any order.
    let sectors = bytes.len().div_ceil(512);
    for which in 0..1u32 << sectors.min(10) {
        let mut torn = older.clone();
        torn.resize(torn.len().max(bytes.len()), 0);
        for s in (0..sectors).filter(|s| which >> s & 1 == 1) {
            let range = s * 512..((s + 1) * 512).min(bytes.len());
            torn[range.clone()].copy_from_slice(&bytes[range]);
        }
        file(dir.path(), [&encode(&old), &torn]);
        let found = opened(dir.path());
        assert!(found == old || found == new, "sectors {which:b}");
    }
}

#[test]
fn every_damaged_byte_is_found_and_the_other_copy_taken() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (encode(&sample(2)), encode(&sample(1)));
    for at in 0..a.len() {
        for change in [0x01, 0x80, 0xFF] {
            let mut bad = a.clone();
            bad[at] ^= change;
            assert!(decode(&bad).is_err(), "byte {at}");
            if at % 61 == 0 || at < 16 {
                file(dir.path(), [&bad, &b]);
                let open = SuperblockFile::open(dir.path(), false).unwrap();
                assert_eq!(open.current().sequence, 1, "byte {at}");
                assert!(open.damaged_copy().is_some(), "byte {at}");
                drop(open);
                file(dir.path(), [&bad, &[]]);
                assert!(refused(dir.path()).contains("neither copy"), "byte {at}");
            }
        }
    }
    for len in 0..a.len() {
        assert!(decode(&a[..len]).is_err());
    }
    std::fs::write(dir.path().join(FILE_NAME), &a[..100]).unwrap();
    assert!(refused(dir.path()).contains("neither copy"));
    std::fs::write(dir.path().join(FILE_NAME), b"").unwrap();
    assert!(refused(dir.path()).contains("nothing was changed"));
}

#[test]
fn well_formed_nonsense_is_refused() {
    // The checksum is valid and the contents are not: a bug elsewhere, or an attack. No panic, no
    // excessive allocation.
    let s = sample(1);
    let len = encode(&s).len() - 4;
    for at in (16..len).step_by(1) {
        for value in [0, 1, 0x7F, 0xFF] {
            let bytes = changed(&s, |b| b[at] = value);
            drop(decode(&bytes));
        }
    }
    for (at, value) in [(36, 9u8), (112, 200), (115, 0xFF), (127, 0xFF), (224, 77)] {
        assert!(decode(&changed(&s, |b| b[at] = value)).is_err(), "byte {at}");
    }
}

#[test]
fn newer_versions_and_unknown_features_are_refused_even_beside_a_good_copy() {
    let dir = tempfile::tempdir().unwrap();
    let good = encode(&sample(1));
    file(dir.path(), [&changed(&sample(2), |b| b[8] = 2), &good]);
    assert!(refused(dir.path()).contains("format version 2 is newer than version 1"));
    let features = |f: Features| encode(&Superblock { features: f, ..sample(2) });
    file(dir.path(), [&features(Features { incompatible: 0x10, ..Features::default() }), &good]);
    let e = refused(dir.path());
    assert!(
        e.contains("features that this frit does not know (bits 0x10)") && e.contains("newer frit"),
        "{e}"
    );
    file(dir.path(), [&features(Features { read_only: 2, ..Features::default() }), &good]);
    assert!(refused(dir.path()).contains("only read it"));
    assert_eq!(opened(dir.path()).sequence, 2);
    file(dir.path(), [&features(Features { compatible: 0xFFFF, ..Features::default() }), &good]);
    SuperblockFile::open(dir.path(), false).unwrap();
}

#[test]
fn a_stack_that_is_too_long_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut made =
        SuperblockFile::create(dir.path(), sample(1), VolumeLock::acquire(dir.path(), false).unwrap())
            .unwrap();
    let e = made.update(|s| s.set_param("x", &"y".repeat(COPY_BYTES))).unwrap_err().to_string();
    assert!(e.contains("there is room for 65536"), "{e}");
    drop(made);
    assert_eq!(opened(dir.path()), sample(1));
}
