use super::*;
use frit_fs::{COMMAND_NAME, FILE_MAX, LINK_MAX, SetTime, TARGET_MAX, Time, XATTR_MAX};

const ROOT: Caller = Caller::ROOT;

fn user(uid: u32) -> Caller {
    Caller { uid, gid: uid, groups: Vec::new(), checked: true, ..Caller::ROOT }
}

fn errno<T>(answer: Result<T>) -> i32 {
    answer.map_or_else(|e| e.errno(), |_| 0)
}

fn file(model: &ModelFs, name: &[u8]) -> Ino {
    model.create(&ROOT, Ino::ROOT, name, NewInode::file(0o644)).unwrap().ino
}

fn size(size: u64) -> AttrChanges {
    AttrChanges { size: Some(size), ..AttrChanges::default() }
}

#[test]
fn a_file_reaches_as_far_as_it_may_and_no_byte_further() {
    let model = ModelFs::new();
    let ino = file(&model, b"a");
    assert_eq!(model.write(ino, FILE_MAX - 3, b"12345").unwrap(), 3);
    assert_eq!(model.attr(ino).unwrap().size, FILE_MAX);
    assert_eq!(errno(model.write(ino, FILE_MAX, b"1")), 27);
    assert_eq!(errno(model.append(ino, b"1")), 27);
    assert_eq!(model.write(ino, u64::MAX, b"").unwrap(), 0);
    assert_eq!(errno(model.set_attr(&ROOT, ino, &size(FILE_MAX + 1))), 27);
    assert_eq!(errno(model.allocate(ino, Allocate::Punch, FILE_MAX, 1)), 27);
    assert_eq!(errno(model.allocate(ino, Allocate::Keep, u64::MAX, 2)), 27);
    let mut end = [9; 8];
    assert_eq!(model.read(ino, FILE_MAX - 4, &mut end).unwrap(), 4);
    assert_eq!(&end[..4], b"\x00123");
}

#[test]
fn what_is_longer_than_the_longest_is_refused() {
    let model = ModelFs::new();
    let ino = file(&model, b"a");
    let target = vec![b'x'; TARGET_MAX + 1];
    let make = |t: &[u8]| errno(model.create(&ROOT, Ino::ROOT, b"l", NewInode::symlink(t)));
    assert_eq!((make(&target), make(b""), make(&target[1..])), (36, 2, 0));
    let name = vec![b'n'; NAME_MAX + 1];
    assert_eq!(errno(model.lookup(&ROOT, Ino::ROOT, &name)), 36);
    assert_eq!(errno(model.create(&ROOT, Ino::ROOT, &name, NewInode::file(0))), 36);
    let value = vec![1; XATTR_MAX + 1];
    let set = |v: &[u8]| errno(model.set_xattr(&ROOT, ino, b"user.v", v, XattrMode::Any));
    assert_eq!((set(&value), set(&value[1..])), (28, 0));
}

#[test]
fn a_file_has_no_more_names_than_it_can() {
    let model = ModelFs::new();
    let ino = file(&model, b"a");
    for i in 1..LINK_MAX {
        model.link(&ROOT, ino, Ino::ROOT, i.to_string().as_bytes()).unwrap();
    }
    assert_eq!(errno(model.link(&ROOT, ino, Ino::ROOT, b"more")), 31);
    assert_eq!(model.attr(ino).unwrap().links, LINK_MAX);
}

#[test]
fn what_is_pinned_lives_without_names_and_takes_none() {
    let model = ModelFs::new();
    let ino = file(&model, b"a");
    model.pin(ino).unwrap();
    model.pin(ino).unwrap();
    model.unlink(&ROOT, Ino::ROOT, b"a").unwrap();
    assert_eq!(model.write(ino, 0, b"x").unwrap(), 1);
    assert_eq!(errno(model.link(&ROOT, ino, Ino::ROOT, b"b")), 2);
    model.unpin(ino).unwrap();
    assert_eq!(model.attr(ino).unwrap().links, 0);
    model.unpin(ino).unwrap();
    assert_eq!(errno(model.attr(ino)), 116);
    assert_eq!(errno(model.unpin(ino)), 116);
    let dir = model.create(&ROOT, Ino::ROOT, b"d", NewInode::directory(0o755)).unwrap().ino;
    model.pin(dir).unwrap();
    model.rmdir(&ROOT, Ino::ROOT, b"d").unwrap();
    assert_eq!(errno(model.create(&ROOT, dir, b"f", NewInode::file(0))), 2);
    assert_eq!(errno(model.read_dir(dir, 0, &mut |_| true)), 2);
}

#[test]
fn a_listing_tells_what_stays_once_while_others_come_and_go() {
    let model = ModelFs::new();
    for i in 0..20u8 {
        file(&model, &[b'a' + i]);
    }
    let (mut told, mut from) = (Vec::new(), 0);
    loop {
        let mut any = false;
        let start = from;
        let one = &mut |e: &DirEntry<'_>| {
            told.push(e.name.to_vec());
            (from, any) = (e.next, true);
            false
        };
        model.read_dir(Ino::ROOT, start, one).unwrap();
        if !any {
            break;
        }
        let last = told.last().unwrap().clone();
        if last[0] >= b'a' && (last[0] - b'a').is_multiple_of(2) {
            model.unlink(&ROOT, Ino::ROOT, &last).unwrap();
        }
    }
    let names: Vec<Vec<u8>> = (0..20).map(|i| vec![b'a' + i]).collect();
    assert_eq!(told[..2], [b".".to_vec(), b"..".to_vec()]);
    assert_eq!(told[2..], names);
}

#[test]
fn callers_that_are_checked_elsewhere_get_what_they_ask_for() {
    let model = ModelFs::new();
    let trusted = Caller::trusted(1000, 1000);
    let ino = file(&model, b"a");
    let mode = |m| AttrChanges { mode: Some(m), ..AttrChanges::default() };
    assert_eq!(model.set_attr(&trusted, ino, &mode(0o6755)).unwrap().mode, 0o6755);
    assert_eq!(model.set_attr(&trusted, ino, &size(10)).unwrap().mode, 0o6755);
    let owner = AttrChanges { uid: Some(1), ..AttrChanges::default() };
    assert_eq!(model.set_attr(&trusted, ino, &owner).unwrap().mode, 0o6755);
    // The permissions of the superuser are checked: a change of owner clears set-ID bits.
    assert_eq!(model.set_attr(&ROOT, ino, &owner).unwrap().mode, 0o755);
    assert_eq!(errno(model.set_attr(&user(2), ino, &mode(0))), 1);
    let now = AttrChanges { mtime: Some(SetTime::Now), atime: Some(SetTime::Now), ..AttrChanges::default() };
    assert_eq!(errno(model.set_attr(&user(2), ino, &now)), 13);
    assert_eq!(errno(model.set_attr(&user(2), ino, &AttrChanges { atime: None, ..now })), 1);
    let ctime = AttrChanges { ctime: Some(Time(5)), ..AttrChanges::default() };
    assert_eq!(model.set_attr(&trusted, ino, &ctime).unwrap().ctime, Time(5));
}

#[test]
fn a_copy_does_not_see_what_its_original_does() {
    let model = ModelFs::new();
    let ino = file(&model, b"a");
    model.write(ino, 0, b"before").unwrap();
    let copy = model.clone();
    model.write(ino, 0, b"after!").unwrap();
    file(&model, b"b");
    let mut bytes = [0; 6];
    copy.read(ino, 0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"before");
    assert_eq!(errno(copy.lookup(&ROOT, Ino::ROOT, b"b")), 2);
}

#[test]
fn a_command_file_comes_and_goes_with_its_directory() {
    let model = ModelFs::with_command_files();
    let of = |dir| model.lookup(&ROOT, dir, COMMAND_NAME);
    let make = |name| model.create(&ROOT, Ino::ROOT, name, NewInode::directory(0o755)).unwrap().ino;
    let (d, e) = (make(b"d"), make(b"e"));
    let (of_d, of_e) = (of(d).unwrap().ino, of(e).unwrap().ino);
    assert!(of_d != of_e && of(Ino::ROOT).unwrap().ino != of_d);
    let mut names = Vec::new();
    let each = &mut |entry: &DirEntry<'_>| {
        names.push(entry.name.to_vec());
        true
    };
    model.read_dir(d, 0, each).unwrap();
    assert_eq!(names, [b".".to_vec(), b"..".to_vec()]);
    assert_eq!(errno(model.create(&ROOT, d, COMMAND_NAME, NewInode::file(0o644))), 17);
    assert_eq!(errno(model.unlink(&ROOT, d, COMMAND_NAME)), 1);
    assert_eq!(errno(model.rmdir(&ROOT, d, COMMAND_NAME)), 20);
    assert_eq!(model.set_attr(&ROOT, of_d, &size(100)).unwrap().size, 0);
    assert_eq!(errno(model.set_xattr(&ROOT, of_d, b"trusted.a", b"b", XattrMode::Any)), 95);
    model.pin(of_d).unwrap();
    model.rename(&ROOT, (Ino::ROOT, b"e"), (Ino::ROOT, b"d"), RenameMode::Replace).unwrap();
    assert_eq!((errno(of(d)), model.attr(of_d).unwrap().links), (116, 0));
    model.unpin(of_d).unwrap();
    assert_eq!(errno(model.attr(of_d)), 116);
    model.rmdir(&ROOT, Ino::ROOT, b"d").unwrap();
    assert_eq!(errno(model.attr(of_e)), 116);
    // The root and its command file are left.
    assert_eq!(model.usage().unwrap().inodes_free, BLOCKS - 2);
}
