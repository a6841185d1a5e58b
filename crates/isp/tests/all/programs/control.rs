//! Cancellation and the foreground gate while a program runs, and reads beside it.

use super::{failure, payload, program, request, run, text_example};
use crate::support::{Pieces, Setting};
use frit_isp::{Command, Engine, Instruction, Module, Program, Request, Source, SourceError, Status, Target};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn looping() -> Program {
    Program { time_ms: Some(60_000), ..program(&text_example("failing/loops.wat")) }
}

fn submit(engine: &Engine) -> frit_isp::Ticket {
    engine.submit(request(looping(), Arc::new(Pieces::new(vec![0; 1000], &[]))))
}

/// Waits until the program is compiled and loops.
fn compiled(engine: &Engine) {
    let short = Program { time_ms: Some(2), ..looping() };
    assert_eq!(failure(&run(engine, short, &[0; 10])).0, Status::OutOfTime);
}

#[test]
fn a_program_that_loops_is_cancelled_at_once() {
    for threads in [1, 2] {
        let engine = Setting { threads, ..Setting::plain() }.engine();
        compiled(&engine);
        let ticket = submit(&engine);
        std::thread::sleep(Duration::from_millis(20));
        assert!(!ticket.is_complete());
        let began = Instant::now();
        ticket.cancel();
        assert_eq!(ticket.wait().status(), Status::Cancelled);
        // A tick is one millisecond; the rest is for machines with much other work.
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}

#[test]
fn programs_that_loop_leave_threads_to_other_instructions() {
    for threads in [1, 2] {
        let engine = Setting { threads, ..Setting::plain() }.engine();
        compiled(&engine);
        let endless: Vec<_> = (0..40).map(|_| submit(&engine)).collect();
        std::thread::sleep(Duration::from_millis(200));
        let line = br#"{"words": ["b"], "file": "x"}"#;
        let words = frit_isp::text::parse(line).unwrap().command;
        let line = br#"{"regex": "b+", "file": "x"}"#;
        let regex = frit_isp::text::parse(line).unwrap().command;
        for command in [words, regex] {
            let mut request = request(looping(), Arc::new(Pieces::new(vec![b'b'; 100_000], &[])));
            request.instruction.command = command;
            let outcome = engine.submit(request).wait_for(Duration::from_secs(60));
            assert_eq!(outcome.expect("a thread").status(), Status::Ok);
        }
        endless.iter().for_each(frit_isp::Ticket::cancel);
        assert!(endless.iter().all(|ticket| ticket.wait().status() == Status::Cancelled));
    }
}

#[test]
fn an_engine_with_a_program_that_loops_can_be_dropped() {
    let engine = Setting::plain().engine();
    let tickets: Vec<_> = (0..3).map(|_| submit(&engine)).collect();
    std::thread::sleep(Duration::from_millis(5));
    drop(engine);
    assert!(tickets.iter().all(|ticket| ticket.wait().status() == Status::Cancelled));
}

#[test]
fn a_program_yields_to_foreground_requests() {
    let engine = Setting { threads: 1, ..Setting::plain() }.engine();
    compiled(&engine);
    let ticket = submit(&engine);
    std::thread::sleep(Duration::from_millis(10));
    let gate = &engine.options().foreground;
    let before = gate.yields();
    let guard = gate.enter();
    let began = Instant::now();
    while gate.yields() < before + 3 {
        assert!(began.elapsed() < Duration::from_secs(20), "the program does not yield");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(guard);
    ticket.cancel();
    let outcome = ticket.wait();
    assert!(outcome.status() == Status::Cancelled && outcome.work.yields >= 3, "{:?}", outcome.work);
}

/// File that reports reads while another read is in progress: those of a program during its call.
struct Exclusive {
    data: Vec<u8>,
    reading: AtomicBool,
}

impl Source for Exclusive {
    fn len(&self) -> u64 {
        self.data.len() as u64
    }

    fn read(&self, at: u64, len: usize, each: &mut dyn FnMut(&[u8])) -> Result<(), SourceError> {
        if self.reading.swap(true, Ordering::SeqCst) {
            return Err(SourceError("a read inside of another one".into()));
        }
        each(&self.data[at as usize..at as usize + len]);
        self.reading.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn version(&self) -> u64 {
        0
    }
}

#[test]
fn a_program_reads_while_the_engine_does_not() {
    // Emits the last byte of the file at each piece.
    let module = super::assembled(
        r#"(module
            (import "frit" "emit" (func $emit (param i32 i32) (result i32)))
            (import "frit" "read_at" (func $read_at (param i64 i32 i32)))
            (import "frit" "size" (func $size (result i64)))
            (memory (export "memory") 1)
            (func (export "buffer") (param i32) (result i32) (i32.const 0))
            (func (export "scan") (param i32 i32 i64) (result i32)
                (call $read_at (i64.sub (call $size) (i64.const 1)) (i32.const 0) (i32.const 1))
                (call $emit (i32.const 0) (i32.const 1))))"#,
    );
    let engine = Setting { threads: 2, ..Setting::plain() }.engine();
    let source =
        Arc::new(Exclusive { data: [vec![b'a'; 639], vec![b'z']].concat(), reading: AtomicBool::new(false) });
    let instruction =
        Instruction::new(Command::Program(Program::new(Module::File(Target::Inode(2)))), Target::Inode(1));
    let module: Arc<dyn Source> = Arc::new(module);
    let request =
        Request { instruction: instruction.clone(), source, module: Some(module), destination: None };
    assert_eq!(payload(&engine.run(request)), "z".repeat(10));
    // Without the file of the module, the engine refuses the instruction.
    let source = Arc::new(b"a".to_vec());
    let outcome = engine.run(Request { instruction, source, module: None, destination: None });
    assert_eq!(outcome.status(), Status::NotFound);
}
