//! Programs of users: the examples of the tree, programs that fail, and modules that are none.

mod control;
mod examples;
mod failing;
mod modules;
mod mutated;

use crate::support::Pieces;
use frit_isp::{
    Answer, Command, Engine, Instruction, Module, Outcome, Program, ProgramAnswer, Request, Status, Target,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::{Arc, LazyLock, Mutex};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/isp")
}

/// Assembles a module from its text form.
fn assembled(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

/// Assembles an example in the text form.
fn text_example(name: &str) -> Vec<u8> {
    wat::parse_file(directory().join(name)).unwrap()
}

/// Compiles an example in Rust, once.
fn rust_example(name: &str) -> Option<Vec<u8>> {
    static COMPILED: LazyLock<Mutex<HashMap<String, Vec<u8>>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap();
    if let Some(module) = compiled.get(name) {
        return Some(module.clone());
    }
    let module = rust_program(&directory().join(format!("{name}.rs")))?;
    compiled.insert(name.to_owned(), module.clone());
    Some(module)
}

/// Compiles a program in Rust. Returns `None` if the compiler has no library for WebAssembly.
fn rust_program(source: &Path) -> Option<Vec<u8>> {
    let target = ["--target", "wasm32-unknown-unknown"];
    let library = Process::new("rustc").args(target).args(["--print", "target-libdir"]).output().unwrap();
    if !Path::new(String::from_utf8(library.stdout).unwrap().trim()).exists() {
        eprintln!("skipped: rustup target add wasm32-unknown-unknown");
        return None;
    }
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("program.wasm");
    let options = "--edition 2024 -O -D warnings -C panic=abort -C strip=symbols --crate-type cdylib";
    let mut rustc = Process::new("rustc");
    let output =
        rustc.args(target).args(options.split(' ')).arg("-o").arg(&out).arg(source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(std::fs::read(out).unwrap())
}

/// Instruction for a program in memory.
fn program(module: &[u8]) -> Program {
    Program::new(Module::Bytes(module.to_vec()))
}

fn request(program: Program, source: Arc<Pieces>) -> Request {
    let instruction = Instruction::new(Command::Program(program), Target::Inode(1));
    Request { instruction, source, module: None, destination: None }
}

fn run(engine: &Engine, program: Program, data: &[u8]) -> Arc<Outcome> {
    engine.run(request(program, Arc::new(Pieces::new(data, &[]))))
}

#[track_caller]
fn answer(outcome: &Outcome) -> &ProgramAnswer {
    match &outcome.result {
        Ok(Answer::Program(answer)) => answer,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn payload(outcome: &Outcome) -> String {
    String::from_utf8(answer(outcome).payload.clone()).unwrap()
}

/// Status and message of a failure.
#[track_caller]
fn failure(outcome: &Outcome) -> (Status, String) {
    let failure = outcome.result.as_ref().unwrap_err();
    (failure.status, failure.message.clone())
}
