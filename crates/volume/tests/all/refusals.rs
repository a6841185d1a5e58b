//! Refused operations: their messages, and proof that they change nothing.

use crate::common::{self, create, create_with, files, open, open_read_only, place, try_open};
use frit_core::Hints;
use std::fs::OpenOptions;
use std::process::Command;

#[test]
fn no_volume_is_said_so() {
    let (dir, volume) = place();
    let e = try_open(&volume).unwrap_err().to_string();
    assert!(e.contains("no such directory") && e.contains("frit create"), "{e}");
    let e = try_open(dir.path()).unwrap_err().to_string();
    assert!(e.contains("has no frit.volume"), "{e}");
    std::fs::write(&volume, b"x").unwrap();
    assert!(try_open(&volume).unwrap_err().to_string().contains("no volume here"));
    assert!(create_with(&volume, &[], true).is_err());
}

#[test]
fn a_directory_with_something_else_is_never_touched() {
    let (_dir, volume) = place();
    std::fs::create_dir(&volume).unwrap();
    std::fs::write(volume.join("thesis.tex"), b"x").unwrap();
    for force in [false, true] {
        let e = create_with(&volume, &[], force).unwrap_err().to_string();
        assert!(e.contains("not empty and not a volume (it contains thesis.tex)"), "{e}");
    }
    assert_eq!(files(&volume), [("thesis.tex".to_owned(), b"x".to_vec())]);
}

#[test]
fn a_volume_is_replaced_only_by_force_and_only_when_closed() {
    let (_dir, volume) = place();
    let mut v = create(&volume);
    v.write(0, &[1; 4096], Hints::NONE).unwrap();
    for force in [false, true] {
        let e = create_with(&volume, &[], force).unwrap_err().to_string();
        assert!(e.contains("in use") && e.contains(&std::process::id().to_string()), "{e}");
    }
    drop(v);
    let before = files(&volume);
    for force in [false, true] {
        let e = create_with(&volume, &[], force).unwrap_err().to_string();
        assert!(e.contains("was not closed") && e.contains("frit recover"), "{e}");
    }
    assert!(files(&volume) == before);
    open(&volume).close().unwrap();
    let e = create_with(&volume, &[], false).unwrap_err().to_string();
    assert!(e.contains("--force replaces it"), "{e}");
    // The new volume has another medium: the file of the old one is removed.
    let text = common::SMALL.replace("media.nand", "media.flash");
    let stack = frit_stack::Stack::parse("other", &text, &[]).unwrap();
    let mut v =
        frit_volume::Volume::create(&volume, &frit_volume::CreateOptions { stack, force: true }).unwrap();
    assert_eq!(common::read(&mut v, 0, 4096), [0; 4096]);
    v.close().unwrap();
    let names: Vec<String> = files(&volume).into_iter().map(|(n, _)| n).collect();
    assert_eq!(names, ["flash.medium", "frit.lock", "frit.volume", "pcm.medium"]);
}

#[test]
fn a_creation_that_was_not_finished_can_be_repeated() {
    let (_dir, volume) = place();
    // The creation was interrupted before the superblock was complete.
    std::fs::create_dir(&volume).unwrap();
    std::fs::write(volume.join("frit.volume.new"), [1; 700]).unwrap();
    create(&volume).close().unwrap();
    open(&volume).close().unwrap();
    // The creation was interrupted after the superblock was written, as by a full disk.
    let (_dir, volume) = place();
    let err = create_with(&volume, &["media.nand.path=/nowhere/at/all"], false).unwrap_err().to_string();
    assert!(err.contains("nand"), "{err}");
    let e = try_open(&volume).unwrap_err().to_string();
    assert!(e.contains("creation was not finished"), "{e}");
    create(&volume).close().unwrap();
}

#[test]
fn missing_and_wrong_media_are_told_by_name_and_never_made() {
    let (_dir, volume) = place();
    create(&volume).close().unwrap();
    let nand = volume.join("nand.medium");
    let aside = volume.join("aside");
    std::fs::rename(&nand, &aside).unwrap();
    let before = files(&volume);
    for e in [try_open(&volume), open_read_only(&volume)] {
        let e = e.unwrap_err().to_string();
        assert!(e.contains("medium 'nand'") && e.contains("nand.medium") && e.contains("is missing"), "{e}");
    }
    assert!(files(&volume) == before);
    std::fs::create_dir(&nand).unwrap();
    assert!(try_open(&volume).is_err());
    std::fs::remove_dir(&nand).unwrap();
    std::fs::rename(&aside, &nand).unwrap();
    let len = std::fs::metadata(&nand).unwrap().len();
    for wrong in [0, 4096, len - 1, len + 1] {
        let file = OpenOptions::new().write(true).open(&nand).unwrap();
        file.set_len(wrong).unwrap();
        let e = try_open(&volume).unwrap_err().to_string();
        assert!(e.contains(&format!("has {wrong} bytes and had {len}")), "{e}");
    }
}

#[test]
fn a_medium_of_another_volume_is_refused() {
    let (_dir, volume) = place();
    let (_dir2, other) = place();
    create(&volume).close().unwrap();
    let v = create_with(&other, &["pcm.channels=1", "pcm.chip_bytes=256K"], false).unwrap();
    v.close().unwrap();
    let sizes = |p: &std::path::Path| std::fs::metadata(p.join("pcm.medium")).unwrap().len();
    if sizes(&volume) == sizes(&other) {
        std::fs::copy(other.join("pcm.medium"), volume.join("pcm.medium")).unwrap();
    } else {
        std::fs::write(volume.join("pcm.medium"), vec![0x5A; sizes(&volume) as usize]).unwrap();
    }
    // Any error of the layer is fine; an empty volume is not.
    assert!(try_open(&volume).is_err());
    std::fs::write(volume.join("pcm.medium"), vec![0; sizes(&volume) as usize]).unwrap();
    assert!(try_open(&volume).is_err(), "a blank medium is not formatted behind anyone's back");
}

#[test]
fn a_stack_without_durable_memory_is_told_what_to_add() {
    let (_dir, volume) = place();
    let sets = ["hfsl.pcm=none", "FUSION_METHOD=none"];
    let e = create_with(&volume, &sets, false).unwrap_err().to_string();
    assert!(e.contains("[media.hfsl-pcm]") && e.contains("profile = "), "{e}");
    assert!(!volume.exists());
}

#[test]
fn a_damaged_superblock_is_not_formatted_over() {
    let (_dir, volume) = place();
    create(&volume).close().unwrap();
    let path = volume.join("frit.volume");
    let good = std::fs::read(&path).unwrap();
    std::fs::write(&path, vec![0; good.len()]).unwrap();
    assert!(try_open(&volume).unwrap_err().to_string().contains("neither copy"));
    for force in [false, true] {
        assert!(create_with(&volume, &[], force).unwrap_err().to_string().contains("neither copy"));
    }
    std::fs::write(&path, &good).unwrap();
    open(&volume).close().unwrap();
}

#[test]
fn every_damaged_byte_of_the_superblock_is_refused_or_repaired() {
    let (_dir, volume) = place();
    let mut v = create(&volume);
    v.write(0, &[9; 4096], Hints::NONE).unwrap();
    v.close().unwrap();
    let path = volume.join("frit.volume");
    let good = std::fs::read(&path).unwrap();
    let used = |copy: usize| copy * 65_536..copy * 65_536 + 3000;
    for at in used(0).chain(used(1)).step_by(37) {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        std::fs::write(&path, &bad).unwrap();
        let mut v = open_read_only(&volume).unwrap_or_else(|e| panic!("byte {at}: {e}"));
        assert_eq!(common::read(&mut v, 0, 4096), [9; 4096], "byte {at}");
    }
    // Damage of both copies.
    let mut bad = good.clone();
    bad[20] ^= 1;
    bad[65_536 + 20] ^= 1;
    std::fs::write(&path, &bad).unwrap();
    assert!(open_read_only(&volume).is_err());
    // Damage of one copy: the next opening for writing repairs it.
    let mut bad = good;
    bad[20] ^= 1;
    std::fs::write(&path, &bad).unwrap();
    assert!(frit_volume::inspect(&volume).unwrap().damaged_copy.is_some());
    open(&volume).close().unwrap();
    assert!(frit_volume::inspect(&volume).unwrap().damaged_copy.is_none());
}

#[test]
fn paths_of_media_are_used_and_never_overwritten_unasked() {
    let (dir, volume) = place();
    let elsewhere = dir.path().join("flash.bin");
    let set = format!("media.nand.path={:?}", elsewhere.display().to_string());
    let sets = [set.as_str(), "media.pcm.path=\"inside.bin\""];
    let mut v = create_with(&volume, &sets, false).unwrap();
    v.write(0, &[4; 4096], Hints::NONE).unwrap();
    v.close().unwrap();
    assert!(
        elsewhere.is_file() && volume.join("inside.bin").is_file() && !volume.join("nand.medium").exists()
    );
    assert_eq!(common::read(&mut open(&volume), 0, 4096), [4; 4096]);
    // Another volume over the same file while the file exists.
    let second = dir.path().join("second");
    let e = create_with(&second, &sets[..1], false).unwrap_err().to_string();
    assert!(e.contains("already exists"), "{e}");
    open(&volume).close().unwrap();
}

/// Calls `f` with a block device over a file of `bytes`, if one can be set up.
fn with_device(bytes: u64, f: impl FnOnce(&str)) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("disk");
    std::fs::File::create(&file).unwrap().set_len(bytes).unwrap();
    let made = Command::new("losetup").args(["-f", "--show"]).arg(&file).output();
    let Some(made) = made.ok().filter(|o| o.status.success()) else {
        eprintln!("skipped: no loop device on this machine");
        return;
    };
    let device = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    f(&device);
    Command::new("losetup").args(["-d", &device]).status().unwrap();
}

#[test]
fn a_block_device_holds_a_medium_when_it_is_blank_and_large_enough() {
    with_device(16 << 20, |device| {
        let (dir, volume) = place();
        let sets = [format!("media.nand.path={device:?}")];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let mut v = create_with(&volume, &sets, false).unwrap();
        let data = common::pattern(0, 1, 1 << 20);
        v.write(0, &data, Hints::NONE).unwrap();
        // While the volume is open, no other volume can use the device.
        let second = dir.path().join("second");
        assert!(create_with(&second, &sets, true).is_err());
        std::fs::remove_dir_all(&second).unwrap();
        v.close().unwrap();
        let mut v = open(&volume);
        assert!(common::read(&mut v, 0, 1 << 20) == data);
        v.flush().unwrap();
        v.close().unwrap();
        let found = frit_volume::inspect(&volume).unwrap().media;
        assert!(found[0].problem.is_none() && found[0].allocated.is_none());
        assert_eq!(found[0].backing, frit_volume::superblock::Backing::BlockDevice);
        let e = create_with(&second, &sets, false).unwrap_err().to_string();
        assert!(e.contains("not blank") && e.contains("--force"), "{e}");
        let e = create_with(&second, &[sets[0], "nand.blocks_per_plane=128"], true).unwrap_err().to_string();
        assert!(e.contains("has 16777216 bytes, and the medium needs"), "{e}");
        create_with(&second, &sets, true).unwrap().close().unwrap();
        // The first volume's medium now holds other data, which must not be served as its own.
        let e = try_open(&volume).unwrap_err().to_string();
        assert!(e.contains("that of another device"), "{e}");
    });
}

/// Runs `f` in a file system of `kib`, if one can be mounted.
fn in_small_disk(kib: u32, f: impl FnOnce(&std::path::Path)) {
    let dir = tempfile::tempdir().unwrap();
    let size = format!("size={kib}k");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(dir.path()).status();
    if !mounted.is_ok_and(|s| s.success()) {
        eprintln!("skipped: no right to mount a small file system on this machine");
        return;
    }
    f(dir.path());
    Command::new("umount").arg(dir.path()).status().unwrap();
}

#[test]
fn a_full_disk_is_an_error_at_create() {
    in_small_disk(6144, |disk| {
        let volume = disk.join("vol");
        let e = create_with(&volume, &[], false).unwrap_err().to_string();
        assert!(e.contains("cannot allocate") && e.contains("nand.medium"), "{e}");
        assert!(try_open(&volume).unwrap_err().to_string().contains("not finished"));
        assert!(!volume.join("nand.medium").exists(), "the room is given back");
        // A smaller volume fits without manual cleanup.
        let v = create_with(&volume, &["nand.channels=1", "nand.blocks_per_plane=12"], false).unwrap();
        v.close().unwrap();
        open(&volume).close().unwrap();
    });
}

#[test]
fn media_of_another_volume_are_refused_though_they_look_alike() {
    let ((_d, one), (_e, two)) = (place(), place());
    for volume in [&one, &two] {
        // Both volumes get the same writes in the same order, so their media have the same pages in
        // use.
        let mut v = create(volume);
        v.write(0, &[u8::from(volume == &one); 8192], Hints::NONE).unwrap();
        v.close().unwrap();
    }
    let media: Vec<_> = files(&one).into_iter().map(|f| f.0).filter(|n| n.ends_with(".medium")).collect();
    assert_eq!(media.len(), 2, "{media:?}");
    for name in media {
        let own = std::fs::read(one.join(&name)).unwrap();
        std::fs::copy(two.join(&name), one.join(&name)).unwrap();
        let e = try_open(&one).unwrap_err().to_string();
        assert!(e.contains("another device: serial number") && e.contains("put the right file back"), "{e}");
        std::fs::write(one.join(&name), own).unwrap();
    }
    let mut read = [0; 8192];
    open(&one).read(0, &mut read).unwrap();
    assert!(read.iter().all(|&b| b == 1));
}
