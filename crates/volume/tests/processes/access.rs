//! Access rights of a volume's files: their modes, and the actions that they allow to another user
//! of the machine.

use crate::common::{self, create, create_with, open, open_read_only, place, try_open};
use frit_core::Hints;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Returns the files of a volume with their modes.
fn modes(volume: &Path) -> Vec<(String, u32)> {
    let mut all: Vec<(String, u32)> = std::fs::read_dir(volume)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), mode(&entry.path())))
        .collect();
    all.sort();
    all
}

fn of_owner(names: &[&str], mode: u32) -> Vec<(String, u32)> {
    names.iter().map(|name| ((*name).to_owned(), mode)).collect()
}

const NAMES: [&str; 4] = ["frit.lock", "frit.volume", "nand.medium", "pcm.medium"];

#[test]
fn a_volume_is_made_for_its_owner_alone() {
    let (dir, volume) = place();
    let volume = volume.join("below");
    create(&volume).close().unwrap();
    assert_eq!(mode(&volume), 0o700);
    assert_eq!(modes(&volume), of_owner(&NAMES, 0o600));
    assert_eq!(mode(volume.parent().unwrap()) & 0o055, 0o055, "a directory above is none of its own");
    // Media outside the directory get the same mode.
    let other = dir.path().join("nand.img");
    let set = format!("media.nand.path={other:?}");
    create_with(&dir.path().join("vol2"), &[&set], false).unwrap().close().unwrap();
    assert_eq!(mode(&other), 0o600);
}

#[test]
fn files_that_are_replaced_are_made_anew() {
    let (_dir, volume) = place();
    create(&volume).close().unwrap();
    for name in NAMES {
        chmod(&volume.join(name), 0o644);
    }
    let medium = volume.join("nand.medium");
    let mut reader = std::fs::File::open(&medium).unwrap();
    let before = medium.metadata().unwrap().ino();
    let mut v = create_with(&volume, &[], true).unwrap();
    v.write(0, &[7; 4096], Hints::NONE).unwrap();
    v.close().unwrap();
    assert_eq!(modes(&volume)[1..], of_owner(&NAMES[1..], 0o600));
    assert_ne!(medium.metadata().unwrap().ino(), before);
    // A reader that has the old file open sees nothing of the new volume.
    let mut old = Vec::new();
    reader.read_to_end(&mut old).unwrap();
    assert!(!old.windows(64).any(|bytes| bytes == [7; 64]));
    // A symbolic link in place of a medium is not followed.
    std::fs::remove_file(&medium).unwrap();
    std::os::unix::fs::symlink("/dev/null", &medium).unwrap();
    let e = create_with(&volume, &[], true).unwrap_err().to_string();
    assert!(e.contains("not a regular file"), "{e}");
}

#[test]
fn growing_keeps_what_its_owner_allowed() {
    let (_dir, volume) = place();
    create(&volume).close().unwrap();
    chmod(&volume, 0o750);
    chmod(&volume.join("frit.volume"), 0o640);
    chmod(&volume.join("nand.medium"), 0o640);
    frit_volume::grow(&volume, &common::stack(&["media.nand.blocks_per_plane=64"]), &mut |_, _, _| {})
        .unwrap();
    assert_eq!(mode(&volume), 0o750);
    let all = [("frit.lock", 0o600), ("frit.volume", 0o640), ("nand.medium", 0o640), ("pcm.medium", 0o600)];
    assert_eq!(modes(&volume), all.map(|(name, mode)| (name.to_owned(), mode)));
    open(&volume).close().unwrap();
}

#[test]
fn files_that_others_can_read_are_named() {
    let (dir, volume) = place();
    create(&volume).close().unwrap();
    chmod(dir.path(), 0o755);
    chmod(&volume.join("pcm.medium"), 0o644);
    assert_eq!(frit_volume::inspect(&volume).unwrap().exposed, None, "the directory keeps others out");
    chmod(&volume, 0o755);
    let said = frit_volume::inspect(&volume).unwrap().exposed.unwrap();
    assert!(said.contains("pcm.medium (mode 0644); chmod go-rwx ") && !said.contains("nand"), "{said}");
}

/// A process of another user that holds a lock. It is killed when this is dropped.
struct Foreign {
    child: Child,
    /// The process that has inherited the lock.
    holder: i32,
}

impl Foreign {
    /// Starts the process; `None` if processes of another user cannot be started.
    fn locks(how: &str, file: &Path) -> Option<Foreign> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: acting as another user needs root");
            return None;
        }
        let mut flock = Command::new("setpriv");
        flock.args(["--reuid=65534", "--regid=65534", "--clear-groups", "flock", "--timeout=5", how]);
        flock.arg(file).args(["sh", "-c", "echo $$; exec sleep 60"]).stdout(Stdio::piped());
        let Ok(mut child) = flock.spawn() else {
            eprintln!("skipped: there is no setpriv");
            return None;
        };
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let holder = line.trim().parse().unwrap_or_else(|_| panic!("it could not lock {}", file.display()));
        Some(Foreign { child, holder })
    }

    /// Ends the process that took the lock; the one that inherited it keeps running.
    fn hand_on(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.holder.to_string()).status();
        self.hand_on();
    }
}

/// Creates a volume that all users may read, except for its lock file.
fn readable() -> (tempfile::TempDir, PathBuf) {
    let (dir, volume) = place();
    create(&volume).close().unwrap();
    chmod(dir.path(), 0o755);
    chmod(&volume, 0o755);
    for name in &NAMES[1..] {
        chmod(&volume.join(name), 0o644);
    }
    (dir, volume)
}

#[test]
fn a_reader_cannot_lock_the_owner_out() {
    let (_dir, volume) = readable();
    for how in ["--exclusive", "--shared"] {
        let files: Vec<PathBuf> = NAMES[1..].iter().map(|name| volume.join(name)).collect();
        let Some(held) = files.iter().map(|file| Foreign::locks(how, file)).collect::<Option<Vec<_>>>()
        else {
            return;
        };
        assert_eq!(frit_volume::inspect(&volume).unwrap().in_use, None);
        let mut v = open(&volume);
        v.write(0, &[1; 4096], Hints::NONE).unwrap();
        // Users who may write still lock each other out.
        let e = try_open(&volume).unwrap_err().to_string();
        assert!(e.contains("in use by process") && e.contains(&std::process::id().to_string()), "{e}");
        assert!(open_read_only(&volume).is_err());
        assert!(frit_volume::inspect(&volume).unwrap().in_use.is_some());
        v.close().unwrap();
        let first = open_read_only(&volume).unwrap();
        drop(open_read_only(&volume).unwrap());
        assert!(try_open(&volume).unwrap_err().to_string().contains("in use"));
        drop((first, held));
    }
    // A lock whose taker has ended does not lock the owner out either.
    let Some(mut held) = Foreign::locks("--exclusive", &volume.join("frit.volume")) else { return };
    held.hand_on();
    open(&volume).close().unwrap();
}

#[test]
fn a_lock_of_an_older_version_counts() {
    let (_dir, volume) = readable();
    let superblock = std::fs::File::open(volume.join("frit.volume")).unwrap();
    frit_volume::lock::lock(&superblock, false, &volume).unwrap();
    assert!(try_open(&volume).unwrap_err().to_string().contains("in use by process"));
    drop(superblock);
    // The older version sees the lock of this one as well.
    let v = open(&volume);
    assert!(std::fs::File::open(volume.join("frit.volume")).unwrap().try_lock_shared().is_err());
    v.close().unwrap();
    // A user who may write to the file may run an older version.
    chmod(&volume.join("frit.volume"), 0o666);
    let Some(_held) = Foreign::locks("--shared", &volume.join("frit.volume")) else { return };
    assert!(try_open(&volume).unwrap_err().to_string().contains("in use by process"));
}

#[test]
fn a_lock_file_that_others_may_read_is_named() {
    let (_dir, volume) = readable();
    let lock = volume.join("frit.lock");
    chmod(&lock, 0o644);
    let Some(_held) = Foreign::locks("--shared", &lock) else { return };
    let e = try_open(&volume).unwrap_err().to_string();
    assert!(e.contains("mode 0644 lets other users lock") && e.contains("chmod 600"), "{e}");
}

#[test]
fn a_volume_of_an_older_version_gets_its_lock_file_when_it_is_opened() {
    let (_dir, volume) = place();
    create(&volume).close().unwrap();
    for read_only in [true, false] {
        std::fs::remove_file(volume.join("frit.lock")).unwrap();
        let v = if read_only { open_read_only(&volume) } else { try_open(&volume) }.unwrap();
        assert_eq!(mode(&volume.join("frit.lock")), 0o600);
        v.close().unwrap();
    }
}
