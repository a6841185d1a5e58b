//! Speed of programs in WebAssembly beside the native instruction, and beside the same code compiled for the
//! processor: `cargo bench -p frit-isp --bench programs`. It needs the target wasm32-unknown-unknown.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic)]

use frit_isp::{
    Answer, Command, Engine, EngineOptions, Instruction, Module, Program, Request, Target, Words,
};
use std::collections::{BTreeMap, BinaryHeap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BYTES: usize = 32 << 20;
const ROUNDS: usize = 9;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/isp")
}

/// Lines with a first field of 1000 ones, and a number.
fn text() -> Vec<u8> {
    let mut text = Vec::with_capacity(BYTES + 64);
    let mut state = 1_u64;
    while text.len() < BYTES {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.extend_from_slice(format!("host{} {}\n", (state >> 50) % 1000, state >> 40).as_bytes());
    }
    text
}

fn numbers(text: &[u8]) -> Vec<u8> {
    text.split_inclusive(|byte| *byte == b'\n')
        .flat_map(|line| line.splitn(2, |b| *b == b' ').nth(1).unwrap())
        .copied()
        .collect()
}

fn compiled(name: &str) -> Vec<u8> {
    let out = std::env::temp_dir().join(format!("frit-bench-{}-{name}.wasm", std::process::id()));
    let options = "--edition 2024 --target wasm32-unknown-unknown -O -C panic=abort -C strip=symbols --crate-type cdylib -o";
    let mut rustc = std::process::Command::new("rustc");
    rustc.args(options.split(' ')).arg(&out).arg(directory().join(format!("{name}.rs")));
    assert!(rustc.status().unwrap().success(), "rustup target add wasm32-unknown-unknown");
    let module = std::fs::read(&out).unwrap();
    let _ = std::fs::remove_file(out);
    module
}

/// Best speed in MB/s of processor time and of time, and the result of the first round.
fn speed(engine: &Engine, source: &Arc<Vec<u8>>, command: &Command) -> (f64, f64, Answer) {
    let run = || {
        let instruction = Instruction::new(command.clone(), Target::Inode(1));
        let source = Arc::<Vec<u8>>::clone(source);
        engine.run(Request { instruction, source, module: None, destination: None })
    };
    let first = run().result.clone().unwrap();
    let works: Vec<_> = (0..ROUNDS).map(|_| run().work).collect();
    let cpu = works.iter().map(|work| work.cpu_ns).min().unwrap();
    let wall = works.iter().map(|work| work.wall_ns).min().unwrap();
    let rate = |ns: u64| source.len() as f64 * 1e3 / ns as f64;
    (rate(cpu), rate(wall), first)
}

fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn timed(bytes: usize, mut run: impl FnMut() -> u64) -> f64 {
    let best = (0..ROUNDS).map(|_| {
        let began = cpu_seconds();
        std::hint::black_box(run());
        cpu_seconds() - began
    });
    bytes as f64 / 1e6 / best.fold(f64::MAX, f64::min)
}

fn count_lines(text: &[u8]) -> u64 {
    // The compiler for the processor uses vectors, which the program in the text form does not.
    text.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}

fn group_count(text: &[u8]) -> u64 {
    let mut counts: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let field = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        match counts.get_mut(field) {
            Some(count) => *count += 1,
            None => _ = counts.insert(field.to_vec(), 1),
        }
    }
    counts.len() as u64
}

fn top_k(text: &[u8]) -> u64 {
    let mut heap = BinaryHeap::new();
    for line in text.split(|byte| *byte == b'\n') {
        let number = std::str::from_utf8(line).ok().and_then(|text| text.trim().parse::<i64>().ok());
        let Some(number) = number else { continue };
        if heap.len() < 10 {
            heap.push(std::cmp::Reverse(number));
        } else if let Some(mut least) = heap.peek_mut()
            && number > least.0
        {
            *least = std::cmp::Reverse(number);
        }
    }
    heap.len() as u64
}

fn main() {
    let text = Arc::new(text());
    let numbers = Arc::new(numbers(&text));
    let engines = [1, 2].map(|threads| Engine::new(EngineOptions { threads, ..EngineOptions::default() }));
    println!("program          native  program  with fuel  2 threads, time  ms to load, ms to load again");
    type Native = fn(&[u8]) -> u64;
    let cases: [(&str, &Arc<Vec<u8>>, Native); 3] =
        [("line_count", &text, count_lines), ("group_count", &text, group_count), ("top_k", &numbers, top_k)];
    for (name, source, native) in cases {
        let text_form = directory().join(format!("{name}.wat"));
        let module = if text_form.exists() { wat::parse_file(text_form).unwrap() } else { compiled(name) };
        let native = timed(source.len(), || native(source));
        let program =
            |fuel| Command::Program(Program { fuel, ..Program::new(Module::Bytes(module.clone())) });
        let load_ms = |answer: &Answer| match answer {
            Answer::Program(answer) => answer.load_ns as f64 / 1e6,
            other => panic!("{other:?}"),
        };
        let (one, _, answer) = speed(&engines[0], source, &program(None));
        let (_, _, again) = speed(&engines[0], source, &program(None));
        let (_, two, _) = speed(&engines[1], source, &program(None));
        let (metered, _, _) = speed(&engines[0], source, &program(Some(1 << 62)));
        println!(
            "{name:14} {native:8.0} {one:8.0} {metered:10.0} {two:18.0}  {:.1} / {:.3}",
            load_ms(&answer),
            load_ms(&again)
        );
    }
    let words = Command::Words(Words { words: vec![b"\n".to_vec()], positions: 0 });
    let (one, two) = (speed(&engines[0], &text, &words).0, speed(&engines[1], &text, &words).1);
    println!("words, line feeds {:5} {one:8.0} {:10} {two:18.0}", "", "");
    println!("MB/s of processor time (10^6 bytes), the best of {ROUNDS} rounds over {BYTES} bytes in memory");
}
