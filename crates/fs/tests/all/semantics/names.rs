//! Creation and removal of names.

use super::*;
use frit_fs::InodeType;

#[test]
fn s1_a_new_inode_and_its_name_come_together() {
    let fs = fresh(1 << 20);
    let before = fs.attr(TOP).unwrap();
    tick();
    let made = fs.create(&alice(), TOP, b"d", NewInode::directory(0o750)).unwrap();
    assert_eq!(
        (made.kind, made.mode, made.uid, made.gid, made.links),
        (InodeType::Directory, 0o750, 1000, 1000, 2)
    );
    assert_eq!(fs.lookup(ROOT, TOP, b"d").unwrap(), made);
    let top = fs.attr(TOP).unwrap();
    assert_eq!(top.links, before.links + 1);
    assert!(top.mtime > before.mtime && top.mtime == made.btime && made.btime == made.mtime);
    refused!(fs.create(ROOT, TOP, b"d", NewInode::file(0o600)), Exists);
    assert_eq!(fs.attr(file(&fs, "f")).unwrap().links, 1);
}

#[test]
fn s2_a_name_has_1_to_255_bytes_of_any_kind_but_two() {
    let fs = fresh(1 << 20);
    for name in [&[b'n'; 255][..], b"\xFF\xFE", b"...", b" "] {
        let ino = fs.create(ROOT, TOP, name, NewInode::file(0)).unwrap().ino;
        assert_eq!(fs.lookup(ROOT, TOP, name).unwrap().ino, ino);
    }
    refused!(fs.create(ROOT, TOP, &[b'n'; 256], NewInode::file(0)), NameTooLong);
    refused!(fs.lookup(ROOT, TOP, &[b'n'; 256]), NameTooLong);
    for name in [&b""[..], b"a/b", b"a\0b"] {
        refused!(fs.create(ROOT, TOP, name, NewInode::file(0)), Invalid);
    }
    for name in [&b"."[..], b".."] {
        refused!(fs.create(ROOT, TOP, name, NewInode::file(0)), Exists);
        refused!(fs.unlink(ROOT, TOP, name), IsDirectory);
    }
}

#[test]
fn s3_only_empty_directories_are_removed() {
    let fs = fresh(1 << 20);
    let dir = directory(&fs, "d");
    fs.create(ROOT, dir, b"f", NewInode::file(0)).unwrap();
    refused!(fs.rmdir(ROOT, TOP, b"d"), NotEmpty);
    refused!(fs.rmdir(ROOT, dir, b"f"), NotDirectory);
    fs.unlink(ROOT, dir, b"f").unwrap();
    fs.pin(dir).unwrap();
    fs.rmdir(ROOT, TOP, b"d").unwrap();
    assert_eq!((fs.attr(TOP).unwrap().links, fs.attr(dir).unwrap().links), (2, 0));
    refused!(fs.create(ROOT, dir, b"x", NewInode::file(0)), NotFound);
    fs.unpin(dir).unwrap();
    refused!(fs.attr(dir), Stale);
}

#[test]
fn s4_a_symbolic_link_holds_1_to_4095_bytes() {
    let fs = fresh(1 << 20);
    for (i, len) in [1, 128, 129, 4095].into_iter().enumerate() {
        let target: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let name = format!("{i}");
        let made = fs.create(ROOT, TOP, name.as_bytes(), NewInode::symlink(&target)).unwrap();
        assert_eq!((made.size, made.mode), (len as u64, 0o777));
        assert_eq!(fs.read_link(made.ino).unwrap(), target);
        assert_eq!(fs.attr(made.ino).unwrap().atime, made.atime, "reading it moves no time");
    }
    refused!(fs.create(ROOT, TOP, b"x", NewInode::symlink(&[b'x'; 4096])), NameTooLong);
    refused!(fs.create(ROOT, TOP, b"x", NewInode::symlink(b"")), NotFound);
    refused!(fs.read_link(TOP), Invalid);
}

#[test]
fn s5_all_but_directories_can_have_several_names() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    let link = fs.create(ROOT, TOP, b"l", NewInode::symlink(b"f")).unwrap().ino;
    assert_eq!(fs.link(ROOT, f, TOP, b"g").unwrap().links, 2);
    assert_eq!(fs.link(ROOT, link, TOP, b"m").unwrap().kind, InodeType::Symlink);
    assert_eq!(find(&fs, "g").unwrap(), f);
    refused!(fs.link(ROOT, f, TOP, b"g"), Exists);
    let dir = directory(&fs, "d");
    refused!(fs.link(ROOT, dir, TOP, b"e"), NotPermitted);
    fs.pin(f).unwrap();
    for name in [b"f", b"g"] {
        fs.unlink(ROOT, TOP, name).unwrap();
    }
    refused!(fs.link(ROOT, f, TOP, b"back"), NotFound);
}

#[test]
fn s6_the_last_name_takes_everything_along() {
    let fs = fresh(1 << 20);
    let keep = file(&fs, "keep");
    let before = fs.usage().unwrap();
    let f = file(&fs, "f");
    fs.link(ROOT, f, TOP, b"g").unwrap();
    write(&fs, f, 0, &[1; 50_000]);
    fs.unlink(ROOT, TOP, b"f").unwrap();
    assert_eq!(contents(&fs, f), [1; 50_000]);
    fs.unlink(ROOT, TOP, b"g").unwrap();
    refused!(fs.attr(f), Stale);
    assert_eq!(fs.usage().unwrap().inodes_free, before.inodes_free);
    assert!(image_only("others use the disk of the pool") || fs.usage().unwrap() == before);
    refused!(fs.unlink(ROOT, TOP, b"g"), NotFound);
    directory(&fs, "d");
    refused!(fs.unlink(ROOT, TOP, b"d"), IsDirectory);
    assert_eq!(fs.attr(keep).unwrap().links, 1);
}

#[test]
fn s7_what_is_open_needs_no_name() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    write(&fs, f, 0, b"before");
    fs.pin(f).unwrap();
    fs.pin(f).unwrap();
    fs.unlink(ROOT, TOP, b"f").unwrap();
    fs.unpin(f).unwrap();
    write(&fs, f, 6, b" and after");
    assert_eq!((contents(&fs, f), fs.attr(f).unwrap().links), (b"before and after".to_vec(), 0));
    let full = free(&fs);
    fs.unpin(f).unwrap();
    refused!(fs.read(f, 0, &mut [0; 8]), Stale);
    assert!(image_only("others use the disk of the pool") || free(&fs) == full + 1);
    refused!(fs.unpin(TOP), Invalid);
}

#[test]
fn s8_a_number_is_used_again_with_another_generation() {
    // The next inode with a number, after how many others.
    let next = |fs: &dyn FileSystem, number: Ino, most: usize| {
        (0..most).find_map(|others| {
            let made = fs.create(ROOT, TOP, b"g", NewInode::file(0o600)).unwrap();
            fs.unlink(ROOT, TOP, b"g").unwrap();
            (made.ino == number).then_some((others, made))
        })
    };
    let fs = fresh(8 << 20);
    let old = fs.attr(file(&fs, "f")).unwrap();
    fs.unlink(ROOT, TOP, b"f").unwrap();
    refused!(fs.attr(old.ino), Stale);
    let (others, new) = next(&fs, old.ino, 1000).unwrap();
    assert!(others >= 2, "{others}");
    assert_ne!(new.generation, old.generation);
    for never in [0, 1 << 40] {
        refused!(fs.attr(Ino(never)), Stale);
    }
    // A number that is looked up is not used again while there is another one.
    let held = old.ino;
    fs.set_looked_up(Box::new(move |number| number == held));
    assert!(next(&fs, held, 1000).is_none());
    // Without others, it is, and removed files make space for new ones.
    let fs = fresh(1 << 20);
    let old = fs.attr(file(&fs, "f")).unwrap();
    fs.set_looked_up(Box::new(|_| true));
    fs.unlink(ROOT, TOP, b"f").unwrap();
    let mut last = None;
    let create = |number| fs.create(ROOT, TOP, format!("h{number}").as_bytes(), NewInode::file(0o600));
    let error = (0..).find_map(|number| create(number).map(|made| last = Some(made.ino)).err());
    assert!(matches!(error, Some(frit_fs::Error::NoInode)), "{error:?}");
    assert_eq!(last, Some(old.ino));
    // Inodes of an earlier file system with the same UUID must not be accessible.
    let format = || FormatOptions { uuid: Some(5), force: true, ..FormatOptions::default() };
    let fs = Fs::format(memory(1 << 20), format()).unwrap();
    let ino = file(&fs, "f");
    let fs = Fs::format(fs.close().unwrap(), format()).unwrap();
    refused!(fs.attr(ino), Stale);
}

#[test]
fn s9_a_set_group_id_directory_hands_its_group_down() {
    let fs = fresh(1 << 20);
    let dir = directory(&fs, "d");
    let set = AttrChanges { gid: Some(50), mode: Some(0o2777), ..AttrChanges::default() };
    let _ = fs.set_attr(ROOT, dir, &set).unwrap();
    let made = fs.create(&alice(), dir, b"f", NewInode::file(0o644)).unwrap();
    assert_eq!((made.uid, made.gid, made.mode), (1000, 50, 0o644));
    let made = fs.create(&alice(), dir, b"e", NewInode::directory(0o700)).unwrap();
    assert_eq!((made.gid, made.mode), (50, 0o2700));
}

#[test]
fn s10_permissions_are_checked_for_those_who_are_to_be_checked() {
    let fs = fresh(1 << 20);
    let dir = directory(&fs, "d");
    let f = fs.create(ROOT, dir, b"f", NewInode::file(0o600)).unwrap().ino;
    refused!(fs.create(&alice(), dir, b"x", NewInode::file(0)), Access);
    refused!(fs.unlink(&alice(), dir, b"f"), Access);
    let mode = AttrChanges { mode: Some(0o777), ..AttrChanges::default() };
    refused!(fs.set_attr(&alice(), f, &mode), NotPermitted);
    let device = NewInode { kind: InodeType::Block, mode: 0, rdev: 1, target: &[] };
    refused!(fs.create(&alice(), TOP, b"x", device), NotPermitted);
    // In a sticky directory, only the owner of an inode may remove its names.
    let _ = fs.set_attr(ROOT, dir, &AttrChanges { mode: Some(0o1777), ..AttrChanges::default() }).unwrap();
    refused!(fs.unlink(&alice(), dir, b"f"), NotPermitted);
    fs.unlink(&Caller::trusted(1000, 1000), dir, b"f").unwrap();
}
