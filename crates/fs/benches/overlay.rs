//! Throughput of an image on a disk compared with a mapping of one: overwrites and reads of one
//! file, and the duration of a sync of the changes.
//!
//! `cargo bench -p frit-fs --bench overlay -- --dir DIR [--mib 64]`: a directory on a disk.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use frit_fs::{Caller, File, FormatOptions, Fs, Image, Mapped, Medium, OpenFile, OverlayOptions};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Record sizes in KiB.
const RECORDS: [usize; 3] = [4, 64, 1024];
/// Number of runs; the median is reported.
const RUNS: usize = 5;

fn options() -> (PathBuf, usize) {
    let (mut dir, mut mib) = (std::env::temp_dir(), 64);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--dir" => dir = words.next().unwrap().into(),
            "--mib" => mib = words.next().unwrap().parse().unwrap(),
            _ => {}
        }
    }
    (dir, mib)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Returns the throughput in MB/s of one access to each record in random order.
fn pass(order: &[u64], len: usize, mut access: impl FnMut(u64)) -> f64 {
    let begun = Instant::now();
    order.iter().for_each(|at| access(*at));
    (order.len() * len) as f64 / 1e6 / begun.elapsed().as_secs_f64()
}

fn measure<M: Medium>(name: &str, medium: M, mib: usize) {
    let fs = Fs::format(medium, FormatOptions { force: true, ..FormatOptions::default() }).unwrap();
    let file: File<'_, M> = fs.open_file(&Caller::ROOT, "file", OpenFile::CREATE).unwrap();
    let bytes = mib << 20;
    file.write_at(0, &vec![7; bytes]).unwrap();
    for kib in RECORDS {
        let mut buffer = vec![3; kib << 10];
        let mut order: Vec<u64> = (0..bytes as u64).step_by(kib << 10).collect();
        order.shuffle(&mut SmallRng::seed_from_u64(1));
        // Read from the image; write into an empty overlay; write again in place; read from the
        // overlay; sync.
        let mut rates = [const { Vec::new() }; 5];
        for _ in 0..RUNS {
            file.sync(false).unwrap();
            let len = buffer.len();
            let read = |at, buffer: &mut [u8]| assert_eq!(file.read_at(at, buffer).unwrap(), len);
            let write = |at, buffer: &[u8]| assert_eq!(file.write_at(at, buffer).unwrap(), len);
            rates[0].push(pass(&order, len, |at| read(at, &mut buffer)));
            rates[1].push(pass(&order, len, |at| write(at, &buffer)));
            rates[2].push(pass(&order, len, |at| write(at, &buffer)));
            rates[3].push(pass(&order, len, |at| read(at, &mut buffer)));
            let begun = Instant::now();
            file.sync(false).unwrap();
            rates[4].push(begun.elapsed().as_secs_f64() * 1e3);
        }
        let [clean, fresh, again, dirty, sync] = rates.map(median);
        println!(
            "{name:>8} {kib:>5} KiB: {clean:>7.0} {fresh:>7.0} {again:>7.0} {dirty:>7.0} MB/s, sync {sync:>6.0} ms"
        );
    }
}

fn made(dir: &Path, mib: usize) -> PathBuf {
    let path = dir.join("frit-bench-overlay");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len((mib as u64) << 21).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, (mib as u64) << 21).unwrap();
    path
}

fn main() {
    let (dir, mib) = options();
    println!(
        "MB/s: read of synced data, first write to a page, further writes, read of unsynced data; {mib} MiB"
    );
    let path = made(&dir, mib);
    measure("mapped", Mapped::file(&path).unwrap(), mib);
    std::fs::remove_file(&path).unwrap();
    let path = made(&dir, mib);
    // A bound larger than all changes, so that no write performs a sync.
    let overlay = OverlayOptions { bound: (mib as u64) << 23, ..OverlayOptions::default() };
    measure("overlaid", Image::open(&path, &overlay).unwrap(), mib);
    std::fs::remove_file(&path).unwrap();
}
