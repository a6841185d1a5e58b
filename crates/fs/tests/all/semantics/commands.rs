//! Command files of directories.

use super::watched::RecordingMedium;
use super::*;
use frit_fs::RenameMode::{Exchange, NoReplace, Replace};
use frit_fs::{COMMAND_NAME, Error, FormatOptions, InStorage, InodeType, SetTime, XattrMode};
use std::sync::Arc;

fn command(fs: &dyn FileSystem, dir: Ino) -> Ino {
    let attr = fs.lookup(ROOT, dir, COMMAND_NAME).unwrap();
    assert_eq!((attr.kind, attr.size, attr.sectors, attr.links), (InodeType::Command, 0, 0, 1));
    attr.ino
}

fn inodes_free(fs: &dyn FileSystem) -> u64 {
    fs.usage().unwrap().inodes_free
}

#[test]
fn s102_every_directory_has_a_command_file_that_is_not_listed() {
    let fs = fresh(1 << 20);
    let before = (free(&fs), inodes_free(&fs));
    let d = directory(&fs, "d");
    let (of_root, of_d) = (command(&fs, TOP), command(&fs, d));
    assert!(of_root != of_d);
    assert_eq!((fs.command_directory(of_root).unwrap(), fs.command_directory(of_d).unwrap()), (TOP, d));
    refused!(fs.command_directory(d), Invalid);
    assert_eq!((names(&fs, TOP), names(&fs, d)), (vec!["d".to_owned()], vec![]));
    assert_eq!(fs.attr(TOP).unwrap().links, 3);
    // The block is that of the name `d`.
    assert_eq!((before.0 - free(&fs), before.1 - inodes_free(&fs)), (1, 2));
    fs.rmdir(ROOT, TOP, b"d").unwrap();
    assert_eq!(inodes_free(&fs), before.1);
    refused!(fs.attr(of_d), Stale);
    let fs = again(fs.close().unwrap());
    assert_eq!(command(&fs, TOP), of_root);
    assert_clean(fs.medium());
}

#[test]
fn s103_the_name_of_a_command_file_is_taken() {
    let fs = fresh(1 << 20);
    let (d, f) = (directory(&fs, "d"), file(&fs, "f"));
    let of_d = command(&fs, d);
    refused!(fs.create(ROOT, d, COMMAND_NAME, NewInode::file(0o644)), Exists);
    refused!(fs.create(ROOT, d, COMMAND_NAME, NewInode::directory(0o755)), Exists);
    refused!(fs.link(ROOT, f, d, COMMAND_NAME), Exists);
    refused!(fs.link(ROOT, of_d, d, b"other"), NotPermitted);
    refused!(fs.unlink(ROOT, d, COMMAND_NAME), NotPermitted);
    refused!(fs.rmdir(ROOT, d, COMMAND_NAME), NotDirectory);
    for mode in [Replace, NoReplace, Exchange] {
        refused!(fs.rename(ROOT, (d, COMMAND_NAME), (TOP, b"g"), mode), NotPermitted);
        refused!(fs.rename(ROOT, (TOP, b"f"), (d, COMMAND_NAME), mode), NotPermitted);
    }
    let new = NewInode { kind: InodeType::Command, ..NewInode::file(0o644) };
    refused!(fs.create(ROOT, d, b"other", new), Invalid);
    assert_clean(fs.medium());
    // Without command files, the name is one like others.
    let format = FormatOptions { command_files: false, ..FormatOptions::default() };
    let fs = Fs::format(memory(1 << 20), format).unwrap();
    refused!(fs.lookup(ROOT, TOP, COMMAND_NAME), NotFound);
    let plain = file(&fs, ".isp");
    write(&fs, plain, 0, b"data");
    assert_clean(fs.medium());
}

#[test]
fn s104_a_command_file_has_attributes_and_no_contents() {
    let fs = fresh(1 << 20);
    let of_root = command(&fs, TOP);
    refused!(fs.write(of_root, 0, b"data"), Invalid);
    refused!(fs.read(of_root, 0, &mut [0; 8]), Invalid);
    refused!(fs.set_xattr(ROOT, of_root, b"trusted.a", b"b", XattrMode::Any), Unsupported);
    // A shell that redirects its output to the file truncates it first.
    resize(&fs, of_root, 0);
    resize(&fs, of_root, 100);
    assert_eq!(fs.attr(of_root).unwrap().size, 0);
    let changes = AttrChanges { mode: Some(0o600), mtime: Some(SetTime::Now), ..AttrChanges::default() };
    assert_eq!(fs.set_attr(ROOT, of_root, &changes).unwrap().mode, 0o600);
    assert_eq!(again(fs.close().unwrap()).attr(of_root).unwrap().mode, 0o600);
}

#[test]
fn s105_an_open_command_file_outlives_its_directory() {
    let fs = fresh(1 << 20);
    let before = inodes_free(&fs);
    for remove in [true, false] {
        let (d, other) = (directory(&fs, "d"), directory(&fs, "other"));
        let of_d = command(&fs, d);
        fs.pin(of_d).unwrap();
        if remove {
            fs.rmdir(ROOT, TOP, b"d").unwrap();
        } else {
            fs.rename(ROOT, (TOP, b"other"), (TOP, b"d"), Replace).unwrap();
        }
        assert_eq!(fs.attr(of_d).unwrap().links, 0);
        refused!(fs.command_directory(of_d), NotFound);
        assert_clean(fs.medium());
        fs.unpin(of_d).unwrap();
        refused!(fs.attr(of_d), Stale);
        let left = if remove { b"other" } else { b"d".as_slice() };
        command(&fs, other);
        fs.rmdir(ROOT, TOP, left).unwrap();
        assert_eq!(inodes_free(&fs), before);
        assert_clean(fs.medium());
    }
}

#[test]
fn s106_a_directory_and_its_command_file_are_durable_together() {
    let medium = Arc::new(RecordingMedium::new(1 << 20));
    let fs = on(Arc::clone(&medium));
    let d = directory(&fs, "d");
    let of_d = command(&fs, d);
    let cut = again(medium.cut());
    assert_eq!(command(&cut, d), of_d);
    fs.pin(of_d).unwrap();
    fs.rmdir(ROOT, TOP, b"d").unwrap();
    // The recovery frees the open one.
    let cut = again(medium.cut());
    refused!(cut.attr(of_d), Stale);
    assert_eq!(inodes_free(&cut), inodes_free(&fs) + 1);
    assert_clean(cut.medium());
    // Without a second free inode, a directory is not created.
    for i in 0.. {
        match fs.create(ROOT, TOP, format!("{i}").as_bytes(), NewInode::file(0)) {
            Ok(_) => {}
            Err(Error::NoInode) => break,
            Err(error) => panic!("{error}"),
        }
    }
    fs.unlink(ROOT, TOP, b"0").unwrap();
    refused!(fs.create(ROOT, TOP, b"e", NewInode::directory(0o755)), NoInode);
    fs.unlink(ROOT, TOP, b"1").unwrap();
    directory(&fs, "e");
    assert_clean(fs.medium());
}

/// A file system without command files, with directories and a file in one of them.
fn without_commands(medium: AnyMedium, inodes: u64) -> Fs<AnyMedium> {
    let format = FormatOptions { command_files: false, inodes: Some(inodes), ..FormatOptions::default() };
    let fs = Fs::format(medium, format).unwrap();
    let d = directory(&fs, "d");
    let e = fs.create(ROOT, d, b"e", NewInode::directory(0o700)).unwrap().ino;
    let f = fs.create(ROOT, e, b"f", NewInode::file(0o644)).unwrap().ino;
    write(&fs, f, 0, b"contents");
    fs
}

#[test]
fn s107_command_files_can_be_added_and_a_power_loss_leaves_a_sound_file_system() {
    if image_only("the medium has no pool") {
        return;
    }
    let medium = Arc::new(RecordingMedium::new(1 << 20));
    without_commands(erased(Arc::clone(&medium)), 64).close().unwrap();
    medium.begin();
    let mut fs = Fs::open(erased(Arc::clone(&medium)), FsOptions::default()).unwrap();
    assert_eq!(fs.enable_command_files().unwrap(), 3);
    assert!(fs.has_command_files());
    assert_eq!(fs.enable_command_files().unwrap(), 0, "no change");
    command(&fs, TOP);
    let g = directory(&fs, "g");
    command(&fs, g);
    fs.close().unwrap();
    let mut states = [0; 5];
    for cut in medium.cuts() {
        assert_clean(&cut);
        let mut fs = Fs::open(erased(cut), FsOptions::default()).unwrap();
        let had_all = fs.has_command_files();
        let d = find(&fs, "d").unwrap();
        // What is half done works without the feature, and a second call completes it.
        if !had_all {
            let new = directory(&fs, "new");
            fs.rename(ROOT, (d, b"e"), (new, b"e"), Replace).unwrap();
            fs.rmdir(ROOT, TOP, b"d").unwrap();
            assert_clean(fs.medium());
        }
        let added = fs.enable_command_files().unwrap();
        states[if had_all { 4 } else { added as usize }] += 1;
        assert_eq!(added == 0, had_all);
        for dir in [TOP, find(&fs, if had_all { "d" } else { "new" }).unwrap()] {
            command(&fs, dir);
        }
        let fs = again(fs.close().unwrap());
        assert!(fs.has_command_files());
        let e = fs.lookup(ROOT, find(&fs, if had_all { "d" } else { "new" }).unwrap(), b"e").unwrap().ino;
        command(&fs, e);
        let f = fs.lookup(ROOT, e, b"f").unwrap().ino;
        assert_eq!(contents(&fs, f), b"contents");
        assert_clean(fs.medium());
    }
    assert!(states[1..].iter().all(|count| *count > 0), "{states:?}");
}

#[test]
fn command_files_are_refused_before_any_change() {
    if image_only("the medium has no pool") {
        return;
    }
    // Five inodes are in use.
    let fresh = |inodes| without_commands(erased(RecordingMedium::new(1 << 20)), inodes);
    let inodes = fresh(64).usage().unwrap();
    let used = inodes.inodes - inodes.inodes_free;
    let mut fs = fresh(64);
    let spare = (0..fs.usage().unwrap().inodes_free - 2).map(|i| file(&fs, &format!("f{i}"))).count();
    let refused = fs.enable_command_files().unwrap_err().to_string();
    assert!(
        refused.contains("3 directories need an inode each") && refused.contains("2 are free"),
        "{refused}"
    );
    assert_eq!(fs.usage().unwrap().inodes_free, 2);
    assert!(!fs.has_command_files() && used + spare as u64 + 2 == fs.usage().unwrap().inodes);
    fs.unlink(ROOT, TOP, b"f0").unwrap();
    assert_eq!(fs.enable_command_files().unwrap(), 3);
    assert_clean(fs.medium());
    // The name is in use.
    let mut fs = fresh(64);
    file(&fs, ".isp");
    let refused = fs.enable_command_files().unwrap_err().to_string();
    assert!(refused.contains("command files, `.isp`: /.isp. Mount"), "{refused}");
    fs.rename(ROOT, (TOP, b".isp"), (TOP, b"other"), Replace).unwrap();
    // All of them are named, by their paths.
    let deep = frit_fs::Paths::make_directories(&fs, ROOT, "a/b", 0o755).unwrap().ino;
    let new = NewInode::file(0o644);
    fs.create(ROOT, deep, b".isp", new).unwrap();
    for i in 0..11 {
        let dir = frit_fs::Paths::make_directories(&fs, ROOT, &format!("d{i}"), 0o755).unwrap().ino;
        fs.create(ROOT, dir, b".isp", new).unwrap();
    }
    let refused = fs.enable_command_files().unwrap_err().to_string();
    assert!(refused.contains("/a/b/.isp") && refused.contains(" and 2 more"), "{refused}");
    assert_eq!(refused.matches("/.isp").count(), 10, "{refused}");
    frit_fs::Paths::remove_path(&fs, ROOT, "a/b/.isp").unwrap();
    for i in 0..11 {
        frit_fs::Paths::remove_path(&fs, ROOT, &format!("d{i}/.isp")).unwrap();
        fs.rmdir(ROOT, TOP, format!("d{i}").as_bytes()).unwrap();
    }
    fs.rmdir(ROOT, frit_fs::Paths::resolve(&fs, ROOT, "a", true).unwrap().ino, b"b").unwrap();
    fs.rmdir(ROOT, TOP, b"a").unwrap();
    assert_eq!(fs.enable_command_files().unwrap(), 3);
    assert_clean(fs.medium());
}
