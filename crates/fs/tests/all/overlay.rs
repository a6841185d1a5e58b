//! Images in ordinary files: contents after a kill, refused images, and concurrent threads.

use frit_fs::{
    Caller, Error, FileSystem, FormatOptions, Fs, FsOptions, Ino, Medium, NewInode, Overlaid, OverlayOptions,
    check,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ROOT: &Caller = &Caller::ROOT;
const BYTES: u64 = 4 << 20;

/// A directory on a disk and one in memory.
struct TestDirs {
    disk: tempfile::TempDir,
    memory: tempfile::TempDir,
}

impl TestDirs {
    fn new() -> Self {
        let place =
            Self { disk: tempfile::tempdir().unwrap(), memory: tempfile::tempdir_in("/dev/shm").unwrap() };
        std::fs::File::create(place.image()).unwrap().set_len(BYTES).unwrap();
        place
    }

    fn image(&self) -> PathBuf {
        self.disk.path().join("img")
    }

    fn overlay(&self) -> OverlayOptions {
        OverlayOptions { dir: Some(self.memory.path().into()), ..OverlayOptions::default() }
    }

    fn medium(&self) -> Result<Overlaid, Error> {
        Overlaid::open(&self.image(), &self.overlay())
    }

    fn open(&self) -> Fs<Overlaid> {
        Fs::open(self.medium().unwrap(), FsOptions::default()).unwrap()
    }

    fn made(&self) -> Fs<Overlaid> {
        Fs::format(self.medium().unwrap(), FormatOptions::default()).unwrap()
    }

    fn names(&self) -> (Vec<String>, Vec<String>) {
        (list(self.disk.path()), list(self.memory.path()))
    }
}

fn list(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn file(fs: &dyn FileSystem, name: &str, bytes: &[u8]) -> Ino {
    let ino = fs.create(ROOT, Ino::ROOT, name.as_bytes(), NewInode::file(0o644)).unwrap().ino;
    assert_eq!(fs.write(ino, 0, bytes).unwrap(), bytes.len());
    ino
}

fn contents(fs: &dyn FileSystem, name: &str) -> Vec<u8> {
    let attr = fs.lookup(ROOT, Ino::ROOT, name.as_bytes()).unwrap();
    let mut bytes = vec![0; attr.size as usize];
    assert_eq!(fs.read(attr.ino, 0, &mut bytes).unwrap(), bytes.len());
    bytes
}

fn refused<T>(done: Result<T, Error>) -> String {
    match done {
        Err(Error::Image(why)) => why,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was not refused"),
    }
}

#[test]
fn the_image_changes_with_a_sync_alone() {
    let place = TestDirs::new();
    let fs = place.made();
    fs.sync().unwrap();
    let before = std::fs::read(place.image()).unwrap();
    file(&fs, "f", &[7; 100_000]);
    assert!(std::fs::read(place.image()).unwrap() == before);
    assert!(fs.medium().unsynced() > 100_000);
    fs.sync().unwrap();
    assert_eq!(fs.medium().unsynced(), 0);
    assert!(std::fs::read(place.image()).unwrap() != before);
    let synced = std::fs::metadata(place.image()).unwrap().modified().unwrap();
    fs.sync().unwrap();
    assert_eq!(std::fs::metadata(place.image()).unwrap().modified().unwrap(), synced, "nothing has changed");
}

#[test]
fn an_overlay_ends_with_its_last_change() {
    let place = TestDirs::new();
    let fs = place.made();
    file(&fs, "f", b"bytes");
    let (disk, memory) = place.names();
    assert_eq!((disk, memory.len()), (vec!["img".to_string(), "img.sync".to_string()], 1));
    drop(fs);
    assert_eq!(place.names().1.len(), 1, "not closed, as after a kill");
    let fs = place.open();
    assert_eq!(contents(&fs, "f"), b"bytes");
    drop(fs.close().unwrap());
    assert_eq!(place.names(), (vec!["img".to_string()], Vec::new()));
    assert_eq!(contents(&place.open(), "f"), b"bytes");
}

#[test]
fn a_kill_behind_any_sync_is_gone_on_from() {
    let place = TestDirs::new();
    drop(place.made());
    for i in 0..6 {
        let fs = place.open();
        file(&fs, &format!("synced{i}"), b"1");
        fs.sync().unwrap();
        file(&fs, &format!("killed{i}"), b"2");
        drop(fs);
    }
    let fs = place.open();
    assert_eq!((0..6).filter(|i| contents(&fs, &format!("killed{i}")) == b"2").count(), 6);
}

#[test]
fn an_image_that_was_replaced_is_refused() {
    let place = TestDirs::new();
    let fs = place.made();
    file(&fs, "old", b"1");
    drop(fs.close().unwrap());
    let backup = std::fs::read(place.image()).unwrap();
    let fs = place.open();
    file(&fs, "new", b"2");
    fs.sync().unwrap();
    file(&fs, "newer", b"3");
    drop(fs);
    let kept = std::fs::read(place.image()).unwrap();
    std::fs::write(place.image(), &backup).unwrap();
    let why = refused(place.medium());
    assert!(why.contains("it was replaced") && why.contains("remove"), "{why}");
    // The original image is accepted again.
    std::fs::write(place.image(), &kept).unwrap();
    assert_eq!(contents(&place.open(), "newer"), b"3");
    // The changes can be discarded by removing the overlay.
    std::fs::write(place.image(), &backup).unwrap();
    refused(place.medium());
    let overlay = place.memory.path().join(&place.names().1[0]);
    std::fs::remove_file(overlay).unwrap();
    let fs = place.open();
    assert_eq!(contents(&fs, "old"), b"1");
    assert!(fs.lookup(ROOT, Ino::ROOT, b"new").is_err());
}

#[test]
fn a_copy_is_another_image_and_a_moved_one_is_refused() {
    let place = TestDirs::new();
    let fs = place.made();
    fs.sync().unwrap();
    file(&fs, "f", b"1");
    drop(fs);
    let copy = place.disk.path().join("copy");
    std::fs::copy(place.image(), &copy).unwrap();
    let other = Fs::open(Overlaid::open(&copy, &place.overlay()).unwrap(), FsOptions::default()).unwrap();
    assert!(other.lookup(ROOT, Ino::ROOT, b"f").is_err(), "it is as of the last sync");
    drop(other.close().unwrap());
    std::fs::remove_file(place.image()).unwrap();
    let why = refused(Overlaid::open(&copy, &place.overlay()));
    assert!(why.contains("when it was") && why.contains("remove"), "{why}");
}

#[test]
fn nobody_else_has_it_open() {
    let place = TestDirs::new();
    let fs = place.made();
    assert!(refused(place.medium()).contains("in use"));
    drop(fs);
    place.open();
}

#[test]
fn a_new_file_system_is_without_what_was_left() {
    let place = TestDirs::new();
    let fs = place.made();
    fs.sync().unwrap();
    file(&fs, "f", &[1; 50_000]);
    drop(fs);
    let medium = Overlaid::fresh(&place.image(), &place.overlay()).unwrap();
    let fs = Fs::format(medium, FormatOptions { force: true, ..FormatOptions::default() }).unwrap();
    assert!(fs.lookup(ROOT, Ino::ROOT, b"f").is_err());
    assert!(check(fs.medium()).unwrap().is_clean());
}

#[test]
fn an_overlay_has_to_be_in_memory() {
    let place = TestDirs::new();
    let on_disk = OverlayOptions { dir: Some(place.disk.path().into()), ..OverlayOptions::default() };
    assert!(refused(Overlaid::open(&place.image(), &on_disk)).contains("is not a directory in memory"));
}

/// Threads write words to shared pages, each to its own words, while another thread syncs. Each
/// thread reads back its words, and the image has all of them at the end.
#[test]
fn threads_change_words_of_the_same_pages_while_it_is_synced() {
    const THREADS: u64 = 4;
    const PAGES: u64 = 24;
    let place = TestDirs::new();
    // A small bound, so that writes perform syncs as well.
    let overlay = OverlayOptions { bound: 16 * 4096, ..place.overlay() };
    let medium = Arc::new(Overlaid::open(&place.image(), &overlay).unwrap());
    let over = Arc::new(AtomicBool::new(false));
    let syncer = {
        let (medium, over) = (Arc::clone(&medium), Arc::clone(&over));
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                medium.sync().unwrap();
            }
        })
    };
    let writers: Vec<_> = (0..THREADS)
        .map(|me| {
            let medium = Arc::clone(&medium);
            std::thread::spawn(move || {
                let mut rng = SmallRng::seed_from_u64(me);
                let mut shadow = vec![0_u64; (PAGES * 512 / THREADS) as usize];
                for _ in 0..4000 {
                    let i = rng.random_range(0..shadow.len());
                    // The first page is left out, because syncs write a stamp at its end.
                    let at = 4096 + 8 * (me + THREADS * i as u64);
                    let mut word = [0; 8];
                    medium.read(at, &mut word);
                    assert_eq!(u64::from_le_bytes(word), shadow[i]);
                    if rng.random_bool(0.5) {
                        shadow[i] = rng.random();
                        medium.write(at, &shadow[i].to_le_bytes());
                    }
                }
                shadow
            })
        })
        .collect();
    let shadows: Vec<Vec<u64>> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
    over.store(true, Ordering::Relaxed);
    syncer.join().unwrap();
    medium.sync().unwrap();
    assert_eq!(medium.unsynced(), 0);
    let image = std::fs::read(place.image()).unwrap();
    for (i, bytes) in image[4096..].chunks_exact(8).take((PAGES * 512) as usize).enumerate() {
        let (me, word) = (i % THREADS as usize, i / THREADS as usize);
        assert_eq!(u64::from_le_bytes(bytes.try_into().unwrap()), shadows[me][word], "word {i}");
    }
}

/// The same with operations of a file system, checked after a simulated kill of the process.
#[test]
fn a_bound_holds_and_nothing_is_lost() {
    let place = TestDirs::new();
    let overlay = OverlayOptions { bound: 64 * 4096, ..place.overlay() };
    let fs = Fs::format(Overlaid::open(&place.image(), &overlay).unwrap(), FormatOptions::default()).unwrap();
    let mut rng = SmallRng::seed_from_u64(5);
    for i in 0..60 {
        let bytes = vec![i as u8; rng.random_range(1..60_000)];
        file(&fs, &format!("f{i}"), &bytes);
        // The limit is checked after each step of a write, so it may be exceeded by one step.
        assert!(fs.medium().unsynced() <= overlay.bound + (1 << 20), "{}", fs.medium().unsynced());
        assert_eq!(contents(&fs, &format!("f{i}")), bytes);
    }
    drop(fs);
    let fs = place.open();
    assert!(check(fs.medium()).unwrap().is_clean());
    for i in 0..60 {
        assert!(contents(&fs, &format!("f{i}")).iter().all(|byte| *byte == i as u8));
    }
}
