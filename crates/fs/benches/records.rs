//! The four patterns of IOzone on one file: the library beside a directory of another file system, in one process.
//!
//! `cargo bench -p frit-fs --bench records -- --image FILE --beside DIR [--mib 256] [--durable] [--only 1,4]`.
//! `scripts/bench-fs.sh` makes both places and the regimes.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use frit_fs::{Caller, Format, Fs, Mapped, OpenFile};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Instant;

/// Records in KiB, as the paper's Fig. 7 has them.
const RECORDS: [usize; 8] = [1, 4, 16, 64, 256, 1024, 4096, 16384];
/// Runs of each pattern on each side; the median counts.
const RUNS: usize = 5;

/// A file to be measured.
trait Subject {
    fn read(&self, at: u64, into: &mut [u8]);
    fn write(&self, at: u64, data: &[u8]);
    fn sync(&self);
}

impl Subject for std::fs::File {
    fn read(&self, at: u64, into: &mut [u8]) {
        self.read_exact_at(into, at).unwrap();
    }

    fn write(&self, at: u64, data: &[u8]) {
        self.write_all_at(data, at).unwrap();
    }

    fn sync(&self) {
        self.sync_all().unwrap();
    }
}

impl Subject for frit_fs::File<'_, Mapped> {
    fn read(&self, at: u64, into: &mut [u8]) {
        assert_eq!(self.read_at(at, into).unwrap(), into.len());
    }

    fn write(&self, at: u64, data: &[u8]) {
        assert_eq!(self.write_at(at, data).unwrap(), data.len());
    }

    fn sync(&self) {
        frit_fs::File::sync(self, false).unwrap();
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Pattern {
    Rewrite,
    Reread,
    RandomRead,
    RandomWrite,
}

const PATTERNS: [(Pattern, &str); 4] = [
    (Pattern::Rewrite, "rewrite"),
    (Pattern::Reread, "reread"),
    (Pattern::RandomRead, "random read"),
    (Pattern::RandomWrite, "random write"),
];

/// MB/s of one pass over the file.
fn pass(subject: &dyn Subject, pattern: Pattern, order: &[u64], buffer: &mut [u8], durable: bool) -> f64 {
    let start = Instant::now();
    for at in order {
        match pattern {
            Pattern::Reread | Pattern::RandomRead => subject.read(*at, buffer),
            Pattern::Rewrite | Pattern::RandomWrite => subject.write(*at, buffer),
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
    beside: PathBuf,
    mib: usize,
    durable: bool,
    only: Vec<usize>,
}

fn options() -> Options {
    let mut options = Options {
        image: None,
        beside: std::env::temp_dir(),
        mib: 256,
        durable: false,
        only: RECORDS.to_vec(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--image" => options.image = Some(words.next().unwrap().into()),
            "--beside" => options.beside = words.next().unwrap().into(),
            "--mib" => options.mib = words.next().unwrap().parse().unwrap(),
            "--durable" => options.durable = true,
            "--only" => {
                options.only = words.next().unwrap().split(',').map(|w| w.parse().unwrap()).collect();
            }
            _ => {}
        }
    }
    options
}

fn main() {
    let options = options();
    let bytes = options.mib << 20;
    let medium = match &options.image {
        Some(path) => Mapped::file(path).unwrap(),
        None => Mapped::anonymous(bytes as u64 * 3 / 2).unwrap(),
    };
    let fs = Fs::format(medium, Format { force: true, ..Format::default() }).unwrap();
    let ours = fs.open_file(&Caller::ROOT, "file", OpenFile::CREATE).unwrap();
    let path = options.beside.join("frit-bench-records");
    let beside =
        std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    let chunk = vec![7; 1 << 20];
    for at in (0..bytes as u64).step_by(1 << 20) {
        Subject::write(&ours, at, &chunk);
        Subject::write(&beside, at, &chunk);
    }
    Subject::sync(&beside);
    println!("{:>8}  {:<12}  {:>9}  {:>9}  {:>6}", "KiB", "pattern", "frit MB/s", "other", "ratio");
    let mut ratios = [const { Vec::new() }; 4];
    for kib in &options.only {
        let mut buffer = vec![3; kib << 10];
        let order: Vec<u64> = (0..bytes as u64).step_by(kib << 10).collect();
        let mut shuffled = order.clone();
        shuffled.shuffle(&mut SmallRng::seed_from_u64(1));
        for (i, (pattern, name)) in PATTERNS.into_iter().enumerate() {
            let random = matches!(pattern, Pattern::RandomRead | Pattern::RandomWrite);
            let order = if random { &shuffled } else { &order };
            let (mut a, mut b) = (Vec::new(), Vec::new());
            for _ in 0..RUNS {
                a.push(pass(&ours, pattern, order, &mut buffer, options.durable));
                b.push(pass(&beside, pattern, order, &mut buffer, options.durable));
            }
            let (a, b) = (median(a), median(b));
            ratios[i].push(a / b);
            println!("{kib:>8}  {name:<12}  {a:>9.0}  {b:>9.0}  {:>6.2}", a / b);
        }
    }
    for (i, (_, name)) in PATTERNS.iter().enumerate() {
        let mean = ratios[i].iter().sum::<f64>() / ratios[i].len() as f64;
        println!("{:>8}  {name:<12}  {:>9}  {:>9}  {mean:>6.2}", "mean", "", "");
    }
    drop(beside);
    std::fs::remove_file(&path).unwrap();
}
