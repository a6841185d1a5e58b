//! Benchmark of a disk's file with and without the page cache: `cargo bench -p frit-media --bench
//! direct -- DIRECTORY [PART OF A NAME]`. The directory has to be on the device to be measured; without
//! one, the current directory is used. The file of 1 GiB is removed afterwards.
//!
//! Each measurement takes about two seconds. Threads make random accesses at the same time; their
//! number is the queue depth. Writes are synced at the end, within the time.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use frit_core::{BlockingMedium, SyncedFile};
use frit_media::{DirectFile, FileAccess, FileStore, Store};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const FILE_BYTES: u64 = 1 << 30;
const SECONDS: f64 = 2.0;

/// Direct accesses with `pread` and `pwrite`, the baseline of `io_uring`.
#[derive(Debug)]
struct Pread(File);

impl BlockingMedium for Pread {
    fn read(&self, at: u64, into: &mut [u8]) -> frit_core::Result<()> {
        self.0.read_exact_at(into, at).unwrap();
        Ok(())
    }

    fn write(&self, at: u64, data: &[u8]) -> frit_core::Result<()> {
        self.0.write_all_at(data, at).unwrap();
        Ok(())
    }

    fn zero(&self, _: u64, _: u64) -> frit_core::Result<()> {
        Ok(())
    }

    fn sync(&self) -> frit_core::Result<()> {
        self.0.sync_data().unwrap();
        Ok(())
    }
}

/// Drops the file from the page cache, so that reads through it begin without it.
fn drop_cache(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_data().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

/// Makes random accesses in `depth` threads, and returns the accesses per second.
fn measure(medium: &Arc<dyn BlockingMedium>, write: bool, bytes: u64, depth: u64) -> f64 {
    let count = AtomicU64::new(0);
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(SECONDS);
    std::thread::scope(|scope| {
        for seed in 1..=depth {
            let count = &count;
            scope.spawn(move || {
                // Aligned for every device, so that no copy is measured.
                let mut memory = vec![0x5A; bytes as usize + 4096];
                let start = memory.as_ptr().align_offset(4096);
                let data = &mut memory[start..start + bytes as usize];
                let mut state = seed;
                while Instant::now() < end {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let at = (state >> 24) % (FILE_BYTES / bytes) * bytes;
                    if write { medium.write(at, data) } else { medium.read(at, data) }.unwrap();
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    if write {
        medium.sync().unwrap();
    }
    count.into_inner() as f64 / begin.elapsed().as_secs_f64()
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let dir = args.next().unwrap_or_else(|| ".".into());
    let wanted = args.next().unwrap_or_default();
    let path: PathBuf = Path::new(&dir).join("frit-bench-direct");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    let chunk = vec![0xA5; 1 << 20];
    (0..FILE_BYTES >> 20).for_each(|n| file.write_all_at(&chunk, n << 20).unwrap());
    file.sync_data().unwrap();
    let direct =
        DirectFile::open(SyncedFile::new(file, path.clone()), FILE_BYTES, true, FileAccess::IoUring).unwrap();
    if let Some(note) = direct.no_io_uring() {
        println!("{note}");
    }
    let o_direct = rustix::fs::OFlags::DIRECT.bits() as i32;
    let pread = OpenOptions::new().read(true).write(true).custom_flags(o_direct).open(&path).unwrap();
    let cached = FileStore::open(&path, FILE_BYTES).unwrap().shared().unwrap();
    let media: [(&str, Arc<dyn BlockingMedium>); 3] =
        [("page cache", cached), ("pread/pwrite", Arc::new(Pread(pread))), ("io_uring", Arc::new(direct))];
    println!("{:<34} {:>14} {:>14} {:>14}  accesses per second", "", media[0].0, media[1].0, media[2].0);
    for write in [false, true] {
        for (bytes, name) in [(4096, "4 KiB"), (128 << 10, "128 KiB"), (1 << 20, "1 MiB")] {
            for depth in [1, 8, 32] {
                let what = if write { "write" } else { "read" };
                let what = format!("{what} of {name}, queue depth {depth}");
                if !what.contains(&wanted) {
                    continue;
                }
                print!("{what:<34}");
                for (_, medium) in &media {
                    drop_cache(&path);
                    print!(" {:>14.0}", measure(medium, write, bytes, depth));
                }
                println!();
            }
        }
    }
    std::fs::remove_file(&path).unwrap();
}
