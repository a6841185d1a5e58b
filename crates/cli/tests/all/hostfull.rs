//! `frit mount` and `unmount` of an image whose disk is full. Skipped without root, FUSE, a loop
//! device or mkfs.ext4. Everything that could hang runs under `timeout`, and a guard unmounts at
//! the end.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Size of the disk in bytes, and size of the image on it.
const DISK: u64 = 48 << 20;
const IMAGE: &str = "16M";

fn run(program: &str, args: &[&str]) -> Output {
    Command::new("timeout").args(["-k", "5", "60", program]).args(args).output().unwrap()
}

fn frit(args: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_frit"), args)
}

/// Returns the output of a command, without the line breaks of the terminal width.
fn said(o: &Output) -> String {
    let all = format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr));
    all.replace("\n  │ ", " ").replace("\n        ", " ")
}

#[track_caller]
fn good(o: &Output) {
    assert!(o.status.success(), "{:?}: {}", o.status, said(o));
}

#[track_caller]
fn fails(o: &Output, code: i32, words: &[&str]) {
    let said = said(o);
    assert!(
        o.status.code() == Some(code) && words.iter().all(|w| said.contains(w)),
        "{:?}: {said}",
        o.status
    );
}

/// A small disk with an image on it, and a directory to mount the image on.
struct Disk {
    root: tempfile::TempDir,
    image: String,
    at: String,
}

impl Disk {
    /// Creates the disk; `None` if that is not possible.
    fn new() -> Option<Disk> {
        let root = fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0);
        if !root || !Path::new("/dev/fuse").exists() || !Path::new("/dev/loop-control").exists() {
            eprintln!("skipped: it takes root, /dev/fuse and loop devices");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let place = |name: &str| dir.path().canonicalize().unwrap().join(name).to_str().unwrap().to_string();
        let (disk, host, at) = (place("disk"), place("host"), place("mnt"));
        File::create(&disk).unwrap().set_len(DISK).unwrap();
        fs::create_dir(&host).unwrap();
        fs::create_dir(&at).unwrap();
        let made = run("mkfs.ext4", &["-q", "-F", "-m", "0", &disk]);
        if made.status.code() == Some(127) || !run("mount", &["-o", "loop", &disk, &host]).status.success() {
            eprintln!("skipped: no mkfs.ext4, or it cannot be mounted: {}", said(&made));
            return None;
        }
        let made = Disk { root: dir, image: format!("{host}/img"), at };
        good(&frit(&["mkfs", &made.image, "--size", IMAGE]));
        Some(made)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Fills the disk.
    fn fill(&self) {
        let mut file = File::create(self.path("host/filler")).unwrap();
        for size in [1 << 20, 4096, 512] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
        file.sync_all().unwrap();
    }

    fn make_room(&self) {
        fs::remove_file(self.path("host/filler")).unwrap();
    }

    /// Mounts without periodic syncs: only requested syncs happen.
    fn mount(&self) -> String {
        let mounted = frit(&["mount", &self.image, &self.at, "--sync-every", "0"]);
        good(&mounted);
        said(&mounted)
    }

    /// Writes a file, and returns its contents.
    fn write(&self) -> Vec<u8> {
        let bytes: Vec<u8> =
            (0..4_000_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        fs::write(self.path("mnt/f"), &bytes).unwrap();
        bytes
    }

    fn fsck(&self) -> Output {
        frit(&["fsck", &self.image])
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        for at in ["mnt", "other", "host"] {
            let _ = run("umount", &["-l", self.path(at).to_str().unwrap()]);
        }
    }
}

/// The space for syncs is reserved at mount.
#[test]
fn a_disk_that_fills_up_while_it_is_mounted_fails_no_sync() {
    let Some(d) = Disk::new() else { return };
    assert!(!d.mount().contains("reserve"));
    d.fill();
    let bytes = d.write();
    let unmounted = frit(&["unmount", &d.at]);
    good(&unmounted);
    assert!(said(&unmounted).contains("is unmounted"), "{}", said(&unmounted));
    assert!(!d.path("host/img.sync").exists(), "the reserve is given back");
    good(&d.fsck());
    d.mount();
    assert!(fs::read(d.path("mnt/f")).unwrap() == bytes);
    good(&frit(&["unmount", &d.at]));
}

#[test]
fn a_disk_that_is_full_is_said_and_nothing_is_lost() {
    let Some(d) = Disk::new() else { return };
    d.fill();
    let mounted = d.mount();
    assert!(mounted.contains("cannot reserve space for"), "{mounted}");
    let bytes = d.write();
    fails(&frit(&["unmount", &d.at]), 1, &["stays mounted", "No space left", "only in memory", "--save"]);
    assert!(fs::read(d.path("mnt/f")).unwrap() == bytes, "it is mounted");
    let forced = frit(&["unmount", &d.at, "--force"]);
    fails(&forced, 1, &["is unmounted, and", "is not up to date", ".overlay"]);
    assert!(fs::read_dir(d.path("mnt")).unwrap().next().is_none(), "it is unmounted");
    let checked = d.fsck();
    fails(&checked, 2, &["No space left", "only in memory"]);
    assert!(!said(&checked).contains("in order"), "{}", said(&checked));
    d.make_room();
    d.mount();
    assert!(fs::read(d.path("mnt/f")).unwrap() == bytes);
    good(&frit(&["unmount", &d.at]));
    good(&d.fsck());
}

#[test]
fn what_a_full_disk_does_not_take_is_written_to_another() {
    let Some(d) = Disk::new() else { return };
    d.fill();
    d.mount();
    let bytes = d.write();
    let (saved, other) = (d.path("saved"), d.path("other"));
    let (saved, other) = (saved.to_str().unwrap(), other.to_str().unwrap());
    let unmounted = frit(&["unmount", &d.at, "--save", saved]);
    good(&unmounted);
    assert!(said(&unmounted).contains("holds the whole file system"), "{}", said(&unmounted));
    good(&frit(&["fsck", saved]));
    fs::create_dir(other).unwrap();
    good(&frit(&["mount", saved, other]));
    assert!(fs::read(d.path("other/f")).unwrap() == bytes);
    good(&frit(&["unmount", other]));
    // The changes of the image itself are still accessible.
    d.make_room();
    good(&d.fsck());
    d.mount();
    assert!(fs::read(d.path("mnt/f")).unwrap() == bytes);
    good(&frit(&["unmount", &d.at]));
}
