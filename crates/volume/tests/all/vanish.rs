//! Media files that are truncated, deleted or replaced under an open volume cause errors and no
//! signal. Reads go on, and the volume reports why it refuses writes.

use crate::common::{create, open, pattern, place, read, try_open};
use frit_core::Hints;
use frit_volume::superblock::VolumeState;
use frit_volume::{Error, inspect};
use std::fs::OpenOptions;

#[test]
fn a_nand_file_that_is_cut_is_an_error_and_no_signal() {
    let (_dir, dir) = place();
    let mut v = create(&dir);
    let data = pattern(0, 1, 1 << 20);
    v.write(0, &data, Hints::NONE).unwrap();
    v.flush().unwrap();
    let nand = dir.join("nand.medium");
    let len = std::fs::metadata(&nand).unwrap().len();
    OpenOptions::new().write(true).open(&nand).unwrap().set_len(4096).unwrap();
    let (mut failed, mut right) = (0, 0);
    for at in (0..1u64 << 20).step_by(4096) {
        let mut back = [0; 4096];
        match v.read(at, &mut back) {
            Ok(()) => {
                assert!(back == data[at as usize..][..4096], "wrong data at {at}");
                right += 1;
            }
            Err(_) => failed += 1,
        }
    }
    assert!(failed > 200, "{failed} failed, {right} were right");
    let why = v.read_only().unwrap();
    assert!(why.contains("'nand'") && why.contains("4096 bytes") && why.contains("frit check"), "{why}");
    assert!(v.write(0, &data[..4096], Hints::NONE).is_err());
    assert!(v.flush().is_err());
    assert!(v.close().is_err());
    assert_eq!(inspect(&dir).unwrap().superblock.state, VolumeState::Dirty);
    let e = try_open(&dir).unwrap_err().to_string();
    assert!(e.contains(&format!("has 4096 bytes and had {len}")), "{e}");
}

#[test]
fn a_superblock_that_is_deleted_is_found_by_the_next_flush() {
    let (_dir, dir) = place();
    let mut v = create(&dir);
    let data = pattern(0, 1, 64 << 10);
    v.write(0, &data, Hints::NONE).unwrap();
    std::fs::remove_file(dir.join("frit.volume")).unwrap();
    let e = v.flush().unwrap_err().to_string();
    assert!(e.contains("frit.volume was deleted") && e.contains("copy what is still readable"), "{e}");
    assert!(read(&mut v, 0, 64 << 10) == data);
    assert!(v.write(0, &data, Hints::NONE).is_err());
    assert!(v.close().is_err());
}

#[test]
fn a_file_that_is_deleted_is_found_by_the_next_flush() {
    let (_dir, dir) = place();
    let mut v = create(&dir);
    let data = pattern(0, 1, 64 << 10);
    v.write(0, &data, Hints::NONE).unwrap();
    std::fs::remove_file(dir.join("pcm.medium")).unwrap();
    v.write(64 << 10, &data, Hints::NONE).unwrap();
    let e = v.flush().unwrap_err().to_string();
    assert!(
        e.contains("'pcm'") && e.contains("was deleted") && e.contains("copy what is still readable"),
        "{e}"
    );
    // Reads succeed, writes fail.
    assert!(read(&mut v, 0, 64 << 10) == data);
    let e = v.write(0, &data, Hints::NONE).unwrap_err().to_string();
    assert!(e.contains("was deleted"), "{e}");
    assert!(!v.step(100).unwrap());
    assert!(v.close().is_err());
}

#[test]
fn a_volume_that_refuses_stays_dirty_and_says_why() {
    let (_dir, dir) = place();
    let mut v = create(&dir);
    v.write(0, &[3; 4096], Hints::NONE).unwrap();
    v.refuse("a test of ours".into());
    assert!(v.read_only().unwrap().contains("a test of ours"));
    assert_eq!(read(&mut v, 0, 4096), [3; 4096]);
    match v.close() {
        Err(Error::LeftDirty { why }) => assert!(why.contains("a test of ours"), "{why}"),
        other => panic!("{other:?}"),
    }
    let mut v = open(&dir);
    assert_eq!(read(&mut v, 0, 4096), [3; 4096]);
    v.close().unwrap();
}
