//! Directory listings.

use super::*;
use std::collections::BTreeMap;

/// Lists a directory in batches of up to `most` names, and calls `between` after each.
fn in_batches(fs: &dyn FileSystem, dir: Ino, most: usize, mut between: impl FnMut(&[String])) -> Vec<String> {
    let (mut at, mut all) = (0, Vec::new());
    loop {
        let mut batch = Vec::new();
        fs.read_dir(dir, at, &mut |entry| {
            batch.push(String::from_utf8_lossy(entry.name).into_owned());
            at = entry.next;
            batch.len() < most
        })
        .unwrap();
        if batch.is_empty() {
            return all;
        }
        between(&batch);
        all.extend(batch);
    }
}

#[test]
fn s40_dot_and_dot_dot_come_first() {
    let fs = fresh(1 << 20);
    let d = directory(&fs, "d");
    fs.create(ROOT, d, b"f", NewInode::file(0)).unwrap();
    let mut told = Vec::new();
    fs.read_dir(d, 0, &mut |entry| {
        told.push((entry.name.to_vec(), entry.ino));
        true
    })
    .unwrap();
    assert_eq!(told[..2], [(b".".to_vec(), d), (b"..".to_vec(), TOP)]);
    assert_eq!((told.len(), &told[2].0[..]), (3, &b"f"[..]));
    assert_eq!(fs.lookup(ROOT, TOP, b"..").unwrap().ino, TOP, "above the root is the root");
}

#[test]
fn s41_a_name_that_stays_is_told_exactly_once() {
    let fs = fresh(64 << 20);
    let d = directory(&fs, "d");
    let make = |name: String| assert!(fs.create(ROOT, d, name.as_bytes(), NewInode::symlink(b"t")).is_ok());
    for i in 0..600 {
        make(format!("stays-{i}-{}", "x".repeat(i % 100)));
        make(format!("goes-{i}-{}", "y".repeat(i % 180)));
    }
    let mut round = 0;
    let told = in_batches(&fs, d, 7, |_| {
        for i in round * 5..round * 5 + 5 {
            let _ = fs.unlink(ROOT, d, format!("goes-{i}-{}", "y".repeat(i % 180)).as_bytes());
            make(format!("comes-{i}-{}", "z".repeat(i % 50)));
        }
        round += 1;
    });
    let mut times = BTreeMap::new();
    for name in told.iter().filter(|name| name.starts_with("stays")) {
        *times.entry(name).or_insert(0) += 1;
    }
    assert_eq!(times.len(), 600);
    assert!(times.values().all(|times| *times == 1));
}

#[test]
fn s42_positions_outlive_a_start() {
    let fs = fresh(1 << 20);
    for i in 0..30 {
        file(&fs, &format!("{i}"));
    }
    let all = in_batches(&fs, TOP, 40, |_| ());
    let mut at = 0;
    let mut first = Vec::new();
    fs.read_dir(TOP, 0, &mut |entry| {
        first.push(String::from_utf8_lossy(entry.name).into_owned());
        at = entry.next;
        first.len() < 10
    })
    .unwrap();
    let fs = again(fs.close().unwrap());
    fs.read_dir(TOP, at, &mut |entry| {
        first.push(String::from_utf8_lossy(entry.name).into_owned());
        true
    })
    .unwrap();
    assert_eq!(first, all);
}

#[test]
fn s43_a_directory_keeps_its_blocks_until_it_is_removed() {
    if image_only("free blocks are those of the pool") {
        return;
    }
    let fs = fresh(4 << 20);
    let d = directory(&fs, "d");
    let empty = free(&fs);
    for i in 0..200 {
        fs.create(ROOT, d, format!("{i:0>100}").as_bytes(), NewInode::symlink(b"t")).unwrap();
    }
    let grown = fs.attr(d).unwrap().size;
    assert!(grown >= 7 * BLOCK && grown.is_multiple_of(BLOCK));
    for i in 0..200 {
        fs.unlink(ROOT, d, format!("{i:0>100}").as_bytes()).unwrap();
    }
    assert_eq!((fs.attr(d).unwrap().size, free(&fs)), (grown, empty - grown / BLOCK));
    fs.rmdir(ROOT, TOP, b"d").unwrap();
    assert_eq!(free(&fs), empty);
}
