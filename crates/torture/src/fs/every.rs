//! All operations on a small fixed tree, for tests of each operation and of each pair.

use super::op::{Act, FsOp, OpTarget, Path, User};
use super::text::parse;
use frit_fs::{Allocate, InodeType, RenameMode, Seek, SetTime, Time, XattrMode};

/// Operations that create the tree for [`every`]: directories, a file with data, an empty file, a
/// symbolic link, a hard link, a sparse file and a file of three extents.
const BASE: &str = "
    root chmod / 777
    root create dir a 755 0
    root create dir b 777 0
    root create dir a/d 755 0
    root create file a/f 644 0
    root write a/f 0 5000 7
    root create file a/e 600 0
    root symlink s a/f
    root link a/f b/h
    root create file b/p 666 0
    root write b/p 102400 100 9
    root create file b/g 666 0
    root write b/g 0 4096 4
    root write b/g 8192 4096 5
    root write b/g 4096 4096 6
    root set-xattr a/f user.x 20 3 any
";

/// Returns the operations that create the base tree in an empty file system.
#[must_use]
pub fn base() -> Vec<FsOp> {
    parse(BASE).unwrap_or_default()
}

const THERE: [&str; 8] = ["a", "b", "a/d", "a/f", "a/e", "s", "b/h", "b/p"];
const FILES: [&str; 4] = ["a/f", "a/e", "b/p", "a/d"];

fn at(path: &str) -> OpTarget {
    OpTarget::Path(Path::new(path))
}

/// Adds operations that create and remove names.
fn names(all: &mut Vec<Act>) {
    let path = Path::new;
    for free in ["n", "a/n", "a/f", "a/f/n", "none/n", "b/."] {
        for kind in [InodeType::File, InodeType::Directory, InodeType::Fifo] {
            all.push(Act::Create { path: path(free), kind, mode: 0o640, rdev: 0 });
        }
        all.push(Act::Symlink { path: path(free), to: "a".to_string() });
        for from in ["a/f", "s", "b"] {
            all.push(Act::Link { what: at(from), path: path(free) });
        }
    }
    for there in THERE.iter().chain(&["none", "a/.", "a/.."]) {
        all.push(Act::Unlink(path(there)));
        all.push(Act::Rmdir(path(there)));
    }
    for from in ["a", "a/d", "a/f", "a/e", "s", "b/h", "none"] {
        for to in ["a", "b", "a/d", "a/d/n", "a/f", "b/h", "s", "n"] {
            for mode in [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange] {
                all.push(Act::Rename { from: path(from), to: path(to), mode });
            }
        }
    }
}

/// Adds operations on contents of files.
fn contents(all: &mut Vec<Act>) {
    for file in FILES {
        for (start, len) in [(0, 1), (4095, 2), (4096, 4096), (8192, 0), (1 << 40, 4097)] {
            all.push(Act::Write { what: at(file), at: start, len, stamp: 11 });
        }
        all.push(Act::Append { what: at(file), len: 4097, stamp: 13 });
        all.push(Act::Read { what: at(file), at: 0, len: 102_500 });
        for size in [0, 1, 4097, 1 << 41] {
            all.push(Act::Truncate { what: at(file), size });
        }
        for how in [Allocate::Extend, Allocate::Keep, Allocate::Punch, Allocate::Zero, Allocate::ZeroKeep] {
            for (start, len) in [(0, 4096), (100, 5000), (8191, 2)] {
                all.push(Act::Allocate { what: at(file), how, at: start, len });
            }
        }
        for kind in [Seek::Data, Seek::Hole] {
            all.push(Act::Seek { what: at(file), kind, at: 1 });
        }
        all.push(Act::SyncFile { what: at(file), data_only: true });
    }
    for file in ["b/g", "a/f", "a/d"] {
        all.push(Act::Gather(at(file)));
    }
}

/// Adds operations on attributes of inodes.
fn attributes(all: &mut Vec<Act>) {
    for there in THERE {
        all.push(Act::Stat(at(there)));
        all.push(Act::Chmod { what: at(there), mode: 0o6711 });
        all.push(Act::Chown { what: at(there), uid: Some(1000), gid: None });
        all.push(Act::Chown { what: at(there), uid: None, gid: Some(1000) });
        all.push(Act::Times { what: at(there), atime: None, mtime: Some(SetTime::To(Time(1_000_000_001))) });
        all.push(Act::Times { what: at(there), atime: Some(SetTime::Now), mtime: Some(SetTime::Now) });
        all.push(Act::List(at(there)));
        all.push(Act::ReadLink(at(there)));
    }
    for there in ["a", "a/f", "s"] {
        for mode in [XattrMode::Any, XattrMode::Create, XattrMode::Replace] {
            let name = "user.x".to_string();
            all.push(Act::SetXattr { what: at(there), name, len: 100, stamp: 5, mode });
        }
        all.push(Act::Xattr { what: at(there), name: "user.x".to_string() });
        all.push(Act::RemoveXattr { what: at(there), name: "user.x".to_string() });
        all.push(Act::Xattrs(at(there)));
    }
    for (slot, path) in ["a/f", "b/p", "a/d"].into_iter().enumerate() {
        all.push(Act::Open { slot: slot as u8, path: Path::new(path) });
        all.push(Act::Close(slot as u8));
    }
    all.push(Act::Sync);
}

/// Adds operations on command files, and on directories that have lost or replaced theirs. On a file
/// system without command files their name is one like others.
fn commands(all: &mut Vec<Act>) {
    let path = Path::new;
    let files = ["a/.isp", ".isp", "a/f/.isp"];
    for file in files {
        for kind in [InodeType::File, InodeType::Directory] {
            all.push(Act::Create { path: path(file), kind, mode: 0o640, rdev: 0 });
        }
        all.push(Act::Symlink { path: path(file), to: "a".to_string() });
        all.push(Act::Link { what: at("a/f"), path: path(file) });
        all.push(Act::Link { what: at(file), path: path("n") });
        all.push(Act::Unlink(path(file)));
        all.push(Act::Rmdir(path(file)));
        all.push(Act::Stat(at(file)));
        for mode in [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange] {
            all.push(Act::Rename { from: path(file), to: path("n"), mode });
            all.push(Act::Rename { from: path("a/f"), to: path(file), mode });
            all.push(Act::Rename { from: path("a/d"), to: path(file), mode });
        }
    }
    let file = || at("b/.isp");
    all.push(Act::Chmod { what: file(), mode: 0o6711 });
    all.push(Act::Chown { what: file(), uid: Some(1000), gid: Some(1000) });
    all.push(Act::Times { what: file(), atime: None, mtime: Some(SetTime::To(Time(1_000_000_001))) });
    all.push(Act::Times { what: file(), atime: Some(SetTime::Now), mtime: Some(SetTime::Now) });
    for size in [0, 4097, u64::MAX] {
        all.push(Act::Truncate { what: file(), size });
    }
    all.push(Act::Read { what: file(), at: 0, len: 100 });
    all.push(Act::Write { what: file(), at: 0, len: 100, stamp: 11 });
    all.push(Act::Append { what: file(), len: 100, stamp: 13 });
    all.push(Act::Allocate { what: file(), how: Allocate::Extend, at: 0, len: 4096 });
    all.push(Act::Seek { what: file(), kind: Seek::Data, at: 0 });
    all.push(Act::SyncFile { what: file(), data_only: false });
    all.push(Act::Gather(file()));
    all.push(Act::List(file()));
    all.push(Act::ReadLink(file()));
    for name in ["user.x", "trusted.x"].map(String::from) {
        all.push(Act::SetXattr { what: file(), name: name.clone(), len: 9, stamp: 5, mode: XattrMode::Any });
        all.push(Act::Xattr { what: file(), name: name.clone() });
        all.push(Act::RemoveXattr { what: file(), name });
    }
    all.push(Act::Xattrs(file()));
    for (slot, of) in ["a/d/.isp", "b/.isp", ".isp"].into_iter().enumerate() {
        all.push(Act::Open { slot: slot as u8, path: path(of) });
    }
}

/// Returns every operation on the base tree by the superuser, and a third of those on names and
/// attributes also by a user.
#[must_use]
pub fn every() -> Vec<FsOp> {
    let (mut of_names, mut others) = (Vec::new(), Vec::new());
    names(&mut of_names);
    attributes(&mut of_names);
    contents(&mut others);
    commands(&mut of_names);
    let by_root = of_names.iter().chain(&others).map(|act| FsOp { who: User::Root, act: act.clone() });
    let by_user = of_names.iter().step_by(3).map(|act| FsOp { who: User::Alice, act: act.clone() });
    by_root.chain(by_user).collect()
}
