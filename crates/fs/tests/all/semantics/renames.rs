//! Renaming.

use super::*;
use frit_fs::RenameMode::{Exchange, NoReplace, Replace};

fn rename(fs: &dyn FileSystem, from: &str, to: &str, mode: frit_fs::RenameMode) -> frit_fs::Result<()> {
    let split = |path: &str| match path.split_once('/') {
        Some((dir, name)) => (find(fs, dir).unwrap(), name.as_bytes().to_vec()),
        None => (TOP, path.as_bytes().to_vec()),
    };
    let (from, to) = (split(from), split(to));
    fs.rename(ROOT, (from.0, &from.1), (to.0, &to.1), mode)
}

#[test]
fn s11_renaming_replaces_what_has_the_name() {
    let fs = fresh(1 << 20);
    let (d, e) = (directory(&fs, "d"), directory(&fs, "e"));
    let (f, g) = (file(&fs, "f"), file(&fs, "g"));
    refused!(rename(&fs, "f", "d", Replace), IsDirectory);
    refused!(rename(&fs, "d", "f", Replace), NotDirectory);
    rename(&fs, "f", "g", Replace).unwrap();
    assert_eq!(find(&fs, "g").unwrap(), f);
    refused!(fs.attr(g), Stale);
    rename(&fs, "g", "e/g", Replace).unwrap();
    refused!(rename(&fs, "d", "e", Replace), NotEmpty);
    rename(&fs, "e", "d", Replace).unwrap();
    assert_eq!((find(&fs, "d").unwrap(), names(&fs, e)), (e, vec!["g".to_string()]));
    refused!(fs.attr(d), Stale);
    refused!(rename(&fs, "none", "x", Replace), NotFound);
    assert_eq!(names(&fs, TOP), ["d"]);
}

#[test]
fn s12_noreplace_leaves_what_is_there() {
    let fs = fresh(1 << 20);
    let (f, g) = (file(&fs, "f"), file(&fs, "g"));
    refused!(rename(&fs, "f", "g", NoReplace), Exists);
    assert_eq!((find(&fs, "f").unwrap(), find(&fs, "g").unwrap()), (f, g));
    rename(&fs, "f", "h", NoReplace).unwrap();
    assert_eq!((find(&fs, "h").unwrap(), names(&fs, TOP)), (f, vec!["g".to_string(), "h".to_string()]));
}

#[test]
fn s13_exchange_swaps_whatever_both_are() {
    let fs = fresh(1 << 20);
    let (d, f) = (directory(&fs, "d"), file(&fs, "f"));
    let below = fs.create(ROOT, d, b"below", NewInode::directory(0o755)).unwrap().ino;
    rename(&fs, "d/below", "f", Exchange).unwrap();
    assert_eq!((find(&fs, "f").unwrap(), fs.lookup(ROOT, d, b"below").unwrap().ino), (below, f));
    assert_eq!(fs.lookup(ROOT, below, b"..").unwrap().ino, TOP);
    assert_eq!((fs.attr(TOP).unwrap().links, fs.attr(d).unwrap().links), (4, 2));
    refused!(rename(&fs, "d", "none", Exchange), NotFound);
    assert_clean(fs.medium());
}

#[test]
fn s14_renaming_onto_another_name_of_the_same_changes_nothing() {
    let fs = fresh(1 << 20);
    let f = file(&fs, "f");
    fs.link(ROOT, f, TOP, b"g").unwrap();
    let before = fs.attr(f).unwrap();
    for mode in [Replace, Exchange] {
        rename(&fs, "f", "g", mode).unwrap();
        assert_eq!((names(&fs, TOP).len(), fs.attr(f).unwrap()), (2, before));
    }
}

#[test]
fn s15_a_directory_never_comes_below_itself() {
    let fs = fresh(1 << 20);
    let d = directory(&fs, "d");
    let below = fs.create(ROOT, d, b"below", NewInode::directory(0o755)).unwrap().ino;
    refused!(rename(&fs, "d", "d/x", Replace), Invalid);
    refused!(fs.rename(ROOT, (TOP, b"d"), (below, b"x"), Replace), Invalid);
    refused!(fs.rename(ROOT, (TOP, b"d"), (below, b"x"), Exchange), NotFound);
    refused!(fs.rename(ROOT, (d, b"below"), (TOP, b"d"), Replace), NotEmpty);
    refused!(fs.rename(ROOT, (d, b"below"), (TOP, b"d"), Exchange), Invalid);
    assert_clean(fs.medium());
}
