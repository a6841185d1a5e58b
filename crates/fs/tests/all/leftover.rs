//! Overlays that killed processes left behind, images that are renamed, copied, restored or
//! deleted, and files that other users place under the same names.

use frit_fs::{
    Caller, Error, FileSystem, FormatOptions, Fs, FsOptions, Image, Ino, LockFile, NewInode, Overlaid,
    OverlayNote, OverlayOptions,
};
use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

const ROOT: &Caller = &Caller::ROOT;
/// Another user.
const OTHER: u32 = 65534;

/// A directory on a disk, and one in memory that, like /dev/shm, all users can write to.
struct TestDirs {
    disk: tempfile::TempDir,
    memory: tempfile::TempDir,
}

impl TestDirs {
    fn new() -> Self {
        let place =
            Self { disk: tempfile::tempdir().unwrap(), memory: tempfile::tempdir_in("/dev/shm").unwrap() };
        std::fs::set_permissions(place.memory.path(), Permissions::from_mode(0o1777)).unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.disk.path().join(name)
    }

    fn overlay(&self) -> OverlayOptions {
        OverlayOptions { dir: Some(self.memory.path().into()), ..OverlayOptions::default() }
    }

    fn medium(&self, name: &str) -> Result<Overlaid, Error> {
        Overlaid::open(&self.at(name), &self.overlay())
    }

    /// Creates an image with a file `synced`, and a file `killed` that is in the overlay only.
    fn killed(&self, name: &str) {
        let file = File::create(self.at(name)).unwrap();
        file.set_len(1 << 20).unwrap();
        let fs = Fs::format(self.medium(name).unwrap(), FormatOptions::default()).unwrap();
        make(&fs, "synced");
        fs.sync().unwrap();
        make(&fs, "killed");
        drop(fs);
    }

    fn has(&self, name: &str, file: &str) -> bool {
        has(self.medium(name).unwrap(), file)
    }

    /// As `has`, but closes the file system cleanly.
    fn has_closed(&self, name: &str, file: &str) -> bool {
        let fs = Fs::open(self.medium(name).unwrap(), FsOptions::default()).unwrap();
        let has = fs.lookup(ROOT, Ino::ROOT, file.as_bytes()).is_ok();
        drop(fs.close().unwrap());
        has
    }

    /// Returns notes about overlays of this test; other tests may have some in other directories.
    fn notes(&self, medium: &Overlaid) -> Vec<OverlayNote> {
        let here = self.memory.path().to_str().unwrap();
        medium.notes().iter().filter(|note| note.message().contains(here)).cloned().collect()
    }

    /// Returns the contents of the directories of this user.
    fn left(&self) -> Vec<PathBuf> {
        let dirs = list(self.memory.path())
            .into_iter()
            .filter(|dir| dir.symlink_metadata().is_ok_and(|m| m.uid() == own()));
        dirs.flat_map(|dir| if dir.is_dir() { list(&dir) } else { vec![dir] }).collect()
    }
}

fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn list(dir: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

fn make(fs: &dyn FileSystem, name: &str) {
    fs.create(ROOT, Ino::ROOT, name.as_bytes(), NewInode::file(0o644)).unwrap();
}

/// Looks up a file, and drops the file system without closing it.
fn has(medium: Overlaid, file: &str) -> bool {
    let fs = Fs::open(medium, FsOptions::default()).unwrap();
    fs.lookup(ROOT, Ino::ROOT, file.as_bytes()).is_ok()
}

#[track_caller]
fn refused(done: Result<Overlaid, Error>, words: &str) {
    match done {
        Err(Error::Image(why)) => assert!(why.contains(words), "{why}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was not refused"),
    }
}

/// Returns `true` and prints a message if the test cannot act for another user.
fn no_root() -> bool {
    let none = own() != 0;
    if none {
        eprintln!("skipped: acting for another user needs root");
    }
    none
}

#[test]
fn an_overlay_lies_in_a_directory_of_its_owner() {
    let place = TestDirs::new();
    place.killed("img");
    let [dir] = &list(place.memory.path())[..] else { panic!("one directory") };
    assert_eq!(dir.file_name().unwrap().to_str().unwrap(), format!("frit-{}", own()));
    assert_eq!(dir.metadata().unwrap().mode() & 0o7777, 0o700);
    let [overlay] = &list(dir)[..] else { panic!("one overlay") };
    assert_eq!(overlay.metadata().unwrap().mode() & 0o7777, 0o600);
    let fs = Fs::open(place.medium("img").unwrap(), FsOptions::default()).unwrap();
    assert!(fs.lookup(ROOT, Ino::ROOT, b"killed").is_ok());
    drop(fs.close().unwrap());
    assert_eq!(list(place.memory.path()), Vec::<PathBuf>::new());
    assert_eq!(list(place.disk.path()), [place.at("img")]);
}

/// Creates files of another user under each name that an overlay or its directory could have.
fn squat(place: &TestDirs, how: &dyn Fn(&Path)) {
    let meta = place.at("img").metadata().unwrap();
    let older = format!("frit-{:x}-{:x}.overlay", meta.dev(), meta.ino());
    for name in [format!("frit-{}", own()), older] {
        let path = place.memory.path().join(name);
        how(&path);
        std::os::unix::fs::lchown(&path, Some(OTHER), Some(OTHER)).unwrap();
    }
}

#[test]
fn what_another_user_puts_in_the_way_is_passed_over() {
    if no_root() {
        return;
    }
    let ways: [&dyn Fn(&Path); 5] = [
        &|path| drop(File::create(path).unwrap()),
        &|path| std::fs::create_dir(path).unwrap(),
        &|path| symlink("/root", path).unwrap(),
        &|path| symlink("nowhere", path).unwrap(),
        &|path| {
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o666.into(), 0).unwrap();
        },
    ];
    for how in ways {
        let place = TestDirs::new();
        File::create(place.at("img")).unwrap().set_len(1 << 20).unwrap();
        squat(&place, how);
        place.killed("img");
        let [overlay] = &place.left()[..] else { panic!("{:?}", place.left()) };
        let dir = overlay.parent().unwrap().metadata().unwrap();
        assert_eq!((dir.uid(), dir.mode() & 0o7777), (0, 0o700));
        assert!(place.has("img", "killed"));
        // The names are free again, and the overlay is still found.
        for path in
            list(place.memory.path()).iter().filter(|path| path.symlink_metadata().unwrap().uid() == OTHER)
        {
            if path.symlink_metadata().unwrap().is_dir() {
                std::fs::remove_dir(path).unwrap();
            } else {
                std::fs::remove_file(path).unwrap();
            }
        }
        assert!(place.has("img", "killed"));
    }
}

#[test]
fn a_log_of_another_user_is_never_carried_out() {
    if no_root() {
        return;
    }
    let place = TestDirs::new();
    std::fs::set_permissions(place.disk.path(), Permissions::from_mode(0o1777)).unwrap();
    File::create(place.at("img.sync")).unwrap();
    chown(place.at("img.sync"), Some(OTHER), Some(OTHER)).unwrap();
    place.killed("img");
    assert_eq!(place.at("img.sync").metadata().unwrap().len(), 0);
    assert_eq!(list(place.disk.path()).len(), 3, "a log of another name");
    let fs = Fs::open(place.medium("img").unwrap(), FsOptions::default()).unwrap();
    assert!(fs.lookup(ROOT, Ino::ROOT, b"killed").is_ok());
    drop(fs.close().unwrap());
    assert_eq!(list(place.disk.path()), [place.at("img"), place.at("img.sync")]);
    // A link to a file of this user is not followed either.
    std::fs::remove_file(place.at("img.sync")).unwrap();
    std::fs::write(place.at("precious"), b"precious").unwrap();
    symlink(place.at("precious"), place.at("img.sync")).unwrap();
    place.killed("img2");
    let fs = Fs::open(place.medium("img").unwrap(), FsOptions::default()).unwrap();
    make(&fs, "more");
    drop(fs.close().unwrap());
    assert_eq!(std::fs::read(place.at("precious")).unwrap(), b"precious");
}

#[test]
fn a_renamed_image_finds_its_overlay_and_a_copy_does_not() {
    let place = TestDirs::new();
    place.killed("a");
    std::fs::copy(place.at("a"), place.at("b")).unwrap();
    assert!(!place.has_closed("b", "killed"));
    std::fs::remove_file(place.at("b")).unwrap();
    // The same for a copy with its extended attributes.
    std::fs::copy(place.at("a"), place.at("c")).unwrap();
    let mut mark = vec![0; 4096];
    let a = File::open(place.at("a")).unwrap();
    match rustix::fs::fgetxattr(&a, "user.frit.overlay", &mut mark) {
        Ok(len) => {
            let c = File::options().write(true).open(place.at("c")).unwrap();
            let none = rustix::fs::XattrFlags::empty();
            rustix::fs::fsetxattr(&c, "user.frit.overlay", &mark[..len], none).unwrap();
        }
        Err(e) => eprintln!("skipped: a copy with attributes ({e})"),
    }
    assert!(!place.has_closed("c", "killed"));
    std::fs::rename(place.at("a"), place.at("d")).unwrap();
    assert!(place.has("d", "killed"));
    // The overlay now records the new path of its image.
    assert!(!place.has_closed("c", "killed"));
}

#[test]
fn an_overlay_in_a_directory_of_ones_own_is_found_without_its_name() {
    let place = TestDirs::new();
    place.killed("img");
    let image = File::open(place.at("img")).unwrap();
    if rustix::fs::fgetxattr(&image, "user.frit.overlay", &mut [0; 4096]).is_err() {
        eprintln!("skipped: the file system has no attributes of users");
        return;
    }
    let medium = Overlaid::open(&place.at("img"), &OverlayOptions::default()).unwrap();
    assert!(has(medium, "killed"));
    assert_eq!(place.left().len(), 1);
}

#[test]
fn an_image_restored_from_a_backup_is_refused() {
    let place = TestDirs::new();
    place.killed("img");
    std::fs::copy(place.at("img"), place.at("backup")).unwrap();
    std::fs::rename(place.at("img"), place.at("kept")).unwrap();
    std::fs::rename(place.at("backup"), place.at("img")).unwrap();
    refused(place.medium("img"), "it was replaced");
    std::fs::remove_file(place.at("img")).unwrap();
    std::fs::rename(place.at("kept"), place.at("img")).unwrap();
    assert!(place.has("img", "killed"));
}

/// Creates images until one has the inode number of a deleted one.
fn reuse(place: &TestDirs, inode: u64) -> bool {
    (0..200).any(|i| {
        let path = place.at(&format!("new{i}"));
        let file = File::create(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        let same = file.metadata().unwrap().ino() == inode;
        if same {
            std::fs::rename(path, place.at("img")).unwrap();
        }
        same
    })
}

#[test]
fn a_new_image_with_the_inode_of_a_deleted_one_is_itself() {
    let place = TestDirs::new();
    place.killed("img");
    let [old] = &place.left()[..] else { panic!("one overlay") };
    let inode = place.at("img").metadata().unwrap().ino();
    std::fs::remove_file(place.at("img")).unwrap();
    if !reuse(&place, inode) {
        eprintln!("skipped: this file system does not use numbers of inodes again");
        return;
    }
    let medium = place.medium("img").unwrap();
    // The deletion is certain only on file systems with an ID of their own.
    let known = [0xef53, 0x9123_683e_u64];
    let certain = known.contains(&(rustix::fs::statfs(place.at("img")).unwrap().f_type as u64));
    let [note] = &place.notes(&medium)[..] else { panic!("{:?}", medium.notes()) };
    assert_eq!(matches!(note, OverlayNote::Removed(_)), certain, "{note:?}");
    let note = note.message();
    assert_eq!(old.exists(), !certain, "{note}");
    assert!(note.contains(old.to_str().unwrap()) && note.contains("KiB of changes"), "{note}");
    assert_eq!(note.contains("was deleted before"), certain, "{note}");
    let fs = Fs::format(medium, FormatOptions::default()).unwrap();
    assert!(fs.lookup(ROOT, Ino::ROOT, b"killed").is_err());
    make(&fs, "new");
    drop(fs);
    assert!(place.has("img", "new"));
}

#[test]
fn changes_of_an_image_that_is_not_there_are_reported_and_kept() {
    let place = TestDirs::new();
    place.killed("img");
    let [old] = &place.left()[..] else { panic!("one overlay") };
    let away = tempfile::tempdir().unwrap();
    std::fs::rename(place.at("img"), away.path().join("img")).unwrap();
    File::create(place.at("other")).unwrap().set_len(1 << 20).unwrap();
    let medium = place.medium("other").unwrap();
    let [OverlayNote::Left(note)] = &place.notes(&medium)[..] else { panic!("{:?}", medium.notes()) };
    assert!(note.contains("no longer there") && note.contains("or remove"), "{note}");
    drop(medium);
    assert!(old.exists());
    std::fs::rename(away.path().join("img"), place.at("img")).unwrap();
    assert!(place.notes(&place.medium("other").unwrap()).is_empty());
    assert!(place.has("img", "killed"));
}

#[test]
fn an_image_that_is_deleted_while_it_is_open_leaves_nothing() {
    let place = TestDirs::new();
    File::create(place.at("img")).unwrap().set_len(1 << 20).unwrap();
    let fs = Fs::format(place.medium("img").unwrap(), FormatOptions::default()).unwrap();
    fs.sync().unwrap();
    make(&fs, "f");
    std::fs::remove_file(place.at("img")).unwrap();
    drop(fs);
    assert_eq!(list(place.memory.path()), Vec::<PathBuf>::new());
    assert_eq!(list(place.disk.path()), Vec::<PathBuf>::new());
}

#[test]
fn overlays_of_older_versions_are_taken_up() {
    let place = TestDirs::new();
    place.killed("img");
    let [overlay] = &place.left()[..] else { panic!("one overlay") };
    let meta = place.at("img").metadata().unwrap();
    let older = place.memory.path().join(format!("frit-{:x}-{:x}.overlay", meta.dev(), meta.ino()));
    std::fs::rename(overlay, &older).unwrap();
    std::fs::remove_dir(overlay.parent().unwrap()).unwrap();
    let fs = Fs::open(place.medium("img").unwrap(), FsOptions::default()).unwrap();
    assert!(fs.lookup(ROOT, Ino::ROOT, b"killed").is_ok());
    drop(fs.close().unwrap());
    assert_eq!(list(place.memory.path()), Vec::<PathBuf>::new());
}

#[test]
fn root_keeps_changes_to_an_image_where_its_owner_finds_them() {
    if no_root() {
        return;
    }
    let place = TestDirs::new();
    File::create(place.at("img")).unwrap().set_len(1 << 20).unwrap();
    chown(place.at("img"), Some(OTHER), Some(OTHER)).unwrap();
    place.killed("img");
    let dir = place.memory.path().join(format!("frit-{OTHER}"));
    let [overlay] = &list(&dir)[..] else { panic!("one overlay") };
    assert_eq!((dir.metadata().unwrap().uid(), overlay.metadata().unwrap().uid()), (OTHER, OTHER));
    assert!(place.has("img", "killed"));
}

#[test]
fn root_follows_no_link_of_another_user() {
    if no_root() {
        return;
    }
    let place = TestDirs::new();
    File::create(place.at("img")).unwrap().set_len(1 << 20).unwrap();
    chown(place.at("img"), Some(OTHER), Some(OTHER)).unwrap();
    let dir = place.memory.path().join(format!("frit-{OTHER}"));
    symlink(place.disk.path(), &dir).unwrap();
    std::os::unix::fs::lchown(&dir, Some(OTHER), Some(OTHER)).unwrap();
    place.killed("img");
    assert!(list(place.disk.path()).iter().all(|path| !path.to_str().unwrap().contains("overlay")));
    assert!(place.has("img", "killed"));
    // A hard link to a file of root is not accepted as an overlay.
    let precious = place.memory.path().join("precious");
    std::fs::write(&precious, b"precious").unwrap();
    let overlays = list(place.memory.path()).into_iter().filter(|path| path.is_dir() && !path.is_symlink());
    let [overlay] = &overlays.flat_map(|dir| list(&dir)).collect::<Vec<_>>()[..] else {
        panic!("one overlay")
    };
    std::fs::remove_file(overlay).unwrap();
    std::fs::hard_link(&precious, overlay).unwrap();
    assert!(place.medium("img").is_err());
    assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
}

#[test]
fn the_lock_file_of_an_image_is_its_owners() {
    let place = TestDirs::new();
    let image = File::create(place.at("img")).unwrap();
    let first = LockFile::open(&image).unwrap().unwrap();
    first.file().try_lock().unwrap();
    assert!(first.is_current());
    let second = LockFile::open(&image).unwrap().unwrap();
    assert!(second.file().try_lock_shared().is_err());
    first.remove();
    drop(first);
    // The second lock was granted after the file was removed, so it is no longer current.
    second.file().try_lock().unwrap();
    assert!(!second.is_current());
    drop(second);
    let third = LockFile::open(&image).unwrap().unwrap();
    third.file().try_lock().unwrap();
    assert_eq!(third.file().metadata().unwrap().mode() & 0o7777, 0o600);
    // The removal also removes lock files of killed processes, but none in use.
    let other = LockFile::open(&File::create(place.at("img2")).unwrap()).unwrap().unwrap();
    other.remove();
    assert!(third.is_current() && !other.is_current());
    let left = LockFile::open(&File::create(place.at("img3")).unwrap()).unwrap().unwrap();
    third.remove();
    assert!(!left.is_current());
    assert!(Image::open(&place.at("img"), &place.overlay()).is_err(), "it is empty");
}
