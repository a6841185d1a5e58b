//! The boot ID tells a power loss from a crash of the process, also when the recovery is
//! interrupted.

use super::*;
use crate::create::CreateOptions;
use std::path::PathBuf;

const OTHER_BOOT: [u8; 16] = [0xB0; 16];

fn made() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let volume = dir.path().join("vol");
    let text = "media.nand = { profile = \"slc-k9-2016\", channels = 1, chips_per_channel = 1, blocks_per_plane = 16 }\n\
                media.pcm = { profile = \"pcm-p8p-2016\", chip_bytes = \"64K\" }\nhfsl = {}\n";
    let stack = Stack::parse("small", text, &[]).unwrap();
    drop(Volume::create(&volume, &CreateOptions { stack, force: false }).unwrap());
    (dir, volume)
}

fn now(dir: &Path) -> Superblock {
    SuperblockFile::open(dir, true).unwrap().current().clone()
}

/// Marks the volume as left by another boot of the machine.
fn left(dir: &Path, state: VolumeState) {
    let mut file = SuperblockFile::open(dir, false).unwrap();
    file.update(|s| (s.state, s.boot_id) = (state, OTHER_BOOT)).unwrap();
}

fn power_loss(dir: &Path) -> bool {
    Volume::open(dir, &OpenOptions::default()).unwrap().recovery().power_loss
}

#[test]
fn another_boot_means_that_the_machine_stopped_unless_the_volume_was_closed() {
    let (_dir, dir) = made();
    assert!(!power_loss(&dir), "the same boot");
    left(&dir, VolumeState::Dirty);
    assert!(power_loss(&dir), "another boot");
    assert_eq!((now(&dir).boot_id, now(&dir).state), (boot_id(), VolumeState::Dirty));
    assert!(!power_loss(&dir), "recovered under this boot, and then stopped");
    Volume::open(&dir, &OpenOptions::default()).unwrap().close().unwrap();
    left(&dir, VolumeState::Clean);
    let v = Volume::open(&dir, &OpenOptions::default()).unwrap();
    assert!(!v.recovery().power_loss && v.recovery().recovery.clean);
}

#[test]
fn a_recovery_that_does_not_end_is_repeated_as_what_it_was() {
    let (_dir, dir) = made();
    left(&dir, VolumeState::Dirty);
    let nand = dir.join("nand.medium");
    let bytes = std::fs::read(&nand).unwrap();
    std::fs::write(&nand, vec![0x5A; bytes.len()]).unwrap();
    assert!(Volume::open(&dir, &OpenOptions::default()).is_err());
    assert_eq!(now(&dir).boot_id, OTHER_BOOT);
    std::fs::write(&nand, bytes).unwrap();
    // A read-only opening changes nothing either.
    let look = OpenOptions { read_only: true, crash: None };
    assert!(Volume::open(&dir, &look).unwrap().recovery().power_loss);
    assert_eq!(now(&dir).boot_id, OTHER_BOOT);
    assert!(power_loss(&dir));
    assert!(!power_loss(&dir));
}

#[test]
fn a_stack_that_is_not_the_one_of_its_hash_is_refused() {
    let (_dir, dir) = made();
    let was = now(&dir);
    let mut file = SuperblockFile::open(&dir, false).unwrap();
    file.update(|s| s.stack.push_str("# more\n")).unwrap();
    drop(file);
    let e = Volume::open(&dir, &OpenOptions::default()).unwrap_err().to_string();
    assert!(e.contains("does not match its hash"), "{e}");
    let mut file = SuperblockFile::open(&dir, false).unwrap();
    file.update(|s| {
        s.stack = "[hfsl]\nfrom_the_future = 1\n".into();
        s.sha256 = sha256(&s.stack);
        s.created_by = "9.9.9".into();
    })
    .unwrap();
    drop(file);
    let e = Volume::open(&dir, &OpenOptions::default()).unwrap_err().to_string();
    assert!(e.contains("does not understand the stack that frit 9.9.9 wrote"), "{e}");
    let mut file = SuperblockFile::open(&dir, false).unwrap();
    file.update(|s| (s.stack, s.sha256, s.params) = (was.stack, was.sha256, vec![("no".into(), "1".into())]))
        .unwrap();
    drop(file);
    let e = Volume::open(&dir, &OpenOptions::default()).unwrap_err().to_string();
    assert!(e.contains("no"), "{e}");
}
