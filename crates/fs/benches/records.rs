//! Throughput of five patterns of IOzone on one file, of which the first writes a new one: the library compared with
//! a directory of another file system, in one process.
//!
//! `cargo bench -p frit-fs --bench records -- --image FILE --beside DIR [--beside DIR]... [--mib 256] [--durable]
//! [--only 1,4] [--patterns write,reread] [--mmap] [--sums IMAGE]`. Ratios are relative to the first directory. With
//! `--mmap`, files in directories are accessed through shared mappings. With `--sums`, the library
//! is measured on a second image as well, alternating with the first. The first has no checksums of
//! contents, the second has them. `scripts/bench-fs.sh` creates both locations and the
//! configurations.

// Unsafe code: mapped files are raw memory.
#![allow(clippy::print_stdout, clippy::unwrap_used, unsafe_code)]

use frit_fs::{Caller, FileSystem, FormatOptions, Fs, Ino, Mapped, OpenFile};
use memmap2::{MmapOptions, MmapRaw};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Instant;

/// Record sizes in KiB, as in Fig. 7 of the paper.
const RECORDS: [usize; 8] = [1, 4, 16, 64, 256, 1024, 4096, 16384];
/// Number of runs of each pattern on each side; the median is reported.
const RUNS: usize = 3;

/// A file under measurement.
trait Subject {
    /// Replaces the file by an empty one. Returns `false` if it has a fixed size.
    fn renew(&mut self) -> bool;
    fn read(&self, at: u64, into: &mut [u8]);
    fn write(&self, at: u64, data: &[u8]);
    fn sync(&self);
}

impl Subject for Beside {
    fn renew(&mut self) -> bool {
        std::fs::remove_file(&self.1).unwrap();
        self.0 = Self::create(&self.1);
        true
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        self.0.read_exact_at(into, at).unwrap();
    }

    fn write(&self, at: u64, data: &[u8]) {
        self.0.write_all_at(data, at).unwrap();
    }

    fn sync(&self) {
        self.0.sync_all().unwrap();
    }
}

/// A wholly mapped file.
struct Map(MmapRaw);

impl Subject for Map {
    fn renew(&mut self) -> bool {
        false
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        assert!(at as usize + into.len() <= self.0.len());
        // SAFETY: the range is inside the mapping, and no other code has the file open.
        unsafe {
            std::ptr::copy_nonoverlapping(self.0.as_ptr().add(at as usize), into.as_mut_ptr(), into.len());
        }
    }

    fn write(&self, at: u64, data: &[u8]) {
        assert!(at as usize + data.len() <= self.0.len());
        // SAFETY: as above.
        unsafe {
            std::ptr::copy_nonoverlapping(data.as_ptr(), self.0.as_mut_ptr().add(at as usize), data.len());
        }
    }

    fn sync(&self) {
        self.0.flush().unwrap();
    }
}

/// A file of a file system in this process.
struct Library<'fs> {
    fs: &'fs Fs<Mapped>,
    file: frit_fs::File<'fs, Mapped>,
}

impl<'fs> Library<'fs> {
    fn new(fs: &'fs Fs<Mapped>) -> Self {
        Self { fs, file: fs.open_file(&Caller::ROOT, "file", OpenFile::CREATE).unwrap() }
    }
}

impl Subject for Library<'_> {
    fn renew(&mut self) -> bool {
        self.fs.unlink(&Caller::ROOT, Ino::ROOT, b"file").unwrap();
        self.file = self.fs.open_file(&Caller::ROOT, "file", OpenFile::CREATE).unwrap();
        true
    }

    fn read(&self, at: u64, into: &mut [u8]) {
        assert_eq!(self.file.read_at(at, into).unwrap(), into.len());
    }

    fn write(&self, at: u64, data: &[u8]) {
        assert_eq!(self.file.write_at(at, data).unwrap(), data.len());
    }

    fn sync(&self) {
        self.file.sync(false).unwrap();
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Pattern {
    /// A new file.
    Write,
    Rewrite,
    Reread,
    RandomRead,
    RandomWrite,
}

const PATTERNS: [(Pattern, &str); 5] = [
    (Pattern::Write, "write"),
    (Pattern::Rewrite, "rewrite"),
    (Pattern::Reread, "reread"),
    (Pattern::RandomRead, "random read"),
    (Pattern::RandomWrite, "random write"),
];

/// Returns the throughput in MB/s of one pass over the file.
fn pass(subject: &dyn Subject, pattern: Pattern, order: &[u64], buffer: &mut [u8], durable: bool) -> f64 {
    let start = Instant::now();
    for at in order {
        match pattern {
            Pattern::Reread | Pattern::RandomRead => subject.read(*at, buffer),
            Pattern::Write | Pattern::Rewrite | Pattern::RandomWrite => subject.write(*at, buffer),
        }
    }
    if durable {
        subject.sync();
    }
    (order.len() * buffer.len()) as f64 / 1e6 / start.elapsed().as_secs_f64()
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

struct Options {
    image: Option<PathBuf>,
    sums: Option<PathBuf>,
    beside: Vec<PathBuf>,
    mib: usize,
    durable: bool,
    mmap: bool,
    only: Vec<usize>,
    patterns: Vec<String>,
}

fn options() -> Options {
    let mut options = Options {
        image: None,
        sums: None,
        beside: Vec::new(),
        mib: 256,
        durable: false,
        mmap: false,
        only: RECORDS.to_vec(),
        patterns: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--image" => options.image = Some(words.next().unwrap().into()),
            "--sums" => options.sums = Some(words.next().unwrap().into()),
            "--beside" => options.beside.push(words.next().unwrap().into()),
            "--mib" => options.mib = words.next().unwrap().parse().unwrap(),
            "--durable" => options.durable = true,
            "--mmap" => options.mmap = true,
            "--only" => {
                options.only = words.next().unwrap().split(',').map(|w| w.parse().unwrap()).collect();
            }
            "--patterns" => {
                options.patterns = words.next().unwrap().split(',').map(str::to_owned).collect();
            }
            _ => {}
        }
    }
    if options.beside.is_empty() {
        options.beside.push(std::env::temp_dir());
    }
    options
}

/// A file in a directory, removed on drop.
struct Beside(std::fs::File, PathBuf);

impl Beside {
    fn new(dir: &std::path::Path) -> Self {
        let path = dir.join("frit-bench-records");
        Self(Self::create(&path), path)
    }

    fn create(path: &std::path::Path) -> std::fs::File {
        let mut options = std::fs::File::options();
        options.read(true).write(true).create(true).truncate(true).open(path).unwrap()
    }

    fn map(&self, bytes: usize) -> Map {
        self.0.set_len(bytes as u64).unwrap();
        Map(MmapOptions::new().len(bytes).map_raw(&self.0).unwrap())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        std::fs::remove_file(&self.1).unwrap();
    }
}

fn line(first: &str, second: &str, values: impl Iterator<Item = String>) {
    print!("{first:>6}  {second:<12}");
    values.for_each(|value| print!("  {value:>16}"));
    println!();
}

fn library(image: Option<&PathBuf>, bytes: usize, sums: bool) -> Fs<Mapped> {
    let medium = match image {
        Some(path) => Mapped::file(path).unwrap(),
        None => Mapped::anonymous(bytes as u64 * 3 / 2).unwrap(),
    };
    Fs::format(medium, FormatOptions { force: true, sums, ..FormatOptions::default() }).unwrap()
}

fn main() {
    let options = options();
    let bytes = options.mib << 20;
    let fs = library(options.image.as_ref(), bytes, false);
    let mut ours = Library::new(&fs);
    let summed = options.sums.as_ref().map(|path| library(Some(path), bytes, true));
    let mut summed_file = summed.as_ref().map(Library::new);
    let mut files: Vec<Beside> = options.beside.iter().map(|dir| Beside::new(dir)).collect();
    let with_sums = summed_file.is_some();
    let mut subjects: Vec<&mut dyn Subject> = vec![&mut ours];
    subjects.extend(summed_file.as_mut().map(|file| file as &mut dyn Subject));
    let first = subjects.len();
    let mut maps: Vec<Map> = files.iter().filter(|_| options.mmap).map(|file| file.map(bytes)).collect();
    if options.mmap {
        subjects.extend(maps.iter_mut().map(|map| map as &mut dyn Subject));
    } else {
        subjects.extend(files.iter_mut().map(|file| file as &mut dyn Subject));
    }
    let chunk = vec![7; 1 << 20];
    for subject in &subjects {
        (0..bytes as u64).step_by(1 << 20).for_each(|at| subject.write(at, &chunk));
        subject.sync();
    }
    let names = options.beside.iter().map(|dir| dir.file_name().unwrap_or_default().to_string_lossy());
    let summed = with_sums.then(|| "with checksums".into());
    let names = std::iter::once("library".into()).chain(summed).chain(names);
    line("KiB", "MB/s", names.map(std::borrow::Cow::into_owned));
    let mut ratios = vec![[const { Vec::new() }; PATTERNS.len()]; subjects.len()];
    for kib in &options.only {
        let mut buffer = vec![3; kib << 10];
        let order: Vec<u64> = (0..bytes as u64).step_by(kib << 10).collect();
        let mut shuffled = order.clone();
        shuffled.shuffle(&mut SmallRng::seed_from_u64(1));
        for (i, (pattern, name)) in PATTERNS.into_iter().enumerate() {
            let is_wanted = options.patterns.is_empty() || options.patterns.iter().any(|each| each == name);
            if !is_wanted || (pattern == Pattern::Write && options.mmap) {
                continue;
            }
            let random = matches!(pattern, Pattern::RandomRead | Pattern::RandomWrite);
            let order = if random { &shuffled } else { &order };
            let mut rates = vec![Vec::new(); subjects.len()];
            for _ in 0..RUNS {
                for (rates, subject) in rates.iter_mut().zip(&mut subjects) {
                    if pattern == Pattern::Write {
                        assert!(subject.renew());
                    }
                    rates.push(pass(&**subject, pattern, order, &mut buffer, options.durable));
                }
            }
            let rates: Vec<f64> = rates.into_iter().map(median).collect();
            // Ratios are relative to the first directory.
            let over = |n: usize| rates[n] / rates[first];
            (0..subjects.len()).for_each(|n| ratios[n][i].push(over(n)));
            line(
                &kib.to_string(),
                name,
                (0..subjects.len()).map(|n| format!("{:.0} ({:.2})", rates[n], over(n))),
            );
        }
    }
    let mean = |all: &Vec<f64>| format!("({:.2})", all.iter().sum::<f64>() / all.len() as f64);
    for (i, (_, name)) in PATTERNS.iter().enumerate().filter(|(i, _)| !ratios[0][*i].is_empty()) {
        line("mean", name, ratios.iter().map(|all| mean(&all[i])));
    }
}
