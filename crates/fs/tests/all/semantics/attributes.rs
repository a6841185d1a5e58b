//! Attributes and times.

use super::*;
use frit_fs::{FILE_MAX, SetTime, Time};
use std::sync::Arc;

#[test]
fn s29_attributes_change_all_or_none() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    let before = fs.attr(f).unwrap();
    let too_large =
        AttrChanges { mode: Some(0o777), uid: Some(5), size: Some(FILE_MAX + 1), ..AttrChanges::default() };
    refused!(fs.set_attr(ROOT, f, &too_large), TooLarge);
    assert_eq!(fs.attr(f).unwrap(), before);
    let size = AttrChanges { size: Some(77), ..too_large };
    let after = fs.set_attr(ROOT, f, &size).unwrap();
    assert_eq!((after.mode, after.uid, after.size, fs.attr(f).unwrap()), (0o777, 5, 77, after));
    refused!(fs.set_attr(ROOT, TOP, &AttrChanges { size: Some(0), ..AttrChanges::default() }), IsDirectory);
    let link = fs.create(ROOT, TOP, b"l", NewInode::symlink(b"f")).unwrap().ino;
    refused!(fs.set_attr(ROOT, link, &AttrChanges { mode: Some(0), ..AttrChanges::default() }), Unsupported);
}

#[test]
fn s30_times_are_nanoseconds_from_1677_to_2262() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    let set = |atime, mtime| {
        let times = AttrChanges {
            atime: Some(SetTime::To(atime)),
            mtime: Some(SetTime::To(mtime)),
            ..AttrChanges::default()
        };
        let _ = fs.set_attr(ROOT, f, &times).unwrap();
        (fs.attr(f).unwrap().atime, fs.attr(f).unwrap().mtime)
    };
    let (past, future) = (Time::new(-3, 250_000_001), Time::new(9_000_000_000, 999_999_999));
    assert_eq!(set(past, future), (past, future));
    assert_eq!(past.split(), (-3, 250_000_001));
    assert_eq!((Time::new(i64::MAX, 0).0, Time::new(i64::MIN, 0).0), (i64::MAX, i64::MIN));
    let fs = again(fs.close().unwrap());
    assert_eq!((fs.attr(f).unwrap().atime, fs.attr(f).unwrap().mtime), (past, future));
}

#[test]
fn s31_each_operation_moves_its_times() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    let moved = |what: &dyn Fn()| {
        let of = |ino| fs.attr(ino).unwrap();
        let (a, top) = (of(f), of(TOP));
        tick();
        what();
        let b = of(f);
        [b.mtime > a.mtime, b.ctime > a.ctime, of(TOP).mtime > top.mtime]
    };
    assert_eq!(moved(&|| write(&fs, f, 0, b"new")), [true, true, false]);
    assert_eq!(moved(&|| write(&fs, f, 0, b"old")), [true, true, false]);
    assert_eq!(moved(&|| resize(&fs, f, 1)), [true, true, false]);
    let mode = AttrChanges { mode: Some(0o600), ..AttrChanges::default() };
    assert_eq!(moved(&|| assert!(fs.set_attr(ROOT, f, &mode).is_ok())), [false, true, false]);
    assert_eq!(moved(&|| assert!(fs.link(ROOT, f, TOP, b"g").is_ok())), [false, true, true]);
    assert_eq!(moved(&|| fs.unlink(ROOT, TOP, b"g").unwrap()), [false, true, true]);
    let any = frit_fs::XattrMode::Any;
    assert_eq!(moved(&|| fs.set_xattr(ROOT, f, b"user.a", b"", any).unwrap()), [false, true, false]);
    let [mtime, ctime, _] = moved(&|| fs.allocate(f, frit_fs::Allocate::Keep, 0, 9).unwrap());
    assert!(ctime && (!mtime || image_only("the pool counts it as a change of contents")));
    let replace = frit_fs::RenameMode::Replace;
    let rename = || fs.rename(ROOT, (TOP, b"f"), (TOP, b"h"), replace).unwrap();
    assert_eq!(moved(&rename), [false, true, true]);
    assert_eq!(moved(&|| drop(contents(&fs, f))), [false; 3]);
}

#[test]
fn s32_access_times_move_as_relatime_has_it() {
    if image_only("access times of contents depend on the pool") {
        return;
    }
    let medium = memory(1 << 20);
    let fs = on(Arc::clone(&medium));
    let f = file(&fs, "f");
    write(&fs, f, 0, b"bytes");
    let read = |fs: &Fs<AnyMedium>| {
        let _ = contents(fs, f);
        fs.attr(f).unwrap().atime
    };
    let first = read(&fs);
    assert!(first > fs.attr(f).unwrap().mtime, "it changed since");
    assert_eq!(read(&fs), first, "it did not");
    write(&fs, f, 0, b"other");
    let second = read(&fs);
    assert!(second > first);
    let (_, top) = (names(&fs, TOP), fs.attr(TOP).unwrap());
    assert!(top.atime > top.mtime, "listing is reading");
    fs.close().unwrap();
    let day = 24 * 3600 * 1_000_000_000;
    for (later, moves) in [(day - 1_000_000, false), (day, true)] {
        let clock = Clock::counted(second.0 + later);
        let fs = Fs::open(Arc::clone(&medium), FsOptions { clock, ..FsOptions::default() }).unwrap();
        assert_eq!(read(&fs) > second, moves, "a day old");
    }
}

#[test]
fn s33_times_of_reads_and_overwrites_wait_in_dram() {
    if image_only("the pool keeps the times of contents") {
        return;
    }
    type Step = fn(&Fs<AnyMedium>, Ino);
    let steps: [(Step, bool); 6] = [
        (|_, _| (), false),
        (|fs, f| fs.sync_file(f, true).unwrap(), false),
        (|fs, f| fs.sync_file(f, false).unwrap(), true),
        (|fs, _| fs.sync().unwrap(), true),
        (|fs, f| assert_eq!(fs.link(ROOT, f, TOP, b"g").unwrap().ino, f), true),
        (|fs, f| write(fs, f, 9000, b"more"), true),
    ];
    for (i, (step, saved)) in steps.into_iter().enumerate() {
        let medium = memory(1 << 20);
        let fs = on(Arc::clone(&medium));
        let f = file(&fs, "f");
        write(&fs, f, 0, b"bytes");
        let durable = fs.attr(f).unwrap();
        write(&fs, f, 0, b"other");
        let _ = contents(&fs, f);
        let in_dram = fs.attr(f).unwrap();
        assert!(in_dram.mtime > durable.mtime && in_dram.atime > in_dram.mtime);
        step(&fs, f);
        drop(fs);
        let found = again(medium).attr(f).unwrap();
        assert_eq!(found.atime == in_dram.atime, saved, "step {i}");
        assert_eq!(found.mtime >= in_dram.mtime, saved, "step {i}");
    }
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    write(&fs, f, 0, b"bytes");
    write(&fs, f, 0, b"other");
    let in_dram = fs.attr(f).unwrap();
    assert_eq!(again(fs.close().unwrap()).attr(f).unwrap(), in_dram);
}

#[test]
fn s34_users_lose_set_id_bits_with_owner_and_size() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    let mode = || fs.attr(f).unwrap().mode;
    let set = || {
        let all =
            AttrChanges { mode: Some(0o6777), uid: Some(1000), gid: Some(1000), ..AttrChanges::default() };
        let _ = fs.set_attr(ROOT, f, &all).unwrap();
        assert_eq!(mode(), 0o6777);
    };
    set();
    resize(&fs, f, 5);
    assert_eq!(mode(), 0o6777, "the superuser keeps them");
    let _ = fs.set_attr(&alice(), f, &AttrChanges { size: Some(0), ..AttrChanges::default() }).unwrap();
    assert_eq!(mode(), 0o777);
    set();
    let _ = fs.set_attr(ROOT, f, &AttrChanges { uid: Some(7), ..AttrChanges::default() }).unwrap();
    assert_eq!(mode(), 0o777, "also the superuser's change of owner");
    set();
    write(&fs, f, 0, b"bytes");
    assert_eq!(mode(), 0o6777, "a write of the library has no user");
}

#[test]
fn s35_sectors_count_all_blocks_of_an_inode() {
    if image_only("blocks are allocated by the pool") {
        return;
    }
    let fs = fresh(1 << 20);
    let f = scattered(&fs, "f", 9, 1);
    assert_eq!(fs.attr(f).unwrap().sectors, (9 + 1) * 8, "nine blocks, and one that says where they are");
    fs.set_xattr(ROOT, f, b"user.a", &[1; 5000], frit_fs::XattrMode::Any).unwrap();
    assert_eq!(fs.attr(f).unwrap().sectors, (9 + 1 + 2) * 8);
    let before = free(&fs);
    fs.unlink(ROOT, TOP, b"f").unwrap();
    assert_eq!(free(&fs), before + 12);
}
