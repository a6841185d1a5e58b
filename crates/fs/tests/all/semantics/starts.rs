//! Formatting, opening and closing.

use super::watched::RecordingMedium;
use super::*;
use frit_fs::{Image, Overlaid, OverlayOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[test]
fn s55_a_medium_that_holds_something_is_left_alone() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    let medium = Arc::new(fs.close().unwrap());
    refused!(Fs::format(Arc::clone(&medium), FormatOptions::default()), Image);
    let fs = again(Arc::clone(&medium));
    assert_eq!(find(&fs, "f").unwrap(), f);
    drop(fs);
    let fs = Fs::format(medium, FormatOptions { force: true, ..FormatOptions::default() }).unwrap();
    assert_eq!(names(&fs, TOP).len(), 0);
    let other = memory(1 << 20);
    other.write(8, &[1; 8]);
    refused!(Fs::format(other, FormatOptions::default()), Image);
}

#[test]
fn s56_it_is_made_whole_or_not_at_all() {
    if image_only("it is opened without a pool") {
        return;
    }
    let medium = Arc::new(RecordingMedium::new(1 << 20));
    drop(on(Arc::clone(&medium)));
    let cuts = medium.cuts();
    let opens = cuts.iter().map(|cut| Fs::open(cut, FsOptions::default()).is_ok());
    let opens: Vec<bool> = opens.collect();
    assert!(!opens[0] && opens[opens.len() - 1] && opens.is_sorted(), "{opens:?}");
    for cut in cuts.iter().zip(opens).filter_map(|(cut, opens)| opens.then_some(cut)) {
        assert_clean(cut);
    }
}

#[test]
fn s57_read_only_changes_nothing() {
    if image_only("it is opened without a pool; `content_store` has the same with one") {
        return;
    }
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    write(&fs, f, 0, b"bytes");
    let medium = fs.close().unwrap();
    let mut before = vec![0; 1 << 20];
    medium.read(0, &mut before);
    let fs = Fs::open(medium, FsOptions { read_only: true, ..FsOptions::default() }).unwrap();
    let attr = fs.attr(f).unwrap();
    assert_eq!(contents(&fs, f), b"bytes");
    assert_eq!(fs.attr(f).unwrap(), attr, "no access time either");
    refused!(fs.write(f, 0, b"x"), ReadOnly);
    refused!(fs.create(ROOT, TOP, b"x", NewInode::file(0)), ReadOnly);
    refused!(fs.unlink(ROOT, TOP, b"f"), ReadOnly);
    refused!(fs.set_attr(ROOT, f, &AttrChanges::default()), ReadOnly);
    refused!(fs.set_xattr(ROOT, f, b"user.a", b"", frit_fs::XattrMode::Any), ReadOnly);
    refused!(fs.allocate(f, frit_fs::Allocate::Punch, 0, 1), ReadOnly);
    fs.sync().unwrap();
    let medium = fs.close().unwrap();
    let mut after = vec![0; 1 << 20];
    medium.read(0, &mut after);
    assert!(before == after);
    // Recovery completes interrupted operations even then.
    let fs = on(Mapped::anonymous(1 << 20).unwrap());
    let f = file(&fs, "f");
    fs.pin(f).unwrap();
    fs.unlink(ROOT, TOP, b"f").unwrap();
    let mut left = vec![0; 1 << 20];
    fs.medium().read(0, &mut left);
    let medium = memory(1 << 20);
    medium.write_data(0, &left);
    let fs = Fs::open(medium, FsOptions { read_only: true, ..FsOptions::default() }).unwrap();
    refused!(fs.attr(f), Stale);
}

#[test]
fn s58_what_a_killed_process_did_is_there() {
    // On a disk, and on tmpfs.
    killed(&ImageDir::new(&std::env::temp_dir(), 1 << 20));
    killed(&ImageDir::new(Path::new("/dev/shm"), 1 << 20));
}

/// An empty image in its own directory, which is removed with all files beside the image.
struct ImageDir(tempfile::TempDir);

impl ImageDir {
    fn new(parent: &Path, bytes: u64) -> ImageDir {
        let empty = ImageDir(tempfile::tempdir_in(parent).unwrap());
        std::fs::File::create(empty.path()).unwrap().set_len(bytes).unwrap();
        empty
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("image")
    }
}

fn killed(image: &ImageDir) {
    let open = || Image::open(&image.path(), &OverlayOptions::default()).unwrap();
    let fs = on(open());
    let f = file(&fs, "f");
    write(&fs, f, 0, &[1; 9000]);
    write(&fs, f, 100, &[2; 5000]);
    directory(&fs, "d");
    // Neither closed nor synced, as after kill -9.
    drop(fs);
    let medium = open();
    assert_clean(&medium);
    assert!(!frit_fs::check(&medium).unwrap().closed);
    let fs = again(medium);
    assert_eq!(names(&fs, TOP), ["d", "f"]);
    assert_eq!(contents(&fs, f), [&[1; 100][..], &[2; 5000], &[1; 3900]].concat());
    fs.close().unwrap();
}

#[test]
fn s59_what_was_synced_last_outlives_the_machine() {
    let medium = Arc::new(RecordingMedium::new(1 << 20));
    let fs = on(Arc::clone(&medium));
    let f = file(&fs, "f");
    write(&fs, f, 0, &[1; 9000]);
    write(&fs, f, 0, &[2; 4000]);
    fs.sync_file(f, true).unwrap();
    // Other files are durable as well, because the image is synced as a whole.
    let found = again(medium.synced());
    assert_eq!(contents(&found, f), [&[2; 4000][..], &[1; 5000]].concat());
    directory(&fs, "d");
    assert_eq!(names(&again(medium.synced()), TOP), ["f"], "an answer alone is no sync");
    fs.sync().unwrap();
    assert_eq!(names(&again(medium.synced()), TOP), ["d", "f"]);
    file(&fs, "g");
    fs.close().unwrap();
    assert_eq!(names(&again(medium.synced()), TOP), ["d", "f", "g"]);
    assert!(frit_fs::check(&medium.synced()).unwrap().closed);
}

/// Creates an image of 16 MiB on a disk, and a directory in memory for its overlay.
fn on_disk() -> (ImageDir, tempfile::TempDir) {
    let image = ImageDir::new(&std::env::temp_dir(), 16 << 20);
    (image, tempfile::tempdir_in("/dev/shm").unwrap())
}

fn overlaid(image: &Path, memory: &Path, bound: u64) -> frit_fs::Result<Overlaid> {
    Overlaid::open(image, &OverlayOptions { dir: Some(memory.into()), bound })
}

#[test]
fn s92_the_image_is_written_by_syncs_which_bound_what_is_in_memory() {
    if image_only("contents are not in the image") {
        return;
    }
    let (image, memory) = on_disk();
    let medium = Arc::new(overlaid(&image.path(), memory.path(), 2 << 20).unwrap());
    let fs = on(Arc::clone(&medium));
    let before = std::fs::read(image.path()).unwrap();
    let f = file(&fs, "f");
    write(&fs, f, 0, &[1; 100_000]);
    assert!(std::fs::read(image.path()).unwrap() == before);
    let mut most = 0;
    for at in (0..8 << 20).step_by(64 << 10) {
        write(&fs, f, at, &[2; 64 << 10]);
        most = most.max(medium.unsynced());
    }
    assert!((512 << 10..=2 << 20).contains(&most), "{most}");
    assert!(std::fs::read(image.path()).unwrap() != before);
    assert_eq!(contents(&fs, f), vec![2; 8 << 20]);
}

#[test]
fn s93_changes_left_over_are_taken_up_or_refused() {
    let (image, memory) = on_disk();
    let open = || overlaid(&image.path(), memory.path(), 64 << 20);
    let fs = on(open().unwrap());
    fs.sync().unwrap();
    let older = std::fs::read(image.path()).unwrap();
    file(&fs, "f");
    fs.sync().unwrap();
    file(&fs, "g");
    drop(fs);
    let newer = std::fs::read(image.path()).unwrap();
    std::fs::write(image.path(), older).unwrap();
    refused!(open(), Image);
    refused!(open(), Image);
    std::fs::write(image.path(), newer).unwrap();
    assert_eq!(names(&again(open().unwrap()), TOP), ["f", "g"]);
}

#[test]
fn s94_nothing_is_left_beside_an_image_that_was_closed() {
    let (image, memory) = on_disk();
    let log = image.path().as_os_str().to_string_lossy().into_owned() + ".sync";
    let fs = on(overlaid(&image.path(), memory.path(), 64 << 20).unwrap());
    file(&fs, "f");
    assert!(Path::new(&log).exists() && std::fs::read_dir(memory.path()).unwrap().count() == 1);
    drop(fs.close().unwrap());
    assert!(!Path::new(&log).exists());
    assert_eq!(std::fs::read_dir(memory.path()).unwrap().count(), 0);
}
