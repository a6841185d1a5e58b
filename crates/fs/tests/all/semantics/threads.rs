//! Concurrent operations.

use super::*;
use frit_fs::{OpenFile, RenameMode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;

#[test]
fn s50_a_read_sees_a_write_whole_or_not_at_all() {
    let fs = fresh(4 << 20);
    let f = file(&fs, "f");
    const LEN: usize = 64 << 10;
    write(&fs, f, 0, &vec![0; LEN]);
    let over = AtomicBool::new(false);
    scope(|s| {
        s.spawn(|| {
            for i in 0..500u32 {
                // In place, and after a punch that frees all blocks.
                if i % 4 == 3 {
                    fs.allocate(f, frit_fs::Allocate::Punch, 0, LEN as u64).unwrap();
                }
                write(&fs, f, 0, &vec![i as u8; LEN]);
            }
            over.store(true, Ordering::Relaxed);
        });
        s.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let seen = contents(&fs, f);
                assert!(seen.iter().all(|byte| *byte == seen[0]));
            }
        });
    });
}

#[test]
fn s51_appends_of_several_threads_are_all_there() {
    let fs = fresh(16 << 20);
    let f = file(&fs, "f");
    scope(|s| {
        for id in 1..=4u8 {
            let fs = &fs;
            s.spawn(move || {
                for _ in 0..200 {
                    let (end, len) = fs.append(f, &[id; 1000]).unwrap();
                    assert!(len == 1000 && end.is_multiple_of(1000));
                }
            });
        }
    });
    let all = contents(&fs, f);
    assert_eq!(all.len(), 800_000);
    let owners: Vec<u8> = all.chunks(1000).map(|record| record[0]).collect();
    assert!(all.chunks(1000).zip(&owners).all(|(record, id)| record == [*id; 1000]));
    assert!((1..=4).all(|id| owners.iter().filter(|owner| **owner == id).count() == 200));
}

#[test]
fn s52_a_name_that_is_replaced_is_there_at_every_moment() {
    let fs = fresh(4 << 20);
    file(&fs, "f");
    let over = AtomicBool::new(false);
    scope(|s| {
        s.spawn(|| {
            for _ in 0..20_000 {
                file(&fs, "new");
                fs.rename(ROOT, (TOP, b"new"), (TOP, b"f"), RenameMode::Replace).unwrap();
            }
            over.store(true, Ordering::Relaxed);
        });
        for _ in 0..2 {
            s.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let _ = fs.lookup(ROOT, TOP, b"f").unwrap();
                    fs.open_file(ROOT, "f", OpenFile::READ).unwrap().attr().unwrap();
                }
            });
        }
    });
}

#[test]
fn s53_of_several_who_make_a_name_one_does() {
    let fs = fresh(4 << 20);
    for round in 0..300 {
        let name = format!("{round}");
        let make = || fs.create(ROOT, TOP, name.as_bytes(), NewInode::symlink(b"t")).is_ok();
        let made = scope(|s| [s.spawn(make), s.spawn(make)].map(|thread| thread.join().unwrap()));
        assert_eq!(made.into_iter().filter(|made| *made).count(), 1);
        fs.unlink(ROOT, TOP, name.as_bytes()).unwrap();
    }
}

#[test]
fn s54_directories_that_move_at_once_stay_a_tree() {
    let fs = fresh(4 << 20);
    let (a, b) = (directory(&fs, "a"), directory(&fs, "b"));
    for _ in 0..300 {
        let into = |from: &'static [u8], to: Ino| {
            let fs = &fs;
            move || fs.rename(ROOT, (TOP, from), (to, from), RenameMode::Replace).is_ok()
        };
        let moved =
            scope(|s| [s.spawn(into(b"a", b)), s.spawn(into(b"b", a))].map(|thread| thread.join().unwrap()));
        assert_eq!(moved.into_iter().filter(|moved| *moved).count(), 1, "one is below the other then");
        let (name, from) = if moved[0] { (b"a", b) } else { (b"b", a) };
        fs.rename(ROOT, (from, name), (TOP, name), RenameMode::Replace).unwrap();
    }
    assert_clean(fs.medium());
}
