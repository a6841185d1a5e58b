//! Throughput of operations on names in one directory: the library compared with a directory of
//! another file system.
//!
//! `cargo bench -p frit-fs --bench names -- --beside DIR [--names 1000000] [--image FILE]`

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use frit_fs::{
    Caller, FileSystem, FormatOptions, Fs, FsOptions, Ino, Mapped, NewInode, OpenFile, RenameMode,
};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

const ROOT: &Caller = &Caller::ROOT;

fn name(i: usize) -> String {
    format!("file-{i:08}")
}

/// Returns thousands of operations per second.
fn timed(order: &[usize], mut each: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    for i in order {
        each(*i);
    }
    order.len() as f64 / 1e3 / start.elapsed().as_secs_f64()
}

/// Measures create, stat, open, rename and unlink.
fn ours(fs: &Fs<Mapped>, order: &[usize], shuffled: &[usize]) -> [f64; 5] {
    let dir = fs.create(ROOT, Ino::ROOT, b"d", NewInode::directory(0o755)).unwrap().ino;
    let at = |i: usize| name(i).into_bytes();
    [
        timed(order, |i| _ = fs.create(ROOT, dir, &at(i), NewInode::file(0o644)).unwrap()),
        timed(shuffled, |i| _ = fs.lookup(ROOT, dir, &at(i)).unwrap()),
        timed(shuffled, |i| drop(fs.open_file(ROOT, &format!("d/{}", name(i)), OpenFile::WRITE).unwrap())),
        timed(shuffled, |i| {
            fs.rename(ROOT, (dir, &at(i)), (dir, format!("moved-{i}").as_bytes()), RenameMode::Replace)
                .unwrap();
        }),
        timed(shuffled, |i| fs.unlink(ROOT, dir, format!("moved-{i}").as_bytes()).unwrap()),
    ]
}

fn theirs(dir: &Path, order: &[usize], shuffled: &[usize]) -> [f64; 5] {
    fs::create_dir(dir).unwrap();
    let at = |i: usize| dir.join(name(i));
    let moved = |i: usize| dir.join(format!("moved-{i}"));
    let rates = [
        timed(order, |i| drop(File::create_new(at(i)).unwrap())),
        timed(shuffled, |i| _ = fs::symlink_metadata(at(i)).unwrap()),
        timed(shuffled, |i| drop(File::options().read(true).write(true).open(at(i)).unwrap())),
        timed(shuffled, |i| fs::rename(at(i), moved(i)).unwrap()),
        timed(shuffled, |i| fs::remove_file(moved(i)).unwrap()),
    ];
    fs::remove_dir(dir).unwrap();
    rates
}

fn main() {
    let (mut beside, mut names, mut image): (Vec<PathBuf>, usize, Option<PathBuf>) =
        (Vec::new(), 1_000_000, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--beside" => beside.push(words.next().unwrap().into()),
            "--names" => names = words.next().unwrap().parse().unwrap(),
            "--image" => image = Some(words.next().unwrap().into()),
            _ => {}
        }
    }
    let order: Vec<usize> = (0..names).collect();
    let mut shuffled = order.clone();
    shuffled.shuffle(&mut SmallRng::seed_from_u64(1));
    let medium = match &image {
        Some(path) => Mapped::file(path).unwrap(),
        None => Mapped::anonymous((names as u64 * 400 + (64 << 20)).next_multiple_of(4096)).unwrap(),
    };
    let format = FormatOptions { force: true, inodes: Some(names as u64 + 64), ..FormatOptions::default() };
    let fs = Fs::format(medium, format).unwrap();
    let mut rows = vec![("the library".to_string(), ours(&fs, &order, &shuffled))];
    rows.extend(
        beside
            .iter()
            .map(|dir| (dir.display().to_string(), theirs(&dir.join("frit-bench-names"), &order, &shuffled))),
    );
    println!("{names} names, thousands of operations per second");
    println!("{:<28} {:>8} {:>8} {:>8} {:>8} {:>8}", "", "create", "stat", "open", "rename", "unlink");
    for (what, rates) in rows {
        print!("{what:<28}");
        rates.iter().for_each(|rate| print!(" {rate:>8.1}"));
        println!();
    }
    let dir = fs.lookup(ROOT, Ino::ROOT, b"d").unwrap().ino;
    for i in &order {
        fs.create(ROOT, dir, name(*i).as_bytes(), NewInode::file(0o644)).unwrap();
    }
    // State after a crash: the medium was not closed.
    let start = Instant::now();
    let again = Fs::open(fs.medium(), FsOptions::default()).unwrap();
    let opened = start.elapsed();
    again.lookup(ROOT, dir, name(names / 2).as_bytes()).unwrap();
    let (found, report) = (start.elapsed(), Instant::now());
    let check = frit_fs::check(again.medium()).unwrap();
    println!(
        "opened after a crash in {:.4} s, the first name found after {:.4} s; checked in {:.2} s: {} problems",
        opened.as_secs_f64(),
        found.as_secs_f64(),
        report.elapsed().as_secs_f64(),
        check.found
    );
}
