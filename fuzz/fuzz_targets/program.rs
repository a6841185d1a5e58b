//! Programs in WebAssembly: modules that wasm-smith generates and that have the functions of a program, their
//! bytes with changes, and any bytes. Each ends with a status within its limits, in one thread and in two, and
//! a valid program then still gives its results. Programs without limits that they reach, and without traps,
//! emit the same bytes twice.

#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use frit_isp::{
    Answer, Command, Engine, EngineOptions, Instruction, Module, Outcome, Program, ProgramLimits, Request, Status,
    Target,
};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};

/// Module that a generated program has to have: the functions of a program, and those of the engine.
const SHAPE: &str = r#"(module
    (import "frit" "emit" (func (param i32 i32) (result i32)))
    (import "frit" "fail" (func (param i32 i32)))
    (import "frit" "range_end" (func (result i64)))
    (import "frit" "range_start" (func (result i64)))
    (import "frit" "read_at" (func (param i64 i32 i32)))
    (import "frit" "size" (func (result i64))))"#;
const EXPORTS: &str = r#"(module
    (memory (export "memory") 1)
    (func (export "buffer") (param i32) (result i32) unreachable)
    (func (export "scan") (param i32 i32 i64) (result i32) unreachable)
    (func (export "partial"))
    (func (export "merge") (param i32 i32))
    (func (export "finish")))"#;
/// A valid program: it emits all bytes.
const COPY: &str = r#"(module
    (import "frit" "emit" (func $emit (param i32 i32) (result i32)))
    (memory (export "memory") 2)
    (func (export "buffer") (param i32) (result i32) (i32.const 0))
    (func (export "scan") (param i32 i32 i64) (result i32) (call $emit (local.get 0) (local.get 1))))"#;

const TEXT: &[u8] = b"name,size\nerror,12\n\"a, b\",-3.5\n{\"size\": 7}\nwarn \xff\0 error\n";

static ENGINES: LazyLock<[Engine; 2]> = LazyLock::new(|| {
    [1, 2].map(|threads| {
        Engine::new(EngineOptions {
            threads,
            chunk_bytes: 64,
            part_bytes: 256,
            programs: ProgramLimits { module_bytes_max: 1 << 16, ..ProgramLimits::default() },
            ..EngineOptions::default()
        })
    })
});
static VALID: LazyLock<Vec<u8>> = LazyLock::new(|| wat::parse_str(COPY).unwrap());
static PARTS: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| [SHAPE, EXPORTS].map(|text| wat::parse_str(text).unwrap()));

fn run(engine: &Engine, module: &[u8]) -> Arc<Outcome> {
    let program = Program {
        fuel: Some(20_000),
        time_ms: Some(2000),
        ..Program::new(Module::Bytes(module.to_vec()))
    };
    let mut instruction = Instruction::new(Command::Program(program), Target::Inode(1));
    instruction.memory_bytes = 1 << 20;
    engine.run(Request { instruction, source: Arc::new(TEXT.repeat(10)), module: None, destination: None })
}

/// Generates a module with the functions of a program.
fn generated(input: &mut Unstructured<'_>) -> arbitrary::Result<Vec<u8>> {
    let mut config = wasm_smith::Config::arbitrary(input)?;
    let [shape, exports] = &*PARTS;
    config.available_imports = Some(shape.clone());
    config.exports = Some(exports.clone());
    // The exported memory comes in addition.
    config.min_memories = 0;
    config.max_memories = 0;
    config.max_memory32_bytes = 1 << 20;
    config.memory64_enabled = false;
    config.threads_enabled = false;
    config.gc_enabled = false;
    config.reference_types_enabled = false;
    config.exceptions_enabled = false;
    config.tail_call_enabled = false;
    config.relaxed_simd_enabled = false;
    config.custom_page_sizes_enabled = false;
    config.wide_arithmetic_enabled = false;
    config.shared_everything_threads_enabled = false;
    Ok(wasm_smith::Module::new(config, input)?.to_bytes())
}

fn check(module: &[u8]) {
    let [first, second] = ENGINES.each_ref().map(|engine| run(engine, module));
    for outcome in [&first, &second] {
        if let Err(failure) = &outcome.result {
            assert!(failure.status != Status::Internal && !failure.message.is_empty(), "{failure:?}");
            assert!(failure.status != Status::OutOfTime, "20000 units of fuel take 2 s");
        }
    }
    // Parts are the same with any number of threads, but a program may have states that it cannot merge.
    let again = run(&ENGINES[0], module);
    let payload = |outcome: &Outcome| match &outcome.result {
        Ok(Answer::Program(answer)) => Ok(answer.payload.clone()),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure.status),
    };
    assert_eq!(payload(&first), payload(&again));
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Unstructured::new(bytes);
    match u8::arbitrary(&mut input) {
        Ok(kind) if kind < 200 => {
            let Ok(mut module) = generated(&mut input) else { return };
            if kind < 30
                && let (Ok(at), Ok(byte)) = (u16::arbitrary(&mut input), u8::arbitrary(&mut input))
            {
                let at = usize::from(at) % module.len();
                module[at] = byte;
            }
            check(&module);
        }
        Ok(_) => check(bytes.get(1..).unwrap_or_default()),
        Err(_) => return,
    }
    for engine in &*ENGINES {
        match &run(engine, &VALID).result {
            Ok(Answer::Program(answer)) => assert_eq!(answer.payload, TEXT.repeat(10)),
            other => panic!("{other:?}"),
        }
    }
});
