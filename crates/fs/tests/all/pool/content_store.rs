//! Promises that apply only to a pool.

use super::*;
use frit_fs::{Allocate, ContentId, SetTime, Time, XattrMode, check_pool, repair_pool};

fn sorted(pool: &Pool) -> Vec<ContentId> {
    let mut all = pool.all().unwrap();
    all.sort();
    all
}

fn id(fs: &dyn FileSystem, ino: Ino) -> ContentId {
    ContentId { ino, generation: fs.attr(ino).unwrap().generation }
}

#[test]
fn a_body_comes_with_the_first_bytes_and_goes_with_the_inode() {
    let fs = fresh(1 << 20);
    let pool = pool_of(fs.medium());
    let (f, g) = (file(&fs, "f"), file(&fs, "g"));
    directory(&fs, "d");
    assert_eq!((fs.attr(f).unwrap().size, contents(&fs, f)), (0, Vec::new()));
    refused!(fs.seek(f, Seek::Data, 0), BeyondEnd);
    resize(&fs, g, 0);
    assert_eq!(sorted(&pool), [], "an empty file needs none");
    write(&fs, f, 0, b"bytes");
    fs.pin(g).unwrap();
    assert_eq!(sorted(&pool), [id(&fs, f), id(&fs, g)], "and one for an open file");
    fs.unlink(ROOT, TOP, b"g").unwrap();
    fs.unlink(ROOT, TOP, b"f").unwrap();
    write(&fs, g, 5, b"more");
    assert_eq!(sorted(&pool), [id(&fs, g)]);
    fs.unpin(g).unwrap();
    assert_eq!(sorted(&pool), []);
}

#[test]
fn s96_who_writes_the_body_writes_the_file() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    assert!(fs.content_file(f).is_none(), "the file is not open");
    fs.pin(f).unwrap();
    write(&fs, f, 0, b"by the library");
    let before = fs.attr(f).unwrap();
    tick();
    let content_file = fs.content_file(f).unwrap();
    assert_eq!(rustix::io::pwrite(&content_file, b"from outside, and longer", 0), Ok(24));
    assert_eq!(contents(&fs, f), b"from outside, and longer");
    let after = fs.attr(f).unwrap();
    assert!(after.mtime > before.mtime && after.ctime > before.ctime && after.size == 24);
    assert_eq!(fs.append(f, b".").unwrap(), (25, 1));
    fs.unpin(f).unwrap();
    assert!(fs.content_file(f).is_none());
    let open = fs.open_file(ROOT, "f", frit_fs::OpenFile::READ).unwrap();
    assert!(open.descriptor().is_some());
}

#[test]
fn opening_moves_no_time() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    let made = fs.attr(f).unwrap();
    tick();
    fs.pin(f).unwrap();
    assert_eq!(fs.attr(f).unwrap(), made, "although it has got a content file");
    let to_come =
        AttrChanges { mtime: Some(SetTime::To(Time(8_000_000_000_000_000_000))), ..AttrChanges::default() };
    let set = fs.set_attr(ROOT, f, &to_come).unwrap();
    assert!(set.ctime > made.ctime && set.ctime.0 < set.mtime.0, "a future mtime does not set the ctime");
}

#[test]
fn times_of_contents_outlive_a_kill() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    let times = |t| AttrChanges {
        atime: Some(SetTime::To(Time(t))),
        mtime: Some(SetTime::To(Time(t + 1))),
        ..AttrChanges::default()
    };
    let _ = fs.set_attr(ROOT, f, &times(5_000_000_007)).unwrap();
    fs.pin(f).unwrap();
    assert_eq!(fs.attr(f).unwrap().mtime, Time(5_000_000_008), "a new content file has its times");
    let _ = fs.set_attr(ROOT, f, &times(7_000_000_000)).unwrap();
    let mut image = vec![0; 1 << 20];
    fs.medium().read(0, &mut image);
    let medium = memory(1 << 20);
    medium.write_data(0, &image);
    drop(fs);
    let found = again(medium).attr(f).unwrap();
    assert_eq!((found.atime, found.mtime), (Time(7_000_000_000), Time(7_000_000_001)));
}

#[test]
fn s97_a_start_sweeps_what_a_stop_left() {
    let fs = fresh(1 << 20);
    let pool = pool_of(fs.medium());
    let (f, d) = (file(&fs, "f"), directory(&fs, "d"));
    write(&fs, f, 0, b"bytes");
    let kept = id(&fs, f);
    let older = ContentId { generation: kept.generation + 1, ..kept };
    let never = ContentId { ino: Ino(700), generation: 3 };
    let strays = [older, never, ContentId { ino: d, generation: fs.attr(d).unwrap().generation }];
    let plant = || {
        for stray in strays {
            pool.open(stray, true).unwrap().unwrap().write(0, b"old").unwrap();
        }
    };
    plant();
    // Not closed, as after a kill.
    let mut image = vec![0; 1 << 20];
    fs.medium().read(0, &mut image);
    drop(fs);
    let medium = memory(1 << 20);
    medium.write_data(0, &image);
    let report = check_pool(&medium, &*pool).unwrap();
    assert!(report.is_clean() && report.strays == 3, "{report:?}");
    let fs = again(medium);
    assert_eq!((sorted(&pool), contents(&fs, f)), (vec![kept], b"bytes".to_vec()));
    // After a clean close, stray content files are problems: a check reports them, a repair removes
    // them.
    let medium = fs.close().unwrap();
    plant();
    let report = check_pool(&medium, &*pool).unwrap();
    assert_eq!((report.found, report.strays), (3, 3), "{report:?}");
    let report = repair_pool(&medium, &*pool, &Clock::Wall).unwrap();
    assert!(report.is_clean() && report.repaired == 3 && report.strays == 0, "{report:?}");
    assert_eq!(sorted(&pool), [kept]);
}

#[test]
fn s98_a_number_that_is_used_again_has_another_body() {
    let fs = fresh(1 << 20);
    let pool = pool_of(fs.medium());
    let f = file(&fs, "f");
    write(&fs, f, 0, b"old");
    let old = id(&fs, f);
    fs.unlink(ROOT, TOP, b"f").unwrap();
    // A power loss may undo the removal of the content file.
    pool.open(old, true).unwrap().unwrap().write(0, b"old").unwrap();
    let mut g = file(&fs, "g");
    for _ in 0..1000 {
        if g == f {
            break;
        }
        fs.unlink(ROOT, TOP, b"g").unwrap();
        g = file(&fs, "g");
    }
    assert_eq!((g, contents(&fs, g)), (f, Vec::new()));
    write(&fs, g, 2, b"new");
    assert_eq!(contents(&fs, g), b"\0\0new");
}

#[test]
fn s99_an_image_and_a_pool_belong_together() {
    let fs = fresh(1 << 20);
    let pool = pool_of(fs.medium());
    file(&fs, "f");
    let medium = fs.close().unwrap();
    let said = |opened: frit_fs::Result<Fs<AnyMedium>>| opened.unwrap_err().to_string();
    assert!(said(Fs::open(medium.clone(), FsOptions::default())).contains("are in a pool"));
    let other = fresh(1 << 20);
    let content_store = Some(pool_of(other.medium()) as Arc<dyn ContentStore>);
    let open = || FsOptions { content_store: content_store.clone(), ..FsOptions::default() };
    assert!(said(Fs::open(medium.clone(), open())).contains("belong to another file system"));
    let plain = memory(1 << 20);
    drop(Fs::format(plain.clone(), FormatOptions::default()).unwrap());
    assert!(said(Fs::open(plain.clone(), open())).contains("not the image of a pool"));
    refused!(check_pool(&plain, &*pool), Image);
    let dir = tempfile::tempdir().unwrap();
    assert!(Pool::open(dir.path()).unwrap_err().to_string().contains("is not a pool"));
}

#[test]
fn made_anew_it_has_none_of_the_old_content_files() {
    let fs = fresh(1 << 20);
    let pool = pool_of(fs.medium());
    let f = file(&fs, "f");
    write(&fs, f, 0, b"old");
    let content_store = Some(Arc::clone(&pool) as Arc<dyn ContentStore>);
    let fs = Fs::format(
        fs.close().unwrap(),
        FormatOptions { content_store, force: true, ..FormatOptions::default() },
    )
    .unwrap();
    assert_eq!(sorted(&pool), []);
    let g = file(&fs, "g");
    assert_eq!((g, contents(&fs, g)), (f, Vec::new()));
}

#[test]
fn read_only_nothing_moves() {
    let fs = fresh(1 << 20);
    let pool = pool_of(fs.medium());
    let (f, empty) = (file(&fs, "f"), file(&fs, "empty"));
    write(&fs, f, 0, b"bytes");
    let medium = fs.close().unwrap();
    let before = sorted(&pool);
    let content_store = Some(Arc::clone(&pool) as Arc<dyn ContentStore>);
    let fs = Fs::open(medium, FsOptions { read_only: true, content_store, ..FsOptions::default() }).unwrap();
    let attr = fs.attr(f).unwrap();
    tick();
    for ino in [f, empty] {
        fs.pin(ino).unwrap();
    }
    assert_eq!((contents(&fs, f), contents(&fs, empty)), (b"bytes".to_vec(), Vec::new()));
    assert_eq!(fs.attr(f).unwrap().mtime, attr.mtime);
    refused!(fs.write(f, 0, b"x"), ReadOnly);
    refused!(fs.allocate(f, Allocate::Punch, 0, 1), ReadOnly);
    assert_eq!(sorted(&pool), before);
}

#[test]
fn names_have_their_own_room() {
    let fs = fresh(256 << 10);
    let f = file(&fs, "f");
    let large = vec![7; 1 << 20];
    write(&fs, f, 0, &large);
    assert_eq!(contents(&fs, f), large, "larger than the image");
    fs.set_xattr(ROOT, f, b"user.a", &[1; 5000], XattrMode::Any).unwrap();
    let mut made = 0;
    while fs.create(ROOT, TOP, format!("{made:0>255}").as_bytes(), NewInode::symlink(&[b't'; 3000])).is_ok() {
        made += 1;
    }
    assert!(made > 3, "{made}");
    write(&fs, f, 1 << 20, b"the image is full, the pool is not");
    assert_clean(fs.medium());
}
