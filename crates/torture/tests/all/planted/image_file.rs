//! Bugs planted in the sync of an image in an ordinary file: power losses find each of them, and
//! find nothing without them.

use crate::workload::workload;
use frit_core::planted::{Found, silence_panics};
use frit_fs::planted::ImageFileBug;
use frit_fs::{Caller, FileSystem, FormatOptions, Fs, Ino, NewInode, Overlaid, OverlayOptions};
use frit_torture::fs::crash::{CutReport, PowerLossCuts};
use frit_torture::fs::every::base;
use std::panic::{AssertUnwindSafe, catch_unwind};
use strum::IntoEnumIterator;

/// Number of sequences that are tried with each bug.
const SEEDS: u64 = 6;

fn hunt(seed: u64) -> Option<CutReport> {
    let cuts = PowerLossCuts { meanwhile: true, nested_one_in: u64::MAX, seed, ..PowerLossCuts::default() };
    // A planted bug may make the file system panic, which counts as found.
    catch_unwind(AssertUnwindSafe(|| cuts.run(&base(), &workload(seed, 24)))).ok()
}

fn finds(seed: u64) -> bool {
    hunt(seed).is_none_or(|found| !found.violations.is_empty())
}

/// Replaces an image by an older state while changes to a newer state remain in the overlay.
/// Returns `true` if the image can be opened.
fn takes_what_belongs_to_another_state() -> bool {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let disk = tempfile::tempdir().unwrap();
    let image = disk.path().join("image");
    std::fs::File::create(&image).unwrap().set_len(1 << 20).unwrap();
    let overlay = OverlayOptions { dir: Some(memory.path().into()), ..OverlayOptions::default() };
    let open = || Overlaid::open(&image, &overlay);
    let fs = Fs::format(open().unwrap(), FormatOptions::default()).unwrap();
    fs.sync().unwrap();
    let older = std::fs::read(&image).unwrap();
    let new = |name| fs.create(&Caller::ROOT, Ino::ROOT, name, NewInode::file(0o600)).unwrap();
    new(b"synced");
    fs.sync().unwrap();
    new(b"left over");
    drop(fs);
    std::fs::write(&image, older).unwrap();
    open().is_ok()
}

#[test]
fn every_planted_bug_of_a_sync_is_found() {
    for seed in 0..SEEDS {
        let found = hunt(seed).unwrap();
        assert!(found.images > 0 && found.violations.is_empty(), "{:?}", found.violations);
    }
    assert!(!takes_what_belongs_to_another_state());
    silence_panics();
    let found = Found::of(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/planted/image_file.csv"));
    for bug in ImageFileBug::iter() {
        // A power cut never replaces an image, so this bug has a case of its own.
        let cases: Vec<_> = match bug {
            ImageFileBug::NumberIgnored => vec![("an older image".to_owned(), None)],
            _ => (0..SEEDS).map(|seed| (format!("seed {seed}"), Some(seed))).collect(),
        };
        found.search(bug, cases, |seed| match seed {
            Some(seed) => finds(*seed).then_some("cuts"),
            None => takes_what_belongs_to_another_state().then_some("open"),
        });
    }
    found.finish();
}
