//! Removed inodes that somebody has looked up (S7).

use super::*;
use frit_fs::{InStorage, InodeType, RenameMode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Inode numbers that somebody has looked up.
#[derive(Clone)]
struct LookedUp(Arc<[AtomicBool; 64]>);

impl LookedUp {
    fn of(fs: &dyn FileSystem) -> LookedUp {
        let looked_up = LookedUp(Arc::new(std::array::from_fn(|_| AtomicBool::new(false))));
        let numbers = looked_up.clone();
        fs.set_looked_up(Box::new(move |ino| numbers.0[ino.0 as usize % 64].load(Ordering::SeqCst)));
        looked_up
    }

    fn set(&self, ino: Ino) {
        self.0[ino.0 as usize % 64].store(true, Ordering::SeqCst);
    }

    fn forget(&self, fs: &dyn FileSystem, ino: Ino) {
        self.0[ino.0 as usize % 64].store(false, Ordering::SeqCst);
        fs.forgotten(ino).unwrap();
    }
}

/// Returns the number of free blocks and inodes.
fn space(fs: &dyn FileSystem) -> (u64, u64) {
    let blocks = if image_only("space for contents depends on the pool") { 0 } else { free(fs) };
    (blocks, fs.usage().unwrap().inodes_free)
}

#[test]
fn what_is_looked_up_needs_no_name() {
    let fs = fresh(1 << 20);
    let looked_up = LookedUp::of(&fs);
    file(&fs, "g");
    let (blocks, inodes) = space(&fs);
    let f = file(&fs, "f");
    write(&fs, f, 0, b"old");
    looked_up.set(f);
    fs.rename(ROOT, (TOP, b"g"), (TOP, b"f"), RenameMode::Replace).unwrap();
    // Its space is free for others, and it can still be opened.
    assert_eq!(space(&fs), (blocks, inodes));
    assert_eq!((contents(&fs, f), fs.attr(f).unwrap().links), (b"old".to_vec(), 0));
    fs.pin(f).unwrap();
    write(&fs, f, 3, b"er");
    fs.unpin(f).unwrap();
    assert_eq!(contents(&fs, f), b"older");
    looked_up.forget(&fs, f);
    refused!(fs.attr(f), Stale);
    // An open file that is forgotten first is freed by its close.
    let f = file(&fs, "f2");
    fs.pin(f).unwrap();
    looked_up.set(f);
    fs.unlink(ROOT, TOP, b"f2").unwrap();
    looked_up.forget(&fs, f);
    assert_eq!(fs.attr(f).unwrap().links, 0);
    fs.unpin(f).unwrap();
    refused!(fs.attr(f), Stale);
    // The kernel opens directories and pipes without a request: they stay, also if inodes are wanted.
    let d = directory(&fs, "d");
    let pipe = NewInode { kind: InodeType::Fifo, mode: 0o600, rdev: 0, target: &[] };
    let pipe = fs.create(ROOT, TOP, b"p", pipe).unwrap().ino;
    looked_up.set(d);
    looked_up.set(pipe);
    fs.rmdir(ROOT, TOP, b"d").unwrap();
    fs.unlink(ROOT, TOP, b"p").unwrap();
    while fs.create(ROOT, TOP, format!("h{}", space(&fs).1).as_bytes(), NewInode::file(0o600)).is_ok() {}
    assert_eq!((fs.attr(d).unwrap().links, fs.attr(pipe).unwrap().links), (0, 0));
    looked_up.forget(&fs, pipe);
    looked_up.forget(&fs, d);
    refused!(fs.attr(pipe), Stale);
    refused!(fs.attr(d), Stale);
    assert_clean(&fs.close().unwrap());
}

#[test]
fn what_is_looked_up_gives_its_space_to_those_who_need_it() {
    if image_only("space for contents depends on the pool") {
        return;
    }
    let fs = fresh(1 << 20);
    let looked_up = LookedUp::of(&fs);
    let (old, new) = (fill(&fs, "old"), file(&fs, "new"));
    looked_up.set(old);
    let size = fs.attr(old).unwrap().size;
    fs.unlink(ROOT, TOP, b"old").unwrap();
    assert!(fs.attr(old).is_ok());
    let all = vec![7; size as usize];
    assert_eq!(fs.write(new, 0, &all).unwrap(), all.len());
    refused!(fs.attr(old), Stale);
    assert_eq!(contents(&fs, new), all);
    // A write that was short otherwise is complete.
    resize(&fs, new, 8 * BLOCK);
    let next = fill(&fs, "next");
    looked_up.set(new);
    fs.unlink(ROOT, TOP, b"new").unwrap();
    let end = fs.attr(next).unwrap().size;
    assert_eq!(fs.write(next, end, &[8; 8 * BLOCK as usize]).unwrap(), 8 * BLOCK as usize);
    // Copies of the engine find it as well.
    looked_up.set(next);
    let last = file(&fs, "last");
    fs.unlink(ROOT, TOP, b"next").unwrap();
    let fs = Arc::new(fs);
    Arc::clone(&fs).open_contents(ROOT, last, true).unwrap().write(0, &all).unwrap();
    assert_eq!(contents(&*fs, last), all);
    assert_clean(&Arc::into_inner(fs).unwrap().close().unwrap());
}

#[test]
fn space_that_is_being_freed_is_free() {
    if image_only("space for contents depends on the pool") {
        return;
    }
    let fs = fresh(16 << 20);
    let looked_up = LookedUp::of(&fs);
    file(&fs, "first");
    let before = space(&fs);
    for _ in 0..100 {
        let f = scattered(&fs, "f", 1000, 7);
        looked_up.set(f);
        fs.unlink(ROOT, TOP, b"f").unwrap();
        std::thread::scope(|threads| {
            let forget = threads.spawn(|| looked_up.forget(&fs, f));
            while !forget.is_finished() {
                assert_eq!(space(&fs), before);
            }
        });
    }
}

#[test]
fn large_files_of_a_pool_are_freed_with_their_name() {
    let fs = fresh(1 << 20);
    let looked_up = LookedUp::of(&fs);
    let (small, large) = (file(&fs, "small"), file(&fs, "large"));
    write(&fs, small, 0, &[1; 60_000]);
    write(&fs, large, 0, &[2; 70_000]);
    looked_up.set(small);
    looked_up.set(large);
    fs.unlink(ROOT, TOP, b"small").unwrap();
    fs.unlink(ROOT, TOP, b"large").unwrap();
    assert_eq!(contents(&fs, small), [1; 60_000]);
    if image_only("a file in an image is kept") {
        refused!(fs.attr(large), Stale);
    } else {
        assert_eq!(contents(&fs, large), [2; 70_000]);
    }
}

#[test]
fn what_is_looked_up_is_freed_once_whoever_comes_first() {
    let fs = fresh(1 << 20);
    let looked_up = LookedUp::of(&fs);
    file(&fs, "first");
    let before = space(&fs);
    for round in 0..2000 {
        let f = file(&fs, "f");
        write(&fs, f, 0, b"some");
        looked_up.set(f);
        if round % 2 == 0 {
            fs.pin(f).unwrap();
        }
        std::thread::scope(|threads| {
            let _ = threads.spawn(|| fs.unlink(ROOT, TOP, b"f").unwrap());
            let _ = threads.spawn(|| looked_up.forget(&fs, f));
            if round % 2 == 0 {
                let _ = threads.spawn(|| fs.unpin(f).unwrap());
            }
        });
        refused!(fs.attr(f), Stale);
    }
    assert_eq!(space(&fs), before);
    assert_clean(&fs.close().unwrap());
}
