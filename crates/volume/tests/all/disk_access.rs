//! Volumes whose disk is accessed without the page cache.

use crate::common::{open, open_read_only, pattern, place, read};
use frit_core::Hints;
use frit_media::FileAccess;
use frit_stack::Stack;
use frit_volume::superblock::Backing;
use frit_volume::{CreateOptions, Error, Volume, grow, inspect, stack_with_overrides};
use std::path::Path;
use std::process::Command;

const DISK_BYTES: u64 = 8 << 20;

/// Creates a volume with some 1 MiB of cache before a small disk.
fn create(dir: &Path, sets: &[&str]) -> frit_volume::Result<Volume> {
    let small = ["media.pcm.chip_bytes=192K", "media.disk.bytes=8M"];
    let sets: Vec<String> = small.iter().chain(sets).map(|s| (*s).to_owned()).collect();
    let stack = Stack::builtin("halo-small", &sets).unwrap();
    Volume::create(dir, &CreateOptions { stack, force: false })
}

/// Creates a volume with this access; `None` where the host refuses it.
fn create_or_skip(dir: &Path, sets: &[&str]) -> Option<Volume> {
    match create(dir, sets) {
        Ok(volume) => Some(volume),
        Err(Error::Medium { why, .. }) if why.contains("O_DIRECT") => {
            eprintln!("skipped: {why}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// Writes twice what the cache holds in sectors of all offsets, closes, drops and opens.
fn write_and_reopen(dir: &Path, mut volume: Volume) {
    let mut shadow = vec![0; volume.bytes() as usize];
    let mut state = 1u64;
    for step in 0..900u32 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let len = [512, 1024, 4096, 12_288, 70_000 / 512 * 512, 300 << 10][(state >> 33) as usize % 6];
        let at = (state >> 40) % ((shadow.len() - len) as u64 / 512) * 512;
        let range = at as usize..at as usize + len;
        match state >> 61 {
            0..5 => {
                let data = pattern(at, step, len);
                volume.write(at, &data, Hints::NONE).unwrap();
                shadow[range].copy_from_slice(&data);
            }
            5 => {
                volume.write_zeroes(at, len as u64, false).unwrap();
                shadow[range].fill(0);
            }
            _ => assert!(read(&mut volume, at, len) == shadow[range], "step {step}"),
        }
        if step % 300 == 299 {
            if step == 299 {
                volume.close().unwrap();
            } else {
                drop(volume);
            }
            volume = open(dir);
            assert_eq!(volume.recovery().recovery.clean, step == 299);
            assert!(read(&mut volume, 0, shadow.len()) == shadow, "after step {step}");
        }
    }
    volume.flush().unwrap();
    volume.close().unwrap();
    let mut volume = open_read_only(dir).unwrap();
    assert!(read(&mut volume, 0, shadow.len()) == shadow);
    let mut findings = Vec::new();
    let scope = frit_core::CheckScope { data: true, ..frit_core::CheckScope::default() };
    volume.check(scope, &mut |f| findings.push(f)).unwrap();
    assert!(findings.is_empty(), "{findings:?}");
}

fn disk_of(dir: &Path) -> (FileAccess, Backing) {
    let found = inspect(dir).unwrap();
    let disk = found.media.iter().find(|m| m.name == "disk").unwrap();
    (disk.access, disk.backing)
}

#[test]
fn a_disk_without_the_page_cache_keeps_all_that_was_written() {
    for access in ["direct", "io-uring"] {
        let (_dir, dir) = place();
        let set = format!("media.disk.access={access}");
        let Some(volume) = create_or_skip(&dir, &[&set]) else { return };
        assert_eq!(<&str>::from(disk_of(&dir).0), access);
        write_and_reopen(&dir, volume);
    }
}

#[test]
fn the_access_is_kept_by_growing_and_can_be_changed_by_it() {
    let (_dir, dir) = place();
    let Some(mut volume) = create_or_skip(&dir, &["media.disk.access=direct"]) else { return };
    let data = pattern(0, 7, 1 << 20);
    volume.write(0, &data, Hints::NONE).unwrap();
    volume.close().unwrap();
    let steps = [
        ("media.disk.bytes=9M", FileAccess::Direct),
        ("media.disk.access=page-cache", FileAccess::PageCache),
        ("media.disk.access=io-uring", FileAccess::IoUring),
    ];
    for (set, access) in steps {
        let superblock = inspect(&dir).unwrap().superblock;
        let stack = stack_with_overrides(&superblock, &[set.to_owned()]).unwrap();
        grow(&dir, &stack, &mut |_, _, _| {}).unwrap();
        assert_eq!(disk_of(&dir), (access, Backing::File), "{set}");
        let mut volume = open(&dir);
        assert!(read(&mut volume, 0, data.len()) == data);
        volume.close().unwrap();
    }
}

/// Runs a program that only the superuser may run. Returns its output, or says why not.
fn as_root(program: &str, args: &[&str]) -> Option<String> {
    let done = Command::new(program).args(args).output();
    let done = done.map_err(|e| eprintln!("skipped: {program}: {e}")).ok()?;
    if !done.status.success() {
        eprintln!("skipped: {program}: {}", String::from_utf8_lossy(&done.stderr).trim());
        return None;
    }
    Some(String::from_utf8_lossy(&done.stdout).trim().into())
}

/// Undoes a mount or a loop device.
struct Undo<'a>(&'a str, Vec<String>);

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        drop(Command::new(self.0).args(&self.1).status());
    }
}

#[test]
fn a_file_system_without_direct_accesses_is_named_with_the_remedy() {
    let mount = tempfile::tempdir().unwrap();
    let at = mount.path().display().to_string();
    if as_root("mount", &["-t", "ramfs", "frit-test", &at]).is_none() {
        return;
    }
    let _mounted = Undo("umount", vec![at.clone()]);
    let (_dir, dir) = place();
    let path = format!("media.disk.path={at}/disk");
    let e = create(&dir, &[&path, "media.disk.access=direct"]).unwrap_err().to_string();
    assert!(e.contains("medium 'disk'") && e.contains("page-cache"), "{e}");
    // The volume was not made, and the same directory takes one with the remedy.
    std::fs::remove_file(format!("{at}/disk")).unwrap();
    create(&dir, &[&path]).unwrap().close().unwrap();
    assert_eq!(disk_of(&dir).0, FileAccess::PageCache);
}

#[test]
fn a_character_device_is_refused_with_the_remedy() {
    let (_dir, dir) = place();
    let e = create(&dir, &["media.pcm.path=/dev/null"]).unwrap_err().to_string();
    assert!(e.contains("'pcm' (/dev/null): is a character device") && e.contains("mount -o dax"), "{e}");
}

#[test]
fn a_block_device_with_large_blocks_is_a_disk() {
    let (holder, dir) = place();
    let backing = holder.path().join("backing");
    std::fs::File::create(&backing).unwrap().set_len(DISK_BYTES + (1 << 20)).unwrap();
    let backing = backing.display().to_string();
    let args = ["--find", "--show", "--sector-size", "4096", &backing];
    let Some(device) = as_root("losetup", &args) else { return };
    let _attached = Undo("losetup", vec!["--detach".into(), device.clone()]);
    let path = format!("media.disk.path={device}");
    let Some(volume) = create_or_skip(&dir, &[&path, "media.disk.access=io-uring"]) else { return };
    assert_eq!(disk_of(&dir), (FileAccess::IoUring, Backing::BlockDevice));
    write_and_reopen(&dir, volume);
}
