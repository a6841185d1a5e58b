//! Speed of the search for four words, compared with other methods on the same data.
//!
//! `cargo bench -p frit-isp --bench words -- [--mib 512] [--text FILE] [--dir /dev/shm] [--runs 5]`. The data is
//! `FILE` repeated, or generated text. The best of the runs is reported, since other load only makes
//! runs slower. Ratios are relative to the speed of sequential reads of the same memory by two
//! threads. GNU grep and ripgrep read a file in `--dir`, if they are installed.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic)]

#[path = "words/text.rs"]
mod text;

use aho_corasick::{Span, packed};
use frit_isp::{
    Command, Engine, EngineOptions, Instruction, Kernel, Outcome, Request, Searcher, Source, SourceError,
    Target, Words,
};
use std::hint::black_box;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

/// Words that are searched for: two frequent ones, and two rare ones.
const WORDS: [&str; 4] = ["error", "warning", "xylophone", "needle"];
/// Memory as a source: one piece for each read, as mapped memory has.
struct Memory(memmap2::Mmap);

impl Source for Memory {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        each(&self.0[at as usize..at as usize + len]);
        Ok(())
    }

    fn version(&self) -> u64 {
        0
    }
}

struct Bench {
    runs: usize,
    bytes: usize,
    memory_speed: f64,
}

impl Bench {
    /// Reports a method by its best run. Returns its speed in MB/s.
    fn method(&self, name: &str, bytes: usize, mut run: impl FnMut() -> u64) -> f64 {
        let mut best = f64::MAX;
        let mut count = 0;
        for _ in 0..self.runs {
            let began = Instant::now();
            count = black_box(run());
            best = best.min(began.elapsed().as_secs_f64());
        }
        let speed = bytes as f64 / best / 1e6;
        let ratio = if self.memory_speed > 0.0 { speed / self.memory_speed } else { 1.0 };
        println!("{name:<34} {speed:>9.0} MB/s {ratio:>7.3}  {count} found");
        speed
    }
}

/// Divides data between two threads; a word at the border is counted by the first one.
fn with_two<'a>(data: &'a [u8], count: impl Fn(&'a [u8], usize) -> u64 + Sync) -> u64 {
    let half = data.len() / 2;
    std::thread::scope(|scope| {
        let first = scope.spawn(|| count(&data[..(half + 16).min(data.len())], half));
        count(&data[half..], data.len() - half).wrapping_add(first.join().unwrap())
    })
}

fn sum(data: &[u8]) -> u64 {
    data.as_chunks::<8>().0.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

/// The paper's software: blocks of a file, and a comparison with each word at every position.
fn baseline(file: &mut std::fs::File, bytes: usize) -> u64 {
    file.rewind().unwrap();
    let mut block = vec![0; 128 << 10];
    let mut left = bytes;
    let mut count = 0;
    while left > 0 {
        let len = file.read(&mut block).unwrap().min(left);
        for at in 0..len {
            for word in WORDS {
                let rest = &block[at..len];
                // As `strncmp`: byte by byte up to the first difference.
                let equal = rest.iter().zip(word.as_bytes()).take_while(|(a, b)| a == b).count();
                count += u64::from(black_box(equal) == word.len());
            }
        }
        left -= len;
    }
    count
}

fn teddy(searcher: &packed::Searcher, data: &[u8], starts: usize) -> u64 {
    let (mut at, mut count) = (0, 0);
    while let Some(found) = searcher.find_in(data, Span { start: at, end: data.len() }) {
        if found.start() >= starts {
            break;
        }
        count += 1;
        at = found.start() + 1;
    }
    count
}

fn memmem(data: &[u8]) -> u64 {
    WORDS.iter().map(|word| memchr::memmem::find_iter(data, word).count() as u64).sum()
}

fn run(engine: &Engine, source: &Arc<Memory>) -> Arc<Outcome> {
    let words = WORDS.map(|word| word.as_bytes().to_vec()).to_vec();
    let command = Command::Words(Words { words, positions: 16 });
    let instruction = Instruction::new(command, Target::Inode(1));
    let source: Arc<dyn Source> = Arc::<Memory>::clone(source);
    engine.run(Request { instruction, source, module: None, destination: None })
}

fn engine(engine: &Engine, source: &Arc<Memory>) -> u64 {
    match run(engine, source).result.as_ref().unwrap() {
        frit_isp::Answer::Words(answer) => answer.words.iter().map(|word| word.count).sum(),
        other => panic!("{other:?}"),
    }
}

/// Runs a program that prints lines or counts. `None` if it is not installed.
fn program(name: &str, arguments: &[&str], file: &Path) -> Option<u64> {
    let output = std::process::Command::new(name)
        .args(arguments)
        .arg(file)
        .env("LC_ALL", "C")
        .stderr(Stdio::null())
        .output();
    let output = output.ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(0))
}

fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1)
}

fn main() {
    let bytes = argument("--mib").map_or(512, |mib| mib.parse::<usize>().unwrap()) << 20;
    let runs = argument("--runs").map_or(5, |runs| runs.parse().unwrap());
    let dir = argument("--dir").map_or_else(|| PathBuf::from("/dev/shm"), PathBuf::from);
    let data = text::text(bytes, argument("--text").as_deref().map(Path::new));
    let path = dir.join(format!("frit-isp-bench-{}", std::process::id()));
    std::fs::write(&path, &data).unwrap();
    let mut file = std::fs::File::open(&path).unwrap();
    let mut map = memmap2::MmapMut::map_anon(bytes).unwrap();
    map.copy_from_slice(&data);
    drop(data);
    let source = Arc::new(Memory(map.make_read_only().unwrap()));
    let mut bench = Bench { runs, bytes, memory_speed: 0.0 };
    let memory = &source.0[..];
    bench.memory_speed =
        bench.method("memory read, 2 threads", bytes, || with_two(memory, |part, _| sum(part)));
    bench.method("memory read, 1 thread", bytes, || sum(memory));
    let small = bytes.min(64 << 20);
    let slow = bench.method("baseline: read and compare", small, || baseline(&mut file, small));
    bench.method("memmem, once for each word", bytes, || memmem(memory));
    let packed = packed::Searcher::new(WORDS).unwrap();
    bench.method("Teddy (aho-corasick), 1 thread", bytes, || teddy(&packed, memory, bytes));
    bench.method("Teddy (aho-corasick), 2 threads", bytes, || {
        with_two(memory, |part, n| teddy(&packed, part, n))
    });
    kernels(&bench, memory);
    let mut fastest = 0.0;
    for (threads, chunk) in [(1, 256), (2, 64), (2, 128), (2, 256), (2, 512), (2, 1024)] {
        let options = EngineOptions { threads, chunk_bytes: chunk << 10, ..EngineOptions::default() };
        let new = Engine::new(options);
        let name = format!("engine, {threads} threads, chunks of {chunk} KiB");
        fastest = f64::max(fastest, bench.method(&name, bytes, || engine(&new, &source)));
    }
    per_processor(&bench, &source);
    programs(&bench, &path, fastest);
    println!("engine : baseline = {:.0}", fastest / slow);
    println!("engine : memory   = {:.2}", fastest / bench.memory_speed);
    std::fs::remove_file(&path).unwrap();
}

fn kernels(bench: &Bench, memory: &[u8]) {
    for kernel in Kernel::available() {
        let searcher = Searcher::with_kernel(&WORDS, kernel);
        let count = |part: &[u8], starts| {
            let mut count = 0;
            searcher.search(part, starts, |_, _| count += 1);
            count
        };
        bench.method(&format!("{kernel:?}, 1 thread"), bench.bytes, || count(memory, bench.bytes));
        bench.method(&format!("{kernel:?}, 2 threads"), bench.bytes, || with_two(memory, count));
    }
}

/// Compares times of processors, which other load affects less than times of the clock.
fn per_processor(bench: &Bench, source: &Arc<Memory>) {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let new = Engine::new(EngineOptions { threads: 2, ..EngineOptions::default() });
    let (mut read, mut search) = (f64::MAX, f64::MAX);
    // The two alternate, so that both have the same chances.
    for _ in 0..4 * bench.runs {
        let began = now();
        black_box(sum(&source.0));
        read = read.min(now() - began);
        search = search.min(run(&new, source).work.cpu_ns as f64 * 1e-9);
    }
    let speed = |seconds: f64| bench.bytes as f64 / seconds / 1e6;
    println!(
        "per second of a processor: memory read {:.0} MB/s, engine {:.0} MB/s",
        speed(read),
        speed(search)
    );
    println!("engine : memory, per processor = {:.2}", read / search);
}

fn programs(bench: &Bench, path: &Path, fastest: f64) {
    let words: Vec<_> = WORDS.iter().flat_map(|word| ["-e", word]).collect();
    let with = |options: &[&'static str]| [options, &words].concat();
    for (name, arguments) in
        [("grep", with(&["-c", "-F"])), ("rg", with(&["-c", "-F"])), ("rg", with(&["-c", "-F", "--mmap"]))]
    {
        if program(name, &arguments, path).is_none() {
            println!("{name} is not installed");
            continue;
        }
        let title = format!("{name} {}", arguments.join(" "));
        let speed = bench.method(&title[..title.len().min(34)], bench.bytes, || {
            program(name, &arguments, path).unwrap_or(0)
        });
        println!("engine : {name} = {:.1}", fastest / speed);
    }
}
